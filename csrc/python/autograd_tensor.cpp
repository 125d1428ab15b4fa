// The gradient-related part of the Tensor class.
#include "autograd/engine.h"
#include "python/autograd.h"
#include "python/objects.h"
#include "python/tensor_type.h"

namespace taeda::py {
namespace {

PyObject* get_requires_grad(PyObject* self, void*) {
  return PyBool_FromLong(requires_grad(tensor_of(self)));
}

int set_requires_grad_attribute(PyObject* self, PyObject* value, void*) {
  return guarded(
      [&] {
        check(value && PyBool_Check(value), "requires_grad must be a bool");
        set_requires_grad(tensor_of(self), value == Py_True);
        return 0;
      },
      -1);
}

PyObject* get_grad(PyObject* self, void*) {
  return guarded([&]() -> PyObject* {
    const AutogradMeta* m = meta_of(tensor_of(self).impl());
    if (!m) Py_RETURN_NONE;
    if (!m->grad.defined() && m->grad_fn && !m->retains_grad) {
      must(PyErr_WarnEx(
          PyExc_UserWarning,
          "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. It is not "
          "filled by backward(); call retain_grad() on the tensor before if you want it.",
          1));
    }
    return wrap(m->grad);
  });
}

int set_grad_attribute(PyObject* self, PyObject* value, void*) {
  return guarded(
      [&] {
        bool none = !value || value == Py_None;
        check<TypeError>(none || is_tensor(value),
                         "assigned grad expected to be a Tensor or None but got grad of type ",
                         none ? "" : type_name(value));
        set_grad(tensor_of(self), none ? Tensor() : tensor_of(value));
        return 0;
      },
      -1);
}

PyObject* get_grad_dtype(PyObject* self, void*) {
  return guarded([&]() -> PyObject* {
    check(is_leaf(tensor_of(self)), "grad_dtype can only be accessed on leaf tensors.");
    std::optional<DType> dtype = grad_dtype(tensor_of(self));
    if (!dtype) Py_RETURN_NONE;
    return dtype_object(*dtype);
  });
}

int set_grad_dtype_attribute(PyObject* self, PyObject* value, void*) {
  return guarded(
      [&] {
        DType dtype{};
        const bool any = value == Py_None;
        check(is_leaf(tensor_of(self)), "grad_dtype can only be set on leaf tensors.");
        check(value && (any || as_dtype(value, &dtype)), "grad_dtype must be a dtype or None, but ",
              "got ", value ? type_name(value) : "nothing");
        set_grad_dtype(tensor_of(self), any ? std::nullopt : std::optional(dtype));
        return 0;
      },
      -1);
}

PyObject* get_is_leaf(PyObject* self, void*) {
  return guarded([&] { return PyBool_FromLong(is_leaf(tensor_of(self))); });
}

PyObject* get_output_nr(PyObject* self, void*) {
  const AutogradMeta* m = meta_of(tensor_of(self).impl());
  return PyLong_FromUnsignedLong(m ? m->output_nr : 0);
}

PyObject* get_retains_grad(PyObject* self, void*) {
  const AutogradMeta* m = meta_of(tensor_of(self).impl());
  return PyBool_FromLong(m && m->retains_grad);
}

PyObject* get_grad_fn(PyObject* self, void*) {
  return guarded([&] {
    const Tensor& t = tensor_of(self);
    const Ref<Node> node = grad_fn(t);
    if (node) remember_result({node, meta_of(t.impl())->output_nr}, t.impl());
    return node_object(node);
  });
}
// ---- hooks ----

// The dict of hooks on this tensor's gradient. Those of a result belong to the node that made it,
// so that they get the gradient of this value even if the tensor is changed in place later.
std::shared_ptr<Hook>* find_hooks(const Tensor& t, bool make) {
  Ref<Node> fn = grad_fn(t);
  AutogradMeta* m = make ? &make_meta(t.impl()) : meta_of(t.impl());
  if (!m) return nullptr;
  if (!fn) {
    if (make) hook_at(m->hook, PyHook::Kind::Grad);
    return &m->hook;
  }
  if (m->result_hook && m->result_hook_node == fn->sequence()) return &m->result_hook;
  if (!make) return nullptr;
  m->result_hook = std::make_shared<PyHook>(PyHook::Kind::Grad);
  m->result_hook_node = fn->sequence();
  fn->make_extras().tensor_hooks.emplace_back(m->output_nr, m->result_hook);
  return &m->result_hook;
}

PyObject* get_backward_hooks(PyObject* self, void*) {
  return guarded([&]() -> PyObject* {
    std::shared_ptr<Hook>* hooks = find_hooks(tensor_of(self), false);
    if (!hooks || !*hooks) Py_RETURN_NONE;
    return Py_NewRef(static_cast<PyHook&>(**hooks).dict());
  });
}

PyObject* register_hook(PyObject* self, PyObject* f) {
  return guarded([&] {
    const Tensor& t = tensor_of(self);
    check(requires_grad(t), "cannot register a hook on a tensor that doesn't require gradient");
    return static_cast<PyHook&>(**find_hooks(t, true)).add(f);
  });
}

PyObject* register_post_accumulate_grad_hook(PyObject* self, PyObject* f) {
  return guarded([&] {
    const Tensor& t = tensor_of(self);
    check(requires_grad(t), "cannot register a hook on a tensor that doesn't require gradient");
    check(!grad_fn(t), "post accumulate grad hooks cannot be registered on non-leaf tensors");
    expect_post_hooks();
    return hook_at(make_meta(t.impl()).post_hook, PyHook::Kind::AfterAccumulation).add(f);
  });
}

PyObject* get_post_hooks(PyObject* self, void*) {
  AutogradMeta* m = meta_of(tensor_of(self).impl());
  if (!m || !m->post_hook) Py_RETURN_NONE;
  return Py_NewRef(static_cast<PyHook&>(*m->post_hook).dict());
}

// ---- methods ----

PyObject* requires_grad_method(PyObject* self, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"requires_grad", nullptr};
  int on = 1;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|p:requires_grad_", const_cast<char**>(names),
                                   &on))
    return nullptr;
  return guarded([&] {
    set_requires_grad(tensor_of(self), on);
    return Py_NewRef(self);
  });
}

