#include "kernels/functors/bessel.h"

#include "kernels/cuda/pointwise/functor_kernels.h"

namespace taeda::cuda {

extern const FunctorKernels* const bessel_kernels = Table<portable::BesselOps, true>::rows;

}  // namespace taeda::cuda
