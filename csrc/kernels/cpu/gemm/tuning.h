// What decides between the ways to multiply matrices: times in nanoseconds, for each instruction
// set, of one core.
#pragma once

#include "base/cpu_features.h"

namespace taeda::cpu {

struct GemmTuning {
  double packed;     // a register of multiply-adds in a product of packed panels
  double small;      // the same where b is read where it is, from the first two caches,
  double far;        // and from farther away
  double dot;        // the same of inner products
  double reduce;     // adding up the lanes of one inner product
  double pack;       // an element of a or b into a panel
  double transpose;  // the same where it is transposed or converted
  double call;       // a packed product, beside all this
};

constexpr GemmTuning kGemmTuning[] = {
    // v2 and NEON
    {.packed = 0.29,
     .small = 0.30,
     .far = 0.6,
     .dot = 0.4,
     .reduce = 2,
     .pack = 0.15,
     .transpose = 0.2,
     .call = 150},
    // v3
    {.packed = 0.145,
     .small = 0.15,
     .far = 0.4,
     .dot = 0.22,
     .reduce = 3,
     .pack = 0.15,
     .transpose = 0.12,
     .call = 150},
    // v4
    {.packed = 0.29,
     .small = 0.30,
     .far = 0.8,
     .dot = 0.4,
     .reduce = 4,
     .pack = 0.1,
     .transpose = 0.1,
     .call = 150},
};

inline const GemmTuning& gemm_tuning() {
  const CpuLevel level = cpu_level();
  return kGemmTuning[level >= CpuLevel::v4 ? 2 : level >= CpuLevel::v3 ? 1 : 0];
}

}  // namespace taeda::cpu
