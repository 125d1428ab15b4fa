#include "autograd/node.h"

#include <atomic>

#include "base/allocator.h"

namespace taeda {

void (*record_anomaly)(Node&) = nullptr;
void (*report_anomaly)(Node&) = nullptr;
TAEDA_FAST_TLS thread_local constinit bool anomaly_enabled = false;

namespace {

std::atomic<uint64_t> next_sequence{1};
TAEDA_FAST_TLS thread_local constinit Node* first_dead = nullptr;
TAEDA_FAST_TLS thread_local constinit bool draining = false;

}  // namespace

void Node::number() { sequence_ = next_sequence.fetch_add(1, std::memory_order_relaxed); }

void Node::note_origin() {
  if (anomaly_enabled && record_anomaly) record_anomaly(*this);
}

void Node::run_tensor_hooks(std::span<Tensor> grads) {
  // A hook may add others, which the next pass runs.
  for (size_t i = 0, n = extras->tensor_hooks.size(); i < n; ++i) {
    const auto [nr, hook] = extras->tensor_hooks[i];
    hook->run(grads.subspan(nr, 1), {});
  }
}

void Node::destroy(Node* n) {
  if (n->outlives_) return n->unreferenced();
  n->next_dead_ = first_dead;
  first_dead = n;
  if (draining) return;
  draining = true;
  while (Node* dead = first_dead) {
    first_dead = dead->next_dead_;
    dead->dispose();
  }
  draining = false;
}

void* Node::operator new(size_t n) { return cpu::allocate(n); }
void Node::operator delete(void* p, size_t n) { cpu::deallocate(p, n); }

}  // namespace taeda
