// NumPy arrays and other buffers as tensors, through the buffer protocol; NumPy itself is never
// imported here.
#include <cstring>

#include "python/interop.h"
#include "python/module.h"
#include "python/objects.h"
#include "python/tensor_type.h"

namespace taeda::py {
namespace {

struct Buffer {
  Py_buffer view{};
  ~Buffer() {
    if (view.obj) PyBuffer_Release(&view);
  }
};

// Called when the last tensor on the memory is destroyed, on any thread.
void release_buffer(void* context) {
  if (!Py_IsInitialized()) return;
  AcquireGil gil;
  delete static_cast<Buffer*>(context);
}

constexpr const char* kReadOnly =
    "The memory given is not writable, and tensors always are: writing to the tensor writes to "
    "that memory all the same. "
    "Copy it first if it must not change.";

[[noreturn]] void unsupported(PyObject* array) {
  PyErr_Clear();
  PyRef dtype = take(PyObject_GetAttrString(array, "dtype"));
  PyRef type = take(PyObject_GetAttrString(dtype.get(), "type"));
  PyRef name = take(PyObject_GetAttrString(type.get(), "__name__"));
  fail<TypeError>("can't convert np.ndarray of type numpy.", to_string(name.get()),
                  ". The only supported types are: float64, float32, float16, complex64, "
                  "complex128, int64, int32, "
                  "int16, int8, uint64, uint32, uint16, uint8, and bool.");
}

bool parse_format(const char* format, Py_ssize_t itemsize, DType* d) {
  if (!format) format = "B";
  if (*format == '@' || *format == '=' || *format == '<') ++format;
  check<ValueError>(*format != '>' && *format != '!',
                    "given numpy array has byte order different from the native byte order. "
                    "Conversion between byte orders "
                    "is currently not supported.");
  bool complex = *format == 'Z';
  if (complex) ++format;
  if (!*format || format[1]) return false;
  switch (*format) {
    case '?': *d = DType::Bool; return !complex;
    case 'B': *d = DType::UInt8; return !complex;
    case 'b':
    case 'h':
    case 'i':
    case 'l':
    case 'q':
      *d = itemsize == 1   ? DType::Int8
           : itemsize == 2 ? DType::Int16
           : itemsize == 4 ? DType::Int32
                           : DType::Int64;
      return !complex;
    case 'H':
    case 'I':
    case 'L':
    case 'Q':
      *d = itemsize == 2 ? DType::UInt16 : itemsize == 4 ? DType::UInt32 : DType::UInt64;
      return !complex;
    case 'e': *d = DType::Float16; return !complex;
    case 'f': *d = complex ? DType::Complex64 : DType::Float32; return true;
    case 'd': *d = complex ? DType::Complex128 : DType::Float64; return true;
    default: return false;
  }
}

PyObject* from_numpy(PyObject*, PyObject* array) {
  return guarded([&] {
    if (!is_ndarray(array)) fail<TypeError>("expected np.ndarray (got ", type_name(array), ")");
    return wrap(share_array(array, true));
  });
}

PyObject* frombuffer(PyObject*, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"buffer", "dtype", "count", "offset", "requires_grad", nullptr};
  PyObject *buffer, *dtype = nullptr;
  long long count = -1, offset = 0;
  int requires_grad = 0;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|$OLLp:frombuffer", const_cast<char**>(names),
                                   &buffer, &dtype, &count, &offset, &requires_grad)) {
    return nullptr;
  }
  return guarded([&] {
    DType d;
    check<TypeError>(dtype, "frombuffer() missing 1 required keyword argument: \"dtype\"");
    if (!as_dtype(dtype, &d))
      fail<TypeError>("frombuffer(): argument 'dtype' must be taeda.dtype, not ", type_name(dtype));
    Tensor t = share_buffer(buffer, d, count, offset);
    check(!requires_grad || is_inexact(d),
          "frombuffer(): Only Tensors of floating point and complex dtype can require gradients");
    if (requires_grad) t.impl()->flags |= kRequiresGrad;
    return wrap(t);
  });
}

template <class F> PyCFunction fn(F* f) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(f));
}

