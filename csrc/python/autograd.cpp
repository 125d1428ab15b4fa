// Running backward from Python; grad modes; hooks on saved tensors.
#include "python/autograd.h"

#include "autograd/engine.h"
#include "autograd/meta.h"
#include "autograd/saved.h"
#include "base/warn.h"
#include "ops/core/tensor_ops.h"
#include "python/gradient_watch.h"
#include "python/module.h"
#include "python/step_log.h"
#include "python/tensor_type.h"
#include "tensor/inference.h"

namespace taeda::py {
namespace {

// ---- backward ----

bool is_gradient_edge(PyObject* o) {
  return PyTuple_Check(o) && PyTuple_GET_SIZE(o) == 2 && is_node(PyTuple_GET_ITEM(o, 0));
}

// A Tensor, or a GradientEdge(node, output_nr): an input of a gradient computation.
Edge edge_from(PyObject* o) {
  if (is_tensor(o)) {
    Edge e = gradient_edge(tensor_of(o));
    check(bool(e), "One of the differentiated Tensors does not require grad");
    return e;
  }
  check<TypeError>(is_gradient_edge(o), "all inputs have to be Tensors or GradientEdges, but got ",
                   type_name(o));
  unsigned long nr = PyLong_AsUnsignedLong(PyTuple_GET_ITEM(o, 1));
  if (PyErr_Occurred()) throw PythonError();
  Node& node = node_of(PyTuple_GET_ITEM(o, 0));
  check<IndexError>(nr < node.num_results, "GradientEdge: ", node.name(), " has no output ", nr,
                    ", but ", node.num_results, " of them");
  return {Ref<Node>(&node), static_cast<uint32_t>(nr)};
}

// What is known of the tensor at whose gradient an edge ends.
std::optional<NodeExtras::Result> result_of(const Edge& e) {
  if (e.node->is_accumulate()) {
    const Tensor leaf = static_cast<AccumulateGrad*>(e.node.get())->variable();
    return NodeExtras::Result{0, Dims(leaf.sizes()), leaf.options()};
  }
  if (!e.node->extras) return std::nullopt;
  for (const auto& r : e.node->extras->results) {
    if (r.nr == e.nr) return r;
  }
  return std::nullopt;
}

struct Roots {
  std::vector<Edge> edges;
  std::vector<Tensor> grads;

  void add(const Tensor& t, const Tensor& given, size_t i) {
    Edge e = gradient_edge(t);
    if (!e) {
      fail("element ", i, " of tensors does not require grad and does not have a grad_fn");
    }
    const bool asks = !given.defined() && (t.flags() & kDispatch) && t.numel() == 1;
    const GradMode off(false);
    add(std::move(e), t.sizes(), t.options(), asks ? ones_like(t) : given, i);
  }

  // A Tensor or a GradientEdge.
  void add(PyObject* root, PyObject* grad, const char* function, size_t i) {
    const Tensor given =
        grad == Py_None ? Tensor() : expect_tensor(grad, str(function, "(): grads").c_str());
    if (is_tensor(root) || !is_gradient_edge(root)) {
      add(expect_tensor(root, str(function, "():").c_str()), given, i);
      return;
    }
    Edge e = edge_from(root);
    if (const auto known = result_of(e)) {
      add(std::move(e), known->sizes, known->options, given, i);
      return;
    }
    check(given.defined(), function, "(): the shape of element ", i,
          " is not known from its GradientEdge: give its gradient, or the tensor");
    edges.push_back(std::move(e));
    grads.push_back(given);
  }

