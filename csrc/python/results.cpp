#include "python/results.h"

#include <structmember.h>

#include <deque>

#include "python/objects.h"
#include "python/op_callable.h"
#include "python/tensor_type.h"

namespace taeda::py {
namespace {

PyObject* return_types = nullptr;

// "taeda.return_types.max(\nvalues=...,\nindices=...)": one field per line, since tensors print on
// several lines.
PyObject* named_repr(PyObject* o) {
  PyTypeObject* type = Py_TYPE(o);
  return guarded([&] {
    std::string s = std::string(type->tp_name) + "(";
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(o); ++i) {
      PyRef text = take(PyObject_Repr(PyTuple_GET_ITEM(o, i)));
      s += (i ? ",\n" : "\n") + std::string(type->tp_members[i].name) + "=" + to_string(text.get());
    }
    return must(PyUnicode_FromString((s + ")").c_str()));
  });
}

PyObject* tuple_of(const TensorList& list) {
  PyRef tuple = take(PyTuple_New(static_cast<Py_ssize_t>(list.size())));
  for (size_t i = 0; i < list.size(); ++i) {
    PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(i), wrap(list[i]));
  }
  return tuple.release();
}

}  // namespace

PyObject* named_tuple_type(const std::string& name, const std::vector<std::string>& fields) {
  if (PyObject* known = PyDict_GetItemString(PyModule_GetDict(return_types), name.c_str()))
    return Py_NewRef(known);
  // The type keeps pointers to these strings.
  static std::deque<std::string> texts;
  const char* full = texts.emplace_back("taeda.return_types." + name).c_str();
  std::vector<PyStructSequence_Field> members;
  for (const std::string& f : fields) members.push_back({texts.emplace_back(f).c_str(), nullptr});
  members.push_back({nullptr, nullptr});
  std::string doc = "The named tuple that `" + name + "` returns: ";
  for (size_t i = 0; i < fields.size(); ++i) doc += (i ? ", `" : "`") + fields[i] + "`";
  PyStructSequence_Desc desc{full, texts.emplace_back(doc + ".").c_str(), members.data(),
                             static_cast<int>(fields.size())};
  auto* type = reinterpret_cast<PyTypeObject*>(
      must(reinterpret_cast<PyObject*>(PyStructSequence_NewType(&desc))));
  type->tp_repr = named_repr;
  type->tp_str = named_repr;
  auto* object = reinterpret_cast<PyObject*>(type);
  must(PyObject_SetAttrString(return_types, name.c_str(), object));
  return object;
}

PyObject* make_named_tuple(PyObject* type, const std::vector<PyRef>& items) {
  PyRef result = take(PyStructSequence_New(reinterpret_cast<PyTypeObject*>(type)));
  for (size_t i = 0; i < items.size(); ++i) {
    PyStructSequence_SetItem(result.get(), static_cast<Py_ssize_t>(i), Py_NewRef(items[i].get()));
  }
  return result.release();
}

PyObject* scalar_object(const Scalar& s) {
  switch (s.kind()) {
    case Scalar::Kind::Bool: return PyBool_FromLong(s.to<bool>());
    case Scalar::Kind::Int: return must(PyLong_FromLongLong(s.to_int()));
    case Scalar::Kind::Float: return must(PyFloat_FromDouble(s.to_double()));
    default: {
      auto c = s.to<cdouble>();
      return must(PyComplex_FromDoubles(c.real(), c.imag()));
    }
  }
}

PyObject* result_object(Value&& v, const OpTable* table) {
  struct Convert {
    const OpTable* table;
    PyObject* operator()(std::monostate) { Py_RETURN_NONE; }
    PyObject* operator()(Tensor& t) { return wrap(std::move(t)); }
    PyObject* operator()(TensorList& list) {
      if (!table || !table->return_type) return tuple_of(list);
      std::vector<PyRef> items;
      for (Tensor& t : list) items.emplace_back(wrap(std::move(t)));
      return make_named_tuple(table->return_type, items);
    }
    PyObject* operator()(Scalar& s) { return scalar_object(s); }
    PyObject* operator()(int64_t i) { return must(PyLong_FromLongLong(i)); }
    PyObject* operator()(double d) { return must(PyFloat_FromDouble(d)); }
    PyObject* operator()(bool b) { return PyBool_FromLong(b); }
    PyObject* operator()(Dims& d) { return size_object(d); }
    PyObject* operator()(DType d) { return dtype_object(d); }
    PyObject* operator()(Device d) { return device_object(d); }
    PyObject* operator()(MemoryFormat m) { return memory_format_object(m); }
    PyObject* operator()(std::string& s) {
      return must(PyUnicode_FromStringAndSize(s.data(), static_cast<Py_ssize_t>(s.size())));
    }
    PyObject* operator()(Generator& g) { return generator_object(std::move(g)); }
    PyObject* operator()(std::vector<double>& l) {
      PyRef tuple = take(PyTuple_New(static_cast<Py_ssize_t>(l.size())));
      for (size_t i = 0; i < l.size(); ++i) {
        PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(i), must(PyFloat_FromDouble(l[i])));
      }
      return tuple.release();
    }
  };
  return std::visit(Convert{table}, v);
}

void init_results(PyObject* module) {
  return_types = must(PyModule_New("taeda.return_types"));
  must(PyModule_SetDocString(return_types,
                             "The named tuples that functions with several results return."));
  must(PyModule_AddObjectRef(module, "return_types", return_types));
}

}  // namespace taeda::py
