// Triangular systems, Cholesky factors and LDL' factors.
#include "ops/core/memory.h"
#include "ops/linalg/linalg.h"

namespace taeda {
namespace {

std::string not_positive(int i) {
  return str(
      "The factorization could not be completed because the input is not positive-definite "
      "(the leading minor of order ",
      i, " is not positive-definite).");
}
std::string zero_in_ldl(int i) {
  return str("The factor D is singular: its diagonal element ", i,
             " is zero or not a number; linalg.ldl_factor_ex gives the factor all the same");
}

// ---- triangular systems ----

Tensor solve_triangular(const Tensor& a, const Tensor& b, bool upper, bool left, bool unit) {
  const char* what = "linalg.solve_triangular";
  check_square(what, a);
  check_matrix(what, b, "B");
  check_same_dtype(what, a, b);
  check(b.size(left ? -2 : -1) == a.size(-1), what,
        ": Incompatible shapes of A and B for the equation ", left ? "AX = B" : "XA = B", " (",
        a.size(-2), "x", a.size(-1), " and ", b.size(-2), "x", b.size(-1), ")");
  auto [triangle, rhs] = broadcast_batches(what, a, b);
  Tensor x = column_major_copy(rhs);
  if (x.is_meta() || x.numel() == 0) return x;
  // A row-major triangle is the transpose of the opposite column-major triangle.
  const bool rows = triangle.is_contiguous();
  Tensor t = rows ? triangle : as_column_major(triangle);
  const int64_t n = a.size(-1);
  visit_inexact(x.dtype(), what, [&](auto tag) {
    using T = typename decltype(tag)::type;
    kernels<SolveKernels<T>>(x.device())
        .triangular(lapack_shape(x), {left, upper != rows, unit, rows ? Trans::Yes : Trans::No},
                    t.data_as<T>(), n * n, x.data_as<T>());
  });
  return x;
}
void solve_triangular_backward(Backward& b) {
  const bool upper = b.arg<bool>(2), left = b.arg<bool>(3), unit = b.arg<bool>(4);
  Tensor gb = triangular_solution(adjoint(b.arg<Tensor>(0)), b.grad(), !upper, left, unit);
  if (b.needs(0)) {
    Tensor x_h = adjoint(b.out());
    Tensor ga = -(left ? matmul(gb, x_h) : matmul(x_h, gb));
    b.set(0, upper ? triu(ga, unit) : tril(ga, unit ? -1 : 0));
  }
  b.set(1, gb);
}

TensorList triangular_solve(const Tensor& self, const Tensor& a, bool upper, bool transposed,
                            bool unit) {
  check_square("triangular_solve", a);
  check_matrix("triangular_solve", self, "b");
  Tensor x = transposed ? triangular_solution(mT(a), self, !upper, true, unit)
                        : triangular_solution(a, self, upper, true, unit);
  Dims batch = broadcast_sizes(batch_sizes(a), batch_sizes(self));
  return {x, clone(expand(a, join(batch, {a.size(-2), a.size(-1)})))};
}

// ---- Cholesky ----

TensorList cholesky_ex(const Tensor& a, bool upper, bool check_errors) {
  check_square("linalg.cholesky", a);
  Tensor l = column_major_copy(a), info = empty_like_info(a);
  if (!l.is_meta() && l.numel() > 0) {
    visit_inexact(a.dtype(), "linalg.cholesky", [&](auto tag) {
      using T = typename decltype(tag)::type;
      kernels<SolveKernels<T>>(l.device())
          .cholesky(lapack_shape(l).count, a.size(-1), upper, l.data_as<T>(),
                    info.data_as<int32_t>());
    });
  }
  if (check_errors) check_info("linalg.cholesky", info, not_positive);
  return {l, info};
}

// The Hermitian half of L^-H tril(L^H gL) L^-1, the diagonal of the middle halved.
void cholesky_backward(Backward& b) {
  if (!b.grad(0).defined()) return;
  const bool upper = b.arg<bool>(1);
  Tensor l = upper ? adjoint(b.out(0)) : b.out(0);
  Tensor g = upper ? adjoint(b.grad(0)) : b.grad(0);
  Tensor l_h = upper ? b.out(0) : adjoint(l);
  Tensor inner = tril(matmul(l_h, g));
  inner = (inner + adjoint(tril(inner, -1))) * 0.5;
  if (is_complex(inner.dtype())) {  // the diagonal is real
    Tensor d = diagonal_of(inner);
    inner = inner - as_diagonal(d - to(real_part(d), d.dtype()));
  }
  Tensor half = triangular_solution(l_h, inner, true);
  b.set(0, triangular_solution(l, half, false, false));
}

Tensor linalg_cholesky(const Tensor& a, bool upper) {
  return ops<"linalg_cholesky_ex">(a, upper, true)[0];
}

void check_factor(const char* what, const Tensor& b, const Tensor& factor) {
  check_matrix(what, b, "B");
  check_square(what, factor, "L");
  check_same_dtype(what, b, factor, "B", "L");
  check(b.size(-2) == factor.size(-1), what, ": Incompatible matrix sizes: each matrix of B is ",
        b.size(-2), " by ", b.size(-1), ", each factor ", factor.size(-1), " by ", factor.size(-1));
}

Tensor cholesky_solve(const Tensor& b, const Tensor& factor, bool upper) {
  check_factor("cholesky_solve", b, factor);
  auto [f, rhs] = broadcast_batches("cholesky_solve", factor, b);
  Tensor x = column_major_copy(rhs);
  if (x.is_meta() || x.numel() == 0) return x;
  f = as_column_major(f);
  const int64_t n = factor.size(-1);
  visit_inexact(x.dtype(), "cholesky_solve", [&](auto tag) {
    using T = typename decltype(tag)::type;
    kernels<SolveKernels<T>>(x.device())
        .cholesky_solve(lapack_shape(x), upper, f.data_as<T>(), n * n, x.data_as<T>());
  });
  return x;
}

// From the gradient of A = L L^H (or U^H U) to that of the factor.
Tensor factor_gradient(const Tensor& ga, const Tensor& factor, bool upper) {
  Tensor both = ga + adjoint(ga);
  return upper ? triu(matmul(factor, both)) : tril(matmul(both, factor));
}
void cholesky_solve_backward(Backward& b) {
  const bool upper = b.arg<bool>(2);
  Tensor factor = b.arg<Tensor>(1);
  Tensor gb = op<"cholesky_solve">(b.grad(), factor, upper);
  b.set(0, gb);
  if (b.needs(1)) b.set(1, factor_gradient(-matmul(gb, adjoint(b.out())), factor, upper));
}

Tensor cholesky_inverse(const Tensor& factor, bool upper) {
  check_square("cholesky_inverse", factor, "L");
  Tensor x = column_major_copy(factor), info = empty_like_info(factor);
  if (x.is_meta() || x.numel() == 0) return x;
  visit_inexact(x.dtype(), "cholesky_inverse", [&](auto tag) {
    using T = typename decltype(tag)::type;
    kernels<SolveKernels<T>>(x.device())
        .cholesky_inverse(lapack_shape(x).count, x.size(-1), upper, x.data_as<T>(),
                          info.data_as<int32_t>());
  });
  check_info("cholesky_inverse", info, [](int i) {
    return str("The diagonal element ", i, " of the factor is zero, so there is no inverse.");
  });
  return x;
}
void cholesky_inverse_backward(Backward& b) {
  Tensor x = b.out();
  Tensor ga = -matmul(x, matmul(b.grad(), x));
  b.set(0, factor_gradient(ga, b.arg<Tensor>(0), b.arg<bool>(1)));
}

// ---- LDL' ----

TensorList ldl_factor_ex(const Tensor& a, bool hermitian, bool check_errors) {
  check_square("linalg.ldl_factor", a);
  Tensor ld = column_major_copy(a), info = empty_like_info(a);
  Tensor pivots = empty(join(batch_sizes(a), {a.size(-1)}), {DType::Int32, a.device()});
  if (!ld.is_meta() && ld.numel() > 0) {
    visit_inexact(a.dtype(), "linalg.ldl_factor", [&](auto tag) {
      using T = typename decltype(tag)::type;
      kernels<SolveKernels<T>>(ld.device())
          .ldl_factor(lapack_shape(ld).count, a.size(-1), hermitian, ld.data_as<T>(),
                      pivots.data_as<int32_t>(), info.data_as<int32_t>());
    });
  }
  if (check_errors) check_info("linalg.ldl_factor", info, zero_in_ldl);
  return {ld, pivots, info};
}
TensorList ldl_factor(const Tensor& a, bool hermitian) {
  TensorList f = ops<"linalg_ldl_factor_ex">(a, hermitian, true);
  return {f[0], f[1]};
}

void check_ldl_pivots(const Tensor& ld, const Tensor& pivots) {
  const char* what = "linalg.ldl_solve";
  check(pivots.dtype() == DType::Int32, what, ": pivots must be of dtype int32, got ",
        pivots.dtype());
  check(same(pivots.sizes(), join(batch_sizes(ld), {ld.size(-1)})), what,
        ": pivots must have shape ", to_string(join(batch_sizes(ld), {ld.size(-1)})),
        " for LD of shape ", to_string(ld.sizes()), ", got ", to_string(pivots.sizes()));
  if (pivots.is_meta()) return;
  const int64_t n = ld.size(-1);
  for (int64_t pivot : host_values<int32_t>(pivots)) {
    const int64_t place = std::abs(pivot);
    check(place >= 1 && place <= n, what, ": pivots must lie between 1 and ", n, " in size, got ",
          place);
  }
}

Tensor ldl_solve(const Tensor& ld, const Tensor& pivots, const Tensor& b, bool hermitian) {
  const char* what = "linalg.ldl_solve";
  check_square(what, ld, "LD");
  check_matrix(what, b, "B");
  check_same_dtype(what, ld, b, "LD", "B");
  check_ldl_pivots(ld, pivots);
  check(b.size(-2) == ld.size(-1), what, ": Incompatible shapes of LD ", to_string(ld.sizes()),
        " and B ", to_string(b.sizes()));
  auto [factor, rhs] = broadcast_batches(what, ld, b);
  Tensor x = column_major_copy(rhs);
  if (x.is_meta() || x.numel() == 0) return x;
  factor = as_column_major(factor);
  Tensor p = raw_contiguous(raw_expand(pivots, join(batch_sizes(x), {ld.size(-1)})));
  visit_inexact(x.dtype(), what, [&](auto tag) {
    using T = typename decltype(tag)::type;
    kernels<SolveKernels<T>>(x.device())
        .ldl_solve(lapack_shape(x), hermitian, factor.data_as<T>(), p.data_as<int32_t>(),
                   x.data_as<T>());
  });
  return x;
}
// A is Hermitian, or symmetric: then A^-H g is the conjugate of A^-1 applied to the conjugate of g.
void ldl_solve_backward(Backward& b) {
  const bool hermitian = b.arg<bool>(3);
  Tensor ld = b.arg<Tensor>(0), pivots = b.arg<Tensor>(1), g = b.grad();
  b.set(2, hermitian ? op<"linalg_ldl_solve">(ld, pivots, g, true)
                     : conj(op<"linalg_ldl_solve">(ld, pivots, conj(g), false)));
}

const Define kCholeskyOps[] = {
    {"linalg_solve_triangular(self: Tensor, B: Tensor, *, upper: bool, left: bool = True, "
     "unitriangular: bool = False) -> Tensor",
     "X of A X = B, or of X A = B unless `left`, for a triangular A (`input`), of which only that "
     "triangle is read; its diagonal counts as ones with `unitriangular`. Batches broadcast. No "
     "error where A is singular: the results are not finite.",
     kernel(solve_triangular),
     {.backward = solve_triangular_backward,
      .saves = saves_arg(0) | saves_out(),
      .forms = kFunctionOut,
      .module = "linalg",
      .heavy = true,
      .vmap = vmap::leading(2, 2),
      .out_memory = {.same_or_disjoint = 0b10}}},
    {"triangular_solve(self: Tensor, A: Tensor, upper: bool = True, transpose: bool = False, "
     "unitriangular: bool = False) -> (solution: Tensor, cloned_coefficient: Tensor)",
     "X of A X = self for a triangular A, or for its transpose, and a copy of A. "
     "`linalg.solve_triangular` is the newer form.",
     kernel(triangular_solve), kLinalgMethod.with(kFloat32OnCpu)},
    {"linalg_cholesky_ex(self: Tensor, *, upper: bool = False, check_errors: bool = False) -> (L: "
     "Tensor, info: Tensor)",
     "`cholesky` without an error: `info` is 0, or the order of the first leading minor that is "
     "not "
     "positive-definite.",
     kernel(cholesky_ex),
     {.backward = cholesky_backward,
      .saves = saves_out(0),
      .forms = kFunctionOut,
      .non_differentiable = 0b10,
      .module = "linalg",
      .heavy = true,
      .autocast = kFloat32OnCpu,
      .vmap = vmap::leading(2)}},
    {"linalg_cholesky(self: Tensor, *, upper: bool = False) -> Tensor",
     "L of A = L L^H for Hermitian positive-definite matrices (*, n, n), of which one triangle is "
     "read; with `upper`, U of A = U^H U. LinAlgError where A is not positive-definite.",
     kernel(linalg_cholesky), kLinalg.with(kFloat32OnCpu)},
    {"cholesky(self: Tensor, upper: bool = False) -> Tensor", "The same as `linalg.cholesky`.",
     kernel(linalg_cholesky), kLinalgMethod.with(kFloat32OnCpu).with(OutDtype::Castable)},
    {"cholesky_solve(self: Tensor, input2: Tensor, upper: bool = False) -> Tensor",
     "X of A X = self, given the Cholesky factor `input2` of A. Batches broadcast.",
     kernel(cholesky_solve),
     {.backward = cholesky_solve_backward,
      .saves = saves_arg(1) | saves_out(),
      .forms = kPublic | kOut,
      .autocast = kFloat32OnCpu,
      .vmap = vmap::leading(2, 2),
      .out_dtype = OutDtype::Castable}},
    {"cholesky_inverse(self: Tensor, upper: bool = False) -> Tensor",
     "The inverse of the matrix whose Cholesky factor is given.",
     kernel(cholesky_inverse),
     {.backward = cholesky_inverse_backward,
      .saves = saves_arg(0) | saves_out(),
      .forms = kPublic | kOut,
      .autocast = kFloat32OnCpu,
      .vmap = vmap::leading(2),
      .out_dtype = OutDtype::Castable}},
    {"linalg_ldl_factor_ex(self: Tensor, *, hermitian: bool = False, check_errors: bool = False) "
     "-> "
     "(LD: Tensor, pivots: Tensor, info: Tensor)",
     "The factors of a symmetric (or `hermitian`) matrix, A = P L D L^T P^T, from its lower "
     "triangle, packed as LAPACK's sytrf packs them; and 0, or the place of a zero in D.",
     kernel(ldl_factor_ex),
     {.forms = kFunctionOut,
      .non_differentiable = 0b110,
      .module = "linalg",
      .heavy = true,
      .on_host = true,
      .vmap = vmap::leading(2)}},
    {"linalg_ldl_factor(self: Tensor, *, hermitian: bool = False) -> (LD: Tensor, pivots: Tensor)",
     "The factors that `ldl_factor_ex` gives; LinAlgError where D is singular.", kernel(ldl_factor),
     kLinalg},
    {"linalg_ldl_solve(LD: Tensor, pivots: Tensor, B: Tensor, *, hermitian: bool = False) -> "
     "Tensor",
     "X of A X = B, from A's factors by `ldl_factor`. B gets a gradient, the factors do not.",
     kernel(ldl_solve),
     {.backward = ldl_solve_backward,
      .saves = saves_arg(0) | saves_arg(1),
      .forms = kFunctionOut,
      .module = "linalg",
      .heavy = true,
      .on_host = true,
      .vmap = vmap::leading(2, 1, 2)}},
};

}  // namespace
}  // namespace taeda
