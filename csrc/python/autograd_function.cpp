// autograd.Function: operations whose derivative is written in Python.
#include <cstddef>

#include "ops/core/tensor_ops.h"
#include "python/autograd_function.h"
#include "python/tensor_type.h"

namespace taeda::py {

PyTypeObject* FunctionType = nullptr;

void FunctionNode::apply(std::span<Tensor> grads, std::span<Tensor> results) {
  AcquireGil gil;
  PyRef self = PyRef::borrow(context_);
  PyRef given = take(PyTuple_New(static_cast<Py_ssize_t>(grads.size())));
  for (size_t i = 0; i < grads.size(); ++i) {
    Tensor g = grads[i];
    if (!g.defined() && context_of(context_)->materialize && i < outputs.size() &&
        outputs[i].defined)
      g = zeros(outputs[i].sizes, outputs[i].options);
    PyTuple_SET_ITEM(given.get(), static_cast<Py_ssize_t>(i), must(wrap(std::move(g))));
  }
  PyRef call = take(PyObject_GetAttrString(context_, "apply"));
  PyRef result = take(python_call(PyObject_CallObject, call.get(), given.get()));
  if (!PyTuple_Check(result.get())) result = take(PyTuple_Pack(1, result.get()));
  auto n = static_cast<size_t>(PyTuple_GET_SIZE(result.get()));
  size_t expected = argument_edge.size();
  for (; n > expected; --n) {
    if (PyTuple_GET_ITEM(result.get(), static_cast<Py_ssize_t>(n - 1)) != Py_None) break;
  }
  check(n == expected, "function ", name(), " returned an incorrect number of gradients (expected ",
        expected, ", got ", PyTuple_GET_SIZE(result.get()), ")");
  for (size_t i = 0; i < n; ++i) {
    PyObject* item = PyTuple_GET_ITEM(result.get(), static_cast<Py_ssize_t>(i));
    if (item == Py_None) continue;
    int e = argument_edge[i];
    check(e >= 0, "function ", name(), " returned a gradient different from None at position ",
          i + 1, ", but the corresponding forward input was not a Variable");
    check<TypeError>(is_tensor(item), "function ", name(), ": expected Tensor or None (got ",
                     type_name(item), ") as the gradient at position ", i + 1);
    auto k = static_cast<size_t>(e);
    if (!edges_[k]) continue;
    const Tensor& g = tensor_of(item);
    const DType dtype = dtype_along(edges()[k], inputs[k].options.dtype, g.dtype());
    results[k] = fit_gradient(g, inputs[k].sizes, dtype, *this, k);
  }
}

namespace {

// ---- the context ----

int context_traverse(PyObject* o, visitproc visit, void* arg) {
  FunctionObject* c = context_of(o);
  Py_VISIT(Py_TYPE(o));
  Py_VISIT(c->needs_input_grad);
  Py_VISIT(c->to_save);
  Py_VISIT(c->dirty);
  Py_VISIT(c->non_differentiable);
  return 0;
}

int context_clear(PyObject* o) {
  FunctionObject* c = context_of(o);
  Py_CLEAR(c->needs_input_grad);
  Py_CLEAR(c->to_save);
  Py_CLEAR(c->dirty);
  Py_CLEAR(c->non_differentiable);
  return 0;
}

void context_dealloc(PyObject* o) {
  PyObject_GC_UnTrack(o);
  context_clear(o);
  PyTypeObject* type = Py_TYPE(o);
  type->tp_free(o);
  Py_DECREF(type);
}

PyObject* context_new(PyTypeObject* type, PyObject*, PyObject*) {
  PyObject* o = type->tp_alloc(type, 0);
  if (o) context_of(o)->materialize = 1;
  return o;
}

PyObject* get_saved_tensors(PyObject* o, void*) {
  return guarded([&] {
    if (context_of(o)->in_jvp) {
      PyRef kept = take(PyObject_GetAttrString(o, "saved_for_forward"));
      if (kept.get() != Py_None) return take(PySequence_Tuple(kept.get())).release();
    }
    FunctionNode* node = node_of_context(o);
    if (!node) return must(PyTuple_New(0));
    if (node->released) fail_released();
    PyRef tuple = take(PyTuple_New(static_cast<Py_ssize_t>(node->saved.size())));
    for (size_t i = 0; i < node->saved.size(); ++i) {
      const auto& s = node->saved[i];
      Node* from = nullptr;
      uint32_t nr = 0;
      if (s.edge >= 0) {
        const Edge& e = node->input_edge(static_cast<size_t>(s.edge));
        from = e.node.get();
        nr = e.nr;
      } else if (s.result >= 0) {
        from = node;
        nr = static_cast<uint32_t>(s.result);
      }
      PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(i),
                       must(wrap(s.value.unpack(*node, from, nr))));
    }
    return tuple.release();
  });
}

PyObject* get_field(PyObject* o, void* field) {
  auto* place =
      reinterpret_cast<PyObject**>(reinterpret_cast<char*>(o) + reinterpret_cast<size_t>(field));
  return Py_NewRef(*place ? *place : Py_None);
}
int set_field(PyObject* o, PyObject* value, void* field) {
  auto* place =
      reinterpret_cast<PyObject**>(reinterpret_cast<char*>(o) + reinterpret_cast<size_t>(field));
  PyRef old(std::exchange(*place, Py_XNewRef(value)));
  return 0;
}
PyObject* get_materialize(PyObject* o, void*) {
  return PyBool_FromLong(context_of(o)->materialize);
}
int set_materialize(PyObject* o, PyObject* value, void*) {
  int on = value ? PyObject_IsTrue(value) : 0;
  if (on < 0) return -1;
  context_of(o)->materialize = static_cast<char>(on);
  return 0;
}

void* field(size_t offset) { return reinterpret_cast<void*>(offset); }

PyGetSetDef context_getset[] = {
    {"saved_tensors", get_saved_tensors, nullptr,
     "What save_for_backward was given, checked for in-place changes.", nullptr},
    {"needs_input_grad", get_field, set_field,
     "One bool per argument: whether its gradient is wanted.",
     field(offsetof(FunctionObject, needs_input_grad))},
    {"to_save", get_field, set_field, nullptr, field(offsetof(FunctionObject, to_save))},
    {"dirty_tensors", get_field, set_field, nullptr, field(offsetof(FunctionObject, dirty))},
    {"non_differentiable", get_field, set_field, nullptr,
     field(offsetof(FunctionObject, non_differentiable))},
    {"materialize_grads", get_materialize, set_materialize, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};

// ---- once_differentiable ----

class FailingNode final : public Node {
 public:
  explicit FailingNode(std::string message) : message_(std::move(message)) { take_sequence(); }
  std::string name() const override { return "Error"; }
  void apply(std::span<Tensor>, std::span<Tensor>) override { throw Error(message_); }

 private:
  std::string message_;
};

// _failing_history(message, tensor): a tensor with the same values whose derivative raises an error
// with this message.
PyObject* failing_history(PyObject*, PyObject* args) {
  const char* message;
  PyObject* tensor;
  if (!PyArg_ParseTuple(args, "sO!", &message, TensorType, &tensor)) return nullptr;
  return guarded([&] {
    Tensor t = alias(tensor_of(tensor));
    set_history(t, make_ref<FailingNode>(message), 0);
    return wrap(std::move(t));
  });
}

PyMethodDef functions[] = {{"_function_apply", apply_function, METH_VARARGS, nullptr},
                           {"_failing_history", failing_history, METH_VARARGS, nullptr},
                           {nullptr, nullptr, 0, nullptr}};

}  // namespace

void init_autograd_function(PyObject* module) {
  PyType_Slot slots[] = {
      {Py_tp_dealloc, reinterpret_cast<void*>(context_dealloc)},
      {Py_tp_traverse, reinterpret_cast<void*>(context_traverse)},
      {Py_tp_clear, reinterpret_cast<void*>(context_clear)},
      {Py_tp_new, reinterpret_cast<void*>(context_new)},
      {Py_tp_getset, context_getset},
      {Py_tp_doc, const_cast<char*>("What a custom Function's forward and backward share.")},
      {0, nullptr}};
  PyType_Spec spec{"taeda._C._FunctionBase", sizeof(FunctionObject), 0,
                   Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, slots};
  FunctionType = reinterpret_cast<PyTypeObject*>(
      must(PyType_FromSpecWithBases(&spec, reinterpret_cast<PyObject*>(NodeType))));
  must(PyModule_AddObjectRef(module, "_FunctionBase", reinterpret_cast<PyObject*>(FunctionType)));
  must(PyModule_AddFunctions(module, functions));
}

}  // namespace taeda::py
