// Backward: the interface between a derivative and the graph. A derivative reads incoming gradients
// and saved values from it and sets the outgoing gradients.
//
//   void softmax_backward(Backward& b) {
//     Tensor y = b.out(), g = b.grad();
//     b.set(0, y * (g - sum(y * g, {b.arg<int64_t>(1)}, true)));
//   }
#pragma once

#include "ops/core/tensor_ops.h"

namespace taeda {

class OpNode;
struct TensorSlot;

class Backward {
 public:
  // `results` has one element per edge of the node, `cache` one per argument (for saved values,
  // once unpacked). `wanted` selects the edges whose gradients to compute; without it the running
  // backward pass does.
  Backward(OpNode& node, std::span<Tensor> grads, std::span<Tensor> results, Value* cache,
           const std::vector<bool>* wanted = nullptr)
      : node_(node),
        grads_(grads),
        results_(results),
        cache_(cache),
        wanted_(wanted) {}

  const Op& op() const;  // the op being differentiated (for its `user` data)
  // Gradient of result i. Undefined if no gradient reached that result (only for ops with several
  // results).
  const Tensor& grad(int i = 0) const { return grads_[static_cast<size_t>(i)]; }
  // The same, but zeros of result i's shape instead of an undefined tensor.
  Tensor grad_or_zeros(int i = 0) const;

  // Argument i as it was given. A Tensor (or list) must have been named in `saves`.
  template <class T> T arg(int i) const { return Unpack<T>::get(value(i)); }
  Tensor out(int i = 0) const;     // a saved result
  const Dims& sizes(int i) const;  // of the tensor argument i
  DType dtype(int i) const;
  Options options(int i) const;
  bool has(int i) const;                   // the argument i is a defined tensor
  bool saved(int i) const;                 // arg<Tensor>(i) can be read
  bool needs(int i) const;                 // its gradient is wanted (any item's, for a list)
  bool needs_item(int i, size_t j) const;  // of the tensor list i, item j's gradient is wanted
  size_t list_size(int i) const;           // length of the tensor list i
  const Dims& list_sizes(int i, size_t j) const;  // sizes of its item j

  void set(int i, const Tensor& g);                 // ignored where not needed
  void set_item(int i, size_t j, const Tensor& g);  // for a tensor list

 private:
  const Value& value(int i) const;
  const TensorSlot* slot(int i) const;  // of the tensor argument i; nullptr for any other
  Tensor fit(const Tensor& g, const TensorSlot& s) const;  // for the slot's edge
  const TensorSlot& item(int i, size_t j) const;
  bool needs_edge(uint32_t edge) const;
  OpNode& node_;
  std::span<Tensor> grads_, results_;
  Value* cache_;
  const std::vector<bool>* wanted_;
};

}  // namespace taeda
