// Depthwise convolution with channels across the registers: planes of a block of channels are
// transposed to [position][channel], and an output is a sum over the taps that fall inside of the
// input, whatever the strides, dilation and row lengths. Channels do not meet, so there is no
// product of matrices to share.
//
// Along each dimension input = output * stride - padding + tap * dilation. The three passes sum
// over the same triples: by output, by input, or by tap.
#include <algorithm>
#include <vector>

#include "base/thread_pool.h"
#include "kernels/cpu/common/partial_sums.h"
#include "kernels/cpu/common/scratch.h"
#include "kernels/cpu/conv/conv_nhwc_tiles.h"
#include "kernels/cpu/conv/simd/depthwise.h"

namespace taeda::cpu {
namespace {

constexpr int64_t kChunk = 1 << 14;   // elements worth a chunk
constexpr int64_t kRuns = 8;          // of images, whose gradients of the weights are summed apart
constexpr int64_t kCached = 1 << 16;  // elements of a block that a cache holds
constexpr double kUncached = 1.7;     // relative time of an FMA where it does not
constexpr double kLoads = 3;          // and of one whose operands both are loaded

template <class T> const simd::DepthwiseLoops<T>& loops() {
  return typed<T>(TAEDA_PICK(depthwise_kernels));
}

// The pairs of one dimension: by results, with the two operands' indices times their strides.
struct PairList {
  std::vector<int64_t> first, a, b;

  PairList(const ConvShape& w, int d, ConvPass pass, int64_t a_stride, int64_t b_stride) {
    const int64_t in = w.in[d], out = w.out[d], taps = w.kernel[d];
    const int64_t results = pass == ConvPass::forward      ? out
                            : pass == ConvPass::grad_input ? in
                                                           : taps;
    const int64_t terms = pass == ConvPass::grad_weight ? out : taps;
    first.push_back(0);
    for (int64_t r = 0; r < results; ++r) {
      for (int64_t t = 0; t < terms; ++t) {
        const int64_t tap = pass == ConvPass::grad_weight ? r : t;
        const int64_t shift = tap * w.dilation[d] - w.padding[d];
        int64_t o = pass == ConvPass::grad_weight ? t : r;
        if (pass == ConvPass::grad_input) {
          if (r < shift || (r - shift) % w.stride[d] != 0) continue;
          o = (r - shift) / w.stride[d];
          if (o >= out) continue;
        }
        const int64_t i = o * w.stride[d] + shift;
        if (i < 0 || i >= in) continue;
        a.push_back((pass == ConvPass::grad_weight ? o : tap) * a_stride);
        b.push_back((pass == ConvPass::grad_input ? o : i) * b_stride);
      }
      first.push_back(static_cast<int64_t>(a.size()));
    }
  }
  simd::Pairs pairs() const {
    return {static_cast<int64_t>(first.size()) - 1, first.data(), a.data(), b.data()};
  }
  int64_t size() const { return first.back(); }
};

// Of all three dimensions; a: weights, or the outputs' gradients; b: what they are multiplied by.
struct AllPairs {
  PairList d, h, w;
  simd::Pairs pairs[3];

