// Sums over places, for the gradient of a convolution's weights: places lie across the registers.
#pragma once

#include <cstdint>

namespace taeda::cpu::simd {

// A rectangle of places, read at some offsets.
template <class T> struct Places {
  int64_t height, width;
  const T* g;              // a plane for each output
  int64_t g_plane, g_row;  // from one plane, and row, to the next
  const T* x;
  int64_t x_row;
};

// What an output place is summed of: `taps` neighbouring taps, at neighbouring places of the input.
struct Run {
  int64_t output, tap, place, taps;
};

template <class T> struct CorrelateLoops {
  int64_t lanes, outputs, taps;  // a register's; the most outputs and the exact taps of one call

  // sums[m][tap][lane] += g[m] * x[offset[tap]] at every place, where `lane` tells the places of a
  // row apart. Rows shorter than a register are read as far as one.
  void (*add)(int64_t outputs, const Places<T>& places, const int64_t* offset, T* sums);

  // With so many channels side by side: y[output] += w[tap + i] * x[place + i], i < taps, for runs
  // of which those with one output follow each other.
  int64_t channels;
  void (*add_runs)(const Run* runs, int64_t many, const T* w, const T* x, T* y);
};

struct CorrelateKernels {
  CorrelateLoops<float> f32;
  CorrelateLoops<double> f64;
};

namespace v2 {
extern const CorrelateKernels correlate_kernels;
}
namespace v3 {
extern const CorrelateKernels correlate_kernels;
}
namespace v4 {
extern const CorrelateKernels correlate_kernels;
}
namespace base {
extern const CorrelateKernels correlate_kernels;
}

}  // namespace taeda::cpu::simd
