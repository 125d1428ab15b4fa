#include "kernels/functors/math.h"

#include "kernels/cuda/pointwise/functor_kernels.h"

namespace taeda::cuda {

extern const FunctorKernels* const special_kernels = Table<portable::SpecialOps, true>::rows;

}  // namespace taeda::cuda
