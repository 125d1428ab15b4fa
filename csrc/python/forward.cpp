// The primitives of taeda.autograd.forward_ad.
#include "autograd/forward.h"

#include "python/autograd.h"
#include "python/tensor_type.h"

namespace taeda::py {
namespace {

PyObject* enter(PyObject*, PyObject*) {
  return guarded([] {
    enter_forward_level();
    return Py_NewRef(Py_None);
  });
}

PyObject* leave(PyObject*, PyObject*) {
  return guarded([] {
    exit_forward_level();
    return Py_NewRef(Py_None);
  });
}

PyObject* is_at_level(PyObject*, PyObject*) { return PyBool_FromLong(forward_level()); }

// _make_dual(primal, tangent)
PyObject* make_dual_function(PyObject*, PyObject* args) {
  PyObject *primal, *tangent;
  if (!PyArg_ParseTuple(args, "OO", &primal, &tangent)) return nullptr;
  return guarded([&] {
    return wrap(make_dual(expect_tensor(primal, "make_dual(): tensor"),
                          expect_tensor(tangent, "make_dual(): tangent")));
  });
}

// _unpack_dual(tensor): (primal, tangent or None)
PyObject* unpack_dual(PyObject*, PyObject* tensor) {
  return guarded([&] {
    const Tensor& dual = expect_tensor(tensor, "unpack_dual(): tensor");
    Tensor tangent = tangent_of(dual);
    PyRef first = tangent.defined() ? take(wrap(primal_of(dual))) : PyRef::borrow(tensor);
    PyRef second = tangent.defined() ? take(wrap(std::move(tangent))) : PyRef::borrow(Py_None);
    return must(PyTuple_Pack(2, first.get(), second.get()));
  });
}

PyMethodDef functions[] = {{"_enter_dual_level", enter, METH_NOARGS, nullptr},
                           {"_exit_dual_level", leave, METH_NOARGS, nullptr},
                           {"_at_dual_level", is_at_level, METH_NOARGS, nullptr},
                           {"_make_dual", make_dual_function, METH_VARARGS, nullptr},
                           {"_unpack_dual", unpack_dual, METH_O, nullptr},
                           {nullptr, nullptr, 0, nullptr}};

}  // namespace

void init_autograd_forward(PyObject* module) { must(PyModule_AddFunctions(module, functions)); }

}  // namespace taeda::py
