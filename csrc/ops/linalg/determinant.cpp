// Determinants.
#include <limits>

#include "kernels/matrices.h"
#include "ops/linalg/linalg.h"

namespace taeda {
namespace {

TensorList det_raw(const Tensor& a) {
  check_square("linalg.det", a);
  LuFactor f = lu_factorize("linalg.det", a);
  Tensor det = empty(batch_sizes(a), a.options());
  if (!det.is_meta()) {
    const int64_t n = a.size(-1);
    visit_inexact(a.dtype(), "linalg.det", [&](auto tag) {
      using T = typename decltype(tag)::type;
      kernels<MatrixKernels<T>>(a.device())
          .det(det.numel(), n, f.lu.data_as<T>(), f.pivots.data_as<int32_t>(), det.data_as<T>());
    });
  }
  return {det, f.lu, f.pivots};
}

TensorList slogdet_raw(const Tensor& a) {
  check_square("linalg.slogdet", a);
  LuFactor f = lu_factorize("linalg.slogdet", a);
  Tensor sign = empty(batch_sizes(a), a.options());
  Tensor size = empty(batch_sizes(a), {to_real(a.dtype()), a.device()});
  if (!sign.is_meta()) {
    const int64_t n = a.size(-1);
    visit_inexact(a.dtype(), "linalg.slogdet", [&](auto tag) {
      using T = typename decltype(tag)::type;
      kernels<MatrixKernels<T>>(a.device())
          .slogdet(sign.numel(), n, f.lu.data_as<T>(), f.pivots.data_as<int32_t>(),
                   sign.data_as<T>(), size.data_as<RealOf<T>>());
    });
  }
  return {sign, size, f.lu, f.pivots};
}

Tensor scaled_identity(const Tensor& scale, int64_t n) {
  Tensor s = unsqueeze(unsqueeze(scale, -1), -1);
  return s * identity(n, scale.options());
}

// The limit of det(a) a^-H for a singular matrix: products of all singular values but one, between
// the singular vectors. It is zero if the rank is less than n - 1.
Tensor cofactors(const Tensor& a) {
  const int64_t n = a.size(-1);
  TensorList usv = ops<"_linalg_svd">(a, false, true, true);
  Tensor s = expand(unsqueeze(usv[1], -2), join(batch_sizes(a), {n, n}));
  Tensor diagonal = to(identity(n, s.options()), DType::Bool);
  Tensor others = op<"prod">(op<"masked_fill">(s, diagonal, Tensor(1)), -1, false);
  Tensor phase = conj(op<"linalg_det">(usv[0]) * op<"linalg_det">(usv[2]));
  Tensor scaled = to(others, a.dtype()) * unsqueeze(phase, -1);
  return matmul(usv[0] * unsqueeze(scaled, -2), usv[2]);
}

void det_backward(Backward& b) {
  if (!b.grad(0).defined()) return;
  Tensor a = b.arg<Tensor>(0), det = b.out(0);
  const int64_t n = a.size(-1);
  Tensor scale = b.grad(0) * conj(det);
  Tensor singular = det == Tensor(0);
  if (!det.is_meta() && op<"any">(singular).item().to<bool>()) {
    Tensor mask = unsqueeze(unsqueeze(singular, -1), -1);
    Tensor regular = where(mask, identity(n, a.options()), a);
    Tensor usual = op<"linalg_solve">(adjoint(regular), scaled_identity(scale, n), true);
    Tensor g = unsqueeze(unsqueeze(b.grad(0), -1), -1);
    b.set(0, where(mask, g * cofactors(a), usual));
  } else if (derivative_in_ops()) {
    b.set(0, op<"linalg_solve">(adjoint(a), scaled_identity(scale, n), true));
  } else {
    b.set(0, op<"_linalg_lu_solve">(b.out(1), b.out(2), scaled_identity(scale, n), true));
  }
}

// d log det(a) = tr(a^-1 da), whose real part is d log|det a| and whose imaginary part rotates the
// sign.
void slogdet_backward(Backward& b) {
  if (!b.grad(0).defined() && !b.grad(1).defined()) return;
  Tensor a = b.arg<Tensor>(0), scale = to(b.grad_or_zeros(1), a.dtype());
  if (is_complex(a.dtype()) && b.grad(0).defined()) {
    Tensor rotation = op<"imag">(conj(b.grad(0)) * b.out(0));
    scale = scale - op<"complex">(zeros_like(rotation), rotation);
  }
  Tensor rhs = scaled_identity(scale, a.size(-1));
  b.set(0, derivative_in_ops() ? ops<"linalg_solve_ex">(adjoint(a), rhs, true, false)[0]
                               : op<"_linalg_lu_solve">(b.out(2), b.out(3), rhs, true));
}

Tensor det(const Tensor& a) { return ops<"_linalg_det">(a)[0]; }
TensorList slogdet(const Tensor& a) {
  TensorList r = ops<"_linalg_slogdet">(a);
  return {r[0], r[1]};
}
Tensor logdet(const Tensor& a) {
  TensorList r = ops<"_linalg_slogdet">(a);
  if (is_complex(a.dtype())) return op<"log">(r[0]) + r[1];
  Tensor nan = full(Dims{}, Scalar(std::numeric_limits<double>::quiet_NaN()), r[1].options());
  return where(r[0] < Tensor(0), nan, r[1]);
}

const Define kDeterminantOps[] = {
    {"_linalg_det(A: Tensor) -> (Tensor, Tensor, Tensor)",
     "The determinant, and the factors it came from.",
     kernel(det_raw),
     {.backward = det_backward,
      .saves = saves_arg(0) | saves_out(0) | saves_out(1) | saves_out(2),
      .non_differentiable = 0b110,
      .vmap = vmap::leading(2)}},
    {"linalg_det(A: Tensor) -> Tensor", "The determinant of square matrices (*, n, n).",
     kernel(det), kLinalg},
    {"det(self: Tensor) -> Tensor",
     "The same as `linalg.det`.",
     kernel(det),
     {.composite = true, .heavy = true}},
    {"_linalg_slogdet(A: Tensor) -> (Tensor, Tensor, Tensor, Tensor)",
     "Sign and logarithm of the determinant, and the factors they came from.",
     kernel(slogdet_raw),
     {.backward = slogdet_backward,
      .saves = saves_arg(0) | saves_out(0) | saves_out(2) | saves_out(3),
      .non_differentiable = 0b1100,
      .vmap = vmap::leading(2)}},
    {"linalg_slogdet(A: Tensor) -> (sign: Tensor, logabsdet: Tensor)",
     "The determinant's sign (of complex matrices, its direction) and the logarithm of its size: 0 "
     "and -inf where it is 0.",
     kernel(slogdet), kLinalg},
    {"slogdet(self: Tensor) -> (sign: Tensor, logabsdet: Tensor)", "The same as `linalg.slogdet`.",
     kernel(slogdet), kLinalgMethod},
    {"logdet(self: Tensor) -> Tensor",
     "The logarithm of the determinant: NaN where it is negative, -inf where it is 0.",
     kernel(logdet),
     {.composite = true, .heavy = true}},
};

}  // namespace
}  // namespace taeda
