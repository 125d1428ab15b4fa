#include "autograd/op_node.h"

#include "autograd/backward.h"
#include "autograd/meta.h"
#include "base/allocator.h"

namespace taeda {

// ---- recording ----

Ref<OpNode> OpNode::create(const Op& op, std::span<const Value> args, int mutated) {
  size_t n = args.size();
  auto* node = ::new (cpu::allocate(sizeof(OpNode) + n * sizeof(Slot))) OpNode(op, n);
  for (size_t i = 0; i < n; ++i) ::new (node->slots() + i) Slot();
  Ref<OpNode> ref(node);
  uint32_t edges = 0;
  for (const Value& v : args) {
    if (v.index() == 1) ++edges;
    else if (auto* l = std::get_if<TensorList>(&v)) edges += static_cast<uint32_t>(l->size());
  }
  node->edges_ = Small<Edge, 3>(edges);
  const Tensor* changed =
      mutated >= 0 ? std::get_if<Tensor>(&args[static_cast<size_t>(mutated)]) : nullptr;
  int wanted =
      0;  // tensor arguments whose gradient is wanted, and which one where it is a single one
  size_t only = n;
  if (op.traits.crosswise) {
    for (size_t i = 0; i < n; ++i) {
      auto* t = std::get_if<Tensor>(&args[i]);
      if (t && t->defined() && requires_grad(*t) && ++wanted) only = i;
    }
  }
  uint32_t edge = 0, bit = 1;
  for (size_t i = 0; i < n; ++i, bit <<= 1) {
    Slot& s = node->slots()[i];
    bool save = i < 16 && (op.traits.saves & bit);
    if (op.traits.crosswise & bit) save &= wanted > 1 || only != i;
    if (auto* t = std::get_if<Tensor>(&args[i])) {
      s.kind = Kind::One;
      node->fill(s.tensor, *t, edge, save, changed && t->is(*changed));
    } else if (auto* l = std::get_if<TensorList>(&args[i])) {
      s.kind = Kind::List;
      s.list = std::make_unique<std::vector<TensorSlot>>(l->size());
      for (size_t j = 0; j < l->size(); ++j) {
        node->fill((*s.list)[j], (*l)[j], edge, save, changed && (*l)[j].is(*changed));
      }
    } else {
      s.value = args[i];
    }
  }
  node->take_sequence();
  return ref;
}

void OpNode::fill(TensorSlot& s, const Tensor& t, uint32_t& edge, bool save, bool copy) {
  s.edge = edge++;
  if (!t.defined()) return;
  s.defined = true;
  s.sizes.assign(t.sizes().data(), t.sizes().size());
  s.dtype = t.dtype();
  s.device = t.device();
  edges_[s.edge] = gradient_edge(t);
  if (!save) return;
  if (copy) {
    GradMode off(false);
    s.saved.save(clone(t), false);
  } else {
    s.saved.save(t, false);
  }
}

void OpNode::save_results(const Value& value) {
  auto* list = std::get_if<TensorList>(&value);
  auto* one = std::get_if<Tensor>(&value);
  num_results = list ? static_cast<uint32_t>(list->size()) : 1;
  if (list) {
    results_.reserve(list->size());
    for (const Tensor& t : *list) {
      if (t.defined()) results_.push_back({Dims(t.sizes()), t.options()});
      else results_.emplace_back();
    }
  }
  uint32_t wanted = op_.traits.saves >> 16;
  if (!wanted) return;
  if (one) {
    first_result_.save(*one, true);
  } else if (list) {
    if (wanted & 1 && !list->empty()) first_result_.save((*list)[0], true);
    if (!(wanted >> 1)) return;
    more_results_.resize(list->size());
    for (size_t i = 1; i < list->size(); ++i) {
      if (wanted >> i & 1) more_results_[i].save((*list)[i], true);
    }
  }
}

// ---- the end ----

OpNode::~OpNode() {
  for (size_t i = 0; i < count_; ++i) slots()[i].~Slot();
}

void OpNode::dispose() {
  size_t bytes = sizeof(OpNode) + count_ * sizeof(Slot);
  this->~OpNode();
  cpu::deallocate(this, bytes);
}

void OpNode::release() {
  for (size_t i = 0; i < count_; ++i) {
    Slot& s = slots()[i];
    if (s.tensor.saved.has()) s.tensor.saved.release();
    if (s.list) {
      for (TensorSlot& item : *s.list) {
        if (item.saved.has()) item.saved.release();
      }
    }
  }
  if (first_result_.has()) first_result_.release();
  for (SavedTensor& r : more_results_) {
    if (r.has()) r.release();
  }
}

// ---- backward ----

void OpNode::apply(std::span<Tensor> grads, std::span<Tensor> results) {
  bool any = false;
  for (const Tensor& g : grads) any |= g.defined();
  if (!any) return;
  Small<Value, 4> cache(count_);
  Backward b(*this, grads, results, cache.data());
  op_.traits.backward(b);
}

Tensor OpNode::unpack(const TensorSlot& s) const {
  const Edge& e = input_edge(s.edge);
  return s.saved.unpack(*this, e.node.get(), e.nr);
}

Tensor Backward::grad_or_zeros(int i) const {
  const Tensor& g = grads_[static_cast<size_t>(i)];
  if (g.defined()) return g;
  const auto& r = node_.results_[static_cast<size_t>(i)];
  return zeros(r.sizes, r.options);
}

const Value& Backward::value(int i) const {
  const OpNode::Slot& s = node_.slots()[i];
  if (s.kind == OpNode::Kind::Other) return s.value;
  Value& v = cache_[i];
  if (!is_none(v)) return v;
  if (s.kind == OpNode::Kind::One) {
    check(s.tensor.saved.has() || !s.tensor.defined, node_.name(), " reads argument ", i,
          ", which it does not save");
    if (s.tensor.defined) v = node_.unpack(s.tensor);
  } else {
    TensorList list;
    for (const auto& item : *s.list) list.push_back(item.defined ? node_.unpack(item) : Tensor());
    v = std::move(list);
  }
  return v;
}

Tensor Backward::out(int i) const {
  const SavedTensor& r = i == 0 ? node_.first_result_ : node_.more_results_[static_cast<size_t>(i)];
  check(r.has(), node_.name(), " reads result ", i, ", which it does not save");
  return r.unpack(node_, &node_, static_cast<uint32_t>(i));
}

const Op& Backward::op() const { return node_.op_; }
const Dims& Backward::sizes(int i) const { return node_.slots()[i].tensor.sizes; }
DType Backward::dtype(int i) const { return node_.slots()[i].tensor.dtype; }
Options Backward::options(int i) const {
  const auto& t = node_.slots()[i].tensor;
  return {t.dtype, t.device};
}
bool Backward::saved(int i) const {
  const OpNode::Slot& s = node_.slots()[i];
  return s.kind == OpNode::Kind::One && s.tensor.saved.has();
}
bool Backward::has(int i) const { return node_.slots()[i].tensor.defined; }
size_t Backward::list_size(int i) const {
  const auto& list = node_.slots()[i].list;
  return list ? list->size() : 0;
}
const Dims& Backward::list_sizes(int i, size_t j) const {
  return (*node_.slots()[i].list)[j].sizes;
}

bool Backward::needs(int i) const {
  const auto& s = node_.slots()[i];
  if (s.kind == OpNode::Kind::One) return s.tensor.defined && node_.needs(s.tensor.edge);
  if (s.list) {
    for (const auto& item : *s.list) {
      if (node_.needs(item.edge)) return true;
    }
  }
  return false;
}

bool Backward::needs_item(int i, size_t j) const {
  return node_.needs((*node_.slots()[i].list)[j].edge);
}

void Backward::set(int i, const Tensor& g) {
  const auto& s = node_.slots()[i].tensor;
  if (!g.defined() || !s.defined || !node_.needs(s.edge)) return;
  if (g.dtype() == s.dtype && same(g.sizes(), s.sizes)) results_[s.edge] = g;
  else results_[s.edge] = fit_gradient(g, s.sizes, s.dtype, node_, s.edge);
}

void Backward::set_item(int i, size_t j, const Tensor& g) {
  const auto& s = (*node_.slots()[i].list)[j];
  if (g.defined() && s.defined && node_.needs(s.edge))
    results_[s.edge] = fit_gradient(g, s.sizes, s.dtype, node_, s.edge);
}

// ---- ops without a derivative ----

namespace {

class EndNode final : public Node {
 public:
  EndNode(const Op& op, std::span<const Value> args, bool constant) : op_(op), constant_(constant) {
    size_t n = 0;
    for (const Value& v : args) {
      if (v.index() == 1) ++n;
      else if (auto* l = std::get_if<TensorList>(&v)) n += l->size();
    }
    Small<Edge, 3> edges(n);
    size_t i = 0;
    for (const Value& v : args) {
      if (auto* t = std::get_if<Tensor>(&v)) {
        edges[i++] = t->defined() ? gradient_edge(*t) : Edge{};
      } else if (auto* l = std::get_if<TensorList>(&v)) {
        for (const Tensor& t : *l) edges[i++] = t.defined() ? gradient_edge(t) : Edge{};
      }
    }
    set_edges(std::move(edges));
    take_sequence();
  }
  std::string name() const override { return constant_ ? op_.backward_name : "NotImplemented"; }
  void apply(std::span<Tensor>, std::span<Tensor>) override {
    check(constant_, "derivative for ", op_.name, " is not implemented");
  }

 private:
  const Op& op_;
  bool constant_;
};

}  // namespace

Ref<Node> make_end_node(const Op& op, std::span<const Value> args, bool constant) {
  return make_ref<EndNode>(op, args, constant);
}

}  // namespace taeda
