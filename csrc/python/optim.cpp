// What an optimizer's step in C++ takes, gathered in one call instead of several Python loops.
#include "autograd/meta.h"
#include "python/module.h"
#include "python/tensor_type.h"

namespace taeda::py {
namespace {

// What `state`, a dict of dicts, holds for `param` under `name`; nullptr where it holds nothing or
// None. Borrowed.
PyObject* state_of(PyObject* state, PyObject* param, PyObject* name) {
  PyObject* own = PyDict_GetItemWithError(state, param);
  PyObject* value = own && PyDict_Check(own) ? PyDict_GetItemWithError(own, name) : nullptr;
  if (!value && PyErr_Occurred()) throw PythonError();
  return value == Py_None ? nullptr : value;
}

// (params, state, names) -> None, or [params, grads, *states]
PyObject* step_lists(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return guarded(
      [&]() -> PyObject* {
        check<TypeError>(
            n == 3 && PyList_Check(args[0]) && PyDict_Check(args[1]) && PyTuple_Check(args[2]),
            "_step_lists(): expected a list of parameters, a dict of states and a tuple of names");
        PyObject *params = args[0], *state = args[1], *names = args[2];
        const Py_ssize_t states = PyTuple_GET_SIZE(names);
        PyRef lists = take(PyList_New(2 + states));
        for (Py_ssize_t k = 0; k < 2 + states; ++k)
          PyList_SET_ITEM(lists.get(), k, must(PyList_New(0)));
        auto append = [&](Py_ssize_t k, PyObject* item) {
          must(PyList_Append(PyList_GET_ITEM(lists.get(), k), item));
        };
        for (Py_ssize_t i = 0; i < PyList_GET_SIZE(params); ++i) {
          PyRef param = PyRef::borrow(PyList_GET_ITEM(params, i));
          check<TypeError>(is_tensor(param.get()), "_step_lists(): params must be tensors");
          const AutogradMeta* meta = meta_of(tensor_of(param.get()).impl());
          if (!meta || !meta->grad.defined()) continue;
          append(0, param.get());
          append(1, take(wrap(meta->grad)).get());
          for (Py_ssize_t k = 0; k < states; ++k) {
            PyObject* name = PyTuple_GET_ITEM(names, k);
            if (name == Py_None) continue;
            PyObject* value = state_of(state, param.get(), name);
            if (!value) Py_RETURN_NONE;
            append(2 + k, value);
          }
        }
        return lists.release();
      },
      nullptr);
}

PyMethodDef functions[] = {
    {"_step_lists", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(step_lists)),
     METH_FASTCALL,
     "_step_lists(params, state, names) -> list | None\n\n"
     "The parameters that have a gradient, their gradients, and a list of what is in each one's\n"
     "state under each name; an empty list for the name None. None where a state is missing."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

void init_optim(PyObject* module) { must(PyModule_AddFunctions(module, functions)); }

}  // namespace taeda::py
