// The layer below autograd that asks the thread's TorchDispatchModes about every op, and the
// classes of its arguments that have __torch_dispatch__. Its bit is set in Modes::always while
// there are modes, and by the dispatcher for tensors with kDispatch, so that it costs nothing
// otherwise.
#include "python/dispatch_modes.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "autograd/layer.h"
#include "autograd/meta.h"
#include "ops/core/op.h"
#include "python/arguments.h"
#include "python/dispatch_classes.h"
#include "python/objects.h"
#include "python/op_callable.h"
#include "python/overrides.h"
#include "python/tensor_type.h"

namespace taeda::py {
namespace {

// Active in this thread, the innermost last; the thread owns a reference to each.
thread_local std::vector<PyObject*> active;
PyObject* namer = nullptr;  // gives the function of an op's name, arguments and keywords

void push(PyObject* mode) {
  active.push_back(mode);
  modes.always |= kDispatchLayer;
}
PyObject* pop() {
  PyObject* mode = active.back();
  active.pop_back();
  if (active.empty()) modes.always &= ~static_cast<uint32_t>(kDispatchLayer);
  return mode;
}

// Sets the innermost mode aside while it answers: what it calls reaches the next.
class Answering {
 public:
  Answering() : mode_(pop()) {}
  Answering(const Answering&) = delete;
  Answering& operator=(const Answering&) = delete;
  ~Answering() { push(mode_); }
  PyObject* mode() const { return mode_; }

