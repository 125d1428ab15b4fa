#include "kernels/functors/loss.h"

#include "kernels/cpu/pointwise/simd/loops.h"

namespace taeda::TAEDA_ISA {

extern const Loops* const loss_loops = Table<LossOps>::rows;

}  // namespace taeda::TAEDA_ISA
