// What decides between the ways to multiply matrices: nanoseconds of one core, for each instruction
// set. Printed by `python -m benchmarks.tune`, which measures them on the machine that it runs on.
#pragma once

#include "base/cpu_features.h"

namespace taeda::cpu {

// How much of each kind of work a product takes, or the nanoseconds that one of each takes.
struct GemmWork {
  double packed = 0;     // a register of multiply-adds in a product of packed panels
  double small = 0;      // the same where b is read where it is, from the first two caches,
  double far = 0;        // and from farther away
  double dot = 0;        // the same of inner products
  double reduce = 0;     // adding up the lanes of one inner product
  double pack = 0;       // an element of a or b into a panel
  double transpose = 0;  // the same where it is transposed or converted
  double call = 0;       // a packed product, beside all this

  double time(const GemmWork& rates) const {
    return packed * rates.packed + small * rates.small + far * rates.far + dot * rates.dot +
           reduce * rates.reduce + pack * rates.pack + transpose * rates.transpose +
           call * rates.call;
  }
};

constexpr GemmWork kGemmRates[] = {
    {0.289, 0.266, 0.378, 0.228, 3.38, 0, 0.0188, 513},      // v2 and NEON
    {0.177, 0.181, 0.206, 0.217, 1.68, 0, 0.0851, 542},      // v3
    {0.289, 0.295, 0.341, 0.467, 1.19, 0.162, 0.0889, 284},  // v4
};

inline const GemmWork& gemm_rates() {
  const CpuLevel level = cpu_level();
  return kGemmRates[level >= CpuLevel::v4 ? 2 : level >= CpuLevel::v3 ? 1 : 0];
}

}  // namespace taeda::cpu
