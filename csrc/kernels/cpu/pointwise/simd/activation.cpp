#include "kernels/functors/activation.h"

#include "kernels/cpu/pointwise/simd/loops.h"

namespace taeda::TAEDA_ISA {

extern const Loops* const activation_loops = Table<ActivationOps>::rows;

}  // namespace taeda::TAEDA_ISA
