#include "kernels/functors/polynomial.h"

#include "kernels/cuda/pointwise/functor_kernels.h"

namespace taeda::cuda {

extern const FunctorKernels* const polynomial_kernels = Table<portable::PolynomialOps, true>::rows;

}  // namespace taeda::cuda
