#include "python/batching.h"

#include <algorithm>
#include <unordered_map>

#include "autograd/meta.h"
#include "python/op_callable.h"
#include "python/tensor_type.h"
#include "python/traits.h"
#include "tensor/readable.h"

namespace taeda::py {
namespace {

PyTypeObject* batched_type = nullptr;
PyObject* rule_maker = nullptr;

// Cache of the rules that have been looked up, guarded by the GIL.
std::unordered_map<const Op*, PyObject*>& rules() {
  static std::unordered_map<const Op*, PyObject*> table;
  return table;
}

// rule_maker(name, schema, function or None, traits)
PyObject* rule_of(const Op& op) {
  PyObject*& rule = rules()[&op];
  if (!rule) {
    const OpTable* table = find_table(op.name);
    PyRef traits = take(traits_dict(op));
    rule = must(python_call(PyObject_CallFunction, rule_maker, "ssOO", op.name.c_str(),
                            op.signature.c_str(), table ? table->function : Py_None, traits.get()));
  }
  return rule;
}

const Tensor& result_tensor(const Op& op, PyObject* o) {
  check<TypeError>(is_tensor(o), op.name, "(): its batching rule must give tensors, not ",
                   type_name(o));
  return tensor_of(o);
}

Value result_value(const Op& op, PyObject* o) {
  if (is_tensor(o)) return tensor_of(o);
  if (o == Py_None) return {};
  check<TypeError>(PyTuple_Check(o) || PyList_Check(o), op.name,
                   "(): its batching rule must give tensors, not ", type_name(o));
  TensorList list;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(o); ++i)
    list.push_back(result_tensor(op, PySequence_Fast_GET_ITEM(o, i)));
  return list;
}

bool takes_generator(const Op& op) {
  return std::any_of(op.args.begin(), op.args.end(),
                     [](const Arg& a) { return a.kind == ArgKind::Generator; });
}

// Inside vmap, random ops may have to draw for each element even if no argument is batched.
Value draw(Call& c, uint32_t inner) {
  if (takes_generator(c.op) && !has_batched(c)) {
    if (std::optional<Value> result = apply_rule(c)) return std::move(*result);
  }
  return call_inner(c, inner);
}

void refuse_reading(const Tensor& t) {
  if (!is_batched(t)) return;
  fail(
      "vmap: It looks like you're calling .item() on a Tensor. We don't support vmap over calling "
      ".item() on a Tensor, please try to rewrite what you're doing with other operations.");
}

// A tensor without its first dimension: its first slice or, if there is none, an arbitrary tensor
// of these sizes.
Tensor without_first(const Tensor& t) {
  check(t.dim() > 0, "_hide_first_dim(): expected a tensor with a dimension");
  DimsRef sizes = t.sizes().subspan(1), strides = t.strides().subspan(1);
  if (t.sizes()[0] == 0) return empty(sizes, t.options());
  Tensor hidden = alias(t);
  set_geometry(hidden, sizes, strides, t.offset());
  return hidden;
}

void need_batching() { check(batched_type, "no batching rules are registered yet"); }

// _hide_first_dim(tensor): a batched tensor, whose attributes the caller sets.
PyObject* hide_first_dim(PyObject*, PyObject* o) {
  return guarded([&] {
    need_batching();
    check<TypeError>(is_tensor(o), "_hide_first_dim(): expected a Tensor, got ", type_name(o));
    Tensor hidden = without_first(tensor_of(o));
    // Some composite ops compute more if an argument requires a gradient.
    if (requires_grad(tensor_of(o))) hidden.impl()->flags |= kRequiresGrad;
    return wrap_as(std::move(hidden), batched_type);
  });
}

// _hide_again(batched, tensor): gives a batched tensor the geometry of `tensor` without its first
// dimension.
PyObject* hide_again(PyObject*, PyObject* args) {
  PyObject *batched, *value;
  return guarded([&]() -> PyObject* {
    need_batching();
    if (!PyArg_ParseTuple(args, "O!O!", batched_type, &batched, TensorType, &value)) return nullptr;
    Tensor hidden = without_first(tensor_of(value));
    if (hidden.numel() && hidden.storage() == tensor_of(batched).storage())
      set_geometry(tensor_of(batched), hidden.sizes(), hidden.strides(), hidden.offset());
    else resize(tensor_of(batched), hidden.sizes());
    Py_RETURN_NONE;
  });
}

// _set_batching(type, rule_maker): registers the batched tensor class and the rule factory.
PyObject* set_batching(PyObject*, PyObject* args) {
  PyObject *type, *maker;
  if (!PyArg_ParseTuple(args, "O!O", &PyType_Type, &type, &maker)) return nullptr;
  return guarded([&] {
    check<TypeError>(PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(type), TensorType),
                     "_set_batching() needs a subclass of Tensor");
    batched_type = reinterpret_cast<PyTypeObject*>(Py_NewRef(type));
    rule_maker = Py_NewRef(maker);
    check_readable = refuse_reading;
    set_layer(kBatchLayer, draw);
    Py_RETURN_NONE;
  });
}

