// QR factors and products of Householder reflectors.
#include "ops/linalg/linalg.h"

namespace taeda {
namespace {

// ---- factors ----

TensorList qr_factor(const Tensor& a) {
  Tensor f = column_major_copy(a), tau = empty(join(batch_sizes(a), {short_side(a)}), a.options());
  if (!f.is_meta() && f.numel() > 0) {
    visit_inexact(a.dtype(), "linalg.qr", [&](auto tag) {
      using T = typename decltype(tag)::type;
      kernels<QrKernels<T>>(a.device()).factor(lapack_shape(a), f.data_as<T>(), tau.data_as<T>());
    });
  }
  return {f, tau};
}
TensorList geqrf(const Tensor& a) {
  check_matrix("geqrf", a);
  return qr_factor(a);
}

// The first `cols` columns of Q from k reflectors.
Tensor form_q(const Tensor& factor, const Tensor& tau, int64_t cols) {
  const int64_t m = factor.size(-2), k = tau.size(-1);
  Tensor q = empty_column_major(join(batch_sizes(factor), {m, cols}), factor.options());
  if (q.is_meta() || q.numel() == 0) return q;
  copy_into(raw_narrow(q, q.dim() - 1, 0, k), raw_narrow(factor, factor.dim() - 1, 0, k));
  Tensor scales = raw_contiguous(tau);
  visit_inexact(q.dtype(), "linalg.householder_product", [&](auto tag) {
    using T = typename decltype(tag)::type;
    kernels<QrKernels<T>>(q.device())
        .form_q(lapack_shape(q), k, q.data_as<T>(), scales.data_as<T>());
  });
  return q;
}

Tensor raw_upper(const Tensor& factor, int64_t rows) {
  GradMode off(false);
  return column_major_copy(op<"triu">(raw_narrow(factor, factor.dim() - 2, 0, rows), 0));
}

TensorList linalg_qr(const Tensor& a, const std::string& mode) {
  check_matrix("linalg.qr", a);
  check(mode == "reduced" || mode == "complete" || mode == "r", "linalg.qr: received mode '", mode,
        "' but expected one of 'reduced' (default), 'r', or 'complete'");
  const int64_t m = a.size(-2), k = mode == "complete" ? m : short_side(a);
  TensorList f = qr_factor(a);
  Tensor r = raw_upper(f[0], std::min(k, m));
  if (mode == "r") return {empty(Dims{0}, a.options()), r};
  return {form_q(f[0], f[1], k), r};
}

// a = Q R with as many columns as rows in R: (gQ + Q S) R^-H, S the Hermitian matrix whose upper
// triangle is that of R gR^H - Q^H gQ. Columns of R beyond a square are Q^H a and add to gQ.
void qr_backward(Backward& b) {
  const std::string mode = b.arg<std::string>(1);
  check(mode != "r", "linalg.qr: the derivative depends on Q, which mode='r' does not compute");
  Tensor q = b.out(0), r = b.out(1);
  const int64_t m = q.size(-2), n = r.size(-1), k = r.size(-2);
  check(mode != "complete" || m <= n,
        "linalg.qr: there is no derivative with mode='complete' for matrices with more rows than "
        "columns, got ",
        m, " by ", n);
  if (!b.grad(0).defined() && !b.grad(1).defined()) return;
  Tensor gq = b.grad_or_zeros(0), gr = b.grad_or_zeros(1), beyond;
  if (n > k) {
    Tensor r_beyond = narrow(r, -1, k, n - k), gr_beyond = narrow(gr, -1, k, n - k);
    beyond = matmul(q, gr_beyond);
    gq = gq + matmul(q, matmul(r_beyond, adjoint(gr_beyond)));
    r = narrow(r, -1, 0, k);
    gr = narrow(gr, -1, 0, k);
  }
  Tensor upper = triu(matmul(gr, adjoint(r)) - matmul(adjoint(q), gq));
  Tensor middle = upper + adjoint(triu(upper, 1));
  if (is_complex(middle.dtype())) {  // the diagonal is real
    Tensor d = diagonal_of(upper);
    middle = middle - as_diagonal(d - to(real_part(d), d.dtype()));
  }
  Tensor g = triangular_solution(adjoint(r), gq + matmul(q, middle), false, false);
  b.set(0, n > k ? op<"cat">(TensorList{g, beyond}, -1) : g);
}

TensorList qr(const Tensor& self, bool some) {
  return ops<"linalg_qr">(self, some ? "reduced" : "complete");
}

// ---- products of reflectors ----

void check_reflectors(const char* what, const Tensor& a, const Tensor& tau) {
  check_matrix(what, a, "input");
  check_same_dtype(what, a, tau, "input", "tau");
  check(a.size(-2) >= a.size(-1), what,
        ": input.shape[-2] must be greater than or equal to input.shape[-1], got ",
        to_string(a.sizes()));
  check(tau.dim() == a.dim() - 1 && same(batch_sizes(a), tau.sizes().first(tau.sizes().size() - 1)),
        what, ": tau must have the batch dimensions of input and one more, got tau of shape ",
        to_string(tau.sizes()), " for input of shape ", to_string(a.sizes()));
  check(tau.size(-1) <= a.size(-1), what,
        ": input.shape[-1] must be greater than or equal to tau.shape[-1], got ", a.size(-1),
        " and ", tau.size(-1));
}

// Q = I - V T V^H with unit lower triangular V and T = (I + D triu(V^H V, 1))^-1 D, D = diag(tau)
// (Schreiber and Van Loan, 1989): the product as a formula, for its derivatives.
struct Compact {
  Tensor v, t;
  Compact(const Tensor& a, const Tensor& tau) {
    const int64_t m = a.size(-2), k = tau.size(-1);
    v = tril(narrow(a, -1, 0, k), -1) + op<"eye">(m, k, a.dtype(), a.device(), false);
    Tensor inner = unsqueeze(tau, -1) * triu(matmul(adjoint(v), v), 1);
    t = triangular_solution(inner, as_diagonal(tau), true, true, true);
  }
};

Tensor householder_raw(const Tensor& a, const Tensor& tau) {
  check_reflectors("linalg.householder_product", a, tau);
  return form_q(a, tau, a.size(-1));
}
Tensor householder(const Tensor& a, const Tensor& tau) {
  check_reflectors("linalg.householder_product", a, tau);
  if (!wants_grad(a) && !wants_grad(tau)) return op<"_linalg_householder">(a, tau);
  const int64_t m = a.size(-2), n = a.size(-1);
  Compact c(a, tau);
  Tensor rows = narrow(adjoint(c.v), -1, 0, n);
  return op<"eye">(m, n, a.dtype(), a.device(), false) - matmul(c.v, matmul(c.t, rows));
}

void check_ormqr(const Tensor& self, const Tensor& tau, const Tensor& other, bool left) {
  check_matrix("ormqr", self, "input");
  check_matrix("ormqr", other, "other");
  check_same_dtype("ormqr", self, tau, "input", "tau");
  check_same_dtype("ormqr", self, other, "input", "other");
  const int64_t m = other.size(left ? -2 : -1);
  check(tau.dim() >= 1 && tau.size(-1) <= m, "ormqr: other.shape[", left ? -2 : -1,
        "] must be greater than or equal to tau.shape[-1], got other of shape ",
        to_string(other.sizes()), " and tau of shape ", to_string(tau.sizes()));
  check(self.size(-2) == m, "ormqr: other.shape[", left ? -2 : -1,
        "] must be equal to input.shape[-2], got ", m, " and ", self.size(-2));
  check(tau.size(-1) <= self.size(-1),
        "ormqr: tau.shape[-1] must be less than or equal to "
        "input.shape[-1], got ",
        tau.size(-1), " and ", self.size(-1));
  check(tau.dim() == self.dim() - 1 &&
            same(batch_sizes(self), tau.sizes().first(tau.sizes().size() - 1)),
        "ormqr: tau must have the batch dimensions of input and one more, got tau of shape ",
        to_string(tau.sizes()), " for input of shape ", to_string(self.sizes()));
  check(other.dim() == self.dim() && same(batch_sizes(self), batch_sizes(other)),
        "ormqr: batch dimensions of other must be equal to those of input, got ",
        to_string(other.sizes()), " and ", to_string(self.sizes()));
}

Tensor ormqr_raw(const Tensor& a_in, const Tensor& tau_in, const Tensor& other, bool left,
                 bool transposed) {
  check_ormqr(a_in, tau_in, other, left);
  const int64_t k = tau_in.size(-1);
  Tensor c = column_major_copy(other);
  if (c.is_meta() || c.numel() == 0 || k == 0) return c;
  Tensor a = as_column_major(raw_narrow(a_in, a_in.dim() - 1, 0, k));
  Tensor tau = raw_contiguous(tau_in);
  visit_inexact(c.dtype(), "ormqr", [&](auto tag) {
    using T = typename decltype(tag)::type;
    kernels<QrKernels<T>>(c.device())
        .multiply(lapack_shape(c), left, transposed ? Trans::Conj : Trans::No, k, a.data_as<T>(),
                  tau.data_as<T>(), c.data_as<T>());
  });
  return c;
}
Tensor ormqr(const Tensor& self, const Tensor& tau, const Tensor& other, bool left,
             bool transposed) {
  check_ormqr(self, tau, other, left);
  if (!wants_grad(self) && !wants_grad(tau) && !wants_grad(other))
    return op<"_linalg_ormqr">(self, tau, other, left, transposed);
  Compact c(self, tau);
  Tensor t = transposed ? adjoint(c.t) : c.t;
  return left ? other - matmul(c.v, matmul(t, matmul(adjoint(c.v), other)))
              : other - matmul(matmul(matmul(other, c.v), t), adjoint(c.v));
}

const Define kQrOps[] = {
    {"linalg_qr(A: Tensor, mode: str = 'reduced') -> (Q: Tensor, R: Tensor)",
     "A = Q R for matrices (*, m, n), Q with orthonormal columns and R upper triangular. "
     "'reduced': Q (m, k), R (k, n) with k = min(m, n). 'complete': Q (m, m), R (m, n). 'r': as "
     "'reduced', with an empty Q.",
     kernel(linalg_qr),
     {.backward = qr_backward,
      .saves = saves_out(0) | saves_out(1),
      .forms = kFunction | kOut,
      .module = "linalg",
      .heavy = true,
      .autocast = kFloat32OnCpu,
      .vmap = vmap::leading(2)}},
    {"qr(self: Tensor, some: bool = True) -> (Q: Tensor, R: Tensor)",
     "`linalg.qr` with mode 'reduced', or 'complete' unless `some`.", kernel(qr),
     kLinalgMethod.with(kFloat32OnCpu)},
    {"geqrf(self: Tensor) -> (a: Tensor, tau: Tensor)",
     "The QR factors as LAPACK's geqrf gives them: R in the upper triangle of `a`, reflectors "
     "below "
     "it, their scales in `tau`.",
     kernel(geqrf),
     {.forms = kPublic | kOut,
      .autocast = kFloat32OnCpu,
      .vmap = vmap::leading(2),
      .out_dtype = OutDtype::Castable}},
    {"_linalg_householder(input: Tensor, tau: Tensor) -> Tensor",
     "A product of reflectors.",
     kernel(householder_raw),
     {.vmap = vmap::leading(2, 1)}},
    {"linalg_householder_product(input: Tensor, tau: Tensor) -> Tensor",
     "The first n columns of the product of the reflectors I - tau_i v_i v_i^H, whose vectors "
     "stand "
     "below the diagonal of `input` (*, m, n); tau (*, k) with k <= n <= m.",
     kernel(householder), kLinalg.with(kFloat32OnCpu).with(OutDtype::Castable)},
    {"orgqr(self: Tensor, input2: Tensor) -> Tensor", "The same as `linalg.householder_product`.",
     kernel(householder), kLinalgMethod.with(kFloat32OnCpu).with(OutDtype::Castable)},
    {"_linalg_ormqr(self: Tensor, input2: Tensor, input3: Tensor, left: bool, transpose: bool) -> "
     "Tensor",
     "A product with a product of reflectors.",
     kernel(ormqr_raw),
     {.vmap = vmap::leading(2, 1, 2)}},
    {"ormqr(self: Tensor, input2: Tensor, input3: Tensor, left: bool = True, transpose: bool = "
     "False) -> Tensor",
     "Q C, or C Q unless `left`, for the product Q of the reflectors that `geqrf` gives as `self` "
     "and `input2`, and C = `input3`; with `transpose` Q^H for Q. Q itself is never formed.",
     kernel(ormqr), kLinalgMethod.with(kFloat32OnCpu)},
};

}  // namespace
}  // namespace taeda
