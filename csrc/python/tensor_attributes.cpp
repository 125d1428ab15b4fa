// Attributes of Tensor: shape, dtype, device, data and the rest. Those related to gradients are in
// autograd_tensor.cpp.
#include "base/warn.h"
#include "ops/core/op.h"
#include "python/batching.h"
#include "python/objects.h"
#include "python/op_callable.h"
#include "python/overrides.h"
#include "python/tensor_slots.h"
#include "python/tensor_type.h"
#include "tensor/reshape.h"

namespace taeda::py {
namespace {

PyObject* shape(PyObject* o, void*) {
  return guarded([&] { return size_object(tensor_of(o).sizes()); });
}
PyObject* dtype(PyObject* o, void*) { return dtype_object(tensor_of(o).dtype()); }
PyObject* device(PyObject* o, void*) {
  return guarded([&] { return device_object(tensor_of(o).device()); });
}
PyObject* layout(PyObject*, void*) { return strided_object(); }
PyObject* ndim(PyObject* o, void*) { return PyLong_FromLongLong(tensor_of(o).dim()); }
PyObject* itemsize_(PyObject* o, void*) { return PyLong_FromSize_t(tensor_of(o).itemsize()); }
PyObject* nbytes(PyObject* o, void*) { return PyLong_FromSize_t(tensor_of(o).nbytes()); }

template <DeviceType D> PyObject* lives_on(PyObject* o, void*) {
  return PyBool_FromLong(tensor_of(o).device().type == D);
}
PyObject* no(PyObject*, void*) { Py_RETURN_FALSE; }

// ---- views ----

PyObject* wrap_like(Tensor t, PyObject* o) {
  return tensor_of(o).flags() & kOverride ? wrap_as(std::move(t), Py_TYPE(o)) : wrap(std::move(t));
}

PyRef py_int(int64_t i) { return take(PyLong_FromLongLong(i)); }

PyObject* swap_last(PyObject* o) {
  return call_method("transpose", {o, py_int(-2).get(), py_int(-1).get()});
}

PyObject* reversed(PyObject* o, void*) {
  return guarded([&]() -> PyObject* {
    int64_t n = tensor_of(o).dim();
    if (n == 2) return swap_last(o);
    static WarnOnce warn_of_order(
        "The use of `x.T` on tensors of dimension other than 2 to reverse their shape is "
        "deprecated. Consider `x.mT` to transpose batches of matrices or "
        "`x.permute(*torch.arange(x.ndim - 1, -1, -1))` to reverse the dimensions of a tensor.");
    warn_of_order();
    PyRef dims = take(PyTuple_New(n));
    for (int64_t i = 0; i < n; ++i)
      PyTuple_SET_ITEM(dims.get(), i, must(PyLong_FromLongLong(n - 1 - i)));
    return call_method("permute", {o, dims.get()});
  });
}
PyObject* matrix_transpose(PyObject* o, void*) {
  return guarded([&] {
    int64_t n = tensor_of(o).dim();
    check(n >= 2, "tensor.mT is only supported on matrices or batches of matrices. Got ", n,
          "-D tensor.");
    return swap_last(o);
  });
}
PyObject* conjugate_transpose(PyObject* o) {
  PyRef t(swap_last(o));
  return is_complex(tensor_of(o).dtype()) ? call_method("conj", {t.get()}) : t.release();
}
PyObject* hermitian(PyObject* o, void*) {
  return guarded([&] {
    int64_t n = tensor_of(o).dim();
    check(n == 2 || n == 0, "tensor.H is only supported on matrices (2-D tensors). Got ", n,
          "-D tensor.");
    if (n == 0) return is_complex(tensor_of(o).dtype()) ? call_method("conj", {o}) : Py_NewRef(o);
    return conjugate_transpose(o);
  });
}
PyObject* batch_hermitian(PyObject* o, void*) {
  return guarded([&] {
    int64_t n = tensor_of(o).dim();
    check(n >= 2, "tensor.mH is only supported on matrices or batches of matrices. Got ", n,
          "-D tensor.");
    return conjugate_transpose(o);
  });
}
PyObject* real_part(PyObject* o, void*) {
  return guarded([&] { return call_method("real", {o}); });
}
PyObject* imaginary_part(PyObject* o, void*) {
  return guarded([&] { return call_method("imag", {o}); });
}
int assign_part(PyObject* part, PyObject* value) {
  PyRef held(part);
  if (!part) return -1;
  return guarded(
      [&] {
        if (!value) fail<TypeError>("cannot delete this attribute of a Tensor");
        PyRef converted =
            is_tensor(value)
                ? PyRef::borrow(value)
                : PyRef(must(python_call(PyObject_CallMethod, part, "new_tensor", "O", value)));
        PyRef(call_method("copy_", {part, converted.get()}));
        return 0;
      },
      -1);
}
int set_real_part(PyObject* o, PyObject* value, void*) {
  return assign_part(real_part(o, nullptr), value);
}
int set_imaginary_part(PyObject* o, PyObject* value, void*) {
  return assign_part(imaginary_part(o, nullptr), value);
}

// ---- data ----

PyObject* data(PyObject* o, void*) {
  return guarded([&] {
    Tensor t = alias(tensor_of(o));
    t.impl()->own_version = true;
    return wrap_like(std::move(t), o);
  });
}

// `t` gets the memory, sizes, dtype and device of `f`.
void take_data(TensorImpl* t, const TensorImpl* f) {
  constexpr uint32_t followed = kPlaceFlags | kInference;
  if (t->autograd) before_reshape(t);
  if (!same(t->sizes, f->sizes) || t->dtype != f->dtype ||
      (t->flags & kPlaceFlags) != (f->flags & kPlaceFlags))
    ++t->reshapes;
  t->storage = f->storage;
  t->sizes = f->sizes;
  t->strides = f->strides;
  t->offset = f->offset;
  t->numel = f->numel;
  t->dtype = f->dtype;
  t->contiguous = f->contiguous;
  t->flags = (t->flags & ~followed) | (f->flags & followed);
}

// Whether its memory only stands for values that are elsewhere: those of sparse, nested and vmap's
// tensors are attributes of the Python object.
bool is_placeholder(PyObject* o) {
  if (tensor_of(o).is_placeholder()) return true;
  PyTypeObject* type = Py_TYPE(o);
  if (type == TensorType) return false;
  return is_batched_type(type) ||
         PyObject_HasAttrString(reinterpret_cast<PyObject*>(type), "_is_placeholder");
}

int set_data(PyObject* o, PyObject* value, void*) {
  return guarded(
      [&] {
        if (!value) fail("Deleting tensor data is not allowed. Delete tensor instead!");
        if (!is_tensor(value))
          fail<TypeError>("Variable data has to be a tensor, but got ", type_name(value));
        const Tensor& from = tensor_of(value);
        TensorImpl* t = tensor_of(o).impl();
        check(
            !(t->flags & kRequiresGrad) || is_inexact(from.dtype()),
            "data set to a tensor that requires gradients must be floating point or complex dtype");
        check((t->flags & kMeta) == (from.flags() & kMeta),
              "Attempted to call `variable.set_data(tensor)`, but `variable` and `tensor` have "
              "incompatible tensor type: one is on ",
              Tensor(Ref<TensorImpl>(t)).device(), ", the other on ", from.device());
        check(is_placeholder(o) == is_placeholder(value),
              "Attempted to call `variable.set_data(tensor)`, but `variable` and `tensor` have "
              "incompatible tensor type: ",
              type_name(o), " and ", type_name(value));
        take_data(t, from.impl());
        return 0;
      },
      -1);
}

// For utils.swap_tensors: each gets the other's data, on whatever device that is.
PyObject* exchange_data(PyObject* o, PyObject* other) {
  return guarded([&] {
    if (!is_tensor(other))
      fail<TypeError>("_exchange_data(): expected a Tensor, not ", type_name(other));
    TensorImpl *a = tensor_of(o).impl(), *b = tensor_of(other).impl();
    if (is_placeholder(o) != is_placeholder(other)) {  // what was saved is gone
      ++a->reshapes;
      ++b->reshapes;
    }
    const Tensor kept = raw_alias(tensor_of(o));
    take_data(a, b);
    take_data(b, kept.impl());
    // Their classes have been exchanged before.
    for (PyObject* each : {o, other}) {
      uint32_t& flags = tensor_of(each).impl()->flags;
      flags &= ~uint32_t{kOverride | kDispatch};
      if (Py_TYPE(each) != TensorType) flags |= class_flags(Py_TYPE(each));
    }
    return Py_NewRef(Py_None);
  });
}

// ---- views and versions ----

PyObject* version(PyObject* o, void*) {
  return guarded([&] { return version_number(tensor_of(o)); });
}
PyObject* get_base(PyObject* o, void*) {
  return guarded([&]() -> PyObject* {
    const Tensor& t = tensor_of(o);
    if (!t.impl()->base) Py_RETURN_NONE;
    return wrap(Tensor(t.impl()->base));
  });
}
PyObject* none(PyObject*, void*) { Py_RETURN_NONE; }

PyGetSetDef attributes[] = {
    {"shape", shape, nullptr, "The sizes of the dimensions, as a Size.", nullptr},
    {"dtype", dtype, nullptr, "The type of the elements.", nullptr},
    {"device", device, nullptr, "Where the elements are.", nullptr},
    {"layout", layout, nullptr, "taeda.strided.", nullptr},
    {"ndim", ndim, nullptr, "How many dimensions there are.", nullptr},
    {"itemsize", itemsize_, nullptr, "Bytes in one element.", nullptr},
    {"nbytes", nbytes, nullptr, "Bytes in all elements.", nullptr},
    {"is_cpu", lives_on<DeviceType::CPU>, nullptr, "Whether it is on the cpu.", nullptr},
    {"is_cuda", lives_on<DeviceType::CUDA>, nullptr, "Whether it is on a CUDA device.", nullptr},
    {"is_meta", lives_on<DeviceType::Meta>, nullptr, "Whether it has a shape but no data.",
     nullptr},
    {"is_mps", no, nullptr, "False: no tensor is on an Apple GPU.", nullptr},
    {"is_xpu", no, nullptr, "False: no tensor is on an Intel GPU.", nullptr},
    {"is_sparse", no, nullptr, "Whether the layout is taeda.sparse_coo.", nullptr},
    {"is_sparse_csr", no, nullptr, "Whether the layout is taeda.sparse_csr.", nullptr},
    {"is_quantized", no, nullptr, "False: there are no quantized tensors.", nullptr},
    {"is_nested", no, nullptr, "False: there are no nested tensors.", nullptr},
    {"is_mkldnn", no, nullptr, "False: all tensors are strided.", nullptr},
    {"T", reversed, nullptr, "The dimensions in reverse order.", nullptr},
    {"mT", matrix_transpose, nullptr, "The last two dimensions exchanged.", nullptr},
    {"H", hermitian, nullptr, "The conjugate transpose of a matrix.", nullptr},
    {"mH", batch_hermitian, nullptr, "The conjugate with the last two dimensions exchanged.",
     nullptr},
    {"real", real_part, set_real_part, "The real part, as a view; a real tensor itself.", nullptr},
    {"imag", imaginary_part, set_imaginary_part, "The imaginary part, as a view.", nullptr},
    {"data", data, set_data,
     "The same values without history; in-place changes of it go unseen by autograd.", nullptr},
    {"_version", version, nullptr, "How often its memory was changed in place.", nullptr},
    {"_base", get_base, nullptr, "The tensor that it is a view of, or None.", nullptr},
    {"name", none, nullptr, "None.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};

PyMethodDef exchanges[] = {
    {"_exchange_data", exchange_data, METH_O,
     "_exchange_data(other)\n\nExchange the memory of two tensors, with all that describes it."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

PyObject* version_number(const Tensor& t) {
  check(!(t.flags() & kInference), "Inference tensors do not track version counter.");
  return must(PyLong_FromUnsignedLong(t.version()));
}

void init_tensor_attributes() {
  add_getset(attributes);
  add_methods(exchanges);
}

}  // namespace taeda::py
