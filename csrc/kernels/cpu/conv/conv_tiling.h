// What convolutions that read shifted views of the input share: a problem, its cutting into bands
// of rows, and how a band's input is laid out.
//
// The padded input is laid out so that outputs next to each other read elements next to each other,
// for every tap:
//
//   * Where outputs step over `step` inputs, inputs are sorted by their position modulo `step`,
//   into
//     a plane for each remainder (a phase). Within a phase the step is 1.
//   * Output rows are taken as wide as the padded rows. Then output number q of a band of rows
//   reads
//     element q + offset(tap), whatever row it is in. The outputs in the padding are not stored.
//
// The gradient of the input is such a sum too, of the outputs' gradients, for each remainder of the
// input's position modulo the stride.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <type_traits>
#include <vector>

#include "kernels/cpu/conv/conv.h"
#include "kernels/cpu/conv/simd/correlate.h"
#include "kernels/cpu/gemm/simd/gemm.h"
#include "kernels/cpu/pointwise/simd/transpose.h"
#include "kernels/cpu/simd/pick.h"

namespace taeda::cpu::direct {

constexpr int64_t kBandElements = 1 << 17;  // of the laid-out input of a band: half of a usual L2

constexpr int64_t kShallow = 32;  // taps of channels that are few beside the stores

inline int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
inline int64_t floor_div(int64_t a, int64_t b) { return a >= 0 ? a / b : -ceil_div(-a, b); }

template <class T> const simd::GemmLoops<T>& loops() {
  using namespace simd;
  const GemmKernels& kernels = TAEDA_PICK(gemm_kernels);
  if constexpr (std::is_same_v<T, float>) {
    return kernels.f32;
  } else {
    return kernels.f64;
  }
}

template <class T> const simd::CorrelateLoops<T>& correlate_loops() {
  using namespace simd;
  const CorrelateKernels& kernels = TAEDA_PICK(correlate_kernels);
  if constexpr (std::is_same_v<T, float>) {
    return kernels.f32;
  } else {
    return kernels.f64;
  }
}

// to[j * to_step + i] = from[i * from_step + j], i < rows and j < cols.
template <class T>
void transpose(const T* from, int64_t from_step, int64_t rows, int64_t cols, T* to,
               int64_t to_step) {
  using namespace simd;
  constexpr int64_t size = sizeof(T);
  const TransposeKernels& kernels = TAEDA_PICK(transpose_kernels);
  const Transpose f = size == 4 ? kernels.bytes4 : kernels.bytes8;
  f(reinterpret_cast<char*>(to), to_step * size, reinterpret_cast<const char*>(from),
    from_step * size, rows, cols);
}

// One dimension: output o reads the inputs o * step + position for each tap's position.
struct Axis {
  struct Tap {
    int64_t number;  // in the kernel
    int64_t position;
    int64_t phase = 0, shift = 0;  // position = shift * step + phase; phases are counted as used
  };
  int64_t in, out, step;
  int64_t y_start = 0, y_step = 1;  // output o lies at y_start + o * y_step of its plane
  std::vector<Tap> taps;
  std::vector<int64_t> phases;  // the remainders that occur
  int64_t lo = 0, hi = 0;       // the least and largest shift

  Axis(int64_t in_, int64_t out_, int64_t step_) : in(in_), out(out_), step(step_) {}
  void add(int64_t number, int64_t position) {
    Tap t{number, position};
    t.shift = floor_div(position, step);
    const int64_t remainder = position - t.shift * step;
    const auto known = std::find(phases.begin(), phases.end(), remainder);
    t.phase = known - phases.begin();
    if (known == phases.end()) phases.push_back(remainder);
    lo = taps.empty() ? t.shift : std::min(lo, t.shift);
    hi = taps.empty() ? t.shift : std::max(hi, t.shift);
    taps.push_back(t);
  }
  int64_t halo() const { return hi - lo; }
};

struct Problem {
  Axis d, h, w;
  int64_t channels;  // that are summed over
  int64_t y_height, y_width;

  int64_t width() const { return w.out + w.halo(); }  // of a laid-out row, and of an output row
  int64_t phases() const {
    return static_cast<int64_t>(d.phases.size() * h.phases.size() * w.phases.size());
  }
  int64_t taps() const {
    return static_cast<int64_t>(d.taps.size() * h.taps.size() * w.taps.size());
  }
  int64_t depth() const { return channels * taps(); }
  int64_t channel_size(int64_t rows) const {
    return phases() * (d.halo() + 1) * (rows + h.halo()) * width();
  }
  // Whether windows are copied: where rows are so short that padding would cost more, or sums that
  // storing results would.
  bool copied(int64_t outputs) const {
    return outputs >= 16 && (w.halo() * outputs > 3 * w.out || depth() <= kShallow);
  }
  // Rows of outputs in a band.
  int64_t band() const {
    const int64_t row = channels * phases() * (d.halo() + 1) * width();
    const int64_t rows = kBandElements / std::max<int64_t>(row, 1) - h.halo();
    return std::clamp<int64_t>(rows, std::min<int64_t>(h.out, 4), h.out);
  }
  int64_t bands() const { return d.out * ceil_div(h.out, band()); }
};

Problem forward_problem(const ConvShape& s);
// The gradient of the input as such sums, for every remainder that inputs have.
void each_remainder(const ConvShape& s, const std::function<void(const Problem&)>& f);

// Some rows of outputs, of one image or (whole planes) of several.
struct Band {
  int64_t depth, first, rows, images = 1;

  Band(const Problem& p, int64_t index) {
    const int64_t many = ceil_div(p.h.out, p.band());
    depth = index / many;
    first = index % many * p.band();
    rows = std::min(p.band(), p.h.out - first);
  }
};

// All channels of x, as the band's outputs read them: [channel][phases][depth][row][width].
template <class T> void lay_out(const Problem& p, const Band& band, const T* x, T* to);

// Where each (channel, tap) begins in what lay_out makes, for a band of `rows`.
std::vector<int64_t> offsets(const Problem& p, int64_t rows);

// About how long the direct way takes, in multiplications of a kernel that waits for nothing.
template <class T> double direct_cost(const Problem& p, int64_t outputs, int64_t batch);
double direct_weight_cost(const ConvShape& s);

// The gradient of the weights for few channels, and about how many products of registers that takes
// for an image.
template <class T> void places_grad_weight(const ConvShape& s, const T* x, const T* gy, T* gw);
template <class T> double places_cost(const Problem& p, int64_t outputs);

inline int64_t volume(const ConvShape& s, const int64_t (&sizes)[3]) {
  int64_t v = 1;
  for (int d = 0; d < s.spatial; ++d) v *= sizes[d];
  return v;
}

}  // namespace taeda::cpu::direct
