// The dispatch layer that propagates tangents from arguments to results (forward-mode autograd).
//
// A derivative v -> J^T v is linear in v, and is written in ops. So its own derivative with respect
// to v, applied to a tangent t, is J t: an op that can be differentiated twice needs nothing more.
// Where J is diagonal, J t equals J^T t, and the derivative itself is applied to t.
#include <optional>

#include "autograd/engine.h"
#include "autograd/forward.h"
#include "autograd/layer.h"
#include "autograd/meta.h"
#include "autograd/op_node.h"
#include "ops/core/tensor_ops.h"

namespace taeda {
namespace {

// Turns off all modes but the caller's grad mode while derivatives are computed, as in a backward
// pass; modes that watch the ops see those, too.
class ModeGuard {
 public:
  explicit ModeGuard(bool grad) : grad_(grad), hooks_(saved_hooks), always_(modes.always) {
    modes.always &= kDispatchLayer;
    saved_hooks = nullptr;
  }
  ~ModeGuard() {
    saved_hooks = hooks_;
    modes.always = always_;
  }
  ModeGuard(const ModeGuard&) = delete;
  ModeGuard& operator=(const ModeGuard&) = delete;

 private:
  GradMode grad_;
  SavedHooks* hooks_;
  uint32_t always_;
};

Value run(Call& c, uint32_t inner) {
  TangentsOff off;
  return call_inner(c, inner);
}

[[noreturn]] void unsupported(const Op& op) {
  fail<NotImplemented>("Trying to use forward AD with ", op.name,
                       " that does not support it because it has not been implemented yet.");
}

bool is_constant(const Op& op, uint32_t result) {
  return result < 32 && (op.traits.non_differentiable >> result & 1);
}

// Tangents of the tensors among the arguments, in the order of a node's edges.
std::vector<Tensor> tangents_of(std::span<const Value> args) {
  std::vector<Tensor> found;
  for (const Value& v : args) {
    if (auto* t = std::get_if<Tensor>(&v)) {
      found.push_back(tangent_of(*t));
    } else if (auto* list = std::get_if<TensorList>(&v)) {
      for (const Tensor& t : *list) found.push_back(tangent_of(t));
    }
  }
  return found;
}

Tensor of_dtype(const Tensor& t, DType dtype) {
  if (t.dtype() == dtype) return t;
  return to(is_complex(t.dtype()) && !is_complex(dtype) ? op<"real">(t) : t, dtype);
}
Tensor of_form(const Tensor& t, DimsRef sizes, DType dtype) {
  return of_dtype(same(t.sizes(), sizes) ? t : expand(t, sizes), dtype);
}

// An op called with tangents, and the way to propagate them to the results. Created before an
// in-place op runs, because that changes what the derivative reads.
class Linearization {
 public:
  Linearization(const Call& c, int mutated, DimsRef sizes, DType dtype)
      : op_(c.op),
        grad_(c.grad),
        tangents_(tangents_of(c.args)) {
    ModeGuard guard(grad_);
    if (mutated >= 0 && grad_) {  // the recorded graph may read the tangent that is about to change
      const Tensor own = tangent_of(std::get<Tensor>(c.args[static_cast<size_t>(mutated)]));
      for (Tensor& t : tangents_) {
        if (t.defined() && t.is(own)) t = clone(t);
      }
    }
    diagonal_ = op_.traits.elementwise && is_floating(dtype);
    each_tensor(c.args, [&](const Tensor& t) { diagonal_ = diagonal_ && !is_complex(t.dtype()); });
    if (!diagonal_) {
      node_ = OpNode::create(op_, c.args, mutated, true);
      return;
    }
    // Expand the arguments first: the derivative would otherwise sum over broadcast dimensions.
    std::vector<Value> args(c.args.begin(), c.args.end());
    size_t edge = 0;
    for (Value& v : args) {
      auto* t = std::get_if<Tensor>(&v);
      if (!t) continue;
      Tensor& tangent = tangents_[edge++];
      if (!tangent.defined()) continue;
      *t = of_form(*t, sizes, dtype);
      tangent = of_form(tangent, sizes, dtype);
    }
    node_ = OpNode::create(op_, args, mutated, true);
  }

