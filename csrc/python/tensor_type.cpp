#include "python/tensor_type.h"

#include <structmember.h>

#include <array>
#include <cstddef>
#include <optional>
#include <vector>

#include "ops/core/op.h"
#include "python/dispatch_classes.h"
#include "python/overrides.h"
#include "python/tensor_slots.h"

namespace taeda::py {

PyTypeObject* TensorType = nullptr;
int (*traverse_autograd)(TensorImpl*, visitproc, void*) = nullptr;
void (*clear_autograd)(TensorImpl*) = nullptr;

namespace {

TensorObject* object_of(PyObject* o) { return reinterpret_cast<TensorObject*>(o); }

// ---- memory ----
// Plain tensor objects are created and destroyed at a high rate: keep a free list of their memory.
constexpr size_t kFreeObjects = 256;
std::array<PyObject*, kFreeObjects> free_objects;
size_t free_count = 0;

PyObject* allocate_object(PyTypeObject* type) {
  if (type == TensorType && free_count) {
    PyObject* o = PyObject_Init(free_objects[--free_count], type);
    return o;
  }
  return type == TensorType ? reinterpret_cast<PyObject*>(PyObject_GC_New(TensorObject, type))
                            : type->tp_alloc(type, 0);
}

void free_object(PyObject* o) {
  PyTypeObject* type = Py_TYPE(o);
  if (type == TensorType) {
    if (free_count < kFreeObjects) {
      free_objects[free_count++] = o;
    } else {
      PyObject_GC_Del(o);
    }
  } else {
    type->tp_free(o);
  }
  Py_DECREF(type);
}

PyObject* new_object(Tensor t, PyTypeObject* type) {
  PyObject* o = must(allocate_object(type));
  auto* self = object_of(o);
  // The allocation may have run the garbage collector, and with it code that has made an object of
  // this tensor.
  const bool late = t.impl()->python;
  if (!late) t.impl()->python = o;
  new (&self->tensor) Tensor(late ? Tensor() : std::move(t));
  self->dict = nullptr;
  self->weakrefs = nullptr;
  if (type == TensorType) PyObject_GC_Track(o);  // tp_alloc has done so for the others
  if (!late) return o;
  Py_DECREF(o);
  return wrap(std::move(t));
}

// ---- lifetime ----

// Whether this object is distinguishable from a new one made for the same tensor.
bool has_own_state(PyObject* o) {
  auto* self = object_of(o);
  return Py_TYPE(o) != TensorType || self->weakrefs ||
         (self->dict && PyDict_GET_SIZE(self->dict) > 0);
}

// Called when the last Python reference is dropped. If C++ still holds the tensor and the object
// has state of its own, the tensor takes ownership of the object.
bool keep_object(PyObject* o) {
  auto* self = object_of(o);
  TensorImpl* impl = self->tensor.impl();
  if (!impl || impl->ref_count() <= 1 || !has_own_state(o)) return false;
  Py_SET_REFCNT(o, 1);
  impl->python_owned = true;
  // From here on the object's handle is not counted. If another thread dropped its reference
  // meanwhile, this was the last one, and destroying the tensor releases the object.
  Ref<TensorImpl>::adopt(impl).reset();
  return true;
}

// Called by TensorImpl::destroy for a tensor that owns its object. The object may have a __del__ or
// be resurrected, and must be a complete tensor until its end: it gets a new impl with the contents
// of the dying one. During interpreter shutdown objects may still be visited (by the last garbage
// collection, for one) but not be released: then the object stays alive.
void release_python(TensorImpl* dying) {
  std::optional<AcquireGil> gil;
  if (Py_IsInitialized()) gil.emplace();
  auto* o = static_cast<PyObject*>(dying->python);
  auto impl = make_ref<TensorImpl>();
  impl->storage = std::move(dying->storage);
  impl->offset = dying->offset;
  impl->numel = dying->numel;
  impl->sizes = std::move(dying->sizes);
  impl->strides = std::move(dying->strides);
  impl->dtype = dying->dtype;
  impl->flags = dying->flags;
  impl->base = std::move(dying->base);
  impl->no_grad_view = dying->no_grad_view;
  impl->own_version = dying->own_version;
  impl->contiguous = dying->contiguous;
  impl->autograd = std::move(dying->autograd);
  impl->python = o;
  dying->python = nullptr;
  dying->python_owned = false;
  new (&object_of(o)->tensor) Tensor(std::move(impl));  // the previous handle was not counted
  if (gil) Py_DECREF(o);
}

void destroy_object(PyObject* o) {
  PyObject_GC_UnTrack(o);
  auto* self = object_of(o);
  if (self->weakrefs) PyObject_ClearWeakRefs(o);
  Py_CLEAR(self->dict);
  Tensor dying = std::move(self->tensor);
  self->tensor.~Tensor();
  if (dying.defined()) dying.impl()->python = nullptr;
  free_object(o);
}

void tensor_dealloc(PyObject* o) {
  if (!keep_object(o)) destroy_object(o);
}

// A Python subclass has a tp_dealloc of its own, which clears the object before it calls Tensor's.
// So __init_subclass__ puts this one in its place, where the object can still be kept.
destructor subtype_dealloc = nullptr;
thread_local PyObject* dying_object = nullptr;

void subclass_dealloc(PyObject* o) {
  if (dying_object == o) {  // called by subtype_dealloc as the base's tp_dealloc
    destroy_object(o);
    return;
  }
  if (keep_object(o)) return;
  PyObject* outer = std::exchange(dying_object, o);
  subtype_dealloc(o);
  dying_object = outer;
}

int tensor_traverse(PyObject* o, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(o));
  auto* self = object_of(o);
  TensorImpl* impl = self->tensor.impl();
  // While C++ holds the tensor too, its attributes must not be collected, even if they are part of
  // a cycle.
  if (impl && impl->ref_count() > 1) return 0;
  Py_VISIT(self->dict);
  if (impl && impl->autograd && traverse_autograd) return traverse_autograd(impl, visit, arg);
  return 0;
}

int tensor_clear(PyObject* o) {
  auto* self = object_of(o);
  Py_CLEAR(self->dict);
  TensorImpl* impl = self->tensor.impl();
  if (impl && impl->autograd && impl->ref_count() == 1 && clear_autograd) clear_autograd(impl);
  return 0;
}

PyObject* init_subclass(PyObject* cls, PyObject* args, PyObject* kwargs) {
  auto* type = reinterpret_cast<PyTypeObject*>(cls);
  if (type->tp_dealloc != subclass_dealloc) {
    if (!subtype_dealloc) subtype_dealloc = type->tp_dealloc;
    if (type->tp_dealloc == subtype_dealloc) type->tp_dealloc = subclass_dealloc;
  }
  return guarded([&] {
    PyRef super =
        take(python_call(PyObject_CallFunctionObjArgs, reinterpret_cast<PyObject*>(&PySuper_Type),
                         reinterpret_cast<PyObject*>(TensorType), cls, nullptr));
    PyRef next = take(PyObject_GetAttrString(super.get(), "__init_subclass__"));
    return python_call(PyObject_Call, next.get(), args, kwargs);
  });
}

PyObject* get_dict(PyObject* o, void*) { return PyObject_GenericGetDict(o, nullptr); }
int set_dict(PyObject* o, PyObject* value, void*) {
  return PyObject_GenericSetDict(o, value, nullptr);
}

PyMethodDef type_methods[] = {
    {"__init_subclass__",
     reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(init_subclass)),
     METH_VARARGS | METH_KEYWORDS | METH_CLASS, nullptr},
    {nullptr, nullptr, 0, nullptr}};
