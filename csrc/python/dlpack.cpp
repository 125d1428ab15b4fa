// DLPack: tensors to and from other libraries without a copy. Old capsules and version 1 are both
// written and read.
#include <cstdint>
#include <limits>
#include <optional>

#include "autograd/meta.h"
#include "base/checked.h"
#include "ops/core/tensor_ops.h"
#include "ops/pointwise/copy.h"
#include "python/autograd.h"
#include "python/interop.h"
#include "python/module.h"
#include "python/objects.h"
#include "python/tensor_slots.h"
#include "python/tensor_type.h"
#include "tensor/dispatched.h"

namespace taeda::py {
namespace {

// The structures of the DLPack specification.
struct DLDevice {
  int32_t type;
  int32_t id;
};
struct DLDataType {
  uint8_t code;
  uint8_t bits;
  uint16_t lanes;
};
struct DLTensor {
  void* data;
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t* shape;
  int64_t* strides;
  uint64_t byte_offset;
};
struct DLManagedTensor {
  DLTensor tensor;
  void* context;
  void (*deleter)(DLManagedTensor*);
};
struct DLManagedTensorVersioned {
  uint32_t major, minor;
  void* context;
  void (*deleter)(DLManagedTensorVersioned*);
  uint64_t flags;
  DLTensor tensor;
};
// Pinned memory is the CPU's, and managed memory a device's, for those who read it.
constexpr int32_t kCpu = 1, kCuda = 2, kCudaHost = 3, kCudaManaged = 13;
constexpr uint64_t kReadOnly = 1, kCopied = 2;
enum TypeCode : uint8_t {
  kInt = 0,
  kUInt = 1,
  kFloat = 2,
  kBFloat = 4,
  kComplex = 5,
  kBool = 6,
  kFloat8_e4m3fn = 10,
  kFloat8_e4m3fnuz = 11,
  kFloat8_e5m2 = 12,
  kFloat8_e5m2fnuz = 13,
  kFloat8_e8m0fnu = 14
};

constexpr const char *kName = "dltensor", *kUsed = "used_dltensor";
constexpr const char *kVersionedName = "dltensor_versioned",
                     *kVersionedUsed = "used_dltensor_versioned";

TypeCode type_code(DType d) {
  switch (d) {
    case DType::Bool: return kBool;
    case DType::BFloat16: return kBFloat;
    case DType::Float8_e4m3fn: return kFloat8_e4m3fn;
    case DType::Float8_e4m3fnuz: return kFloat8_e4m3fnuz;
    case DType::Float8_e5m2: return kFloat8_e5m2;
    case DType::Float8_e5m2fnuz: return kFloat8_e5m2fnuz;
    case DType::Float8_e8m0fnu: return kFloat8_e8m0fnu;
    default:
      return is_complex(d) ? kComplex : is_floating(d) ? kFloat : info(d).is_signed ? kInt : kUInt;
  }
}

DLDataType to_dl(DType d) {
  auto bits = static_cast<uint8_t>(itemsize(d) * 8);
  return {type_code(d), bits, 1};
}

DType from_dl(DLDataType t) {
  for (int i = 0; i < kNumDTypes; ++i) {
    DLDataType known = to_dl(static_cast<DType>(i));
    if (known.code == t.code && known.bits == t.bits && t.lanes == 1) return static_cast<DType>(i);
  }
  fail<TypeError>("from_dlpack(): taeda has no dtype for DLPack type code ", int(t.code), " with ",
                  int(t.bits), " bits and ", t.lanes, " lanes");
}

std::optional<DLDevice> to_dl(Device d) {
  if (d.type == DeviceType::CPU) return DLDevice{kCpu, 0};
  if (d.type == DeviceType::CUDA) return DLDevice{kCuda, d.index};
  return std::nullopt;
}

std::optional<Device> from_dl(DLDevice d) {
  if (d.type == kCpu || d.type == kCudaHost) return Device{};
  if ((d.type == kCuda || d.type == kCudaManaged) && d.id >= 0 && d.id <= 127)
    return Device{DeviceType::CUDA, static_cast<int8_t>(d.id)};
  return std::nullopt;
}

// What orders a device's streams: a function of taeda.cuda._interop.
void order_streams(const char* function, Device device, PyObject* stream) {
  const PyRef order = take(import_attribute("taeda.cuda._interop", function));
  take(python_call(PyObject_CallFunction, order.get(), "iO", int{device.index}, stream));
}

// ---- out ----

template <class M> struct Export {
  ExportedStorage memory;
  Dims sizes, strides;
  M managed{};
};

template <class M> M* make_export(const Tensor& t) {
  auto* e = new Export<M>{ExportedStorage(t.storage()), Dims(t.sizes()), Dims(t.strides())};
  for (size_t i = 0; i < e->sizes.size(); ++i) {
    if (e->sizes[i] < 2) e->strides[i] = 1;
  }
  DLTensor& d = e->managed.tensor;
  d.data = t.data();
  d.device = *to_dl(t.device());
  d.ndim = static_cast<int32_t>(e->sizes.size());
  d.dtype = to_dl(t.dtype());
  d.shape = e->sizes.data();
  d.strides = e->strides.data();
  e->managed.context = e;
  e->managed.deleter = [](M* m) { delete static_cast<Export<M>*>(m->context); };
  return &e->managed;
}

// The capsule's destructor: frees the tensor unless it has been consumed.
template <class M> void drop_capsule(PyObject* capsule) {
  const char* name = std::is_same_v<M, DLManagedTensor> ? kName : kVersionedName;
  if (!PyCapsule_IsValid(capsule, name)) return;
  auto* m = static_cast<M*>(PyCapsule_GetPointer(capsule, name));
  if (m->deleter) m->deleter(m);
}

PyObject* export_capsule(const Tensor& t, bool versioned, bool copied) {
  if (!versioned) {
    auto* m = make_export<DLManagedTensor>(t);
    return must(PyCapsule_New(m, kName, drop_capsule<DLManagedTensor>));
  }
  auto* m = make_export<DLManagedTensorVersioned>(t);
  m->major = 1;
  m->minor = 0;
  m->flags = copied ? kCopied : 0;
  return must(PyCapsule_New(m, kVersionedName, drop_capsule<DLManagedTensorVersioned>));
}

Device asked_for(PyObject* dl_device) {
  DLDevice d;
  if (!PyArg_ParseTuple(dl_device, "ii:__dlpack__", &d.type, &d.id)) throw PythonError();
  const std::optional<Device> device = from_dl(d);
  if (!device) {
    PyErr_Format(PyExc_BufferError, "__dlpack__(): there are no tensors on DLPack device %d",
                 int{d.type});
    throw PythonError();
  }
  require_available(*device);
  return with_index(*device);
}

PyObject* tensor_dlpack(PyObject* self, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"stream", "max_version", "dl_device", "copy", nullptr};
  PyObject *stream = Py_None, *max_version = Py_None, *dl_device = Py_None, *copy = Py_None;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|$OOOO:__dlpack__", const_cast<char**>(names),
                                   &stream, &max_version, &dl_device, &copy)) {
    return nullptr;
  }
  return guarded([&]() -> PyObject* {
    Tensor t = tensor_of(self);
    auto refuse = [](const std::string& why) {
      PyErr_SetString(PyExc_BufferError, why.c_str());
      throw PythonError();
    };
    if (t.is_placeholder())
      refuse(std::string("Can't export a tensor through DLPack: ") + kPlaceholderText);
    if (requires_grad(t)) refuse("Can't export tensors that require gradient, use tensor.detach()");
    if (!to_dl(t.device()))
      refuse("Can't export a tensor on device " + to_string(t.device()) + " through DLPack");
    const Device wanted = dl_device == Py_None ? t.device() : asked_for(dl_device);
    const bool moves = wanted != t.device();
    if (moves && copy == Py_False) {
      refuse("__dlpack__(): copy=False, but the tensor is on device " + to_string(t.device()) +
             ", and " + to_string(wanted) + " is asked for");
    }
    const bool copied = moves || copy == Py_True;
    if (copied) {
      Tensor fresh = empty(t.sizes(), {t.dtype(), wanted});
      copy_into(fresh, t);
      t = fresh;
    }
    if (wanted.type == DeviceType::CUDA) order_streams("lead", wanted, stream);
    else if (stream != Py_None && !moves)
      refuse("__dlpack__(): a stream has no meaning for a tensor on the cpu");
    bool versioned = false;
    if (max_version != Py_None) {
      PyRef major = take(PySequence_GetItem(max_version, 0));
      versioned = PyLong_AsLong(major.get()) >= 1;
    }
    return export_capsule(t, versioned, copied);
  });
}

