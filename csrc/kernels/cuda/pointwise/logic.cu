#include "kernels/functors/logic.h"

#include "kernels/cuda/pointwise/functor_kernels.h"

namespace taeda::cuda {

extern const FunctorKernels* const logic_kernels = Table<portable::LogicOps>::rows;

}  // namespace taeda::cuda
