// Depthwise convolution with channels across the registers: planes of a block of channels are
// transposed to [position][channel], and an output is a sum over the taps that fall inside of the
// input, whatever the strides, dilation and row lengths. Channels do not meet, so there is no
// product of matrices to share. Activations in channels_last are used where they are.
//
// Along each dimension input = output * stride - padding + tap * dilation. The three passes sum
// over the same triples: by output, by input, or by tap.
#include <algorithm>
#include <iterator>
#include <vector>

#include "base/cpu_features.h"
#include "base/thread_pool.h"
#include "kernels/cpu/common/partial_sums.h"
#include "kernels/cpu/common/scratch.h"
#include "kernels/cpu/conv/conv_nhwc_tiles.h"
#include "kernels/cpu/conv/simd/depthwise.h"

namespace taeda::cpu {
namespace {

using nhwc::Range;

constexpr int64_t kChunk = 1 << 14;   // elements worth a chunk
constexpr int64_t kRuns = 8;          // of images, whose gradients of the weights are summed apart
constexpr int64_t kCached = 1 << 16;  // elements of a block that a cache holds
constexpr double kUncached = 1.7;     // relative time of an FMA where it does not
constexpr double kLoads = 2;          // and of one whose operands both are loaded

template <class T> const simd::DepthwiseLoops<T>& loops() {
  return typed<T>(TAEDA_PICK(depthwise_kernels));
}

// The pairs of one dimension: by results, with the two operands' indices times their strides.
// Positions of activations are `step` apart, taps `width`. Of the gradient of the weights, only the
// outputs [begin, end) count.
struct PairList {
  std::vector<int64_t> first{0}, a, b;

  PairList(const ConvShape& w, int d, ConvPass pass, int64_t step, int64_t width, int64_t begin,
           int64_t end) {
    const bool by_tap = pass == ConvPass::grad_weight, by_input = pass == ConvPass::grad_input;
    const int64_t in = w.in[d], out = w.out[d], taps = w.kernel[d];
    int64_t a_stride = by_tap ? step : width, b_stride = step;
    for (int i = d + 1; i < 3; ++i) {
      a_stride *= by_tap ? w.out[i] : w.kernel[i];
      b_stride *= by_input ? w.out[i] : w.in[i];
    }
    for (int64_t r = 0; r < (by_tap ? taps : by_input ? in : out); ++r) {
      for (int64_t t = by_tap ? begin : 0; t < (by_tap ? end : taps); ++t) {
        const int64_t tap = by_tap ? r : t;
        const int64_t shift = tap * w.dilation[d] - w.padding[d];
        int64_t o = by_tap ? t : r;
        if (by_input) {
          if (r < shift || (r - shift) % w.stride[d] != 0) continue;
          o = (r - shift) / w.stride[d];
          if (o >= out) continue;
        }
        const int64_t i = o * w.stride[d] + shift;
        if (i < 0 || i >= in) continue;
        a.push_back((by_tap ? o : tap) * a_stride);
        b.push_back((by_input ? o : i) * b_stride);
      }
      first.push_back(size());
    }
  }
  simd::Pairs pairs() const { return {std::ssize(first) - 1, first.data(), a.data(), b.data()}; }
  int64_t size() const { return std::ssize(a); }
};

// Runs of results along w that share what a is.
std::vector<simd::PairRun> runs_of(const PairList& w, const ConvShape& s, ConvPass pass,
                                   int64_t step, int64_t width) {
  std::vector<simd::PairRun> runs;
  const simd::Pairs all = w.pairs();
  if (pass == ConvPass::grad_weight) {
    // The outputs that read every tap inside of the input, and of each tap those before and after.
    const int64_t room = s.in[2] - 1 + s.padding[2] - (s.kernel[2] - 1) * s.dilation[2];
    const int64_t low = ceil_div(s.padding[2], s.stride[2]) * step;
    const int64_t high = room < 0 ? 0 : (room / s.stride[2] + 1) * step;
    for (int64_t r = 0; r < all.results; ++r) {
      const int64_t *begin = all.a + all.first[r], *end = all.a + all.first[r + 1];
      const int64_t from = std::lower_bound(begin, end, low) - all.a;
      const int64_t until = std::max(from, std::lower_bound(begin, end, high) - all.a);
      if (r == 0) runs.push_back({0, width, all.results, from, until, s.dilation[2] * step});
      runs.push_back({r * width, 0, 1, all.first[r], from, 0});
      runs.push_back({r * width, 0, 1, until, all.first[r + 1], 0});
    }
    std::erase_if(runs, [](const simd::PairRun& run) { return run.first == run.last; });
    return runs;
  }
  const bool forward = pass == ConvPass::forward;
  const int64_t apart = forward ? 1 : s.stride[2], b_step = forward ? s.stride[2] * step : step;
  for (int64_t phase = 0; phase < std::min(apart, all.results); ++phase) {
    for (int64_t r = phase; r < all.results; r += apart) {
      const int64_t from = all.first[r], until = all.first[r + 1];
      if (r > phase && std::equal(all.a + from, all.a + until, all.a + runs.back().first,
                                  all.a + runs.back().last))
        ++runs.back().results;
      else runs.push_back({r * step, apart * step, 1, from, until, b_step});
    }
  }
  return runs;
}

// Of all three dimensions; a: weights, or the outputs' gradients; b: what they are multiplied by.
struct AllPairs {
  PairList d, h, w;
  std::vector<simd::PairRun> runs;

