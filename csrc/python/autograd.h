// The Python side of autograd: grad_fn objects, hooks, Function, and the tensor attributes related
// to gradients.
#pragma once

#include "autograd/meta.h"
#include "python/errors.h"

namespace taeda::py {

// The Python object of a node: `grad_fn`. A node has at most one, which owns the node; the context
// of a custom Function is its node's object too, but is owned by the node instead.
struct NodeObject {
  PyObject_HEAD Node* node;
  bool counted;  // whether the object owns a reference to the node
};
extern PyTypeObject* NodeType;

PyObject* node_object(const Ref<Node>& node);  // new reference; None for no node
inline bool is_node(PyObject* o) { return PyObject_TypeCheck(o, NodeType); }
Node& node_of(PyObject* o);  // throws if the node no longer exists

// A dict of Python functions as a hook. `kind` says how they are called.
class PyHook final : public Hook {
 public:
  enum class Kind { Grad, AfterAccumulation, Before, After };
  explicit PyHook(Kind kind);
  ~PyHook() override;
  void run(std::span<Tensor> grads, std::span<const Tensor> others) override;
  PyObject* dict() const { return dict_; }
  // Adds a function and returns its handle.
  PyObject* add(PyObject* function);
  int traverse(visitproc visit, void* arg);
  void clear();

 private:
  Kind kind_;
  PyObject* dict_;
};
// The hook in `slot`, created if there is none yet.
PyHook& hook_at(std::shared_ptr<Hook>& slot, PyHook::Kind kind);

PyObject* import_attribute(const char* module, const char* name);  // new reference

// A tensor, or a TypeError that begins with `what`.
const Tensor& expect_tensor(PyObject* o, const char* what);

void init_autograd(PyObject* module);           // calls the others
void init_autograd_tensor();                    // autograd_tensor.cpp
void init_autograd_node(PyObject* module);      // autograd_node.cpp
void init_autograd_function(PyObject* module);  // autograd_function.cpp
void init_autograd_run(PyObject* module);       // autograd.cpp: running backward, modes

void init_autograd_forward(PyObject* module);  // forward.cpp
void init_grad_mode(PyObject* module);         // grad_mode.cpp

// `tensor.backward(...)`, and its table of methods for init_autograd_tensor.
PyObject* tensor_backward(PyObject* self, PyObject* args, PyObject* kwargs);

}  // namespace taeda::py