PyObject* detach_method(PyObject* self, PyObject*) {
  return guarded([&] {
    detach_in_place(tensor_of(self));
    return Py_NewRef(self);
  });
}

PyObject* retain_grad_method(PyObject* self, PyObject*) {
  return guarded([&] {
    retain_grad(tensor_of(self));
    return Py_NewRef(Py_None);
  });
}

PyObject* is_view(PyObject* self, PyObject*) {
  const TensorImpl* t = tensor_of(self).impl();
  return PyBool_FromLong((t->flags & kIsView) && t->base);
}

template <class F> PyCFunction as_method(F f) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(f));
}

PyGetSetDef attributes[] = {
    {"requires_grad", get_requires_grad, set_requires_grad_attribute,
     "Whether operations on this tensor are recorded for gradients.", nullptr},
    {"grad", get_grad, set_grad_attribute, "The gradient that backward() has gathered, or None.",
     nullptr},
    {"_grad", get_grad, set_grad_attribute, "The same as `grad`.", nullptr},
    {"grad_dtype", get_grad_dtype, set_grad_dtype_attribute,
     "The dtype that gradients of this leaf are converted to: its own, unless it is set to another "
     "one, or to None for any.",
     nullptr},
    {"is_leaf", get_is_leaf, nullptr, "True where no recorded operation made this tensor.",
     nullptr},
    {"output_nr", get_output_nr, nullptr, "Which of the results of `grad_fn` this is.", nullptr},
    {"retains_grad", get_retains_grad, nullptr,
     "True for a result on which `retain_grad()` was called.", nullptr},
    {"grad_fn", get_grad_fn, nullptr,
     "The recorded operation that made this tensor; None for leaves.", nullptr},
    {"_backward_hooks", get_backward_hooks, nullptr, "The hooks of `register_hook` by id, or None.",
     nullptr},
    {"_post_accumulate_grad_hooks", get_post_hooks, nullptr, "The hooks by id, or None.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};

PyMethodDef methods[] = {
    {"requires_grad_", as_method(requires_grad_method), METH_VARARGS | METH_KEYWORDS,
     "requires_grad_(requires_grad=True)\n--\n\nSets `requires_grad` and returns the tensor "
     "itself."},
    {"detach_", detach_method, METH_NOARGS,
     "Forgets the history of this tensor, which becomes a leaf. Not for views."},
    {"retain_grad", retain_grad_method, METH_NOARGS,
     "Keeps the gradient of this result in `grad` too. Nothing changes for leaves."},
    {"_is_view", is_view, METH_NOARGS, "Whether this is a view of another tensor."},
    {"register_hook", register_hook, METH_O,
     "Calls `hook(grad)` whenever the gradient of this tensor is computed; what it returns, if not "
     "None, is used instead. "
     "Returns a handle with `remove()`."},
    {"register_post_accumulate_grad_hook", register_post_accumulate_grad_hook, METH_O,
     "Calls `hook(tensor)` after a gradient has been accumulated into this leaf's `grad`. Returns "
     "a handle with "
     "`remove()`."},
    {"backward", as_method(tensor_backward), METH_VARARGS | METH_KEYWORDS,
     "backward(gradient=None, retain_graph=None, create_graph=False, inputs=None)\n--\n\n"
     "Adds the derivative of this tensor to the `grad` of every leaf that it was computed from, or "
     "of `inputs` alone.\n\n"
     "`gradient` is the gradient of this tensor, of its shape; a single real element needs none. "
     "`retain_graph` keeps "
     "what the graph has saved for another backward (default: as `create_graph`); `create_graph` "
     "records the derivative "
     "itself."},
    {nullptr, nullptr, 0, nullptr}};

// ---- garbage collection ----

int traverse(TensorImpl* t, visitproc visit, void* arg) {
  AutogradMeta* m = meta_of(t);
  for (auto* hook : {&m->hook, &m->post_hook}) {
    if (!*hook) continue;
    if (int stop = static_cast<PyHook&>(**hook).traverse(visit, arg)) return stop;
  }
  return 0;
}

void clear(TensorImpl* t) {
  AutogradMeta* m = meta_of(t);
  for (auto* hook : {&m->hook, &m->post_hook}) {
    if (*hook) static_cast<PyHook&>(**hook).clear();
  }
}

}  // namespace

void init_autograd_tensor() {
  add_getset(attributes);
  add_methods(methods);
  traverse_autograd = traverse;
  clear_autograd = clear;
}

}  // namespace taeda::py
