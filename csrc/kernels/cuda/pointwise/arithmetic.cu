#include "kernels/functors/arithmetic.h"

#include "kernels/cuda/pointwise/functor_kernels.h"

namespace taeda::cuda {

extern const FunctorKernels* const arithmetic_kernels = Table<portable::ArithmeticOps>::rows;

}  // namespace taeda::cuda
