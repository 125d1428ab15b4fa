// Autograd's data of a tensor, and queries on it: requires_grad, grad, grad_fn, is_leaf.
#pragma once

#include <optional>

#include "autograd/node.h"

namespace taeda {

// How a view was created, for views whose in-place changes cannot be tracked.
enum class Creation : uint8_t { Plain, OneOfSeveral, InFunction };

// Which dtype a leaf's gradient has: that of the leaf, another one, or whichever comes.
enum class GradDType : uint8_t { Own, Other, Any };

struct AutogradMeta;

// Adds incoming gradients to a leaf's .grad. The leaf owns this node; the node keeps the leaf alive
// as long as a graph refers to the node.
class AccumulateGrad final : public Node {
 public:
  AccumulateGrad() { outlives_ = true; }
  void apply(std::span<Tensor> grads, std::span<Tensor> results) override;
  std::string name() const override { return "AccumulateGrad"; }
  void run_tensor_hooks(std::span<Tensor> grads) override;
  bool is_accumulate() const override { return true; }
  Tensor variable() const { return Tensor(Ref<TensorImpl>(leaf_)); }
  const AutogradMeta* meta() const;

  static Ref<Node> of(const Tensor& leaf);

 protected:
  void unreferenced() override;

 private:
  TensorImpl* leaf_ = nullptr;  // reference-counted while this node is referred to
};

struct Tangent;  // forward.h

struct AutogradMeta final : AutogradData {
  Tensor grad;
  Ref<Node> grad_fn;  // empty for leaves
  uint32_t output_nr = 0;
  uint32_t changes = 0;       // how often the history was replaced by an in-place change
  uint32_t base_changes = 0;  // of a view: the value of the base's `changes` when grad_fn was made
  Creation creation = Creation::Plain;
  bool retains_grad = false;
  GradDType grad_rule = GradDType::Own;
  DType grad_dtype = DType::Float32;  // if `grad_rule` is Other
  std::unique_ptr<AccumulateGrad> accumulator;
  std::shared_ptr<Hook> hook;         // on a leaf's gradient, before it is accumulated
  std::shared_ptr<Hook> post_hook;    // after it has been accumulated
  std::shared_ptr<Hook> result_hook;  // of a result: the newest hook, held by its grad_fn too
  uint64_t result_hook_node = 0;      // the sequence number of that grad_fn

  std::unique_ptr<Tangent> tangent;  // of forward mode

  AutogradMeta();
  ~AutogradMeta() override;
  static void* operator new(size_t n);
  static void operator delete(void* p);
};

inline AutogradMeta* meta_of(const TensorImpl* t) {
  return static_cast<AutogradMeta*>(t->autograd.get());
}
inline AutogradMeta& make_meta(TensorImpl* t) {
  if (!t->autograd) t->autograd = std::make_unique_for_overwrite<AutogradMeta>();
  return *meta_of(t);
}

// ---- questions ----
inline bool requires_grad(const Tensor& t) {
  const TensorImpl* p = t.impl();
  if (p->flags & kRequiresGrad) return true;
  return (p->flags & kIsView) && p->base && (p->base->flags & kRequiresGrad) &&
         is_inexact(p->dtype);
}
Ref<Node> grad_fn(const Tensor& t);   // recreated for a view whose base was changed in place
Edge gradient_edge(const Tensor& t);  // where t's gradient goes; empty if it requires none
inline bool is_leaf(const Tensor& t) { return !requires_grad(t) || !grad_fn(t); }
Tensor grad_of(const Tensor& t);
std::optional<DType> grad_dtype(const Tensor& t);  // of a leaf's gradients; nothing: any

// ---- changes ----
void set_requires_grad(const Tensor& t, bool on);
void set_grad(const Tensor& t, const Tensor& grad);
// Sets the dtype of a leaf's gradients; nothing: any.
void set_grad_dtype(const Tensor& t, std::optional<DType> dtype);
void detach_in_place(const Tensor& t);
void retain_grad(const Tensor& t);
// Makes `t` the result `nr` of `node`.
void set_history(const Tensor& t, Ref<Node> node, uint32_t nr);
// `t` was changed in place by `node`, whose edge `self_edge` leads to its former value. For a view
// the base's history changes, and with it that of all its views.
void rebase_history(const Tensor& t, const Ref<Node>& node, uint32_t nr, size_t self_edge);
// The node that a base gets when its `view` was changed (copy_slices.cpp).
Ref<Node> make_copy_slices(const Tensor& base, const TensorImpl* view, Ref<Node> node, uint32_t nr,
                           size_t self_edge);
// The value that a view had after that change, with its history.
Tensor recorded_view(Node& copy_slices, const Tensor& value);
// Throws where `t` may not be changed in place while gradients are recorded.
void check_in_place(const Tensor& t);
// The view of `other` that corresponds to `part` as a view of `whole`; `other` has the geometry of
// `whole`.
Tensor same_view(const Tensor& other, const TensorImpl* whole, const TensorImpl* part);
// Converts `grad` to the shape and dtype (real or complex) of its tensor; `from` and `index` are
// for the error message.
Tensor fit_gradient(Tensor grad, DimsRef sizes, DType dtype, const Node& from, size_t index);
// The dtype that a gradient of the dtype `given` takes along an edge that belongs to a tensor of
// the dtype `own`.
DType dtype_along(const Edge& edge, DType own, DType given);

// The sum. A sparse tensor may be added to a dense one, but not the other way round.
Tensor add_gradients(const Tensor& a, const Tensor& b);

// The last in-place operations that autograd saw, for messages.
void note_in_place(const Storage* s, uint32_t version, const std::string* op);
const std::string* find_in_place(const Storage* s, uint32_t version);

}  // namespace taeda