PyGetSetDef type_getset[] = {{"__dict__", get_dict, set_dict, nullptr, nullptr},
                             {nullptr, nullptr, nullptr, nullptr, nullptr}};
PyMemberDef type_members[] = {
    {"__dictoffset__", T_PYSSIZET, offsetof(TensorObject, dict), READONLY, nullptr},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(TensorObject, weakrefs), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr}};

}  // namespace

PyObject* wrap(Tensor t) {
  TensorImpl* impl = t.impl();
  if (!impl) Py_RETURN_NONE;
  if (auto* o = static_cast<PyObject*>(impl->python)) {
    if (!impl->python_owned) return Py_NewRef(o);
    // The object's handle is counted again, and the tensor's reference to the object becomes the
    // caller's.
    impl->python_owned = false;
    impl->retain();
    return o;
  }
  return new_object(std::move(t), TensorType);
}

uint32_t class_flags(PyTypeObject* type) {
  return (overrides_functions(type) ? uint32_t{kOverride} : 0) |
         (has_torch_dispatch(type) ? uint32_t{kDispatch} : 0);
}

PyObject* wrap_as(Tensor t, PyTypeObject* type) {
  check(!t.impl()->python, "this tensor has a Python object already");
  if (type != TensorType) t.impl()->flags |= class_flags(type);
  return new_object(std::move(t), type);
}

void add_methods(PyMethodDef* table) {
  for (; table->ml_name; ++table) {
    PyRef d = take(table->ml_flags & METH_STATIC
                       ? PyStaticMethod_New(take(PyCFunction_New(table, nullptr)).get())
                   : table->ml_flags & METH_CLASS ? PyDescr_NewClassMethod(TensorType, table)
                                                  : PyDescr_NewMethod(TensorType, table));
    must(PyObject_SetAttrString(reinterpret_cast<PyObject*>(TensorType), table->ml_name, d.get()));
  }
}

void add_getset(PyGetSetDef* table) {
  for (; table->name; ++table) {
    PyRef d = take(PyDescr_NewGetSet(TensorType, table));
    must(PyObject_SetAttrString(reinterpret_cast<PyObject*>(TensorType), table->name, d.get()));
  }
}

void init_tensor_type(PyObject* module) {
  std::vector<PyType_Slot> slots = tensor_slots();
  for (PyType_Slot s : std::initializer_list<PyType_Slot>{
           {Py_tp_dealloc, reinterpret_cast<void*>(tensor_dealloc)},
           {Py_tp_traverse, reinterpret_cast<void*>(tensor_traverse)},
           {Py_tp_clear, reinterpret_cast<void*>(tensor_clear)},
           {Py_tp_methods, type_methods},
           {Py_tp_getset, type_getset},
           {Py_tp_members, type_members},
           {Py_tp_doc,
            const_cast<char*>(
                "An array of numbers of one dtype on one device, with a gradient if asked for.")},
           {0, nullptr}}) {
    slots.push_back(s);
  }
  PyType_Spec spec{"taeda.Tensor", sizeof(TensorObject), 0,
                   Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, slots.data()};
  TensorType = reinterpret_cast<PyTypeObject*>(must(PyType_FromSpec(&spec)));
  TensorType->tp_name = "Tensor";  // the name in Python's own messages; __module__ is already set
  TensorImpl::release_python = release_python;
  must(PyModule_AddObjectRef(module, "Tensor", reinterpret_cast<PyObject*>(TensorType)));
}

}  // namespace taeda::py
