#include "ops/out_memory.h"

#include <algorithm>
#include <unordered_map>

#include "base/warn.h"
#include "tensor/plan.h"

namespace taeda {
namespace {

constexpr uint32_t at(int i) { return 1u << i; }

// Bit sets of arguments: `same_or_disjoint` may be `out` itself but not overlap it partially;
// `disjoint` must share no element with it. `results`: the results to which this applies.
struct Rule {
  uint32_t disjoint, same_or_disjoint, results = ~0u;
};

constexpr Rule kPointwise{0, ~0u};
constexpr Rule kNone{0, 0};

// Pointwise operations follow kPointwise. Other operations with restrictions are listed here; all
// the rest compute their result before writing it, so any overlap is fine.
const Rule& rule_of(const Op& op) {
  constexpr Rule join{at(0), 0}, pick{at(0), at(2)}, put{at(2) | at(3), at(0)}, first{0, at(0)},
      both{0, at(0) | at(1)}, cross{at(0) | at(1), 0}, values{0, at(0), at(0)};
  static const std::unordered_map<std::string_view, Rule> rules{
      {"cat", join},
      {"concat", join},
      {"concatenate", join},
      {"stack", join},
      {"hstack", join},
      {"vstack", join},
      {"row_stack", join},
      {"dstack", join},
      {"column_stack", join},
      {"gather", pick},
      {"index_select", {at(0) | at(2), 0}},
      {"take", {at(0) | at(1), 0}},
      {"take_along_dim", {at(0), at(1)}},
      {"masked_select", both},
      {"nonzero", first},
      {"scatter", put},
      {"scatter_add", put},
      {"scatter_reduce", put},
      {"index_add", put},
      {"index_copy", put},
      {"index_reduce", put},
      {"kthvalue", {at(0), 0, at(0)}},
      {"sort", values},
      {"msort", first},
      {"topk", first},
      {"mode", first},
      {"max", both},
      {"min", both},
      {"aminmax", first},
      {"frexp", values},
      {"cumsum", first},
      {"cumprod", first},
      {"logcumsumexp", first},
      {"renorm", first},
      {"ldexp", first},
      {"cross", cross},
      {"linalg_cross", cross},
      {"outer", both},
      {"ger", both},
      {"kron", both},
      {"addmm", first},
      {"addmv", first},
      {"addbmm", first},
      {"baddbmm", first},
      {"addr", {0, at(0) | at(1) | at(2)}},
      {"linalg_solve_triangular", {0, at(1)}},
      {"bernoulli", first},
      {"normal", both},
  };
  auto found = rules.find(op.name);
  if (found != rules.end()) return found->second;
  return op.traits.elementwise ? kPointwise : kNone;
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
  const Rule* rule = nullptr;
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
  const char* begin = static_cast<const char*>(out.data());
  const char* end = begin + result.nbytes();
  for_sharing(op, args, out, which, [&](const Tensor& t, bool disjoint) {
    const char* from = static_cast<const char*>(t.data());
    if (from == begin && t.numel() == result.numel()) return disjoint;
    return is_dense_nonoverlapping(t.sizes(), t.strides()) && from < end &&
           begin < from + t.nbytes();
  });
}

}  // namespace taeda
