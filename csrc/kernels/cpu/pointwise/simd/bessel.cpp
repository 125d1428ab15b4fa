#include "kernels/functors/bessel.h"

#include "kernels/cpu/pointwise/simd/loops.h"

namespace taeda::TAEDA_ISA {

extern const Loops* const bessel_loops = Table<BesselOps, heavy | slow>::rows;

}  // namespace taeda::TAEDA_ISA
