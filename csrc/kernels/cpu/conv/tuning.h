// Every constant by which convolution algorithms are compared, one set for each instruction set.
// Printed by `python -m benchmarks.tune`, which measures them on the machine that it runs on.
#pragma once

#include "kernels/cpu/conv/algorithm.h"

namespace taeda::cpu {

// Nanoseconds of one thread for one unit of each kind of ConvWork.
struct ConvRates {
  double fma, moved, packed, call;

  double time(const ConvWork& w) const {
    return fma * w.fma + moved * w.moved + packed * w.packed + call * w.calls;
  }
};

// [pass][forward, grad_input, grad_weight]
struct ConvTuning {
  ConvRates im2col[3], nhwc[3], winograd[3], depthwise[3], depthwise_nhwc[3];
};

// Of the instruction set that kernels run with.
const ConvTuning& conv_tuning();

}  // namespace taeda::cpu
