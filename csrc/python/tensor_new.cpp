// Tensors from Python data: tensor(), as_tensor(), asarray() and the legacy constructor.
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>

#include "autograd/meta.h"
#include "ops/core/tensor_ops.h"
#include "ops/pointwise/copy.h"
#include "python/arguments.h"
#include "python/interop.h"
#include "python/module.h"
#include "python/objects.h"
#include "python/op_callable.h"
#include "python/overrides.h"
#include "python/tensor_slots.h"
#include "python/tensor_type.h"

namespace taeda::py {
namespace {

// ---- inspecting the data ----

bool is_number(PyObject* o) {
  return PyFloat_Check(o) || PyLong_Check(o) || PyComplex_Check(o) || is_numpy_scalar(o);
}

DType numpy_scalar_dtype(PyObject* o) {
  const char* type = Py_TYPE(o)->tp_name + 6;
  if (std::strncmp(type, "bool", 4) == 0) return DType::Bool;
  for (int i = 0; i < kNumDTypes; ++i) {
    if (name(static_cast<DType>(i)) == type) return static_cast<DType>(i);
  }
  return PyIndex_Check(o)               ? DType::Int64
         : std::strstr(type, "complex") ? DType::Complex128
                                        : DType::Float64;
}

[[noreturn]] void no_sequence(PyObject* o) {
  if (PyUnicode_Check(o) || PyBytes_Check(o))
    fail<TypeError>("new(): invalid data type '", type_name(o), "'");
  fail("Could not infer dtype of ", type_name(o));
}

bool is_text(PyObject* o) { return PyUnicode_Check(o) || PyBytes_Check(o); }
bool is_sequence(PyObject* o) { return !is_text(o) && !PyDict_Check(o) && PySequence_Check(o); }

// What has only __getitem__ is read up to its length: it need never raise an IndexError.
PyRef as_fast(PyObject* o) {
  if (PyList_Check(o) || PyTuple_Check(o) || Py_TYPE(o)->tp_iter)
    return take(PySequence_Fast(o, "not a sequence"));
  const Py_ssize_t n = PySequence_Size(o);
  must(static_cast<int>(n < 0 ? -1 : 0));
  PyRef items = take(PyTuple_New(n));
  for (Py_ssize_t i = 0; i < n; ++i)
    PyTuple_SET_ITEM(items.get(), i, must(PySequence_GetItem(o, i)));
  return items;
}

// A new reference to item i of a list or tuple of n items: converting an item may run code that
// changes the list.
PyRef item_of(const PyRef& fast, Py_ssize_t i, Py_ssize_t n) {
  check(PySequence_Fast_GET_SIZE(fast.get()) == n,
        "the data changed size while a tensor was made of it");
  return PyRef(Py_NewRef(PySequence_Fast_GET_ITEM(fast.get(), i)));
}

// The sizes, taken from the first item of each nesting level.
void measure(PyObject* o, Dims& sizes) {
  if (is_number(o)) return;
  if (is_tensor(o)) {
    check<TypeError>(tensor_of(o).numel() == 1,
                     "only one element tensors can be converted to Python scalars");
    return;
  }
  if (is_ndarray(o)) {
    Tensor t = share_array(o, false);
    for (int64_t s : t.sizes()) sizes.push_back(s);
    return;
  }
  if (!is_sequence(o)) return;
  const Py_ssize_t length = PySequence_Size(o);  // iterating may give more or fewer: an error
  if (length < 0) throw PythonError();
  sizes.push_back(length);
  check<ValueError>(sizes.size() < 128, "too many dimensions '", type_name(o), "'");
  if (!length) return;
  PyRef fast = as_fast(o);
  const Py_ssize_t n = PySequence_Fast_GET_SIZE(fast.get());
  if (n) measure(item_of(fast, 0, n).get(), sizes);
}

// The dtype to which all items promote together. `levels`: the remaining levels of nesting; deeper
// data are ragged (or contain themselves), which is an error later.
void infer(PyObject* o, size_t levels, std::optional<DType>& dtype) {
  auto meet = [&](DType d) { dtype = dtype ? promote(*dtype, d) : d; };
  if (PyFloat_CheckExact(o)) meet(default_dtype());
  else if (PyBool_Check(o)) meet(DType::Bool);
  else if (PyLong_Check(o)) meet(DType::Int64);
  else if (is_numpy_scalar(o)) meet(numpy_scalar_dtype(o));
  else if (PyFloat_Check(o)) meet(default_dtype());
  else if (PyComplex_Check(o)) meet(to_complex(default_dtype()));
  else if (is_tensor(o)) meet(tensor_of(o).dtype());
  else if (is_ndarray(o)) meet(share_array(o, false).dtype());
  else if (is_sequence(o)) {
    PyRef fast = as_fast(o);
    Py_ssize_t n = PySequence_Fast_GET_SIZE(fast.get());
    if (levels == 0) return;
    for (Py_ssize_t i = 0; i < n; ++i) infer(item_of(fast, i, n).get(), levels - 1, dtype);
  } else {
    no_sequence(o);
  }
}

// ---- filling ----

template <class T> [[noreturn]] void overflows() {
  fail("value cannot be converted to type ", name(dtype_of<T>), " without overflow");
}

template <class T> T element(const Scalar& s) {
  if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
    using L = std::numeric_limits<T>;
    if (s.is_float()) {
      double d = s.to_double();
      if (!(d >= static_cast<double>(L::lowest()) && d <= static_cast<double>(L::max())))
        overflows<T>();
    } else if (!s.is_complex()) {
      int64_t i = s.to_int();
      // Unsigned types accept small negative numbers, which wrap around.
      constexpr int64_t low = L::is_signed || sizeof(T) == 8
                                  ? std::numeric_limits<int64_t>::lowest() >> (64 - 8 * sizeof(T))
                                  : -static_cast<int64_t>(L::max());
      if (i < low || (sizeof(T) < 8 && i > static_cast<int64_t>(L::max()))) overflows<T>();
    }
  }
  if constexpr (!is_complex_type<T>) {
    check<TypeError>(!s.is_complex(), "must be real number, not complex");
  }
  return s.to<T>();
}

template <class T> T element(PyObject* o) {
  if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double>) {
    if (PyFloat_CheckExact(o)) return static_cast<T>(PyFloat_AS_DOUBLE(o));
  }
  if constexpr (std::is_same_v<T, uint64_t>) {
    if (PyLong_Check(o)) {
      const T v = PyLong_AsUnsignedLongLong(o);
      if (v == static_cast<T>(-1) && PyErr_Occurred()) throw PythonError();
      return v;
    }
  }
  if (is_tensor(o)) {
    check<TypeError>(tensor_of(o).numel() == 1,
                     "only one element tensors can be converted to Python scalars");
    return element<T>(tensor_of(o).item());
  }
  Scalar s;
  bool is_scalar = false;
  try {
    is_scalar = as_scalar(o, &s);
  } catch (PythonError&) {
    if (!PyErr_ExceptionMatches(PyExc_OverflowError)) throw;
    PyErr_Clear();
    fail<ValueError>("Overflow when unpacking long long");
  }
  if (!is_scalar) {
    if (is_text(o)) fail<TypeError>("new(): invalid data type '", type_name(o), "'");
    if (is_sequence(o))
      fail<TypeError>("'", type_name(o),
                      "' object cannot be interpreted as a number: the nesting is ragged");
    fail<TypeError>("must be real number, not ", type_name(o));
  }
  return element<T>(s);
}

