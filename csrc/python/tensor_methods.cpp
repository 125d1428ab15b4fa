// Methods of Tensor that are not ops: queries of its layout, its values as Python numbers, its
// storage.
#include <vector>

#include "autograd/forward.h"
#include "autograd/meta.h"
#include "ops/core/tensor_ops.h"
#include "ops/pointwise/copy.h"
#include "python/arguments.h"
#include "python/autograd.h"
#include "python/batching.h"
#include "python/objects.h"
#include "python/op_callable.h"
#include "python/overrides.h"
#include "python/tensor_slots.h"
#include "python/tensor_type.h"
#include "tensor/dispatched.h"
#include "tensor/inference.h"

namespace taeda::py {
namespace {

// size() and stride(): all, or that of one dimension.
PyObject* one_or_all(const char* name, const Tensor& t, DimsRef all, PyObject* const* args,
                     Py_ssize_t n, PyObject* kwnames, bool as_size) {
  return guarded([&]() -> PyObject* {
    Py_ssize_t keywords = kwnames ? PyTuple_GET_SIZE(kwnames) : 0;
    check<TypeError>(n + keywords <= 1, name, "() takes at most 1 argument but ", n + keywords,
                     " were given");
    if (keywords && PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(kwnames, 0), "dim") != 0) {
      fail<TypeError>(name, "() got an unexpected keyword argument '",
                      to_string(PyTuple_GET_ITEM(kwnames, 0)), "'");
    }
    if (n + keywords == 0 || args[0] == Py_None) {
      if (as_size) return size_object(all);
      PyRef tuple = take(PyTuple_New(static_cast<Py_ssize_t>(all.size())));
      for (size_t i = 0; i < all.size(); ++i) {
        PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(i),
                         must(PyLong_FromLongLong(all[i])));
      }
      return tuple.release();
    }
    int64_t dim;
    if (!as_int(args[0], &dim)) {
      fail<TypeError>(name, "(): argument 'dim' (position 1) must be int, not ",
                      type_name(args[0]));
    }
    dim = wrap_dim(dim, t.dim(), name);
    return must(PyLong_FromLongLong(as_size ? t.size(dim) : t.stride(dim)));
  });
}

PyObject* size(PyObject* o, PyObject* const* args, Py_ssize_t n, PyObject* kwnames) {
  const Tensor& t = tensor_of(o);
  return one_or_all("size", t, t.sizes(), args, n, kwnames, true);
}
PyObject* stride(PyObject* o, PyObject* const* args, Py_ssize_t n, PyObject* kwnames) {
  const Tensor& t = tensor_of(o);
  return one_or_all("stride", t, t.strides(), args, n, kwnames, false);
}

PyObject* dim(PyObject* o, PyObject*) { return PyLong_FromLongLong(tensor_of(o).dim()); }
PyObject* numel(PyObject* o, PyObject*) { return PyLong_FromLongLong(tensor_of(o).numel()); }
PyObject* element_size(PyObject* o, PyObject*) {
  return PyLong_FromSize_t(tensor_of(o).itemsize());
}
PyObject* storage_offset(PyObject* o, PyObject*) {
  return PyLong_FromLongLong(tensor_of(o).offset());
}
PyObject* data_ptr(PyObject* o, PyObject*) {
  const Tensor& t = tensor_of(o);
  bool none = t.numel() == 0 || t.is_meta() || t.is_placeholder();
  return PyLong_FromVoidPtr(none ? nullptr : t.data());
}
PyObject* get_device(PyObject* o, PyObject*) {
  Device d = tensor_of(o).device();
  return PyLong_FromLong(d.type == DeviceType::CPU ? -1 : d.index);
}

PyObject* is_contiguous(PyObject* o, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"memory_format", nullptr};
  PyObject* format = nullptr;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O:is_contiguous", const_cast<char**>(names),
                                   &format))
    return nullptr;
  return guarded([&]() -> PyObject* {
    MemoryFormat m = MemoryFormat::Contiguous;
    if (format && !as_memory_format(format, &m)) {
      fail<TypeError>("is_contiguous(): argument 'memory_format' must be taeda.memory_format, not ",
                      type_name(format));
    }
    check(m != MemoryFormat::Preserve,
          "is_contiguous(): preserve_format is no layout that a tensor can have");
    return PyBool_FromLong(tensor_of(o).is_contiguous(m));
  });
}

