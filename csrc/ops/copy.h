// What copies and factories share.
#pragma once

#include "tensor/tensor.h"

namespace taeda {

// A new tensor of x's sizes in the layout asked for; Preserve keeps x's own where it is dense.
Tensor empty_in(const Tensor& x, DType dtype, Device device, MemoryFormat format);

// RuntimeError where a Python number lies outside of what the dtype holds. Infinities and NaN go
// into floating dtypes, anything into bool; an unsigned integer may be named by what it is below
// zero.
void check_fits(Scalar value, DType dtype);

// Every element = value, converted to t's dtype, which it must fit.
void fill_with(const Tensor& t, Scalar value);

}  // namespace taeda