struct Target {
  const Tensor& tensor;
  Dims block;  // number of elements in an item of each nesting level
};

template <class T> void fill(const Target& target, size_t level, T* data, PyObject* o) {
  const DimsRef sizes = target.tensor.sizes();
  if (level == sizes.size()) {
    *data = element<T>(o);
    return;
  }
  if (is_ndarray(o)) {
    Tensor from = share_array(o, false);
    DimsRef rest = sizes.subspan(level);
    check<ValueError>(same(from.sizes(), rest), "expected an array of shape ",
                      taeda::to_string(rest), " at dim ", level, " (got ",
                      taeda::to_string(from.sizes()), ")");
    const Tensor& t = target.tensor;
    Tensor region = from_storage(t.storage(), rest, t.strides().subspan(level),
                                 data - t.data_as<T>(), t.dtype());
    copy_into(region, from);
    return;
  }
  check<TypeError>(is_sequence(o), "not a sequence");
  PyRef fast = as_fast(o);
  const Py_ssize_t n = PySequence_Fast_GET_SIZE(fast.get());
  check<ValueError>(n == sizes[level], "expected sequence of length ", sizes[level], " at dim ",
                    level, " (got ", n, ")");
  if (level + 1 == sizes.size()) {
    for (Py_ssize_t i = 0; i < n; ++i) data[i] = element<T>(item_of(fast, i, n).get());
    return;
  }
  const int64_t step = target.block[level];
  for (Py_ssize_t i = 0; i < n; ++i)
    fill(target, level + 1, data + i * step, item_of(fast, i, n).get());
}

