#include "kernels/cpu/conv/conv_batch_simd.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "base/thread_pool.h"
#include "kernels/cpu/common/partial_sums.h"
#include "kernels/cpu/common/scratch.h"
#include "kernels/cpu/conv/conv_nhwc.h"
#include "kernels/cpu/conv/conv_tiling.h"
#include "kernels/cpu/conv/winograd.h"

// At every place of the outputs, each tap that falls inside of the input is a product of matrices,
// images by channels by outputs. Images, or outputs, lie across the registers, so that places need
// not be neighbours: padding, steps and dilation cost nothing. The gradient of the weights is such
// a convolution too, with channels for images, images for channels, and places and taps swapped.
namespace taeda::cpu {
namespace {

using namespace direct;
using simd::Run;

constexpr int64_t kPackedTogether = 1 << 14;  // elements worth a chunk
constexpr int64_t kNear = 1 << 12;            // that are copied at a stretch
constexpr int64_t kCached = 1 << 20;          // that a cache holds while every place reads of them
constexpr int64_t kMostRuns = 1 << 16;
constexpr int64_t kMostPlaces = 1 << 12;  // of planes whose channels lie side by side
constexpr int64_t kNearPlanes = 1 << 16;  // elements of them
constexpr int64_t kNearBoth = 1 << 14;    // ... where both planes are read for each sum
constexpr int64_t kTasks = 8;             // or more
// Measured: the time of a multiplication, beside one of a kernel that waits for nothing ...
constexpr double kOwnWork = 1.1;
// ... and of a call and of an element moved, in those of a register.
constexpr double kCall = 50, kMove = 1;

// An operand: what is summed over runs over `inner`; element (item, inner, i) lies at
// data[item * item_step + inner * inner_step + i].
template <class T> struct Operand {
  const T* data;
  int64_t items, item_step, inner_step;
  int64_t size[3];

  int64_t count() const { return size[0] * size[1] * size[2]; }
};

// Indices `first`, first + 1, ..., that go to the places `to`, to + step, ...
struct Sequence {
  int64_t first, count, to, step;
};

// Numbers as sequences, upwards or downwards.
std::vector<Sequence> sequences(const std::vector<int64_t>& order) {
  std::vector<Sequence> list;
  for (size_t i = 0, n = 0; i < order.size(); i += n) {
    n = 1;
    const int64_t step = i + 1 < order.size() && order[i + 1] == order[i] - 1 ? -1 : 1;
    while (i + n < order.size() && order[i + n] == order[i + n - 1] + step) ++n;
    const auto at = static_cast<int64_t>(i), count = static_cast<int64_t>(n);
    list.push_back(step > 0 ? Sequence{order[i], count, at, 1}
                            : Sequence{order[i + n - 1], count, at + count - 1, -1});
  }
  return list;
}

// An operand as product() reads it: [block of `width` items][index][inner][item], where the indices
// are those of `order`. A last block that is narrower is filled up if `filled`.
template <class T>
void pack(const Operand<T>& x, int64_t inner, const std::vector<Sequence>& order, int64_t count,
          int64_t width, bool filled, T* packed) {
  const int64_t together =
      std::clamp<int64_t>(kNear / std::max<int64_t>(1, width * count), 1, inner);
  const int64_t chunks = ceil_div(inner, together);
  const int64_t grain = std::max<int64_t>(1, kPackedTogether / (width * x.count() * together));
  parallel_for(ceil_div(x.items, width) * chunks, grain, [&](int64_t begin, int64_t end) {
    Scratch<T> near(together * count * width);
    for (int64_t i = begin; i < end; ++i) {
      const int64_t first = i / chunks * width, c = i % chunks * together;
      const int64_t many = std::min(width, x.items - first), wide = filled ? width : many;
      const int64_t n = std::min(together, inner - c), step = n * wide;
      if (many < wide) std::fill_n(near.data(), count * step, T(0));
      for (int64_t k = 0; k < n; ++k) {
        const T* from = x.data + first * x.item_step + (c + k) * x.inner_step;
        T* to = near.data() + k * wide;
        for (const Sequence& s : order)
          transpose(from + s.first, x.item_step, many, s.count, to + s.to * step, s.step * step);
      }
      T* to = packed + first * inner * count + c * wide;
      for (int64_t k = 0; k < count; ++k)
        std::copy_n(near.data() + k * step, step, to + k * inner * wide);
    }
  });
}

// The taps of an axis whose positions lie inside of the input, in the order of their positions.
struct Reach {
  int64_t first, last;
};
Reach reach(const Axis& a, int64_t o) {
  const auto inside = [&](const Axis::Tap& t) {
    const int64_t at = o * a.step + t.position;
    return at >= 0 && at < a.in;
  };
  const auto first = std::find_if(a.taps.begin(), a.taps.end(), inside);
  const auto last = std::find_if_not(first, a.taps.end(), inside);
  return {first - a.taps.begin(), last - a.taps.begin()};
}

void sort_taps(Axis& a) {
  std::sort(a.taps.begin(), a.taps.end(),
            [](const Axis::Tap& l, const Axis::Tap& r) { return l.position < r.position; });
}

// The numbers of all taps.
void append_taps(const Problem& p, const int64_t (&kernel)[3], std::vector<int64_t>& taps) {
  for (const Axis::Tap& d : p.d.taps) {
    for (const Axis::Tap& h : p.h.taps) {
      for (const Axis::Tap& k : p.w.taps)
        taps.push_back((d.number * kernel[1] + h.number) * kernel[2] + k.number);
    }
  }
}

std::vector<Run> runs_of(const Problem& p) {
  std::vector<Run> runs;
  const auto heights = static_cast<int64_t>(p.h.taps.size());
  const auto widths = static_cast<int64_t>(p.w.taps.size());
  const auto position = [](const Axis& a, int64_t o, int64_t tap) {
    return o * a.step + a.taps[static_cast<size_t>(tap)].position;
  };
  int64_t output = 0;
  for (int64_t od = 0; od < p.d.out; ++od) {
    const Reach d = reach(p.d, od);
    for (int64_t oh = 0; oh < p.h.out; ++oh) {
      const Reach h = reach(p.h, oh);
      for (int64_t ow = 0; ow < p.w.out; ++ow, ++output) {
        const Reach w = reach(p.w, ow);
        for (int64_t td = d.first; td < d.last; ++td) {
          for (int64_t th = h.first; th < h.last; ++th) {
            const int64_t row = position(p.d, od, td) * p.h.in + position(p.h, oh, th);
            int64_t before = -2;
            for (int64_t tw = w.first; tw < w.last; ++tw) {
              const int64_t place = row * p.w.in + position(p.w, ow, tw);
              if (place == before + 1) ++runs.back().taps;
              else runs.push_back({output, (td * heights + th) * widths + tw, place, 1});
              before = place;
            }
          }
        }
      }
    }
  }
  return runs;
}

// The least and largest position of a tap.
std::pair<int64_t, int64_t> extremes(const Axis& a) {
  int64_t least = 0, most = -1;
  for (const Axis::Tap& t : a.taps) {
    least = most < least ? t.position : std::min(least, t.position);
    most = std::max(most, t.position);
  }
  return {least, most};
}

// The taps of all outputs that fall inside of the input, and the runs that they come in.
struct Reached {
  int64_t taps = 1, runs = 1;

