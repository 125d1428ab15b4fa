#include "kernels/cpu/conv/conv_tiling.h"

namespace taeda::cpu::direct {
namespace {

// One row of a phase: the elements of `row` (null: zeros) at start, start + step, ...
template <class T>
void lay_row(const T* row, int64_t in, int64_t start, int64_t step, int64_t width, T* to) {
  auto steps = [&](int64_t n) { return step == 1 ? n : ceil_div(n, step); };
  const int64_t first = row ? std::clamp<int64_t>(steps(-start), 0, width) : width;
  const int64_t last = row ? std::clamp<int64_t>(steps(in - start), first, width) : width;
  std::fill(to, to + first, T(0));
  if (step == 1) {
    std::copy(row + start + first, row + start + last, to + first);
  } else {
    loops<T>().every(row + start + first * step, step, last - first, to + first);
  }
  std::fill(to + last, to + width, T(0));
}

// The inputs r, r + stride, ... of a dimension as sums over the outputs' gradients.
Axis backward_axis(const ConvShape& s, int d, int64_t r) {
  const int from = d - (3 - s.spatial);
  if (from < 0) {
    Axis a(1, 1, 1);
    a.add(0, 0);
    return a;
  }
  const int64_t stride = s.stride[from];
  Axis a(s.out[from], r < s.in[from] ? ceil_div(s.in[from] - r, stride) : 0, 1);
  a.y_start = r;
  a.y_step = stride;
  for (int64_t k = 0; k < s.kernel[from]; ++k) {
    const int64_t distance = r + s.padding[from] - k * s.dilation[from];
    if (distance % stride == 0) a.add(k, distance / stride);
  }
  return a;
}

}  // namespace

Problem forward_problem(const ConvShape& s) {
  auto axis = [&](int d) {
    const int from = d - (3 - s.spatial);
    if (from < 0) {
      Axis a(1, 1, 1);
      a.add(0, 0);
      return a;
    }
    Axis a(s.in[from], s.out[from], s.stride[from]);
    for (int64_t k = 0; k < s.kernel[from]; ++k) a.add(k, k * s.dilation[from] - s.padding[from]);
    return a;
  };
  Problem p{axis(0), axis(1), axis(2), s.in_channels / s.groups, 0, 0};
  p.y_height = p.h.out;
  p.y_width = p.w.out;
  return p;
}

void each_remainder(const ConvShape& s, const std::function<void(const Problem&)>& f) {
  auto stride = [&](int d) { return d < 3 - s.spatial ? 1 : s.stride[d - (3 - s.spatial)]; };
  for (int64_t r = 0; r < stride(0) * stride(1) * stride(2); ++r) {
    Problem p{backward_axis(s, 0, r / stride(2) / stride(1)),
              backward_axis(s, 1, r / stride(2) % stride(1)),
              backward_axis(s, 2, r % stride(2)),
              s.out_channels / s.groups,
              0,
              0};
    p.y_height = s.spatial > 1 ? s.in[s.spatial - 2] : 1;
    p.y_width = s.in[s.spatial - 1];
    if (p.d.out * p.h.out * p.w.out != 0) f(p);
  }
}

template <class T> void lay_out(const Problem& p, const Band& band, const T* x, T* to) {
  const int64_t width = p.width(), rows = band.rows + p.h.halo();
  const int64_t channel = p.d.in * p.h.in * p.w.in, line = 64 / sizeof(T);
  for (int64_t c = 0; c < p.channels; ++c, x += channel) {
    for (int64_t pd : p.d.phases) {
      for (int64_t ph : p.h.phases) {
        for (int64_t pw : p.w.phases) {
          for (int64_t td = 0; td <= p.d.halo(); ++td) {
            const int64_t id = (band.depth + p.d.lo + td) * p.d.step + pd;
            for (int64_t th = 0; th < rows; ++th, to += width) {
              const int64_t ih = (band.first + p.h.lo + th) * p.h.step + ph;
              const bool inside = id >= 0 && id < p.d.in && ih >= 0 && ih < p.h.in;
              const T* row = inside ? x + (id * p.h.in + ih) * p.w.in : nullptr;
              // Every phase reads a part of the rows, which no hardware foresees.
              for (int64_t i = 0; inside && c + 1 < p.channels && i < p.w.in; i += line)
                __builtin_prefetch(row + channel + i);
              lay_row(row, p.w.in, p.w.lo * p.w.step + pw, p.w.step, width, to);
            }
          }
        }
      }
    }
  }
}
template void lay_out<float>(const Problem&, const Band&, const float*, float*);
template void lay_out<double>(const Problem&, const Band&, const double*, double*);

std::vector<int64_t> offsets(const Problem& p, int64_t rows) {
  std::vector<int64_t> list;
  list.reserve(static_cast<size_t>(p.depth()));
  const int64_t height = rows + p.h.halo(), plane = height * p.width();
  const auto heights = static_cast<int64_t>(p.h.phases.size());
  const auto widths = static_cast<int64_t>(p.w.phases.size());
  for (int64_t c = 0; c < p.channels; ++c) {
    for (const Axis::Tap& d : p.d.taps) {
      for (const Axis::Tap& h : p.h.taps) {
        for (const Axis::Tap& w : p.w.taps) {
          const int64_t phase = (d.phase * heights + h.phase) * widths + w.phase;
          list.push_back(c * p.channel_size(rows) + phase * (p.d.halo() + 1) * plane +
                         (d.shift - p.d.lo) * plane + (h.shift - p.h.lo) * p.width() + w.shift -
                         p.w.lo);
        }
      }
    }
  }
  return list;
}

}  // namespace taeda::cpu::direct
