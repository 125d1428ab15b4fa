#include "python/overrides.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "ops/core/op.h"
#include "python/batching.h"
#include "python/op_callable.h"
#include "python/tensor_type.h"

namespace taeda::py {
namespace {

thread_local int disabled_depth = 0;
thread_local std::vector<PyObject*> modes;  // active in this thread, which owns a reference to each
PyObject* disabled_function =
    nullptr;  // assigned to __torch_function__ by classes whose ops give plain tensors

PyObject* attribute_name() {
  static PyObject* name = must(PyUnicode_InternFromString("__torch_function__"));
  return name;
}

// A type's bound __torch_function__, or nothing.
PyRef function_of(PyTypeObject* type) {
  auto* t = reinterpret_cast<PyObject*>(type);
  PyObject* f = PyObject_GetAttr(t, attribute_name());
  if (!f) PyErr_Clear();
  return PyRef(f);
}

bool may_override(PyObject* o) {
  PyTypeObject* type = Py_TYPE(o);
  if (type == TensorType || PyLong_CheckExact(o) || PyFloat_CheckExact(o) || PyBool_Check(o) ||
      o == Py_None || PyUnicode_CheckExact(o) || PyType_Check(o)) {
    return false;
  }
  if (is_tensor(o)) return (tensor_of(o).flags() & kOverride) && !is_batched_type(type);
  return bool(function_of(type));
}

// Collects the arguments whose types override ops: subclasses before their bases, otherwise from
// left to right. What is asked about them may change the lists that they are in.
void collect(PyObject* o, std::vector<PyRef>& found) {
  if (PyTuple_Check(o) || PyList_Check(o)) {
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(o); ++i) {
      const PyRef item = PyRef::borrow(PySequence_Fast_GET_ITEM(o, i));
      if (!PyTuple_Check(item.get()) && !PyList_Check(item.get())) collect(item.get(), found);
    }
    return;
  }
  if (!may_override(o)) return;
  size_t at = found.size();
  for (size_t i = 0; i < found.size(); ++i) {
    PyTypeObject* type = Py_TYPE(found[i].get());
    if (type == Py_TYPE(o)) return;
    if (at == found.size() && PyType_IsSubtype(Py_TYPE(o), type)) at = i;
  }
  found.insert(found.begin() + static_cast<std::ptrdiff_t>(at), PyRef::borrow(o));
}

// Whether objects of this type are PyTorch's own tensors. Their __torch_function__ would call the
// function again, with the same arguments, for ever.
bool is_from_pytorch(const PyTypeObject* type) {
  for (; type; type = type->tp_base) {
    if (std::strcmp(type->tp_name, "torch._C.TensorBase") == 0) return true;
  }
  return false;
}

// A list may contain itself, and as_subclass() may change it.
class Nested {
 public:
  Nested() {
    if (Py_EnterRecursiveCall(" while the results of __torch_function__ are converted") != 0)
      throw PythonError();
  }
  Nested(const Nested&) = delete;
  Nested& operator=(const Nested&) = delete;
  ~Nested() { Py_LeaveRecursiveCall(); }
};

// `value` with the tensors that it contains as instances of `cls`.
PyObject* as_class(PyObject* value, PyTypeObject* cls) {
  if (is_tensor(value)) {
    if (PyType_IsSubtype(Py_TYPE(value), cls)) return Py_NewRef(value);
    PyRef method = take(PyObject_GetAttrString(value, "as_subclass"));
    return must(python_call(PyObject_CallOneArg, method.get(), reinterpret_cast<PyObject*>(cls)));
  }
  if (PyTuple_Check(value)) {
    const Nested nested;
    Py_ssize_t n = PyTuple_GET_SIZE(value);
    PyRef items = take(PyTuple_New(n));
    bool tensors = false;
    for (Py_ssize_t i = 0; i < n; ++i) {
      tensors |= is_tensor(PyTuple_GET_ITEM(value, i));
      PyTuple_SET_ITEM(items.get(), i, as_class(PyTuple_GET_ITEM(value, i), cls));
    }
    if (!tensors) return Py_NewRef(value);
    if (PyTuple_CheckExact(value)) return items.release();
    return must(python_call(PyObject_CallOneArg, reinterpret_cast<PyObject*>(Py_TYPE(value)),
                            items.get()));  // a named tuple
  }
  if (PyList_Check(value)) {
    const Nested nested;
    PyRef items = take(PyList_New(0));
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(value); ++i) {
      const PyRef item = PyRef::borrow(PyList_GET_ITEM(value, i));
      must(PyList_Append(items.get(), take(as_class(item.get(), cls)).get()));
    }
    return items.release();
  }
  return Py_NewRef(value);
}