  explicit Reached(const Problem& p) {
    for (const Axis* a : {&p.d, &p.h, &p.w}) {
      int64_t all = 0, outputs = 0;
      for (int64_t o = 0; o < a->out; ++o) {
        const Reach r = reach(*a, o);
        all += r.last - r.first;
        outputs += r.last > r.first;
      }
      const auto [least, most] = extremes(*a);
      const bool neighbours = a == &p.w && most - least + 1 == static_cast<int64_t>(a->taps.size());
      taps *= all;
      runs *= neighbours ? outputs : all;
    }
  }
};

// Where results go: that of (item of x, item of w, place) at x * x_step + w * w_step + its place.
template <class T> struct Result {
  T* data;
  int64_t x_step, w_step;
};

// Sums of all places, `step` apart, to a plane of y for each of `many` columns, y_step apart.
template <class T>
void store(const Problem& p, const T* sums, int64_t step, int64_t many, T* y, int64_t y_step) {
  const int64_t places = p.d.out * p.h.out * p.w.out;
  if (p.w.out == p.y_width && p.h.out == p.y_height && p.d.y_step == 1 && p.d.y_start == 0)
    return transpose(sums, step, places, many, y, y_step);
  Scratch<T> planes(many * places);
  transpose(sums, step, places, many, planes.data(), places);
  const T* from = planes.data();
  for (int64_t i = 0; i < many; ++i) {
    for (int64_t d = 0; d < p.d.out; ++d) {
      for (int64_t h = 0; h < p.h.out; ++h) {
        const int64_t row =
            (p.d.y_start + d * p.d.y_step) * p.y_height + p.h.y_start + h * p.h.y_step;
        T* to = y + i * y_step + row * p.y_width + p.w.y_start;
        for (int64_t w = 0; w < p.w.out; ++w) to[w * p.w.y_step] = *from++;
      }
    }
  }
}

int64_t round_up(int64_t a, int64_t b) { return ceil_div(a, b) * b; }
double real(int64_t n) { return static_cast<double>(n); }

// Whether the items of x, not those of w, lie across the registers.
template <class T> bool x_across(int64_t x_items, int64_t w_items) {
  const int64_t rows = loops<T>().rows, cols = loops<T>().cols;
  return round_up(x_items, cols) * round_up(w_items, rows) <
         round_up(x_items, rows) * round_up(w_items, cols);
}

// bias: one for each item of w, or null. Adds up in the order of places or taps, whatever the
// number of threads.
template <class T>
void convolve(Problem p, const Operand<T>& x, const Operand<T>& w, const T* bias,
              const Result<T>& y) {
  for (Axis* a : {&p.d, &p.h, &p.w}) sort_taps(*a);
  const auto& kernel = loops<T>();
  const int64_t rows = kernel.rows, cols = kernel.cols, inner = p.channels;
  std::vector<int64_t> taps;
  append_taps(p, w.size, taps);
  const std::vector<Run> runs = runs_of(p);
  std::vector<int64_t> offset(p.w.taps.size() * static_cast<size_t>(inner));
  for (size_t i = 0; i < offset.size(); ++i) offset[i] = static_cast<int64_t>(i) * cols;

  const bool across = x_across<T>(x.items, w.items);
  const Operand<T>&down = across ? w : x, &right = across ? x : w;
  const std::vector<Sequence> all{{0, x.count(), 0, 1}}, used = sequences(taps);
  const int64_t many_taps = p.taps();
  const int64_t down_count = across ? many_taps : x.count();
  const int64_t right_count = across ? x.count() : many_taps;
  const int64_t down_blocks = ceil_div(down.items, rows);
  const int64_t right_blocks = ceil_div(right.items, cols);
  Scratch<T> a(down.items * down_count * inner), b(right_blocks * cols * right_count * inner);
  pack<T>(down, inner, across ? used : all, down_count, rows, false, a.data());
  pack<T>(right, inner, across ? all : used, right_count, cols, true, b.data());

  const int64_t outputs = p.d.out * p.h.out * p.w.out;
  const int64_t down_step = across ? y.w_step : y.x_step;
  const int64_t right_step = across ? y.x_step : y.w_step;
  parallel_for(down_blocks * right_blocks, 1, [&](int64_t begin, int64_t end) {
    Scratch<T> sums(outputs * rows * cols);  // [output][row][column]
    Scratch<T> start(rows * cols);
    for (int64_t i = begin; i < end; ++i) {
      const int64_t top = i % down_blocks * rows, left = i / down_blocks * cols;
      const int64_t m = std::min(rows, down.items - top), n = std::min(cols, right.items - left);
      std::fill_n(start.data(), m * cols, T(0));
      for (int64_t r = 0; bias && r < m; ++r) {
        if (across) std::fill_n(start.data() + r * cols, cols, bias[top + r]);
        else std::copy_n(bias + left, n, start.data() + r * cols);
      }
      for (int64_t q = 0; q < outputs; ++q)
        std::copy_n(start.data(), m * cols, sums.data() + q * m * cols);
      const T* from = a.data() + top * down_count * inner;
      const T* seen = b.data() + left * right_count * inner;
      for (const Run& run : runs) {
        const int64_t down_at = across ? run.tap : run.place;
        const int64_t right_at = across ? run.place : run.tap;
        kernel.product(run.taps * inner, m, from + down_at * inner * m,
                       seen + right_at * inner * cols, offset.data(), nullptr,
                       sums.data() + run.output * m * cols, cols);
      }
      for (int64_t r = 0; r < m; ++r) {
        store(p, sums.data() + r * cols, m * cols, n,
              y.data + (top + r) * down_step + left * right_step, right_step);
      }
    }
  });
}

// The sizes of all three dimensions, leading ones of 1.
template <class T>
Operand<T> operand(const ConvShape& s, const T* data, int64_t items, int64_t item_step,
                   int64_t inner_step, const int64_t (&size)[3]) {
  Operand<T> x{data, items, item_step, inner_step, {1, 1, 1}};
  for (int d = 0; d < s.spatial; ++d) x.size[3 - s.spatial + d] = size[d];
  return x;
}

// The gradient of the weights: with places for taps, and taps for places.
Problem swapped_problem(const ConvShape& s) {
  ConvShape swapped = s;
  for (int d = 0; d < s.spatial; ++d) {
    swapped.kernel[d] = s.out[d];
    swapped.out[d] = s.kernel[d];
    swapped.stride[d] = s.dilation[d];
    swapped.dilation[d] = s.stride[d];
  }
  return forward_problem(swapped);
}

// About how long this way takes, in multiplications.
template <class T> double cost(const Problem& p, const Operand<T>& x, const Operand<T>& w) {
  const int64_t rows = loops<T>().rows, cols = loops<T>().cols;
  const bool across = x_across<T>(x.items, w.items);
  const int64_t down = across ? w.items : x.items, right = across ? x.items : w.items;
  const int64_t rest = down % rows, height = rest == 1 ? down + 1 : down;
  const Reached reached(p);
  const double calls = real(reached.runs) * real(ceil_div(down, rows) * ceil_div(right, cols));
  const double moved = real(p.channels) * real(x.items * x.count() + w.items * w.count()) +
                       real(x.items) * real(w.items) * real(p.d.out * p.h.out * p.w.out);
  return kOwnWork * real(reached.taps) * real(p.channels) * real(height) *
             real(round_up(right, cols)) +
         real(cols) * (kCall * calls + kMove * moved);
}

// Whether this is a way at all.
bool possible(const ConvShape& s) {
  const int64_t outputs = volume(s, s.out), taps = volume(s, s.kernel);
  bool product = taps == 1;  // of matrices, as they lie there
  for (int d = 0; d < s.spatial; ++d) product &= s.stride[d] == 1 && s.padding[d] == 0;
  return s.groups == 1 && !product && taps > 0 && s.batch >= 4 && outputs > 0 &&
         volume(s, s.in) > 0 && std::min(s.in_channels, s.out_channels) >= 4 &&
         outputs * taps <= kMostRuns;
}

// Whether the inputs that a row of outputs reads, of one block of items, stay in a cache.
template <class T> bool fits_cache(const Problem& p, const Operand<T>& x, int64_t w_items) {
  const auto extent = [](const Axis& a) {
    const auto [least, most] = extremes(a);
    return std::min(a.in, most - least + 1);
  };
  const int64_t planes = extent(p.d), rows = planes > 1 ? planes * p.h.in : extent(p.h);
  const int64_t width =
      x_across<T>(x.items, w_items) ? loops<T>().cols : std::min(x.items, loops<T>().rows);
  return width * p.channels * rows * p.w.in <= kCached;
}

template <class T>
bool is_faster(const Problem& p, const Operand<T>& x, const Operand<T>& w, double other) {
  return fits_cache(p, x, w.items) && cost(p, x, w) < other;
}

}  // namespace

template <class T>
bool across_forward(const ConvShape& s, const T* x, const T* w, const T* bias, T* y) {
  if (!possible(s)) return false;
  const Problem p = forward_problem(s);
  const int64_t inputs = s.in_channels, outputs = s.out_channels, taps = p.taps();
  const int64_t x_volume = volume(s, s.in), y_volume = volume(s, s.out);
  const Operand<T> seen = operand(s, x, s.batch, inputs * x_volume, x_volume, s.in);
  const Operand<T> weights = operand(s, w, outputs, inputs * taps, taps, s.kernel);
  const double other = fits_winograd<T>(s) ? winograd_cost(s) : direct_cost<T>(p, outputs, s.batch);
  if (!is_faster(p, seen, weights, std::min(other, last_forward_cost<T>(s)))) return false;
  convolve<T>(p, seen, weights, bias, {y, outputs * y_volume, y_volume});
  return true;
}

template <class T> bool across_grad_input(const ConvShape& s, const T* gy, const T* w, T* gx) {
  if (!possible(s)) return false;
  const int64_t inputs = s.in_channels, outputs = s.out_channels, taps = volume(s, s.kernel);
  const int64_t x_volume = volume(s, s.in), y_volume = volume(s, s.out);
  const Operand<T> grads = operand(s, gy, s.batch, outputs * y_volume, y_volume, s.out);
  const Operand<T> weights = operand(s, w, inputs, taps, inputs * taps, s.kernel);
  const bool winograd = s.stride[0] == 1 && fits_winograd<T>(s);
  double own = 0, other = winograd ? winograd_cost(s) : 0;
  each_remainder(s, [&](const Problem& p) {
    own += fits_cache(p, grads, inputs) ? cost(p, grads, weights) : HUGE_VAL;
    if (!winograd) other += direct_cost<T>(p, inputs, s.batch);
  });
  if (own >= std::min(other, last_grad_input_cost<T>(s))) return false;
  each_remainder(s, [&](const Problem& p) {
    convolve<T>(p, grads, weights, nullptr, {gx, inputs * x_volume, x_volume});
  });
  return true;
}

template <class T>
bool across_grad_weight(const ConvShape& s, const T* x, const T* gy, T* gw, double other) {
  if (!possible(s)) return false;
  const int64_t inputs = s.in_channels, outputs = s.out_channels, taps = volume(s, s.kernel);
  const int64_t x_volume = volume(s, s.in), y_volume = volume(s, s.out);
  Problem p = swapped_problem(s);
  p.channels = s.batch;
  const Operand<T> seen = operand(s, x, inputs, x_volume, inputs * x_volume, s.in);
  const Operand<T> grads = operand(s, gy, outputs, y_volume, outputs * y_volume, s.out);
  other = std::min({other, fits_winograd<T>(s) ? winograd_cost(s) : direct_weight_cost(s),
                    last_grad_weight_cost<T>(s)});
  if (!is_faster(p, seen, grads, other)) return false;
  convolve<T>(p, seen, grads, nullptr, {gw, taps, inputs * taps});
  return true;
}

// ---- a kernel for each channel ----

namespace {

// Some planes, to [place][channel], with zeros for channels that fill up `width`.
template <class T>
void lay_planes(const T* x, int64_t planes, int64_t volume, int64_t width, T* to) {
  if (planes < width) std::fill_n(to, volume * width, T(0));
  transpose(x, volume, planes, volume, to, width);
}

// Problems whose outputs are all in one plane, as runs: their taps one after another.
struct ChannelRuns {
  std::vector<Run> runs;
  std::vector<int64_t> taps;  // their numbers in the kernel

