// Ops whose kernel is a Python callable, for taeda.library.
#include "python/library.h"

#include "autograd/meta.h"
#include "ops/core/op.h"
#include "python/arguments.h"
#include "python/op_callable.h"
#include "python/tensor_type.h"

namespace taeda::py {
namespace {

Tensor result_tensor(const Op& op, PyObject* o) {
  check<TypeError>(is_tensor(o), op.name, "(): its implementation must return ", op.return_type,
                   ", but a ", type_name(o), " was returned where a Tensor is expected");
  return tensor_of(o);
}

// The return value of a Python implementation, validated against the schema.
Value result_value(const Op& op, PyObject* o) {
  if (op.returns == 1) return result_tensor(op, o);
  if (op.returns != 0) {
    bool sequence = PyTuple_Check(o) || PyList_Check(o);
    Py_ssize_t n = sequence ? PySequence_Fast_GET_SIZE(o) : 0;
    check<TypeError>(sequence && (op.returns < 0 || n == op.returns), op.name,
                     "(): its implementation must return ", op.return_type, ", but it returned a ",
                     type_name(o), sequence ? str(" of ", n) : std::string());
    TensorList list;
    for (Py_ssize_t i = 0; i < n; ++i)
      list.push_back(result_tensor(op, PySequence_Fast_GET_ITEM(o, i)));
    return list;
  }
  if (o == Py_None && op.return_type == "None") return {};
  Scalar s;
  check<TypeError>(op.return_type != "None" && as_scalar(o, &s), op.name,
                   "(): its implementation must return ", op.return_type, ", not ", type_name(o));
  return s;
}

Value run_python(Call& c) {
  AcquireGil gil;
  auto* implementation = static_cast<PyObject*>(const_cast<void*>(c.op.user));
  PyRef args = take(PyTuple_New(static_cast<Py_ssize_t>(c.args.size())));
  for (size_t i = 0; i < c.args.size(); ++i) {
    PyTuple_SET_ITEM(args.get(), static_cast<Py_ssize_t>(i), must(result_object(Value(c.args[i]))));
  }
  PyRef result = take(python_call(PyObject_CallObject, implementation, args.get()));
  // The function may have written to memory without calling ops (which increment the version).
  for (size_t i = 0; i < c.args.size(); ++i) {
    auto* t = std::get_if<Tensor>(&c.args[i]);
    if (t && c.op.args[i].mutated) t->bump_version();
  }
  return result_value(c.op, result.get());
}

// _define_op(schema, doc, implementation): a new op, as a callable. It is composite: the ops that
// the implementation calls are recorded, unless it defines its own derivative.
PyObject* define_op(PyObject*, PyObject* args) {
  const char *schema, *doc;
  PyObject* implementation;
  if (!PyArg_ParseTuple(args, "ssO", &schema, &doc, &implementation)) return nullptr;
  return guarded([&] {
    const Op& op = define(schema, doc, raw_kernel(run_python),
                          {.forms = kFunction, .composite = true}, Py_NewRef(implementation));
    return op_function(op);
  });
}

PyMethodDef functions[] = {{"_define_op", define_op, METH_VARARGS, nullptr},
                           {nullptr, nullptr, 0, nullptr}};

}  // namespace

void init_library(PyObject* module) { must(PyModule_AddFunctions(module, functions)); }

}  // namespace taeda::py
