// grad_fn objects, hooks written in Python, and anomaly detection.
#include <cstring>

#include "autograd/engine.h"
#include "autograd/op_node.h"
#include "python/autograd.h"
#include "python/tensor_type.h"

namespace taeda::py {

PyTypeObject* NodeType = nullptr;

PyObject* import_attribute(const char* module, const char* name) {
  PyRef m = take(PyImport_ImportModule(module));
  return must(PyObject_GetAttrString(m.get(), name));
}

namespace {

// Fills `place` at the first call. Not the initializer of a static variable: an import releases
// Python's lock, and whoever takes it then would wait for that initializer for ever.
void import_once(PyObject*& place, const char* module, const char* name) {
  if (place) return;
  PyObject* found = import_attribute(module, name);
  if (place) Py_DECREF(found);
  else place = found;
}

}  // namespace

// ---- hooks ----

PyHook::PyHook(Kind kind) : kind_(kind) {
  static PyObject* type = nullptr;
  import_once(type, "collections", "OrderedDict");
  dict_ = must(python_call(PyObject_CallNoArgs, type));
}

PyHook::~PyHook() {
  if (!dict_ || !Py_IsInitialized()) return;
  AcquireGil gil;
  Py_DECREF(dict_);
}

int PyHook::traverse(visitproc visit, void* arg) {
  Py_VISIT(dict_);
  return 0;
}

void PyHook::clear() {
  if (dict_) PyDict_Clear(dict_);
}

PyObject* PyHook::add(PyObject* function) {
  static PyObject* handle_type = nullptr;
  import_once(handle_type, "taeda.utils.hooks", "RemovableHandle");
  PyRef handle = take(python_call(PyObject_CallOneArg, handle_type, dict_));
  PyRef id = take(PyObject_GetAttrString(handle.get(), "id"));
  must(PyObject_SetItem(dict_, id.get(), function));
  return handle.release();
}

PyHook& hook_at(std::shared_ptr<Hook>& place, PyHook::Kind kind) {
  if (!place) place = std::make_shared<PyHook>(kind);
  return static_cast<PyHook&>(*place);
}

namespace {

std::string name_of(PyObject* function) {
  PyRef name(PyObject_GetAttrString(function, "__name__"));
  if (!name) {
    PyErr_Clear();
    return type_name(function);
  }
  return to_string(name.get());
}

Tensor hook_result(PyObject* result, const Tensor& before, PyObject* hook) {
  check<TypeError>(is_tensor(result), "expected a Tensor or None from a hook, but hook '",
                   name_of(hook), "' returned '", type_name(result), "'");
  const Tensor& t = tensor_of(result);
  if (before.defined()) {
    check(same(t.sizes(), before.sizes()), "hook '", name_of(hook),
          "' has changed the size of value: from ", taeda::to_string(before.sizes()), " to ",
          taeda::to_string(t.sizes()));
    check(t.dtype() == before.dtype(), "hook '", name_of(hook),
          "' has changed the type of value: from ", name(before.dtype()), " to ", name(t.dtype()));
  }
  return t;
}

PyObject* tuple_of(std::span<const Tensor> tensors) {
  PyRef tuple = take(PyTuple_New(static_cast<Py_ssize_t>(tensors.size())));
  for (size_t i = 0; i < tensors.size(); ++i) {
    PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(i), must(wrap(tensors[i])));
  }
  return tuple.release();
}

void replace(std::span<Tensor> grads, PyObject* result, PyObject* hook) {
  PyRef seq = is_tensor(result) ? take(PyTuple_Pack(1, result)) : take(PySequence_Tuple(result));
  auto n = static_cast<size_t>(PyTuple_GET_SIZE(seq.get()));
  check(n == grads.size(), "hook '", name_of(hook),
        "' has returned an incorrect number of values (got ", n, ", but expected ", grads.size(),
        ")");
  for (size_t i = 0; i < n; ++i) {
    PyObject* item = PyTuple_GET_ITEM(seq.get(), static_cast<Py_ssize_t>(i));
    grads[i] = item == Py_None ? Tensor() : hook_result(item, grads[i], hook);
  }
}

}  // namespace

