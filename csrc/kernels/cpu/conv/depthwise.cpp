// Convolution where every output channel reads one input channel: depthwise, or from images of one
// channel. Each output plane is computed by itself from its input plane with zeros around it;
// neighbours of a row lie across the registers. Where planes are too small for that, NHWC
// (conv_nhwc_depthwise.cpp) takes its place.
#include <algorithm>
#include <vector>

#include "base/thread_pool.h"
#include "kernels/cpu/common/partial_sums.h"
#include "kernels/cpu/common/scratch.h"
#include "kernels/cpu/conv/algorithm.h"
#include "kernels/cpu/conv/simd/depthwise.h"

namespace taeda::cpu {
namespace {

constexpr int64_t kLeastWork = 1 << 16;  // multiplications worth a chunk
constexpr int64_t kMostWork = 1 << 20, kTasks = 64;
constexpr int64_t kRuns = 8;          // of images, whose gradients of the weights are summed apart
constexpr int64_t kSummed = 1 << 11;  // registers whose lanes are added up, worth a thread

template <class T> const simd::DepthwiseLoops<T>& loops() {
  return typed<T>(TAEDA_PICK(depthwise_kernels));
}

int64_t grain(const ConvShape& s, int64_t planes) {
  const int64_t each = std::max<int64_t>(1, volume(s.kernel) * volume(s.out));
  return std::max<int64_t>({1, kLeastWork / each, std::min(planes / kTasks, kMostWork / each)});
}

// What the taps of some problems read, with the zeros that they reach.
simd::PaddedPlane padded_plane(const std::vector<Problem>& problems) {
  simd::PaddedPlane x{};
  for (int d = 0; d < 3; ++d) {
    Extent e;
    for (const Problem& p : problems) {
      const Axis& a = d == 0 ? p.d : d == 1 ? p.h : p.w;
      x.in[d] = a.in;
      if (!a.taps.empty())
        e.cover(a.taps.front().position, (a.out - 1) * a.step + a.taps.back().position + 1);
    }
    x.before[d] = -e.first;
    x.size[d] = e.size;
  }
  x.step = problems[0].w.step;
  x.part = ceil_div(x.size[2], x.step);
  return x;
}

// The taps of a problem, in columns of rows that follow each other if `tall`.
struct Columns {
  std::vector<int64_t> at, weight;
  simd::PlaneTaps taps;
  int64_t y_start;

