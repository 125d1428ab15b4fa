#include "kernels/functors/arithmetic.h"

#include "kernels/cpu/pointwise/simd/loops.h"

namespace taeda::TAEDA_ISA {

extern const Loops* const arithmetic_loops = Table<ArithmeticOps>::rows;

}  // namespace taeda::TAEDA_ISA
