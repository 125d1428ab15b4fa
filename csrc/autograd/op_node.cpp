#include "autograd/op_node.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "autograd/backward.h"
#include "autograd/meta.h"
#include "base/allocator.h"

namespace taeda {

// ---- recording ----

namespace {

uint32_t count_edges(std::span<const Value> args) {
  uint32_t edges = 0;
  for (const Value& v : args) {
    if (std::holds_alternative<Tensor>(v)) ++edges;
    else if (auto* l = std::get_if<TensorList>(&v)) edges += static_cast<uint32_t>(l->size());
  }
  return edges;
}

// The only argument that requires a gradient; -1 if several or none do.
int only_wanted(std::span<const Value> args) {
  int only = -1;
  for (size_t i = 0; i < args.size(); ++i) {
    auto* t = std::get_if<Tensor>(&args[i]);
    if (!t || !t->defined() || !requires_grad(*t)) continue;
    if (only >= 0) return -1;
    only = static_cast<int>(i);
  }
  return only;
}

}  // namespace

Ref<OpNode> OpNode::create(const Op& op, std::span<const Value> args, int mutated, bool save_all) {
  void* memory = cpu::allocate(sizeof(OpNode) + args.size() * sizeof(Slot));
  auto node = Ref<OpNode>::first(::new (memory) OpNode(op));
  node->capacity_ = static_cast<uint16_t>(args.size());
  node->edges_.reset(count_edges(args));
  const Tensor* changed =
      mutated >= 0 ? std::get_if<Tensor>(&args[static_cast<size_t>(mutated)]) : nullptr;
  const int only = op.traits.saved_for_others && !save_all ? only_wanted(args) : -1;
  uint32_t edge = 0;
  for (size_t i = 0; i < args.size(); ++i) {
    const bool save = i < 16 && (op.traits.saves >> i & 1);
    const bool unused = only == static_cast<int>(i) && (op.traits.saved_for_others >> i & 1);
    node->take(args[i], i, edge, save && !unused, changed);
  }
  node->take_sequence();
  return node;
}

void OpNode::take(const Value& argument, size_t i, uint32_t& edge, bool save,
                  const Tensor* changed) {
  Slot* at = slots() + i;
  if (auto* t = std::get_if<Tensor>(&argument)) {
    if (t->defined()) std::construct_at(at, std::in_place_index<0>, *t, edge++);
    else std::construct_at(at, std::in_place_index<0>, edge++);
    ++count_;
    if (t->defined()) connect(*std::get_if<0>(at), *t, save, changed);
  } else if (auto* l = std::get_if<TensorList>(&argument)) {
    std::construct_at(at, std::in_place_index<1>, l->size());
    ++count_;
    auto& list = *std::get_if<1>(at);
    for (size_t j = 0; j < l->size(); ++j) {
      const Tensor& t = (*l)[j];
      list[j] = t.defined() ? TensorSlot(t, edge) : TensorSlot(edge);
      ++edge;
      if (t.defined()) connect(list[j], t, save, changed);
    }
  } else {
    std::construct_at(at, std::in_place_index<2>);
    ++count_;
    construct_value(std::get_if<2>(at), argument);
  }
}

void OpNode::connect(TensorSlot& s, const Tensor& t, bool save, const Tensor* changed) {
  flags_ |= t.flags();
  if (requires_grad(t)) edges_[s.edge] = gradient_edge(t);
  if (!save) return;
  if (changed && t.is(*changed)) {
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
    several_ = std::make_unique<Several>();
    several_->results.reserve(list->size());
    for (const Tensor& t : *list) {
      if (t.defined()) several_->results.push_back({Dims(t.sizes()), t.options()});
      else several_->results.emplace_back();
    }
  }
  uint32_t wanted = op_.traits.saves >> 16;
  if (!wanted) return;
  if (one) {
    first_result_.save(*one, true);
  } else if (list) {
    if (wanted & 1 && !list->empty()) first_result_.save((*list)[0], true);
    if (!(wanted >> 1)) return;
    several_->saved.resize(list->size());
    for (size_t i = 1; i < list->size(); ++i) {
      if (wanted >> i & 1) several_->saved[i].save((*list)[i], true);
    }
  }
}

// ---- the end ----

OpNode::~OpNode() {
  for (size_t i = 0; i < count_; ++i) {
    Slot& s = slots()[i];
    if (auto* t = std::get_if<TensorSlot>(&s)) std::destroy_at(t);
    else if (auto* v = std::get_if<Value>(&s)) destroy_value(*v);
    else std::destroy_at(&s);
  }
}

void OpNode::dispose() {
  size_t bytes = sizeof(OpNode) + capacity_ * sizeof(Slot);
  this->~OpNode();
  cpu::deallocate(this, bytes);
}

void OpNode::release() {
  for (size_t i = 0; i < count_; ++i) {
    Slot& s = slots()[i];
    if (auto* t = std::get_if<TensorSlot>(&s)) {
      if (t->saved.has()) t->saved.release();
    } else if (auto* list = std::get_if<std::vector<TensorSlot>>(&s)) {
      for (TensorSlot& item : *list) {
        if (item.saved.has()) item.saved.release();
      }
    }
  }
  if (first_result_.has()) first_result_.release();
  if (!several_) return;
  for (SavedTensor& r : several_->saved) {
    if (r.has()) r.release();
  }
}

// ---- backward ----

namespace {

// While a derivative reads tensors of a class with __torch_dispatch__ it is composed of ops, so
// that the class sees them.
class WatchedByClasses {
 public:
  WatchedByClasses() : always_(modes.always) { modes.always |= kDispatchLayer; }
  WatchedByClasses(const WatchedByClasses&) = delete;
  WatchedByClasses& operator=(const WatchedByClasses&) = delete;
  ~WatchedByClasses() { modes.always = always_; }