  // The results' tangents; undefined for a result that has none.
  std::vector<Tensor> apply(const Value& results) {
    ModeGuard guard(grad_);
    node_->save_results(results);
    auto* list = std::get_if<TensorList>(&results);
    std::vector<Tensor> all = list ? *list : std::vector<Tensor>{std::get<Tensor>(results)};
    std::vector<Tensor> found = diagonal_ ? std::vector<Tensor>{pulled()} : pushed(all);
    for (size_t i = 0; i < all.size(); ++i) {
      if (!carries(all[i], i)) found[i] = Tensor();
      else if (!found[i].defined()) found[i] = zeros_like(all[i]);
      else if (is_shared(found[i])) found[i] = clone(found[i]);
    }
    return found;
  }

 private:
  bool carries(const Tensor& t, size_t i) const {
    return t.defined() && is_inexact(t.dtype()) && !is_constant(op_, static_cast<uint32_t>(i));
  }
  bool is_shared(const Tensor& t) const {
    for (const Tensor& other : tangents_) {
      if (other.defined() && other.storage() == t.storage()) return true;
    }
    return false;
  }

  // J^T t for each argument's diagonal J, and their sum.
  Tensor pulled() {
    Tensor sum;
    for (size_t i = 0; i < tangents_.size(); ++i) {
      if (!tangents_[i].defined()) continue;
      std::vector<bool> wanted(tangents_.size());
      wanted[i] = true;
      Tensor g = node_->gradients({&tangents_[i], 1}, wanted)[i];
      if (g.defined()) sum = sum.defined() ? sum + g : g;
    }
    return sum;
  }

  // J t, as the derivative of v -> J^T v.
  std::vector<Tensor> pushed(const std::vector<Tensor>& results) {
    std::vector<Tensor> seeds(results.size()), weights, found(results.size());
    std::vector<Edge> roots, inputs;
    std::vector<size_t> positions;
    {
      GradMode on(true);
      for (size_t i = 0; i < results.size(); ++i) {
        if (!carries(results[i], i)) continue;
        seeds[i] = zeros(results[i].sizes(), results[i].options());
        set_requires_grad(seeds[i], true);
        inputs.push_back(gradient_edge(seeds[i]));
        positions.push_back(i);
      }
      std::vector<bool> wanted;
      for (const Tensor& t : tangents_) wanted.push_back(t.defined());
      std::vector<Tensor> gradients = node_->gradients(seeds, wanted);
      for (size_t i = 0; i < gradients.size(); ++i) {
        if (!wanted[i] || !gradients[i].defined() || !requires_grad(gradients[i])) continue;
        roots.push_back(gradient_edge(gradients[i]));
        weights.push_back(of_dtype(tangents_[i], gradients[i].dtype()));
      }
    }
    if (roots.empty()) return found;
    std::vector<Tensor> products =
        run_grad(roots, weights, {.keep_graph = grad_, .create_graph = grad_}, inputs);
    for (size_t i = 0; i < positions.size(); ++i) {
      if (products[i].defined())
        found[positions[i]] = of_dtype(products[i], results[positions[i]].dtype());
    }
    return found;
  }