  void add(Problem p, const int64_t (&kernel)[3]) {
    for (Axis* a : {&p.d, &p.h, &p.w}) sort_taps(*a);
    const auto before = static_cast<int64_t>(taps.size());
    append_taps(p, kernel, taps);
    for (Run run : runs_of(p)) {
      const int64_t row = run.output / p.w.out, w = run.output % p.w.out;
      const int64_t d = p.d.y_start + row / p.h.out * p.d.y_step;
      const int64_t h = p.h.y_start + row % p.h.out * p.h.y_step;
      runs.push_back({(d * p.y_height + h) * p.y_width + p.w.y_start + w * p.w.y_step,
                      before + run.tap, run.place, run.taps});
    }
  }
};

template <class T>
void convolve_channels(const ChannelRuns& r, int64_t batch, const T* x, int64_t x_volume,
                       const Operand<T>& w, const T* bias, T* y, int64_t y_volume) {
  const auto& kernel = correlate_loops<T>();
  const auto taps = static_cast<int64_t>(r.taps.size()), runs = static_cast<int64_t>(r.runs.size());
  const int64_t channels = w.items, width = kernel.channels, blocks = ceil_div(channels, width);
  Scratch<T> packed(blocks * width * taps);
  pack<T>(w, 1, sequences(r.taps), taps, width, true, packed.data());
  const int64_t grain = std::max<int64_t>(1, kPackedTogether / (width * (x_volume + y_volume)));
  parallel_for(batch * blocks, grain, [&](int64_t begin, int64_t end) {
    Scratch<T> seen(x_volume * width), sums(y_volume * width), start(width);
    for (int64_t i = begin; i < end; ++i) {
      const int64_t first = i % blocks * width, plane = i / blocks * channels + first;
      const int64_t many = std::min(width, channels - first);
      lay_planes(x + plane * x_volume, many, x_volume, width, seen.data());
      std::fill_n(start.data(), width, T(0));
      if (bias) std::copy_n(bias + first, many, start.data());
      for (int64_t q = 0; q < y_volume; ++q)
        std::copy_n(start.data(), width, sums.data() + q * width);
      kernel.add_runs(r.runs.data(), runs, packed.data() + first * taps, seen.data(), sums.data());
      transpose(sums.data(), width, y_volume, many, y + plane * y_volume, y_volume);
    }
  });
}

// The gradient of the weights: r's taps are the outputs' places, its outputs the taps.
template <class T>
void correlate_channels(const ChannelRuns& r, int64_t batch, int64_t channels, const T* x,
                        int64_t x_volume, const T* gy, int64_t y_volume, T* gw, int64_t taps) {
  const auto& kernel = correlate_loops<T>();
  const auto runs = static_cast<int64_t>(r.runs.size());
  const int64_t width = kernel.channels, blocks = ceil_div(channels, width), size = width * taps;
  // Runs of images have sums of their own, which are then added in order.
  const int64_t run = ceil_div(batch, std::clamp<int64_t>(kTasks / blocks, 1, batch));
  const int64_t parts = ceil_div(batch, run);
  Scratch<T> sums(parts * blocks * size);
  parallel_for(parts * blocks, 1, [&](int64_t begin, int64_t end) {
    Scratch<T> seen(x_volume * width), grads(y_volume * width);
    for (int64_t i = begin; i < end; ++i) {
      const int64_t first = i % blocks * width, many = std::min(width, channels - first);
      T* to = sums.data() + i * size;
      std::fill_n(to, size, T(0));
      for (int64_t n = i / blocks * run; n < std::min((i / blocks + 1) * run, batch); ++n) {
        const int64_t plane = n * channels + first;
        lay_planes(x + plane * x_volume, many, x_volume, width, seen.data());
        lay_planes(gy + plane * y_volume, many, y_volume, width, grads.data());
        kernel.add_runs(r.runs.data(), runs, grads.data(), seen.data(), to);
      }
    }
  });
  if (parts > 1) add_parts(sums.data(), parts, blocks * size, sums.data());
  for (int64_t b = 0; b < blocks; ++b) {
    transpose(sums.data() + b * size, width, taps, std::min(width, channels - b * width),
              gw + b * width * taps, taps);
  }
}

// Whether channels side by side are the faster way: the time that a plane takes so, in products of
// registers, and the time it takes in its rows.
template <class T>
bool prefers_channels(const ConvShape& s, int64_t reached, double other,
                      int64_t near = kNearPlanes) {
  const int64_t channels = s.in_channels, width = correlate_loops<T>().channels;
  const double padded =
      static_cast<double>(round_up(channels, width)) / static_cast<double>(channels);
  const auto lanes = static_cast<double>(loops<T>().cols / 2);
  const int64_t places = volume(s, s.in) + volume(s, s.out);
  const double waiting = places * width > near ? 1.7 : 1;  // for a further cache
  const auto products = static_cast<double>(reached);
  return padded * (2 * waiting * products / lanes + static_cast<double>(places)) < other;
}

bool channels_possible(const ConvShape& s) {
  const int64_t inputs = volume(s, s.in), outputs = volume(s, s.out), taps = volume(s, s.kernel);
  return s.groups == s.in_channels && s.groups == s.out_channels && taps > 1 && inputs > 0 &&
         outputs > 0 && std::max(inputs, outputs) <= kMostPlaces && outputs * taps <= kMostRuns;
}

// A plane in its rows: in strips (see simd/strips.h), of which steps of 2 sort the rows or, for the
// gradient of the input, take each remainder apart.
double strips_cost(const Problem& p, int64_t lanes, bool steps, bool apart) {
  const int64_t blocks = ceil_div(p.h.out, lanes), some = ceil_div(p.h.out, blocks);
  const int64_t rows = std::min(round_up(some, 7), round_up(some, 8));
  const double read = real(p.h.in * p.w.in), start = apart ? 850 : steps ? 230 : 190;
  const double work = real(p.taps() * blocks * rows * ceil_div(p.w.out, lanes));
  return start + (steps ? .85 : .72) * work + (steps && !apart ? .5 : .3) * read;
}
// ... or row by row, element by element where steps are longer.
double rows_cost(const Problem& p, int64_t steps, int64_t lanes, bool apart = false) {
  const int64_t rows = p.d.out * p.h.out, taps = p.taps();
  if (p.d.taps.size() == 1 && p.d.out == 1 && p.h.out >= 4 && 2 * p.w.out >= lanes && steps <= 2 &&
      p.h.step <= 2)
    return strips_cost(p, lanes, steps == 2, apart);
  if (steps == 2)
    return 400 + real(2 * taps * rows * ceil_div(p.w.out, lanes)) +
           .6 * real(p.d.in * p.h.in * p.w.in);
  if (steps > 2) return real(rows * taps * (p.w.out + 18));
  const bool joined = p.w.out < lanes && p.d.out == 1;
  const int64_t registers =
      joined ? ceil_div(rows * p.width(), lanes) : rows * ceil_div(p.w.out, lanes);
  return real(250 + 2 * taps * registers);
}

}  // namespace

template <class T>
bool channels_forward(const ConvShape& s, const T* x, const T* w, const T* bias, T* y) {
  if (!channels_possible(s)) return false;
  const Problem p = forward_problem(s);
  const double other = rows_cost(p, s.stride[s.spatial - 1], loops<T>().cols / 2);
  if (!prefers_channels<T>(s, Reached(p).taps, other)) return false;
  const Operand<T> weights = operand(s, w, s.groups, p.taps(), 0, s.kernel);
  ChannelRuns runs;
  runs.add(p, weights.size);
  convolve_channels<T>(runs, s.batch, x, volume(s, s.in), weights, bias, y, volume(s, s.out));
  return true;
}

template <class T> bool channels_grad_input(const ConvShape& s, const T* gy, const T* w, T* gx) {
  if (!channels_possible(s)) return false;
  const Operand<T> weights = operand(s, w, s.groups, volume(s, s.kernel), 0, s.kernel);
  bool steps = false;
  for (int d = 0; d < s.spatial; ++d) steps |= s.stride[d] != 1;
  const int64_t lanes = loops<T>().cols / 2, many = s.stride[s.spatial - 1] == 2 ? 2 : 3;
  double other = steps ? rows_cost(forward_problem(s), many, lanes, true) : 0;
  int64_t reached = 0;
  each_remainder(s, [&](const Problem& p) {
    reached += Reached(p).taps;
    if (!steps) other = rows_cost(p, 1, lanes);
  });
  if (!prefers_channels<T>(s, reached, other)) return false;
  ChannelRuns runs;
  each_remainder(s, [&](const Problem& p) { runs.add(p, weights.size); });
  convolve_channels<T>(runs, s.batch, gy, volume(s, s.out), weights, nullptr, gx, volume(s, s.in));
  return true;
}

template <class T>
bool channels_grad_weight(const ConvShape& s, const T* x, const T* gy, T* gw, bool strips) {
  if (!channels_possible(s)) return false;
  const Problem p = forward_problem(s), swapped = swapped_problem(s);
  const int64_t taps = p.taps(), lanes = loops<T>().cols / 2;
  const int64_t registers = p.d.out * p.h.out * ceil_div(p.w.out, lanes), read = volume(s, s.in);
  double other = 600 + 1.5 * real(read) + 2.5 * real(round_up(taps, 3) * registers);
  if (strips) other = 250 + .5 * real(read) + real(taps) * (18 + .85 * real(registers));
  if (!prefers_channels<T>(s, Reached(p).taps, other, kNearBoth)) return false;
  ChannelRuns runs;
  runs.add(swapped, operand<T>(s, nullptr, 0, 0, 0, s.out).size);
  correlate_channels<T>(runs, s.batch, s.groups, x, volume(s, s.in), gy, volume(s, s.out), gw,
                        taps);
  return true;
}

#define TAEDA_ACROSS(T)                                                                  \
  template bool across_forward<T>(const ConvShape&, const T*, const T*, const T*, T*);   \
  template bool across_grad_input<T>(const ConvShape&, const T*, const T*, T*);          \
  template bool across_grad_weight<T>(const ConvShape&, const T*, const T*, T*, double); \
  template bool channels_forward<T>(const ConvShape&, const T*, const T*, const T*, T*); \
  template bool channels_grad_input<T>(const ConvShape&, const T*, const T*, T*);        \
  template bool channels_grad_weight<T>(const ConvShape&, const T*, const T*, T*, bool);
TAEDA_ACROSS(float)
TAEDA_ACROSS(double)

}  // namespace taeda::cpu
