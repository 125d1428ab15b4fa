#include "kernels/functors/math.h"

#include "kernels/cuda/pointwise/functor_kernels.h"

namespace taeda::cuda {

static_assert(HasSlow<portable::Exp, float> && !HasSlow<portable::Exp, double>);

extern const FunctorKernels* const math_kernels = Table<portable::MathOps>::rows;

}  // namespace taeda::cuda