 private:
  uint32_t always_;
};

}  // namespace

void OpNode::derive(std::span<Tensor> grads, std::span<Tensor> results,
                    const std::vector<bool>* wanted) {
  uint32_t flags = flags_;
  for (const Tensor& g : grads) flags |= g.defined() ? g.flags() : 0;
  std::optional<WatchedByClasses> watched;
  if (flags & kDispatch) [[unlikely]]
    watched.emplace();
  Small<Value, 4> cache(count_);
  Backward b(*this, grads, results, cache.data(), wanted);
  op_.traits.backward(b);
}

void OpNode::apply(std::span<Tensor> grads, std::span<Tensor> results) {
  bool any = false;
  for (const Tensor& g : grads) any |= g.defined();
  if (any) derive(grads, results, nullptr);
}

std::vector<Tensor> OpNode::gradients(std::span<Tensor> grads, const std::vector<bool>& wanted) {
  std::vector<Tensor> results(edges_.size());
  derive(grads, results, &wanted);
  return results;
}

Tensor OpNode::unpack(const TensorSlot& s) const {
  const Edge& e = input_edge(s.edge);
  return s.saved.unpack(*this, e.node.get(), e.nr);
}

Tensor Backward::grad_or_zeros(int i) const {
  const Tensor& g = grads_[static_cast<size_t>(i)];
  if (g.defined()) return g;
  const auto& r = node_.several_->results[static_cast<size_t>(i)];
  return zeros(r.sizes, r.options);
}

const Value& Backward::value(int i) const {
  const OpNode::Slot& s = node_.slots()[i];
  if (auto* v = std::get_if<Value>(&s)) return *v;
  Value& v = cache_[i];
  if (!is_none(v)) return v;
  if (auto* t = std::get_if<TensorSlot>(&s)) {
    check(t->saved.has() || !t->defined, node_.op_.backward_name, " reads argument ", i,
          ", which it does not save");
    if (t->defined) v = node_.unpack(*t);
  } else {
    TensorList list;
    for (const auto& item : *node_.list_slot(static_cast<size_t>(i)))
      list.push_back(item.defined ? node_.unpack(item) : Tensor());
    v = std::move(list);
  }
  return v;
}

Tensor Backward::out(int i) const {
  const SavedTensor& r =
      i == 0 ? node_.first_result_ : node_.several_->saved[static_cast<size_t>(i)];
  check(r.has(), node_.name(), " reads result ", i, ", which it does not save");
  // In forward mode, possibly no argument of the op requires a gradient.
  const std::span<const Edge> edges = std::as_const(node_).edges();
  const bool recorded =
      std::any_of(edges.begin(), edges.end(), [](const Edge& e) { return bool(e); });
  return r.unpack(node_, recorded ? &node_ : nullptr, static_cast<uint32_t>(i));
}

const TensorSlot* Backward::slot(int i) const { return node_.tensor_slot(static_cast<size_t>(i)); }
const TensorSlot& Backward::item(int i, size_t j) const {
  check(j < list_size(i), node_.op_.backward_name, ": argument ", i, " has ", list_size(i),
        " tensors, and no item ", j);
  return (*node_.list_slot(static_cast<size_t>(i)))[j];
}

const Op& Backward::op() const { return node_.op_; }
const Dims& Backward::sizes(int i) const {
  static const Dims none;
  const auto* s = slot(i);
  return s ? s->sizes : none;
}
DType Backward::dtype(int i) const { return options(i).dtype; }
Options Backward::options(int i) const {
  const auto* s = slot(i);
  return s ? Options{s->dtype, s->device} : Options{DType::Float32, {}};
}
bool Backward::saved(int i) const {
  const auto* s = slot(i);
  return s && s->saved.has();
}
bool Backward::has(int i) const {
  const auto* s = slot(i);
  return s && s->defined;
}
size_t Backward::list_size(int i) const {
  const auto* list = node_.list_slot(static_cast<size_t>(i));
  return list ? list->size() : 0;
}
const Dims& Backward::list_sizes(int i, size_t j) const { return item(i, j).sizes; }

bool Backward::needs_edge(uint32_t edge) const {
  return wanted_ ? (*wanted_)[edge] : node_.needs(edge);
}

bool Backward::needs(int i) const {
  if (const auto* s = slot(i)) return s->defined && needs_edge(s->edge);
  if (const auto* list = node_.list_slot(static_cast<size_t>(i))) {
    for (const auto& s : *list) {
      if (needs_edge(s.edge)) return true;
    }
  }
  return false;
}

bool Backward::needs_item(int i, size_t j) const { return needs_edge(item(i, j).edge); }

Tensor Backward::fit(const Tensor& g, const TensorSlot& s) const {
  const DType dtype = dtype_along(node_.edges()[s.edge], s.dtype, g.dtype());
  return fit_gradient(g, s.sizes, dtype, node_, s.edge);
}

void Backward::set(int i, const Tensor& g) {
  const auto* s = slot(i);
  if (!g.defined() || !s || !s->defined || !needs_edge(s->edge)) return;
  if (g.dtype() == s->dtype && same(g.sizes(), s->sizes)) results_[s->edge] = g;
  else results_[s->edge] = fit(g, *s);
}

void Backward::set_item(int i, size_t j, const Tensor& g) {
  const auto& s = item(i, j);
  if (g.defined() && s.defined && needs_edge(s.edge)) results_[s.edge] = fit(g, s);
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
    check<NotImplemented>(constant_, "the derivative for '", op_.name, "' is not implemented.");
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
