// The node and the context of autograd.Function (autograd_function.cpp), for its calls
// (autograd_function_apply.cpp).
#pragma once

#include "autograd/saved.h"
#include "python/autograd.h"
#include "python/errors.h"

namespace taeda::py {

// The context passed to forward and backward (ctx). It is the Python object of its node, which owns
// it.
struct FunctionObject {
  NodeObject base;
  PyObject* needs_input_grad;
  PyObject* to_save;
  PyObject* dirty;
  PyObject* non_differentiable;
  char materialize;
  char in_jvp;  // where saved_tensors are those saved for it
};
extern PyTypeObject* FunctionType;
inline FunctionObject* context_of(PyObject* o) { return reinterpret_cast<FunctionObject*>(o); }

struct FunctionShape {
  Dims sizes;
  Options options;
  bool defined = false;
};
inline FunctionShape shape_of(const Tensor& t) { return {Dims(t.sizes()), t.options(), true}; }

class FunctionNode final : public Node {
 public:
  explicit FunctionNode(PyObject* context) : context_(Py_NewRef(context)) {
    python = context;
    reinterpret_cast<NodeObject*>(context)->node = this;
  }
  ~FunctionNode() override {
    if (!Py_IsInitialized()) return;
    AcquireGil gil;
    reinterpret_cast<NodeObject*>(context_)->node = nullptr;
    Py_DECREF(context_);
  }

  std::string name() const override { return type_name(context_); }
  void release() override {
    for (Saved& s : saved) s.value.release();
    released = true;
  }
  void apply(std::span<Tensor> grads, std::span<Tensor> results) override;

  struct Saved {
    SavedTensor value;
    int edge = -1, result = -1;  // index among the inputs or results
  };
  std::vector<Saved> saved;
  std::vector<FunctionShape> inputs, outputs;  // by edge and by result
  std::vector<int> argument_edge;              // per argument of forward, or -1
  bool released = false;

 private:
  PyObject* context_;
};

inline FunctionNode* node_of_context(PyObject* o) {
  return static_cast<FunctionNode*>(reinterpret_cast<NodeObject*>(o)->node);
}

// _function_apply(cls, args, separate_setup)
PyObject* apply_function(PyObject*, PyObject* args);

}  // namespace taeda::py