void PyHook::run(std::span<Tensor> grads, std::span<const Tensor> others) {
  AcquireGil gil;
  if (!dict_ || PyDict_GET_SIZE(dict_) == 0) return;
  PyRef functions = take(PyDict_Values(dict_));  // a hook may remove itself
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(functions.get()); ++i) {
    PyRef f = PyRef::borrow(PyList_GET_ITEM(functions.get(), i));
    PyRef result;
    if (kind_ == Kind::Grad || kind_ == Kind::AfterAccumulation) {
      if (!grads[0].defined()) return;
      PyRef g = take(wrap(grads[0]));
      result = take(python_call(PyObject_CallOneArg, f.get(), g.get()));
      if (result.get() == Py_None) continue;
      check(kind_ == Kind::Grad, "Tensor post accumulate grad hooks should return None.");
      grads[0] = hook_result(result.get(), grads[0], f.get());
    } else {
      PyRef own = take(tuple_of(grads));
      if (kind_ == Kind::Before) {
        result = take(python_call(PyObject_CallOneArg, f.get(), own.get()));
      } else {
        PyRef other = take(tuple_of(others));
        result = take(
            python_call(PyObject_CallFunctionObjArgs, f.get(), own.get(), other.get(), nullptr));
      }
      if (result.get() != Py_None) replace(grads, result.get(), f.get());
    }
  }
}

// ---- the object ----

Node& node_of(PyObject* o) {
  Node* n = reinterpret_cast<NodeObject*>(o)->node;
  check(
      n,
      "Attribute of a custom Function's context that needs its position in the graph was read, but "
      "the graph that it "
      "belonged to is gone (or no gradient was recorded)");
  return *n;
}

namespace {

PyObject* classes =
    nullptr;  // one per kind of node, so that type(grad_fn).__name__ says what it is

}  // namespace

PyObject* node_object(const Ref<Node>& node) {
  if (!node) Py_RETURN_NONE;
  if (node->python) return Py_NewRef(static_cast<PyObject*>(node->python));
  std::string name = node->name();
  PyObject* type = PyDict_GetItemString(classes, name.c_str());
  if (!type) {
    PyRef made =
        take(python_call(PyObject_CallFunction, reinterpret_cast<PyObject*>(&PyType_Type),
                         "s(O){ss}", name.c_str(), NodeType, "__module__", "taeda.autograd"));
    must(PyDict_SetItemString(classes, name.c_str(), made.get()));
    type = made.get();
  }
  auto* t = reinterpret_cast<PyTypeObject*>(type);
  PyObject* o = must(t->tp_alloc(t, 0));
  if (node->python) {  // made by code that the garbage collector has run
    Py_DECREF(o);
    return Py_NewRef(static_cast<PyObject*>(node->python));
  }
  auto* self = reinterpret_cast<NodeObject*>(o);
  self->node = Ref<Node>(node).release();
  self->counted = true;
  node->python = o;
  return o;
}

namespace {

void node_dealloc(PyObject* o) {
  auto* self = reinterpret_cast<NodeObject*>(o);
  if (self->node) {
    self->node->python = nullptr;
    Ref<Node> last;
    if (self->counted) last = Ref<Node>::adopt(self->node);
    self->node = nullptr;
  }
  PyTypeObject* type = Py_TYPE(o);
  type->tp_free(o);
  Py_DECREF(type);
}

PyObject* node_repr(PyObject* o) {
  return PyUnicode_FromFormat("<%s object at %p>", type_name(o), o);
}

PyObject* node_name(PyObject* o, PyObject*) {
  return guarded([&] { return PyUnicode_FromString(node_of(o).name().c_str()); });
}

PyObject* next_functions(PyObject* o, void*) {
  return guarded([&] {
    auto edges = node_of(o).edges();
    PyRef tuple = take(PyTuple_New(static_cast<Py_ssize_t>(edges.size())));
    for (size_t i = 0; i < edges.size(); ++i) {
      PyRef next = take(node_object(edges[i].node));
      PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(i),
                       must(Py_BuildValue("OI", next.get(), edges[i].nr)));
    }
    return tuple.release();
  });
}

