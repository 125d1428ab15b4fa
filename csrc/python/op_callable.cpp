#include "python/op_callable.h"

#include <algorithm>
#include <deque>
#include <set>
#include <sstream>
#include <unordered_map>

#include "autograd/forward.h"
#include "autograd/meta.h"
#include "base/device_runtime.h"
#include "base/warn.h"
#include "ops/core/out_memory.h"
#include "python/autograd.h"
#include "python/batching.h"
#include "python/objects.h"
#include "python/op_object.h"
#include "python/overrides.h"
#include "python/results.h"
#include "python/tensor_type.h"
#include "tensor/plan.h"

namespace taeda::py {

PyTypeObject* OpFunctionType = nullptr;
PyTypeObject* OpMethodType = nullptr;

namespace {

// Below this many elements, releasing the GIL costs more than it gains.
constexpr int64_t kReleaseGilAt = 1 << 16, kReleaseGilHeavyAt = 1 << 10;

std::deque<OpTable>& tables() {
  static std::deque<OpTable> t;
  return t;
}
std::unordered_map<std::string_view, const OpTable*>& table_index() {
  static std::unordered_map<std::string_view, const OpTable*> index;
  return index;
}

struct ArgumentSummary {  // of all tensor arguments
  uint32_t flags = 0;
  int64_t numel = 0;
};
ArgumentSummary summarize_args(std::span<const Value> values) {
  ArgumentSummary g;
  auto look = [&](const Tensor& t) __attribute__((always_inline)) {
    if (!t.defined()) return;
    g.flags |= t.flags();
    g.numel = std::max(g.numel, t.numel());
  };
  for (const Value& v : values) {
    if (auto* t = std::get_if<Tensor>(&v)) look(*t);
    else if (auto* list = std::get_if<TensorList>(&v))
      for (const Tensor& t : *list) look(t);
    else if (auto* d = std::get_if<Dims>(&v)) {  // sizes of a new tensor
      int64_t n = 1;
      for (int64_t s : *d) n = s > 0 && n < kReleaseGilAt ? n * std::min(s, kReleaseGilAt) : n;
      g.numel = std::max(g.numel, n);
    }
  }
  return g;
}

Value run(const Op& op, Values& values, Tensor out, const ArgumentSummary& seen) {
  if (seen.numel < (op.traits.heavy ? kReleaseGilHeavyAt : kReleaseGilAt))
    return call(op, values.span(), std::move(out), seen.flags);
  ReleaseGil unlocked;
  return call(op, values.span(), std::move(out), seen.flags);
}

// out=(a, b) of an op with several results: computes them, then copies them there. Returns None if
// the number of results depends on the arguments.
PyObject* run_into(const OpTable& table, const Op& op, Values& values, PyObject* out,
                   const ArgumentSummary& seen) {
  const bool listed = PyTuple_Check(out) || PyList_Check(out);
  if (op.returns < 0)
    check<TypeError>(listed, op.name, "(): argument 'out' must be a tuple of Tensors");
  check<TypeError>(op.returns < 0 || (listed && PySequence_Fast_GET_SIZE(out) == op.returns),
                   op.name, "(): argument 'out' must be a tuple of ", op.returns, " Tensors");
  std::vector<PyRef> items;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(out); ++i) {
    PyObject* item = PySequence_Fast_GET_ITEM(out, i);
    if (!is_tensor(item)) {
      fail<TypeError>("expected Tensor as element ", i, " in argument 'out' of ", op.name,
                      "(), but got ", type_name(item));
    }
    check_no_internal_overlap(tensor_of(item));
    check_not_batched(op, tensor_of(item));
    check_out_memory(op, values.span(), tensor_of(item), static_cast<int>(i));
    items.push_back(PyRef::borrow(item));
  }
  check(!(modes.grad && (seen.flags & kRequiresGrad)), op.name,
        "(): functions with out=... arguments don't support automatic differentiation, but one of "
        "the arguments "
        "requires grad.");
  Value result = run(op, values, {}, seen);
  const auto& list = std::get<TensorList>(result);
  check(list.size() == items.size(), op.name, "(): expected an out= argument of size ", list.size(),
        ", got size ", items.size());
  for (size_t i = 0; i < list.size(); ++i) {
    const Tensor& target = tensor_of(items[i].get());
    check_no_tangent(list[i], op);
    if (!target.is_placeholder() && !list[i].is_placeholder())
      check_out_dtype(op, target, list[i].dtype());  // of all, before the first is written
    check_resized_out(op, values.span(), target, list[i], static_cast<int>(i));
  }
  for (size_t i = 0; i < list.size(); ++i) {
    const Tensor& target = tensor_of(items[i].get());
    write_out(op, target, list[i]);
    target.bump_version();
  }
  if (op.returns < 0) Py_RETURN_NONE;
  return table.return_type ? make_named_tuple(table.return_type, items)
                           : must(PySequence_Tuple(out));
}

// An op with a dtype argument computes in the dtype of `out` if none is given and any is taken.
void take_dtype_of(const Tensor& out, const Signature& s, Values& values) {
  for (size_t i = 0; i < s.size(); ++i) {
    const Param& p = s.params()[i];
    if (p.kind == ArgKind::DType && p.arg->name == "dtype" && is_none(values[i]))
      values[i] = out.dtype();
  }
}

[[noreturn, gnu::cold]] void no_overload(const OpTable& table, const PyArgs& call) {
  for (size_t i = 0; i < call.count + call.keywords(); ++i) check_not_read(call.args[i]);
  const Signature* only = table.overloads.size() == 1 ? &table.overloads[0] : nullptr;
  if (!only) {
    for (const Signature& s : table.overloads) {
      if (!s.plausible(call)) continue;
      if (only) {
        only = nullptr;
        break;
      }
      only = &s;
    }
  }
  if (only) {
    Values values(only->size());
    PyObject* out = nullptr;
    Extras extras;
    only->parse(call, values, &out, &extras, true);
  }
  std::string s = table.name + "() received an invalid combination of arguments - got " +
                  describe(call) + ", but expected one of:\n";
  for (const Signature& o : table.overloads) s += " * " + o.text(call.method) + "\n";
  fail<TypeError>(s);
}

// The call with its numbers as keywords, if that is what the arguments of an old signature mean
// (Traits::old_orders).
// `names` owns the keywords' names.
bool rewrite_old(const PyArgs& call, std::string_view order, std::vector<PyObject*>& args,
                 PyRef* names) {
  if (call.count != order.size()) return false;
  std::string given(order);  // a method's first argument is always self
  if (call.method) {
    std::erase(given, 's');
    given.insert(given.begin(), 's');
  }
  const bool numbers_too = order.size() == 3;  // add(x, 2, 3)
  std::vector<std::pair<const char*, PyObject*>> keywords;
  PyObject* self = nullptr;
  for (size_t i = 0; i < given.size(); ++i) {
    PyObject* o = call.args[i];
    Scalar number;
    const bool tensor = is_tensor(o);
    if (given[i] == 's') {
      if (!tensor) return false;
      self = o;
    } else if (given[i] == 't') {
      if (!tensor && !(numbers_too && as_scalar(o, &number))) return false;
      args.push_back(o);
    } else {
      if (!as_scalar(o, &number)) return false;
      keywords.emplace_back(given[i] == 'a' ? "alpha" : given[i] == 'b' ? "beta" : "value", o);
    }
  }
  args.insert(args.begin(), self);
  const auto more = static_cast<Py_ssize_t>(call.keywords());
  *names = take(PyTuple_New(more + static_cast<Py_ssize_t>(keywords.size())));
  for (Py_ssize_t i = 0; i < more; ++i) {
    args.push_back(call.args[call.count + static_cast<size_t>(i)]);
    PyTuple_SET_ITEM(names->get(), i, Py_NewRef(PyTuple_GET_ITEM(call.kwnames, i)));
  }
  for (size_t i = 0; i < keywords.size(); ++i) {
    args.push_back(keywords[i].second);
    PyTuple_SET_ITEM(names->get(), more + static_cast<Py_ssize_t>(i),
                     must(PyUnicode_InternFromString(keywords[i].first)));
  }
  return true;
}

void warn_of_old_signature(const std::string& name) {
  static std::set<std::string> warned;
  if (name == "rsub" || (!warned.insert(name).second && !warn_always)) return;
  warn(str("This overload of ", name,
           " is deprecated: numbers stand before the tensors that they "
           "multiply. Give alpha, beta or value by keyword."));
}

// What a factory gives for a layout other than strided: a tensor without elements.
[[gnu::cold]] PyObject* sparse_zeros(const Signature& s, Values& values, const PyObject* out,
                                     const Extras& extras) {
  const Op& op = s.op();
  check(!out, op.name, "(): out= takes strided tensors only");
  PyRef make = take(import_attribute("taeda.sparse._make", "sparse_zeros"));
  PyRef given = take(PyDict_New());
  PyRef grad = take(PyBool_FromLong(extras.requires_grad));
  must(PyDict_SetItemString(given.get(), "requires_grad", grad.get()));
  for (size_t i = 0; i < s.size(); ++i) {
    PyRef value = take(result_object(Value(values[i])));
    must(PyDict_SetItemString(given.get(), op.args[i].name.c_str(), value.get()));
  }
  PyRef args = take(Py_BuildValue("(sO)", op.name.c_str(), extras.layout));
  return must(python_call(PyObject_Call, make.get(), args.get(), given.get()));
}

// A factory's tensor, in pinned memory.
[[gnu::cold]] Value run_pinned(const Op& op, Values& values, Tensor out,
                               const ArgumentSummary& seen) {
  const PinnedScope pinned;
  Value result = run(op, values, std::move(out), seen);
  const Device device = std::get<Tensor>(result).device();
  check(is_host(device), op.name,
        "(): pin_memory=True: only dense CPU tensors can be pinned, and this one is on device ",
        to_string(device));
  return result;
}

PyObject* run_parsed(const OpTable& table, const Signature& s, const PyArgs& call, Values& values,
                     PyObject* out, const Extras& extras) {
  ArgumentSummary seen = summarize_args(values.span());
  if ((seen.flags & kOverride) || function_modes_entered) [[unlikely]] {
    PyObject* callee = call.method ? table.method : table.function;
    PyObject* result = call_override(callee, call.args, call.count, call.kwnames);
    if (result || PyErr_Occurred()) return must(result);
  }
  if (extras.layout) [[unlikely]]
    return sparse_zeros(s, values, out, extras);
  const Op& op = s.op();
  Tensor target;
  if (out) [[unlikely]] {
    if (op.returns > 1 || op.returns < 0) return run_into(table, op, values, out, seen);
    if (!is_tensor(out))
      fail<TypeError>(op.name, "(): argument 'out' must be Tensor, not ", type_name(out));
    target = tensor_of(out);
    if (op.traits.out_dtype != OutDtype::Exact) take_dtype_of(target, s, values);
  }
  Value result = extras.pin_memory ? run_pinned(op, values, std::move(target), seen)
                                   : run(op, values, std::move(target), seen);
  if (extras.requires_grad) {
    check(is_inexact(std::get<Tensor>(result).dtype()), op.name,
          "(): Only Tensors of floating point and complex dtype can require gradients");
    set_requires_grad(std::get<Tensor>(result), true);
  }
  if (auto* t = std::get_if<Tensor>(&result)) return wrap(std::move(*t));
  return result_object(std::move(result), &table);
}

PyObject* call_throwing(const OpTable& table, const PyArgs& call, bool quiet) {
  if (call.method && (call.count == 0 || !is_tensor(call.args[0]))) [[unlikely]] {
    if (quiet) return nullptr;
    if (call.count == 0)
      fail<TypeError>("unbound method Tensor.", table.name, "() needs an argument");
    fail<TypeError>("descriptor '", table.name, "' for 'taeda.Tensor' objects doesn't apply to a '",
                    type_name(call.args[0]), "' object");
  }
  for (const Signature& s : table.overloads) {
    Values values(s.size());
    PyObject* out = nullptr;
    Extras extras;
    if (s.parse(call, values, &out, &extras, false))
      return run_parsed(table, s, call, values, out, extras);
  }
  PyObject* callee = call.method ? table.method : table.function;
  PyObject* result = call_override(callee, call.args, call.count, call.kwnames);
  if (result) return result;
  if (PyErr_Occurred()) throw PythonError();
  if (quiet) return nullptr;
  std::istringstream orders(table.overloads[0].op().traits.old_orders);
  for (std::string order; orders >> order;) {
    std::vector<PyObject*> args;
    PyRef names;
    if (!rewrite_old(call, order, args, &names)) continue;
    warn_of_old_signature(table.name);
    const size_t count = args.size() - static_cast<size_t>(PyTuple_GET_SIZE(names.get()));
    return call_throwing(table, {args.data(), count, names.get(), call.method}, quiet);
  }
  no_overload(table, call);
}

PyObject* call_function(PyObject* o, PyObject* const* args, size_t nargsf, PyObject* kwnames) {
  return call_table(table_of(o),
                    {args, static_cast<size_t>(PyVectorcall_NARGS(nargsf)), kwnames, false});
}
PyObject* call_unbound(PyObject* o, PyObject* const* args, size_t nargsf, PyObject* kwnames) {
  const OpTable& table = table_of(o);
  auto count = static_cast<size_t>(PyVectorcall_NARGS(nargsf));
  if (table.self_at == 0 || count <= table.self_at) [[likely]]
    return call_table(table, {args, count, kwnames, true});
  std::vector<PyObject*> moved(args, args + count + (kwnames ? PyTuple_GET_SIZE(kwnames) : 0));
  std::rotate(moved.begin(), moved.begin() + 1,
              moved.begin() + static_cast<std::ptrdiff_t>(table.self_at) + 1);
  return call_table(table, {moved.data(), count, kwnames, false});
}

PyObject* make_op(PyTypeObject* type, const OpTable* table, vectorcallfunc call) {
  PyObject* o = must(type->tp_alloc(type, 0));
  auto* op = reinterpret_cast<OpObject*>(o);
  op->vectorcall = call;
  op->table = table;
  return o;
}

}  // namespace