// The function that this thread's default __torch_function__ is calling. taeda's functions do not
// call back into it; a foreign library's do, which would recurse for ever.
thread_local PyObject* running = nullptr;
void check_not_running(PyObject* func) {
  const int same = running ? PyObject_RichCompareBool(running, func, Py_EQ) : 0;
  must(same);
  if (same == 0) return;
  fail<TypeError>(
      to_string(take(PyObject_Repr(func)).get()),
      " is not taeda's, but got a taeda.Tensor: convert that with from_dlpack(t) of the "
      "function's library");
}

// The keyword arguments of a call; null where there are none.
PyObject* keywords(PyObject* kwargs) {
  if (!kwargs || kwargs == Py_None) return nullptr;
  if (!PyDict_Check(kwargs)) {
    must(PyErr_Format(PyExc_TypeError,
                      "__torch_function__(): argument 'kwargs' must be a dict, not %.200s",
                      Py_TYPE(kwargs)->tp_name));
  }
  return kwargs;
}

// Tensor.__torch_function__(cls, func, types, args=(), kwargs=None): runs the op and converts its
// results to the subclass.
PyObject* default_function(PyObject* cls, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"func", "types", "args", "kwargs", nullptr};
  PyObject *func, *types, *inner_args = nullptr, *inner_kwargs = nullptr;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO|OO:__torch_function__",
                                   const_cast<char**>(names), &func, &types, &inner_args,
                                   &inner_kwargs)) {
    return nullptr;
  }
  return guarded([&]() -> PyObject* {
    auto* type = reinterpret_cast<PyTypeObject*>(cls);
    // Defer to types that are not related to this one.
    PyRef list = take(PySequence_Tuple(types));
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(list.get()); ++i) {
      PyObject* t = PyTuple_GET_ITEM(list.get(), i);
      if (!PyType_Check(t) || !PyType_IsSubtype(type, reinterpret_cast<PyTypeObject*>(t)))
        Py_RETURN_NOTIMPLEMENTED;
    }
    check_not_running(func);
    PyRef positional = inner_args ? take(PySequence_Tuple(inner_args)) : take(PyTuple_New(0));
    PyObject* const named = keywords(inner_kwargs);
    PyObject* const outer = std::exchange(running, func);
    ++disabled_depth;
    PyObject* result = python_call(PyObject_Call, func, positional.get(), named);
    --disabled_depth;
    running = outer;
    PyRef held(must(result));
    if (type == TensorType) return held.release();
    return as_class(held.get(), type);
  });
}

// The same without conversion to the subclass; used by Parameter and the like.
PyObject* plain_function(PyObject*, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"func", "types", "args", "kwargs", nullptr};
  PyObject *func, *types, *inner_args = nullptr, *inner_kwargs = nullptr;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO|OO:__torch_function__",
                                   const_cast<char**>(names), &func, &types, &inner_args,
                                   &inner_kwargs)) {
    return nullptr;
  }
  return guarded([&]() -> PyObject* {
    PyRef positional = inner_args ? take(PySequence_Tuple(inner_args)) : take(PyTuple_New(0));
    PyObject* const named = keywords(inner_kwargs);
    ++disabled_depth;
    PyObject* result = python_call(PyObject_Call, func, positional.get(), named);
    --disabled_depth;
    return must(result);
  });
}

PyObject* change_disabled(PyObject*, PyObject* delta) {
  long d = PyLong_AsLong(delta);
  if (d == -1 && PyErr_Occurred()) return nullptr;
  disabled_depth += static_cast<int>(d);
  Py_RETURN_NONE;
}

// ---- classes that handle every call ----

PyTypeObject* every_call = nullptr;  // its tensors have no storage that a kernel could read

bool sees_every_call(const Tensor& t) {
  if (!t.defined() || !(t.flags() & kOverride)) return false;
  auto* o = static_cast<PyObject*>(t.impl()->python);
  return o && PyType_IsSubtype(Py_TYPE(o), every_call);
}

bool sees_every_call(const Call& c) {
  if (sees_every_call(c.out)) return true;
  return std::any_of(c.args.begin(), c.args.end(), [](const Value& v) {
    if (auto* t = std::get_if<Tensor>(&v)) return sees_every_call(*t);
    auto* list = std::get_if<TensorList>(&v);
    return list && std::any_of(list->begin(), list->end(),
                               [](const Tensor& t) { return sees_every_call(t); });
  });
}

