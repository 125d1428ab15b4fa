#include <algorithm>
#include <vector>

#include "base/thread_pool.h"
#include "kernels/cpu/common/scratch.h"
#include "kernels/cpu/conv/conv_direct.h"
#include "kernels/cpu/conv/conv_tiling.h"

// The gradient of the weights.
// It is a sum over all places of the outputs' gradients there times what was read there. With the
// channels of the laid-out input side by side, what a row of taps reads at one place is one stretch
// of memory, and the sum over places a product like any other.
namespace taeda::cpu {
namespace {

using namespace direct;

constexpr int64_t kPlacesTogether = 256;     // outputs whose gradients are summed at a stretch
constexpr int64_t kAddedTogether = 1 << 14;  // sums of runs worth a chunk
constexpr int64_t kFewPlaces = 64;           // that the matrix of windows makes easy
// Measured: a multiplication's time, beside one that waits for nothing, in steps, and with places
// across the registers; and an element's that is moved, or moved to its phase.
constexpr double kWork = 1.6, kSteps = 1.5, kPlaces = 1.45, kMove = .5, kPhase = 2.5;
constexpr int64_t kCopyCost = 8;  // products of registers that a stretch's copying costs

// A stretch of columns of that product: the taps (d, h) of the kernel with those along w that fall
// into one phase.
struct TapRow {
  const Axis::Tap *d, *h;
  int64_t phase, lo, columns;  // along w; the least shift; shifts times channels
  int64_t at = 0;              // where its sums begin
};
struct TapRows {
  std::vector<TapRow> list;
  int64_t ld = 0;         // from one output's sums to the next's
  int64_t size = 0;       // of all sums
  bool gathered = false;  // with few channels, the stretches are copied behind one another first
  double cost = 0;        // of one place, in products of registers
};
TapRows tap_rows(const Problem& p, int64_t outputs, int64_t cols) {
  TapRows rows;
  int64_t total = 0, padded = 0;  // columns, and those of whole registers
  for (const Axis::Tap& d : p.d.taps) {
    for (const Axis::Tap& h : p.h.taps) {
      for (int64_t phase = 0; phase < static_cast<int64_t>(p.w.phases.size()); ++phase) {
        int64_t lo = INT64_MAX, hi = INT64_MIN;
        for (const Axis::Tap& w : p.w.taps) {
          if (w.phase != phase) continue;
          lo = std::min(lo, w.shift);
          hi = std::max(hi, w.shift);
        }
        rows.list.push_back({&d, &h, phase, lo, (hi - lo + 1) * p.channels});
        rows.ld = std::max(rows.ld, rows.list.back().columns);
        total += rows.list.back().columns;
        padded += ceil_div(rows.list.back().columns, cols) * cols;
      }
    }
  }
  rows.ld = ceil_div(rows.ld, cols) * cols;
  const int64_t together = ceil_div(total, cols) * cols, lanes = cols / 2;
  auto cost = [&](int64_t columns, int64_t copies) {
    return static_cast<double>(outputs * columns + copies * kCopyCost * lanes) /
           static_cast<double>(lanes);
  };
  const auto many = static_cast<int64_t>(rows.list.size());
  const double apart = cost(padded, 0), behind = cost(together, many);
  rows.gathered = behind < apart;
  rows.cost = std::min(behind, apart);
  if (rows.gathered) rows.ld = together;
  int64_t at = 0;
  for (TapRow& row : rows.list) {
    row.at = at;
    at += rows.gathered ? row.columns : outputs * rows.ld;
  }
  rows.size = rows.gathered ? outputs * rows.ld : at;
  return rows;
}

// The outputs' gradients of a band as product() reads them: [panel][place][output].
template <class T>
void pack_gradients(const Problem& p, const Band& band, int64_t outputs, const T* g, int64_t volume,
                    T* to) {
  const int64_t rows = loops<T>().rows, places = band.rows * p.w.out;
  for (int64_t first = 0; first < outputs; first += rows) {
    const int64_t m = std::min(rows, outputs - first);
    transpose(g + first * volume, volume, m, places, to + first * places, m);
  }
}

// sums[output][column] += the products of the places [q, q + n), for a stretch of columns.
template <class T>
void add_columns(int64_t q, int64_t n, int64_t columns, int64_t outputs, int64_t places,
                 const T* grads, const T* laid, const int64_t* offset, int64_t ld, T* sums) {
  const auto& kernel = loops<T>();
  for (int64_t j = 0; j < columns; j += kernel.cols) {
    for (int64_t first = 0; first < outputs; first += kernel.rows) {
      const int64_t m = std::min(kernel.rows, outputs - first);
      kernel.product(n, m, grads + first * places + q * m, laid + j, offset + q, nullptr,
                     sums + first * ld + j, ld);
    }
  }
}

// sums += the products of one band.
template <class T>
void add_places(const Problem& p, const Band& band, const TapRows& rows, int64_t outputs,
                const T* grads, const T* laid, T* sums) {
  const int64_t width = p.width(), plane = (band.rows + p.h.halo()) * width;
  const int64_t places = band.rows * p.w.out;
  const auto heights = static_cast<int64_t>(p.h.phases.size());
  const auto widths = static_cast<int64_t>(p.w.phases.size());
  auto start = [&](const TapRow& row) {
    const int64_t phase = (row.d->phase * heights + row.h->phase) * widths + row.phase;
    return (phase * (p.d.halo() + 1) * plane + (row.d->shift - p.d.lo) * plane +
            (row.h->shift - p.h.lo) * width + row.lo - p.w.lo) *
           p.channels;
  };
  std::vector<int64_t> offset(static_cast<size_t>(places)), own(static_cast<size_t>(places));
  for (int64_t q = 0; q < places; ++q) {
    offset[static_cast<size_t>(q)] = (q / p.w.out * width + q % p.w.out) * p.channels;
    own[static_cast<size_t>(q)] = q % kPlacesTogether * rows.ld;
  }
  Scratch<T> gathered(rows.gathered ? kPlacesTogether * rows.ld : 0);
  std::fill_n(gathered.data(), rows.gathered ? kPlacesTogether * rows.ld : 0, T(0));
  for (int64_t q = 0; q < places; q += kPlacesTogether) {
    const int64_t n = std::min(kPlacesTogether, places - q);
    for (const TapRow& row : rows.list) {
      const T* from = laid + start(row);
      if (!rows.gathered) {
        add_columns(q, n, row.columns, outputs, places, grads, from, offset.data(), rows.ld,
                    sums + row.at);
        continue;
      }
      for (int64_t i = 0; i < n; ++i) {
        const T* source = from + offset[static_cast<size_t>(q + i)];
        T* to = gathered.data() + i * rows.ld + row.at;
        for (int64_t c = 0; c < row.columns; ++c) to[c] = source[c];
      }
    }
    if (rows.gathered) {
      add_columns(q, n, rows.ld, outputs, places, grads, gathered.data(), own.data(), rows.ld,
                  sums);
    }
  }
}

// gw[channel][tap] of one output += sums.
template <class T>
void add_taps(const Problem& p, const ConvShape& s, const TapRows& rows, int64_t output,
              const T* sums, T* gw) {
  const int64_t taps = p.taps(), kernel_w = s.kernel[s.spatial - 1];
  const int64_t kernel_h = s.spatial > 1 ? s.kernel[s.spatial - 2] : 1;
  for (const TapRow& row : rows.list) {
    for (const Axis::Tap& w : p.w.taps) {
      if (w.phase != row.phase) continue;
      const int64_t tap = (row.d->number * kernel_h + row.h->number) * kernel_w + w.number;
      const T* from = sums + row.at + output * rows.ld + (w.shift - row.lo) * p.channels;
      for (int64_t c = 0; c < p.channels; ++c) gw[c * taps + tap] += from[c];
    }
  }
}

}  // namespace

double direct::direct_weight_cost(const ConvShape& s) {
  const int64_t inputs = s.in_channels / s.groups, outputs = s.out_channels;
  const int64_t y_volume = volume(s, s.out), taps = volume(s, s.kernel);
  const double work = static_cast<double>(s.batch * y_volume) * static_cast<double>(inputs * taps) *
                      static_cast<double>(outputs);
  // Few windows, or such as do not overlap, go as a matrix; others in steps are slow.
  const int last = s.spatial - 1;
  const bool overlap = (s.kernel[last] - 1) * s.dilation[last] >= s.stride[last];
  return kWork * (s.stride[last] > 1 && overlap && y_volume > kFewPlaces ? kSteps : 1) * work;
}

template <class T> double direct_grad_weight_cost(const ConvShape& s) {
  const Problem p = forward_problem(s);
  const auto images = static_cast<double>(s.batch * s.groups * loops<T>().cols / 2);
  const auto planes = static_cast<double>(p.d.out), read = static_cast<double>(volume(s, s.in));
  const double moved = (p.phases() > 1 ? kPhase : kMove) * read * static_cast<double>(p.channels);
  const double places = kPlaces * planes * places_cost<T>(p, s.out_channels / s.groups);
  return std::min(direct_weight_cost(s), images * (places + moved));
}
template double direct_grad_weight_cost<float>(const ConvShape&);
template double direct_grad_weight_cost<double>(const ConvShape&);

template <class T> void direct_grad_weight(const ConvShape& s, const T* x, const T* gy, T* gw) {
  const Problem p = forward_problem(s);
  const int64_t outputs = s.out_channels / s.groups;
  const int64_t x_volume = p.d.in * p.h.in * p.w.in, y_volume = volume(s, s.out);
  const TapRows rows = tap_rows(p, outputs, loops<T>().cols);
  // Transposing costs about a product of registers for each element.
  const auto places = static_cast<double>(p.h.out * p.w.out);
  const double transposed =
      places * static_cast<double>(outputs) + static_cast<double>(p.channels * p.h.in * p.w.in);
  if (places_cost<T>(p, outputs) < places * rows.cost + transposed)
    return places_grad_weight(s, x, gy, gw);
  // Runs of pieces add to sums of their own, which are then added in order.
  const int64_t bands = p.bands(), pieces = s.batch * bands;
  const int64_t group_sums = rows.size, total = s.groups * group_sums;
  const int64_t most = total > (1 << 18) ? 4 : 16;
  const int64_t run = ceil_div(pieces, std::min(most, pieces)), runs = ceil_div(pieces, run);
  Scratch<T> sums(runs * total);
  parallel_for(runs * s.groups, 1, [&](int64_t begin, int64_t end) {
    const int64_t laid_size = p.channels * p.channel_size(p.band());
    Scratch<T> laid(laid_size), last(laid_size + loops<T>().cols);
    Scratch<T> grads(outputs * p.band() * p.w.out);
    for (int64_t i = begin; i < end; ++i) {
      const int64_t group = i % s.groups, number = i / s.groups;
      T* to = sums.data() + number * total + group * group_sums;
      std::fill_n(to, group_sums, T(0));
      for (int64_t piece = number * run; piece < std::min((number + 1) * run, pieces); ++piece) {
        const int64_t image = piece / bands;
        const Band band(p, piece % bands);
        lay_out(p, band, x + (image * s.groups + group) * p.channels * x_volume, laid.data());
        const int64_t size = p.channel_size(band.rows);
        transpose(laid.data(), size, p.channels, size, last.data(), p.channels);
        const T* g = gy + (image * s.groups + group) * outputs * y_volume;
        pack_gradients(p, band, outputs, g + (band.depth * p.h.out + band.first) * p.w.out,
                       y_volume, grads.data());
        add_places(p, band, rows, outputs, grads.data(), last.data(), to);
      }
    }
  });
  const int64_t grain = std::max<int64_t>(1, kAddedTogether / (runs * p.depth()));
  parallel_for(s.out_channels, grain, [&](int64_t begin, int64_t end) {
    for (int64_t m = begin; m < end; ++m) {
      for (int64_t r = 0; r < runs; ++r) {
        add_taps(p, s, rows, m % outputs, sums.data() + r * total + m / outputs * group_sums,
                 gw + m * p.depth());
      }
    }
  });
}
template void direct_grad_weight<float>(const ConvShape&, const float*, const float*, float*);
template void direct_grad_weight<double>(const ConvShape&, const double*, const double*, double*);

}  // namespace taeda::cpu
