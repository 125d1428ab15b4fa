#include "python/dispatch_classes.h"

#include <optional>
#include <vector>

#include "autograd/layer.h"
#include "autograd/meta.h"
#include "ops/core/tensor_ops.h"
#include "python/arguments.h"
#include "python/objects.h"
#include "python/tensor_type.h"
#include "tensor/dispatched.h"

namespace taeda::py {
namespace {

thread_local int disabled_depth = 0;
PyObject* disabled_dispatch = nullptr;  // assigned to __torch_dispatch__ by classes that undo one

PyObject* attribute_name() {
  static PyObject* name = must(PyUnicode_InternFromString("__torch_dispatch__"));
  return name;
}

// Adds the class of a tensor that has kDispatch, unless it is there.
void collect(const Tensor& t, std::vector<PyTypeObject*>& found) {
  auto* o = static_cast<PyObject*>(t.impl()->python);
  if (!(t.flags() & kDispatch) || !o) return;
  PyTypeObject* type = Py_TYPE(o);
  size_t at = found.size();
  for (size_t i = 0; i < found.size(); ++i) {
    if (found[i] == type) return;
    if (at == found.size() && PyType_IsSubtype(type, found[i])) at = i;
  }
  found.insert(found.begin() + static_cast<std::ptrdiff_t>(at), type);
}

// ---- what is no op ----

// Asks the class for `detach`, outside of all layers but the modes.
Tensor alias_by_class(const Tensor& t) {
  const GradMode off(false);
  modes.always &= kDispatchLayer;
  Tensor r = op<"detach">(t);
  check(!r.is(t) && same(r.sizes(), t.sizes()) && is_leaf(r),
        "__torch_dispatch__ must give a new tensor of the same shape and without a history for "
        "aten.detach");
  return r;
}

std::optional<Scalar> item_by_class(const Tensor& t) {
  if (disabled_depth > 0) return std::nullopt;
  const GradMode off(false);
  return std::get<Scalar>(op_value<"_local_scalar_dense">(t));
}

// ---- views ----

// Results that a kernel would have made on the memory of the first argument share its version, and
// a view counts as one for autograd.
void share_place(const Tensor& base, const Tensor& view, bool is_view, bool grad) {
  TensorImpl *b = base.impl(), *v = view.impl();
  if (!view.is_placeholder() || v->base || v == b || v->storage->ref_count() > 1) return;
  v->storage = b->storage;
  if (!is_view) return;
  v->base = b->base ? b->base : base.ref();
  v->flags |= kIsView;
  v->no_grad_view = !grad || b->no_grad_view;
  v->own_version = b->own_version;
}

// ---- Python ----

struct WrapperArguments {
  PyObject *cls, *size, *strides = Py_None, *offset = Py_None, *format = Py_None, *dtype = Py_None,
                        *layout = Py_None, *device = Py_None, *pin = Py_False, *grad = Py_False,
                        *policy = Py_None;
};

WrapperArguments parse_wrapper(PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"cls",
                                "size",
                                "strides",
                                "storage_offset",
                                "memory_format",
                                "dtype",
                                "layout",
                                "device",
                                "pin_memory",
                                "requires_grad",
                                "dispatch_sizes_strides_policy",
                                nullptr};
  WrapperArguments a;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO|$OOOOOOOOO:_make_wrapper_subclass",
                                   const_cast<char**>(names), &a.cls, &a.size, &a.strides,
                                   &a.offset, &a.format, &a.dtype, &a.layout, &a.device, &a.pin,
                                   &a.grad, &a.policy)) {
    throw PythonError();
  }
  return a;
}

PyTypeObject* dispatching_class(PyObject* cls) {
  constexpr const char* who = "_make_wrapper_subclass(): ";
  check<TypeError>(
      PyType_Check(cls) && PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(cls), TensorType), who,
      "argument 'cls' must be a subclass of Tensor");
  auto* type = reinterpret_cast<PyTypeObject*>(cls);
  check<TypeError>(has_torch_dispatch(type), who, type->tp_name,
                   " must define __torch_dispatch__, which answers for its tensors");
  return type;
}

template <class T, class F> T given_or(PyObject* o, T fallback, const char* name, F&& convert) {
  if (o == Py_None) return fallback;
  check<TypeError>(convert(o, &fallback), "_make_wrapper_subclass(): argument '", name,
                   "' cannot be ", type_name(o));
  return fallback;
}

Tensor wrapper_of(const WrapperArguments& a) {
  constexpr const char* who = "_make_wrapper_subclass(): ";
  check<NotImplemented>(a.policy == Py_None, who,
                        "dispatch_sizes_strides_policy is not supported: sizes and strides are "
                        "those that are given");
  check<NotImplemented>(a.pin == Py_False || a.pin == Py_None, who,
                        "pin_memory is not supported: there is no memory");
  check<NotImplemented>(a.format == Py_None, who,
                        "memory_format is not supported: give strides instead");
  if (a.layout != Py_None) {
    const std::string layout = to_string(take(PyObject_Str(a.layout)).get());
    check<NotImplemented>(layout.ends_with(".strided"), who, "layout must be strided, got ",
                          layout);
  }
  const auto dims = [](PyObject* o, Dims* d) { return as_dims(o, d); };
  const auto sizes = given_or(a.size, Dims(), "size", dims);
  const auto strides = given_or(a.strides, contiguous_strides(sizes), "strides", dims);
  const auto offset = given_or(a.offset, int64_t{0}, "storage_offset",
                               [](PyObject* o, int64_t* n) { return as_int(o, n); });
  Options options;
  options.dtype = given_or(a.dtype, options.dtype, "dtype",
                           [](PyObject* o, DType* d) { return as_dtype(o, d); });
  options.device = given_or(a.device, options.device, "device",
                            [](PyObject* o, Device* d) { return as_device(o, d); });
  return make_placeholder(sizes, strides, offset, options);
}