  // y: sizes of the results. Their columns of one remainder modulo y_step lie side by side.
  Columns(const ConvShape& s, const Problem& p, const simd::PaddedPlane& x, Sizes y, bool tall) {
    const std::vector<Axis::Tap>& h = p.h.taps;
    tall = tall && p.h.step <= 2;
    for (size_t i = 1; i < h.size(); ++i) tall = tall && h[i].position == h[i - 1].position + 1;
    for (const Axis::Tap& d : p.d.taps) {
      for (size_t i = 0; i < (tall ? std::min<size_t>(1, h.size()) : h.size()); ++i) {
        for (const Axis::Tap& w : p.w.taps) {
          const int64_t row = (d.position + x.before[0]) * x.size[1] + h[i].position + x.before[1];
          const int64_t column = w.position + x.before[2];
          at.push_back(row * x.row() + column % x.step * x.part + column / x.step);
          weight.push_back((d.number * s.kernel[1] + h[i].number) * s.kernel[2] + w.number);
        }
      }
    }
    const int64_t part = ceil_div(y[2], p.w.y_step), row = part * p.w.y_step, plane = y[1] * row;
    y_start = p.d.y_start * plane + p.h.y_start * row + p.w.y_start * part;
    taps = {.height = tall ? static_cast<int64_t>(h.size()) : 1,
            .columns = static_cast<int64_t>(at.size()),
            .step = tall ? p.h.step : 1,
            .x_plane = p.d.step * x.size[1] * x.row(),
            .x_row = (tall ? 1 : p.h.step) * x.row(),
            .weight_row = h.size() > 1 ? (h[1].number - h[0].number) * s.kernel[2] : 0,
            .at = at.data(),
            .weight = weight.data(),
            .planes = p.d.out,
            .rows = p.h.out,
            .cols = p.w.out,
            .y_plane = p.d.y_step * plane,
            .y_row = p.h.y_step * row};
  }
};

// y from x and the weights, or gx from gy and the weights.
template <class T, bool Backward>
bool convolve(const ConvShape& s, const T* x, const T* w, const T* bias, T* y) {
  const std::vector<Problem> problems = Backward ? backward_problems(s) : forward_problem(s);
  const simd::PaddedPlane plane = padded_plane(problems);
  Sizes from = Backward ? s.out : s.in, to = Backward ? s.in : s.out;
  std::vector<Columns> columns;
  for (const Problem& p : problems) columns.emplace_back(s, p, plane, to, true);
  // Columns of results that lie apart are put together at the end.
  const int64_t step = problems[0].w.y_step, part = ceil_div(to[2], step), rows = to[0] * to[1];
  const int64_t outputs = s.out_channels / s.groups, terms = Backward ? outputs : 1;
  const int64_t planes = s.batch * (Backward ? s.in_channels : s.out_channels);
  const auto& loop = loops<T>();
  const int64_t y_volume = volume(to);
  parallel_for(planes, grain(s, planes * terms) / terms, [&](int64_t begin, int64_t end) {
    Scratch<T> padded(plane.elements() + loop.beyond), parts(step > 1 ? rows * step * part : 0);
    Scratch<T> other(terms > 1 ? volume(to) : 0);
    for (int64_t i = begin; i < end; ++i) {
      for (int64_t c = 0; c < terms; ++c) {
        const int64_t read = Backward ? i * terms + c : i / outputs;
        const int64_t channel = (Backward ? read : i) % s.out_channels;
        // Neighbouring outputs may read the same plane.
        const bool fresh = i == begin && c == 0;
        if (fresh || Backward || i % outputs == 0)
          loop.pad(plane, x + read * volume(from), fresh, padded.data());
        T* sums = c == 0 ? y + i * y_volume : other.data();
        for (const Columns& k : columns) {
          loop.sum(k.taps, padded.data(), w + channel * volume(s.kernel),
                   bias ? bias[channel] : T(0), (step > 1 ? parts.data() : sums) + k.y_start);
        }
        if (step > 1) loop.join(rows, to[2], step, part, parts.data(), sums);
        T* sum = y + i * y_volume;
        for (int64_t j = 0; c > 0 && j < y_volume; ++j) sum[j] += sums[j];
      }
    }
  });
  return true;
}

template <class T> bool grad_weight(const ConvShape& s, const T* x, const T* gy, const T*, T* gw) {
  const auto& loop = loops<T>();
  const int64_t channels = s.out_channels, outputs = channels / s.groups, lanes = loop.lanes;
  const int64_t taps = volume(s.kernel), size = taps * lanes;
  // The outputs' gradients with zeros to the right, for rows that end inside of a register.
  const int64_t cols = round_up(s.out[2], lanes);
  const simd::PaddedPlane grads{
      {s.out[0], s.out[1], s.out[2]}, {}, {s.out[0], s.out[1], cols}, 1, cols};
  const std::vector<Problem> problem = forward_problem(s);
  const simd::PaddedPlane plane = padded_plane(problem);
  const bool tall = s.kernel[1] == 3 || s.kernel[1] == 5 || s.kernel[1] == 7;
  const Columns columns(s, problem[0], plane, grads.size, tall);
  // Runs of images have sums of their own, which are then added in order.
  const int64_t run = ceil_div(s.batch, std::clamp<int64_t>(kRuns / s.groups, 1, s.batch));
  const int64_t runs = ceil_div(s.batch, run), planes = s.batch * channels;
  Scratch<T> sums(channels * runs * size);
  const int64_t enough = ceil_div(grain(s, planes), run * outputs);
  parallel_for(s.groups * runs, enough, [&](int64_t begin, int64_t end) {
    const int64_t padded = plane.elements() + loop.beyond;
    Scratch<T> memory(padded + grads.elements() + loop.beyond);
    T* wide = memory.data() + padded;
    for (int64_t i = begin; i < end; ++i) {
      const int64_t group = i / runs, first = i % runs * run;
      for (int64_t n = first; n < std::min(first + run, s.batch); ++n) {
        const bool fresh = i == begin && n == first;
        loop.pad(plane, x + (n * s.groups + group) * volume(s.in), fresh, memory.data());
        for (int64_t channel = group * outputs; channel < (group + 1) * outputs; ++channel) {
          const T* g = gy + (n * channels + channel) * volume(s.out);
          if (cols > s.out[2]) loop.pad(grads, g, fresh && channel == group * outputs, wide);
          T* to = sums.data() + (channel * runs + i % runs) * size;
          if (n == first) std::fill_n(to, size, T(0));
          loop.add(columns.taps, memory.data(), cols > s.out[2] ? wide : g, to);
        }
      }
    }
  });
  const int64_t each = runs * taps;
  parallel_for(channels, kSummed / each, [&](int64_t begin, int64_t end) {
    Scratch<T> added((end - begin) * each);
    add_lanes(sums.data() + begin * each * lanes, (end - begin) * each, lanes, added.data());
    for (int64_t channel = begin; channel < end; ++channel)
      add_parts(added.data() + (channel - begin) * each, runs, taps, gw + channel * taps);
  });
  return true;
}

bool supports(const ConvShape& s) {
  return s.groups == s.in_channels && volume(s.kernel) > 1 && !s.channels_last;
}

template <class T, bool Backward> ConvWork work(const ConvShape& s) {
  const int64_t lanes = loops<T>().lanes, rows = s.out[0] * s.out[1];
  const double planes = real(s.batch * s.out_channels), taps = real(volume(s.kernel));
  // A register of outputs takes an FMA for each tap, and a load for each column of taps that read
  // rows after one another.
  const bool tall = s.dilation[1] == 1 && s.stride[1] <= 2 && rows > 1;
  const double loads = tall ? 2 / real(s.kernel[1]) : 1;
  // A plane that several outputs read is padded once, but its gradient is their sum.
  const double seen = Backward ? planes : real(s.batch * s.in_channels);
  const double moved = seen * real(volume(s.in)) + planes * real(volume(s.out));
  // Rows of outputs in steps of the height of a strip.
  const double registers = real(round_up(rows, 4) * ceil_div(s.out[2], lanes));
  return {planes * taps * (1 + loads) * registers, moved * (s.stride[2] > 2 ? 4 : 1), planes * taps,
          planes * real(s.stride[0] * s.stride[1] * s.stride[2])};
}

template <class T>
constexpr ConvAlgorithm<T> depthwise = {"depthwise",
                                        &ConvTuning::depthwise,
                                        {{supports, work<T, false>, convolve<T, false>},
                                         {supports, work<T, true>, convolve<T, true>},
                                         {supports, work<T, false>, grad_weight<T>}}};

}  // namespace

extern constinit const ConvAlgorithm<float> depthwise_f32 = depthwise<float>;
extern constinit const ConvAlgorithm<double> depthwise_f64 = depthwise<double>;

}  // namespace taeda::cpu
