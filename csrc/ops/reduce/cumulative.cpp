// Running sums, products and extremes, and differences.
#include <limits>

#include "ops/reduce/util.h"

namespace taeda {
namespace {

ScanShape scan_shape(DimsRef sizes, int64_t dim) {
  ScanShape s{1, 1, 1};
  for (size_t i = 0; i < sizes.size(); ++i) {
    auto d = static_cast<int64_t>(i);
    (d < dim ? s.outer : d == dim ? s.n : s.inner) *= sizes[i];
  }
  return s;
}

Tensor scanned(Scan what, const Tensor& x, int64_t dim, DType dtype) {
  int64_t d = wrap_dim(dim, x.dim());
  Tensor out = empty(x.sizes(), {dtype, x.device()});
  if (x.is_meta() || x.numel() == 0) return out;
  need_arithmetic("scan", dtype);
  Tensor in = raw_contiguous(raw_cast(x, dtype));
  kernels<ReduceKernels>(x.device())
      .scan(what, dtype, scan_shape(x.sizes(), d), in.data(), out.data());
  return out;
}
DType scan_dtype(const Tensor& x, OptDType dtype) {
  return dtype ? *dtype : is_integral(x.dtype()) ? DType::Int64 : x.dtype();
}

Tensor cumsum_op(const Tensor& x, int64_t dim, OptDType dtype) {
  return scanned(Scan::Sum, x, dim, scan_dtype(x, dtype));
}
Tensor cumprod_op(const Tensor& x, int64_t dim, OptDType dtype) {
  return scanned(Scan::Prod, x, dim, scan_dtype(x, dtype));
}
Tensor logcumsumexp_op(const Tensor& x, int64_t dim) {
  if (is_integral(x.dtype()))
    fail<NotImplemented>("\"logcumsumexp_out_cpu\" not implemented for '", x.dtype(), "'");
  return scanned(Scan::LogSumExp, x, dim, x.dtype());
}

// The cumulative sum from the end.
Tensor reverse_cumsum(const Tensor& g, int64_t dim) {
  if (g.dim() == 0) return g;
  return op<"flip">(op<"cumsum">(op<"flip">(g, Dims{dim}), dim, std::nullopt), Dims{dim});
}
void cumsum_backward(Backward& b) {
  b.set(0, as_dtype(reverse_cumsum(b.grad(), b.arg<int64_t>(1)), b.dtype(0)));
}

void cumprod_backward(Backward& b) {
  Tensor x = b.arg<Tensor>(0);
  const Tensor& g = b.grad();
  int64_t dim = b.arg<int64_t>(1);
  if (x.dim() == 0 || x.numel() == 0) return b.set(0, g);
  Tensor gx;
  if (!has_zero(x)) {
    Tensor y = op<"cumprod">(x, dim, std::nullopt);
    gx = reverse_cumsum(conj(y) * g, dim) / conj(x);
  } else {
    // Element k of the last dimension: the sum over i >= k of g[i] times the product up to i
    // without factor k.
    Tensor moved = transpose(x, dim, -1);
    int64_t n = moved.size(-1);
    Dims sizes(moved.sizes());
    sizes.push_back(n);
    Tensor wide = expand(unsqueeze(moved, -2), sizes);
    Tensor ones = full(Dims{n, n}, Scalar(1.0), g.options());
    Tensor eye = op<"_diagonal_backward">(full(Dims{n}, Scalar(true), {DType::Bool, x.device()}),
                                          Dims{n, n}, 0, 0, 1);
    Tensor without = op<"cumprod">(where(eye, ones, wide), -1, std::nullopt);
    Tensor upper = op<"triu">(ones, 0);
    Tensor gk = sum(conj(without) * upper * unsqueeze(transpose(g, dim, -1), -2), Dims{-1});
    gx = transpose(gk, dim, -1);
  }
  b.set(0, as_dtype(gx, b.dtype(0)));
}
// With w[i][j] = exp(x[i] - y[j]) for i <= j, where y is logcumsumexp(x): the sums over i of
// w[i][j] t[i], or, `back`, those over j of conj(w[i][j]) t[j]. Each is the other's derivative by
// t.
Tensor logcumsumexp_sums(const Tensor& t, const Tensor& x, const Tensor& y, int64_t dim,
                         bool back) {
  auto sums = [&](const Tensor& log_t) {
    if (!back) return op<"exp">(op<"logcumsumexp">(log_t + x, dim) - y);
    Tensor flipped = op<"flip">(log_t - conj(y), Dims{dim});
    return op<"exp">(op<"flip">(op<"logcumsumexp">(flipped, dim), Dims{dim}) + conj(x));
  };
  if (is_complex(x.dtype())) return sums(op<"log">(t));
  const double lowest = t.dtype() == DType::Float64 ? -1e300 : is_half(t.dtype()) ? -6e4 : -3e38;
  const Tensor low = full(Dims{}, Scalar(lowest), t.options()), zero = Tensor(0);
  return sums(where(op<"gt">(t, zero), op<"log">(t), low)) -
         sums(where(op<"lt">(t, zero), op<"log">(-t), low));
}
void logcumsumexp_sums_backward(Backward& b) {
  Tensor t = b.arg<Tensor>(0), x = b.arg<Tensor>(1), y = b.arg<Tensor>(2);
  const Tensor& g = b.grad();
  const int64_t dim = b.arg<int64_t>(3);
  const bool back = b.arg<bool>(4);
  Tensor other = op<"_logcumsumexp_sums">(g, x, y, dim, !back);
  b.set(0, other);
  if (b.needs(1)) b.set(1, back ? conj(g) * b.out() : conj(t) * other);
  if (b.needs(2)) b.set(2, back ? -(t * conj(other)) : -(g * conj(b.out())));
}
void logcumsumexp_backward(Backward& b) {
  Tensor x = b.arg<Tensor>(0);
  if (x.dim() == 0 || x.numel() == 0) return b.set(0, b.grad());
  b.set(0, op<"_logcumsumexp_sums">(b.grad(), x, b.out(), b.arg<int64_t>(1), true));
}

template <bool Largest> TensorList extreme_op(const Tensor& x, int64_t dim) {
  int64_t d = wrap_dim(dim, x.dim());
  if (is_complex(x.dtype())) {
    fail<NotImplemented>("\"", Largest ? "cummax_cpu" : "cummin_cpu", "\" not implemented for '",
                         x.dtype(), "'");
  }
  Tensor values = empty(x.sizes(), x.options()),
         indices = empty(x.sizes(), {DType::Int64, x.device()});
  if (x.is_meta() || x.numel() == 0) return {values, indices};
  need_arithmetic(Largest ? "cummax" : "cummin", x.dtype());
  Tensor in = raw_contiguous(x);
  kernels<ReduceKernels>(x.device())
      .scan_extreme(Largest, x.dtype(), scan_shape(x.sizes(), d), in.data(), values.data(),
                    indices.data_as<int64_t>());
  return {values, indices};
}
void extreme_backward(Backward& b) {
  const Tensor& g = b.grad();
  b.set(0, op<"scatter_add">(zeros(b.sizes(0), g.options()), b.arg<int64_t>(1), b.out(1), g));
}

Tensor diff_op(const Tensor& self, int64_t n, int64_t dim, const Tensor& prepend,
               const Tensor& append) {
  check(self.dim() >= 1, "diff expects input to be at least one-dimensional");
  check(n >= 0, "order must be non-negative but got ", n);
  for (const Tensor* t : {&prepend, &append}) {
    check(!t->defined() || t->dim() == self.dim(),
          "diff expects prepend or append to be the same dimension as input");
  }
  if (n == 0) return clone(self);
  Tensor x = self;
  if (prepend.defined() || append.defined()) {
    TensorList parts;
    if (prepend.defined()) parts.push_back(prepend);
    parts.push_back(self);
    if (append.defined()) parts.push_back(append);
    x = op<"cat">(std::move(parts), dim);
  }
  int64_t size = x.size(dim);
  if (n >= size) return narrow(x, dim, 0, 0);
  for (int64_t i = 0; i < n; ++i, --size) {
    Tensor after = narrow(x, dim, 1, size - 1), before = narrow(x, dim, 0, size - 1);
    x = x.dtype() == DType::Bool ? op<"logical_xor">(after, before) : after - before;
  }
  return x;
}

constexpr uint32_t kForms = kPublic | kInplace | kOut;

const Define kCumulativeOps[] = {
    {"cumsum(self: Tensor, dim: int, *, dtype: dtype? = None) -> Tensor",
     "Running sums along `dim`. Integers and bools add up as int64.",
     kernel(cumsum_op),
     {.backward = cumsum_backward,
      .forms = kForms,
      .autocast = kFloat32OnCuda,
      .vmap = vmap::along,
      .out_memory = {.same_or_disjoint = 0b1}}},
    {"cumprod(self: Tensor, dim: int, *, dtype: dtype? = None) -> Tensor",
     "Running products along `dim`. Integers and bools multiply as int64.",
     kernel(cumprod_op),
     {.backward = cumprod_backward,
      .saves = saves_arg(0),
      .forms = kForms,
      .autocast = kFloat32OnCuda,
      .vmap = vmap::along,
      .out_memory = {.same_or_disjoint = 0b1}}},
    {"logcumsumexp(self: Tensor, dim: int) -> Tensor",
     "The logarithm of running sums of exponentials along `dim`, without overflow.",
     kernel(logcumsumexp_op),
     {.backward = logcumsumexp_backward,
      .saves = saves_arg(0) | saves_out(),
      .forms = kPublic | kOut,
      .vmap = vmap::along,
      .out_memory = {.same_or_disjoint = 0b1}}},
    {"_logcumsumexp_sums(t: Tensor, x: Tensor, y: Tensor, dim: int, back: bool) -> Tensor",
     "Sums of `t` with the weights that the derivative of logcumsumexp has.",
     kernel(logcumsumexp_sums),
     {.backward = logcumsumexp_sums_backward,
      .saves = saves_arg(0) | saves_arg(1) | saves_arg(2) | saves_out(),
      .vmap = vmap::along}},
    {"cummax(self: Tensor, dim: int) -> (values: Tensor, indices: Tensor)",
     "The largest element so far along `dim`, and where the latest such stands (int64).",
     kernel(extreme_op<true>),
     {.backward = extreme_backward,
      .saves = saves_out(1),
      .forms = kPublic | kOut,
      .non_differentiable = 2,
      .vmap = vmap::along}},
    {"cummin(self: Tensor, dim: int) -> (values: Tensor, indices: Tensor)",
     "The smallest element so far along `dim`, and where the latest such stands (int64).",
     kernel(extreme_op<false>),
     {.backward = extreme_backward,
      .saves = saves_out(1),
      .forms = kPublic | kOut,
      .non_differentiable = 2,
      .vmap = vmap::along}},
    {"diff(self: Tensor, n: int = 1, dim: int = -1, prepend: Tensor? = None, append: Tensor? = "
     "None) -> Tensor",
     "The `n`-th differences of neighbours along `dim`, after putting `prepend` and `append` at "
     "its ends.",
     kernel(diff_op),
     {.forms = kPublic | kOut, .composite = true, .out_dtype = OutDtype::Castable}},
};

}  // namespace
}  // namespace taeda