PyObject* metadata_of(Node& n) {
  auto& extras = n.make_extras();
  if (!extras.metadata) {
    extras.metadata = std::shared_ptr<void>(must(PyDict_New()), [](void* dict) {
      if (!Py_IsInitialized()) return;
      AcquireGil gil;
      Py_DECREF(static_cast<PyObject*>(dict));
    });
  }
  return static_cast<PyObject*>(extras.metadata.get());
}

PyObject* get_metadata(PyObject* o, void*) {
  return guarded([&] { return Py_NewRef(metadata_of(node_of(o))); });
}

PyObject* get_variable(PyObject* o, void*) {
  return guarded([&]() -> PyObject* {
    Node& n = node_of(o);
    if (n.is_accumulate()) return wrap(static_cast<AccumulateGrad&>(n).variable());
    PyErr_Format(PyExc_AttributeError, "'%s' object has no attribute 'variable'", type_name(o));
    return nullptr;
  });
}

PyObject* sequence_nr(PyObject* o, PyObject*) {
  return guarded([&] { return PyLong_FromUnsignedLongLong(node_of(o).sequence()); });
}

PyObject* register_hook(PyObject* o, PyObject* f) {
  return guarded(
      [&] { return hook_at(node_of(o).make_extras().post, PyHook::Kind::After).add(f); });
}
PyObject* register_prehook(PyObject* o, PyObject* f) {
  return guarded(
      [&] { return hook_at(node_of(o).make_extras().pre, PyHook::Kind::Before).add(f); });
}

// _saved_self, _saved_result and so on: values saved for the derivative.
PyObject* get_attribute(PyObject* o, PyObject* name) {
  PyObject* found = PyObject_GenericGetAttr(o, name);
  if (found || !PyErr_ExceptionMatches(PyExc_AttributeError)) return found;
  const char* text = PyUnicode_AsUTF8(name);
  auto* op_node = dynamic_cast<OpNode*>(reinterpret_cast<NodeObject*>(o)->node);
  if (!text || !op_node || std::strncmp(text, "_saved_", 7) != 0) return nullptr;
  std::string_view wanted = text + 7;
  const Op& op = op_node->op();
  return guarded([&]() -> PyObject* {
    for (size_t i = 0; i < op.args.size(); ++i) {
      if (op.args[i].name == wanted && op_node->saves_argument(i)) {
        PyErr_Clear();
        return wrap(op_node->saved_argument(i));
      }
    }
    if (wanted == "result" && op_node->saves_result()) {
      PyErr_Clear();
      return wrap(op_node->saved_result());
    }
    return nullptr;
  });
}

PyMethodDef node_methods[] = {{"name", node_name, METH_NOARGS,
                               "The name of the operation's derivative, like 'AddBackward0'."},
                              {"_sequence_nr", sequence_nr, METH_NOARGS,
                               "Nodes are numbered in the order in which they were made."},
                              {"register_hook", register_hook, METH_O,
                               "Calls `hook(grad_inputs, grad_outputs)` after the node has run; "
                               "what it returns (if not None) replaces grad_inputs. "
                               "Returns a handle with `remove()`."},
                              {"register_prehook", register_prehook, METH_O,
                               "Calls `hook(grad_outputs)` before the node runs; what it returns "
                               "(if not None) replaces them. Returns a handle with "
                               "`remove()`."},
                              {nullptr, nullptr, 0, nullptr}};
