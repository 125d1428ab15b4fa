#include "kernels/functors/math.h"

#include "kernels/cpu/pointwise/simd/loops.h"

namespace taeda::TAEDA_ISA {

extern const Loops* const special_loops = Table<SpecialOps, heavy_value | slow>::rows;

}  // namespace taeda::TAEDA_ISA
