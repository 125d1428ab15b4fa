// Node: one recorded operation of the graph. Its edges lead to the nodes that made its inputs.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "autograd/small.h"
#include "base/tls.h"
#include "tensor/tensor.h"

namespace taeda {

class Node;
struct AutogradMeta;
struct PendingNode;  // engine.cpp: a node's gradients so far

// A gradient along an edge goes to input `nr` of `node`: it is the gradient of result nr of that
// operation.
struct Edge {
  Ref<Node> node;
  uint32_t nr = 0;
  explicit operator bool() const { return bool(node); }
  bool operator==(const Edge& o) const { return node == o.node && nr == o.nr; }
};

// A user's function that sees gradients and may replace them. `others` are the gradients on the
// other side of the node: its inputs, for a hook that runs after it.
struct Hook {
  virtual ~Hook() = default;
  virtual void run(std::span<Tensor> grads, std::span<const Tensor> others) = 0;
};

struct NodeExtras {
  std::vector<std::pair<uint32_t, std::shared_ptr<Hook>>>
      tensor_hooks;                                          // on one of the node's inputs
  std::vector<std::pair<uint32_t, AutogradMeta*>> retained;  // whose .grad to set
  std::shared_ptr<Hook> pre, post;
  // For an operation that changed a view in place: the CopySlices node of the base that wraps it,
  // and the edge that led to the view's former value.
  Node* wrapper = nullptr;
  Edge former;
  size_t former_at = SIZE_MAX;
  std::shared_ptr<void> metadata;  // csrc/python keeps a dict here
  struct Result {
    uint32_t nr;
    Dims sizes;
    Options options;
  };
  std::vector<Result> results;  // those whose shape somebody may ask for, who has only the node
};

class Node : public RefCounted {
 public:
  virtual ~Node() = default;

  // Turns the gradients of the operation's results into those of its inputs, one per edge.
  // Undefined tensors stand for zeros on both sides.
  virtual void apply(std::span<Tensor> grads, std::span<Tensor> results) = 0;
  virtual std::string name() const = 0;  // "MulBackward0"
  virtual void release() {}              // frees saved values; another backward pass then fails
  // Runs the hooks on incoming gradients; called only if `extras` is set.
  virtual void run_tensor_hooks(std::span<Tensor> grads);
  virtual bool is_accumulate() const { return false; }

  std::span<Edge> edges() { return edges_; }
  std::span<const Edge> edges() const { return edges_; }
  void set_edges(Small<Edge, 3> edges) { edges_ = std::move(edges); }
  // Where the gradient of the original input i goes. Differs from edge i for an operation wrapped
  // by CopySlices.
  const Edge& input_edge(size_t i) const {
    return extras && extras->former_at == i ? extras->former : edges_[i];
  }
  // Nodes are numbered in order of creation, so edges lead to smaller numbers. Assigned after the
  // edges are known, because finding an edge may itself create a node.
  uint64_t sequence() const { return sequence_; }
  void take_sequence() {
    number();
    note_origin();
  }

  // Whether the running backward pass needs the gradient along edge i.
  bool needs(size_t i) const;

  NodeExtras& make_extras() {
    if (!extras) extras = std::make_unique<NodeExtras>();
    return *extras;
  }

  uint32_t num_results = 1;  // of the forward operation: gradients that come in
  std::unique_ptr<NodeExtras> extras;
  void* python = nullptr;  // the one PyObject of this node, not counted: it holds the node. Only
                           // csrc/python touches it

  bool drop() const { return outlives_ ? drop_counted() : RefCounted::drop(); }
  // Called when the last reference goes. Nodes die one after another, never inside each other: a
  // chain of any length is freed without recursion.
  static void destroy(Node* n);
  static void* operator new(size_t n);
  static void operator delete(void* p, size_t n);

 protected:
  Node() = default;
  void number();
  // Anomaly detection runs Python code here, which must not happen under a lock.
  void note_origin();
  virtual void dispose() { delete this; }
  virtual void unreferenced() {}  // instead of destruction, for a node that lives on

  Small<Edge, 3> edges_;
  uint64_t sequence_ = 0;
  bool outlives_ = false;

 private:
  friend class Pass;
  PendingNode* pending_ =
      nullptr;  // the engine's state, while one backward pass has exclusive use of the graph
  uint64_t visited_ = 0;
  bool wanted_ = false, captured_ = false;
  Node* next_dead_ = nullptr;
};

// Called when a node is made, while anomaly detection is on; set by csrc/python.
extern void (*record_anomaly)(Node& n);
TAEDA_FAST_TLS extern thread_local constinit bool anomaly_enabled;
// Called when node `n` has thrown; reports where its operation was called.
extern void (*report_anomaly)(Node& n);

}  // namespace taeda