 private:
  PyObject* mode_;
};

template <class Items, class F> PyRef list_of(const Items& items, F&& make) {
  PyRef list = take(PyList_New(static_cast<Py_ssize_t>(items.size())));
  Py_ssize_t i = 0;
  for (const auto& item : items) PyList_SET_ITEM(list.get(), i++, must(make(item)));
  return list;
}

// Whether an argument may be a Python number in place of a tensor.
bool takes_number(const Op& op, size_t i) {
  const Numbers numbers = op.traits.numbers;
  return numbers != Numbers::None && (numbers != Numbers::AfterSelf || i > 0);
}

// An argument as PyTorch's modes see it: numbers are Python's, several of them a list.
PyRef argument_object(const Call& c, size_t i) {
  const Value& v = c.args[i];
  if (auto* t = std::get_if<Tensor>(&v)) {
    const bool number = t->defined() && t->is_wrapped_number() && takes_number(c.op, i);
    return PyRef(number ? scalar_object(t->item()) : wrap(*t));
  }
  if (auto* list = std::get_if<TensorList>(&v))
    return list_of(*list, [](const Tensor& t) { return wrap(t); });
  if (auto* dims = std::get_if<Dims>(&v))
    return list_of(*dims, [](int64_t n) { return PyLong_FromLongLong(n); });
  if (auto* numbers = std::get_if<std::vector<double>>(&v))
    return list_of(*numbers, [](double n) { return PyFloat_FromDouble(n); });
  return PyRef(must(result_object(Value(v))));
}

bool is_default(const Arg& arg, const Value& v) {
  const Value& d = arg.fallback;
  if (!arg.has_default || d.index() != v.index()) return false;
  return std::visit(
      [&v](const auto& other) {
        using T = std::decay_t<decltype(other)>;
        if constexpr (std::is_same_v<T, std::monostate>) return true;
        else if constexpr (std::is_same_v<T, Scalar>) {
          const auto& own = std::get<Scalar>(v);
          return own.kind() == other.kind() &&
                 own.template to<cdouble>() == other.template to<cdouble>();
        } else if constexpr (std::is_same_v<T, Dims>) {
          return same(std::get<Dims>(v), other);
        } else if constexpr (std::is_same_v<T, Tensor> || std::is_same_v<T, TensorList> ||
                             std::is_same_v<T, Generator>) {
          return false;
        } else {
          return std::get<T>(v) == other;
        }
      },
      d);
}

struct PythonCall {
  PyRef args, kwargs;
};

// Whether a new tensor requires a gradient is not the op's to say, but autograd's.
bool is_for_autograd(const Arg& arg) { return arg.name == "requires_grad"; }

// The call without the arguments at the end that have their default.
PythonCall python_call_of(const Call& c) {
  PyRef positional = take(PyList_New(0)), named = take(PyDict_New());
  size_t count = 0;
  for (size_t i = 0; i < c.args.size(); ++i) {
    if (!c.op.args[i].keyword_only && !is_default(c.op.args[i], c.args[i])) count = i + 1;
  }
  for (size_t i = 0; i < c.args.size(); ++i) {
    const Arg& arg = c.op.args[i];
    if (arg.keyword_only) {
      if (is_default(arg, c.args[i]) || is_for_autograd(arg)) continue;
      must(PyDict_SetItemString(named.get(), arg.name.c_str(), argument_object(c, i).get()));
    } else if (i < count) {
      must(PyList_Append(positional.get(), argument_object(c, i).get()));
    }
  }
  if (c.out.defined() && !c.op.inplace_form)
    must(PyDict_SetItemString(named.get(), "out", PyRef(wrap(c.out)).get()));
  return {take(PyList_AsTuple(positional.get())), std::move(named)};
}

// What a call writes to and returns, whatever a mode or class gives: self or `out`.
const Tensor* target(const Call& c) {
  if (c.out.defined()) return &c.out;
  return c.op.inplace_form ? &std::get<Tensor>(c.args[0]) : changed_tensor(c);
}

// A tensor that a mode or class has given, for the layers outside. Its history, if it has one,
// stays behind: they set their own.
Tensor given_tensor(const Call& c, PyObject* o) {
  check<TypeError>(is_tensor(o), c.op.name, "(): __torch_dispatch__ must give a Tensor, not ",
                   type_name(o));
  const Tensor& t = tensor_of(o);
  if (!(t.flags() & kRequiresGrad) || is_argument(t, c.args) || t.is(c.out)) return t;
  if ((t.flags() & kDispatch) && is_leaf(t)) return t;
  return alias(t);
}

// Derivatives, and _unique, give nothing in place of a tensor that nobody has asked for.
bool may_give_nothing(const Op& op) {
  return op.name == "_unique" || op.name.find("backward") != std::string::npos;
}

Value given_value(const Call& c, PyObject* o) {
  const Op& op = c.op;
  if (op.returns == 1) {
    const Tensor* self = target(c);
    if (self && o == Py_None) return *self;
    Tensor given = given_tensor(c, o);
    return self ? *self : given;
  }
  if (op.returns == 0) {
    if (op.return_type == "Scalar") {
      Scalar s;
      check<TypeError>(as_scalar(o, &s, false), op.name,
                       "(): __torch_dispatch__ must give a number, not ", type_name(o));
      return s;
    }
    if (op.return_type == "bool") {
      const int yes = PyObject_IsTrue(o);
      must(yes);
      return yes == 1;
    }
    if (op.return_type == "int") {
      const int64_t n = PyLong_AsLongLong(o);
      if (n == -1 && PyErr_Occurred()) throw PythonError();
      return n;
    }
    return {};
  }
  check<TypeError>(PyTuple_Check(o) || PyList_Check(o), op.name,
                   "(): __torch_dispatch__ must give several Tensors, not ", type_name(o));
  TensorList list;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(o); ++i) {
    const PyRef item = PyRef::borrow(PySequence_Fast_GET_ITEM(o, i));
    const bool nothing = item.get() == Py_None && may_give_nothing(op);
    list.push_back(nothing ? Tensor() : given_tensor(c, item.get()));
  }
  check<TypeError>(op.returns < 0 || list.size() == static_cast<size_t>(op.returns), op.name,
                   "(): __torch_dispatch__ must give ", op.returns, " Tensors, not ", list.size());
  return list;
}

bool wants_gradient(const Call& c) {
  for (size_t i = 0; i < c.args.size(); ++i) {
    if (is_for_autograd(c.op.args[i])) return std::get<bool>(c.args[i]);
  }
  return false;
}

PyRef function_of(const Call& c, const PythonCall& call) {
  if (!namer) take(python_call(PyImport_ImportModule, "taeda._dispatched"));  // which sets it
  return take(python_call(PyObject_CallFunction, namer, "sOO", c.op.name.c_str(), call.args.get(),
                          call.kwargs.get()));
}

// The handler's result, or NotImplemented. `owner` is a mode or a class.
PyRef ask_one(PyObject* owner, PyObject* function, PyObject* types, const PythonCall& call) {
  return take(python_call(PyObject_CallMethod, owner, "__torch_dispatch__", "OOOO", function, types,
                          call.args.get(), call.kwargs.get()));
}

[[noreturn]] void fail_unanswered(PyObject* function, PyObject* mode, PyObject* types) {
  std::string text;
  if (mode) text += "\n\n  - mode object " + to_string(take(PyObject_Repr(mode)).get());
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(types); ++i) {
    text += "\n\n  - tensor subclass " +
            to_string(take(PyObject_Repr(PyTuple_GET_ITEM(types, i))).get());
  }
  fail<TypeError>("Multiple dispatch failed for '", to_string(take(PyObject_Str(function)).get()),
                  "'; all __torch_dispatch__ handlers returned NotImplemented:", text);
}