  AllPairs(const ConvShape& s, ConvPass pass, Sizes a, Sizes b, int64_t channels)
      : d(s, 0, pass, a[1] * a[2] * channels, b[1] * b[2] * channels),
        h(s, 1, pass, a[2] * channels, b[2] * channels),
        w(s, 2, pass, channels, channels),
        pairs{d.pairs(), h.pairs(), w.pairs()} {}
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
  const int64_t x_volume = volume(Pass == ConvPass::forward ? s.in : s.out);
  const int64_t y_volume = volume(Pass == ConvPass::forward ? s.out : s.in);
  const int64_t taps = volume(s.kernel), channels = s.groups, width = loops<T>().channels;
  const int64_t blocks = ceil_div(channels, width);
  const AllPairs all(s, Pass, s.kernel, Pass == ConvPass::forward ? s.in : s.out, width);
  Scratch<T> packed(blocks * width * taps);
  for (int64_t first = 0; first < channels; first += width) {
    to_nhwc(w + first * taps, std::min(width, channels - first), taps, width,
            packed.data() + first * taps);
  }
  const int64_t grain = std::max<int64_t>(1, kChunk / (width * (x_volume + y_volume)));
  parallel_for(s.batch * blocks, grain, [&](int64_t begin, int64_t end) {
    Scratch<T> seen(x_volume * width), sums(y_volume * width), start(width);
    for (int64_t i = begin; i < end; ++i) {
      const int64_t first = i % blocks * width, plane = i / blocks * channels + first;
      const int64_t count = std::min(width, channels - first);
      to_nhwc(x + plane * x_volume, count, x_volume, width, seen.data());
      std::fill_n(start.data(), width, T(0));
      if (bias) std::copy_n(bias + first, count, start.data());
      for (int64_t q = 0; q < y_volume; ++q)
        std::copy_n(start.data(), width, sums.data() + q * width);
      loops<T>().sum_pairs(all.pairs, packed.data() + first * taps, seen.data(), sums.data());
      transpose(sums.data(), width, y_volume, count, y + plane * y_volume, y_volume);
    }
  });
  return true;
}

template <class T>
bool nhwc::depthwise_grad_weight(const ConvShape& s, const T* x, const T* gy, T* gw) {
  const int64_t in = volume(s.in), out = volume(s.out), taps = volume(s.kernel);
  const int64_t channels = s.groups, width = loops<T>().channels;
  const int64_t blocks = ceil_div(channels, width), size = width * taps;
  const AllPairs all(s, ConvPass::grad_weight, s.out, s.in, width);
  // Runs of images have sums of their own, which are then added in order.
  const int64_t run = ceil_div(s.batch, std::clamp<int64_t>(kRuns / blocks, 1, s.batch));
  const int64_t runs = ceil_div(s.batch, run);
  Scratch<T> sums(runs * blocks * size);
  parallel_for(runs * blocks, 1, [&](int64_t begin, int64_t end) {
    Scratch<T> seen(in * width), grads(out * width);
    for (int64_t i = begin; i < end; ++i) {
      const int64_t first = i % blocks * width, count = std::min(width, channels - first);
      T* to = sums.data() + i * size;
      std::fill_n(to, size, T(0));
      for (int64_t n = i / blocks * run; n < std::min((i / blocks + 1) * run, s.batch); ++n) {
        const int64_t plane = n * channels + first;
        to_nhwc(x + plane * in, count, in, width, seen.data());
        to_nhwc(gy + plane * out, count, out, width, grads.data());
        loops<T>().sum_pairs(all.pairs, grads.data(), seen.data(), to);
      }
    }
  });
  if (runs > 1) add_parts(sums.data(), runs, blocks * size, sums.data());
  for (int64_t b = 0; b < blocks; ++b) {
    transpose(sums.data() + b * size, width, taps, std::min(width, channels - b * width),
              gw + b * width * taps, taps);
  }
  return true;
}

template <class T> ConvWork nhwc::depthwise_work(const ConvShape& s) {
  const int64_t width = loops<T>().channels, planes = round_up(s.groups, width);
  const int64_t positions = volume(s.in) + volume(s.out);
  const double waiting = positions * width > kCached ? kUncached : 1;
  const AllPairs pairs(s, ConvPass::grad_weight, s.out, s.in, width);
  const double taps_inside = real(pairs.d.size()) * real(pairs.h.size()) * real(pairs.w.size());
  ConvWork w;
  w.fma = real(s.batch * planes) * taps_inside * waiting * kLoads / real(loops<T>().lanes);
  w.moved = real(s.batch * planes) * real(positions);
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
  template ConvWork nhwc::depthwise_work<T>(const ConvShape&);
TAEDA_NHWC_DEPTHWISE(float)
TAEDA_NHWC_DEPTHWISE(double)

}  // namespace taeda::cpu
