// Convolutions by cuDNN, where NVIDIA's package nvidia-cudnn is installed.
#pragma once

#include <cstddef>

#include "base/dtype.h"
#include "kernels/conv.h"

namespace taeda::cuda {

// x, w and y of kernels/conv.h, of which the pass computes y, x or w.
struct Convolution {
  ConvPass pass;
  DType dtype;
  const ConvShape& shape;
  const void *x, *w, *y;
};

// False where there is no cuDNN, or none of its engines can; nothing is done then. Engines whose
// results depend on timing are left out.
bool convolve_by_cudnn(const Convolution& c);

void use_cudnn(bool used);
// Whether convolutions of float32 may round their operands to TF32.
void allow_conv_tf32(bool allowed);
size_t cudnn_version();  // 0 where there is none

}  // namespace taeda::cuda
