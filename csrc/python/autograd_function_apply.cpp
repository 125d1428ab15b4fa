// autograd.Function: the call of a Function, which records its history.
#include "autograd/forward.h"
#include "ops/core/tensor_ops.h"
#include "python/autograd_function.h"
#include "python/tensor_type.h"

namespace taeda::py {
namespace {

std::vector<Tensor> tensors_in(PyObject* tuple, const char* what) {
  std::vector<Tensor> found;
  if (!tuple || tuple == Py_None) return found;
  check<TypeError>(PyTuple_Check(tuple), what, " attribute is expected to be a tuple but is ",
                   type_name(tuple));
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple); ++i) {
    PyObject* item = PyTuple_GET_ITEM(tuple, i);
    check<TypeError>(is_tensor(item) || item == Py_None, what,
                     " can only take tensors or None, but argument ", i, " is of type ",
                     type_name(item));
    found.push_back(item == Py_None ? Tensor() : tensor_of(item));
  }
  return found;
}

int index_of(const std::vector<Tensor>& list, const Tensor& t) {
  for (size_t i = 0; i < list.size(); ++i) {
    if (t.defined() && list[i].defined() && list[i].is(t)) return static_cast<int>(i);
  }
  return -1;
}

struct Application {
  PyObject* cls;
  PyObject* args;
  std::vector<Tensor> inputs;  // the tensors among the arguments
  PyRef context;
  Ref<FunctionNode> node;

  void prepare() {
    Py_ssize_t n = PyTuple_GET_SIZE(args);
    PyRef needs = take(PyTuple_New(n));
    std::vector<int> argument_edge(static_cast<size_t>(n), -1);
    bool any = false;
    for (Py_ssize_t i = 0; i < n; ++i) {
      PyObject* a = PyTuple_GET_ITEM(args, i);
      bool wanted = false;
      if (is_tensor(a)) {
        argument_edge[static_cast<size_t>(i)] = static_cast<int>(inputs.size());
        inputs.push_back(tensor_of(a));
        wanted = requires_grad(inputs.back());
      }
      any |= wanted;
      PyTuple_SET_ITEM(needs.get(), i, PyBool_FromLong(wanted));
    }
    PyRef context_type = take(PyObject_GetAttrString(cls, "_backward_cls"));
    context = take(python_call(PyObject_CallNoArgs, context_type.get()));
    check<TypeError>(PyObject_TypeCheck(context.get(), FunctionType),
                     "_backward_cls of a Function must make its contexts, not ",
                     type_name(context.get()));
    context_of(context.get())->needs_input_grad = needs.release();
    if (!any || !GradMode::enabled()) return;
    node = make_ref<FunctionNode>(context.get());
    Small<Edge, 3> edges(inputs.size());
    for (size_t i = 0; i < inputs.size(); ++i) {
      edges[i] = gradient_edge(inputs[i]);
      node->inputs.push_back(shape_of(inputs[i]));
    }
    node->set_edges(std::move(edges));
    node->argument_edge = std::move(argument_edge);
    node->take_sequence();
  }

  PyRef forward(bool separate_setup) {
    GradMode off(false);
    TangentsOff tangents_off;
    PyRef f = take(PyObject_GetAttrString(cls, "forward"));
    if (separate_setup) {
      PyRef result = take(python_call(PyObject_Call, f.get(), args, nullptr));
      PyRef setup = take(PyObject_GetAttrString(cls, "setup_context"));
      take(python_call(PyObject_CallFunctionObjArgs, setup.get(), context.get(), args, result.get(),
                       nullptr));
      return result;
    }
    Py_ssize_t n = PyTuple_GET_SIZE(args);
    PyRef all = take(PyTuple_New(n + 1));
    PyTuple_SET_ITEM(all.get(), 0, Py_NewRef(context.get()));
    for (Py_ssize_t i = 0; i < n; ++i)
      PyTuple_SET_ITEM(all.get(), i + 1, Py_NewRef(PyTuple_GET_ITEM(args, i)));
    return take(python_call(PyObject_Call, f.get(), all.get(), nullptr));
  }