// Asks the innermost mode, then the classes. Nothing that they call is recorded, since autograd has
// been passed already.
Value answer(const Call& c, PyObject* types) {
  const PythonCall call = python_call_of(c);
  PyRef function = function_of(c, call);
  const GradMode off(false);
  const OverridesOff overrides;
  modes.always &= kDispatchLayer;  // the other layers have seen the call
  PyRef mode, result = PyRef::borrow(Py_NotImplemented);
  if (!active.empty()) {
    const Answering asked;
    mode = PyRef::borrow(asked.mode());
    result = ask_one(mode.get(), function.get(), types, call);
  }
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(types) && result.get() == Py_NotImplemented; ++i)
    result = ask_one(PyTuple_GET_ITEM(types, i), function.get(), types, call);
  if (result.get() == Py_NotImplemented) fail_unanswered(function.get(), mode.get(), types);
  return given_value(c, result.get());
}

// It is answered without recording, but the view is not one that was made under no_grad.
void unmark_views(const Call& c, Value& result) {
  each_result(result, [&](Tensor& t, uint32_t) {
    if (t.impl()->base && !is_argument(t, c.args)) t.impl()->no_grad_view = false;
  });
}

// Composite ops are seen by their parts.
Value dispatch_layer(Call& c, uint32_t inner) {
  if (c.op.traits.composite) return call_inner(c, inner);
  std::optional<AcquireGil> gil(std::in_place);
  PyRef types = dispatching_types(c);
  if (active.empty() && PyTuple_GET_SIZE(types.get()) == 0) {
    types = {};
    gil.reset();
    check_memory(c);
    return call_inner(c, inner);
  }
  Value result = answer(c, types.get());
  if (PyTuple_GET_SIZE(types.get()) > 0) finish_class_result(c, target(c), result);
  if (c.op.traits.view && c.grad) unmark_views(c, result);
  if (wants_gradient(c)) set_requires_grad(std::get<Tensor>(result), true);
  return result;
}

PyObject* push_mode(PyObject*, PyObject* mode) {
  return guarded([&] {
    check<TypeError>(PyObject_HasAttrString(mode, "__torch_dispatch__"),
                     "_push_dispatch_mode(): expected a TorchDispatchMode, got ", type_name(mode));
    push(Py_NewRef(mode));
    return Py_NewRef(Py_None);
  });
}
PyObject* pop_mode(PyObject*, PyObject*) {
  return guarded([&] {
    check(!active.empty(), "_pop_dispatch_mode(): the thread is in no TorchDispatchMode");
    return pop();
  });
}
PyObject* list_modes(PyObject*, PyObject*) {
  return guarded(
      [] { return list_of(active, [](PyObject* m) { return Py_NewRef(m); }).release(); });
}
PyObject* set_namer(PyObject*, PyObject* function) {
  Py_XSETREF(namer, Py_NewRef(function));
  Py_RETURN_NONE;
}

PyMethodDef functions[] = {
    {"_push_dispatch_mode", push_mode, METH_O,
     "Puts a mode on this thread's stack: its __torch_dispatch__ is asked about every op."},
    {"_pop_dispatch_mode", pop_mode, METH_NOARGS,
     "Takes the innermost mode from this thread's stack and returns it."},
    {"_dispatch_modes", list_modes, METH_NOARGS,
     "The TorchDispatchModes that this thread is in, the innermost last."},
    {"_name_dispatched_ops", set_namer, METH_O,
     "Sets the function that finds what modes are given as `func`, by name, args and kwargs."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

void init_dispatch_modes(PyObject* module) {
  must(PyModule_AddFunctions(module, functions));
  set_layer(kDispatchLayer, dispatch_layer);
  init_dispatch_classes(module);
}

}  // namespace taeda::py