PyMethodDef functions[] = {
    {"from_numpy", from_numpy, METH_O,
     "from_numpy(ndarray) -> Tensor\n\nA tensor that shares the array's memory: changes of one are "
     "seen in the other."},
    {"frombuffer", fn(frombuffer), METH_VARARGS | METH_KEYWORDS,
     "frombuffer(buffer, *, dtype, count=-1, offset=0, requires_grad=False) -> Tensor\n\n"
     "A one-dimensional tensor that shares the memory of an object with the buffer protocol.\n"
     "`count` elements (-1: all) from `offset` bytes on."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

bool is_ndarray(PyObject* o) {
  for (PyTypeObject* t = Py_TYPE(o); t; t = t->tp_base) {
    if (std::strcmp(t->tp_name, "numpy.ndarray") == 0) return true;
  }
  return false;
}

Tensor share_array(PyObject* array, bool warn) {
  auto buffer = std::make_unique<Buffer>();
  Py_buffer& view = buffer->view;
  if (PyObject_GetBuffer(array, &view, PyBUF_STRIDES | PyBUF_FORMAT) < 0) unsupported(array);
  DType dtype;
  if (!parse_format(view.format, view.itemsize, &dtype)) unsupported(array);
  Dims sizes, strides;
  for (int i = 0; i < view.ndim; ++i) {
    Py_ssize_t stride = view.strides ? view.strides[i] : view.itemsize;
    check<ValueError>(stride >= 0 || view.shape[i] <= 1,
                      "At least one stride in the given numpy array is negative, and tensors with "
                      "negative strides are "
                      "not currently supported. (You can probably work around this by making a "
                      "copy of your array with "
                      "array.copy().) ");
    check<ValueError>(stride % view.itemsize == 0 || view.shape[i] <= 1,
                      "given numpy array strides not a multiple of the element byte size. Copy the "
                      "numpy array to "
                      "reallocate the memory.");
    sizes.push_back(view.shape[i]);
    strides.push_back(view.shape[i] <= 1 ? 1 : stride / view.itemsize);
  }
  if (warn && view.readonly) must(PyErr_WarnEx(PyExc_UserWarning, kReadOnly, 1));
  int64_t reach = 1;
  for (size_t i = 0; i < sizes.size(); ++i)
    reach = sizes[i] == 0 || reach == 0 ? 0 : reach + (sizes[i] - 1) * strides[i];
  // Dimensions of size 1 get the strides that a contiguous tensor has.
  Dims dense = contiguous_strides(sizes);
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] <= 1) strides[i] = dense[i];
  }
  void* data = view.buf;
  auto storage = Storage::borrow(data, static_cast<size_t>(reach * view.itemsize), release_buffer,
                                 buffer.release());
  return from_storage(std::move(storage), sizes, strides, 0, dtype);
}

Tensor share_buffer(PyObject* o, DType dtype, int64_t count, int64_t offset) {
  auto buffer = std::make_unique<Buffer>();
  Py_buffer& view = buffer->view;
  check<ValueError>(PyObject_CheckBuffer(o), "object does not implement Python buffer protocol.");
  if (PyObject_GetBuffer(o, &view, PyBUF_WRITABLE) < 0) {
    PyErr_Clear();
    must(PyObject_GetBuffer(o, &view, PyBUF_SIMPLE));
    must(PyErr_WarnEx(PyExc_UserWarning, kReadOnly, 1));
  }
  const int64_t length = view.len, size = static_cast<int64_t>(itemsize(dtype));
  check<ValueError>(length > 0 && count != 0, "both buffer length (", length, ") and count (",
                    count, ") must not be 0");
  check<ValueError>(offset >= 0 && offset < length, "offset (", offset,
                    " bytes) must be non-negative and no greater than buffer length (", length,
                    " bytes) minus 1");
  if (count < 0) {
    check<ValueError>((length - offset) % size == 0, "buffer length (", length,
                      " bytes) after offset (", offset,
                      " bytes) must be a multiple of element size (", size, ")");
    count = (length - offset) / size;
  }
  check<ValueError>(count <= (length - offset) / size, "requested buffer length (", count, " * ",
                    size, " bytes) after offset (", offset,
                    " bytes) must not be greater than actual buffer length (", length, " bytes)");
  char* data = static_cast<char*>(view.buf) + offset;
  auto storage =
      Storage::borrow(data, static_cast<size_t>(count * size), release_buffer, buffer.release());
  return from_storage(std::move(storage), Dims{count}, Dims{1}, 0, dtype);
}

void init_interop(PyObject* module) {
  must(PyModule_AddFunctions(module, functions));
  init_to_numpy(module);
  init_dlpack(module);
  init_cuda_array(module);
  init_storage(module);
}

}  // namespace taeda::py
