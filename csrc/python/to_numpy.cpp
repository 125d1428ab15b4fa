// Tensors as NumPy arrays that share their memory.
#include <array>

#include "python/module.h"
#include "python/tensor_type.h"
#include "tensor/dispatched.h"

namespace taeda::py {
namespace {

// The base object of such an array: a tensor's memory as a buffer.
struct Memory {
  PyObject_HEAD void* data;
  Py_ssize_t nbytes;
  ExportedStorage storage;
};
PyTypeObject* MemoryType;

int get_buffer(PyObject* o, Py_buffer* view, int flags) {
  auto* m = reinterpret_cast<Memory*>(o);
  return PyBuffer_FillInfo(view, o, m->data, m->nbytes, 0, flags);
}

void dealloc(PyObject* o) {
  PyTypeObject* type = Py_TYPE(o);
  reinterpret_cast<Memory*>(o)->storage.~ExportedStorage();
  type->tp_free(o);
  Py_DECREF(type);
}

// The memory from a tensor's first element to the end of its last one.
PyRef memory_of(const Tensor& t) {
  int64_t reach = 1;
  for (size_t i = 0; i < t.sizes().size(); ++i) reach += (t.sizes()[i] - 1) * t.strides()[i];
  PyRef o = take(MemoryType->tp_alloc(MemoryType, 0));
  auto* m = reinterpret_cast<Memory*>(o.get());
  m->data = t.data();
  m->nbytes = static_cast<Py_ssize_t>(static_cast<size_t>(reach) * t.itemsize());
  new (&m->storage) ExportedStorage(t.storage());
  return o;
}

const char* array_type(DType d) {
  switch (d) {
    case DType::Bool: return "?";
    case DType::UInt8: return "u1";
    case DType::Int8: return "i1";
    case DType::Int16: return "i2";
    case DType::Int32: return "i4";
    case DType::Int64: return "i8";
    case DType::Float16: return "f2";
    case DType::Float32: return "f4";
    case DType::Float64: return "f8";
    case DType::UInt16: return "u2";
    case DType::UInt32: return "u4";
    case DType::UInt64: return "u8";
    case DType::Complex64: return "c8";
    case DType::Complex128: return "c16";
    default: fail<TypeError>("Got unsupported ScalarType ", name(d));
  }
}

// numpy.ndarray and the numpy.dtype of `d`, looked up once. Borrowed.
PyObject* ndarray_type() {
  static PyObject* type = nullptr;
  if (!type)
    type = must(PyObject_GetAttrString(take(PyImport_ImportModule("numpy")).get(), "ndarray"));
  return type;
}
PyObject* dtype_for(DType d) {
  static std::array<PyObject*, 32> known{};
  PyObject*& o = known.at(static_cast<size_t>(d));
  if (!o) {
    const char* type = array_type(d);
    o = must(python_call(PyObject_CallMethod, take(PyImport_ImportModule("numpy")).get(), "dtype",
                         "s", type));
  }
  return o;
}

PyRef tuple_of(DimsRef dims, int64_t factor) {
  PyRef t = take(PyTuple_New(static_cast<Py_ssize_t>(dims.size())));
  for (size_t i = 0; i < dims.size(); ++i)
    PyTuple_SET_ITEM(t.get(), static_cast<Py_ssize_t>(i),
                     must(PyLong_FromLongLong(dims[i] * factor)));
  return t;
}

PyObject* to_numpy(PyObject*, PyObject* o) {
  return guarded([&] {
    check<TypeError>(is_tensor(o), "_to_numpy() expected a Tensor, but got ", type_name(o));
    const Tensor& t = tensor_of(o);
    check(!(t.flags() & kDispatch), ".numpy() is not supported for tensor subclasses, got ",
          type_name(o));
    check(!t.is_placeholder(), kPlaceholderText);
    check<TypeError>(!t.is_meta(),
                     "can't convert meta device type tensor to numpy: it has no data");
    check<TypeError>(!t.is_off_host(), "can't convert ", t.device(),
                     " device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host "
                     "memory first.");
    PyObject* dtype = dtype_for(t.dtype());
    PyRef sizes = tuple_of(t.sizes(), 1);
    if (t.numel() == 0) {
      PyObject* args[] = {sizes.get(), dtype};
      return must(python_call(PyObject_Vectorcall, ndarray_type(), args, 2, nullptr));
    }
    PyRef memory = memory_of(t), first = take(PyLong_FromLong(0));
    PyRef strides = tuple_of(t.strides(), static_cast<int64_t>(t.itemsize()));
    PyObject* args[] = {sizes.get(), dtype, memory.get(), first.get(), strides.get()};
    return must(python_call(PyObject_Vectorcall, ndarray_type(), args, 5, nullptr));
  });
}

PyMethodDef functions[] = {{"_to_numpy", to_numpy, METH_O,
                            "_to_numpy(tensor)\n\nAn array that shares the tensor's memory, and "
                            "keeps it alive and where it is."},
                           {nullptr, nullptr, 0, nullptr}};

}  // namespace

void init_to_numpy(PyObject* module) {
  PyType_Slot slots[] = {{Py_tp_dealloc, reinterpret_cast<void*>(dealloc)},
                         {Py_bf_getbuffer, reinterpret_cast<void*>(get_buffer)},
                         {0, nullptr}};
  PyType_Spec spec{"taeda._C._Memory", sizeof(Memory), 0,
                   Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};
  MemoryType = reinterpret_cast<PyTypeObject*>(must(PyType_FromSpec(&spec)));
  must(PyModule_AddFunctions(module, functions));
}

}  // namespace taeda::py
