// Memory that other libraries own, seen as tensors.
#pragma once

#include <optional>

#include "python/errors.h"
#include "tensor/tensor.h"

namespace taeda::py {

// Whether `o` is a numpy.ndarray (or of a subclass), without importing NumPy.
bool is_ndarray(PyObject* o);

// A tensor that shares an array's memory and keeps it alive. TypeError for dtypes that tensors do
// not have, ValueError for layouts; `warn`: warn if the memory is read-only.
Tensor share_array(PyObject* array, bool warn);

// Elements of an object with the buffer protocol, as a one-dimensional tensor that keeps it alive.
Tensor share_buffer(PyObject* o, DType dtype, int64_t count, int64_t offset);

// A tensor from an object with __dlpack__ or a capsule.
Tensor from_dlpack(PyObject* o);

// Whether `o` has __cuda_array_interface__, and a tensor that shares its memory.
bool has_cuda_array(PyObject* o);
Tensor share_cuda_array(PyObject* o);

// taeda.tensor(data) for numbers, sequences and arrays.
Tensor tensor_from_data(PyObject* data, std::optional<DType> dtype = {});
// A zero-dim tensor; RuntimeError where an integer dtype cannot hold the number.
Tensor zero_dim(const Scalar& s, DType dtype);

bool is_untyped_storage(PyObject* o);

}  // namespace taeda::py
