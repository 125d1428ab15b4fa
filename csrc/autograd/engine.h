// The engine: runs the graph backwards from some tensors, on the calling thread.
#pragma once

#include <functional>

#include "autograd/node.h"

namespace taeda {

struct BackwardOptions {
  bool keep_graph = false;    // nodes keep what they saved
  bool create_graph = false;  // the gradients are recorded in turn
};

// Accumulates into the leaves' .grad: all that are reached or, if `only` is not empty, those that
// it leads to.
void run_backward(std::span<const Edge> roots, std::span<const Tensor> grads, BackwardOptions o,
                  std::span<const Edge> only = {});
// The gradients at `inputs`; undefined for an input that is not reached. Nothing is accumulated.
std::vector<Tensor> run_grad(std::span<const Edge> roots, std::span<const Tensor> grads,
                             BackwardOptions o, std::span<const Edge> inputs);

// Notes the shape that a result of a node has, unless it is known: for who has only the node later,
// and for the backward pass, which compares the gradients with it.
void remember_result(const Edge& e, const TensorImpl* t);

// Says that a leaf has got a hook that runs after its gradient has been accumulated: from then on
// backward passes run such leaves as soon as their gradients are complete.
void expect_post_hooks();

// Registers a function to call when the backward pass running in this thread ends.
void queue_callback(std::function<void()> f);
bool backward_is_running();
bool backward_fills_all_leaves();  // not only those of selected inputs
Node* current_node();              // whose apply() is running in this thread; nullptr: none

extern thread_local constinit bool anomaly_checks_nan;

}  // namespace taeda