PyObject* dlpack_device(PyObject* self, PyObject*) {
  return guarded([&]() -> PyObject* {
    const Tensor& t = tensor_of(self);
    const std::optional<DLDevice> d = to_dl(t.device());
    check<ValueError>(d.has_value(), "tensors on device ", to_string(t.device()),
                      " have no DLPack device");
    const int32_t type = d->type == kCpu && is_pinned(t) ? kCudaHost : d->type;
    return must(Py_BuildValue("(ii)", type, d->id));
  });
}

// ---- in ----

template <class M> void release_import(void* context) {
  if (!Py_IsInitialized()) return;
  AcquireGil gil;  // the other library's deleter may call Python
  auto* m = static_cast<M*>(context);
  if (m->deleter) m->deleter(m);
}

template <class M> Tensor import_capsule(PyObject* capsule, const char* name, const char* used) {
  auto* m = static_cast<M*>(PyCapsule_GetPointer(capsule, name));
  if (!m) throw PythonError();
  const DLTensor& d = m->tensor;
  const std::optional<Device> device = from_dl(d.device);
  check(device.has_value(), "from_dlpack(): there are no tensors on DLPack device type ",
        d.device.type);
  require_available(*device);
  DType dtype = from_dl(d.dtype);
  check<ValueError>(d.ndim >= 0 && static_cast<size_t>(d.ndim) <= kMostDims,
                    "from_dlpack(): a tensor cannot have ", d.ndim, " dimensions");
  check<ValueError>(d.ndim == 0 || d.shape, "from_dlpack(): the shape is missing");
  Dims sizes(std::span<const int64_t>(d.shape, static_cast<size_t>(d.ndim)));
  Dims strides = d.strides ? Dims(std::span<const int64_t>(d.strides, static_cast<size_t>(d.ndim)))
                           : contiguous_strides(sizes);
  int64_t reach = 1;
  const bool empty = numel_of(sizes) == 0;
  for (size_t i = 0; i < sizes.size(); ++i) {
    check<ValueError>(strides[i] >= 0 || sizes[i] < 2,
                      "from_dlpack(): tensors with negative strides are not supported");
    if (sizes[i] < 2) strides[i] = 1;
    reach = empty ? 0 : checked_add(reach, checked_mul(sizes[i] - 1, strides[i]));
  }
  const int64_t bytes = checked_mul(reach, static_cast<int64_t>(itemsize(dtype)));
  check<ValueError>(empty || d.data, "from_dlpack(): the data are missing");
  check<ValueError>(reinterpret_cast<uintptr_t>(d.data) + d.byte_offset <=
                            std::numeric_limits<uintptr_t>::max() - static_cast<uintptr_t>(bytes) &&
                        d.byte_offset <= uint64_t(std::numeric_limits<int64_t>::max()),
                    "from_dlpack(): a byte offset of ", d.byte_offset, " leads past all memory");
  char* data = static_cast<char*>(d.data) + d.byte_offset;
  must(PyCapsule_SetName(capsule, used));  // from here on we own the memory
  auto storage = Storage::borrow(data, static_cast<size_t>(bytes), release_import<M>, m);
  storage->device = *device;
  return from_storage(std::move(storage), sizes, strides, 0, dtype);
}

