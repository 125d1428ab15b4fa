// Nodes wait in a heap and run newest first. Edges lead from newer nodes to older ones only, so
// everything that contributes to a node's gradient has run before it. This needs no dependency
// counts and no pass over the graph up front.
#include "autograd/engine.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <unordered_map>

#include "autograd/meta.h"
#include "base/allocator.h"
#include "ops/core/tensor_ops.h"

namespace taeda {

thread_local constinit bool anomaly_checks_nan = true;

// A node in the heap, with the gradients that have come in so far.
struct PendingNode {
  Node* node;
  Small<Tensor, 2> grads;
  uint64_t owned = 0;  // bit i: this pass owns gradient i, a sum, and may add to it in place

  explicit PendingNode(Node* n) : node(n), grads(n->num_results) {}
  static void* operator new(size_t n) { return cpu::allocate(n); }
  static void operator delete(void* p) { cpu::deallocate(p, sizeof(PendingNode)); }
};

struct Capture {
  Edge at;
  Tensor grad;
};

namespace {

std::atomic<bool> node_state_in_use{
    false};  // one pass at a time may keep its state in the nodes themselves
std::atomic<uint64_t> next_pass{1};
std::atomic<bool> any_post_hooks{false};

}  // namespace

class Pass {
 public:
  Pass(BackwardOptions o, bool restricted, bool capture)
      : options_(o),
        restricted_(restricted),
        capture_(capture),
        outer_(current),
        outer_node_(node_now) {
    exclusive_ = !node_state_in_use.exchange(true, std::memory_order_acquire);
    id_ = next_pass.fetch_add(1, std::memory_order_relaxed);
    current = this;
  }
  ~Pass() {
    for (auto& [sequence, p] : heap_) {
      if (exclusive_) p->node->pending_ = nullptr;
      delete p;
    }
    if (exclusive_) node_state_in_use.store(false, std::memory_order_release);
    current = outer_;
    node_now = outer_node_;
  }
  Pass(const Pass&) = delete;
  Pass& operator=(const Pass&) = delete;

  void target(std::span<const Edge> edges) {
    for (const Edge& e : edges) captures_.push_back({e, {}});
  }
  void find_wanted(std::span<const Edge> roots);
  void count_gradients(std::span<const Edge> roots);
  void add(const Edge& e, Tensor g);
  void run();
  bool wants(const Node* n);
  bool restricted() const { return restricted_; }
  std::vector<Capture>& captures() { return captures_; }

  std::vector<std::function<void()>> callbacks;
  TAEDA_FAST_TLS static thread_local constinit Pass* current;
  TAEDA_FAST_TLS static thread_local constinit Node* node_now;

 private:
  struct NodeState {
    PendingNode* pending = nullptr;
    bool visited = false, wanted = false, captured = false;
  };
  // The pass's state for a node: in the node itself if this pass has exclusive use, else in a
  // table.
  PendingNode*& pending(Node* n) { return exclusive_ ? n->pending_ : states_[n].pending; }
  bool visit(Node* n) {
    if (!exclusive_) return !std::exchange(states_[n].visited, true);
    if (n->visited_ == id_) return false;
    n->visited_ = id_;
    n->wanted_ = n->captured_ = false;
    return true;
  }
  bool visited(const Node* n) {
    if (exclusive_) return n->visited_ == id_;
    auto it = states_.find(n);
    return it != states_.end() && it->second.visited;
  }
  bool& wanted(Node* n) { return exclusive_ ? n->wanted_ : states_[n].wanted; }
  bool& captured(Node* n) { return exclusive_ ? n->captured_ : states_[n].captured; }

  void process(PendingNode& p);
  void run_next(const PendingNode* p);
  void check_shapes(const Node& n, std::span<const Tensor> grads);
  void check_nan(Node& n, std::span<const Tensor> results);

