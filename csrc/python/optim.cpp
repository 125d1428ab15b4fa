// Gathers the inputs of an optimizer's step in one call instead of several Python loops.
#include "autograd/meta.h"
#include "python/module.h"
#include "python/op_callable.h"
#include "python/tensor_type.h"

namespace taeda::py {
namespace {

// dict.get(key); nothing if missing or None. Comparing keys may run code that changes all dicts.
PyRef entry(PyObject* dict, PyObject* key) {
  PyObject* value = dict && PyDict_Check(dict) ? PyDict_GetItemWithError(dict, key) : nullptr;
  if (!value && PyErr_Occurred()) throw PythonError();
  return value == Py_None ? PyRef() : PyRef::borrow(value);
}

void check_group(const char* who, PyObject* params, PyObject* state, PyObject* names) {
  check<TypeError>(PyList_Check(params) && PyDict_Check(state) && PyTuple_Check(names), who,
                   "(): expected a list of parameters, a dict of states and a tuple of names");
}

// Calls take(param, grad, its state) for each parameter that has a gradient, until one is false.
template <class F>
void each_with_gradient(const char* who, PyObject* params, PyObject* state, F&& take) {
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(params); ++i) {
    PyRef param = PyRef::borrow(PyList_GET_ITEM(params, i));
    check<TypeError>(is_tensor(param.get()), who, "(): params must be tensors");
    const Tensor grad = grad_of(tensor_of(param.get()));
    if (!grad.defined()) continue;
    const PyRef own = entry(state, param.get());
    if (!take(param.get(), grad, own.get())) return;
  }
}

// (params, state, names) -> None, or [params, grads, *states]
PyObject* step_lists(PyObject*, PyObject* const* args, Py_ssize_t n) {
  constexpr const char* who = "_step_lists";
  return guarded(
      [&]() -> PyObject* {
        check<TypeError>(n == 3, who, "(): expected 3 arguments");
        PyObject *params = args[0], *state = args[1], *names = args[2];
        check_group(who, params, state, names);
        const Py_ssize_t states = PyTuple_GET_SIZE(names);
        PyRef lists = take(PyList_New(2 + states));
        for (Py_ssize_t k = 0; k < 2 + states; ++k)
          PyList_SET_ITEM(lists.get(), k, must(PyList_New(0)));
        auto append = [&](Py_ssize_t k, PyObject* item) {
          must(PyList_Append(PyList_GET_ITEM(lists.get(), k), item));
        };
        bool whole = true;
        each_with_gradient(who, params, state,
                           [&](PyObject* param, const Tensor& grad, PyObject* own) {
                             append(0, param);
                             append(1, take(wrap(grad)).get());
                             for (Py_ssize_t k = 0; k < states; ++k) {
                               PyObject* name = PyTuple_GET_ITEM(names, k);
                               if (name == Py_None) continue;
                               const PyRef value = entry(own, name);
                               if (!value) return whole = false;
                               append(2 + k, value.get());
                             }
                             return true;
                           });
        if (!whole) Py_RETURN_NONE;
        return lists.release();
      },
      nullptr);
}

// The same lists, as arguments of an op. False if a state is missing or not a tensor.
bool fill_lists(const char* who, PyObject* params, PyObject* state, PyObject* names,
                Values& values) {
  const auto states = static_cast<size_t>(PyTuple_GET_SIZE(names));
  const auto count = static_cast<size_t>(PyList_GET_SIZE(params));
  for (size_t k = 0; k < 2 + states; ++k) values[k].emplace<TensorList>().reserve(count);
  auto append = [&](size_t k, const Tensor& t) { std::get<TensorList>(values[k]).push_back(t); };
  bool whole = true;
  each_with_gradient(who, params, state, [&](PyObject* param, const Tensor& grad, PyObject* own) {
    append(0, tensor_of(param));
    append(1, grad);
    for (size_t k = 0; k < states; ++k) {
      PyObject* name = PyTuple_GET_ITEM(names, static_cast<Py_ssize_t>(k));
      if (name == Py_None) continue;
      const PyRef value = entry(own, name);
      if (!value || !is_tensor(value.get())) return whole = false;
      append(2 + k, tensor_of(value.get()));
    }
    return true;
  });
  return whole;
}

// (op, params, state, names, numbers) -> whether the step was taken
PyObject* fused_step(PyObject*, PyObject* const* args, Py_ssize_t n) {
  constexpr const char* who = "_fused_step";
  return guarded(
      [&]() -> PyObject* {
        check<TypeError>(n == 5 && PyUnicode_Check(args[0]) && PyDict_Check(args[4]), who,
                         "(): expected an op's name, a group's lists and a dict of numbers");
        const char* name = PyUnicode_AsUTF8(args[0]);
        if (!name) throw PythonError();
        const OpTable* table = find_table(name);
        check<ValueError>(table, who, "(): there is no op ", name);
        check_group(who, args[1], args[2], args[3]);
        const Signature& signature = table->overloads[0];
        const auto lists = static_cast<size_t>(2 + PyTuple_GET_SIZE(args[3]));
        check<ValueError>(lists <= signature.size(), who, "(): ", name, " takes fewer lists");
        Values values(signature.size());
        if (!fill_lists(who, args[1], args[2], args[3], values)) Py_RETURN_FALSE;
        for (size_t i = lists; i < signature.size(); ++i) {
          const Param& p = signature.params()[i];
          const PyRef number = PyRef::borrow(PyDict_GetItemWithError(args[4], p.name));
          if (!number && PyErr_Occurred()) throw PythonError();
          if (!number && p.arg->has_default) values[i] = p.arg->fallback;
          else if (!number || !convert(number.get(), p, values[i])) Py_RETURN_FALSE;
        }
        if (std::get<TensorList>(values[0]).empty()) Py_RETURN_TRUE;
        return Py_NewRef(run_values(signature.op(), values) ? Py_True : Py_False);
      },
      nullptr);
}

PyMethodDef functions[] = {
    {"_step_lists", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(step_lists)),
     METH_FASTCALL,
     "_step_lists(params, state, names) -> list | None\n\n"
     "The parameters that have a gradient, their gradients, and a list of what is in each one's\n"
     "state under each name; an empty list for the name None. None where a state is missing."},
    {"_fused_step", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(fused_step)),
     METH_FASTCALL,
     "_fused_step(op, params, state, names, numbers) -> bool\n\n"
     "Call the op of that name with what _step_lists gives and the numbers, by their names. "
     "False,\n"
     "and nothing has been done, where a state is missing or Python code overrides ops."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

void init_optim(PyObject* module) { must(PyModule_AddFunctions(module, functions)); }

}  // namespace taeda::py
