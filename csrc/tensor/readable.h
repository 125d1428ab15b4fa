// Tensors that stand for something else than the memory they refer to, such as vmap's, whose
// elements must not be read as Python numbers.
#pragma once

#include "tensor/tensor.h"

namespace taeda {

// Asked before an element of a tensor with kOverride is read as a number; throws where it must not
// be. Set by csrc/python.
extern void (*check_readable)(const Tensor& t);

}  // namespace taeda