constexpr int64_t kMany =
    1 << 20;  // above this many elements, check that they fit into memory first

Tensor build(PyObject* data, std::optional<DType> dtype) {
  if (is_text(data)) no_sequence(data);
  if (!is_number(data) && !is_sequence(data) && !is_tensor(data)) no_sequence(data);
  Dims sizes;
  measure(data, sizes);
  if (!dtype) {
    // Lists that contain one list many times may have more elements than memory can hold: fail
    // before visiting all of them.
    if (numel_of(sizes) > kMany) empty(sizes, {DType::UInt8, {}});
    infer(data, sizes.size(), dtype);
    if (!dtype) dtype = default_dtype();
  }
  Tensor t = empty(sizes, {*dtype, {}});
  if (t.numel() == 0 && !sizes.empty() && sizes[0] == 0) return t;
  Target target{t, contiguous_strides(sizes)};
  auto fill_all = [&](auto tag) {
    using T = typename decltype(tag)::type;
    fill<T>(target, 0, t.data_as<T>(), data);
  };
  if (is_storage_only(*dtype)) visit_storage_only(*dtype, fill_all);
  else visit_all(*dtype, fill_all);
  return t;
}

// `t` in another dtype or on another device; itself if neither differs and `copy` is false.
Tensor moved(const Tensor& t, std::optional<DType> dtype, std::optional<Device> device, bool copy) {
  const bool same_place = !device || with_index(*device) == t.device();
  if (!copy && same_place && (!dtype || *dtype == t.dtype())) return t;
  if (device) require_available(*device);
  return op<"_to_copy">(t, dtype, device, std::optional<MemoryFormat>());
}

bool shares_dlpack(PyObject* o) {
  return !is_tensor(o) &&
         PyObject_HasAttrString(reinterpret_cast<PyObject*>(Py_TYPE(o)), "__dlpack__");
}

struct Wanted {
  std::optional<DType> dtype;
  std::optional<Device> device;
  bool requires_grad = false;
  bool pin_memory = false;
};

Wanted parse_wanted(const char* function, PyObject* dtype, PyObject* device,
                    PyObject* requires_grad, PyObject* pin) {
  Wanted w;
  if (dtype && dtype != Py_None) {
    DType d;
    if (!as_dtype(dtype, &d))
      fail<TypeError>(function, "(): argument 'dtype' must be taeda.dtype, not ", type_name(dtype));
    w.dtype = d;
  }
  if (device && device != Py_None) {
    Device d;
    if (!as_device(device, &d))
      fail<TypeError>(function, "(): argument 'device' must be taeda.device, not ",
                      type_name(device));
    w.device = d;
  }
  if (requires_grad) {
    if (!PyBool_Check(requires_grad)) {
      fail<TypeError>(function, "(): argument 'requires_grad' must be bool, not ",
                      type_name(requires_grad));
    }
    w.requires_grad = requires_grad == Py_True;
  }
  w.pin_memory = pin && PyObject_IsTrue(pin) == 1;
  return w;
}

PyObject* finish(Tensor t, const Wanted& w) {
  if (w.pin_memory) t = pinned_copy(t);
  if (w.requires_grad) {
    check(is_inexact(t.dtype()),
          "requires_grad=True: Only Tensors of floating point and complex dtype can require "
          "gradients");
    set_requires_grad(t, true);
  }
  return wrap(std::move(t));
}

// The values of `data` as a new tensor.
Tensor copied(PyObject* data, Wanted& w) {
  if (is_tensor(data)) {
    GradMode off(false);
    return moved(tensor_of(data), w.dtype, w.device, true);
  }
  if (!w.device && has_current_device()) w.device = current_device();
  if (is_ndarray(data)) return moved(share_array(data, false), w.dtype, w.device, true);
  if (shares_dlpack(data) && !is_number(data))
    return moved(from_dlpack(data), w.dtype, w.device, true);
  if (has_cuda_array(data)) return moved(share_cuda_array(data), w.dtype, w.device, true);
  return moved(build(data, w.dtype), w.dtype, w.device, false);
}

