// Scans along one dimension of a contiguous array (outer, n, inner).
#pragma once

#include <cstdint>

#include "base/dtype.h"

namespace taeda::cpu {

enum class Scan { Sum, Prod, LogSumExp };
struct ScanShape {
  int64_t outer, n, inner;
};
void scan(Scan what, const void* x, void* out, ScanShape s, DType dtype);
// Running extremes and the indices (along n) of the latest of them. NaN stays.
void scan_extreme(bool largest, const void* x, void* values, int64_t* indices, ScanShape s,
                  DType dtype);

}  // namespace taeda::cpu
