#include "kernels/functors/activation.h"

#include "kernels/cuda/pointwise/functor_kernels.h"

namespace taeda::cuda {

// What has no derivative for nvcc would have no kernel, though the host's compiler calls it.
static_assert(portable::HasDa<portable::Relu> && portable::HasDb<portable::Prelu>);

extern const FunctorKernels* const activation_kernels = Table<portable::ActivationOps>::rows;

}  // namespace taeda::cuda