PyGetSetDef node_getset[] = {
    {"next_functions", next_functions, nullptr,
     "Pairs (node, number of that node's result), one per input.", nullptr},
    {"metadata", get_metadata, nullptr, "A dict for whatever you want to attach.", nullptr},
    {"variable", get_variable, nullptr, "Of an AccumulateGrad: its leaf.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};

// ---- anomaly detection ----

void record(Node& n) {
  AcquireGil gil;
  static PyObject* format_stack = nullptr;
  import_once(format_stack, "traceback", "format_stack");
  PyRef lines = take(python_call(PyObject_CallNoArgs, format_stack));
  PyObject* dict = metadata_of(n);
  must(PyDict_SetItemString(dict, "traceback_", lines.get()));
  if (Node* maker = current_node()) {
    PyRef parent = take(node_object(Ref<Node>(maker)));
    must(PyDict_SetItemString(dict, "parent_", parent.get()));
  }
}

void warn_with_traceback(Node& n, const char* what) {
  PyObject* lines =
      n.extras && n.extras->metadata ? PyDict_GetItemString(metadata_of(n), "traceback_") : nullptr;
  PyRef message;
  if (lines) {
    PyRef empty = take(PyUnicode_FromString(""));
    PyRef joined = take(PyUnicode_Join(empty.get(), lines));
    message =
        take(PyUnicode_FromFormat("%s%s. Traceback of forward call that caused the error:\n%U",
                                  what, n.name().c_str(), joined.get()));
  } else {
    message =
        take(PyUnicode_FromFormat("%s%s. No forward pass information available. Enable detect "
                                  "anomaly during forward pass for more information.",
                                  what, n.name().c_str()));
  }
  static PyObject* warn = nullptr;
  import_once(warn, "warnings", "warn");
  take(python_call(PyObject_CallOneArg, warn, message.get()));
}

void report(Node& n) {
  AcquireGil gil;
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);  // the error itself, where it is a Python one
  try {
    warn_with_traceback(n, "Error detected in ");
    PyRef current = PyRef::borrow(
        n.extras && n.extras->metadata ? PyDict_GetItemString(metadata_of(n), "parent_") : nullptr);
    uint64_t newest = n.sequence();  // older ones follow, unless somebody has written other parents
    while (current && is_node(current.get()) && node_of(current.get()).sequence() < newest) {
      Node& parent = node_of(current.get());
      newest = parent.sequence();
      warn_with_traceback(parent, "\n\nThe node itself was made by the derivative of ");
      current = PyRef::borrow(parent.extras && parent.extras->metadata
                                  ? PyDict_GetItemString(metadata_of(parent), "parent_")
                                  : nullptr);
    }
  } catch (...) {
    // If warnings are errors, the warning must not replace the original error.
    PyErr_Clear();
  }
  if (type) PyErr_Restore(type, value, trace);
}

}  // namespace

void init_autograd_node(PyObject* module) {
  PyType_Slot slots[] = {
      {Py_tp_dealloc, reinterpret_cast<void*>(node_dealloc)},
      {Py_tp_repr, reinterpret_cast<void*>(node_repr)},
      {Py_tp_getattro, reinterpret_cast<void*>(get_attribute)},
      {Py_tp_methods, node_methods},
      {Py_tp_getset, node_getset},
      {Py_tp_doc, const_cast<char*>("A recorded operation: what `tensor.grad_fn` is.")},
      {0, nullptr}};
  PyType_Spec spec{"taeda.autograd.Node", sizeof(NodeObject), 0,
                   Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                   slots};
  NodeType = reinterpret_cast<PyTypeObject*>(must(PyType_FromSpec(&spec)));
  classes = must(PyDict_New());
  must(PyModule_AddObjectRef(module, "_Node", reinterpret_cast<PyObject*>(NodeType)));
  record_anomaly = record;
  report_anomaly = report;
}

}  // namespace taeda::py
