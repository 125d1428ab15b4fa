// The engine: runs the graph backwards from some tensors, on the calling thread.
#pragma once

#include <functional>

#include "autograd/node.h"

namespace taeda {

struct BackwardOptions {
  bool keep_graph = false;    // nodes keep what they saved
  bool create_graph = false;  // the gradients are recorded in turn
};

// Accumulates into the leaves' .grad: all that are reached, or only those that `only` (not empty)
// lead to.
void run_backward(std::span<const Edge> roots, std::span<const Tensor> grads, BackwardOptions o,
                  std::span<const Edge> only = {});
// The gradients that arrive at `inputs`; undefined where none does. Nothing is accumulated.
std::vector<Tensor> run_grad(std::span<const Edge> roots, std::span<const Tensor> grads,
                             BackwardOptions o, std::span<const Edge> inputs);

// Called after the backward that is running in this thread.
void queue_callback(std::function<void()> f);
bool backward_is_running();
bool backward_fills_all_leaves();  // and is not one for certain inputs only
Node* current_node();              // whose apply() is running in this thread; nullptr: none

extern thread_local constinit bool anomaly_checks_nan;

}  // namespace taeda
