// Distances and related: cdist, pdist, renorm, and the cross product.
#include "kernels/distance.h"

#include <cmath>

#include "base/checked.h"
#include "ops/core/half.h"
#include "ops/reduce/util.h"

namespace taeda {
namespace {

// ---- cdist ----

Tensor cdist_forward(const Tensor& a, const Tensor& b, double p, bool by_product) {
  const DType d = a.dtype();
  auto batch = [](const Tensor& t) { return t.sizes().first(t.sizes().size() - 2); };
  check(a.dim() >= 2 && b.dim() >= 2 && same(batch(a), batch(b)) && a.size(-1) == b.size(-1) &&
            b.dtype() == d,
        "_cdist(): expected batches of rows that match, got ", to_string(a.sizes()), " and ",
        to_string(b.sizes()));
  Dims sizes(a.sizes());
  sizes.back() = b.size(-2);
  Tensor out = empty(sizes, a.options());
  if (out.is_meta() || out.numel() == 0) return out;
  Tensor x = raw_contiguous(a), y = raw_contiguous(b);
  const int64_t m = a.size(-2), n = b.size(-2), k = a.size(-1);
  visit_floating(d, "cdist", [&](auto tag) {
    using T = typename decltype(tag)::type;
    const int64_t batches = out.numel() / (m * n);
    const auto& f = kernels<DistanceKernels<T>>(x.device());
    if (by_product)
      f.pairs_by_product(x.data_as<T>(), y.data_as<T>(), out.data_as<T>(), batches, m, n, k);
    else f.pairs(x.data_as<T>(), y.data_as<T>(), out.data_as<T>(), batches, m, n, k, p);
  });
  return out;
}

// With p = 1: the sum of grad[i, j] over j, with the sign of each difference between coordinates.
Tensor sum_distance_gradient(const Tensor& grad, const Tensor& x, const Tensor& y) {
  Tensor gx = empty(x.sizes(), x.options());
  if (gx.is_meta() || gx.numel() == 0) return gx;
  const int64_t m = x.size(-2), n = y.size(-2), k = x.size(-1);
  check(grad.dtype() == x.dtype() && y.dtype() == x.dtype() && y.size(-1) == k &&
            grad.numel() * k == gx.numel() * n && y.numel() * m == gx.numel() * n,
        "_cdist_backward(): expected batches that match, got ", to_string(grad.sizes()), ", ",
        to_string(x.sizes()), " and ", to_string(y.sizes()));
  const Tensor g = raw_contiguous(grad), a = raw_contiguous(x), b = raw_contiguous(y);
  visit_floating(x.dtype(), "cdist", [&](auto tag) {
    using T = typename decltype(tag)::type;
    kernels<DistanceKernels<T>>(x.device())
        .sum_signs(g.data_as<T>(), a.data_as<T>(), b.data_as<T>(), gx.data_as<T>(),
                   gx.numel() / (m * k), m, n, k);
  });
  return gx;
}

struct Gradients {
  Tensor x, y;
};

// The gradient of |a[i] - b[j]| by a[i] is the difference, weighted. For p = 2 the weights do not
// depend on the coordinate, so that the sums over j are matrix products.
Gradients distance_gradients(const Tensor& g, const Tensor& x, const Tensor& y, const Tensor& d,
                             double p, bool needs_x, bool needs_y) {
  if (p == 0 || g.numel() == 0 || x.size(-1) == 0) return {zeros_like(x), zeros_like(y)};
  const Tensor none = Tensor(0);
  Gradients r;
  if (p == 2) {
    Tensor same_place = d == none;
    Tensor w = where(same_place, none, g / where(same_place, Tensor(1), d));
    Tensor wt = transpose(w, -1, -2);
    if (needs_x) r.x = x * sum(w, Dims{-1}, true) - matmul(w, y);
    if (needs_y) r.y = y * sum(wt, Dims{-1}, true) - matmul(wt, x);
    return r;
  }
  if (p == 1 && !derivative_in_ops()) {
    if (needs_x) r.x = op<"_cdist_backward">(g, x, y);
    if (needs_y) r.y = op<"_cdist_backward">(transpose(g, -1, -2), y, x);
    return r;
  }
  Tensor diff = unsqueeze(x, -2) - unsqueeze(y, -3), w = unsqueeze(g, -1);
  Tensor along = op<"sgn">(diff), size = op<"abs">(diff), far = unsqueeze(d, -1);
  if (std::isinf(p)) {
    along = along * to(size == far, g.dtype());
  } else if (p != 1) {
    Tensor zero_distance = far == none, still = diff == none;
    Tensor ratio = where(still, Tensor(1), size) / where(zero_distance, Tensor(1), far);
    along = where(zero_distance | still, none, along * op<"pow">(ratio, Tensor(p - 1)));
  }
  Tensor each = along * w;
  if (needs_x) r.x = sum(each, Dims{-2});
  if (needs_y) r.y = -sum(each, Dims{-3});
  return r;
}

void cdist_backward(Backward& b) {
  const Gradients r = distance_gradients(b.grad(), b.arg<Tensor>(0), b.arg<Tensor>(1), b.out(),
                                         b.arg<double>(2), b.needs(0), b.needs(1));
  if (b.needs(0)) b.set(0, r.x);
  if (b.needs(1)) b.set(1, r.y);
}

Tensor cdist(const Tensor& x1, const Tensor& x2, double p, const std::string& compute_mode) {
  check(compute_mode == "use_mm_for_euclid_dist_if_necessary" ||
            compute_mode == "use_mm_for_euclid_dist" ||
            compute_mode == "donot_use_mm_for_euclid_dist",
        compute_mode, " is not a valid value for compute_mode");
  check(is_floating(x1.dtype()), "cdist only supports floating-point dtypes, X1 got: ", x1.dtype());
  check(is_floating(x2.dtype()), "cdist only supports floating-point dtypes, X2 got: ", x2.dtype());
  check(x1.dim() >= 2, "cdist only supports at least 2D tensors, X1 got: ", x1.dim(), "D");
  check(x2.dim() >= 2, "cdist only supports at least 2D tensors, X2 got: ", x2.dim(), "D");
  check(x1.size(-1) == x2.size(-1),
        "X1 and X2 must have the same number of columns. X1: ", x1.size(-1), " X2: ", x2.size(-1));
  check(p >= 0, "cdist only supports non-negative p values");
  auto lead = [](const Tensor& t) { return t.sizes().first(t.sizes().size() - 2); };
  Dims batch = broadcast_sizes(lead(x1), lead(x2));
  auto spread = [&](const Tensor& t, DType dtype) {
    Dims sizes(batch);
    sizes.push_back(t.size(-2));
    sizes.push_back(t.size(-1));
    return expand(to(t, dtype), sizes);
  };
  const DType d = promote(x1.dtype(), x2.dtype());
  const DType compute = compute_dtype(d, "cdist");
  const bool large = x1.size(-2) > 25 || x2.size(-2) > 25;
  const bool by_product = p == 2 && x1.size(-1) > 0 &&
                          (compute_mode == "use_mm_for_euclid_dist" ||
                           (compute_mode == "use_mm_for_euclid_dist_if_necessary" && large));
  return to(op<"_cdist">(spread(x1, compute), spread(x2, compute), p, by_product), d);
}

// ---- pdist ----

int64_t pairs_of(int64_t n) { return n > 0 ? checked_mul(n, n - 1) / 2 : 0; }

Tensor pdist(const Tensor& self, double p) {
  check(self.dim() == 2, "pdist only supports 2D tensors, got: ", self.dim(), "D");
  check(is_floating(self.dtype()), "pdist only supports floating-point dtypes, got ", self.dtype());
  check(p >= 0, "pdist only supports non-negative p values, got ", p);
  return to(op<"_pdist">(to(self, compute_dtype(self.dtype(), "pdist")), p), self.dtype());
}

Tensor pdist_forward(const Tensor& self, double p) {
  check(self.dim() == 2 && p >= 0, "_pdist(): expected a matrix and p >= 0, got shape ",
        to_string(self.sizes()), " and p = ", p);
  const int64_t n = self.size(0);
  Tensor out = empty(Dims{pairs_of(n)}, self.options());
  if (out.is_meta() || out.numel() == 0) return out;
  const Tensor x = raw_contiguous(self);
  visit_floating(self.dtype(), "pdist", [&](auto tag) {
    using T = typename decltype(tag)::type;
    kernels<DistanceKernels<T>>(x.device())
        .own_pairs(x.data_as<T>(), out.data_as<T>(), n, self.size(1), p);
  });
  return out;
}

// The gradient is that of cdist(self, self) by its first operand, each pair being counted twice
// there.
void pdist_backward(Backward& b) {
  const Tensor x = b.arg<Tensor>(0);
  const int64_t n = x.size(0);
  const Tensor g = op<"_square_of_pairs">(b.grad(), n), d = op<"_square_of_pairs">(b.out(), n);
  b.set(0, distance_gradients(g, x, x, d, b.arg<double>(1), true, false).x);
}

// The symmetric matrix (n, n) with zeros in its diagonal whose upper triangle is `pairs`.
Tensor square_of_pairs(const Tensor& pairs, int64_t n) {
  check(n >= 0 && pairs.dim() == 1 && pairs.numel() == pairs_of(n),
        "_square_of_pairs(): expected the ", pairs_of(n), " pairs of ", n, ", got shape ",
        to_string(pairs.sizes()));
  Tensor out = empty(Dims{n, n}, pairs.options());
  if (out.is_meta() || n == 0) return out;
  const Tensor from = raw_contiguous(pairs);
  visit_floating(pairs.dtype(), "pdist", [&](auto tag) {
    using T = typename decltype(tag)::type;
    kernels<DistanceKernels<T>>(out.device())
        .square_of_pairs(from.data_as<T>(), out.data_as<T>(), n);
  });
  return out;
}
void square_of_pairs_backward(Backward& b) { b.set(0, op<"_pairs_of_square">(b.grad())); }

// Its gradient: square[i, j] + square[j, i] for i < j.
Tensor pairs_of_square(const Tensor& square) {
  check(square.dim() == 2 && square.size(0) == square.size(1),
        "_pairs_of_square(): expected a square matrix, got shape ", to_string(square.sizes()));
  const int64_t n = square.size(0);
  Tensor out = empty(Dims{pairs_of(n)}, square.options());
  if (out.is_meta() || out.numel() == 0) return out;
  const Tensor x = raw_contiguous(square);
  visit_floating(square.dtype(), "pdist", [&](auto tag) {
    using T = typename decltype(tag)::type;
    kernels<DistanceKernels<T>>(out.device()).pairs_of_square(x.data_as<T>(), out.data_as<T>(), n);
  });
  return out;
}
void pairs_of_square_backward(Backward& b) {
  b.set(0, op<"_square_of_pairs">(b.grad(), b.sizes(0)[0]));
}

// ---- renorm ----

Tensor renorm(const Tensor& self, Scalar p, int64_t dim, Scalar maxnorm) {
  check(self.dim() > 1, "renorm: input needs at least 2 dimensions, got ", self.dim(),
        " dimensions");
  check(p.to_double() > 0, "renorm: non-positive-norm not supported");
  check(!maxnorm.is_complex() && maxnorm.to_double() >= 0,
        "renorm: expected maxnorm to be >= 0 but got ", maxnorm.to_double());
  check(is_inexact(self.dtype()), "renorm: input must be floating or complex, got ", self.dtype());
  const int64_t d = wrap_dim(dim, self.dim());
  Dims others;
  for (int64_t i = 0; i < self.dim(); ++i) {
    if (i != d) others.push_back(i);
  }
  const double most = maxnorm.to_double();
  Tensor norm = op<"linalg_vector_norm">(self, p, others, true, std::nullopt);
  Tensor factor = where(norm > Tensor(most), Tensor(most) / (norm + 1e-7), Tensor(1.0));
  return self * to(factor, self.dtype());
}

// ---- cross ----

// Of float32 or float64 tensors of one shape.
Tensor cross_forward(const Tensor& self, const Tensor& other, int64_t dim) {
  const int64_t d = wrap_dim(dim, self.dim());
  check(same(self.sizes(), other.sizes()) && self.dtype() == other.dtype() && self.size(d) == 3,
        "_cross(): expected two tensors of one shape and dtype, of length 3 along dimension ", d,
        ", got ", to_string(self.sizes()), " and ", to_string(other.sizes()));
  Tensor out = empty(self.sizes(), self.options());
  if (out.is_meta() || out.numel() == 0) return out;
  CrossShape s;
  s.dims = 0;
  const Tensor* operands[] = {&self, &other, &out};
  int64_t longest = 0;  // of the other dimensions: becomes the inner loop
  for (int64_t k = 0; k < self.dim(); ++k) {
    if (k == d) continue;
    if (self.size(k) > (s.dims ? s.sizes[longest] : 0)) longest = s.dims;
    for (int i = 0; i < 3; ++i) s.strides[i][s.dims] = operands[i]->stride(k);
    s.sizes[s.dims++] = self.size(k);
  }
  if (!s.dims) {
    for (auto& strides : s.strides) strides[0] = 0;
    s.sizes[s.dims++] = 1;
  }
  std::swap(s.sizes[longest], s.sizes[s.dims - 1]);
  for (auto& strides : s.strides) std::swap(strides[longest], strides[s.dims - 1]);
  for (int i = 0; i < 3; ++i) s.apart[i] = operands[i]->stride(d);
  visit_floating(self.dtype(), "cross", [&](auto tag) {
    using T = typename decltype(tag)::type;
    kernels<DistanceKernels<T>>(out.device())
        .cross(s, self.data_as<T>(), other.data_as<T>(), out.data_as<T>());
  });
  return out;
}
void cross_backward(Backward& b) {
  const int64_t d = b.arg<int64_t>(2);
  if (b.needs(0)) b.set(0, op<"_cross">(b.arg<Tensor>(1), b.grad(), d));
  if (b.needs(1)) b.set(1, op<"_cross">(b.grad(), b.arg<Tensor>(0), d));
}

Tensor cross(const Tensor& self, const Tensor& other, std::optional<int64_t> dim) {
  check(self.dim() == other.dim(), "cross(): inputs must have the same number of dimensions, got ",
        self.dim(), " and ", other.dim());
  Dims sizes = broadcast_sizes(self.sizes(), other.sizes());
  int64_t d = -1;
  if (dim) {
    d = wrap_dim(*dim, self.dim());
    check(self.dim() > 0 && self.size(d) == 3 && other.size(d) == 3, "cross(): inputs dimension ",
          d, " must have length 3, got ", to_string(self.sizes()), " and ",
          to_string(other.sizes()));
  } else {
    for (int64_t i = self.dim() - 1; i >= 0; --i) {
      if (at(self.sizes(), i) == 3) d = i;
    }
    check(d >= 0, "no dimension of size 3 in input");
  }
  // (a1 b2 - a2 b1, a2 b0 - a0 b2, a0 b1 - a1 b0)
  Tensor a = expand(self, sizes), b = expand(other, sizes);
  if (a.dtype() == b.dtype() && (a.dtype() == DType::Float32 || a.dtype() == DType::Float64))
    return op<"_cross">(a, b, d);
  auto rolled = [d](const Tensor& t, int64_t by) { return op<"roll">(t, Dims{by}, Dims{d}); };
  return rolled(a, -1) * rolled(b, -2) - rolled(a, -2) * rolled(b, -1);
}

const Define kDistanceOps[] = {
    {"cdist(x1: Tensor, x2: Tensor, p: float = 2.0, compute_mode: str = "
     "'use_mm_for_euclid_dist_if_necessary') -> Tensor",
     "The p-norms of all differences between the rows of x1 (..., m, k) and those of x2 (..., n, "
     "k): (..., m, n). With p = 2 they come from a matrix product if `compute_mode` is "
     "'use_mm_for_euclid_dist', or by default if m or n is more than 25, and are summed up from "
     "the differences if it is 'donot_use_mm_for_euclid_dist'. Rows that are near to one another "
     "are always compared by their differences.",
     kernel(cdist),
     {.forms = kFunction, .composite = true, .autocast = kFloat32OnCuda}},
    {"_cdist(x1: Tensor, x2: Tensor, p: float, by_product: bool) -> Tensor",
     "`cdist` of batches that match; `by_product` for p = 2 only.",
     kernel(cdist_forward),
     {.backward = cdist_backward, .saves = saves_arg(0) | saves_arg(1) | saves_out()}},
    {"_cdist_backward(grad: Tensor, x1: Tensor, x2: Tensor) -> Tensor",
     "The gradient of `_cdist` with p = 1 for x1.",
     kernel(sum_distance_gradient),
     {.vmap = vmap::leading(2)}},
    {"pdist(self: Tensor, p: float = 2.0) -> Tensor",
     "The p-norms of the differences between all pairs of rows of `self` (N, M), those of row 0 "
     "first: (N (N - 1) / 2,).",
     kernel(pdist),
     {.forms = kFunction, .composite = true, .autocast = kFloat32OnCuda}},
    {"_pdist(self: Tensor, p: float) -> Tensor",
     "`pdist` of float32 or float64.",
     kernel(pdist_forward),
     {.backward = pdist_backward, .saves = saves_arg(0) | saves_out()}},
    {"_square_of_pairs(pairs: Tensor, n: int) -> Tensor",
     "The symmetric matrix with zeros in its diagonal whose upper triangle, row by row, is "
     "`pairs`.",
     kernel(square_of_pairs),
     {.backward = square_of_pairs_backward}},
    {"_pairs_of_square(square: Tensor) -> Tensor",
     "The sums of each pair of elements that lie across the diagonal from one another.",
     kernel(pairs_of_square),
     {.backward = pairs_of_square_backward}},
    {"_cross(self: Tensor, other: Tensor, dim: int) -> Tensor",
     "`cross` of tensors of one shape.",
     kernel(cross_forward),
     {.backward = cross_backward, .saves = saves_arg(0) | saves_arg(1), .vmap = vmap::along}},
    {"renorm(self: Tensor, p: Scalar, dim: int, maxnorm: Scalar) -> Tensor",
     "Scales each slice of `self` along `dim` whose p-norm exceeds `maxnorm` down to it.",
     kernel(renorm),
     {.forms = kPublic | kInplace | kOut,
      .composite = true,
      .autocast = kFloat32OnCuda,
      .out_memory = {.same_or_disjoint = 0b1}}},
    {"cross(self: Tensor, other: Tensor, dim: int? = None) -> Tensor",
     "The cross product of vectors along `dim`, by default along the first dimension of size 3.",
     kernel(cross),
     {.forms = kPublic | kOut,
      .composite = true,
      .autocast = kWidestOnCuda,
      .out_memory = {.disjoint = 0b11}}},
};

}  // namespace
}  // namespace taeda
