// Autograd's interest in tensors that get another shape in place.
#pragma once

#include "tensor/tensor.h"

namespace taeda {

// Called before a tensor with autograd data gets another shape in place. Set by csrc/autograd.
extern void (*before_reshape)(const TensorImpl* t);

}  // namespace taeda
