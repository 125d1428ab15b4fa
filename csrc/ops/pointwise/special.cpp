// Special functions of two arguments with a derivative by only one; gamma functions composed of
// others.
#include <cmath>

#include "ops/pointwise/rows.h"

namespace taeda {
namespace {

template <class Op> Value pair_kernel(Call& c) { return run_pointwise(row<Op>(), c, {0, 1}); }
// The functor has a derivative by one argument; that by the other has no closed form.
template <class Op, int Missing> void pair_backward(Backward& b) {
  check<NotImplemented>(!b.needs(Missing), "the derivative of ", b.op().name, " by '",
                        b.op().args[Missing].name, "' is not implemented");
  differentiate<Op>(b, {0, 1});
}

// The log of pi^(p (p - 1) / 4) times the product of gamma(self - j / 2), j = 0 ... p - 1.
Tensor mvlgamma(const Tensor& self, int64_t p) {
  check(p >= 1, "mvlgamma(): p must be at least 1, got ", p);
  const Tensor x = is_inexact(self.dtype()) ? self : to(self, default_dtype());
  const Tensor halves = op<"arange">(Scalar(-0.5 * static_cast<double>(p - 1)), Scalar(0.25),
                                     Scalar(0.5), x.dtype(), x.device(), false);
  const double pis =
      static_cast<double>(p) * static_cast<double>(p - 1) / 4 * std::log(portable::kPi);
  return sum(op<"lgamma">(unsqueeze(x, -1) + halves), Dims{-1}) + pis;
}

using namespace portable;
constexpr Traits special(BackwardFn backward = nullptr) {
  return {.backward = backward,
          .saves = backward ? saves_arg(0) | saves_arg(1) : 0,
          .forms = kFunction | kOut | kMixed,
          .module = "special",
          .elementwise = true};
}
constexpr Traits incomplete(BackwardFn backward) {
  return {.backward = backward,
          .saves = saves_arg(0) | saves_arg(1),
          .forms = kPublic | kOut | kInplace | kMixed,
          .elementwise = true};
}
template <class Op> Kernel pair() { return raw_kernel(pair_kernel<Op>, true); }

const Define kSpecialOps[] = {
    {"special_zeta(self: Tensor, other: Tensor) -> Tensor",
     "The Hurwitz zeta function: the sum over k of `(k + other) ** -self`.", pair<Zeta>(),
     special(pair_backward<Zeta, 0>).with(Numbers::OneTensor)},
    {"igamma(self: Tensor, other: Tensor) -> Tensor",
     "The regularised lower incomplete gamma function: the integral from 0 to `other` of `t ** "
     "(self "
     "- 1) exp(-t)`, over `gamma(self)`.",
     pair<GammaLower>(), incomplete(pair_backward<GammaLower, 0>)},
    {"igammac(self: Tensor, other: Tensor) -> Tensor",
     "The regularised upper incomplete gamma function, `1 - igamma(self, other)`.",
     pair<GammaUpper>(), incomplete(pair_backward<GammaUpper, 0>)},
    {"mvlgamma(self: Tensor, p: int) -> Tensor",
     "The logarithm of the gamma function of `p` dimensions: the sum of `lgamma(self - j / 2)` "
     "over j < "
     "p, and `p (p - 1) / 4 log(pi)`.",
     kernel(mvlgamma),
     {.forms = kPublic | kOut | kInplace, .composite = true, .out_dtype = OutDtype::Castable}},
    {"special_chebyshev_polynomial_t(x: Tensor, n: Tensor) -> Tensor",
     "Chebyshev's polynomial of the first kind and degree `n` at `x`.", pair<ChebyshevT>(),
     special(pair_backward<ChebyshevT, 1>).with(Numbers::OneTensor)},
    {"special_chebyshev_polynomial_u(x: Tensor, n: Tensor) -> Tensor",
     "Chebyshev's polynomial of the second kind and degree `n` at `x`.", pair<ChebyshevU>(),
     special(pair_backward<ChebyshevU, 1>).with(Numbers::OneTensor)},
    {"special_chebyshev_polynomial_v(x: Tensor, n: Tensor) -> Tensor",
     "Chebyshev's polynomial of the third kind and degree `n` at `x`.", pair<ChebyshevV>(),
     special().with(Numbers::OneTensor)},
    {"special_chebyshev_polynomial_w(x: Tensor, n: Tensor) -> Tensor",
     "Chebyshev's polynomial of the fourth kind and degree `n` at `x`.", pair<ChebyshevW>(),
     special().with(Numbers::OneTensor)},
    {"special_shifted_chebyshev_polynomial_t(x: Tensor, n: Tensor) -> Tensor",
     "Chebyshev's polynomial of the first kind and degree `n` at `2 x - 1`.",
     pair<ShiftedChebyshevT>(),
     special(pair_backward<ShiftedChebyshevT, 1>).with(Numbers::OneTensor)},
    {"special_shifted_chebyshev_polynomial_u(x: Tensor, n: Tensor) -> Tensor",
     "Chebyshev's polynomial of the second kind and degree `n` at `2 x - 1`.",
     pair<ShiftedChebyshevU>(),
     special(pair_backward<ShiftedChebyshevU, 1>).with(Numbers::OneTensor)},
    {"special_shifted_chebyshev_polynomial_v(x: Tensor, n: Tensor) -> Tensor",
     "Chebyshev's polynomial of the third kind and degree `n` at `2 x - 1`.",
     pair<ShiftedChebyshevV>(), special().with(Numbers::OneTensor)},
    {"special_shifted_chebyshev_polynomial_w(x: Tensor, n: Tensor) -> Tensor",
     "Chebyshev's polynomial of the fourth kind and degree `n` at `2 x - 1`.",
     pair<ShiftedChebyshevW>(), special().with(Numbers::OneTensor)},
    {"special_hermite_polynomial_h(x: Tensor, n: Tensor) -> Tensor",
     "The physicists' Hermite polynomial of degree `n` at `x`.", pair<HermiteH>(),
     special(pair_backward<HermiteH, 1>).with(Numbers::OneTensor)},
    {"special_hermite_polynomial_he(x: Tensor, n: Tensor) -> Tensor",
     "The probabilists' Hermite polynomial of degree `n` at `x`.", pair<HermiteHe>(),
     special(pair_backward<HermiteHe, 1>).with(Numbers::OneTensor)},
    {"special_laguerre_polynomial_l(x: Tensor, n: Tensor) -> Tensor",
     "Laguerre's polynomial of degree `n` at `x`.", pair<LaguerreL>(),
     special().with(Numbers::OneTensor)},
    {"special_legendre_polynomial_p(x: Tensor, n: Tensor) -> Tensor",
     "Legendre's polynomial of degree `n` at `x`.", pair<LegendreP>(),
     special().with(Numbers::OneTensor)},
};

}  // namespace
}  // namespace taeda
