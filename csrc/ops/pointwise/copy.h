// Helpers of copies and factories.
#pragma once

#include "tensor/tensor.h"

namespace taeda {

// An uninitialised tensor of x's sizes in this memory format; Preserve keeps x's layout if it is
// dense.
Tensor empty_in(const Tensor& x, DType dtype, Device device, MemoryFormat format);

// A copy in pinned memory, of a tensor of the CPU.
Tensor pinned_copy(const Tensor& x);
bool is_pinned(const Tensor& x);

// RuntimeError if a Python number is out of the dtype's range. Infinities and NaN fit floating
// dtypes, anything fits bool, and negative numbers that wrap around fit unsigned integers.
void check_fits(Scalar value, DType dtype);

// Sets every element to `value`, which must fit t's dtype.
void fill_with(const Tensor& t, Scalar value);

}  // namespace taeda
