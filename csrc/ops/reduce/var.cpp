// Spread and size: var, std, norms, logsumexp, dist.
#include <cmath>
#include <limits>

#include "base/warn.h"
#include "kernels/functors/reduction.h"
#include "ops/reduce/util.h"

namespace taeda {
namespace {

// ---- variance ----

double degrees(int64_t count, double correction) {
  return std::max(0.0, static_cast<double>(count) - correction);
}

void write_moments(const Tensor& x, uint64_t mask, double divisor, bool root, const Tensor& spread,
                   const Tensor& mean) {
  if (!is_complex(x.dtype())) {
    reduce(ReduceOp::Moments, x, mask,
           {spread.dtype(), spread.data(), mean.defined() ? mean.data() : nullptr, divisor,
            root ? 2.0 : 1.0});
    return;
  }
  // The variances of the real and imaginary parts add up; the means stay separate.
  GradMode off(false);
  Dims sizes(spread.sizes());
  sizes.push_back(2);
  const Tensor parts = empty(sizes, {DType::Float64, x.device()}), means = empty_like(parts);
  write_moments(raw_view_as_real(x), mask, divisor, false, parts, means);
  Tensor both = raw_sum(parts, Dims{-1}, false);
  copy_into(spread, root ? op<"sqrt">(both) : both);
  if (mean.defined()) copy_into(raw_view_as_real(mean), means);
}

TensorList moments_of(const Tensor& x, OptDims dims, Scalar correction, bool keepdim, bool root,
                      bool with_mean) {
  check(is_inexact(x.dtype()), "std and var only support floating point and complex dtypes");
  uint64_t mask = reduced_mask(dims, x.dim());
  Dims sizes = reduced_sizes(x.sizes(), mask, keepdim);
  Tensor spread = empty(sizes, {to_real(x.dtype()), x.device()});
  Tensor mean = with_mean ? empty(sizes, x.options()) : Tensor();
  if (!x.is_meta() && spread.numel() > 0) {
    const double free = degrees(reduced_count(x.sizes(), mask), correction.to_double());
    if (free == 0) {
      warn(str(root ? "std" : "var", with_mean ? "_mean" : "",
               "(): degrees of freedom is <= 0. Correction should be strictly less than the "
               "reduction factor (input numel divided by output numel)."));
    }
    write_moments(x, mask, free, root, spread, mean);
  }
  return {spread, mean};
}

template <bool Root>
Tensor spread_op(const Tensor& x, OptDims dims, Scalar correction, bool keepdim) {
  return moments_of(x, dims, correction, keepdim, Root, false)[0];
}
template <bool Root>
TensorList spread_mean_op(const Tensor& x, OptDims dims, Scalar correction, bool keepdim) {
  return moments_of(x, dims, correction, keepdim, Root, true);
}

// Arguments of all four: self, dim, correction, keepdim.
Tensor spread_gradient(Backward& b, const Tensor& g, bool root) {
  Tensor x = b.arg<Tensor>(0);
  Reduced r = reduced_of(b, 1, 3);
  double n = degrees(r.count(), b.arg<Scalar>(2).to_double());
  Tensor scaled = g;
  if (root) {
    Tensor s = b.out(0);
    scaled = op<"masked_fill">(g / (s * 2.0), op<"eq">(s, Tensor(0)), Tensor(0));
  }
  Tensor centred = x - op<"mean">(x, r.dims(), true);
  return r.restore(scaled) * (2.0 / n) * centred;
}
template <bool Root> void spread_backward(Backward& b) {
  b.set(0, spread_gradient(b, b.grad(), Root));
}
template <bool Root> void spread_mean_backward(Backward& b) {
  Reduced r = reduced_of(b, 1, 3);
  Tensor g;
  if (b.grad(0).defined()) g = spread_gradient(b, b.grad(0), Root);
  if (b.grad(1).defined()) {
    Tensor m = r.grow(b.grad(1) / static_cast<double>(r.count()));
    g = g.defined() ? g + m : m;
  }
  b.set(0, g);
}

// The public forms: `unbiased` stands for a correction of 1 or 0.
std::optional<Dims> kept(OptDims d) { return d ? std::optional<Dims>(Dims(*d)) : std::nullopt; }
Scalar given(std::optional<Scalar> s) { return s.value_or(Scalar(1)); }
Scalar as_correction(bool unbiased) { return Scalar(unbiased ? 1 : 0); }

template <OpName Name> struct Forms {
  static Tensor all(const Tensor& x, bool unbiased) {
    return op<Name>(x, std::nullopt, as_correction(unbiased), false);
  }
  static Tensor corrected(const Tensor& x, OptDims dims, std::optional<Scalar> correction,
                          bool keepdim) {
    return op<Name>(x, kept(dims), given(correction), keepdim);
  }
  static Tensor dims(const Tensor& x, OptDims dims, bool unbiased, bool keepdim) {
    return op<Name>(x, kept(dims), as_correction(unbiased), keepdim);
  }
  static TensorList all2(const Tensor& x, bool unbiased) {
    return ops<Name>(x, std::nullopt, as_correction(unbiased), false);
  }
  static TensorList corrected2(const Tensor& x, OptDims dims, std::optional<Scalar> correction,
                               bool keepdim) {
    return ops<Name>(x, kept(dims), given(correction), keepdim);
  }
  static TensorList dims2(const Tensor& x, OptDims dims, bool unbiased, bool keepdim) {
    return ops<Name>(x, kept(dims), as_correction(unbiased), keepdim);
  }
};

// ---- norms ----

void check_norm_input(const Tensor& x, double p, const OptDims& dims, OptDType dtype) {
  check(is_inexact(x.dtype()),
        "linalg.vector_norm: Expected a floating point or complex tensor as input. Got ",
        x.dtype());
  if (dtype) {
    check(is_inexact(*dtype),
          "linalg.vector_norm: dtype should be floating point or complex, but got ", *dtype);
    check(is_complex(*dtype) == is_complex(x.dtype()), "linalg.vector_norm: dtype should be ",
          is_complex(x.dtype()) ? "complex for complex" : "floating point for real",
          " inputs, but got ", *dtype);
  }
  if (x.numel() > 0 || (p >= 0 && !std::isinf(p))) return;
  check(dims && !dims->empty(), "linalg.vector_norm cannot compute the ", p,
        " norm on an empty tensor because the operation does not have an identity");
  for (int64_t d : *dims) {
    check(x.size(d) > 0, "linalg.vector_norm cannot compute the ", p, " norm on the dimension ", d,
          " because this dimension is empty and the operation does not have an identity");
  }
}

void real_norm(const Tensor& x, double p, uint64_t mask, const Tensor& out) {
  if (std::isinf(p)) {
    reduce(p > 0 ? ReduceOp::AbsMax : ReduceOp::AbsMin, x, mask, {out.dtype(), out.data()});
    return;
  }
  const ReduceOp what = p == 2   ? portable::sum_of<portable::SumSquares>
                        : p == 1 ? portable::sum_of<portable::SumAbs>
                        : p == 0 ? portable::sum_of<portable::CountNonzero>
                                 : ReduceOp::Sum;
  Tensor terms = x;
  if (what == ReduceOp::Sum) {  // powers would overflow half precision
    GradMode off(false);
    terms = op<"pow">(op<"abs">(is_half(x.dtype()) ? raw_cast(x, DType::Float32) : x), Tensor(p));
  }
  reduce(what, terms, mask, {out.dtype(), out.data(), nullptr, 1, p == 0 ? 1 : p});
}

Tensor vector_norm_op(const Tensor& x, Scalar ord, OptDims dims, bool keepdim, OptDType dtype) {
  double p = ord.to_double();
  check_norm_input(x, p, dims, dtype);
  uint64_t mask = reduced_mask(dims, x.dim());
  Tensor out = empty(reduced_sizes(x.sizes(), mask, keepdim),
                     {to_real(dtype.value_or(x.dtype())), x.device()});
  if (x.is_meta() || out.numel() == 0) return out;
  Tensor real = x;
  if (is_complex(x.dtype())) {
    GradMode off(false);
    real = op<"abs">(x);
  }
  real_norm(raw_cast(real, out.dtype()), p, mask, out);
  return out;
}

void vector_norm_backward(Backward& b) {
  Tensor x = b.arg<Tensor>(0);
  double p = b.arg<Scalar>(1).to_double();
  Reduced r = reduced_of(b, 2, 3);
  if (p == 0) return b.set(0, zeros_like(x));
  Tensor y = r.restore(b.out()), g = r.restore(b.grad());
  if (y.dtype() != to_real(x.dtype())) {
    y = to(y, to_real(x.dtype()));
    g = to(g, y.dtype());
  }
  auto no_zero = [](const Tensor& value, const Tensor& of) {
    return op<"masked_fill">(value, op<"eq">(of, Tensor(0)), Tensor(0));
  };
  // 0 where the norm is 0, and so is its derivative by g.
  auto over = [&](const Tensor& divisor) {
    const double inf = std::numeric_limits<double>::infinity();
    return g / op<"masked_fill">(divisor, op<"eq">(y, Tensor(0)), Tensor(inf));
  };
  Tensor gx;
  if (p == 1) {
    gx = op<"sgn">(x) * g;
  } else if (p == 2) {
    gx = x * over(y);
  } else if (std::isinf(p)) {
    Tensor size = op<"abs">(x);
    Tensor hit = to(op<"logical_or">(op<"eq">(size, y), op<"isnan">(size)), y.dtype());
    gx = op<"sgn">(x) * (hit / op<"sum">(hit, r.dims(), true) * g);
  } else if (p < 1) {
    Tensor scaled = op<"sgn">(x) * no_zero(op<"pow">(op<"abs">(x), Tensor(p - 1)), x);
    gx = scaled * g * op<"pow">(y, Tensor(1 - p));
  } else if (p < 2) {
    Tensor scaled = op<"sgn">(x) * op<"pow">(op<"abs">(x), Tensor(p - 1));
    gx = scaled * over(op<"pow">(y, Tensor(p - 1)));
  } else {
    Tensor scaled = x * op<"pow">(op<"abs">(x), Tensor(p - 2));
    gx = scaled * over(op<"pow">(y, Tensor(p - 1)));
  }
  b.set(0, gx);
}

Tensor norm_op(const Tensor& x, std::optional<Scalar> p, OptDims dims, bool keepdim,
               OptDType dtype) {
  return op<"linalg_vector_norm">(x, p.value_or(Scalar(2.0)), kept(dims), keepdim, dtype);
}
Tensor norm_named(const Tensor& x, const std::string& p, OptDims dims, bool keepdim,
                  OptDType dtype) {
  check(p == "fro" || p == "nuc", "linalg.matrix_norm: Order ", p, " not supported.");
  if (p == "nuc") return op<"nuclear_norm">(dtype ? to(x, *dtype) : x, kept(dims), keepdim);
  return op<"linalg_vector_norm">(x, Scalar(2.0), kept(dims), keepdim, dtype);
}

Tensor dist_op(const Tensor& x, const Tensor& other, Scalar p) {
  return op<"norm">(x - other, p, std::nullopt, false, std::nullopt);
}

// ---- logsumexp ----

Tensor logsumexp_op(const Tensor& self, DimsRef dims, bool keepdim) {
  Tensor x = is_integral(self.dtype()) ? raw_cast(self, default_dtype()) : self;
  uint64_t mask = reduced_mask(dims, x.dim());
  Dims sizes = reduced_sizes(x.sizes(), mask, keepdim), d(dims);
  if (x.is_meta()) return empty(sizes, x.options());
  GradMode off(false);
  if (x.numel() == 0)
    return full(sizes, Scalar(-std::numeric_limits<double>::infinity()), x.options());
  Tensor most = op<"amax">(is_complex(x.dtype()) ? op<"real">(x) : x, d, true);
  most = op<"masked_fill">(most, op<"isinf">(most), Tensor(0));
  Tensor total = op<"log">(op<"sum">(op<"exp">(x - most), d, keepdim));
  return total + reshape(most, sizes);
}
void logsumexp_backward(Backward& b) {
  Tensor x = b.arg<Tensor>(0), y = b.out();
  Reduced r = reduced_of(b);
  b.set(0, r.restore(b.grad()) * conj(op<"exp">(x - r.restore(y))));
}

// ---- ops ----

constexpr uint32_t kSelf = saves_arg(0);
using Var = Forms<"_var">;
using Std = Forms<"_std">;
using VarMean = Forms<"_var_mean">;
using StdMean = Forms<"_std_mean">;

#define TAEDA_SPREAD_DOC \
  "Divided by the count less `correction` (1 unless given; `unbiased=False` stands for 0)."

constexpr Traits kSpread{
    .forms = kPublic | kOut, .composite = true, .out_dtype = OutDtype::SameKind};

const Define kVarOps[] = {
    {"_var(self: Tensor, dim: int[1]?, correction: Scalar, keepdim: bool) -> Tensor",
     "Variance.",
     kernel(spread_op<false>),
     {.backward = spread_backward<false>, .saves = kSelf, .vmap = vmap::reduction}},
    {"_std(self: Tensor, dim: int[1]?, correction: Scalar, keepdim: bool) -> Tensor",
     "Standard deviation.",
     kernel(spread_op<true>),
     {.backward = spread_backward<true>, .saves = kSelf | saves_out(), .vmap = vmap::reduction}},
    {"_var_mean(self: Tensor, dim: int[1]?, correction: Scalar, keepdim: bool) -> (Tensor, Tensor)",
     "Variance and mean.",
     kernel(spread_mean_op<false>),
     {.backward = spread_mean_backward<false>, .saves = kSelf, .vmap = vmap::reduction}},
    {"_std_mean(self: Tensor, dim: int[1]?, correction: Scalar, keepdim: bool) -> (Tensor, Tensor)",
     "Standard deviation and mean.",
     kernel(spread_mean_op<true>),
     {.backward = spread_mean_backward<true>,
      .saves = kSelf | saves_out(),
      .vmap = vmap::reduction}},
    {"var(self: Tensor, unbiased: bool) -> Tensor",
     "The variance of all elements. " TAEDA_SPREAD_DOC,
     kernel(Var::all),
     {.composite = true}},
    {"var(self: Tensor, dim: int[1]? = None, *, correction: Scalar? = None, keepdim: bool = False) "
     "-> Tensor",
     "The variance over `dim`, by default over all dimensions. " TAEDA_SPREAD_DOC,
     kernel(Var::corrected), kSpread},
    {"var(self: Tensor, dim: int[1]?, unbiased: bool = True, keepdim: bool = False) -> Tensor",
     "The variance over `dim`. " TAEDA_SPREAD_DOC, kernel(Var::dims), kSpread},
    {"std(self: Tensor, unbiased: bool) -> Tensor",
     "The standard deviation of all elements. " TAEDA_SPREAD_DOC,
     kernel(Std::all),
     {.composite = true}},
    {"std(self: Tensor, dim: int[1]? = None, *, correction: Scalar? = None, keepdim: bool = False) "
     "-> Tensor",
     "The standard deviation over `dim`, by default over all dimensions. " TAEDA_SPREAD_DOC,
     kernel(Std::corrected), kSpread},
    {"std(self: Tensor, dim: int[1]?, unbiased: bool = True, keepdim: bool = False) -> Tensor",
     "The standard deviation over `dim`. " TAEDA_SPREAD_DOC, kernel(Std::dims), kSpread},
    {"var_mean(self: Tensor, unbiased: bool) -> (Tensor, Tensor)",
     "Variance and mean of all elements. " TAEDA_SPREAD_DOC,
     kernel(VarMean::all2),
     {.forms = kFunction, .composite = true}},
    {"var_mean(self: Tensor, dim: int[1]? = None, *, correction: Scalar? = None, keepdim: bool = "
     "False) -> (Tensor, Tensor)",
     "Variance and mean over `dim`. " TAEDA_SPREAD_DOC,
     kernel(VarMean::corrected2),
     {.forms = kFunction, .composite = true}},
    {"var_mean(self: Tensor, dim: int[1]?, unbiased: bool = True, keepdim: bool = False) -> "
     "(Tensor, Tensor)",
     "Variance and mean over `dim`. " TAEDA_SPREAD_DOC,
     kernel(VarMean::dims2),
     {.forms = kFunction, .composite = true}},
    {"std_mean(self: Tensor, unbiased: bool) -> (Tensor, Tensor)",
     "Standard deviation and mean of all elements. " TAEDA_SPREAD_DOC,
     kernel(StdMean::all2),
     {.forms = kFunction, .composite = true}},
    {"std_mean(self: Tensor, dim: int[1]? = None, *, correction: Scalar? = None, keepdim: bool = "
     "False) -> (Tensor, Tensor)",
     "Standard deviation and mean over `dim`. " TAEDA_SPREAD_DOC,
     kernel(StdMean::corrected2),
     {.forms = kFunction, .composite = true}},
    {"std_mean(self: Tensor, dim: int[1]?, unbiased: bool = True, keepdim: bool = False) -> "
     "(Tensor, Tensor)",
     "Standard deviation and mean over `dim`. " TAEDA_SPREAD_DOC,
     kernel(StdMean::dims2),
     {.forms = kFunction, .composite = true}},
    {"linalg_vector_norm(self: Tensor, ord: Scalar = 2, dim: int[1]? = None, keepdim: bool = "
     "False, *, dtype: dtype? = None) "
     "-> Tensor",
     "The norm of order `ord` over `dim`: (sum |x|^ord)^(1/ord), the count of elements that are "
     "not zero for 0, the largest "
     "or smallest |x| for inf and -inf.",
     kernel(vector_norm_op),
     {.backward = vector_norm_backward,
      .saves = kSelf | saves_out(),
      .forms = kFunction | kOut,
      .module = "linalg",
      .autocast = kFloat32OnCuda,
      .vmap = vmap::reduction,
      .out_dtype = OutDtype::Exact}},
    {"norm(self: Tensor, p: Scalar? = 2, dim: int[1]? = None, keepdim: bool = False, *, dtype: "
     "dtype? = None) -> Tensor",
     "The vector norm of order `p` over `dim`, by default over all elements.",
     kernel(norm_op),
     {.forms = kPublic | kOut,
      .composite = true,
      .autocast = kFloat32OnCuda,
      .out_dtype = OutDtype::Exact}},
    {"norm(self: Tensor, p: str, dim: int[1]? = None, keepdim: bool = False, *, dtype: dtype? = "
     "None) -> Tensor",
     "For p = 'fro' the norm of order 2; for p = 'nuc' the sum of the singular values of the "
     "matrices that two dimensions span.",
     kernel(norm_named),
     {.forms = kPublic | kOut,
      .composite = true,
      .autocast = kFloat32OnCuda,
      .out_dtype = OutDtype::Exact}},
    {"dist(self: Tensor, other: Tensor, p: Scalar = 2) -> Tensor",
     "The norm of order `p` of the difference.",
     kernel(dist_op),
     {.composite = true, .autocast = kFloat32OnCuda}},
    {"logsumexp(self: Tensor, dim: int[1], keepdim: bool = False) -> Tensor",
     "The logarithm of the sum over `dim` of the elements' exponentials, without overflow.",
     kernel(logsumexp_op),
     {.backward = logsumexp_backward,
      .saves = kSelf | saves_out(),
      .forms = kPublic | kOut,
      .autocast = kFloat32OnCuda,
      .vmap = vmap::reduction,
      .out_dtype = OutDtype::Castable}},
};
#undef TAEDA_SPREAD_DOC

}  // namespace
}  // namespace taeda
