#include "kernels/functors/logic.h"

#include "kernels/cpu/pointwise/simd/loops.h"

namespace taeda::TAEDA_ISA {

extern const Loops* const logic_loops = Table<LogicOps>::rows;

}  // namespace taeda::TAEDA_ISA