// Lets the class handle an op called from C++.
Value ask_class(const Call& c) {
  AcquireGil gil;
  check(!c.out.defined() || c.op.inplace_form, c.op.name,
        "(): out= takes and gives strided tensors only");
  PyRef positional = take(PyList_New(0)), named = take(PyDict_New());
  for (size_t i = 0; i < c.args.size(); ++i) {
    PyRef value = take(result_object(Value(c.args[i])));
    const Arg& arg = c.op.args[i];
    if (arg.keyword_only) must(PyDict_SetItemString(named.get(), arg.name.c_str(), value.get()));
    else must(PyList_Append(positional.get(), value.get()));
  }
  PyRef args = take(PyList_AsTuple(positional.get()));
  const OpTable* table = find_table(c.op.name);
  if (!table) fail<NotImplemented>(c.op.name, "() does not take sparse tensors");
  PyObject* function = table->method ? table->method : table->function;
  auto* type = reinterpret_cast<PyObject*>(every_call);
  PyRef types = take(PyTuple_Pack(1, type));
  PyRef result = take(python_call(PyObject_CallMethod, type, "__torch_function__", "OOOO", function,
                                  types.get(), args.get(), named.get()));
  check<TypeError>(is_tensor(result.get()), c.op.name, "() gave no tensor");
  return tensor_of(result.get());
}

// Ops called from Python have checked for overrides already, and ops called from C++ run inside one
// of those. Only classes without storage and vmap's batched tensors are handled here.
Value pass_on(Call& c, uint32_t inner) {
  if (has_batched(c)) {
    if (std::optional<Value> result = apply_rule(c)) return std::move(*result);
  }
  return every_call && sees_every_call(c) ? ask_class(c) : call_inner(c, inner);
}

PyObject* set_every_call(PyObject*, PyObject* type) {
  return guarded([&] {
    check<TypeError>(
        PyType_Check(type) && PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(type), TensorType),
        "_sees_every_call() needs a subclass of Tensor");
    every_call = reinterpret_cast<PyTypeObject*>(Py_NewRef(type));
    return Py_NewRef(type);
  });
}

template <class F> PyCFunction function_pointer(F* f) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(f));
}

// ---- modes ----

PyObject* push_mode(PyObject*, PyObject* mode) {
  modes.push_back(Py_NewRef(mode));
  ++function_modes_entered;
  Py_RETURN_NONE;
}
PyObject* pop_mode(PyObject*, PyObject*) {
  return guarded([&] {
    check(!modes.empty(), "_pop_torch_function_mode(): the thread is in no TorchFunctionMode");
    PyObject* mode = modes.back();
    modes.pop_back();
    --function_modes_entered;
    return mode;
  });
}
PyObject* list_modes(PyObject*, PyObject*) {
  PyObject* list = PyList_New(static_cast<Py_ssize_t>(modes.size()));
  for (size_t i = 0; list && i < modes.size(); ++i)
    PyList_SET_ITEM(list, static_cast<Py_ssize_t>(i), Py_NewRef(modes[i]));
  return list;
}

// Deactivates the innermost mode while its handler runs, so that ops called by it reach the next
// outer mode.
class InnermostMode {
 public:
  InnermostMode() : mode_(modes.back()) {
    modes.pop_back();
    --function_modes_entered;
  }
  InnermostMode(const InnermostMode&) = delete;
  InnermostMode& operator=(const InnermostMode&) = delete;
  ~InnermostMode() {
    modes.push_back(mode_);
    ++function_modes_entered;
  }
  PyObject* mode() const { return mode_; }

 private:
  PyObject* mode_;
};

PyMethodDef module_functions[] = {
    {"_push_torch_function_mode", push_mode, METH_O,
     "Puts a mode on this thread's stack: its __torch_function__ is asked about every call."},
    {"_pop_torch_function_mode", pop_mode, METH_NOARGS,
     "Takes the innermost mode from this thread's stack and returns it."},
    {"_torch_function_modes", list_modes, METH_NOARGS,
     "The modes that this thread is in, the innermost last."},
    {"_disabled_torch_function_impl", function_pointer(plain_function),
     METH_VARARGS | METH_KEYWORDS,
     "A __torch_function__ that runs the op as if the class had none."},
    {"_change_torch_function_disabled", change_disabled, METH_O,
     "Adds to the depth at which this thread ignores __torch_function__."},
    {"_sees_every_call", set_every_call, METH_O,
     "A class decorator: __torch_function__ of the class is asked about every op, also those that "
     "are called from C++."},
    {nullptr, nullptr, 0, nullptr}};
PyMethodDef tensor_methods[] = {{"__torch_function__", function_pointer(default_function),
                                 METH_VARARGS | METH_KEYWORDS | METH_CLASS,
                                 "__torch_function__(func, types, args=(), kwargs=None)\n\nRun "
                                 "`func`; its results are of this class."},
                                {nullptr, nullptr, 0, nullptr}};

}  // namespace

int function_modes_entered = 0;

