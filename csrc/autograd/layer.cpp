// The dispatch layer that records operations. It is called while grad mode is on and an argument
// requires a gradient or is a view.
#include "autograd/layer.h"

#include "autograd/meta.h"
#include "autograd/op_node.h"
#include "ops/core/tensor_ops.h"

namespace taeda {
namespace {

// Keeps the base of a view of an argument; drops a base that is a temporary of the kernel.
void attach_view_base(TensorImpl* t, std::span<const Value> args) {
  if (!t->base) return;
  const TensorImpl* of = nullptr;
  each_tensor(args, [&](const Tensor& a) {
    if (a.storage() == t->storage) of = a.impl();
  });
  if (!of) {
    t->base.reset();
    t->flags &= ~static_cast<uint32_t>(kIsView);
  } else {
    t->no_grad_view = of->no_grad_view && of->base;
  }
}

// A fresh, differentiable result that is not a view: only its history has to be set.
bool is_plain(const Tensor& t, const Op& op) {
  return t.defined() && t.impl()->ref_count() == 1 && !t.impl()->base && is_inexact(t.dtype()) &&
         !op.traits.view && !(op.traits.non_differentiable & 1);
}

Value run_in_place(Call& c, uint32_t inner, const Tensor& self) {
  const Op& op = c.op;
  check_in_place(self);
  Tensor keep = self;  // the arguments may hold the last reference
  Ref<OpNode> recorded;
  Ref<Node> node;
  if (op.traits.backward) {
    recorded = OpNode::create(op, c.args, op.mutated);
    node = recorded;
  } else {
    bool constant = op.traits.non_differentiable & 1;
    if (constant && !requires_grad(keep)) {
      GradMode off(false);
      return call_inner(c, inner);
    }
    node = make_end_node(op, c.args, constant);
  }
  size_t self_edge = 0;
  for (int i = 0; i < op.mutated; ++i) {
    auto* l = std::get_if<TensorList>(&c.args[static_cast<size_t>(i)]);
    self_edge += l ? l->size() : c.args[static_cast<size_t>(i)].index() == 1;
  }
  Geometry before(keep);
  Value result;
  {
    GradMode off(false);
    result = call_inner(c, inner);
  }
  note_in_place(keep.storage().get(), keep.version(), &op.name);
  if (!is_inexact(keep.dtype())) return result;
  if (before == Geometry(keep)) {
    rebase_history(keep, node, 0, self_edge);
  } else {
    set_history(keep, node, 0);  // only the view's geometry has changed
  }
  if (recorded) recorded->save_results(keep);
  return result;
}

// No argument requires a gradient.
Value run_unrecorded(Call& c, uint32_t inner, const Tensor* self) {
  GradMode off(false);
  Value result = call_inner(c, inner);
  if (self) note_in_place(self->storage().get(), self->version(), &c.op.name);
  each_result(result, [&](Tensor& t, uint32_t) {
    if (t.impl()->base && !is_argument(t, c.args)) attach_view_base(t.impl(), c.args);
  });
  return result;
}

// Sets the history of a call's results: `node`, or a node that reports a missing derivative.
void record(const Call& c, const Ref<OpNode>& node, Value& result) {
  const Op& op = c.op;
  Ref<Node> end;
  uint32_t wants = 0;  // results that get the node as their history
  each_result(result, [&](Tensor& t, uint32_t i) {
    if (i < 32 && (op.traits.non_differentiable >> i & 1)) {
      if (op.traits.view) attach_view_base(t.impl(), c.args);
      return;
    }
    if (!is_inexact(t.dtype())) {
      if (t.impl()->base && !is_argument(t, c.args)) attach_view_base(t.impl(), c.args);
      return;
    }
    // The history must go to a new handle, not to the argument's.
    if (is_argument(t, c.args))
      t = t.flags() & kDispatch ? alias(t) : make_view(t, t.sizes(), t.strides(), t.offset());
    if (t.impl()->base) attach_view_base(t.impl(), c.args);
    ++wants;
    if (node) {
      set_history(t, node, i);
    } else {
      if (!end) end = make_end_node(op, c.args, false);
      set_history(t, end, i);
      end->num_results = std::max(end->num_results, i + 1);
    }
    if (op.traits.view && std::holds_alternative<TensorList>(result)) {
      make_meta(t.impl()).creation = Creation::OneOfSeveral;
    }
  });
  if (node && wants) node->save_results(result);
}

// (A separate function, so that the result is constructed in place.)
Value run_recorded(Call& c, uint32_t inner) {
  const Op& op = c.op;
  Ref<OpNode> node = op.traits.backward ? OpNode::create(op, c.args, -1) : nullptr;
  Value result = [&] {
    GradMode off(false);
    return call_inner(c, inner);
  }();
  auto* t = std::get_if<Tensor>(&result);
  if (node && t && is_plain(*t, op)) [[likely]] {
    OpNode& recorded = *node;
    set_history(*t, std::move(node), 0);
    recorded.save_results(result);
  } else {
    record(c, node, result);
  }
  return result;
}

Value autograd_layer(Call& c, uint32_t inner) {
  const Op& op = c.op;
  bool any = false;
  each_tensor(c.args, [&](const Tensor& t) { any |= requires_grad(t); });
  if (op.traits.composite && !(c.out.defined() && !op.inplace_form))
    return c.op.inplace_form && any ? run_composite_in_place(c) : call_inner(c, inner);

  const Tensor* self = changed_tensor(c);
  if (c.out.defined() && !self) {
    check(!any && !requires_grad(c.out), op.name,
          "(): functions with out=... arguments don't support automatic differentiation, but one "
          "of the arguments requires "
          "grad.");
  }
  if (!any) return run_unrecorded(c, inner, self);
  return self ? run_in_place(c, inner, *self) : run_recorded(c, inner);
}

[[maybe_unused]] const bool autograd_installed = (set_layer(kAutogradLayer, autograd_layer), true);

}  // namespace

Value run_composite_in_place(Call& c) {
  Tensor self = std::get<Tensor>(c.args[0]);
  // The parts of the op may save what they read, and self is overwritten afterwards.
  const Tensor before = op<"clone">(self);
  for (Value& v : c.args) {
    if (auto* t = std::get_if<Tensor>(&v); t && t->is(self)) *t = before;
  }
  Call plain{c.op, c.args, {}};
  Value result = c.op.kernel.run(c.op.kernel.fn, plain);
  const Tensor& r = std::get<Tensor>(result);
  check(same(self.sizes(), r.sizes()), "output with shape ", to_string(self.sizes()),
        " doesn't match the broadcast shape ", to_string(r.sizes()));
  if (!r.is(self)) op<"copy_">(self, r);
  return self;
}

}  // namespace taeda