PyObject* item(PyObject* o, PyObject*) {
  return guarded([&] { return item_object(tensor_of(o)); });
}

// ---- tolist ----

template <class T> PyObject* element(const T& v) {
  if constexpr (std::is_same_v<T, bool>)
    return PyBool_FromLong(reinterpret_cast<const unsigned char&>(v) != 0);
  else if constexpr (std::is_same_v<T, uint64_t>) return PyLong_FromUnsignedLongLong(v);
  else if constexpr (std::is_integral_v<T>) return PyLong_FromLongLong(static_cast<long long>(v));
  else if constexpr (std::is_same_v<T, ComplexHalf>) return element(cfloat(v));
  else if constexpr (is_complex_type<T>) return PyComplex_FromDoubles(v.real(), v.imag());
  else return PyFloat_FromDouble(static_cast<double>(v));
}

template <class T> PyObject* nested(const Tensor& t, const char* data, size_t d) {
  if (d == t.sizes().size()) return must(element(*reinterpret_cast<const T*>(data)));
  auto n = t.sizes()[d];
  int64_t step = t.strides()[d] * static_cast<int64_t>(sizeof(T));
  PyRef list = take(PyList_New(n));
  for (int64_t i = 0; i < n; ++i)
    PyList_SET_ITEM(list.get(), i, nested<T>(t, data + i * step, d + 1));
  return list.release();
}

PyObject* tolist(PyObject* o, PyObject*) {
  return guarded([&]() -> PyObject* {
    Tensor t = tensor_of(o);
    check(!(t.flags() & kDispatch), ".tolist() is not supported for tensor subclasses, got ",
          type_name(o));
    check(!t.is_placeholder(), kPlaceholderText);
    check<NotImplemented>(!t.is_meta(), "Cannot copy out of meta tensor; no data!");
    if (t.is_off_host()) copy_into(t = empty(t.sizes(), {t.dtype(), Device{}}), tensor_of(o));
    auto list = [&](auto tag) {
      using T = typename decltype(tag)::type;
      return nested<T>(t, static_cast<const char*>(t.data()), 0);
    };
    return is_storage_only(t.dtype()) ? visit_storage_only(t.dtype(), list)
                                      : visit_all(t.dtype(), list);
  });
}

// ---- kinds ----

PyObject* is_floating_point(PyObject* o, PyObject*) {
  return PyBool_FromLong(is_floating(tensor_of(o).dtype()));
}
PyObject* is_complex_(PyObject* o, PyObject*) {
  return PyBool_FromLong(is_complex(tensor_of(o).dtype()));
}
PyObject* is_signed(PyObject* o, PyObject*) {
  return PyBool_FromLong(info(tensor_of(o).dtype()).is_signed);
}
PyObject* is_inference(PyObject* o, PyObject*) {
  return PyBool_FromLong(tensor_of(o).flags() & kInference);
}
PyObject* is_pinned_(PyObject* o, PyObject*) { return PyBool_FromLong(is_pinned(tensor_of(o))); }
PyObject* always_false(PyObject*, PyObject*) { Py_RETURN_FALSE; }

const Tensor& other_tensor(const char* name, PyObject* o) {
  if (!is_tensor(o))
    fail<TypeError>(name, "(): argument 'other' (position 1) must be Tensor, not ", type_name(o));
  return tensor_of(o);
}

PyObject* is_same_size(PyObject* o, PyObject* other) {
  return guarded([&] {
    return PyBool_FromLong(same(tensor_of(o).sizes(), other_tensor("is_same_size", other).sizes()));
  });
}
PyObject* is_set_to(PyObject* o, PyObject* other) {
  return guarded([&] {
    const Tensor &a = tensor_of(o), &b = other_tensor("is_set_to", other);
    return PyBool_FromLong(a.storage() == b.storage() && a.offset() == b.offset() &&
                           same(a.sizes(), b.sizes()) && same(a.strides(), b.strides()));
  });
}

