// Eigenvalues and eigenvectors.
#include "ops/linalg/linalg.h"

namespace taeda {
namespace {

std::string no_eigenvalues(int i) {
  return str(
      "The algorithm failed to converge because the input matrix is ill-conditioned or has "
      "too many repeated eigenvalues (error code: ",
      i, ").");
}

Tensor off_diagonal(const Tensor& a) {
  Tensor mask = to(identity(a.size(-1), {DType::Float32, a.device()}), DType::Bool);
  return op<"masked_fill">(a, mask, Tensor(0));
}
// values[j] - values[i] at (i, j), and 1 on the diagonal.
Tensor gaps(const Tensor& values) {
  Tensor d = unsqueeze(values, -2) - unsqueeze(values, -1);
  return d + identity(values.size(-1), values.options());
}

// An eigenvector is determined only up to a complex phase; a loss that depends on the phase has no
// gradient.
void check_phase(const char* what, const Tensor& inner) {
  if (!is_complex(inner.dtype()) || inner.is_meta()) return;
  GradMode off(false);
  Tensor phase = op<"abs">(op<"imag">(diagonal_of(inner)));
  if (phase.numel() == 0) return;
  check(!(op<"max">(phase).item().to_double() > 1e-2), what,
        ": the eigenvectors of a complex matrix are known only up to multiplication by exp(i phi); "
        "the loss depends on phi, so its gradient is ill-defined");
}

// ---- Hermitian matrices ----

TensorList eigh_raw(const Tensor& a, const std::string& triangle, bool vectors) {
  const char* what = "linalg.eigh";
  check_square(what, a);
  check(triangle == "L" || triangle == "U" || triangle == "l" || triangle == "u", what,
        ": Expected UPLO argument to be 'L' or 'U', but got ", triangle);
  check_finite(what, a);
  const bool upper = triangle == "U" || triangle == "u";
  Tensor v = column_major_copy(a), info = empty_like_info(a);
  Tensor w = empty(join(batch_sizes(a), {a.size(-1)}), {to_real(a.dtype()), a.device()});
  if (!v.is_meta() && v.numel() > 0) {
    visit_inexact(a.dtype(), what, [&](auto tag) {
      using T = typename decltype(tag)::type;
      kernels<HermitianKernels<T>>(a.device())
          .eigh(lapack_shape(v).count, a.size(-1), upper, vectors, v.data_as<T>(),
                w.data_as<RealOf<T>>(), info.data_as<int32_t>());
    });
    check_info(what, info, no_eigenvalues);
  }
  return {w, vectors ? v : empty(Dims{0}, a.options())};
}

// V (diag(gw) + V^H gV / gaps) V^H.
void eigh_backward(Backward& b) {
  Tensor w = b.out(0), v = b.out(1);
  check(b.arg<bool>(2),
        "linalg.eigvalsh: its eigenvectors were not computed, so there is no gradient");
  if (!b.grad(0).defined() && !b.grad(1).defined()) return;
  Tensor v_h = adjoint(v);
  if (!b.grad(1).defined())
    return b.set(0, matmul(v * unsqueeze(to(b.grad(0), v.dtype()), -2), v_h));
  Tensor inner = matmul(v_h, b.grad(1));
  check_phase("linalg.eigh", inner);
  inner = off_diagonal(inner / gaps(w));
  if (b.grad(0).defined()) inner = inner + as_diagonal(to(b.grad(0), v.dtype()));
  b.set(0, matmul(v, matmul(inner, v_h)));
}

TensorList eigh(const Tensor& a, const std::string& triangle) {
  return ops<"_linalg_eigh">(a, triangle, true);
}
Tensor eigvalsh(const Tensor& a, const std::string& triangle) {
  return ops<"_linalg_eigh">(a, triangle, wants_grad(a))[0];
}

// ---- any square matrix ----

TensorList eig_raw(const Tensor& a, bool vectors) {
  const char* what = "linalg.eig";
  check_square(what, a);
  check_finite(what, a);
  const Options complex{to_complex(a.dtype()), a.device()};
  Tensor copy = column_major_copy(a), info = empty_like_info(a);
  Tensor w = empty(join(batch_sizes(a), {a.size(-1)}), complex);
  Tensor v = vectors ? empty_column_major(a.sizes(), complex) : empty(Dims{0}, complex);
  if (!copy.is_meta() && copy.numel() > 0) {
    visit_inexact(a.dtype(), what, [&](auto tag) {
      using T = typename decltype(tag)::type;
      using C = std::complex<RealOf<T>>;
      kernels<EigenKernels<T>>(a.device())
          .eig(lapack_shape(a).count, a.size(-1), copy.data_as<T>(), w.data_as<C>(),
               vectors ? v.data_as<C>() : nullptr, info.data_as<int32_t>());
    });
    check_info(what, info, no_eigenvalues);
  }
  return {w, v};
}

// V^-H (diag(gw) + (V^H gV - V^H V diag(Re V^H gV)) / conj(gaps)) V^H: the second term is due to
// the columns of V being normalised.
void eig_backward(Backward& b) {
  Tensor w = b.out(0), v = b.out(1);
  check(b.arg<bool>(1),
        "linalg.eigvals: its eigenvectors were not computed, so there is no gradient");
  if (!b.grad(0).defined() && !b.grad(1).defined()) return;
  Tensor v_h = adjoint(v), inner;
  if (b.grad(1).defined()) {
    inner = matmul(v_h, b.grad(1));
    check_phase("linalg.eig", inner);
    Tensor length = to(real_part(diagonal_of(inner)), v.dtype());
    inner = off_diagonal((inner - matmul(v_h, v) * unsqueeze(length, -2)) / conj(gaps(w)));
  }
  if (b.grad(0).defined()) {
    Tensor values = as_diagonal(b.grad(0));
    inner = inner.defined() ? inner + values : values;
  }
  b.set(0, op<"linalg_solve">(v_h, matmul(inner, v_h), true));
}

TensorList eig(const Tensor& a) { return ops<"_linalg_eig">(a, true); }
Tensor eigvals(const Tensor& a) { return ops<"_linalg_eig">(a, wants_grad(a))[0]; }

const Define kEigenOps[] = {
    {"_linalg_eigh(A: Tensor, UPLO: str, compute_v: bool) -> (Tensor, Tensor)",
     "Eigenvalues, and eigenvectors where they are asked for.",
     kernel(eigh_raw),
     {.backward = eigh_backward, .saves = saves_out(0) | saves_out(1), .vmap = vmap::leading(2)}},
    {"linalg_eigh(self: Tensor, UPLO: str = 'L') -> (eigenvalues: Tensor, eigenvectors: Tensor)",
     "A = V diag(w) V^H of Hermitian (or real symmetric) matrices (*, n, n), of which the triangle "
     "`UPLO` is read: the eigenvalues w, ascending and real, and the eigenvectors, columns of V. "
     "LinAlgError for matrices that are not finite.",
     kernel(eigh), kLinalg.with(kFloat32OnCpu)},
    {"linalg_eigvalsh(self: Tensor, UPLO: str = 'L') -> Tensor",
     "The eigenvalues of Hermitian matrices, ascending.", kernel(eigvalsh),
     kLinalg.with(kFloat32OnCpu)},
    {"_linalg_eig(A: Tensor, compute_v: bool) -> (Tensor, Tensor)",
     "Eigenvalues, and eigenvectors where they are asked for.",
     kernel(eig_raw),
     {.backward = eig_backward,
      .saves = saves_out(0) | saves_out(1),
      .on_host = true,
      .vmap = vmap::leading(2)}},
    {"linalg_eig(self: Tensor) -> (eigenvalues: Tensor, eigenvectors: Tensor)",
     "A V = V diag(w) of square matrices (*, n, n): complex eigenvalues, in no particular order, "
     "and "
     "eigenvectors of length 1, columns of V. LinAlgError for matrices that are not finite.",
     kernel(eig), kLinalg.with(kFloat32OnCpu)},
    {"linalg_eigvals(self: Tensor) -> Tensor",
     "The eigenvalues of square matrices: complex, in no particular order.", kernel(eigvals),
     kLinalg.with(kFloat32OnCpu).with(OutDtype::Castable)},
};

}  // namespace
}  // namespace taeda
