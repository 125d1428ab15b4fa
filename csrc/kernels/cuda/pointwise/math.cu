#include "kernels/functors/math.h"

#include "kernels/cuda/pointwise/functor_kernels.h"

namespace taeda::cuda {

extern const FunctorKernels* const math_kernels = Table<portable::MathOps>::rows;

}  // namespace taeda::cuda
