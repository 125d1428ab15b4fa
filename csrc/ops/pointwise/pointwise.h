// Pointwise ops: from a functor to an op.
//
// register_ops() makes an op of every functor (kernels/functors/) in a List. Ops that choose
// between functors by their arguments (div with a rounding mode, clamp with one bound) are in
// cases.cpp and use the functions declared here.
#pragma once

#include <array>

#include "autograd/backward.h"
#include "kernels/functors/position.h"
#include "kernels/pointwise.h"

namespace taeda {

// A functor and its properties, type-erased.
struct PointwiseRow {
  const char* name;
  Functor functor;
  uint32_t dtypes, flags;
  const char* no_bool;
  int arity;

  const FunctorTypes& types() const { return *functor.types; }
};

// Operands of one computation. Those added by add_cast() do not take part in type promotion.
class Operands {
 public:
  void add(const Tensor& t) { items_[static_cast<size_t>(count_++)] = &t; }
  void add_cast(const Tensor& t) {
    cast_ |= 1u << count_;
    add(t);
  }
  void add_cast(Scalar s) {
    owned_[static_cast<size_t>(count_)] = Tensor(s);
    add_cast(owned_[static_cast<size_t>(count_)]);
  }
  std::span<const Tensor* const> list() const {
    return {items_.data(), static_cast<size_t>(count_)};
  }
  bool promotes(size_t i) const { return !(cast_ >> i & 1); }
  uint32_t cast() const { return cast_; }

 private:
  std::array<const Tensor*, 4> items_;
  std::array<Tensor, 4> owned_;
  int count_ = 0;
  uint32_t cast_ = 0;
};

// Computes the functor. The result goes to call.out if set, else to a new tensor.
Tensor run_pointwise(const PointwiseRow& row, const Operands& operands, Call& call);
// The same with operands taken from the call's arguments at these positions (Tensors promote,
// Scalars are cast).
Tensor run_pointwise(const PointwiseRow& row, Call& call, std::initializer_list<int> arguments);

// ---- rows ----
// See rows.h.
template <class Op> Functor functor_of();

template <class Op> const PointwiseRow& row() {
  static const PointwiseRow r{Op::info.schema, functor_of<Op>(), Op::info.dtypes,
                              Op::info.flags,  Op::info.no_bool, portable::arity<Op>};
  return r;
}

// ---- derivatives ----
// Where an operand of a derivative comes from: an argument of the op, or a number.
struct Source {
  int argument = -1;
  Scalar number;
  Source() = default;
  Source(int i) : argument(i) {}
  Source(Scalar s) : number(s) {}
};

class Derivative {
 public:
  // `gradient` is that of the row's result.
  Derivative(Backward& b, const PointwiseRow& row, std::span<const Source> from,
             const Tensor& gradient);

  using Symbolic = Tensor (*)(const Derivative&);
  // Sets the gradient of operand k: by the fused loop, or by the formula if it has to be
  // differentiable.
  void set(int k, Symbolic formula);
  void pass(int k);  // the gradient of operand k is that of the result

  Tensor g, x[4], y;

 private:
  Tensor fused(int k, DType result) const;
  void give(int argument, Tensor r) const;
  Backward& b_;
  const PointwiseRow& row_;
  std::span<const Source> from_;
  bool symbolic_;
};

template <class Op, size_t... I> void differentiate(Derivative& d, std::index_sequence<I...>) {
  if constexpr (portable::HasDa<Op>) {
    d.set(0, [](const Derivative& v) { return Op::template da<Tensor>(v.g, v.x[I]..., v.y); });
  }
  if constexpr (portable::HasDb<Op>) {
    d.set(1, [](const Derivative& v) { return Op::template db<Tensor>(v.g, v.x[I]..., v.y); });
  }
  if constexpr (portable::HasDc<Op>) {
    d.set(2, [](const Derivative& v) { return Op::template dc<Tensor>(v.g, v.x[I]..., v.y); });
  }
}
template <class Op>
void differentiate(Backward& b, std::initializer_list<Source> from, const Tensor& g) {
  Derivative d(b, row<Op>(), {from.begin(), from.size()}, g);
  differentiate<Op>(d, std::make_index_sequence<portable::arity<Op>>());
}
template <class Op> void differentiate(Backward& b, std::initializer_list<Source> from) {
  differentiate<Op>(b, from, b.grad());
}
template <class Op> void pointwise_backward(Backward& b) {
  std::array<Source, portable::arity<Op>> from;
  for (size_t i = 0; i < from.size(); ++i) from[i] = static_cast<int>(i);
  Derivative d(b, row<Op>(), from, b.grad());
  differentiate<Op>(d, std::make_index_sequence<portable::arity<Op>>());
}
template <class Op> constexpr BackwardFn backward_of() {
  if constexpr (portable::HasDa<Op> || portable::HasDb<Op> || portable::HasDc<Op>)
    return &pointwise_backward<Op>;
  else return nullptr;
}

// ---- registration ----
void register_pointwise(const portable::OpInfo& info, const PointwiseRow& row, BackwardFn backward);

template <class... Ops> bool register_ops(portable::List<Ops...>) {
  auto one = [](const portable::OpInfo& info, const PointwiseRow& r, BackwardFn backward) {
    if (!(info.flags & portable::internal)) register_pointwise(info, r, backward);
  };
  (one(Ops::info, row<Ops>(), backward_of<Ops>()), ...);
  return true;
}

// Another name for every overload of an op that this file has registered before.
struct Alias {
  const char *name, *of;
  uint32_t without = 0;  // forms that it does not have
};
bool register_aliases(std::initializer_list<Alias> aliases);

}  // namespace taeda
