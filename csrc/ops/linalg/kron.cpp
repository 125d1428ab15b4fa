// The Kronecker product, as one broadcast multiplication of interleaved shapes.
#include "ops/core/shape_util.h"

namespace taeda {
namespace {

Tensor kron_op(const Tensor& a, const Tensor& b) {
  // (a0, 1, a1, 1, ...) times (1, b0, 1, b1, ...), each pair of dimensions then joined.
  int64_t n = std::max(a.dim(), b.dim());
  auto size = [n](const Tensor& t, int64_t d) {
    int64_t own = d - (n - t.dim());
    return own < 0 ? int64_t(1) : at(t.sizes(), own);
  };
  Dims left, right, joined;
  // Expand the pairs of dimensions from `whole` on in both factors, as long as these stay an eighth
  // of the product or less: the multiplication then has a long inner loop.
  int64_t whole = n, rows_a = 1, rows_b = 1;
  for (int64_t d = 0; d < n; ++d) {
    if (whole == n && d > 0 && rows_a >= 8 && rows_b >= 8) whole = d;
    rows_a *= size(a, d);
    rows_b *= size(b, d);
    left.push_back(size(a, d));
    left.push_back(1);
    right.push_back(1);
    right.push_back(size(b, d));
    joined.push_back(size(a, d) * size(b, d));
  }
  Tensor x = reshape(a, left), y = reshape(b, right);
  if (whole < n && size(b, n - 1) < 16) {
    for (auto d = static_cast<size_t>(2 * whole); d < left.size(); ++d)
      left[d] = right[d] = left[d] * right[d];  // one of which is 1
    x = contiguous(expand(x, left));
    y = contiguous(expand(y, right));
  }
  return reshape(x * y, joined);
}

const Define kKronOps[] = {
    {"kron(self: Tensor, other: Tensor) -> Tensor",
     "The Kronecker product: `other` once for every element of `self`, multiplied by it. Sizes "
     "multiply; the shorter shape is filled with ones in front.",
     kernel(kron_op),
     {.forms = kPublic | kOut,
      .composite = true,
      .out_memory = {.same_or_disjoint = 0b11},
      .out_dtype = OutDtype::Castable}},
};

}  // namespace
}  // namespace taeda