  BackwardOptions options_;
  bool restricted_, capture_, exclusive_;
  uint64_t id_;
  Pass* outer_;
  Node* outer_node_;
  std::vector<std::pair<uint64_t, PendingNode*>> heap_;
  std::vector<Capture> captures_;
  std::unordered_map<const Node*, NodeState> states_;
  std::unordered_map<const Node*, size_t> missing_;  // gradients of leaves that have a post hook
};

TAEDA_FAST_TLS thread_local constinit Pass* Pass::current = nullptr;
TAEDA_FAST_TLS thread_local constinit Node* Pass::node_now = nullptr;

// A node is wanted when it is a target or leads to one. In order of age, the nodes that a node
// leads to come before it.
void Pass::find_wanted(std::span<const Edge> roots) {
  uint64_t oldest = UINT64_MAX;
  for (const Capture& c : captures_) {
    if (visit(c.at.node.get())) wanted(c.at.node.get()) = true;
    captured(c.at.node.get()) = true;
    oldest = std::min(oldest, c.at.node->sequence());
  }
  // Targets have been visited above, but nodes behind them may lead to another target.
  std::vector<Node*> found;
  std::vector<Node*> stack;
  for (const Capture& c : captures_) stack.push_back(c.at.node.get());
  for (const Edge& e : roots) {
    if (visit(e.node.get())) stack.push_back(e.node.get());
  }
  while (!stack.empty()) {
    Node* n = stack.back();
    stack.pop_back();
    found.push_back(n);
    for (const Edge& e : n->edges()) {
      if (e && e.node->sequence() >= oldest && visit(e.node.get())) stack.push_back(e.node.get());
    }
  }
  std::sort(found.begin(), found.end(),
            [](Node* a, Node* b) { return a->sequence() < b->sequence(); });
  for (Node* n : found) {
    bool any = wanted(n);
    for (const Edge& e : n->edges())
      any = any || (e && visited(e.node.get()) && wanted(e.node.get()));
    wanted(n) = any;
  }
}

// A leaf whose older graph is alive keeps its number of then, by which it would run after all that
// is newer. Where something waits for its gradient, the gradients that it gets are counted, so that
// it runs as soon as it has them all.
void Pass::count_gradients(std::span<const Edge> roots) {
  std::vector<Node*> stack;
  const auto reach = [&](const Edge& e) {
    Node* n = e.node.get();
    if (!n) return;
    if (n->is_accumulate()) {
      const AutogradMeta* m = static_cast<AccumulateGrad*>(n)->meta();
      if (m && m->post_hook) ++missing_[n];
    } else if (visit(n)) {
      stack.push_back(n);
    }
  };
  for (const Edge& e : roots) reach(e);
  while (!stack.empty()) {
    Node* n = stack.back();
    stack.pop_back();
    for (const Edge& e : n->edges()) reach(e);
  }
}

void Pass::run_next(const PendingNode* p) {
  const auto at = std::ranges::find(heap_, p, [](const auto& entry) { return entry.second; });
  at->first = UINT64_MAX;
  std::push_heap(heap_.begin(), at + 1);
}

bool Pass::wants(const Node* n) {
  if (!restricted_) return true;
  return visited(n) && wanted(const_cast<Node*>(n));
}

void Pass::add(const Edge& e, Tensor g) {
  Node* n = e.node.get();
  PendingNode*& p = pending(n);
  if (!p) {
    p = new PendingNode(n);
    heap_.emplace_back(n->sequence(), p);
    std::push_heap(heap_.begin(), heap_.end());
  }
  if (!missing_.empty()) {
    const auto found = missing_.find(n);
    if (found != missing_.end() && --found->second == 0) run_next(p);
  }
  if (!g.defined()) return;
  Tensor& sum = p->grads[e.nr];
  if (!sum.defined()) {
    sum = std::move(g);
    return;
  }
  bool plain = !GradMode::enabled() && e.nr < 64 && same(sum.sizes(), g.sizes()) &&
               sum.dtype() == g.dtype() && !((sum.flags() | g.flags()) & (kOverride | kDispatch));
  if (plain && (p->owned >> e.nr & 1)) {
    op<"add_">(sum, g);
  } else {
    sum = add_gradients(sum, g);
    if (plain) p->owned |= uint64_t(1) << e.nr;
  }
}

void Pass::run() {
  GradMode mode(options_.create_graph);
  while (!heap_.empty()) {
    std::pop_heap(heap_.begin(), heap_.end());
    std::unique_ptr<PendingNode> p(heap_.back().second);
    heap_.pop_back();
    pending(p->node) = nullptr;
    process(*p);
  }
  node_now = outer_node_;
  for (size_t i = 0; i < callbacks.size(); ++i) {
    const auto callback = std::move(callbacks[i]);  // which may queue others
    callback();
  }
}

void Pass::check_shapes(const Node& n, std::span<const Tensor> grads) {
  for (const NodeExtras::Result& r : n.extras->results) {
    const Tensor& g = grads[r.nr];
    if (!g.defined() || (g.flags() & kOverride) || same(g.sizes(), r.sizes)) continue;
    fail("Function ", n.name(), " got an invalid gradient at index ", r.nr, " - got ",
         to_string(g.sizes()), " but its result had the shape ", to_string(r.sizes),
         "; the result was given another shape by an assignment to .data, set_() or an in-place "
         "operation under no_grad()");
  }
}

void Pass::process(PendingNode& p) {
  Node& n = *p.node;
  node_now = &n;
  std::span<Tensor> grads = p.grads;
  if (n.extras || n.is_accumulate()) n.run_tensor_hooks(grads);
  if (n.extras) {
    check_shapes(n, grads);
    for (size_t i = 0; i < n.extras->retained.size(); ++i) {
      const auto retained = n.extras->retained[i];
      const Tensor& g = grads[retained.first];
      if (!g.defined()) continue;
      const Tensor& before = retained.second->grad;
      const Tensor sum = before.defined() ? before + g : g;
      // A mode that has seen the addition may have dropped the tensor.
      if (i < n.extras->retained.size() && n.extras->retained[i] == retained)
        retained.second->grad = sum;
    }
  }
  bool execute = true;
  if (restricted_) {
    if (captured(&n)) {
      for (Capture& c : captures_) {
        if (c.at.node.get() == &n) c.grad = grads[c.at.nr];
      }
      execute = !capture_ && n.is_accumulate();
      for (const Edge& e : n.edges()) execute = execute || (e && wants(e.node.get()));
    } else {
      execute = wants(&n);
    }
  }
  if (!execute) return;
  if (n.extras && n.extras->pre) n.extras->pre->run(grads, {});

  Small<Tensor, 3> results(n.edges().size());
  std::vector<Tensor> came_in;
  if (n.extras && n.extras->post) came_in.assign(grads.begin(), grads.end());
  try {
    n.apply(grads, results);
    if (anomaly_enabled && anomaly_checks_nan) check_nan(n, results);
  } catch (...) {
    if (anomaly_enabled && report_anomaly) report_anomaly(n);
    throw;
  }
  if (!options_.keep_graph) n.release();
  if (n.extras && n.extras->post) n.extras->post->run(results, came_in);
  p.grads = {};

  std::span<Edge> edges = n.edges();
  for (size_t i = 0; i < edges.size(); ++i) {
    if (edges[i] && (!restricted_ || wants(edges[i].node.get())))
      add(edges[i], std::move(results[i]));
  }
}

void Pass::check_nan(Node& n, std::span<const Tensor> results) {
  GradMode off(false);
  for (size_t i = 0; i < results.size(); ++i) {
    if (!results[i].defined() || !is_inexact(results[i].dtype())) continue;
    if (results[i].flags() & (kMeta | kOverride | kDispatch)) continue;
    bool bad = op<"any">(op<"ne">(results[i], results[i])).item().to<bool>();
    check(!bad, "Function '", n.name(), "' returned nan values in its ", i, "th output.");
  }
}

bool Node::needs(size_t i) const {
  const Edge& e = edges_[i];
  return e && (!Pass::current || Pass::current->wants(e.node.get()));
}

namespace {

void start(Pass& pass, std::span<const Edge> roots, std::span<const Tensor> grads) {
  for (size_t i = 0; i < roots.size(); ++i) pass.add(roots[i], grads[i]);
  pass.run();
}

}  // namespace

void run_backward(std::span<const Edge> roots, std::span<const Tensor> grads, BackwardOptions o,
                  std::span<const Edge> only) {
  Pass pass(o, !only.empty(), false);
  if (!only.empty()) {
    pass.target(only);
    pass.find_wanted(roots);
  } else if (any_post_hooks.load(std::memory_order_relaxed)) {
    pass.count_gradients(roots);
  }
  start(pass, roots, grads);
}

std::vector<Tensor> run_grad(std::span<const Edge> roots, std::span<const Tensor> grads,
                             BackwardOptions o, std::span<const Edge> inputs) {
  Pass pass(o, true, true);
  pass.target(inputs);
  pass.find_wanted(roots);
  start(pass, roots, grads);
  std::vector<Tensor> out;
  for (Capture& c : pass.captures()) out.push_back(std::move(c.grad));
  return out;
}

void expect_post_hooks() { any_post_hooks.store(true, std::memory_order_relaxed); }

void queue_callback(std::function<void()> f) {
  check(Pass::current, "Final callbacks can only be installed during backward pass.");
  Pass::current->callbacks.push_back(std::move(f));
}

bool backward_is_running() { return Pass::current != nullptr; }
bool backward_fills_all_leaves() { return Pass::current && !Pass::current->restricted(); }
Node* current_node() { return Pass::node_now; }

}  // namespace taeda
