#include "ops/out_memory.h"

#include <algorithm>
#include <unordered_map>

#include "tensor/plan.h"

namespace taeda {
namespace {

constexpr uint32_t at(int i) { return 1u << i; }

// Arguments by position: `whole` may be the very tensor `out`, but not overlap it otherwise;
// `apart` must share no element with it. `results`: for which of several results that holds.
struct Rule {
  uint32_t apart, whole, results = ~0u;
};

constexpr Rule kPointwise{0, ~0u};
constexpr Rule kNone{0, 0};

// Pointwise operations follow kPointwise. Of the others these refuse something; all the rest
// compute their result before they write it, and write it anywhere.
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

// Asks of each argument in the memory of `out` that a rule names whether it is in the way.
template <class Meets>
void for_sharing(const Op& op, std::span<const Value> args, const Tensor& out, int which,
                 Meets&& meets) {
  const Rule* rule = nullptr;
  for (size_t i = 0; i < args.size(); ++i) {
    for (const Tensor& t : tensors_of(args[i])) {
      if (!t.defined() || !(t.storage() == out.storage())) continue;
      if (!rule) rule = &rule_of(op);
      if (!(rule->results >> which & 1)) return;
      const bool apart = rule->apart >> i & 1, whole = rule->whole >> i & 1;
      if ((apart || whole) && meets(t, apart)) refuse_shared_memory(op);
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
  for_sharing(op, args, out, which, [&](const Tensor& t, bool apart) {
    return shares_in_part(out, t) || (apart && (out.is(t) || overlap(out, t) == Overlap::Same));
  });
}

void check_resized_out(const Op& op, std::span<const Value> args, const Tensor& out,
                       const Tensor& result, int which) {
  if (out.numel() == result.numel()) return;
  const char* begin = static_cast<const char*>(out.data());
  const char* end = begin + result.nbytes();
  for_sharing(op, args, out, which, [&](const Tensor& t, bool apart) {
    const char* from = static_cast<const char*>(t.data());
    if (from == begin && t.numel() == result.numel()) return apart;
    return is_dense_nonoverlapping(t.sizes(), t.strides()) && from < end &&
           begin < from + t.nbytes();
  });
}

}  // namespace taeda
