#include "kernels/functors/rounding.h"

#include "kernels/cuda/pointwise/functor_kernels.h"

namespace taeda::cuda {

extern const FunctorKernels* const rounding_kernels = Table<portable::RoundingOps>::rows;

}  // namespace taeda::cuda
