// Convolution where every output channel reads one input channel: depthwise, or from images of one
// channel. Each output plane is computed by itself from its input plane with zeros around it;
// neighbours of a row lie across the registers.
#include <algorithm>

#include "base/thread_pool.h"
#include "kernels/cpu/common/partial_sums.h"
#include "kernels/cpu/common/scratch.h"
#include "kernels/cpu/conv/algorithm.h"
#include "kernels/cpu/conv/geometry.h"
#include "kernels/cpu/conv/simd/depthwise.h"

namespace taeda::cpu {
namespace {

constexpr int64_t kLeastWork = 1 << 16;  // multiplications worth a chunk
constexpr int64_t kMostWork = 1 << 20, kTasks = 64;
constexpr int64_t kSummed = 1 << 11;  // registers whose lanes are added up, worth a thread

template <class T> const simd::PlaneLoops<T>& loops() {
  return typed<T>(TAEDA_PICK(plane_kernels));
}

struct Planes {
  simd::Window window;
  int64_t in_volume, out_volume, taps;
  int64_t outputs;  // channels of each input channel

  explicit Planes(const ConvShape& s)
      : window(window_of(s)),
        in_volume(volume(s, s.in)),
        out_volume(volume(s, s.out)),
        taps(volume(s, s.kernel)),
        outputs(s.out_channels / s.groups) {}

  int64_t grain(int64_t planes) const {
    const int64_t each = std::max<int64_t>(1, taps * out_volume);
    return std::max<int64_t>({1, kLeastWork / each, std::min(planes / kTasks, kMostWork / each)});
  }
};

template <class T> bool forward(const ConvShape& s, const T* x, const T* w, const T* bias, T* y) {
  const Planes p(s);
  const int64_t planes = s.batch * s.out_channels;
  parallel_for(planes, p.grain(planes), [&](int64_t begin, int64_t end) {
    Scratch<T> memory(loops<T>().memory(p.window));
    for (int64_t i = begin; i < end; ++i) {
      const int64_t channel = i % s.out_channels;
      loops<T>().forward(p.window, x + i / p.outputs * p.in_volume, w + channel * p.taps,
                         bias ? bias[channel] : T(0), memory.data(), i == begin,
                         y + i * p.out_volume);
    }
  });
  return true;
}

template <class T> bool grad_input(const ConvShape& s, const T* gy, const T* w, const T*, T* gx) {
  const Planes p(s);
  const int64_t planes = s.batch * s.in_channels;
  const int64_t grain = std::max<int64_t>(1, p.grain(planes * p.outputs) / p.outputs);
  parallel_for(planes, grain, [&](int64_t begin, int64_t end) {
    Scratch<T> memory(loops<T>().memory(p.window));
    Scratch<T> other(p.outputs > 1 ? p.in_volume : 0);
    for (int64_t i = begin; i < end; ++i) {
      T* to = gx + i * p.in_volume;
      for (int64_t c = 0; c < p.outputs; ++c) {
        const int64_t plane = i * p.outputs + c;
        loops<T>().grad_input(p.window, gy + plane * p.out_volume,
                              w + plane % s.out_channels * p.taps, memory.data(),
                              i == begin && c == 0, c == 0 ? to : other.data());
        for (int64_t j = 0; c > 0 && j < p.in_volume; ++j) to[j] += other.data()[j];
      }
    }
  });
  return true;
}

template <class T> bool grad_weight(const ConvShape& s, const T* x, const T* gy, const T*, T* gw) {
  const Planes p(s);
  const int64_t channels = s.out_channels, lanes = loops<T>().lanes, size = p.taps * lanes;
  // Runs of images have sums of their own, which are then added in order.
  const int64_t run = ceil_div(s.batch, std::clamp<int64_t>(8 / channels, 1, s.batch));
  const int64_t runs = ceil_div(s.batch, run);
  Scratch<T> sums(channels * runs * size);
  const int64_t grain = ceil_div(p.grain(s.batch * channels), run);
  parallel_for(channels * runs, grain, [&](int64_t begin, int64_t end) {
    Scratch<T> memory(loops<T>().memory(p.window));
    for (int64_t i = begin; i < end; ++i) {
      T* to = sums.data() + i * size;
      std::fill_n(to, size, T(0));
      const int64_t first = i % runs * run;
      for (int64_t n = first; n < std::min(first + run, s.batch); ++n) {
        const int64_t plane = n * channels + i / runs;
        loops<T>().grad_weight(p.window, x + plane / p.outputs * p.in_volume,
                               gy + plane * p.out_volume, memory.data(), i == begin && n == first,
                               to);
      }
    }
  });
  const int64_t each = runs * p.taps;
  parallel_for(channels, std::max<int64_t>(1, kSummed / each), [&](int64_t begin, int64_t end) {
    Scratch<T> added((end - begin) * each);
    add_lanes(sums.data() + begin * each * lanes, (end - begin) * each, lanes, added.data());
    for (int64_t channel = begin; channel < end; ++channel)
      add_parts(added.data() + (channel - begin) * each, runs, p.taps, gw + channel * p.taps);
  });
  return true;
}

// ---- estimates ----

constexpr int64_t kMostTaps = 1024;  // as many as the loops have memory for

bool supports(const ConvShape& s) {
  const int64_t taps = volume(s, s.kernel);
  return s.groups == s.in_channels && taps > 1 && taps <= kMostTaps;
}

template <class T> ConvWork work(const ConvShape& s) {
  const simd::Window w = window_of(s);
  const int64_t lanes = loops<T>().lanes, rows = w.out[0] * w.out[1];
  const double planes = real(s.batch * s.out_channels), taps = real(volume(s, s.kernel));
  // A register of outputs takes an FMA for each tap, and a load for each column of taps that read
  // rows after one another.
  const bool tall = w.dilation[1] == 1 && w.stride[1] <= 2 && rows > 1;
  const double loads = tall ? 2 / real(w.kernel[1]) : 1;
  // Rows of outputs in steps of the height of a strip.
  const double registers = real(round_up(rows, 4) * ceil_div(w.out[2], lanes));
  return {planes * taps * (1 + loads) * registers,
          planes * real(volume(s, s.in) + volume(s, s.out)) * (w.stride[2] > 2 ? 4 : 1),
          planes * taps, planes * real(w.stride[0] * w.stride[1] * w.stride[2])};
}

template <class T>
constexpr ConvAlgorithms<T> depthwise = {{{"depthwise", supports, work<T>, forward<T>},
                                          {"depthwise", supports, work<T>, grad_input<T>},
                                          {"depthwise", supports, work<T>, grad_weight<T>}}};

}  // namespace

extern constinit const ConvAlgorithms<float> depthwise_f32 = depthwise<float>;
extern constinit const ConvAlgorithms<double> depthwise_f64 = depthwise<double>;

}  // namespace taeda::cpu