 private:
  void add(Edge e, DimsRef sizes, Options options, const Tensor& given, size_t i) {
    const DType dtype = options.dtype;
    if (given.defined()) {
      if (!same(given.sizes(), sizes)) {
        fail("Mismatch in shape: grad_output[", i, "] has a shape of ",
             taeda::to_string(given.sizes()), " and output[", i, "] has a shape of ",
             taeda::to_string(sizes), ".");
      }
      check(is_complex(given.dtype()) == is_complex(dtype),
            "For complex Tensors, both grad_output and output are required to have the same dtype. "
            "Mismatch in dtype: "
            "grad_output[",
            i, "] has a dtype of ", name(given.dtype()), " and output[", i, "] has a dtype of ",
            name(dtype), ".");
    }
    Tensor g = given;
    if (!g.defined()) {
      check(numel_of(sizes) == 1,
            "grad can be implicitly created only for scalar outputs, but got an output of shape ",
            to_string(sizes));
      check(is_floating(dtype),
            "grad can be implicitly created only for real scalar outputs but got ", name(dtype));
      GradMode off(false);
      g = full(sizes, Scalar(1.0), options);
    } else if (g.dtype() != dtype) {
      g = to(g, dtype);
    }
    edges.push_back(std::move(e));
    grads.push_back(std::move(g));
  }
};

// Those of a tuple of tensors and one of as many gradients.
Roots roots_of(PyObject* tensors, PyObject* grads, const char* function) {
  const Py_ssize_t n = PyTuple_GET_SIZE(tensors);
  check(PyTuple_GET_SIZE(grads) == n, function, "(): got ", n, " tensors and ",
        PyTuple_GET_SIZE(grads), " gradients");
  Roots roots;
  for (Py_ssize_t i = 0; i < n; ++i) {
    roots.add(PyTuple_GET_ITEM(tensors, i), PyTuple_GET_ITEM(grads, i), function,
              static_cast<size_t>(i));
  }
  return roots;
}

// Runs f() without the GIL. Exceptions of the engine hold no tensors, so it may be reacquired at
// any point of unwinding.
template <class F> auto unlocked(F&& f) {
  ReleaseGil gil;
  return f();
}

// The inputs of `backward`, whose gradients are accumulated; non-leaves among them retain their
// gradient.
std::vector<Edge> accumulation_edges(PyObject* inputs) {
  std::vector<Edge> edges;
  PyRef seq = is_tensor(inputs) ? take(PyTuple_Pack(1, inputs)) : take(PySequence_Tuple(inputs));
  Py_ssize_t n = PyTuple_GET_SIZE(seq.get());
  check(n > 0, "`inputs` argument to `backward()` cannot be empty.");
  for (Py_ssize_t i = 0; i < n; ++i) {
    PyObject* item = PyTuple_GET_ITEM(seq.get(), i);
    edges.push_back(edge_from(item));
    if (is_tensor(item)) retain_grad(tensor_of(item));
  }
  return edges;
}

void run(const Roots& roots, BackwardOptions o, PyObject* inputs) {
  if (o.create_graph) {
    static WarnOnce warn_of_cycle(
        "Using backward() with create_graph=True will create a reference cycle between the "
        "parameter and its gradient, which can cause a memory leak. Use autograd.grad when "
        "creating the graph, or reset the .grad fields of your parameters to None after use.");
    warn_of_cycle();
  }
  std::vector<Edge> only;
  if (inputs && inputs != Py_None) only = accumulation_edges(inputs);
  unlocked([&] { run_backward(roots.edges, roots.grads, o, only); });
}

bool is_true(PyObject* o) {
  int v = PyObject_IsTrue(o);
  must(v);
  return v;
}

// _run_backward(tensors, grads, keep_graph, create_graph, inputs or None)
PyObject* run_backward_function(PyObject*, PyObject* args) {
  PyObject *tensors, *grads, *inputs;
  int keep, create;
  if (!PyArg_ParseTuple(args, "O!O!ppO", &PyTuple_Type, &tensors, &PyTuple_Type, &grads, &keep,
                        &create, &inputs))
    return nullptr;
  return guarded([&] {
    const Roots roots = roots_of(tensors, grads, "backward");
    if (PyTuple_GET_SIZE(tensors) == 1 && is_tensor(PyTuple_GET_ITEM(tensors, 0)))
      tell_of_backward(tensor_of(PyTuple_GET_ITEM(tensors, 0)));
    run(roots, {keep != 0, create != 0}, inputs);
    return Py_NewRef(Py_None);
  });
}

// _run_grad(outputs, grad_outputs, keep_graph, create_graph, inputs) -> a list with None for inputs
// that were not reached
PyObject* run_grad_function(PyObject*, PyObject* args) {
  PyObject *tensors, *grads, *inputs;
  int keep, create;
  if (!PyArg_ParseTuple(args, "O!O!ppO!", &PyTuple_Type, &tensors, &PyTuple_Type, &grads, &keep,
                        &create, &PyTuple_Type, &inputs)) {
    return nullptr;
  }
  return guarded([&] {
    const Roots roots = roots_of(tensors, grads, "grad");
    std::vector<Edge> edges;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(inputs); ++i)
      edges.push_back(edge_from(PyTuple_GET_ITEM(inputs, i)));
    std::vector<Tensor> found = unlocked(
        [&] { return run_grad(roots.edges, roots.grads, {keep != 0, create != 0}, edges); });
    PyRef list = take(PyList_New(static_cast<Py_ssize_t>(found.size())));
    for (size_t i = 0; i < found.size(); ++i) {
      PyList_SET_ITEM(list.get(), static_cast<Py_ssize_t>(i), must(wrap(std::move(found[i]))));
    }
    return list.release();
  });
}

PyObject* gradient_edge_function(PyObject*, PyObject* tensor) {
  return guarded([&] {
    const Tensor& t = expect_tensor(tensor, "get_gradient_edge():");
    Edge e = gradient_edge(t);
    check(
        bool(e),
        "It is not possible to get the gradient edge for a Tensor that does not require gradients");
    remember_result(e, t.impl());
    PyRef node = take(node_object(e.node));
    return must(Py_BuildValue("OI", node.get(), e.nr));
  });
}

PyObject* queue_callback_function(PyObject*, PyObject* f) {
  return guarded([&] {
    auto held = std::shared_ptr<PyObject>(Py_NewRef(f), [](PyObject* o) {
      AcquireGil gil;
      Py_DECREF(o);
    });
    queue_callback([held] {
      AcquireGil gil;
      take(python_call(PyObject_CallNoArgs, held.get()));
    });
    return Py_NewRef(Py_None);
  });
}

PyObject* current_node_function(PyObject*, PyObject*) {
  return guarded([] { return node_object(Ref<Node>(current_node())); });
}

PyObject* is_running_function(PyObject*, PyObject*) {
  return PyBool_FromLong(backward_is_running());
}

PyObject* fills_all_function(PyObject*, PyObject*) {
  return PyBool_FromLong(backward_fills_all_leaves());
}

// ---- modes ----

PyObject* is_grad_enabled(PyObject*, PyObject*) { return PyBool_FromLong(GradMode::enabled()); }
PyObject* is_inference_mode(PyObject*, PyObject*) { return PyBool_FromLong(modes.inference); }

PyObject* set_grad_enabled(PyObject*, PyObject* on) {
  bool before = GradMode::enabled();
  if (!PyBool_Check(on)) {
    PyErr_Format(PyExc_TypeError, "set_grad_enabled(): argument 'mode' must be bool, not %s",
                 type_name(on));
    return nullptr;
  }
  GradMode::set(on == Py_True);
  return PyBool_FromLong(before);
}

PyObject* set_inference_mode(PyObject*, PyObject* on) {
  bool before = modes.inference;
  modes.inference = making_inference_tensors = on == Py_True;
  if (modes.inference) modes.watched &= ~static_cast<uint32_t>(kInference);
  else modes.watched |= kInference;
  GradMode::set(modes.grad);
  return PyBool_FromLong(before);
}

PyObject* set_anomaly(PyObject*, PyObject* args) {
  int on, nan;
  if (!PyArg_ParseTuple(args, "pp", &on, &nan)) return nullptr;
  anomaly_enabled = on;
  anomaly_checks_nan = nan;
  Py_RETURN_NONE;
}
PyObject* is_anomaly_enabled(PyObject*, PyObject*) { return PyBool_FromLong(anomaly_enabled); }
PyObject* is_anomaly_check_nan(PyObject*, PyObject*) { return PyBool_FromLong(anomaly_checks_nan); }

// ---- hooks on saved tensors ----

struct Callable {
  PyObject* f;
  explicit Callable(PyObject* o) : f(Py_NewRef(o)) {}
  Callable(const Callable&) = delete;
  Callable& operator=(const Callable&) = delete;
  ~Callable() {
    if (!Py_IsInitialized()) return;
    AcquireGil gil;
    Py_DECREF(f);
  }
};

struct PyPacked final : PackedTensor {
  Callable packed;
  std::shared_ptr<Callable> unpacker;
  PyPacked(PyObject* p, std::shared_ptr<Callable> u) : packed(p), unpacker(std::move(u)) {}
  Tensor unpack() override {
    AcquireGil gil;
    PyRef t = take(python_call(PyObject_CallOneArg, unpacker->f, packed.f));
    check<TypeError>(
        is_tensor(t.get()),
        "Output of saved tensor unpack_hook expected to be a Tensor but got result of type ",
        type_name(t.get()));
    return tensor_of(t.get());
  }
};

struct PySavedHooks final : SavedHooks {
  Callable pack_hook;
  std::shared_ptr<Callable> unpack_hook;
  SavedHooks* outer;
  PySavedHooks(PyObject* p, PyObject* u)
      : pack_hook(p),
        unpack_hook(std::make_shared<Callable>(u)),
        outer(saved_hooks) {}
  Ref<PackedTensor> pack(const Tensor& t) override {
    AcquireGil gil;
    // The hook's own computation is not recorded, and does not call the hook again.
    SavedHooks* self = std::exchange(saved_hooks, nullptr);
    GradMode off(false);
    PyRef given = take(wrap(t));
    const auto version = t.version();
    PyRef packed(python_call(PyObject_CallOneArg, pack_hook.f, given.get()));
    saved_hooks = self;
    must(packed.get());
    check(
        t.version() == version,
        "A saved tensor pack hook is modifying its input in place: it must change a copy instead, "
        "since others read that tensor too.");
    return make_ref<PyPacked>(packed.get(), unpack_hook);
  }
};

PyObject* push_saved_hooks(PyObject*, PyObject* args) {
  PyObject *pack, *unpack;
  if (!PyArg_ParseTuple(args, "OO", &pack, &unpack)) return nullptr;
  saved_hooks = new PySavedHooks(pack, unpack);  // pop_saved_hooks deletes it
  Py_RETURN_NONE;
}
PyObject* pop_saved_hooks(PyObject*, PyObject*) {
  std::unique_ptr<PySavedHooks> top(static_cast<PySavedHooks*>(saved_hooks));
  if (top) saved_hooks = top->outer;
  Py_RETURN_NONE;
}

PyMethodDef functions[] = {
    {"_run_backward", run_backward_function, METH_VARARGS, nullptr},
    {"_run_grad", run_grad_function, METH_VARARGS, nullptr},
    {"_gradient_edge", gradient_edge_function, METH_O, nullptr},
    {"_queue_callback", queue_callback_function, METH_O, nullptr},
    {"_backward_is_running", is_running_function, METH_NOARGS, nullptr},
    {"_backward_fills_all_leaves", fills_all_function, METH_NOARGS, nullptr},
    {"_current_graph_node", current_node_function, METH_NOARGS, nullptr},
    {"is_grad_enabled", is_grad_enabled, METH_NOARGS,
     "Whether operations are recorded for gradients in this thread now."},
    {"is_inference_mode_enabled", is_inference_mode, METH_NOARGS,
     "Whether inference mode is on in this thread now."},
    {"_set_grad_enabled", set_grad_enabled, METH_O, nullptr},
    {"_set_inference_mode", set_inference_mode, METH_O, nullptr},
    {"_set_anomaly", set_anomaly, METH_VARARGS, nullptr},
    {"is_anomaly_enabled", is_anomaly_enabled, METH_NOARGS, "Whether anomaly detection is on."},
    {"is_anomaly_check_nan_enabled", is_anomaly_check_nan, METH_NOARGS,
     "Whether anomaly detection looks for NaN."},
    {"_push_saved_hooks", push_saved_hooks, METH_VARARGS, nullptr},
    {"_pop_saved_hooks", pop_saved_hooks, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

const Tensor& expect_tensor(PyObject* o, const char* what) {
  check<TypeError>(is_tensor(o), what, " expected Tensors, but got ", type_name(o));
  return tensor_of(o);
}

PyObject* tensor_backward(PyObject* self, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"gradient", "retain_graph", "create_graph", "inputs", nullptr};
  PyObject *gradient = Py_None, *retain = Py_None, *create = Py_False, *inputs = Py_None;
  if (PyTuple_GET_SIZE(args) || kwargs) {
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|OOOO:backward", const_cast<char**>(names),
                                     &gradient, &retain, &create, &inputs)) {
      return nullptr;
    }
  }
  return guarded([&]() -> PyObject* {
    const Tensor& loss = tensor_of(self);
    const auto watch = watch_of_backward();
    const bool plain =
        gradient == Py_None && retain == Py_None && create == Py_False && inputs == Py_None;
    if (watch && !(plain && watch->is_usual(loss))) return watch->tell(self, args, kwargs);
    Roots roots;
    roots.add(loss,
              gradient == Py_None ? Tensor() : expect_tensor(gradient, "backward(): gradient"), 0);
    bool create_graph = is_true(create);
    tell_of_backward(loss);
    if (watch) watch->before_pass();
    run(roots, {retain == Py_None ? create_graph : is_true(retain), create_graph}, inputs);
    if (watch) watch->after_pass();
    return Py_NewRef(Py_None);
  });
}

void init_autograd_run(PyObject* module) { must(PyModule_AddFunctions(module, functions)); }

void init_autograd(PyObject* module) {
  init_autograd_node(module);
  init_autograd_tensor();
  init_autograd_function(module);
  init_autograd_run(module);
  init_grad_mode(module);
  init_autograd_forward(module);
}

}  // namespace taeda::py

namespace taeda {

void bind_autograd(nanobind::module_& m) { py::init_autograd(m.ptr()); }

}  // namespace taeda
