// Loops over dicts of tensors by name, as taeda.functional keeps parameters: each is one call per
// training step in place of several calls per tensor.
#include "autograd/meta.h"
#include "ops/core/tensor_ops.h"
#include "python/module.h"
#include "python/tensor_slots.h"
#include "python/tensor_type.h"

namespace taeda::py {
namespace {

const Tensor& expect_value(const char* who, PyObject* value) {
  check<TypeError>(value && is_tensor(value), who, "(): expected a dict of tensors");
  return tensor_of(value);
}

// Calls visit(name, tensor) for each entry. Making an object in visit may start the garbage
// collector, and with it code that changes the dict: the entry is held meanwhile.
template <class F> void each_named(const char* who, PyObject* tensors, F&& visit) {
  check<TypeError>(PyDict_Check(tensors), who, "(): expected a dict of tensors");
  Py_ssize_t at = 0;
  PyObject *name, *value;
  while (PyDict_Next(tensors, &at, &name, &value)) {
    const PyRef held_name = PyRef::borrow(name), held_value = PyRef::borrow(value);
    visit(name, expect_value(who, value));
  }
}

// dict[key], borrowed.
PyObject* entry(PyObject* dict, PyObject* key) {
  PyObject* value = PyDict_GetItemWithError(dict, key);
  if (!value && !PyErr_Occurred()) PyErr_SetObject(PyExc_KeyError, key);
  if (!value) throw PythonError();
  return value;
}

// tensors -> [tensor._version, ...]
PyObject* versions(PyObject*, PyObject* tensors) {
  return guarded([&] {
    PyRef list = take(PyList_New(0));
    each_named("_versions", tensors, [&](PyObject*, const Tensor& t) {
      must(PyList_Append(list.get(), take(version_number(t)).get()));
    });
    return list.release();
  });
}

// tensors -> ({name: tensor.detach().requires_grad_()}, [tensor._version, ...])
PyObject* leaves(PyObject*, PyObject* tensors) {
  return guarded([&] {
    PyRef list = take(PyList_New(0)), made = take(PyDict_New());
    each_named("_leaves", tensors, [&](PyObject* name, const Tensor& t) {
      must(PyList_Append(list.get(), take(version_number(t)).get()));
      Tensor leaf = op<"detach">(t);
      set_requires_grad(leaf, true);
      must(PyDict_SetItem(made.get(), name, take(wrap(std::move(leaf))).get()));
    });
    return must(PyTuple_Pack(2, made.get(), list.get()));
  });
}

// ([(name, dict, attributes, key), ...], tensors): dict[key] = attributes[key] = tensors[name]
PyObject* put(PyObject*, PyObject* const* args, Py_ssize_t n) {
  constexpr const char* who = "_put_tensors";
  return guarded(
      [&]() -> PyObject* {
        check<TypeError>(n == 2 && PyList_Check(args[0]) && PyDict_Check(args[1]), who,
                         "(): expected a list of slots and a dict of tensors");
        for (Py_ssize_t i = 0; i < PyList_GET_SIZE(args[0]); ++i) {
          PyRef slot = PyRef::borrow(PyList_GET_ITEM(args[0], i));
          check<TypeError>(PyTuple_Check(slot.get()), who, "(): expected slots that are tuples");
          PyObject *name, *table, *attributes, *key;
          if (!PyArg_ParseTuple(slot.get(), "OO!O!O", &name, &PyDict_Type, &table, &PyDict_Type,
                                &attributes, &key)) {
            throw PythonError();
          }
          PyRef tensor = PyRef::borrow(entry(args[1], name));
          must(PyDict_SetItem(attributes, key, tensor.get()));
          must(PyDict_SetItem(table, key, tensor.get()));
        }
        Py_RETURN_NONE;
      },
      nullptr);
}

// (tensors, gradients or None): tensors[name].grad = gradients[name], or None for all
PyObject* set_gradients(PyObject*, PyObject* const* args, Py_ssize_t n) {
  constexpr const char* who = "_set_gradients";
  return guarded(
      [&]() -> PyObject* {
        check<TypeError>(n == 2 && PyDict_Check(args[0]), who,
                         "(): expected a dict of tensors and one of gradients, or None");
        // What ends with an old gradient may run Python code: after the loop.
        std::vector<Tensor> old;
        auto clear = [&](const Tensor& t) {
          AutogradMeta* m = meta_of(t.impl());
          if (m && m->grad.defined()) old.push_back(std::exchange(m->grad, Tensor()));
        };
        if (args[1] == Py_None) {
          each_named(who, args[0], [&](PyObject*, const Tensor& t) { clear(t); });
          Py_RETURN_NONE;
        }
        each_named(who, args[1], [&](PyObject* name, const Tensor& gradient) {
          const Tensor& t = expect_value(who, entry(args[0], name));
          clear(t);
          set_grad(t, gradient);
        });
        Py_RETURN_NONE;
      },
      nullptr);
}

template <class F> PyCFunction fast(F f) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(f));
}

PyMethodDef functions[] = {
    {"_versions", versions, METH_O,
     "_versions(tensors) -> list[int]\n\nHow often the memory of each tensor was written to."},
    {"_leaves", leaves, METH_O,
     "_leaves(tensors) -> tuple[dict[str, Tensor], list[int]]\n\n"
     "Leaves that require gradients, with the memory of the tensors; and the tensors' versions."},
    {"_put_tensors", fast(put), METH_FASTCALL,
     "_put_tensors(slots, tensors) -> None\n\n"
     "Put tensors[name] into both dicts of each slot (name, dict, attributes, key), under key."},
    {"_set_gradients", fast(set_gradients), METH_FASTCALL,
     "_set_gradients(tensors, gradients) -> None\n\n"
     "Set the grad of the tensors that gradients has names of; to None for all, if that is None."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

void init_named_tensors(PyObject* module) { must(PyModule_AddFunctions(module, functions)); }

}  // namespace taeda::py
