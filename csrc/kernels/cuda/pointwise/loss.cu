#include "kernels/functors/loss.h"

#include "kernels/cuda/pointwise/functor_kernels.h"

namespace taeda::cuda {

extern const FunctorKernels* const loss_kernels = Table<portable::LossOps>::rows;

}  // namespace taeda::cuda