PyObject* py_tensor(PyObject*, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"data", "dtype", "device", "requires_grad", "pin_memory", nullptr};
  PyObject *data, *dtype = nullptr, *device = nullptr, *requires_grad = nullptr, *pin = nullptr;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|$OOOO:tensor", const_cast<char**>(names), &data,
                                   &dtype, &device, &requires_grad, &pin)) {
    return nullptr;
  }
  return guarded([&] {
    if (PyObject* made = ask_modes("tensor", args, kwargs)) return made;
    Wanted w = parse_wanted("tensor", dtype, device, requires_grad, pin);
    if (is_tensor(data)) {
      must(PyErr_WarnEx(PyExc_UserWarning,
                        "To copy construct from a tensor, it is recommended to use "
                        "sourceTensor.detach().clone() or "
                        "sourceTensor.detach().clone().requires_grad_(True), rather than "
                        "taeda.tensor(sourceTensor).",
                        1));
    }
    return finish(copied(data, w), w);
  });
}

PyObject* as_tensor(PyObject*, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"data", "dtype", "device", nullptr};
  PyObject *data, *dtype = nullptr, *device = nullptr;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|OO:as_tensor", const_cast<char**>(names), &data,
                                   &dtype, &device)) {
    return nullptr;
  }
  return guarded([&]() -> PyObject* {
    if (PyObject* made = ask_modes("as_tensor", args, kwargs)) return made;
    Wanted w = parse_wanted("as_tensor", dtype, device, nullptr, nullptr);
    if (is_tensor(data)) return wrap(moved(tensor_of(data), w.dtype, w.device, false));
    if (is_ndarray(data)) return wrap(moved(share_array(data, true), w.dtype, w.device, false));
    if (shares_dlpack(data) && !is_number(data))
      return wrap(moved(from_dlpack(data), w.dtype, w.device, false));
    if (has_cuda_array(data)) return wrap(moved(share_cuda_array(data), w.dtype, w.device, false));
    return wrap(copied(data, w));
  });
}

PyObject* asarray(PyObject*, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"obj", "dtype", "device", "copy", "requires_grad", nullptr};
  PyObject *data, *dtype = nullptr, *device = nullptr, *copy = Py_None, *requires_grad = nullptr;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|$OOOO:asarray", const_cast<char**>(names),
                                   &data, &dtype, &device, &copy, &requires_grad)) {
    return nullptr;
  }
  return guarded([&]() -> PyObject* {
    if (PyObject* made = ask_modes("asarray", args, kwargs)) return made;
    Wanted w = parse_wanted("asarray", dtype, device, requires_grad, nullptr);
    Tensor shared;
    if (is_tensor(data)) shared = tensor_of(data);
    else if (is_ndarray(data)) shared = share_array(data, copy != Py_True);
    else if (shares_dlpack(data) || PyCapsule_CheckExact(data)) shared = from_dlpack(data);
    else if (has_cuda_array(data)) shared = share_cuda_array(data);
    else if (is_untyped_storage(data) && PyObject_Size(data) == 0)
      shared = empty(Dims{0}, {w.dtype.value_or(default_dtype()), {}});
    else if (PyObject_CheckBuffer(data) && !is_numpy_scalar(data))
      shared = share_buffer(data, w.dtype.value_or(default_dtype()), -1, 0);
    if (!shared.defined()) {
      check<ValueError>(copy != Py_False, "can't alias arbitrary sequence into a tensor.");
      return finish(copied(data, w), w);
    }
    Tensor t = moved(shared, w.dtype, w.device, copy == Py_True);
    check<ValueError>(copy != Py_False || t.storage() == shared.storage(),
                      "can't alias tensor with another dtype or on another device.");
    if (is_tensor(data) && w.requires_grad != taeda::requires_grad(t)) t = alias(t);
    return finish(std::move(t), w);
  });
}

// ---- Tensor(...) ----