OverridesOff::OverridesOff() : modes_(std::exchange(modes, {})) {
  function_modes_entered -= static_cast<int>(modes_.size());
  ++disabled_depth;
}
OverridesOff::~OverridesOff() {
  --disabled_depth;
  function_modes_entered += static_cast<int>(modes_.size());
  modes = std::move(modes_);
}

bool overrides_disabled() { return disabled_depth > 0; }

bool has_torch_function(PyTypeObject* type) {
  return _PyType_Lookup(type, attribute_name()) != nullptr;
}

bool overrides_functions(PyTypeObject* type) {
  return function_of(type).get() != disabled_function;
}

PyObject* call_override(PyObject* function, PyObject* const* args, size_t nargs,
                        PyObject* kwnames) {
  const bool in_mode = !modes.empty();
  if (disabled_depth > 0 && !in_mode) return nullptr;
  size_t keywords = kwnames ? static_cast<size_t>(PyTuple_GET_SIZE(kwnames)) : 0;
  std::vector<PyRef> found;
  if (disabled_depth == 0) {
    for (size_t i = 0; i < nargs + keywords; ++i) collect(args[i], found);
  }
  if (is_python_function(function)) {  // tensors without memory compute it by its parts
    std::erase_if(found, [](const PyRef& o) {
      return every_call && PyType_IsSubtype(Py_TYPE(o.get()), every_call);
    });
  }
  if (found.empty() && !in_mode) return nullptr;
  for (const PyRef& o : found) {
    if (is_from_pytorch(Py_TYPE(o.get())))
      fail<TypeError>(to_string(take(PyObject_GetAttrString(function, "__name__")).get()),
                      "(): expected taeda.Tensor, but got torch.", type_name(o.get()),
                      ": convert it with taeda.from_dlpack(t) or taeda.as_tensor(t)");
  }

  PyRef types = take(PyTuple_New(static_cast<Py_ssize_t>(found.size())));
  for (size_t i = 0; i < found.size(); ++i) {
    PyTuple_SET_ITEM(types.get(), static_cast<Py_ssize_t>(i),
                     Py_NewRef(reinterpret_cast<PyObject*>(Py_TYPE(found[i].get()))));
  }
  PyRef positional = take(PyTuple_New(static_cast<Py_ssize_t>(nargs)));
  for (size_t i = 0; i < nargs; ++i)
    PyTuple_SET_ITEM(positional.get(), static_cast<Py_ssize_t>(i), Py_NewRef(args[i]));
  PyRef named = take(PyDict_New());
  for (size_t i = 0; i < keywords; ++i) {
    must(PyDict_SetItem(named.get(), PyTuple_GET_ITEM(kwnames, static_cast<Py_ssize_t>(i)),
                        args[nargs + i]));
  }
  if (in_mode) {
    const InnermostMode asked;
    PyRef result = take(python_call(PyObject_CallMethodObjArgs, asked.mode(), attribute_name(),
                                    function, types.get(), positional.get(), named.get(), nullptr));
    if (result.get() != Py_NotImplemented) return result.release();
  }
  for (const PyRef& o : found) {
    PyRef f = function_of(Py_TYPE(o.get()));
    if (!f) continue;
    PyRef result = take(python_call(PyObject_CallFunctionObjArgs, f.get(), function, types.get(),
                                    positional.get(), named.get(), nullptr));
    if (result.get() != Py_NotImplemented) return result.release();
  }
  PyRef text = take(PyObject_Repr(types.get()));
  fail<TypeError>("no implementation found for '", to_string(take(PyObject_Str(function)).get()),
                  "' on types that implement __torch_function__: ", to_string(text.get()));
}

PyObject* ask_modes(const char* function, PyObject* args, PyObject* kwargs) {
  if (modes.empty()) return nullptr;
  PyRef module = take(PyImport_ImportModule("taeda._C"));
  PyRef callee = take(PyObject_GetAttrString(module.get(), function));
  std::vector<PyObject*> values;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args); ++i)
    values.push_back(PyTuple_GET_ITEM(args, i));
  const size_t positional = values.size();
  PyRef names(kwargs ? must(PySequence_Tuple(kwargs)) : nullptr);
  PyObject *key, *value;
  for (Py_ssize_t at = 0; kwargs && PyDict_Next(kwargs, &at, &key, &value);)
    values.push_back(value);
  return call_override(callee.get(), values.data(), positional, names.get());
}

void init_overrides(PyObject* module) {
  must(PyModule_AddFunctions(module, module_functions));
  init_function_overrides(module);
  disabled_function = must(PyObject_GetAttrString(module, "_disabled_torch_function_impl"));
  add_methods(tensor_methods);
  set_layer(kOverrideLayer, pass_on);
}

}  // namespace taeda::py
