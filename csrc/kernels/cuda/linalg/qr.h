// QR factors, for what else needs them.
#pragma once

#include "kernels/cuda/linalg/matrices.h"

namespace taeda::cuda {

// As in QrKernels.
template <class T> void factor_qr(MatrixBatch s, T* a, T* tau);
template <class T> void form_q(MatrixBatch s, int64_t k, T* a, const T* tau);

}  // namespace taeda::cuda