Tensor legacy(const char* name, PyObject* args, PyObject* kwargs, DType dtype) {
  Py_ssize_t n = PyTuple_GET_SIZE(args);
  PyObject* size = nullptr;
  if (kwargs) {
    PyObject *key, *value;
    Py_ssize_t at = 0;
    while (PyDict_Next(kwargs, &at, &key, &value)) {
      Device d;
      if (PyUnicode_CompareWithASCIIString(key, "size") == 0) {
        size = value;
      } else if (PyUnicode_CompareWithASCIIString(key, "device") == 0 &&
                 (value == Py_None || as_device(value, &d))) {
        check(
            d.type == DeviceType::CPU, name,
            "(): legacy constructors make tensors on the cpu; use taeda.tensor(data, device=...)");
      } else {
        fail<TypeError>(name, "() got an unexpected keyword argument '", to_string(key), "'");
      }
    }
  }
  Dims sizes;
  Options options{dtype, {}};
  if (size && as_dims(size, &sizes)) return empty(sizes, options);
  if (n == 0) return empty(Dims{0}, options);
  PyObject* first = PyTuple_GET_ITEM(args, 0);
  if (n == 1) {
    if (Py_TYPE(first) == SizeType && as_dims(first, &sizes)) return empty(sizes, options);
    if (is_tensor(first)) return alias(tensor_of(first));
    if (is_ndarray(first)) return moved(share_array(first, false), dtype, {}, true);
    if (is_sequence(first) || is_text(first)) return build(first, dtype);
  }
  if (!as_dims(args, &sizes)) {
    fail<TypeError>(name, "(): data must be a sequence (got ", type_name(first), ")");
  }
  return empty(sizes, options);
}

// _legacy_tensor(dtype, *args): the constructor of FloatTensor and the like.
PyObject* legacy_tensor(PyObject*, PyObject* args) {
  return guarded([&] {
    DType dtype;
    if (PyTuple_GET_SIZE(args) == 0 || !as_dtype(PyTuple_GET_ITEM(args, 0), &dtype))
      fail<TypeError>("_legacy_tensor() needs a dtype");
    PyRef rest = take(PyTuple_GetSlice(args, 1, PyTuple_GET_SIZE(args)));
    return wrap(legacy("new", rest.get(), nullptr, dtype));
  });
}

template <class F> PyCFunction fn(F* f) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(f));
}

PyMethodDef functions[] = {
    {"tensor", fn(py_tensor), METH_VARARGS | METH_KEYWORDS,
     "tensor(data, *, dtype=None, device=None, requires_grad=False, pin_memory=False) -> Tensor\n\n"
     "A new tensor with the values of `data`: a number, nested sequences, a NumPy array, or a "
     "tensor.\n"
     "Without `dtype`, ints give int64, bools bool, floats the default dtype, and mixtures what "
     "these promote to."},
    {"as_tensor", fn(as_tensor), METH_VARARGS | METH_KEYWORDS,
     "as_tensor(data, dtype=None, device=None) -> Tensor\n\n"
     "`data` as a tensor, sharing its memory (and its history, for a tensor) where dtype and "
     "device allow."},
    {"asarray", fn(asarray), METH_VARARGS | METH_KEYWORDS,
     "asarray(obj, *, dtype=None, device=None, copy=None, requires_grad=False) -> Tensor\n\n"
     "A tensor of anything: tensors, arrays, DLPack and buffers are shared (copy=True: never, "
     "copy=False: always), sequences\n"
     "are copied."},
    {"_legacy_tensor", legacy_tensor, METH_VARARGS, nullptr},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

Tensor tensor_from_data(PyObject* data, std::optional<DType> dtype) {
  if (is_ndarray(data)) return moved(share_array(data, false), dtype, {}, true);
  return build(data, dtype);
}

Tensor zero_dim(const Scalar& s, DType dtype) {
  Tensor t = empty({}, {dtype, {}});
  auto set = [&](auto tag) {
    using T = typename decltype(tag)::type;
    *t.data_as<T>() = element<T>(s);
  };
  if (is_storage_only(dtype)) visit_storage_only(dtype, set);
  else visit_all(dtype, set);
  return t;
}

PyObject* legacy_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  return guarded([&] { return wrap_as(legacy("Tensor", args, kwargs, default_dtype()), type); });
}

void init_creation(PyObject* module) { must(PyModule_AddFunctions(module, functions)); }

}  // namespace taeda::py
