#include "kernels/functors/polynomial.h"

#include "kernels/cpu/pointwise/simd/loops.h"

namespace taeda::TAEDA_ISA {

extern const Loops* const polynomial_loops = Table<PolynomialOps, heavy | slow>::rows;

}  // namespace taeda::TAEDA_ISA
