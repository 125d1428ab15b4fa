// How losses end: the names that ops and kernels share.
#pragma once

#include <cstdint>

namespace taeda {

enum Reduction : int64_t { kUnreduced = 0, kMean = 1, kSum = 2 };

}  // namespace taeda