// What was taken over, on `device` and with memory of its own where `copy` asks for it.
Tensor placed(const Tensor& shared, std::optional<Device> device, PyObject* copy) {
  require_available(device.value_or(shared.device()));
  const Device to = with_index(device.value_or(shared.device()));
  const bool same = to == shared.device();
  check<ValueError>(same || copy != Py_False,
                    "from_dlpack(): copy=False, but the tensor is on device ",
                    to_string(shared.device()), " and ", to_string(to), " is asked for");
  if (same && copy != Py_True) return shared;
  return op<"_to_copy">(shared, std::optional<DType>(), device);
}

PyObject* py_from_dlpack(PyObject*, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"ext_tensor", "device", "copy", nullptr};
  PyObject *o, *device = Py_None, *copy = Py_None;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|$OO:from_dlpack", const_cast<char**>(names), &o,
                                   &device, &copy)) {
    return nullptr;
  }
  return guarded([&] {
    check<TypeError>(copy == Py_None || PyBool_Check(copy),
                     "from_dlpack(): argument 'copy' must be bool or None, not ", type_name(copy));
    std::optional<Device> to;
    if (device != Py_None) {
      check<TypeError>(as_device(device, &to.emplace()),
                       "from_dlpack(): argument 'device' must be taeda.device, str or None, not ",
                       type_name(device));
    }
    if (PyCapsule_CheckExact(o) && (to || copy != Py_None)) {
      PyErr_SetString(PyExc_AssertionError,
                      "from_dlpack(): device and copy are for tensors, not for a DLPack capsule, "
                      "which holds what its maker has put there");
      throw PythonError();
    }
    return wrap(placed(from_dlpack(o), to, copy));
  });
}

