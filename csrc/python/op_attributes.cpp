// What Python may ask of an op's callable: its name, docstring, signatures.
#include "python/op_object.h"

#include <structmember.h>

#include <algorithm>

#include "python/objects.h"
#include "python/tensor_type.h"

namespace taeda::py {
namespace {

PyObject* bind(PyObject* o, PyObject* self, PyObject*) {
  return self ? PyMethod_New(o, self) : Py_NewRef(o);
}

const Op& first_op(PyObject* o) { return table_of(o).overloads[0].op(); }
// The name within its module: linalg_inv is taeda.linalg.inv.
const char* own_name(PyObject* o) {
  const std::string &name = table_of(o).name, prefix = std::string(first_op(o).traits.module) + "_";
  const bool inside = Py_TYPE(o) == OpFunctionType && name.starts_with(prefix) && prefix != "_";
  return name.c_str() + (inside ? prefix.size() : 0);
}
PyObject* get_name(PyObject* o, void*) { return PyUnicode_FromString(own_name(o)); }
PyObject* get_qualname(PyObject* o, void*) {
  bool method = Py_TYPE(o) == OpMethodType;
  return PyUnicode_FromFormat(method ? "Tensor.%s" : "%s", own_name(o));
}
PyObject* get_module(PyObject* o, void*) {
  const Op& op = first_op(o);
  if (Py_TYPE(o) == OpFunctionType && op.name[0] == '_')
    return PyUnicode_FromString("taeda._C.ops");
  if (op.name.find("::") != op.name.npos) return PyUnicode_FromString("taeda.ops");
  if (Py_TYPE(o) == OpMethodType || !*op.traits.module) return PyUnicode_FromString("taeda");
  return PyUnicode_FromFormat("taeda.%s", op.traits.module);
}
PyObject* get_doc(PyObject* o, void*) {
  return guarded([&] {
    bool method = Py_TYPE(o) == OpMethodType;
    std::string s;
    for (const Signature& overload : table_of(o).overloads) {
      s += table_of(o).name + overload.text(method) + " -> " + overload.op().return_type + "\n";
    }
    std::string last;
    for (const Signature& overload : table_of(o).overloads) {
      if (overload.op().doc == last) continue;
      last = overload.op().doc;
      s += "\n" + last + "\n";
    }
    return must(PyUnicode_FromString(s.c_str()));
  });
}
// The overloads as data, from which taeda._signatures makes inspect.Signature objects.
PyObject* get_overloads(PyObject* o, void*) {
  return guarded([&] {
    PyRef list = take(PyList_New(0));
    for (const Signature& overload : table_of(o).overloads) {
      PyRef text = take(PyUnicode_FromString(overload.op().signature.c_str()));
      must(PyList_Append(list.get(), text.get()));
    }
    return list.release();
  });
}
// Keyword arguments that are not in the schema, for the type stubs.
PyObject* get_forms(PyObject* o, void*) {
  return guarded([&] {
    PyRef list = take(PyList_New(0));
    for (const Signature& s : table_of(o).overloads) {
      const Op& op = s.op();
      bool numbers = std::any_of(s.params().begin(), s.params().end(),
                                 [](const Param& p) { return p.takes_number; });
      bool out = (op.traits.forms & kOut) && !op.inplace_form;
      const char* kind = op.traits.composite     ? "composite"
                         : op.traits.elementwise ? "elementwise"
                         : op.traits.view        ? "view"
                                                 : "";
      PyRef item = take(Py_BuildValue("{sssOsOsOss}", "schema", op.signature.c_str(), "out",
                                      out ? Py_True : Py_False, "factory",
                                      s.is_factory() ? Py_True : Py_False, "numbers",
                                      numbers ? Py_True : Py_False, "kind", kind));
      must(PyList_Append(list.get(), item.get()));
    }
    return list.release();
  });
}
PyObject* get_signature(PyObject* o, void*) {
  return guarded([&] {
    PyRef helper = take(PyImport_ImportModule("taeda._signatures"));
    return must(python_call(PyObject_CallMethod, helper.get(), "signature", "O", o));
  });
}
PyObject* op_repr(PyObject* o) {
  if (Py_TYPE(o) == OpMethodType)
    return PyUnicode_FromFormat("<method '%s' of 'taeda.Tensor' objects>",
                                table_of(o).name.c_str());
  return PyUnicode_FromFormat("<built-in function %s>", table_of(o).name.c_str());
}
PyObject* op_reduce(PyObject* o, PyObject*) {
  if (Py_TYPE(o) == OpFunctionType) return PyUnicode_FromString(own_name(o));
  return guarded([&] {
    PyRef builtins = take(PyImport_ImportModule("builtins"));
    PyRef getattr = take(PyObject_GetAttrString(builtins.get(), "getattr"));
    return must(Py_BuildValue("O(Os)", getattr.get(), TensorType, table_of(o).name.c_str()));
  });
}

PyGetSetDef op_getset[] = {
    {"__name__", get_name, nullptr, nullptr, nullptr},
    {"__qualname__", get_qualname, nullptr, nullptr, nullptr},
    {"__module__", get_module, nullptr, nullptr, nullptr},
    {"__doc__", get_doc, nullptr, nullptr, nullptr},
    {"__signature__", get_signature, nullptr, nullptr, nullptr},
    {"overloads", get_overloads, nullptr, "The schemas of all overloads.", nullptr},
    {"_forms", get_forms, nullptr,
     "One dict per overload: its schema, whether it takes `out`, what factories take, and "
     "Python numbers as tensors, and its kind.",
     nullptr},
    {"__dict__", [](PyObject* o, void*) { return PyObject_GenericGetDict(o, nullptr); }, nullptr,
     nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};
PyMethodDef op_methods[] = {{"__reduce__", op_reduce, METH_NOARGS, nullptr},
                            {nullptr, nullptr, 0, nullptr}};
PyMemberDef op_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(OpObject, vectorcall), READONLY, nullptr},
    {"__dictoffset__", T_PYSSIZET, offsetof(OpObject, dict), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr}};

}  // namespace

PyTypeObject* make_op_type(const char* name, bool method) {
  std::vector<PyType_Slot> slots{{Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
                                 {Py_tp_repr, reinterpret_cast<void*>(op_repr)},
                                 {Py_tp_getset, op_getset},
                                 {Py_tp_methods, op_methods},
                                 {Py_tp_members, op_members}};
  if (method) slots.push_back({Py_tp_descr_get, reinterpret_cast<void*>(bind)});
  slots.push_back({0, nullptr});
  unsigned long flags =
      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_DISALLOW_INSTANTIATION;
  if (method) flags |= Py_TPFLAGS_METHOD_DESCRIPTOR;
  PyType_Spec spec{name, sizeof(OpObject), 0, static_cast<unsigned>(flags), slots.data()};
  return reinterpret_cast<PyTypeObject*>(must(PyType_FromSpec(&spec)));
}

}  // namespace taeda::py
