// Memory of CUDA devices that other libraries own, by __cuda_array_interface__.
#include <nanobind/stl/vector.h>

#include "base/checked.h"
#include "python/autograd.h"
#include "python/casters.h"
#include "python/interop.h"
#include "python/module.h"

namespace taeda::py {
namespace {

void release_owner(void* owner) {
  if (!Py_IsInitialized()) return;
  const AcquireGil gil;
  Py_DECREF(static_cast<PyObject*>(owner));
}

// The memory at `address`, which `owner` keeps as it lives. Strides are in elements.
Tensor share_address(nanobind::handle owner, uintptr_t address, DType dtype,
                     const std::vector<int64_t>& sizes, const std::vector<int64_t>& strides,
                     Device device) {
  check<ValueError>(sizes.size() <= kMostDims, "a tensor cannot have ", sizes.size(),
                    " dimensions");
  check<ValueError>(sizes.size() == strides.size(), "there must be as many strides as dimensions");
  check<ValueError>(device.type == DeviceType::CUDA, "an address on ", to_string(device),
                    " cannot be shared: it must be of a CUDA device");
  require_available(device);
  const bool empty = numel_of(sizes) == 0;
  int64_t reach = empty ? 0 : 1;
  for (size_t i = 0; i < sizes.size() && !empty; ++i) {
    check<ValueError>(strides[i] >= 0, "tensors with negative strides are not supported");
    reach = checked_add(reach, checked_mul(sizes[i] - 1, strides[i]));
  }
  check<ValueError>(empty || address != 0, "the data are missing");
  const int64_t bytes = checked_mul(reach, static_cast<int64_t>(itemsize(dtype)));
  auto storage = Storage::borrow(reinterpret_cast<void*>(address), static_cast<size_t>(bytes),
                                 nullptr, nullptr);
  storage->device = with_index(device);
  storage->release = release_owner;
  storage->context = Py_NewRef(owner.ptr());
  return from_storage(std::move(storage), sizes, strides, 0, dtype);
}

}  // namespace

bool has_cuda_array(PyObject* o) {
  return PyObject_HasAttrString(reinterpret_cast<PyObject*>(Py_TYPE(o)),
                                "__cuda_array_interface__");
}

Tensor share_cuda_array(PyObject* o) {
  const PyRef share = take(import_attribute("taeda._tensor.cuda_array", "share"));
  const PyRef shared = take(must(python_call(PyObject_CallOneArg, share.get(), o)));
  return tensor_of(shared.get());
}

void init_cuda_array(PyObject* module) {
  nanobind::borrow<nanobind::module_>(module).def(
      "_share_address", share_address, nanobind::arg("owner"), nanobind::arg("address"),
      nanobind::arg("dtype"), nanobind::arg("sizes"), nanobind::arg("strides"),
      nanobind::arg("device"), "A tensor over memory that another object owns.");
}

}  // namespace taeda::py
