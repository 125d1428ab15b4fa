// Matrix products for kernels of other families.
#pragma once

#include "kernels/gemm.h"

namespace taeda::cuda {

// T: float, double, std::complex of either.
template <class T> const GemmKernels<T>& gemm_kernels();

}  // namespace taeda::cuda