const OpTable* find_table(std::string_view name) {
  auto it = table_index().find(name);
  return it == table_index().end() ? nullptr : it->second;
}

PyObject* call_table(const OpTable& table, const PyArgs& call, bool quiet) {
  try {
    return call_throwing(table, call, quiet);
  } catch (...) {
    translate_exception(table.name);
    return nullptr;
  }
}

PyObject* call_method(const char* name, std::initializer_list<PyObject*> args) {
  const OpTable* table = find_table(name);
  if (!table) fail("taeda was built without the operation '", name, "'");
  return must(call_table(*table, {args.begin(), args.size(), nullptr, table->method != nullptr}));
}

bool run_values(const Op& op, Values& values) {
  const ArgumentSummary seen = summarize_args(values.span());
  if ((seen.flags & (kOverride | kDispatch)) || function_modes_entered) return false;
  run(op, values, {}, seen);
  return true;
}

PyObject* op_function(const Op& op) {
  OpTable& table = tables().emplace_back();
  table.name = op.name;
  table.overloads.emplace_back(op);
  table.function = make_op(OpFunctionType, &table, call_function);
  return Py_NewRef(table.function);
}

void init_ops(PyObject* module) {
  OpFunctionType = make_op_type("taeda._C.Op", false);
  OpMethodType = make_op_type("taeda._C.OpMethod", true);
  PyObject* ops = must(PyModule_New("taeda._C.ops"));
  must(PyModule_AddObject(module, "ops", ops));
  must(PyModule_AddObjectRef(module, "Op", reinterpret_cast<PyObject*>(OpFunctionType)));
  // Which of the functions are public, and where: {"softmax": "", "conv2d": "nn.functional", ...}.
  PyRef homes = take(PyDict_New());
  for (const std::string& name : op_names()) {
    OpTable& table = tables().emplace_back();
    table.name = name;
    uint32_t forms = 0;
    for (const Op* op : overloads(name)) {
      table.overloads.emplace_back(*op);
      forms |= op->traits.forms;
      if (!op->return_names.empty() && !table.return_type)
        table.return_type = named_tuple_type(name, op->return_names);
    }
    table_index().emplace(table.name, &table);
    table.function = make_op(OpFunctionType, &table, call_function);
    must(PyModule_AddObjectRef(ops, name.c_str(), table.function));
    bool takes_self = false;
    size_t self_at = Values::kMax;
    for (const Signature& s : table.overloads) {
      const auto& args = s.op().args;
      takes_self |= !args.empty() && args[0].kind == ArgKind::Tensor;
      for (size_t i = 0; i < args.size(); ++i) {
        if (args[i].name == "self") self_at = std::min(self_at, i);
      }
    }
    table.self_at = self_at == Values::kMax ? 0 : self_at;
    if ((forms & kFunction) && name[0] != '_') {
      PyRef home = take(PyUnicode_FromString(table.overloads[0].op().traits.module));
      must(PyDict_SetItemString(homes.get(), name.c_str(), home.get()));
    }
    if ((forms & kMethod) && takes_self && (name[0] != '_' || name.starts_with("__"))) {
      table.method = make_op(OpMethodType, &table, call_unbound);
      must(PyObject_SetAttrString(reinterpret_cast<PyObject*>(TensorType), name.c_str(),
                                  table.method));
    }
  }
  must(PyModule_AddObjectRef(module, "_function_modules", homes.get()));
}

}  // namespace taeda::py
