#include "kernels/functors/rounding.h"

#include "kernels/cuda/pointwise/functor_kernels.h"

namespace taeda::cuda {

static_assert(HasHalfBits<portable::Neg> && !HasHalfBits<portable::Floor>);

extern const FunctorKernels* const rounding_kernels = Table<portable::RoundingOps>::rows;

}  // namespace taeda::cuda