  const Op& op_;
  bool grad_, diagonal_ = false;
  std::vector<Tensor> tangents_;
  Ref<OpNode> node_;
};

// Whether the storage of `t` holds a view with the sizes and strides of `part` at this offset.
bool reaches(const Tensor& t, const Tensor& part, int64_t offset) {
  int64_t last = offset;
  for (size_t i = 0; i < part.sizes().size(); ++i)
    last += std::max<int64_t>(part.sizes()[i] - 1, 0) * part.strides()[i];
  const auto end = static_cast<int64_t>(t.storage()->nbytes / t.itemsize());
  return part.numel() == 0 ? offset >= 0 && offset <= end : offset >= 0 && last < end;
}

// A view's tangent is the same view of the tangent, on the same memory: in-place changes of one are
// changes of the other.
Value run_view(Call& c, uint32_t inner) {
  const Tensor self = std::get<Tensor>(c.args[0]);
  const Tensor tangent = tangent_of(self);
  Value result = run(c, inner);
  if (!tangent.defined()) return result;
  ModeGuard guard(c.grad);
  std::vector<Tensor> others;  // tangents of views that the layout does not allow
  each_result(result, [&](Tensor& t, uint32_t i) {
    if (t.is(self) || is_constant(c.op, i) || !is_inexact(t.dtype())) return;
    const bool alike = t.storage() == self.storage() && same(self.strides(), tangent.strides()) &&
                       (t.dtype() != self.dtype() ||
                        reaches(tangent, t, t.offset() - self.offset() + tangent.offset()));
    if (alike) {
      set_tangent(t, same_view(tangent, self.impl(), t.impl()));
      return;
    }
    if (others.empty()) {
      if (!c.op.traits.backward) unsupported(c.op);
      others = Linearization(c, -1, t.sizes(), t.dtype()).apply(result);
    }
    set_tangent(t, others[i]);
  });
  return result;
}

Value push_in_place(Call& c, uint32_t inner, const Tensor& self) {
  const Op& op = c.op;
  const Tensor keep = self;
  const Tensor own = tangent_of(keep);
  const bool constant = is_constant(op, 0);
  if (!op.traits.backward && !constant) unsupported(op);
  if (c.grad && own.defined() && requires_grad(own)) check_in_place(own);
  const Geometry before(keep);
  std::optional<Linearization> linear;
  if (!constant) linear.emplace(c, op.mutated, keep.sizes(), keep.dtype());
  Value result = run(c, inner);
  if (!is_inexact(keep.dtype())) return result;
  if (before == Geometry(keep)) {
    Tensor tangent = constant ? Tensor() : linear->apply(Value(keep))[0];
    ModeGuard guard(c.grad);
    change_tangent(keep, tangent);
  } else if (own.defined()) {  // only its geometry has changed
    ModeGuard guard(c.grad);
    const int64_t offset = keep.offset() - before.offset + own.offset();
    set_tangent(keep, taeda::op<"as_strided">(own, keep.sizes(), keep.strides(), offset));
  }
  return result;
}

Value run_plain(Call& c, uint32_t inner) {
  const Op& op = c.op;
  Value result = run(c, inner);
  bool any = false;
  each_result(result, [&](Tensor& t, uint32_t i) {
    any = any || (is_inexact(t.dtype()) && !is_constant(op, i) && !is_argument(t, c.args));
  });
  if (any) {
    if (!op.traits.backward) unsupported(op);
    auto* one = std::get_if<Tensor>(&result);
    const Tensor first = one ? *one : Tensor();
    Linearization linear(c, -1, first.defined() ? first.sizes() : DimsRef(),
                         first.defined() ? first.dtype() : DType::Float32);
    std::vector<Tensor> tangents = linear.apply(result);
    each_result(result, [&](Tensor& t, uint32_t i) {
      if (!tangents[i].defined() || is_argument(t, c.args)) return;
      ModeGuard guard(c.grad);
      set_tangent(t, tangents[i]);
    });
  }
  // For an argument that is returned as it is, autograd would return a new handle without the
  // tangent.
  each_result(result, [&](Tensor& t, uint32_t) {
    if (!c.grad || !is_argument(t, c.args) || !requires_grad(t)) return;
    const Tensor argument = t;
    t = make_view(t, t.sizes(), t.strides(), t.offset());
    share_tangent(argument, t);
  });
  return result;
}

Value forward_layer(Call& c, uint32_t inner) {
  if (modes.inference) return call_inner(c, inner);
  const Op& op = c.op;
  bool any = false;
  each_tensor(c.args, [&](const Tensor& t) { any = any || tangent_of(t).defined(); });
  const Tensor* self = changed_tensor(c);
  if (c.out.defined() && !self) {
    check_no_tangent(c.out, op);
    each_tensor(c.args, [&](const Tensor& t) { check_no_tangent(t, op); });
  }
  if (!any) return call_inner(c, inner);
  if (op.traits.composite)
    return op.inplace_form ? run_composite_in_place(c) : call_inner(c, inner);
  if (self) return push_in_place(c, inner, *self);
  for (size_t i = 0; i < op.args.size(); ++i) {  // a list, or buffers on the side
    if (!op.args[i].mutated) continue;
    each_tensor(c.args.subspan(i, 1), [&](const Tensor& t) {
      if (op.name.back() == '_' || tangent_of(t).defined()) unsupported(op);
    });
  }
  if (op.traits.view && std::holds_alternative<Tensor>(c.args[0])) return run_view(c, inner);
  return run_plain(c, inner);
}

[[maybe_unused]] const bool forward_installed = (set_layer(kForwardLayer, forward_layer), true);

}  // namespace
}  // namespace taeda
