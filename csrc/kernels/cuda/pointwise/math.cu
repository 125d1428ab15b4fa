#include "kernels/functors/math.h"

#include "kernels/cuda/pointwise/functor_kernels.h"

namespace taeda::cuda {

static_assert(HasHard<portable::Exp, float> && !HasHard<portable::Exp, double>);

extern const FunctorKernels* const math_kernels = Table<portable::MathOps>::rows;

}  // namespace taeda::cuda
