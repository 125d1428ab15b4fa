// OpNode: the node of an op that has a derivative. It keeps the values that the derivative reads.
#pragma once

#include "autograd/saved.h"
#include "ops/core/op.h"

namespace taeda {

// What a node keeps of a tensor argument.
struct TensorSlot {
  TensorSlot() {}  // not defaulted: `TensorSlot()` would zero the memory first
  explicit TensorSlot(uint32_t at) : edge(at) {}  // of an undefined tensor
  TensorSlot(const Tensor& t, uint32_t at)
      : sizes(t.impl()->sizes),
        dtype(t.dtype()),
        device(t.device()),
        defined(true),
        edge(at) {}

  Dims sizes;
  SavedTensor saved;
  DType dtype = DType::Float32;
  Device device;
  bool defined = false;
  uint32_t edge = 0;
};
class OpNode final : public Node {
 public:
  // Records the call before its kernel runs. `mutated` is the argument that it changes in place, or
  // -1; if the derivative reads that argument, it is copied. `save_all`: any gradient may be
  // requested, even of arguments that do not require one.
  static Ref<OpNode> create(const Op& op, std::span<const Value> args, int mutated,
                            bool save_all = false);

  void apply(std::span<Tensor> grads, std::span<Tensor> results) override;
  std::string name() const override { return op_.backward_name; }
  void release() override;
  // The gradients along the edges in `wanted`, outside any backward pass.
  std::vector<Tensor> gradients(std::span<Tensor> grads, const std::vector<bool>& wanted);

  // Saves the results that the derivative reads; called once they have their history.
  void save_results(const Value& results);
  size_t edge_of(size_t arg) const { return tensor_slot(arg)->edge; }
  const Op& op() const { return op_; }
  // Access to saved values (grad_fn._saved_*).
  bool saves_argument(size_t i) const {
    const TensorSlot* s = tensor_slot(i);
    return s && s->saved.has();
  }
  Tensor saved_argument(size_t i) const { return unpack(*tensor_slot(i)); }
  bool saves_result() const { return first_result_.has(); }
  Tensor saved_result() { return first_result_.unpack(*this, this, 0); }

 private:
  friend class Backward;

  // An argument: a tensor, a list of them, or the value of anything else.
  using Slot = std::variant<TensorSlot, std::vector<TensorSlot>, Value>;
  struct Result {
    Dims sizes;
    Options options;
  };

  explicit OpNode(const Op& op) : op_(op) {}
  ~OpNode() override;
  void dispose() override;

  Slot* slots() { return reinterpret_cast<Slot*>(this + 1); }
  const Slot* slots() const { return reinterpret_cast<const Slot*>(this + 1); }
  const TensorSlot* tensor_slot(size_t i) const { return std::get_if<TensorSlot>(slots() + i); }
  const std::vector<TensorSlot>* list_slot(size_t i) const {
    return std::get_if<std::vector<TensorSlot>>(slots() + i);
  }
  void take(const Value& argument, size_t i, uint32_t& edge, bool save, const Tensor* changed);
  // Where the gradient of the slot's tensor goes, and what is kept of it.
  void connect(TensorSlot& s, const Tensor& t, bool save, const Tensor* changed);
  Tensor unpack(const TensorSlot& s) const;
  void derive(std::span<Tensor> grads, std::span<Tensor> results, const std::vector<bool>* wanted);

  const Op& op_;
  uint16_t capacity_ = 0, count_ = 0;  // slots, and how many of them are constructed
  uint32_t flags_ = 0;                 // of the tensors among the arguments
  SavedTensor first_result_;
  struct Several {
    std::vector<Result> results;
    std::vector<SavedTensor> saved;  // all but the first
  };
  std::unique_ptr<Several> several_;  // of an op that returns a list
};

// The node of an op without a derivative: throws when a gradient reaches it, or, if `constant`,
// returns no gradient.
Ref<Node> make_end_node(const Op& op, std::span<const Value> args, bool constant);

}  // namespace taeda
