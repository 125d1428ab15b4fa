#include "tensor/plan.h"

namespace taeda {
namespace {

// Order of the dimensions, fastest first: by the operands' strides; the first operand whose strides
// differ for two dimensions decides. Dimensions that no operand distinguishes keep their order.
Dims dimension_order(DimsRef sizes, std::span<const Dims> strides) {
  const size_t n = sizes.size();
  Dims order(n);
  for (size_t i = 0; i < n; ++i) order[i] = static_cast<int64_t>(n - 1 - i);
  // >0: a is slower than b. 0: no operand distinguishes them.
  auto compare = [&](int64_t a, int64_t b) {
    const auto i = static_cast<size_t>(a), j = static_cast<size_t>(b);
    for (const Dims& s : strides) {
      if (s[i] == 0 || s[j] == 0) continue;
      if (s[i] != s[j]) return s[i] < s[j] ? -1 : 1;
      if (sizes[i] > sizes[j]) return 1;
    }
    return 0;
  };
  for (size_t i = 1; i < n; ++i) {
    size_t at = i;
    for (size_t k = i; k-- > 0;) {
      const int c = compare(order[k], order[at]);
      if (c < 0) break;
      if (c > 0) {
        std::swap(order[k], order[at]);
        at = k;
      }
    }
  }
  return order;
}

Dims byte_strides(const Tensor& t, DimsRef sizes) {
  Dims s(sizes.size());
  const DimsRef own = t.sizes(), strides = t.strides();
  const size_t lead = sizes.size() - own.size();
  const auto item = static_cast<int64_t>(t.itemsize());
  for (size_t i = 0; i < own.size(); ++i) s[lead + i] = own[i] == 1 ? 0 : strides[i] * item;
  return s;
}

}  // namespace

Plan::Plan(DimsRef given, std::span<const Tensor* const> operands)
    : count(static_cast<int>(operands.size())) {
  for (int k = 0; k < count; ++k) {
    const Tensor& t = *operands[static_cast<size_t>(k)];
    data[k] = static_cast<char*>(t.data());
    dtype[k] = t.dtype();
    strides[k] = byte_strides(t, given);
  }
  order_and_coalesce(given);
}

Plan::Plan(const Tensor& to, const Tensor& from, DimsRef from_strides, int64_t first) : count(2) {
  const Tensor* const operands[] = {&to, &from};
  const auto item = static_cast<int64_t>(from.itemsize());
  for (int k = 0; k < count; ++k) {
    data[k] = static_cast<char*>(operands[k]->data());
    dtype[k] = operands[k]->dtype();
  }
  data[1] += first * item;
  strides[0] = byte_strides(to, to.sizes());
  for (const int64_t s : from_strides) strides[1].push_back(s * item);
  order_and_coalesce(to.sizes());
}

void Plan::order_and_coalesce(DimsRef given) {
  for (int64_t s : given) numel *= s;
  const Dims order = dimension_order(given, {strides, static_cast<size_t>(count)});

  // Reorder, drop dimensions of size 1, and coalesce neighbours where every operand allows it.
  Dims fresh[kMaxOperands];
  for (int64_t o : order) {
    const auto from = static_cast<size_t>(o);
    if (given[from] == 1) continue;
    bool join = !sizes.empty();
    for (int k = 0; join && k < count; ++k)
      join = strides[k][from] == fresh[k].back() * sizes.back();
    if (join) {
      sizes.back() *= given[from];
      continue;
    }
    sizes.push_back(given[from]);
    for (int k = 0; k < count; ++k) fresh[k].push_back(strides[k][from]);
  }
  if (sizes.empty()) {
    sizes.push_back(1);
    for (int k = 0; k < count; ++k) fresh[k].push_back(static_cast<int64_t>(itemsize(dtype[k])));
  }
  for (int k = 0; k < count; ++k) strides[k] = std::move(fresh[k]);
}

bool Plan::dense(int k) const {
  auto expected = static_cast<int64_t>(itemsize(dtype[k]));
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (strides[k][d] != expected) return false;
    expected *= sizes[d];
  }
  return true;
}

bool Plan::constant(int k) const {
  return numel == 1 ||
         std::all_of(strides[k].begin(), strides[k].end(), [](int64_t s) { return s == 0; });
}

Dims result_strides(DimsRef sizes, std::span<const Tensor* const> inputs) {
  Dims in[Plan::kMaxOperands];
  bool plain = true;
  for (size_t k = 0; k < inputs.size(); ++k) {
    in[k] = byte_strides(*inputs[k], sizes);
    plain &= inputs[k]->is_contiguous();
  }
  Dims strides = contiguous_strides(sizes);
  if (plain) return strides;
  int64_t step = 1;
  for (int64_t d : dimension_order(sizes, {in, inputs.size()})) {
    strides[static_cast<size_t>(d)] = step;
    step *= std::max<int64_t>(sizes[static_cast<size_t>(d)], 1);
  }
  return strides;
}

namespace {

struct Span {
  const char *begin, *end;
};
Span span_of(const Tensor& t) {
  int64_t last = 0;
  for (size_t i = 0; i < t.sizes().size(); ++i) last += (t.sizes()[i] - 1) * t.strides()[i];
  const auto* begin = static_cast<const char*>(t.data());
  return {begin, begin + (last + 1) * static_cast<int64_t>(t.itemsize())};
}

}  // namespace

Overlap overlap(const Tensor& out, const Tensor& in) {
  if (!(out.storage() == in.storage()) || out.numel() == 0 || in.numel() == 0) return Overlap::None;
  if (out.is(in)) return Overlap::Same;
  if (out.data() == in.data() && out.dtype() == in.dtype() && same(out.sizes(), in.sizes())) {
    bool equal = true;
    for (size_t i = 0; i < out.sizes().size(); ++i)
      equal &= out.sizes()[i] == 1 || out.strides()[i] == in.strides()[i];
    if (equal) return Overlap::Same;
  }
  const Span a = span_of(out), b = span_of(in);
  return a.begin < b.end && b.begin < a.end ? Overlap::Partial : Overlap::None;
}

void check_no_internal_overlap(const Tensor& out) {
  if (out.is_contiguous()) return;
  for (size_t i = 0; i < out.sizes().size(); ++i) {
    check(out.sizes()[i] <= 1 || out.strides()[i] != 0,
          "unsupported operation: more than one element of the written-to tensor refers to a "
          "single memory location. "
          "Please clone() the tensor before performing the operation.");
  }
}

}  // namespace taeda