PyObject* to_complex_number(PyObject* o, PyObject*) {
  return guarded([&] {
    check<ValueError>(tensor_of(o).numel() == 1,
                      "only one element tensors can be converted to Python scalars");
    auto c = tensor_of(o).item().to<cdouble>();
    return must(PyComplex_FromDoubles(c.real(), c.imag()));
  });
}

// ---- subclasses ----

PyTypeObject* subclass_of_tensor(const char* name, PyObject* cls) {
  if (!PyType_Check(cls) || !PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(cls), TensorType)) {
    fail<TypeError>(
        name, "(): argument 'cls' must be a subclass of Tensor, not ",
        PyType_Check(cls) ? reinterpret_cast<PyTypeObject*>(cls)->tp_name : type_name(cls));
  }
  return reinterpret_cast<PyTypeObject*>(cls);
}

PyObject* make_subclass(PyObject*, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"cls", "data", "require_grad", nullptr};
  PyObject *cls, *data;
  int requires_grad = 0;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO!|p:_make_subclass", const_cast<char**>(names),
                                   &cls, TensorType, &data, &requires_grad)) {
    return nullptr;
  }
  return guarded([&] {
    PyTypeObject* type = subclass_of_tensor("_make_subclass", cls);
    Tensor t = raw_alias(tensor_of(data));
    check(!requires_grad || is_inexact(t.dtype()), type->tp_name,
          ": Only Tensors of floating point and complex dtype can require gradients");
    if (requires_grad) set_requires_grad(t, true);
    return wrap_as(std::move(t), type);
  });
}

PyObject* as_subclass(PyObject* o, PyObject* cls) {
  return guarded([&] {
    PyTypeObject* type = subclass_of_tensor("as_subclass", cls);
    Value args[] = {tensor_of(o)};
    static const Op& alias_op = find_op("alias", 1);
    Tensor result = std::get<Tensor>(call(alias_op, args));
    if (!result.impl()->python) return wrap_as(std::move(result), type);
    PyRef given = take(wrap(std::move(result)));  // by a class with __torch_dispatch__
    check<TypeError>(PyType_IsSubtype(Py_TYPE(given.get()), type), "as_subclass(): a tensor of ",
                     type_name(given.get()),
                     ", which has __torch_dispatch__, cannot become one of ", type->tp_name);
    return given.release();
  });
}

// ---- storage ----

PyObject* resize_(PyObject* o, PyObject* args, PyObject* kwargs) {
  return guarded([&]() -> PyObject* {
    if (kwargs && PyDict_GET_SIZE(kwargs) > 0) {
      PyRef with_format = take(import_attribute("taeda._tensor.methods", "_resize"));
      PyRef all = take(PyTuple_New(PyTuple_GET_SIZE(args) + 1));
      PyTuple_SET_ITEM(all.get(), 0, Py_NewRef(o));
      for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args); ++i)
        PyTuple_SET_ITEM(all.get(), i + 1, Py_NewRef(PyTuple_GET_ITEM(args, i)));
      return must(python_call(PyObject_Call, with_format.get(), all.get(), kwargs));
    }
    Dims sizes;
    PyObject* given = PyTuple_GET_SIZE(args) == 1 ? PyTuple_GET_ITEM(args, 0) : args;
    if (!as_dims(given, &sizes) && !as_dims(args, &sizes)) {
      fail<TypeError>("resize_(): argument 'size' (position 1) must be tuple of ints, not ",
                      type_name(given));
    }
    const Tensor& t = tensor_of(o);
    check(!(modes.grad && requires_grad(t)), "cannot resize variables that require grad");
    check<NotImplemented>(!(t.flags() & kDispatch), "resize_() is not supported for tensors of a ",
                          "class with __torch_dispatch__, got ", type_name(o));
    check(!is_batched(t), "vmap: resize_() of a tensor that is vmapped over is not supported");
    check(!tangent_of(t).defined(), "cannot resize variables that has a forward grad");
    check(modes.inference || !(t.flags() & kInference), kInferenceChange);
    resize(t, sizes);
    t.bump_version();
    return Py_NewRef(o);
  });
}

