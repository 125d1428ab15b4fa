// taeda.dtype, device, memory_format and layout: singletons with a name (device: a small value).
#include <array>
#include <cstring>
#include <vector>

#include "python/objects.h"

namespace taeda::py {

PyTypeObject* DTypeType = nullptr;
PyTypeObject* DeviceType_ = nullptr;
PyTypeObject* MemoryFormatType = nullptr;
PyTypeObject* LayoutType = nullptr;

namespace {

// dtype, memory_format and layout are alike: a fixed set of named values.
struct NamedObject {
  PyObject_HEAD int value;
  PyObject* name;
};
struct DeviceObject {
  PyObject_HEAD Device device;
};

std::array<PyObject*, kNumDTypes> dtypes{};
std::array<PyObject*, 4> memory_formats{};
PyObject* strided = nullptr;
thread_local std::vector<Device>
    device_stack;  // `with device:` blocks; the bottom entry is from set_default_device

DType dtype_of_object(PyObject* o) {
  return static_cast<DType>(reinterpret_cast<NamedObject*>(o)->value);
}
Device device_of(PyObject* o) { return reinterpret_cast<DeviceObject*>(o)->device; }

PyObject* named_repr(PyObject* o) {
  return PyUnicode_FromFormat("taeda.%U", reinterpret_cast<NamedObject*>(o)->name);
}
// Returning a string tells pickle and copy that this is the global of that name.
PyObject* named_reduce(PyObject* o, PyObject*) {
  return Py_NewRef(reinterpret_cast<NamedObject*>(o)->name);
}

PyMethodDef named_methods[] = {{"__reduce__", named_reduce, METH_NOARGS, nullptr},
                               {nullptr, nullptr, 0, nullptr}};

PyObject* dtype_is_floating(PyObject* o, void*) {
  return PyBool_FromLong(is_floating(dtype_of_object(o)));
}
PyObject* dtype_is_complex(PyObject* o, void*) {
  return PyBool_FromLong(is_complex(dtype_of_object(o)));
}
PyObject* dtype_is_signed(PyObject* o, void*) {
  return PyBool_FromLong(info(dtype_of_object(o)).is_signed);
}
PyObject* dtype_itemsize(PyObject* o, void*) {
  return PyLong_FromSize_t(itemsize(dtype_of_object(o)));
}
PyObject* dtype_to_real(PyObject* o, PyObject*) {
  return dtype_object(to_real(dtype_of_object(o)));
}
PyObject* dtype_to_complex(PyObject* o, PyObject*) {
  return guarded([&] {
    DType d = dtype_of_object(o);
    check(is_inexact(d), "dtype.to_complex(): ", name(d), " has no complex counterpart");
    return dtype_object(to_complex(d));
  });
}

PyGetSetDef dtype_getset[] = {
    {"is_floating_point", dtype_is_floating, nullptr,
     "Whether it is one of the real floating-point types.", nullptr},
    {"is_complex", dtype_is_complex, nullptr, "Whether it is one of the complex types.", nullptr},
    {"is_signed", dtype_is_signed, nullptr, "Whether it can hold negative numbers.", nullptr},
    {"itemsize", dtype_itemsize, nullptr, "Bytes in one element.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};
PyMethodDef dtype_methods[] = {
    {"to_real", dtype_to_real, METH_NOARGS, "The dtype of the real part."},
    {"to_complex", dtype_to_complex, METH_NOARGS,
     "The complex dtype whose parts have this floating-point dtype."},
    {"__reduce__", named_reduce, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr}};

// ---- device ----

PyObject* make_device(Device d) {
  auto* o = must(DeviceType_->tp_alloc(DeviceType_, 0));
  reinterpret_cast<DeviceObject*>(o)->device = d;
  return o;
}

PyObject* device_new(PyTypeObject*, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"type", "index", nullptr};
  static const char* other_names[] = {"device", nullptr};
  PyObject *type = nullptr, *index = nullptr;
  return guarded([&]() -> PyObject* {
    if (kwargs && PyDict_GetItemString(kwargs, "device")) {
      if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O:device", const_cast<char**>(other_names),
                                       &type))
        throw PythonError();
    } else if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|O:device", const_cast<char**>(names),
                                            &type, &index)) {
      throw PythonError();
    }
    Device d;
    if (!as_device(type, &d)) {
      fail<TypeError>("device(): argument 'type' must be str, int or taeda.device, not ",
                      type_name(type));
    }
    if (index && index != Py_None) {
      check<TypeError>(PyLong_Check(index), "device(): argument 'index' must be int, not ",
                       type_name(index));
      check(d.index < 0,
            "type (string) must not include an index because index was passed explicitly: ",
            to_string(d));
      long value = PyLong_AsLong(index);
      if (value == -1 && PyErr_Occurred()) throw PythonError();
      check(value >= -1 && value < 128, "device(): index must be between 0 and 127, got ", value);
      d.index = static_cast<int8_t>(value);
    }
    return make_device(d);
  });
}

