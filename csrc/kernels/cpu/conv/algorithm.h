// The algorithms that compute a convolution, and the interface by which one is chosen.
//
// Each estimates its work from the shape; rates that are measured for each instruction set
// (tuning.cpp) turn work into time; the chooser (conv.cpp) takes the algorithm with the shortest.
#pragma once

#include <algorithm>

#include "kernels/conv_taps.h"
#include "kernels/cpu/common/sizes.h"
#include "kernels/cpu/common/transpose.h"
#include "kernels/cpu/conv/conv.h"

namespace taeda::cpu {

using namespace conv_taps;

using Sizes = const int64_t (&)[3];
inline int64_t volume(Sizes sizes) { return sizes[0] * sizes[1] * sizes[2]; }

// What an algorithm does for a shape.
struct ConvWork {
  double fma = 0;     // multiply-adds of one register, those with padding included
  double moved = 0;   // elements of activations copied to or from a layout of its own
  double packed = 0;  // elements of weights copied to or from a layout of its own
  double calls = 0;   // of inner kernels, planes or tiles: what each costs besides
};

// Nanoseconds of one thread for one unit of each kind of ConvWork.
struct ConvRates {
  double fma, moved, packed, call;

  double time(const ConvWork& w) const {
    return fma * w.fma + moved * w.moved + packed * w.packed + call * w.calls;
  }
};

// Of the three passes of each algorithm.
struct ConvTuning {
  ConvRates im2col[3], nhwc[3], winograd[3], depthwise[3];
};

// Of the instruction set that kernels run with.
const ConvTuning& conv_tuning();

template <class T> struct ConvAlgorithm {
  struct Pass {
    bool (*supports)(const ConvShape& s);
    ConvWork (*work)(const ConvShape& s);
    // From x and w to y, from gy and w to gx, or from x and gy to gw. bias: of the forward pass, or
    // null. False where the result is of no use: Winograd's transforms spread an infinity or NaN to
    // outputs that do not read it.
    bool (*run)(const ConvShape& s, const T* a, const T* b, const T* bias, T* result);
  };
  const char* name;
  const ConvRates (ConvTuning::*rates)[3];
  Pass passes[3];

  double time(ConvPass pass, const ConvShape& s) const {
    const auto at = static_cast<size_t>(pass);
    return (conv_tuning().*rates)[at].time(passes[at].work(s));
  }
};

extern const ConvAlgorithm<float> im2col_f32, nhwc_f32, winograd_f32, depthwise_f32;
extern const ConvAlgorithm<double> im2col_f64, nhwc_f64, depthwise_f64;

}  // namespace taeda::cpu