  // Calls jvp() for the tangents of the results if an input has a tangent.
  void carry_tangents(PyObject* returned) {
    std::vector<Tensor> tangents;
    bool any = false;
    for (const Tensor& t : inputs) {
      tangents.push_back(tangent_of(t));
      any |= tangents.back().defined();
    }
    if (!any) return;
    TangentsOff tangents_off;
    const Py_ssize_t n = PyTuple_GET_SIZE(args);
    PyRef given = take(PyTuple_New(n + 1));
    PyTuple_SET_ITEM(given.get(), 0, Py_NewRef(context.get()));
    size_t k = 0;
    for (Py_ssize_t i = 0; i < n; ++i) {
      Tensor tangent;
      if (is_tensor(PyTuple_GET_ITEM(args, i))) {
        if (!tangents[k].defined() && context_of(context.get())->materialize &&
            is_inexact(inputs[k].dtype())) {
          tangents[k] = zeros(inputs[k].sizes(), inputs[k].options());
        }
        tangent = tangents[k++];
      }
      PyTuple_SET_ITEM(given.get(), i + 1, must(wrap(std::move(tangent))));
    }
    PyRef f = take(PyObject_GetAttrString(cls, "jvp"));
    context_of(context.get())->in_jvp = 1;
    PyRef found(python_call(PyObject_Call, f.get(), given.get(), nullptr));
    context_of(context.get())->in_jvp = 0;
    must(found.get());
    if (!PyTuple_Check(found.get())) found = take(PyTuple_Pack(1, found.get()));
    PyRef results = PyRef::borrow(returned);
    if (!PyTuple_Check(returned)) results = take(PyTuple_Pack(1, returned));
    const Py_ssize_t expected = PyTuple_GET_SIZE(results.get());
    check(PyTuple_GET_SIZE(found.get()) == expected,
          "Function's jvp returned an invalid number of forward gradients (expected ", expected,
          " but got ", PyTuple_GET_SIZE(found.get()), ")");
    const std::vector<Tensor> dirty = tensors_in(context_of(context.get())->dirty, "mark_dirty");
    for (Py_ssize_t i = 0; i < expected; ++i) {
      carry_tangent(PyTuple_GET_ITEM(results.get(), i), PyTuple_GET_ITEM(found.get(), i), i, dirty,
                    tangents);
    }
  }

  void carry_tangent(PyObject* result, PyObject* found, Py_ssize_t place,
                     const std::vector<Tensor>& dirty, const std::vector<Tensor>& tangents) {
    check(found == Py_None || is_tensor(found), "expected Variable or None (got ", type_name(found),
          ") for grad output ", place, ".");
    if (found == Py_None || !is_tensor(result)) return;
    const Tensor& t = tensor_of(result);
    const Tensor& tangent = tensor_of(found);
    if (!is_inexact(t.dtype())) return;
    if (index_of(dirty, t) >= 0) {
      const int input = index_of(inputs, t);
      check(input >= 0 && tangents[static_cast<size_t>(input)].is(tangent),
            "An inplace custom Function is not returning the forward mode gradients as-is. If the "
            "forward is modifying an input inplace, then the jvp function must modify the gradient "
            "inplace and return it as-is.");
    }
    for (size_t i = 0; i < inputs.size(); ++i) {
      check(inputs[i].storage() != t.storage() || !tangents[i].defined() ||
                tangents[i].storage() == tangent.storage(),
            "A custom Function's forward is returning a view (or an input as-is) but the jvp is "
            "not returning a view.");
    }
    set_tangent(t, tangent);
    if (!node) return;
    for (const FunctionNode::Saved& s : node->saved) {  // saved before it had a tangent
      if (s.result == static_cast<int>(place)) s.value.take_tangent(t);
    }
  }

