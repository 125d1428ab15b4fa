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
    {0.238, 0.249, 0.294, 0.187, 2.38, 0.0401, 0.108, 207},  // v2 and NEON
    {0.167, 0.176, 0.189, 0.216, 1.4, 0, 0.0939, 394},       // v3
    {0.277, 0.281, 0.315, 0.41, 1.34, 0.142, 0.0837, 314},   // v4
};

inline const GemmWork& gemm_rates() {
  const CpuLevel level = cpu_level();
  return kGemmRates[level >= CpuLevel::v4 ? 2 : level >= CpuLevel::v3 ? 1 : 0];
}

}  // namespace taeda::cpu
