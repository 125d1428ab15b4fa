#include "ops/core/out_memory.h"

#include "base/warn.h"
#include "tensor/plan.h"

namespace taeda {
namespace {

constexpr OutMemory kPointwise{.same_or_disjoint = ~0u};

// The rule of an op; that of an in-place form is its kernel's.
const OutMemory& rule_of(const Op& op) {
  const OutMemory& own = op.traits.out_memory;
  const bool given = !op.inplace_form && (own.disjoint || own.same_or_disjoint);
  static constexpr OutMemory none{};
  return given ? own : op.traits.elementwise ? kPointwise : none;
}

std::span<const Tensor> tensors_of(const Value& v) {
  if (auto* t = std::get_if<Tensor>(&v)) return {t, 1};
  if (auto* list = std::get_if<TensorList>(&v)) return *list;
  return {};
}

// Calls meets() for each argument that a rule names and that shares storage with `out`; refuses the
// call if it returns true.
template <class Meets>
void for_sharing(const Op& op, std::span<const Value> args, const Tensor& out, int which,
                 Meets&& meets) {
  const OutMemory* rule = nullptr;
  for (size_t i = 0; i < args.size(); ++i) {
    for (const Tensor& t : tensors_of(args[i])) {
      if (!t.defined() || !(t.storage() == out.storage())) continue;
      if (!rule) rule = &rule_of(op);
      if (!(rule->results >> which & 1)) return;
      const bool disjoint = rule->disjoint >> i & 1,
                 same_or_disjoint = rule->same_or_disjoint >> i & 1;
      if ((disjoint || same_or_disjoint) && meets(t, disjoint)) refuse_shared_memory(op);
    }
  }
}

}  // namespace

bool shares_in_part(const Tensor& out, const Tensor& in) {
  return is_dense_nonoverlapping(out.sizes(), out.strides()) &&
         is_dense_nonoverlapping(in.sizes(), in.strides()) && overlap(out, in) == Overlap::Partial;
}

void refuse_shared_memory(const Op& op) {
  fail(op.name,
       "(): unsupported operation: some elements of the input tensor and the written-to "
       "tensor refer to a single memory location. Please clone() the tensor before performing the "
       "operation.");
}

void check_out_memory(const Op& op, std::span<const Value> args, const Tensor& out, int which) {
  for_sharing(op, args, out, which, [&](const Tensor& t, bool disjoint) {
    return shares_in_part(out, t) || (disjoint && (out.is(t) || overlap(out, t) == Overlap::Same));
  });
}

void resize_out(const Tensor& out, DimsRef sizes) {
  if (out.numel() > 0 && !same(out.sizes(), sizes)) {
    warn(str("An output with one or more elements was resized since it had shape ",
             to_string(out.sizes()), ", which does not match the required output shape ",
             to_string(sizes),
             ". This is deprecated: give an out tensor of the right shape, or "
             "resize it to no elements before (out.resize_(0))."));
  }
  resize(out, sizes);
}

void check_resized_out(const Op& op, std::span<const Value> args, const Tensor& out,
                       const Tensor& result, int which) {
  if (out.numel() == result.numel()) return;
  // Places in the storage that they share, in bytes.
  const auto place = [](const Tensor& t) { return static_cast<size_t>(t.offset()) * t.itemsize(); };
  const size_t begin = place(out), end = begin + result.nbytes();
  for_sharing(op, args, out, which, [&](const Tensor& t, bool disjoint) {
    const size_t from = place(t);
    if (from == begin && t.numel() == result.numel()) return disjoint;
    return is_dense_nonoverlapping(t.sizes(), t.strides()) && from < end &&
           begin < from + t.nbytes();
  });
}

}  // namespace taeda
