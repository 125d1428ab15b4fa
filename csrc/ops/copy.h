// What copies and factories share.
#pragma once

#include "tensor/tensor.h"

namespace taeda {

// A new tensor of x's sizes in the layout asked for; Preserve keeps x's own where it is dense.
Tensor empty_in(const Tensor& x, DType dtype, Device device, MemoryFormat format);

// Every element = value, converted to t's dtype.
void fill_with(const Tensor& t, Scalar value);

}  // namespace taeda
