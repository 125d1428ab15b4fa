#include "autograd/saved.h"

#include "autograd/forward.h"
#include "autograd/meta.h"
#include "ops/core/op.h"
#include "tensor/dispatched.h"

namespace taeda {

TAEDA_FAST_TLS thread_local constinit SavedHooks* saved_hooks = nullptr;

void fail_released() {
  fail(
      "Trying to backward through the graph a second time (or directly access saved tensors after "
      "they have already been "
      "freed). Saved intermediate values of the graph are freed when you call .backward() or "
      "autograd.grad(). Specify "
      "retain_graph=True if you need to backward through the graph a second time or if you need to "
      "access saved tensors "
      "after calling backward.");
}

void SavedTensor::save(const Tensor& t, bool is_result) {
  set_ = true;
  released_ = false;
  if (!t.defined()) return;
  check(!(t.flags() & kInference),
        "Inference tensors cannot be saved for backward. Please do not use Tensors created in "
        "inference mode in "
        "computation tracked by autograd. To work around this, you can make a clone to get a "
        "normal tensor and use it in "
        "autograd, or use `no_grad()` instead of `inference_mode()`.");
  is_result_ = is_result;
  if (saved_hooks) {
    packed_ = saved_hooks->pack(alias(t));
    packed_->sizes = t.sizes();
    packed_->placeholder = t.is_placeholder();
    packed_->options = t.options();
    return;
  }
  tensor_ = is_result ? alias(t) : t;
  if (is_result) share_tangent(t, tensor_);
  version_ = tensor_.version();
  reshapes_ = tensor_.impl()->reshapes & kMostReshapes;
}

void SavedTensor::take_tangent(const Tensor& result) const {
  if (tensor_.defined()) share_tangent(result, tensor_);
}

bool SavedTensor::has_its_shape() const {
  return (tensor_.impl()->reshapes & kMostReshapes) == reshapes_;
}

void SavedTensor::changed(const Node& saver, const Node* node, uint32_t nr) const {
  std::string made_by, changed_by;
  if (node && !node->is_accumulate())
    made_by = str(", which is output ", nr, " of ", node->name(), ",");
  if (!has_its_shape() && tensor_.version() == version_) {
    fail(
        "one of the variables needed for gradient computation has been modified by an inplace "
        "operation: [",
        info(tensor_.dtype()).scalar, "Tensor ", to_string(tensor_.sizes()), "]", made_by,
        " was given another shape or other memory, by an assignment to .data, set_() or resize_(), "
        "after it was saved by ",
        saver.name(), ".");
  }
  if (auto* op = find_in_place(tensor_.storage().get(), tensor_.version()))
    changed_by = str(" by ", *op, "()");
  fail(
      "one of the variables needed for gradient computation has been modified by an inplace "
      "operation: [",
      info(tensor_.dtype()).scalar, "Tensor ", to_string(tensor_.sizes()), "]", made_by,
      " is at version ", tensor_.version(), "; expected version ", version_,
      " instead. It was saved by ", saver.name(), " and changed afterwards", changed_by,
      ". Hint: enable anomaly detection to find the operation that failed to compute its gradient, "
      "with "
      "taeda.autograd.set_detect_anomaly(True, check_nan=False).");
}

namespace {

// The kernels trust what was saved: a hook may return other values, but not another kind of tensor.
Tensor unpack_checked(PackedTensor& packed, const Node& saver) {
  Tensor t = packed.unpack();
  const Options& o = packed.options;
  check(packed.placeholder || !t.is_placeholder(), saver.name(),
        ": the unpack hook of a saved tensor returned one of another class: ", kPlaceholderText);
  if (same(t.sizes(), packed.sizes) && t.dtype() == o.dtype && t.device().type == o.device.type)
    return t;
  fail(saver.name(), ": the unpack hook of a saved tensor returned one of shape ",
       to_string(t.sizes()), ", dtype ", name(t.dtype()), " and device ", t.device(),
       ", but the tensor that was packed is of shape ", to_string(packed.sizes), ", dtype ",
       name(o.dtype), " and device ", o.device);
}

}  // namespace

Tensor SavedTensor::unpack(const Node& saver, Node* node, uint32_t nr) const {
  if (released_) fail_released();
  const Ref<PackedTensor> packed = packed_;
  Tensor t = packed ? unpack_checked(*packed, saver) : tensor_;
  if (!t.defined()) return t;
  if (!packed && (t.version() != version_ || !has_its_shape())) changed(saver, node, nr);
  if (!GradMode::enabled() || !is_inexact(t.dtype())) return t;
  if (!packed && !is_result_) {
    if (!node) {
      if (!requires_grad(t)) return t;
    } else if (node->is_accumulate()) {
      if (static_cast<AccumulateGrad*>(node)->variable().is(t)) return t;
    } else if (AutogradMeta* m = meta_of(t.impl());
               m && m->grad_fn.get() == node && m->output_nr == nr) {
      return t;
    }
  }
  if (is_result_ && node && node->extras && node->extras->wrapper) {
    Tensor view = recorded_view(*node->extras->wrapper, t);
    share_tangent(t, view);
    return view;
  }
  Tensor again = alias(t);
  share_tangent(t, again);
  if (node && node->is_accumulate()) {
    // A leaf of which only the value was saved: its gradient still goes to its own AccumulateGrad.
    Tensor leaf = static_cast<AccumulateGrad*>(node)->variable();
    if (leaf.storage() == t.storage()) return leaf;
    set_history(again, Ref<Node>(node), nr);
  } else if (node) {
    set_history(again, Ref<Node>(node), nr);
  }
  return again;
}

}  // namespace taeda