PyObject* tensor_dir(PyObject* o, PyObject*) {
  return guarded([&] {
    PyRef names = take(PyObject_Dir(reinterpret_cast<PyObject*>(Py_TYPE(o))));
    if (PyObject* own = reinterpret_cast<TensorObject*>(o)->dict) {
      PyRef keys = take(PyDict_Keys(own));
      must(PyList_SetSlice(names.get(), PyList_GET_SIZE(names.get()), PyList_GET_SIZE(names.get()),
                           keys.get()));
    }
    return names.release();
  });
}

template <class F> PyCFunction fn(F* f) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(f));
}

PyMethodDef methods[] = {
    {"size", fn(size), METH_FASTCALL | METH_KEYWORDS,
     "size(dim=None)\n\nAll sizes, or that of one dimension."},
    {"stride", fn(stride), METH_FASTCALL | METH_KEYWORDS,
     "stride(dim=None)\n\nElements to step over from one index to the next, for all dimensions or "
     "for one."},
    {"dim", dim, METH_NOARGS, "How many dimensions there are."},
    {"ndimension", dim, METH_NOARGS, "The same as dim()."},
    {"numel", numel, METH_NOARGS, "How many elements there are."},
    {"nelement", numel, METH_NOARGS, "The same as numel()."},
    {"element_size", element_size, METH_NOARGS, "Bytes in one element."},
    {"storage_offset", storage_offset, METH_NOARGS,
     "Where in the storage the first element is, in elements."},
    {"data_ptr", data_ptr, METH_NOARGS, "The address of the first element; 0 where there is none."},
    {"get_device", get_device, METH_NOARGS, "The index of the device; -1 for the cpu."},
    {"is_contiguous", fn(is_contiguous), METH_VARARGS | METH_KEYWORDS,
     "is_contiguous(memory_format=contiguous_format)\n\nWhether the elements are consecutive in "
     "memory "
     "in that order."},
    {"item", item, METH_NOARGS, "The one element as a Python number."},
    {"tolist", tolist, METH_NOARGS,
     "The values as nested lists of Python numbers; a number for a zero-dim tensor."},
    {"is_floating_point", is_floating_point, METH_NOARGS,
     "Whether the dtype is real floating point."},
    {"is_complex", is_complex_, METH_NOARGS, "Whether the dtype is complex."},
    {"is_signed", is_signed, METH_NOARGS, "Whether the dtype can hold negative numbers."},
    {"is_inference", is_inference, METH_NOARGS, "Whether it was made in inference mode."},
    {"is_conj", always_false, METH_NOARGS, "False: conjugation is never left pending."},
    {"is_neg", always_false, METH_NOARGS, "False: negation is never left pending."},
    {"is_pinned", is_pinned_, METH_VARARGS,
     "is_pinned(device=None)\n\nWhether the memory is pinned, so that a device copies from it by "
     "itself."},
    {"is_same_size", is_same_size, METH_O,
     "is_same_size(other)\n\nWhether both have the same sizes."},
    {"is_set_to", is_set_to, METH_O,
     "is_set_to(other)\n\nWhether both see the same memory in the same way."},
    {"__complex__", to_complex_number, METH_NOARGS, nullptr},
    {"_make_subclass", fn(make_subclass), METH_VARARGS | METH_KEYWORDS | METH_STATIC,
     "_make_subclass(cls, data, require_grad=False)\n\nA leaf of class `cls` that shares the "
     "memory of `data`."},
    {"as_subclass", as_subclass, METH_O,
     "as_subclass(cls)\n\nThe same values as a tensor of class `cls`; gradients flow through."},
    {"resize_", fn(resize_), METH_VARARGS | METH_KEYWORDS,
     "resize_(*sizes)\n\nChange the sizes in place; the memory grows where it is too small."},
    {"__dir__", tensor_dir, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

PyObject* item_object(const Tensor& t) {
  const bool plain =
      t.numel() == 1 && !(t.flags() & (kMeta | kDispatch | kNoMemory)) && !is_batched(t);
  if (t.dtype() != DType::UInt64 || !plain) return scalar_object(t.item());
  Tensor host = t;  // Scalar has no room for 2^63 and above
  if (t.is_off_host()) copy_into(host = empty(t.sizes(), {t.dtype(), Device{}}), t);
  return must(PyLong_FromUnsignedLongLong(*static_cast<const uint64_t*>(host.data())));
}

void init_tensor_methods() { add_methods(methods); }

}  // namespace taeda::py
