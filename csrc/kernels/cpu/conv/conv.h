// What the choice among the CPU's convolutions shows of itself, for benchmarks/tune.py and tests.
#pragma once

#include <vector>

#include "kernels/conv.h"

namespace taeda::cpu {

// An algorithm that can compute a float32 convolution, its estimated nanoseconds, and the amounts
// of work (ConvWork) that the estimate weighs by the rates of tuning.h.
struct ConvCandidate {
  const char* name;
  double cost;
  double work[4];
};
std::vector<ConvCandidate> conv_candidates(ConvPass pass, const ConvShape& s);

// Makes every convolution that this algorithm can compute use it; null: back to the estimates. Any
// algorithm gives a right result, so this is safe at any time. False if there is no such name.
bool force_conv_algorithm(const char* name);

}  // namespace taeda::cpu
