#include "kernels/cpu/conv/simd/conv.h"

#include "kernels/cpu/conv/simd/strided_load.h"

namespace taeda::cpu::simd::TAEDA_ISA {
namespace {

FN int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
FN int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }

// The outputs [first, last) along dimension d for which tap k falls inside of the input.
struct Range {
  int64_t first, last;
  int64_t start;  // where output 0 falls

  Range(const Window& w, int d, int64_t k) : start(k * w.dilation[d] - w.padding[d]) {
    const int64_t s = w.stride[d];
    first = start >= 0 ? 0 : (-start + s - 1) / s;
    const int64_t room = w.in[d] - 1 - start;
    last = room < 0 ? 0 : least(w.out[d], room / s + 1);
    first = least(first, w.out[d]);
    last = most(last, first);
  }
};

// Calls f(row of x or null, first column, columns) for each part of an output row within
// [begin, end), in order.
template <class P, class F>
void each_row_part(const Window& w, int64_t kd, int64_t kh, P* x, int64_t begin, int64_t end,
                   F&& f) {
  int64_t ow = begin % w.out[2], row = begin / w.out[2];
  int64_t oh = row % w.out[1], od = row / w.out[1];
  for (int64_t p = begin; p < end;) {
    const int64_t count = least(w.out[2] - ow, end - p);
    const int64_t id = od * w.stride[0] - w.padding[0] + kd * w.dilation[0];
    const int64_t ih = oh * w.stride[1] - w.padding[1] + kh * w.dilation[1];
    const bool inside = id >= 0 && id < w.in[0] && ih >= 0 && ih < w.in[1];
    f(inside ? x + (id * w.in[1] + ih) * w.in[2] : nullptr, ow, count);
    p += count;
    ow = 0;
    if (++oh == w.out[1]) {
      oh = 0;
      ++od;
    }
  }
}

template <class T>
void im2col(const Window& w, int64_t channels, const T* x, int64_t begin, int64_t end, T* col,
            int64_t ld) {
  const int64_t plane = w.in[0] * w.in[1] * w.in[2], stride = w.stride[2];
  for (int64_t c = 0; c < channels; ++c, x += plane) {
    for (int64_t kd = 0; kd < w.kernel[0]; ++kd) {
      for (int64_t kh = 0; kh < w.kernel[1]; ++kh) {
        for (int64_t kw = 0; kw < w.kernel[2]; ++kw, col += ld) {
          const Range range(w, 2, kw);
          T* to = col;
          each_row_part(w, kd, kh, x, begin, end, [&](const T* row, int64_t ow, int64_t count) {
            const int64_t last = ow + count;
            const int64_t from = row ? least(most(range.first, ow), last) : last;
            const int64_t until = row ? most(least(range.last, last), from) : last;
            int64_t j = ow;
            for (; j < from; ++j) *to++ = T(0);
            if (stride == 1) {
              for (; j < until; ++j) *to++ = row[range.start + j];
            } else if (j < until) {
              load_strided(row + range.start + j * stride, stride, until - j, to);
              to += until - j;
              j = until;
            }
            for (; j < last; ++j) *to++ = T(0);
          });
        }
      }
    }
  }
}

template <class T>
void col2im(const Window& w, int64_t channels, const T* col, int64_t ld, int64_t begin, int64_t end,
            T* x) {
  const int64_t plane = w.in[0] * w.in[1] * w.in[2], stride = w.stride[2];
  for (int64_t c = 0; c < channels; ++c, x += plane) {
    for (int64_t kd = 0; kd < w.kernel[0]; ++kd) {
      for (int64_t kh = 0; kh < w.kernel[1]; ++kh) {
        for (int64_t kw = 0; kw < w.kernel[2]; ++kw, col += ld) {
          const Range range(w, 2, kw);
          const T* from = col;
          each_row_part(w, kd, kh, x, begin, end, [&](T* row, int64_t ow, int64_t count) {
            if (row != nullptr) {
              const int64_t first = most(range.first, ow), last = least(range.last, ow + count);
              const T* __restrict source = from - ow;
              T* __restrict to = row + range.start;
              if (stride == 1) {
                for (int64_t j = first; j < last; ++j) to[j] = static_cast<T>(to[j] + source[j]);
              } else {
                for (int64_t j = first; j < last; ++j)
                  to[j * stride] = static_cast<T>(to[j * stride] + source[j]);
              }
            }
            from += count;
          });
        }
      }
    }
  }
}

}  // namespace

template <class T> constexpr ConvLoops<T> conv_loops = {im2col<T>, col2im<T>};

extern const ConvKernels conv_kernels = {conv_loops<float>,    conv_loops<double>,
                                         conv_loops<uint8_t>,  conv_loops<uint16_t>,
                                         conv_loops<uint32_t>, conv_loops<uint64_t>};

}  // namespace taeda::cpu::simd::TAEDA_ISA