PyObject* device_repr(PyObject* o) {
  Device d = device_of(o);
  std::string type(device_type_name(d.type));
  if (d.index < 0) return PyUnicode_FromFormat("device(type='%s')", type.c_str());
  return PyUnicode_FromFormat("device(type='%s', index=%d)", type.c_str(), d.index);
}
PyObject* device_str(PyObject* o) { return PyUnicode_FromString(to_string(device_of(o)).c_str()); }
Py_hash_t device_hash(PyObject* o) {
  Device d = device_of(o);
  return static_cast<Py_hash_t>(d.type) * 1000 + d.index + 7919;
}
PyObject* device_compare(PyObject* a, PyObject* b, int op) {
  if (Py_TYPE(b) != DeviceType_ || Py_TYPE(a) != DeviceType_) Py_RETURN_NOTIMPLEMENTED;
  if (op != Py_EQ && op != Py_NE) Py_RETURN_NOTIMPLEMENTED;
  return PyBool_FromLong((device_of(a) == device_of(b)) == (op == Py_EQ));
}
PyObject* device_type(PyObject* o, void*) {
  auto s = device_type_name(device_of(o).type);
  return PyUnicode_FromStringAndSize(s.data(), static_cast<Py_ssize_t>(s.size()));
}
PyObject* device_index(PyObject* o, void*) {
  if (device_of(o).index < 0) Py_RETURN_NONE;
  return PyLong_FromLong(device_of(o).index);
}
PyObject* device_reduce(PyObject* o, PyObject*) {
  Device d = device_of(o);
  std::string type(device_type_name(d.type));
  if (d.index < 0) return Py_BuildValue("O(s)", DeviceType_, type.c_str());
  return Py_BuildValue("O(si)", DeviceType_, type.c_str(), d.index);
}
PyObject* device_enter(PyObject* o, PyObject*) {
  device_stack.push_back(device_of(o));
  return Py_NewRef(o);
}
PyObject* device_exit(PyObject*, PyObject*) {
  if (!device_stack.empty()) device_stack.pop_back();
  Py_RETURN_NONE;
}

