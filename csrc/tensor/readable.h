// Tensors whose elements must not be read as Python numbers, such as vmap's batched tensors, which
// stand for many values at once.
#pragma once

#include "tensor/tensor.h"

namespace taeda {

// Called before an element of a tensor with kOverride is read as a number; throws if that is not
// allowed. Set by csrc/python.
extern void (*check_readable)(const Tensor& t);

}  // namespace taeda