  AllPairs(const ConvShape& s, ConvPass pass, int64_t step, int64_t width, Range planes, Range rows)
      : d(s, 0, pass, step, width, planes.first, planes.last),
        h(s, 1, pass, step, width, rows.first, rows.last),
        w(s, 2, pass, step, width, 0, s.out[2]),
        runs(runs_of(w, s, pass, step, width)) {}
  simd::PairSums sums(int64_t y_step) const {
    return {d.pairs(),   h.pairs(),        w.pairs(),
            runs.data(), std::ssize(runs), w.pairs().results * y_step};
  }
};

// Blocks of channels side by side; of channels_last, the last one ends where the channels do.
struct Blocks {
  int64_t channels, width;
  bool last;
  int64_t many = ceil_div(channels, width), step = last ? channels : width;

  int64_t first(int64_t i) const {
    return last ? std::min(i * width, channels - width) : i * width;
  }
  int64_t count(int64_t i) const { return std::min(width, channels - first(i)); }
  // Rows of so many positions that are worked on at once.
  int64_t together(int64_t positions) const {
    return std::max<int64_t>(1, kChunk / std::max<int64_t>(1, channels * positions));
  }
};

// Planes of `count` channels to [position][channel], with zeros for channels up to `width`.
template <class T>
void to_nhwc(const T* x, int64_t count, int64_t positions, int64_t width, T* to) {
  if (count < width) std::fill_n(to, positions * width, T(0));
  transpose(x, positions, count, positions, to, width);
}

}  // namespace

template <class T, ConvPass Pass>
bool nhwc::depthwise(const ConvShape& s, const T* x, const T* w, const T* bias, T* y) {
  const bool forward = Pass == ConvPass::forward;
  Sizes from = forward ? s.in : s.out, to = forward ? s.out : s.in;
  const int64_t x_volume = volume(from), y_volume = volume(to), rows = to[0] * to[1];
  const int64_t taps = volume(s.kernel), channels = s.groups, width = loops<T>().channels;
  const Blocks blocks{channels, width, s.channels_last};
  const AllPairs all(s, Pass, blocks.step, width, {0, 0}, {0, 0});
  const Scratch<T> packed(blocks.many * width * taps), starts(blocks.many * width);
  std::fill_n(starts.data(), blocks.many * width, T(0));
  for (int64_t i = 0; i < blocks.many; ++i) {
    const int64_t first = blocks.first(i), count = blocks.count(i);
    to_nhwc(w + first * taps, count, taps, width, packed.data() + i * width * taps);
    if (bias) std::copy_n(bias + first, count, starts.data() + i * width);
  }
  const auto sum = [&](int64_t block, int64_t begin, int64_t end, const T* seen, T* sums) {
    loops<T>().sum_pairs(all.sums(blocks.step), begin, end, packed.data() + block * width * taps,
                         seen, starts.data() + block * width, sums);
  };
  if (s.channels_last) {
    const int64_t together = blocks.together(to[2]), each = ceil_div(rows, together);
    const int64_t x_row = x_volume * channels / rows, y_row = to[2] * channels;  // read for a row
    // Blocks take a part of each position: what no near cache holds is prefetched in its order.
    constexpr int64_t line = 64 / sizeof(T);
    const bool far = s.batch * channels * (x_volume + y_volume) > caches().l2;
    parallel_each(s.batch * each, 1, [&](int64_t i) {
      const int64_t begin = i % each * together, end = std::min(rows, begin + together);
      const T* image = x + i / each * x_volume * channels;
      T* const result = y + i / each * y_volume * channels;
      const int64_t read = far ? std::min(x_volume * channels, (end + s.kernel[1]) * x_row) : 0;
      for (int64_t k = begin * x_row; k < read; k += line) __builtin_prefetch(image + k, 0, 2);
      for (int64_t k = begin * y_row; far && k < end * y_row; k += line)
        __builtin_prefetch(result + k, 1, 2);
      for (int64_t k = 0; k < blocks.many; ++k)
        sum(k, begin, end, image + blocks.first(k), result + blocks.first(k));
    });
    return true;
  }
  const int64_t grain = std::max<int64_t>(1, kChunk / (width * (x_volume + y_volume)));
  parallel_for(s.batch * blocks.many, grain, [&](int64_t begin, int64_t end) {
    const Scratch<T> seen(x_volume * width), sums(y_volume * width);
    for (int64_t i = begin; i < end; ++i) {
      const int64_t block = i % blocks.many, count = blocks.count(block);
      const int64_t plane = i / blocks.many * channels + blocks.first(block);
      to_nhwc(x + plane * x_volume, count, x_volume, width, seen.data());
      sum(block, 0, rows, seen.data(), sums.data());
      transpose(sums.data(), width, y_volume, count, y + plane * y_volume, y_volume);
    }
  });
  return true;
}

template <class T>
bool nhwc::depthwise_grad_weight(const ConvShape& s, const T* x, const T* gy, T* gw) {
  const int64_t in = volume(s.in), out = volume(s.out), taps = volume(s.kernel);
  const int64_t channels = s.groups, width = loops<T>().channels, size = width * taps;
  const Blocks blocks{channels, width, s.channels_last};
  // Of channels_last, images are cut, and a task takes all channels.
  std::vector<AllPairs> cuts;
  const int64_t planes = blocks.last ? 1 : s.out[0];
  const int64_t rows = blocks.last ? blocks.together(s.out[2]) : s.out[1];
  for (int64_t d = 0; d < s.out[0]; d += planes) {
    for (int64_t h = 0; h < s.out[1]; h += rows) {
      cuts.emplace_back(s, ConvPass::grad_weight, blocks.step, width, Range{d, d + planes},
                        Range{h, std::min(h + rows, s.out[1])});
    }
  }
  // Runs of them have sums of their own, which are then added in order.
  const int64_t shares = blocks.last ? 1 : blocks.many, each = std::ssize(cuts);
  const int64_t all = s.batch * each, total = blocks.many * size;
  const int64_t run = ceil_div(all, std::clamp<int64_t>(kRuns / shares, 1, all));
  const int64_t runs = ceil_div(all, run);
  const Scratch<T> sums(runs * total);
  std::fill_n(sums.data(), runs * total, T(0));
  parallel_for(runs * shares, 1, [&](int64_t begin, int64_t end) {
    const Scratch<T> seen(blocks.last ? 0 : in * width), grads(blocks.last ? 0 : out * width);
    for (int64_t i = begin; i < end; ++i) {
      const int64_t first = i / shares * run;
      for (int64_t k = first; k < std::min(first + run, all); ++k) {
        for (int64_t block = i % shares; block < blocks.many; block += shares) {
          const int64_t channel = blocks.first(block), image = k / each * channels;
          const T *from = x + image * in + channel, *g = gy + image * out + channel;
          if (!blocks.last) {
            const int64_t plane = image + channel, count = blocks.count(block);
            to_nhwc(x + plane * in, count, in, width, seen.data());
            to_nhwc(gy + plane * out, count, out, width, grads.data());
            from = seen.data();
            g = grads.data();
          }
          loops<T>().sum_pairs(cuts[static_cast<size_t>(k % each)].sums(width), 0,
                               s.kernel[0] * s.kernel[1], g, from, nullptr,
                               sums.data() + i / shares * total + block * size);
        }
      }
    }
  });
  if (runs > 1) add_parts(sums.data(), runs, total, sums.data());
  for (int64_t b = 0; b < blocks.many; ++b) {
    transpose(sums.data() + b * size, width, taps, blocks.count(b), gw + blocks.first(b) * taps,
              taps);
  }
  return true;
}

template <class T> bool nhwc::supports_depthwise(const ConvShape& s) {
  return !s.channels_last || s.groups >= loops<T>().channels;
}

template <class T> ConvWork nhwc::depthwise_work(const ConvShape& s) {
  const int64_t width = loops<T>().channels, planes = round_up(s.groups, width);
  const int64_t positions = volume(s.in) + volume(s.out);
  const double waiting = positions * width > kCached ? kUncached : 1;
  double fma = real(s.batch * planes) * waiting * kLoads / real(loops<T>().lanes);
  for (int d = 0; d < 3; ++d)  // taps inside of the input
    fma *= real(PairList(s, d, ConvPass::grad_weight, 1, 1, 0, s.out[d]).size());
  ConvWork w;
  w.fma = fma;
  w.moved = s.channels_last ? 0 : real(s.batch * planes) * real(positions);
  w.packed = real(planes * volume(s.kernel));
  w.calls = real(s.batch * (planes / width)) * real(s.in[0] * s.in[1] + s.out[0] * s.out[1]);
  return w;
}

#define TAEDA_NHWC_DEPTHWISE(T)                                                                \
  template bool nhwc::depthwise<T, ConvPass::forward>(const ConvShape&, const T*, const T*,    \
                                                      const T*, T*);                           \
  template bool nhwc::depthwise<T, ConvPass::grad_input>(const ConvShape&, const T*, const T*, \
                                                         const T*, T*);                        \
  template bool nhwc::depthwise_grad_weight<T>(const ConvShape&, const T*, const T*, T*);      \
  template bool nhwc::supports_depthwise<T>(const ConvShape&);                                 \
  template ConvWork nhwc::depthwise_work<T>(const ConvShape&);
TAEDA_NHWC_DEPTHWISE(float)
TAEDA_NHWC_DEPTHWISE(double)

}  // namespace taeda::cpu