PyGetSetDef device_getset[] = {
    {"type", device_type, nullptr, "'cpu', 'cuda' or 'meta'.", nullptr},
    {"index", device_index, nullptr, "Which one of several, or None.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};
PyMethodDef device_methods[] = {{"__reduce__", device_reduce, METH_NOARGS, nullptr},
                                {"__enter__", device_enter, METH_NOARGS, nullptr},
                                {"__exit__", device_exit, METH_VARARGS, nullptr},
                                {nullptr, nullptr, 0, nullptr}};

// ---- default device, default dtype ----

Device& default_device() {
  thread_local Device d;
  return d;
}
thread_local bool default_device_set = false;

PyObject* set_default_device(PyObject*, PyObject* o) {
  return guarded([&]() -> PyObject* {
    Device d;
    default_device_set = o != Py_None;
    if (o != Py_None && !as_device(o, &d)) {
      default_device_set = false;
      fail<TypeError>("set_default_device(): argument 'device' must be a device, str or None, not ",
                      type_name(o));
    }
    default_device() = d;
    Py_RETURN_NONE;
  });
}
PyObject* get_default_device(PyObject*, PyObject*) { return device_object(current_device()); }
PyObject* py_set_default_dtype(PyObject*, PyObject* o) {
  return guarded([&]() -> PyObject* {
    DType d;
    check<TypeError>(
        Py_TYPE(o) == DTypeType && as_dtype(o, &d),
        "invalid dtype object: only floating-point types are supported as the default type");
    set_default_dtype(d);
    Py_RETURN_NONE;
  });
}
PyObject* py_get_default_dtype(PyObject*, PyObject*) { return dtype_object(default_dtype()); }

PyMethodDef module_functions[] = {
    {"set_default_device", set_default_device, METH_O,
     "set_default_device(device)\n--\n\n"
     "Choose the device that tensors are made on where none is given; at first the CPU.\n\n"
     "Args:\n"
     "    device: a device or its name. None puts the CPU back.\n\n"
     "Raises:\n"
     "    RuntimeError: this build has no such device."},
    {"get_default_device", get_default_device, METH_NOARGS,
     "get_default_device()\n--\n\n"
     "Return the device that tensors are made on where none is given: that of the innermost\n"
     "``with`` block of a device, or what ``set_default_device`` chose."},
    {"set_default_dtype", py_set_default_dtype, METH_O,
     "set_default_dtype(d)\n--\n\n"
     "Choose the dtype of tensors made of Python floats; at first float32.\n\n"
     "Complex numbers get the complex dtype of the same precision.\n\n"
     "Args:\n"
     "    d: a floating-point dtype.\n\n"
     "Raises:\n"
     "    TypeError: it is something else."},
    {"get_default_dtype", py_get_default_dtype, METH_NOARGS,
     "get_default_dtype()\n--\n\n"
     "Return the dtype of tensors made of Python floats."},
    {nullptr, nullptr, 0, nullptr}};

PyTypeObject* make_type(PyObject* module, const char* name, int size, unsigned flags,
                        std::vector<PyType_Slot> slots) {
  slots.push_back({0, nullptr});
  PyType_Spec spec{name, size, 0, static_cast<unsigned>(Py_TPFLAGS_DEFAULT) | flags, slots.data()};
  auto* type = must(PyType_FromSpec(&spec));
  must(PyModule_AddObjectRef(module, std::strrchr(name, '.') + 1, type));
  return reinterpret_cast<PyTypeObject*>(type);
}

PyTypeObject* make_named_type(PyObject* module, const char* name, const char* doc,
                              PyMethodDef* methods, PyGetSetDef* getset) {
  std::vector<PyType_Slot> slots{{Py_tp_repr, reinterpret_cast<void*>(named_repr)},
                                 {Py_tp_doc, const_cast<char*>(doc)},
                                 {Py_tp_methods, methods}};
  if (getset) slots.push_back({Py_tp_getset, getset});
  return make_type(module, name, sizeof(NamedObject), Py_TPFLAGS_DISALLOW_INSTANTIATION,
                   std::move(slots));
}

PyObject* make_named(PyObject* module, PyTypeObject* type, int value, std::string_view name) {
  auto* o = must(type->tp_alloc(type, 0));
  auto* named = reinterpret_cast<NamedObject*>(o);
  named->value = value;
  named->name =
      must(PyUnicode_FromStringAndSize(name.data(), static_cast<Py_ssize_t>(name.size())));
  must(PyModule_AddObjectRef(module, std::string(name).c_str(), o));
  return o;
}

}  // namespace

PyObject* dtype_object(DType d) { return Py_NewRef(dtypes[static_cast<size_t>(d)]); }
PyObject* memory_format_object(MemoryFormat m) {
  return Py_NewRef(memory_formats[static_cast<size_t>(m)]);
}
PyObject* strided_object() { return Py_NewRef(strided); }

PyObject* device_object(Device d) {
  static std::array<PyObject*, kNumDeviceTypes>
      plain{};  // devices without an index (the common case)
  if (d.index >= 0) return make_device(d);
  PyObject*& o = plain[static_cast<size_t>(d.type)];
  if (!o) o = make_device(d);
  return Py_NewRef(o);
}

bool as_dtype(PyObject* o, DType* d) {
  if (Py_TYPE(o) == DTypeType) {
    *d = dtype_of_object(o);
    return true;
  }
  if (o == reinterpret_cast<PyObject*>(&PyFloat_Type)) *d = DType::Float64;
  else if (o == reinterpret_cast<PyObject*>(&PyLong_Type)) *d = DType::Int64;
  else if (o == reinterpret_cast<PyObject*>(&PyBool_Type)) *d = DType::Bool;
  else if (o == reinterpret_cast<PyObject*>(&PyComplex_Type)) *d = DType::Complex128;
  else return false;
  return true;
}

bool as_device(PyObject* o, Device* d) {
  if (Py_TYPE(o) == DeviceType_) {
    *d = device_of(o);
  } else if (PyUnicode_Check(o)) {
    std::string text = to_string(o);
    check(!text.empty(), "Device string must not be empty");
    *d = parse_device(text);
  } else if (PyLong_Check(o) && !PyBool_Check(o)) {
    long index = PyLong_AsLong(o);
    if (index == -1 && PyErr_Occurred()) throw PythonError();
    check(index >= 0 && index < 128, "Device index must be between 0 and 127, got ", index);
    fail("device(): index ", index, " was given, but this build of taeda has no accelerator; use ",
         "device='cpu'");
  } else {
    return false;
  }
  return true;
}

bool as_memory_format(PyObject* o, MemoryFormat* m) {
  if (Py_TYPE(o) != MemoryFormatType) return false;
  *m = static_cast<MemoryFormat>(reinterpret_cast<NamedObject*>(o)->value);
  return true;
}

bool has_current_device() { return default_device_set || !device_stack.empty(); }
Device current_device() { return device_stack.empty() ? default_device() : device_stack.back(); }

void init_dtype_device(PyObject* module) {
  DTypeType = make_named_type(module, "taeda.dtype",
                              "The type of a tensor's elements, such as taeda.float32.",
                              dtype_methods, dtype_getset);
  for (int i = 0; i < kNumDTypes; ++i) {
    dtypes[static_cast<size_t>(i)] = make_named(module, DTypeType, i, name(static_cast<DType>(i)));
  }
  MemoryFormatType =
      make_named_type(module, "taeda.memory_format",
                      "The order of a tensor's elements in memory, such as taeda.channels_last.",
                      named_methods, nullptr);
  const char* formats[] = {"contiguous_format", "preserve_format", "channels_last",
                           "channels_last_3d"};
  for (int i = 0; i < 4; ++i) {
    memory_formats[static_cast<size_t>(i)] = make_named(module, MemoryFormatType, i, formats[i]);
  }
  LayoutType =
      make_named_type(module, "taeda.layout",
                      "How a tensor stores its elements: taeda.strided, or a sparse layout.",
                      named_methods, nullptr);
  strided = make_named(module, LayoutType, 0, "strided");
  const char* layouts[] = {"sparse_coo", "sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc"};
  for (int i = 0; i < 5; ++i) make_named(module, LayoutType, i + 1, layouts[i]);
  DeviceType_ =
      make_type(module, "taeda.device", sizeof(DeviceObject), 0,
                {{Py_tp_new, reinterpret_cast<void*>(device_new)},
                 {Py_tp_repr, reinterpret_cast<void*>(device_repr)},
                 {Py_tp_str, reinterpret_cast<void*>(device_str)},
                 {Py_tp_hash, reinterpret_cast<void*>(device_hash)},
                 {Py_tp_richcompare, reinterpret_cast<void*>(device_compare)},
                 {Py_tp_getset, device_getset},
                 {Py_tp_methods, device_methods},
                 {Py_tp_doc,
                  const_cast<char*>(
                      "Where a tensor lives: device('cpu'), device('cuda', 0), device('meta').")}});
  must(PyModule_AddFunctions(module, module_functions));
}

}  // namespace taeda::py
