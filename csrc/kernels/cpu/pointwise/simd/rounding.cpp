#include "kernels/functors/rounding.h"

#include "kernels/cpu/pointwise/simd/loops.h"

namespace taeda::TAEDA_ISA {

extern const Loops* const rounding_loops = Table<RoundingOps>::rows;

}  // namespace taeda::TAEDA_ISA