// _is_batched(object): whether it is a batched tensor, whose elements cannot be read.
PyObject* is_batched_object(PyObject*, PyObject* o) {
  return PyBool_FromLong(is_tensor(o) && is_batched(tensor_of(o)));
}

// _is_number(tensor): whether it represents a Python number, which promotes as one.
PyObject* is_number(PyObject*, PyObject* o) {
  return PyBool_FromLong(is_tensor(o) && tensor_of(o).is_wrapped_number());
}

// _watch_random(on): whether random ops of this thread look up their batching rules.
PyObject* watch_random(PyObject*, PyObject* on) {
  return guarded([&] {
    need_batching();
    const int wanted = PyObject_IsTrue(on);
    must(wanted);
    if (wanted) modes.always |= kBatchLayer;
    else modes.always &= ~uint32_t(kBatchLayer);
    return Py_NewRef(Py_None);
  });
}

PyMethodDef functions[] = {{"_hide_first_dim", hide_first_dim, METH_O, nullptr},
                           {"_hide_again", hide_again, METH_VARARGS, nullptr},
                           {"_set_batching", set_batching, METH_VARARGS, nullptr},
                           {"_is_batched", is_batched_object, METH_O, nullptr},
                           {"_is_number", is_number, METH_O, nullptr},
                           {"_watch_random", watch_random, METH_O, nullptr},
                           {nullptr, nullptr, 0, nullptr}};

}  // namespace

bool is_batched_type(PyTypeObject* type) { return batched_type && type == batched_type; }

bool is_batched(const Tensor& t) {
  if (!batched_type || !t.defined() || !(t.flags() & kOverride)) return false;
  auto* o = static_cast<PyObject*>(t.impl()->python);
  return o && Py_TYPE(o) == batched_type;
}

bool has_batched(const Call& c) {
  if (!batched_type) return false;
  if (is_batched(c.out)) return true;
  return std::any_of(c.args.begin(), c.args.end(), [](const Value& v) {
    if (auto* t = std::get_if<Tensor>(&v)) return is_batched(*t);
    auto* list = std::get_if<TensorList>(&v);
    return list && std::any_of(list->begin(), list->end(), is_batched);
  });
}

void check_not_read(PyObject* o) {
  if (is_tensor(o) && tensor_of(o).dim() == 0) refuse_reading(tensor_of(o));
}

void check_not_batched(const Op& op, const Tensor& out) {
  check(!is_batched(out), "vmap: ", op.name,
        "() with out= is not supported for tensors that are vmapped over");
}

std::optional<Value> apply_rule(Call& c) {
  if (!c.op.inplace_form) check_not_batched(c.op, c.out);
  AcquireGil gil;
  PyRef args = take(PyTuple_New(static_cast<Py_ssize_t>(c.args.size())));
  for (size_t i = 0; i < c.args.size(); ++i) {
    PyTuple_SET_ITEM(args.get(), static_cast<Py_ssize_t>(i), must(result_object(Value(c.args[i]))));
  }
  PyRef result = take(python_call(PyObject_CallOneArg, rule_of(c.op), args.get()));
  if (result.get() == Py_NotImplemented) return std::nullopt;
  check(!c.out.defined() || c.op.inplace_form, "vmap: ", c.op.name,
        "() with out= is not supported for tensors that are vmapped over");
  return result_value(c.op, result.get());
}

void init_batching(PyObject* module) { must(PyModule_AddFunctions(module, functions)); }

}  // namespace taeda::py
