#include "kernels/functors/math.h"

#include "kernels/cpu/pointwise/simd/loops.h"

namespace taeda::TAEDA_ISA {

extern const Loops* const math_loops = Table<MathOps, heavy_value>::rows;

}  // namespace taeda::TAEDA_ISA
