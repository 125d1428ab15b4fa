#include "kernels/functors/activation.h"

#include "kernels/cuda/pointwise/functor_kernels.h"

namespace taeda::cuda {

extern const FunctorKernels* const activation_kernels = Table<portable::ActivationOps>::rows;

}  // namespace taeda::cuda