PyObject* py_to_dlpack(PyObject*, PyObject* o) {
  return guarded([&]() -> PyObject* {
    if (!is_tensor(o))
      fail<TypeError>("to_dlpack(): argument 'tensor' must be Tensor, not ", type_name(o));
    return must(python_call(PyObject_CallMethod, o, "__dlpack__", nullptr));
  });
}

template <class F> PyCFunction fn(F* f) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(f));
}

PyMethodDef methods[] = {
    {"__dlpack__", fn(tensor_dlpack), METH_VARARGS | METH_KEYWORDS,
     "__dlpack__(*, stream=None, max_version=None, dl_device=None, copy=None)\n\nA DLPack capsule "
     "that shares the memory."},
    {"__dlpack_device__", dlpack_device, METH_NOARGS, "The DLPack code and index of the device."},
    {nullptr, nullptr, 0, nullptr}};
PyMethodDef functions[] = {
    {"from_dlpack", fn(py_from_dlpack), METH_VARARGS | METH_KEYWORDS,
     "from_dlpack(ext_tensor, *, device=None, copy=None) -> Tensor\n\n"
     "A tensor that shares the memory of another library's, or of a DLPack capsule.\n"
     "`device` is where the result shall be; `copy=True` asks for memory of its own, and "
     "`copy=False`\nfor an error where that is necessary. Both are for tensors only."},
    {"to_dlpack", py_to_dlpack, METH_O,
     "to_dlpack(tensor)\n\nA DLPack capsule that shares the tensor's memory; it can be read once."},
    {nullptr, nullptr, 0, nullptr}};

// Nothing where a producer does not say.
std::optional<Device> device_of_producer(PyObject* o) {
  const PyRef place(python_call(PyObject_CallMethod, o, "__dlpack_device__", nullptr));
  DLDevice d;
  if (!place || !PyArg_ParseTuple(place.get(), "ii", &d.type, &d.id)) {
    PyErr_Clear();
    return std::nullopt;
  }
  return from_dl(d);
}

}  // namespace

Tensor from_dlpack(PyObject* o) {
  PyRef capsule;
  if (PyCapsule_CheckExact(o)) {
    capsule = PyRef::borrow(o);
  } else {
    PyRef method = take(PyObject_GetAttrString(o, "__dlpack__"));
    PyRef empty = take(PyTuple_New(0));
    PyRef kwargs = take(Py_BuildValue("{s:(ii)}", "max_version", 1, 0));
    if (const std::optional<Device> device = device_of_producer(o);
        device && device->type == DeviceType::CUDA) {
      require_available(*device);
      const PyRef number = take(import_attribute("taeda.cuda._interop", "number"));
      const PyRef stream =
          take(python_call(PyObject_CallFunction, number.get(), "i", int{device->index}));
      must(PyDict_SetItemString(kwargs.get(), "stream", stream.get()));
    }
    capsule = PyRef(python_call(PyObject_Call, method.get(), empty.get(), kwargs.get()));
    if (!capsule && PyErr_ExceptionMatches(PyExc_TypeError)) {  // a producer older than version 1
      PyErr_Clear();
      must(PyDict_DelItemString(kwargs.get(), "max_version"));
      capsule = PyRef(python_call(PyObject_Call, method.get(), empty.get(), kwargs.get()));
    }
    if (!capsule) throw PythonError();
  }
  if (PyCapsule_IsValid(capsule.get(), kVersionedName)) {
    auto* m =
        static_cast<DLManagedTensorVersioned*>(PyCapsule_GetPointer(capsule.get(), kVersionedName));
    if (!m) throw PythonError();
    check(m->major == 1, "from_dlpack(): DLPack version ", m->major, " is not supported");
    if (m->flags & kReadOnly) {
      must(PyErr_WarnEx(PyExc_UserWarning,
                        "The memory given is not writable, and tensors always are.", 1));
    }
    return import_capsule<DLManagedTensorVersioned>(capsule.get(), kVersionedName, kVersionedUsed);
  }
  check(PyCapsule_IsValid(capsule.get(), kName),
        "from_dlpack(): the capsule is none of DLPack's, or it was consumed already (each can be "
        "read once)");
  return import_capsule<DLManagedTensor>(capsule.get(), kName, kUsed);
}

void init_dlpack(PyObject* module) {
  must(PyModule_AddFunctions(module, functions));
  add_methods(methods);
}

}  // namespace taeda::py
