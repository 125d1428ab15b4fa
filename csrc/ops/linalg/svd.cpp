// Singular values and functions based on them: pseudo-inverse, rank, least squares.
#include <limits>

#include "ops/core/memory.h"
#include "ops/linalg/linalg.h"

namespace taeda {
namespace {

// ---- singular value decomposition ----

std::string no_svd(int i) {
  return str(
      "The algorithm failed to converge because the input matrix is ill-conditioned or has "
      "too many repeated singular values (error code: ",
      i, ").");
}

TensorList svd_raw(const Tensor& a, bool full, bool vectors, bool any_signs) {
  const char* what = "linalg.svd";
  check_matrix(what, a);
  check_finite(what, a);
  const int64_t m = a.size(-2), n = a.size(-1), k = std::min(m, n);
  const DimsRef batch = batch_sizes(a);
  Tensor s = empty(join(batch, {k}), {to_real(a.dtype()), a.device()});
  Tensor u = vectors ? empty_column_major(join(batch, {m, full ? m : k}), a.options())
                     : empty(Dims{0}, a.options());
  Tensor vh = vectors ? empty_column_major(join(batch, {full ? n : k, n}), a.options())
                      : empty(Dims{0}, a.options());
  if (a.is_meta()) return {u, s, vh};
  if (a.numel() == 0) {
    if (vectors) {
      raw_identity(u);
      raw_identity(vh);
    }
    return {u, s, vh};
  }
  Tensor copy = column_major_copy(a), info = empty_like_info(a);
  visit_inexact(a.dtype(), what, [&](auto tag) {
    using T = typename decltype(tag)::type;
    kernels<EigenKernels<T>>(a.device())
        .svd(lapack_shape(a), full, any_signs, copy.data_as<T>(), s.data_as<RealOf<T>>(),
             vectors ? u.data_as<T>() : nullptr, vectors ? vh.data_as<T>() : nullptr,
             info.data_as<int32_t>());
  });
  check_info(what, info, no_svd);
  return {u, s, vh};
}

void check_phase(const Tensor& left, const Tensor& right) {
  if (!is_complex(left.dtype()) || left.is_meta() || left.numel() == 0) return;
  GradMode off(false);
  Tensor phase = op<"abs">(op<"imag">(diagonal_of(left) + diagonal_of(right)));
  check(!(op<"max">(phase).item().to_double() > 1e-2),
        "linalg.svd: the singular vectors of a complex matrix are known only up to multiplication "
        "by exp(i phi); the loss depends on phi, so its gradient is ill-defined");
}

// With E(i, j) = s_j^2 - s_i^2 and skew(X) = X - X^H:
//   U [skew(U^H gU) / E S + S skew(V^H gV) / E + diag(gs)] V^H,
// plus the components of gU and gV outside the column spaces of U and V, divided by S, and for
// complex matrices a phase term.
void svd_backward(Backward& b) {
  check(b.arg<bool>(2),
        "linalg.svdvals: its singular vectors were not computed, so there is no "
        "gradient");
  Tensor u = b.out(0), s = b.out(1), vh = b.out(2), gu = b.grad(0), gs = b.grad(1), gvh = b.grad(2);
  if (!gu.defined() && !gs.defined() && !gvh.defined()) return;
  const int64_t k = s.size(-1), m = u.size(-2), n = vh.size(-1);
  auto first = [k](const Tensor& t, int64_t dim) {
    return !t.defined() || t.size(dim) == k ? t : narrow(t, dim, 0, k);
  };
  u = first(u, -1), gu = first(gu, -1), vh = first(vh, -2), gvh = first(gvh, -2);
  auto columns = [](const Tensor& t) { return unsqueeze(t, -2); };
  auto rows = [](const Tensor& t) { return unsqueeze(t, -1); };
  if (!gu.defined() && !gvh.defined()) return b.set(0, matmul(u * columns(to(gs, u.dtype())), vh));
  Tensor uhgu = gu.defined() ? matmul(adjoint(u), gu) : Tensor();
  Tensor vhgv = gvh.defined() ? matmul(vh, adjoint(gvh)) : Tensor();
  if (gu.defined() && gvh.defined()) check_phase(uhgu, vhgv);
  Tensor gap = (columns(s) - rows(s)) * (columns(s) + rows(s)) + identity(k, s.options());
  auto skew = [&](const Tensor& x) { return (x - adjoint(x)) / gap; };
  Tensor inner;
  auto add = [](Tensor& to, const Tensor& x) { to = to.defined() ? to + x : x; };
  if (gs.defined()) add(inner, as_diagonal(to(gs, u.dtype())));
  Tensor off = Tensor();
  if (gu.defined()) add(off, skew(uhgu) * columns(s));
  if (gvh.defined()) add(off, rows(s) * skew(vhgv));
  Tensor mask = to(identity(k, {DType::Float32, s.device()}), DType::Bool);
  add(inner, op<"masked_fill">(off, mask, Tensor(0)));
  if (is_complex(u.dtype()) && gu.defined()) {
    Tensor rotation = op<"imag">(diagonal_of(uhgu)) / s;
    add(inner, as_diagonal(op<"complex">(zeros_like(rotation), rotation)));
  }
  Tensor ga = matmul(u, matmul(inner, vh));
  if (m > k && gu.defined()) add(ga, matmul((gu - matmul(u, uhgu)) / columns(s), vh));
  if (n > k && gvh.defined()) add(ga, matmul(u, (gvh - matmul(adjoint(vhgv), vh)) / rows(s)));
  b.set(0, ga);
}

void check_driver(const std::optional<std::string>& driver) {
  check(!driver, "linalg.svd: keyword argument `driver=` is only supported on CUDA inputs");
}

TensorList linalg_svd(const Tensor& a, bool full, std::optional<std::string> driver) {
  check_driver(driver);
  return ops<"_linalg_svd">(a, full, true, false);
}
Tensor svdvals(const Tensor& a, std::optional<std::string> driver) {
  check_driver(driver);
  return ops<"_linalg_svd">(a, false, wants_grad(a), true)[1];
}
TensorList svd(const Tensor& self, bool some, bool vectors) {
  if (vectors) {
    TensorList r = ops<"_linalg_svd">(self, !some, true, false);
    return {r[0], r[1], adjoint(r[2])};
  }
  Tensor s = ops<"_linalg_svd">(self, false, wants_grad(self), true)[1];
  auto square = [&](int64_t n) { return zeros(join(batch_sizes(self), {n, n}), self.options()); };
  return {square(self.size(-2)), s, square(self.size(-1))};
}

// ---- what counts as zero ----

// The larger of atol and rtol times the largest value; rtol is eps times the longer side unless it,
// or an atol above 0, is given.
Tensor threshold(const char* what, const Tensor& a, const Tensor& largest, const Tensor& atol,
                 const Tensor& rtol) {
  for (const Tensor& t : {atol, rtol}) {
    check(!t.defined() || !is_complex(t.dtype()), what,
          ": a tolerance of complex type is not supported. Got ",
          t.defined() ? t.dtype() : a.dtype());
  }
  const double eps = to_real(a.dtype()) == DType::Float32 ? std::numeric_limits<float>::epsilon()
                                                          : std::numeric_limits<double>::epsilon();
  Options o{largest.dtype(), a.device()};
  Tensor relative = rtol;
  if (!relative.defined()) {
    relative = full(Dims{}, Scalar(eps * static_cast<double>(std::max(a.size(-2), a.size(-1)))), o);
    if (atol.defined()) relative = where(atol > Tensor(0), zeros(Dims{}, o), relative);
  }
  Tensor scaled = relative * largest;
  return atol.defined() ? op<"maximum">(to(atol, scaled.dtype()), scaled) : scaled;
}
Tensor number(const std::optional<double>& v, const Tensor& like) {
  return v ? full(Dims{}, Scalar(*v), {DType::Float64, like.device()}) : Tensor();
}
Tensor largest_of(const Tensor& values) {
  return values.size(-1) == 0
             ? zeros(values.sizes().first(values.sizes().size() - 1), values.options())
             : op<"amax">(values, Dims{-1}, false);
}

// ---- pseudo-inverse ----

Tensor pinv_raw(const Tensor& a, const Tensor& atol, const Tensor& rtol, bool hermitian) {
  const char* what = "linalg.pinv";
  if (hermitian) check_square(what, a);
  else check_matrix(what, a);
  if (a.is_meta() || a.numel() == 0)
    return empty(join(batch_sizes(a), {a.size(-1), a.size(-2)}), a.options());
  GradMode off(false);
  TensorList r =
      hermitian ? ops<"_linalg_eigh">(a, "L", true) : ops<"_linalg_svd">(a, false, true, true);
  Tensor values = hermitian ? r[0] : r[1], sizes = op<"abs">(values);
  Tensor least = threshold(what, a, largest_of(sizes), atol, rtol);
  Tensor inverse =
      where(sizes > unsqueeze(least, -1), op<"reciprocal">(values), zeros_like(values));
  Tensor right = hermitian ? r[1] : adjoint(r[2]), left = hermitian ? r[1] : r[0];
  return matmul(right * unsqueeze(inverse, -2), adjoint(left));
}
// Golub and Pereyra (1973), for matrices of constant rank.
Tensor pinv_gradient(const Tensor& a, const Tensor& p, const Tensor& g) {
  Tensor p_h = adjoint(p), g_h = adjoint(g);
  Tensor gpp = matmul(matmul(g_h, p), p_h), ppg = matmul(p_h, matmul(p, g_h));
  return gpp - matmul(a, matmul(p, gpp)) + ppg - matmul(matmul(ppg, p), a) -
         matmul(p_h, matmul(g, p_h));
}
void pinv_backward(Backward& b) { b.set(0, pinv_gradient(b.arg<Tensor>(0), b.out(), b.grad())); }

Tensor pinv(const Tensor& a, const Tensor& atol, const Tensor& rtol, bool hermitian) {
  return op<"_linalg_pinv">(a, atol, rtol, hermitian);
}
Tensor pinv_float(const Tensor& a, std::optional<double> atol, std::optional<double> rtol,
                  bool hermitian) {
  return pinv(a, number(atol, a), number(rtol, a), hermitian);
}
Tensor pinv_rcond(const Tensor& a, const Tensor& rcond, bool hermitian) {
  return pinv(a, {}, rcond, hermitian);
}
Tensor pinv_rcond_float(const Tensor& a, double rcond, bool hermitian) {
  return pinv(a, {}, number(rcond, a), hermitian);
}
Tensor pinverse(const Tensor& a, double rcond) { return pinv_rcond_float(a, rcond, false); }

// ---- rank ----

Tensor matrix_rank(const Tensor& a, const Tensor& atol, const Tensor& rtol, bool hermitian) {
  const char* what = "linalg.matrix_rank";
  if (hermitian) check_square(what, a);
  else check_matrix(what, a);
  GradMode off(false);
  Tensor sizes = hermitian ? op<"abs">(op<"linalg_eigvalsh">(a)) : op<"linalg_svdvals">(a);
  Tensor least = threshold(what, a, largest_of(sizes), atol, rtol);
  return op<"sum">(sizes > unsqueeze(least, -1), Dims{-1}, false);
}
Tensor matrix_rank_float(const Tensor& a, std::optional<double> atol, std::optional<double> rtol,
                         bool hermitian) {
  return matrix_rank(a, number(atol, a), number(rtol, a), hermitian);
}
Tensor matrix_rank_tol(const Tensor& a, const Tensor& tol, bool hermitian) {
  return matrix_rank(a, tol, full(Dims{}, Scalar(0.0), {DType::Float64, a.device()}), hermitian);
}
Tensor matrix_rank_tol_float(const Tensor& a, double tol, bool hermitian) {
  return matrix_rank_tol(a, number(tol, a), hermitian);
}

// ---- least squares ----

std::string no_full_rank(int i) {
  return str(
      "The least squares solution could not be computed because the input matrix does not "
      "have full rank, or the algorithm did not converge (error code: ",
      i, ").");
}

LeastSquares method_of(const std::string& driver) {
  if (driver == "gels") return LeastSquares::QR;
  if (driver == "gelsy") return LeastSquares::PivotedQR;
  if (driver == "gelsd") return LeastSquares::DivideAndConquer;
  check(driver == "gelss",
        "linalg.lstsq: parameter `driver` should be one of (gels, gelsy, gelsd, gelss), got ",
        driver);
  return LeastSquares::SVD;
}

// |A X - B|^2 by columns: stored by LAPACK below the solutions if A has full rank.
Tensor residuals_of(const Tensor& x, int64_t n, const Tensor& rank) {
  const int64_t m = x.size(-2);
  if (rank.defined()) {
    for (int32_t r : host_values<int32_t>(rank)) {
      if (r != n) return empty(Dims{0}, {to_real(x.dtype()), x.device()});
    }
  }
  GradMode off(false);
  Tensor size = op<"abs">(raw_narrow(x, x.dim() - 2, n, m - n));
  return sum(size * size, Dims{-2});
}

TensorList least_squares(const Tensor& a, const Tensor& b, std::optional<double> rcond,
                         const std::string& driver) {
  const char* what = "linalg.lstsq";
  check_matrix(what, a, "input");
  check_matrix(what, b, "other");
  check_same_dtype(what, a, b, "input", "other");
  check(b.size(-2) == a.size(-2) && same(batch_sizes(a), batch_sizes(b)), what,
        ": other must be matrices with as many rows as those of input, got shapes ",
        to_string(a.sizes()), " and ", to_string(b.sizes()));
  const auto method = method_of(driver);
  const int64_t m = a.size(-2), n = a.size(-1), k = std::min(m, n), high = std::max(m, n);
  const bool by_svd = driver == "gelsd" || driver == "gelss", ranks = driver != "gels";
  const DimsRef batch = batch_sizes(a);
  const Options real{to_real(a.dtype()), a.device()};
  check_finite(what, a);
  Tensor x = empty_column_major(join(batch, {high, b.size(-1)}), a.options());
  Tensor solution = raw_narrow(x, x.dim() - 2, 0, n);
  Tensor s = by_svd ? empty(join(batch, {k}), real) : empty(Dims{0}, real);
  Tensor rank = ranks ? raw_zeros(batch, {DType::Int32, a.device()}) : Tensor();
  Tensor residuals = empty(Dims{0}, real);
  if (!a.is_meta()) {
    if (m < n)
      copy_into(raw_narrow(x, x.dim() - 2, m, n - m),
                raw_zeros(join(batch, {n - m, b.size(-1)}), a.options()));
    copy_into(raw_narrow(x, x.dim() - 2, 0, m), b);
    if (a.numel() > 0) {
      Tensor copy = column_major_copy(a), info = empty_like_info(a);
      const double eps = real.dtype == DType::Float32 ? std::numeric_limits<float>::epsilon()
                                                      : std::numeric_limits<double>::epsilon();
      visit_inexact(a.dtype(), what, [&](auto tag) {
        using T = typename decltype(tag)::type;
        // LAPACK requires at least one right-hand side: use a column of zeros.
        Tensor rhs = x.numel() > 0 ? x : raw_zeros(join(batch, {high, 1}), a.options());
        kernels<LeastSquaresKernels<T>>(a.device())
            .solve(method, lapack_shape(a), rhs.size(-1), copy.data_as<T>(), rhs.data_as<T>(),
                   rcond.value_or(eps * static_cast<double>(high)),
                   ranks ? rank.data_as<int32_t>() : nullptr,
                   by_svd ? s.data_as<RealOf<T>>() : nullptr, info.data_as<int32_t>());
      });
      check_info(what, info, no_full_rank);
    }
    if (m > n && driver != "gelsy") residuals = residuals_of(x, n, rank);
  } else if (m > n && driver != "gelsy") {
    residuals = empty(join(batch, {b.size(-1)}), real);
  }
  Tensor counts = ranks ? raw_cast(rank, DType::Int64) : empty(Dims{0}, {DType::Int64, a.device()});
  return {solution, residuals, counts, s};
}

// X = A^+ B; the residuals do not change with X at the minimum.
void least_squares_backward(Backward& b) {
  Tensor a = b.arg<Tensor>(0), rhs = b.arg<Tensor>(1), x = b.out(0), ga, gb;
  if (b.grad(0).defined()) {
    Tensor p = op<"_linalg_pinv">(a, Tensor(), Tensor(), false), g = b.grad(0);
    gb = matmul(adjoint(p), g);
    if (b.needs(0)) ga = pinv_gradient(a, p, matmul(g, adjoint(rhs)));
  }
  if (b.grad(1).defined() && b.grad(1).numel() > 0) {
    Tensor twice = (matmul(a, x) - rhs) * unsqueeze(b.grad(1), -2) * 2.0;
    gb = gb.defined() ? gb - twice : -twice;
    Tensor part = matmul(twice, adjoint(x));
    ga = ga.defined() ? ga + part : part;
  }
  if (ga.defined()) b.set(0, ga);
  if (gb.defined()) b.set(1, gb);
}

TensorList lstsq(const Tensor& a, const Tensor& b, std::optional<double> rcond,
                 std::optional<std::string> driver) {
  const char* what = "linalg.lstsq";
  check_matrix(what, a, "input");
  check(b.dim() >= 1 && a.dim() >= b.dim() && a.dim() - b.dim() <= 1, what,
        ": other must have as many dimensions as input or one less, got shapes ",
        to_string(a.sizes()), " and ", to_string(b.sizes()));
  const bool vector =
      a.dim() - 1 == b.dim() && same(b.sizes(), a.sizes().first(a.sizes().size() - 1));
  Tensor rhs = vector ? unsqueeze(b, -1) : b;
  check(rhs.dim() >= 2 && rhs.size(-2) == a.size(-2), what,
        ": input.size(-2) should match other.size(-2), got shapes ", to_string(a.sizes()), " and ",
        to_string(b.sizes()));
  Dims batch = broadcast_sizes(batch_sizes(a), batch_sizes(rhs));
  TensorList r =
      ops<"_linalg_lstsq">(expand(a, join(batch, {a.size(-2), a.size(-1)})),
                           expand(rhs, join(batch, {rhs.size(-2), rhs.size(-1)})), rcond,
                           driver.value_or(a.device().type == DeviceType::CUDA ? "gels" : "gelsy"));
  if (vector) r[0] = squeeze(r[0], -1);
  return r;
}

constexpr Traits kRank = kLinalg.with(kFloat32OnCpu).with(OutDtype::Castable);

const Define kSvdOps[] = {
    {"_linalg_svd(A: Tensor, full_matrices: bool, compute_uv: bool, any_signs: bool) -> (Tensor, "
     "Tensor, Tensor)",
     "Singular values, and vectors where they are asked for: with `any_signs`, whose signs do not "
     "matter.",
     kernel(svd_raw),
     {.backward = svd_backward,
      .saves = saves_out(0) | saves_out(1) | saves_out(2),
      .vmap = vmap::leading(2)}},
    {"linalg_svd(A: Tensor, full_matrices: bool = True, *, driver: str? = None) -> (U: Tensor, S: "
     "Tensor, Vh: Tensor)",
     "A = U diag(S) Vh for matrices (*, m, n): orthonormal columns U, singular values S, "
     "descending, "
     "orthonormal rows Vh. U is (m, m) and Vh (n, n) with `full_matrices`, else (m, k) and (k, n) "
     "with k = min(m, n). LinAlgError for matrices that are not finite. Gradients take the "
     "singular "
     "values to be distinct.",
     kernel(linalg_svd), kLinalg.with(kFloat32OnCpu)},
    {"linalg_svdvals(A: Tensor, *, driver: str? = None) -> Tensor",
     "The singular values of matrices, descending.", kernel(svdvals), kLinalg.with(kFloat32OnCpu)},
    {"svd(self: Tensor, some: bool = True, compute_uv: bool = True) -> (U: Tensor, S: Tensor, V: "
     "Tensor)",
     "self = U diag(S) V^H. `some` gives min(m, n) columns of U and V, not all; without "
     "`compute_uv` "
     "both are zeros. `linalg.svd` is the newer form.",
     kernel(svd), kLinalgMethod.with(kFloat32OnCpu)},
    {"_linalg_pinv(A: Tensor, atol: Tensor?, rtol: Tensor?, hermitian: bool) -> Tensor",
     "The pseudo-inverse.",
     kernel(pinv_raw),
     {.backward = pinv_backward, .saves = saves_arg(0) | saves_out(), .vmap = vmap::loop}},
    {"linalg_pinv(self: Tensor, *, atol: Tensor? = None, rtol: Tensor? = None, hermitian: bool = "
     "False) -> Tensor",
     "The pseudo-inverse of matrices (*, m, n), of shape (*, n, m). Singular values up to the "
     "larger "
     "of `atol` and `rtol` times the largest one count as zero; `rtol` is max(m, n) times the "
     "dtype's precision where no tolerance is given. With `hermitian`, from the eigenvalues and "
     "the "
     "lower triangle.",
     kernel(pinv), kLinalg.with(OutDtype::Castable)},
    {"linalg_pinv(self: Tensor, *, atol: float? = None, rtol: float? = None, hermitian: bool = "
     "False) -> Tensor",
     "", kernel(pinv_float), kLinalg.with(OutDtype::Castable)},
    {"linalg_pinv(self: Tensor, rcond: Tensor, hermitian: bool = False) -> Tensor",
     "`rcond` is an older name of `rtol`.", kernel(pinv_rcond), kLinalg.with(OutDtype::Castable)},
    {"linalg_pinv(self: Tensor, rcond: float, hermitian: bool = False) -> Tensor", "",
     kernel(pinv_rcond_float), kLinalg.with(OutDtype::Castable)},
    {"pinverse(self: Tensor, rcond: float = 1e-15) -> Tensor",
     "The same as `linalg.pinv` with rtol=rcond.",
     kernel(pinverse),
     {.composite = true, .heavy = true, .autocast = kFloat32OnCpu}},
    {"linalg_matrix_rank(self: Tensor, *, atol: Tensor? = None, rtol: Tensor? = None, hermitian: "
     "bool = False) -> Tensor",
     "How many singular values (with `hermitian`, sizes of eigenvalues) are larger than the larger "
     "of `atol` and `rtol` times the largest one, as int64. `rtol` is as for `pinv`.",
     kernel(matrix_rank), kRank},
    {"linalg_matrix_rank(self: Tensor, *, atol: float? = None, rtol: float? = None, hermitian: "
     "bool "
     "= False) -> Tensor",
     "", kernel(matrix_rank_float), kRank},
    {"linalg_matrix_rank(self: Tensor, tol: Tensor, hermitian: bool = False) -> Tensor",
     "`tol` is an older name of `atol`.", kernel(matrix_rank_tol), kRank},
    {"linalg_matrix_rank(self: Tensor, tol: float, hermitian: bool = False) -> Tensor", "",
     kernel(matrix_rank_tol_float), kRank},
    {"_linalg_lstsq(self: Tensor, b: Tensor, rcond: float?, driver: str) -> (Tensor, Tensor, "
     "Tensor, "
     "Tensor)",
     "Least squares for matrices of one batch.",
     kernel(least_squares),
     {.backward = least_squares_backward,
      .saves = saves_arg(0) | saves_arg(1) | saves_out(0),
      .non_differentiable = 0b1100,
      .vmap = vmap::loop}},
    {"linalg_lstsq(self: Tensor, b: Tensor, rcond: float? = None, *, driver: str? = None) -> "
     "(solution: Tensor, residuals: Tensor, rank: Tensor, singular_values: Tensor)",
     "X that makes |A X - B| smallest, for A (*, m, n) and B (*, m, k) or (*, m). `driver`: "
     "'gelsy' "
     "(QR with pivots, the default), 'gels' (QR, for full rank; the default on CUDA devices), "
     "'gelsd' or 'gelss' (singular "
     "values). The squared residuals where m > n, the driver is not 'gelsy' and A has full rank; "
     "the "
     "rank except for 'gels', singular values for the last two; empty tensors otherwise. `rcond` "
     "is "
     "the part of the largest singular value below which one counts as zero.",
     kernel(lstsq), kLinalg.with(kFloat32OnCpu).with(OutDtype::Castable)},
};

}  // namespace
}  // namespace taeda