  // Sets the history of the results and returns the value of apply().
  PyRef finish(PyRef result) {
    bool single = !PyTuple_Check(result.get());
    if (single) {
      check<TypeError>(is_tensor(result.get()) || !node, type_name(context.get()),
                       ".forward: expected to return a Tensor or a tuple of Tensors (got ",
                       type_name(result.get()), ")");
      if (!is_tensor(result.get())) return result;
      result = take(PyTuple_Pack(1, result.get()));
    }
    auto n = static_cast<size_t>(PyTuple_GET_SIZE(result.get()));
    std::vector<Tensor> dirty = tensors_in(context_of(context.get())->dirty, "mark_dirty");
    std::vector<Tensor> constant =
        tensors_in(context_of(context.get())->non_differentiable, "mark_non_differentiable");
    PyRef out = take(PyTuple_New(static_cast<Py_ssize_t>(n)));
    std::vector<Tensor> results(n);
    if (node) {
      node->num_results = static_cast<uint32_t>(n);
      node->outputs.resize(n);
    }
    size_t changed = 0;
    for (size_t i = 0; i < n; ++i) {
      PyObject* item = PyTuple_GET_ITEM(result.get(), static_cast<Py_ssize_t>(i));
      if (!is_tensor(item)) {
        PyTuple_SET_ITEM(out.get(), static_cast<Py_ssize_t>(i), Py_NewRef(item));
        continue;
      }
      Tensor t = tensor_of(item);
      bool is_dirty = index_of(dirty, t) >= 0;
      const size_t first = first_of(result.get(), i);
      if (first < i && (is_dirty || index_of(inputs, t) < 0)) {
        // The same tensor again: as in PyTorch, its gradient comes in at the last place.
        AutogradMeta* m = meta_of(results[first].impl());
        if (node && m && m->grad_fn == Ref<Node>(node)) m->output_nr = static_cast<uint32_t>(i);
        if (node) node->outputs[i] = shape_of(t);
        results[i] = results[first];
        PyTuple_SET_ITEM(out.get(), static_cast<Py_ssize_t>(i),
                         Py_NewRef(PyTuple_GET_ITEM(out.get(), static_cast<Py_ssize_t>(first))));
        continue;
      }
      changed += is_dirty;
      t = with_history(t, static_cast<uint32_t>(i), is_dirty, index_of(constant, t) >= 0);
      if (node) node->outputs[i] = shape_of(t);
      results[i] = t;
      PyTuple_SET_ITEM(out.get(), static_cast<Py_ssize_t>(i), must(wrap(std::move(t))));
    }
    check(changed == dirty.size(),
          "Some elements marked as dirty during the forward method were not returned as output. "
          "The inputs that are "
          "modified inplace must all be outputs of the Function.");
    save(result.get());
    if (single) return PyRef::borrow(PyTuple_GET_ITEM(out.get(), 0));
    return out;
  }

  // The first place among the results where the tensor of place i is.
  static size_t first_of(PyObject* results, size_t i) {
    size_t first = 0;
    PyObject* item = PyTuple_GET_ITEM(results, static_cast<Py_ssize_t>(i));
    while (PyTuple_GET_ITEM(results, static_cast<Py_ssize_t>(first)) != item) ++first;
    return first;
  }

  Tensor with_history(Tensor t, uint32_t nr, bool is_dirty, bool constant) {
    int input = index_of(inputs, t);
    if (is_dirty) {
      check(input >= 0, "mark_dirty: a tensor that is not an input of forward was marked");
      if (!node) return t;
      check_in_place(t);
      rebase_history(t, node, nr, static_cast<size_t>(input));
      return t;
    }
    if (constant || !is_inexact(t.dtype())) {
      if (node && requires_grad(t)) t = alias(t);
      return t;
    }
    if (!node) return input >= 0 ? make_view(t, t.sizes(), t.strides(), t.offset()) : t;
    // A returned input, or a tensor that has a history already, is replaced by a view of it, which
    // gets this history.
    if (input >= 0) t = make_view(t, t.sizes(), t.strides(), t.offset());
    else if (t.impl()->flags & kRequiresGrad) t = alias(t);
    set_history(t, node, nr);
    if (t.impl()->base) {
      t.impl()->no_grad_view = false;
      make_meta(t.impl()).creation = Creation::InFunction;
    }
    return t;
  }

  void save(PyObject* returned) {
    FunctionObject* c = context_of(context.get());
    std::vector<Tensor> to_save = tensors_in(c->to_save, "save_for_backward");
    Py_CLEAR(c->to_save);
    if (!node) return;
    std::vector<Tensor> results;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(returned); ++i) {
      PyObject* item = PyTuple_GET_ITEM(returned, i);
      results.push_back(is_tensor(item) ? tensor_of(item) : Tensor());
    }
    for (const Tensor& t : to_save) {
      auto& s = node->saved.emplace_back();
      s.result = index_of(results, t);
      int input = index_of(inputs, t);
      if (input >= 0 &&
          (s.result < 0 || !(meta_of(t.impl()) && meta_of(t.impl())->grad_fn == Ref<Node>(node)))) {
        s.edge = input;
        s.result = -1;
      }
      s.value.save(t, s.result >= 0);
    }
  }
};

}  // namespace

PyObject* apply_function(PyObject*, PyObject* args) {
  PyObject *cls, *given;
  int separate;
  if (!PyArg_ParseTuple(args, "OO!p", &cls, &PyTuple_Type, &given, &separate)) return nullptr;
  return guarded([&] {
    Application a{cls, given, {}, {}, {}};
    a.prepare();
    PyRef result = a.finish(a.forward(separate));
    a.carry_tangents(result.get());
    return result.release();
  });
}

}  // namespace taeda::py