PyObject* make_wrapper_subclass(PyObject*, PyObject* args, PyObject* kwargs) {
  return guarded([&] {
    const WrapperArguments a = parse_wrapper(args, kwargs);
    PyTypeObject* type = dispatching_class(a.cls);
    Tensor t = wrapper_of(a);
    const int grad = PyObject_IsTrue(a.grad);
    must(grad);
    if (grad) set_requires_grad(t, true);
    return wrap_as(std::move(t), type);
  });
}

// __torch_dispatch__(func, types, args=(), kwargs=None) of Tensor itself: what it would do for a
// class without one.
PyObject* run_undispatched(PyObject*, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"func", "types", "args", "kwargs", nullptr};
  PyObject *func, *types, *inner_args = nullptr, *inner_kwargs = nullptr;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO|OO:__torch_dispatch__",
                                   const_cast<char**>(names), &func, &types, &inner_args,
                                   &inner_kwargs)) {
    return nullptr;
  }
  return guarded([&] {
    PyRef positional = inner_args ? take(PySequence_Tuple(inner_args)) : take(PyTuple_New(0));
    const bool named = inner_kwargs && inner_kwargs != Py_None;
    check<TypeError>(!named || PyDict_Check(inner_kwargs),
                     "__torch_dispatch__(): argument 'kwargs' must be a dict");
    ++disabled_depth;
    PyObject* result =
        python_call(PyObject_Call, func, positional.get(), named ? inner_kwargs : nullptr);
    --disabled_depth;
    return must(result);
  });
}

PyObject* is_placeholder(PyObject*, PyObject* o) {
  return PyBool_FromLong(is_tensor(o) && tensor_of(o).is_placeholder());
}

PyObject* dispatches(PyObject*, PyObject* o) {
  return PyBool_FromLong(is_tensor(o) && (tensor_of(o).flags() & kDispatch));
}

PyObject* change_disabled(PyObject*, PyObject* delta) {
  const long d = PyLong_AsLong(delta);
  if (d == -1 && PyErr_Occurred()) return nullptr;
  disabled_depth += static_cast<int>(d);
  Py_RETURN_NONE;
}

template <class F> PyCFunction fn(F* f) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(f));
}

PyMethodDef functions[] = {
    {"_disabled_torch_dispatch_impl", fn(run_undispatched), METH_VARARGS | METH_KEYWORDS,
     "A __torch_dispatch__ that runs the op as if the class had none."},
    {"_change_torch_dispatch_disabled", change_disabled, METH_O,
     "Adds to the depth at which this thread asks no class's __torch_dispatch__."},
    {"_is_placeholder", is_placeholder, METH_O,
     "Whether it is a tensor without memory, for whose values its class answers."},
    {"_dispatches", dispatches, METH_O,
     "Whether it is a tensor of a class with __torch_dispatch__."},
    {nullptr, nullptr, 0, nullptr}};
PyMethodDef tensor_methods[] = {
    {"_make_wrapper_subclass", fn(make_wrapper_subclass),
     METH_VARARGS | METH_KEYWORDS | METH_STATIC,
     "_make_wrapper_subclass(cls, size, *, strides=None, storage_offset=0, dtype=None, "
     "layout=None, device=None, requires_grad=False)\n\n"
     "A tensor of a class with __torch_dispatch__ that has these properties and no memory: the "
     "class keeps\nits values and answers for all operations."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

bool has_torch_dispatch(PyTypeObject* type) {
  PyObject* found = _PyType_Lookup(type, attribute_name());
  return found && found != disabled_dispatch;
}

PyRef dispatching_types(const Call& c) {
  std::vector<PyTypeObject*> found;
  if (disabled_depth == 0) {
    each_tensor(c.args, [&](const Tensor& t) { collect(t, found); });
    if (c.out.defined()) collect(c.out, found);
  }
  PyRef types = take(PyTuple_New(static_cast<Py_ssize_t>(found.size())));
  for (size_t i = 0; i < found.size(); ++i) {
    PyTuple_SET_ITEM(types.get(), static_cast<Py_ssize_t>(i),
                     Py_NewRef(reinterpret_cast<PyObject*>(found[i])));
  }
  return types;
}

void finish_class_result(const Call& c, const Tensor* target, Value& result) {
  if (target) target->bump_version();
  const auto* base = c.args.empty() ? nullptr : std::get_if<Tensor>(&c.args[0]);
  const bool is_view = c.op.traits.view;
  if ((!is_view && c.op.name != "detach") || !base || !base->defined() || !base->is_placeholder())
    return;
  each_result(result, [&](Tensor& t, uint32_t) { share_place(*base, t, is_view, c.grad); });
}

void init_dispatch_classes(PyObject* module) {
  must(PyModule_AddFunctions(module, functions));
  disabled_dispatch = must(PyObject_GetAttrString(module, "_disabled_torch_dispatch_impl"));
  add_methods(tensor_methods);
  must(PyObject_SetAttr(reinterpret_cast<PyObject*>(TensorType), attribute_name(),
                        disabled_dispatch));
  dispatched = {.alias = alias_by_class, .item = item_by_class};
}

}  // namespace taeda::py
