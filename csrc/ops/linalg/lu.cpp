// LU factors, what is solved with them, and inverses.
#include "kernels/matrices.h"
#include "ops/linalg/linalg.h"

namespace taeda {

LuFactor lu_factorize(const char* what, const Tensor& a) {
  LuFactor f{column_major_copy(a),
             empty(join(batch_sizes(a), {short_side(a)}), {DType::Int32, a.device()}),
             empty_like_info(a)};
  if (a.is_meta() || a.numel() == 0) return f;
  visit_inexact(a.dtype(), what, [&](auto tag) {
    using T = typename decltype(tag)::type;
    kernels<SolveKernels<T>>(a.device())
        .lu_factor(lapack_shape(a), f.lu.data_as<T>(), f.pivots.data_as<int32_t>(),
                   f.info.data_as<int32_t>());
  });
  return f;
}

namespace {

std::string singular_factor(int i) {
  return str("U[", i, ",", i,
             "] is zero, so the matrix is singular and a solution with its factor "
             "would divide by zero; linalg.lu_factor_ex gives the factor all the same");
}
std::string singular_solve(int) {
  return "The solver failed because the input matrix is singular.";
}
std::string singular_inverse(int i) {
  return str(
      "The diagonal element ", i,
      " is zero, the inversion could not be completed because the input matrix is singular.");
}

// ---- factors ----

TensorList lu_factor_ex(const Tensor& a, bool pivot, bool check_errors) {
  check_matrix("linalg.lu_factor", a);
  check(pivot, "linalg.lu_factor: LU without pivoting is not implemented on the CPU");
  LuFactor f = lu_factorize("linalg.lu_factor", a);
  if (check_errors) check_info("linalg.lu_factor", f.info, singular_factor);
  return {f.lu, f.pivots, f.info};
}

// The rows of a permuted by P (of a = P L U) or by its transpose: x[..., order, :].
Tensor permute_rows(const Tensor& x, const Tensor& order) {
  return op<"gather">(x, -2, expand(unsqueeze(order, -1), x.sizes()));
}
Tensor row_order(const Tensor& pivots, int64_t rows) {
  return op<"_linalg_row_order">(pivots, rows);
}

// With a = P L U, the gradient of a's square part is P L^-H [tril(L^H gL, -1) + triu(gU U^H)] U^-H;
// the columns or rows beyond the square part contribute to gL or gU through their own equations.
void lu_factor_backward(Backward& b) {
  Tensor lu = b.out(0), g = b.grad_or_zeros(0);
  const int64_t m = lu.size(-2), n = lu.size(-1), k = std::min(m, n);
  Tensor square = narrow(narrow(lu, -2, 0, k), -1, 0, k);
  Tensor unit_l = tril(square, -1) + identity(k, lu.options()), u = triu(square);
  Tensor g_square = narrow(narrow(g, -2, 0, k), -1, 0, k);
  Tensor lower = matmul(adjoint(unit_l), tril(g_square, -1));
  Tensor upper = matmul(triu(g_square), adjoint(u));
  Tensor beyond;
  if (m < n) {
    beyond = narrow(g, -1, k, n - k);
    lower = lower - matmul(beyond, adjoint(narrow(lu, -1, k, n - k)));
  } else if (m > n) {
    beyond = narrow(g, -2, k, m - k);
    upper = upper - matmul(adjoint(narrow(lu, -2, k, m - k)), beyond);
  }
  Tensor u_h = adjoint(u), l_h = adjoint(unit_l);
  Tensor result = triangular_solution(u_h, tril(lower, -1) + triu(upper), false, false);
  result = triangular_solution(l_h, result, true, true, true);
  if (m < n)
    result = op<"cat">(TensorList{result, triangular_solution(l_h, beyond, true, true, true)}, -1);
  else if (m > n)
    result = op<"cat">(TensorList{result, triangular_solution(u_h, beyond, false, false)}, -2);
  Tensor inverse = op<"argsort">(row_order(b.out(1), m), -1, false);
  b.set(0, permute_rows(result, inverse));
}

TensorList lu_factor(const Tensor& a, bool pivot) {
  TensorList f = ops<"linalg_lu_factor_ex">(a, pivot, false);
  check_info("linalg.lu_factor", f[2], singular_factor);
  return {f[0], f[1]};
}
TensorList lu_legacy(const Tensor& self, bool pivot, bool get_infos) {
  TensorList f = ops<"linalg_lu_factor_ex">(self, pivot, false);
  if (!get_infos) f.pop_back();
  return f;
}

// The order in which P takes rows: row order[i] of a is row i of L U.
Tensor row_order_op(const Tensor& pivots, int64_t rows) {
  check(pivots.dtype() == DType::Int32 && pivots.dim() >= 1 && pivots.size(-1) <= rows,
        "lu_unpack(): pivots must be int32, at most one for each of ", rows, " rows, got ",
        pivots.dtype(), " of shape ", to_string(pivots.sizes()));
  Dims sizes(pivots.sizes());
  const int64_t k = sizes.back();
  sizes.back() = rows;
  Tensor order = empty(sizes, {DType::Int64, pivots.device()});
  if (order.is_meta() || order.numel() == 0) return order;
  Tensor plain = raw_contiguous(pivots);
  const LinalgKernels& matrices = kernels<LinalgKernels>(pivots.device());
  const auto bad = matrices.find_bad_pivot(plain.numel(), rows, plain.data_as<int32_t>());
  check(!bad, "lu_unpack(): pivots must lie between 1 and ", rows, ", the number of rows, got ",
        bad.value_or(0));
  matrices.row_order(order.numel() / rows, k, rows, plain.data_as<int32_t>(),
                     order.data_as<int64_t>());
  return order;
}

void check_pivots(const char* what, const Tensor& lu, const Tensor& pivots) {
  check(pivots.dtype() == DType::Int32, what,
        ": pivots must be of dtype int32, as lu_factor gives "
        "them, got ",
        pivots.dtype());
  check(pivots.dim() >= 1 && pivots.dim() == lu.dim() - 1 &&
            same(pivots.sizes(), join(batch_sizes(lu), {short_side(lu)})),
        what, ": pivots must have shape ", to_string(join(batch_sizes(lu), {short_side(lu)})),
        " for LU of shape ", to_string(lu.sizes()), ", got ", to_string(pivots.sizes()));
}

TensorList lu_unpack(const Tensor& lu, const Tensor& pivots, bool data, bool with_pivots) {
  check_matrix("lu_unpack", lu, "LU_data");
  if (with_pivots) check_pivots("lu_unpack", lu, pivots);
  const int64_t m = lu.size(-2), n = lu.size(-1), k = std::min(m, n);
  const Options o = lu.options();
  Tensor p = empty(Dims{0}, o), l = empty(Dims{0}, o), u = empty(Dims{0}, o);
  if (data) {
    Tensor eye = op<"eye">(m, k, o.dtype, o.device, false);
    l = tril(narrow(lu, -1, 0, k), -1) + eye;
    u = triu(narrow(lu, -2, 0, k));
  }
  if (with_pivots) {
    Tensor order = unsqueeze(row_order(pivots, m), -2);
    p = op<"scatter">(zeros(join(batch_sizes(lu), {m, m}), o), -2, order,
                      full(order.sizes(), Scalar(1), o));
  }
  return {p, l, u};
}

TensorList lu(const Tensor& a, bool pivot) {
  check(pivot, "linalg.lu: LU without pivoting is not implemented on the CPU");
  TensorList f = ops<"linalg_lu_factor_ex">(a, true, false);
  return ops<"lu_unpack">(f[0], f[1], true, true);
}

// ---- solving with a factor ----

void check_factored(const Tensor& lu, const Tensor& pivots, const Tensor& b, bool left) {
  check_square("linalg.lu_solve", lu, "LU");
  check_matrix("linalg.lu_solve", b, "B");
  check_same_dtype("linalg.lu_solve", lu, b, "LU", "B");
  check_pivots("linalg.lu_solve", lu, pivots);
  check(b.size(left ? -2 : -1) == lu.size(-1), "linalg.lu_solve: Incompatible shapes of LU ",
        to_string(lu.sizes()), " and B ", to_string(b.sizes()),
        left ? " for A X = B" : " for X A = B");
}

Tensor solve_factored(const Tensor& lu_in, const Tensor& pivots_in, const Tensor& b, bool conj_t) {
  check_factored(lu_in, pivots_in, b, true);
  auto [lu, rhs] = broadcast_batches("linalg.lu_solve", lu_in, b);
  Tensor x = column_major_copy(rhs);
  if (x.is_meta() || x.numel() == 0) return x;
  lu = as_column_major(lu);
  Tensor pivots =
      raw_contiguous(raw_expand(pivots_in, join(batch_sizes(lu), {pivots_in.size(-1)})));
  const int64_t n = lu.size(-1);
  const auto bad = kernels<LinalgKernels>(x.device())
                       .find_bad_pivot(pivots.numel(), n, pivots.data_as<int32_t>());
  check(!bad, "linalg.lu_solve: pivots must lie between 1 and ", n, ", got ", bad.value_or(0));
  visit_inexact(x.dtype(), "linalg.lu_solve", [&](auto tag) {
    using T = typename decltype(tag)::type;
    kernels<SolveKernels<T>>(x.device())
        .lu_solve(lapack_shape(x), conj_t ? Trans::Conj : Trans::No, lu.data_as<T>(), n * n,
                  pivots.data_as<int32_t>(), n, x.data_as<T>());
  });
  return x;
}
void solve_factored_backward(Backward& b) {
  b.set(2, op<"_linalg_lu_solve">(b.arg<Tensor>(0), b.arg<Tensor>(1), b.grad(), !b.arg<bool>(3)));
}

Tensor lu_solve(const Tensor& lu, const Tensor& pivots, const Tensor& b, bool left, bool conj_t) {
  check_factored(lu, pivots, b, left);
  if (!left) return adjoint(op<"linalg_lu_solve">(lu, pivots, adjoint(b), true, !conj_t));
  if (!wants_grad(lu)) return op<"_linalg_lu_solve">(lu, pivots, b, conj_t);
  // As two triangular solves, for the gradient of the factor too.
  const int64_t n = lu.size(-1);
  Tensor unit_l = tril(lu, -1) + identity(n, lu.options());
  Tensor order = row_order(pivots, n);
  auto rows = [&](const Tensor& x, const Tensor& o) {
    Dims batch = broadcast_sizes(batch_sizes(x), o.sizes().first(o.sizes().size() - 1));
    return op<"gather">(expand(x, join(batch, {x.size(-2), x.size(-1)})), -2,
                        expand(unsqueeze(o, -1), join(batch, {x.size(-2), x.size(-1)})));
  };
  if (!conj_t) {
    Tensor y = triangular_solution(unit_l, rows(b, order), false, true, true);
    return triangular_solution(lu, y, true);
  }
  Tensor lu_h = adjoint(lu), l_h = adjoint(unit_l);
  Tensor y = triangular_solution(lu_h, b, false);
  return rows(triangular_solution(l_h, y, true, true, true), op<"argsort">(order, -1, false));
}
Tensor lu_solve_legacy(const Tensor& self, const Tensor& lu, const Tensor& pivots) {
  return op<"linalg_lu_solve">(lu, pivots, self, true, false);
}

// ---- solve ----

TensorList solve_raw(const Tensor& a, const Tensor& b, bool left, bool check_errors) {
  const char* what = "linalg.solve";
  check_square(what, a);
  check_same_dtype(what, a, b);
  check_matrix(what, b, "B");
  check(b.size(left ? -2 : -1) == a.size(-1), what,
        ": Incompatible shapes of A and B for the equation ", left ? "AX = B" : "XA = B", " (",
        a.size(-2), "x", a.size(-1), " and ", b.size(-2), "x", b.size(-1), ")");
  LuFactor f = lu_factorize("linalg.solve", a);
  if (check_errors) check_info("linalg.solve", f.info, singular_solve);
  // x a = b is a^T x^T = b^T.
  auto [lu, rhs] = broadcast_batches("linalg.solve", f.lu, left ? b : raw_transpose(b));
  Tensor x = column_major_copy(rhs);
  if (!x.is_meta() && x.numel() > 0) {
    Tensor factors = as_column_major(lu);
    const int64_t n = a.size(-1);
    Tensor pivots = raw_contiguous(raw_expand(f.pivots, join(batch_sizes(lu), {n})));
    visit_inexact(x.dtype(), "linalg.solve", [&](auto tag) {
      using T = typename decltype(tag)::type;
      kernels<SolveKernels<T>>(x.device())
          .lu_solve(lapack_shape(x), left ? Trans::No : Trans::Yes, factors.data_as<T>(), n * n,
                    pivots.data_as<int32_t>(), n, x.data_as<T>());
    });
  }
  return {left ? x : raw_transpose(x), f.lu, f.pivots, f.info};
}

// The gradient of b: solves again, or reuses the factor if this will not be differentiated.
Tensor solve_gradient(Backward& b, const Tensor& g, bool left) {
  if (derivative_in_ops()) return op<"linalg_solve">(adjoint(b.arg<Tensor>(0)), g, left);
  Tensor lu = b.out(1), pivots = b.out(2);
  return left ? op<"_linalg_lu_solve">(lu, pivots, g, true)
              : adjoint(op<"_linalg_lu_solve">(lu, pivots, adjoint(g), false));
}
void solve_backward(Backward& b) {
  if (!b.grad(0).defined()) return;
  const bool left = b.arg<bool>(2);
  Tensor gb = solve_gradient(b, b.grad(0), left);
  if (b.needs(0)) {
    Tensor x_h = adjoint(b.out(0));
    b.set(0, -(left ? matmul(gb, x_h) : matmul(x_h, gb)));
  }
  b.set(1, gb);
}

bool is_vector_side(const Tensor& a, const Tensor& b) {
  return b.dim() == 1 ||
         (a.dim() - 1 == b.dim() && same(b.sizes(), a.sizes().first(a.sizes().size() - 1)));
}

TensorList solve_ex(const Tensor& a, const Tensor& b, bool left, bool check_errors) {
  const char* what = "linalg.solve";
  check_square(what, a);
  const bool vector = is_vector_side(a, b);
  check(left || !vector, what, ": with left=False, B must be a matrix, got shape ",
        to_string(b.sizes()), " for A of shape ", to_string(a.sizes()));
  TensorList r = ops<"_linalg_solve_ex">(a, vector ? unsqueeze(b, -1) : b, left, check_errors);
  return {vector ? squeeze(r[0], -1) : r[0], r[3]};
}
Tensor solve(const Tensor& a, const Tensor& b, bool left) {
  return ops<"linalg_solve_ex">(a, b, left, true)[0];
}

// ---- inverse ----

TensorList inverse_ex(const Tensor& a, bool check_errors) {
  check_square("linalg.inv", a);
  LuFactor f = lu_factorize("linalg.inv", a);
  if (check_errors) check_info("linalg.inv", f.info, singular_inverse);
  Tensor x = empty_column_major(a.sizes(), a.options());
  raw_identity(x);
  if (!x.is_meta() && x.numel() > 0) {
    const int64_t n = a.size(-1);
    visit_inexact(x.dtype(), "linalg.inv", [&](auto tag) {
      using T = typename decltype(tag)::type;
      kernels<SolveKernels<T>>(x.device())
          .lu_solve(lapack_shape(x), Trans::No, f.lu.data_as<T>(), n * n,
                    f.pivots.data_as<int32_t>(), n, x.data_as<T>());
    });
  }
  return {x, f.info};
}
void inverse_backward(Backward& b) {
  if (!b.grad(0).defined()) return;
  Tensor x_h = adjoint(b.out(0));
  b.set(0, -matmul(x_h, matmul(b.grad(0), x_h)));
}
Tensor inverse(const Tensor& a) { return ops<"linalg_inv_ex">(a, true)[0]; }

const Define kLuOps[] = {
    {"linalg_lu_factor_ex(A: Tensor, *, pivot: bool = True, check_errors: bool = False) -> (LU: "
     "Tensor, pivots: Tensor, info: Tensor)",
     "The factors of A = P L U in one matrix, L without its diagonal of ones; the exchanges of "
     "rows "
     "that make P, counted from 1; and 0, or the place of the first zero on U's diagonal. Matrices "
     "(*, m, n). LinAlgError for the latter with `check_errors`.",
     kernel(lu_factor_ex),
     {.backward = lu_factor_backward,
      .saves = saves_out(0) | saves_out(1),
      .forms = kFunctionOut,
      .non_differentiable = 0b110,
      .module = "linalg",
      .heavy = true,
      .vmap = vmap::leading(2)}},
    {"linalg_lu_factor(A: Tensor, *, pivot: bool = True) -> (LU: Tensor, pivots: Tensor)",
     "The factors of A = P L U, as `lu_factor_ex` gives them; LinAlgError where U has a zero on "
     "its "
     "diagonal.",
     kernel(lu_factor), kLinalg},
    {"linalg_lu(A: Tensor, *, pivot: bool = True) -> (P: Tensor, L: Tensor, U: Tensor)",
     "A = P L U with a permutation, a lower triangle with ones on its diagonal, and an upper one.",
     kernel(lu), kLinalg},
    {"lu(self: Tensor, pivot: bool = True, get_infos: bool = False) -> Tensor[]",
     "LU and pivots as `linalg.lu_factor_ex` gives them, with `get_infos` also its `info`.",
     kernel(lu_legacy),
     {.forms = kMethod, .composite = true, .heavy = true}},
    {"_linalg_row_order(pivots: Tensor, rows: int) -> Tensor",
     "The permutation that exchanges of rows add up to.",
     kernel(row_order_op),
     {.non_differentiable = 1, .vmap = vmap::leading(1)}},
    {"lu_unpack(LU_data: Tensor, LU_pivots: Tensor, unpack_data: bool = True, unpack_pivots: bool "
     "= "
     "True) -> (P: Tensor, L: Tensor, U: Tensor)",
     "P, L and U from what `linalg.lu_factor` gives; empty tensors for what is not asked for.",
     kernel(lu_unpack),
     {.forms = kFunctionOut, .composite = true, .heavy = true}},
    {"_linalg_lu_solve(LU: Tensor, pivots: Tensor, B: Tensor, adjoint: bool) -> Tensor",
     "X of A X = B, or of A^H X = B.",
     kernel(solve_factored),
     {.backward = solve_factored_backward,
      .saves = saves_arg(0) | saves_arg(1),
      .vmap = vmap::leading(2, 1, 2)}},
    {"linalg_lu_solve(LU: Tensor, pivots: Tensor, B: Tensor, *, left: bool = True, adjoint: bool = "
     "False) -> Tensor",
     "X of A X = B (X A = B unless `left`), or with A^H for A, from A's factors by `lu_factor`.",
     kernel(lu_solve), kLinalg},
    {"lu_solve(self: Tensor, LU_data: Tensor, LU_pivots: Tensor) -> Tensor",
     "X of A X = self, from A's factors by `linalg.lu_factor`.", kernel(lu_solve_legacy),
     kLinalgMethod.with(kFloat32OnCpu)},
    {"_linalg_solve_ex(A: Tensor, B: Tensor, left: bool, check_errors: bool) -> (Tensor, Tensor, "
     "Tensor, Tensor)",
     "The solution, the factors, the pivots and whether it went well.",
     kernel(solve_raw),
     {.backward = solve_backward,
      .saves = saves_arg(0) | saves_out(0) | saves_out(1) | saves_out(2),
      .non_differentiable = 0b1110,
      .vmap = vmap::loop}},
    {"linalg_solve_ex(A: Tensor, B: Tensor, *, left: bool = True, check_errors: bool = False) -> "
     "(result: Tensor, info: Tensor)",
     "`solve` without an error for a singular matrix: `info` holds the place of the zero pivot, 0 "
     "where there is none.",
     kernel(solve_ex), kLinalg},
    {"linalg_solve(A: Tensor, B: Tensor, *, left: bool = True) -> Tensor",
     "X of A X = B, or of X A = B unless `left`. A (*, n, n); B a vector, a batch of vectors as "
     "long as A's batch, or matrices. Batches broadcast. LinAlgError where A is singular.",
     kernel(solve), kLinalg.with(kFloat32OnCpu)},
    {"linalg_inv_ex(A: Tensor, *, check_errors: bool = False) -> (inverse: Tensor, info: Tensor)",
     "The inverse, and 0 or the place of the zero pivot that prevents it.",
     kernel(inverse_ex),
     {.backward = inverse_backward,
      .saves = saves_out(0),
      .forms = kFunctionOut,
      .non_differentiable = 0b10,
      .module = "linalg",
      .heavy = true,
      .autocast = kFloat32OnCpu,
      .vmap = vmap::leading(2)}},
    {"linalg_inv(A: Tensor) -> Tensor",
     "The inverse of square matrices (*, n, n); LinAlgError where there is none.", kernel(inverse),
     kLinalg.with(kFloat32OnCpu)},
    {"inverse(self: Tensor) -> Tensor", "The same as `linalg.inv`.", kernel(inverse),
     kLinalgMethod.with(kFloat32OnCpu)},
};

}  // namespace
}  // namespace taeda
