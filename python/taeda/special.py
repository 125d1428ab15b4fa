"""Special functions of mathematical physics and statistics.

All work element by element on float32 and float64 (float16 and bfloat16 by way of float32; integers
and bools become the default dtype first), broadcast their arguments, and take ``out=``. Values are
computed in double precision and rounded once. The modified Bessel functions and the Airy
function are Chebyshev series (Clenshaw, "A note on the summation of Chebyshev series", 1955); the
incomplete gamma functions follow Temme, "The asymptotic expansion of the incomplete gamma
functions", 1979, where both arguments are large and near each other.

>>> taeda.special.i0(taeda.tensor([0.0, 1.0]))
tensor([1.0000, 1.2661])
>>> taeda.special.gammainc(taeda.tensor(2.0), taeda.tensor([1.0, 3.0]))
tensor([0.2642, 0.8009])
>>> taeda.special.legendre_polynomial_p(taeda.tensor(0.5), 2)
tensor(-0.1250)
"""

from __future__ import annotations

from taeda._C import ops

airy_ai = ops.special_airy_ai
bessel_j0 = ops.special_bessel_j0
bessel_j1 = ops.special_bessel_j1
bessel_y0 = ops.special_bessel_y0
bessel_y1 = ops.special_bessel_y1
chebyshev_polynomial_t = ops.special_chebyshev_polynomial_t
chebyshev_polynomial_u = ops.special_chebyshev_polynomial_u
chebyshev_polynomial_v = ops.special_chebyshev_polynomial_v
chebyshev_polynomial_w = ops.special_chebyshev_polynomial_w
digamma = ops.digamma
entr = ops.special_entr
erf = ops.erf
erfc = ops.erfc
erfcx = ops.special_erfcx
erfinv = ops.erfinv
exp2 = ops.exp2
expit = ops.sigmoid
expm1 = ops.expm1
gammainc = ops.igamma
gammaincc = ops.igammac
gammaln = ops.lgamma
hermite_polynomial_h = ops.special_hermite_polynomial_h
hermite_polynomial_he = ops.special_hermite_polynomial_he
i0 = ops.i0
i0e = ops.special_i0e
i1 = ops.special_i1
i1e = ops.special_i1e
laguerre_polynomial_l = ops.special_laguerre_polynomial_l
legendre_polynomial_p = ops.special_legendre_polynomial_p
log1p = ops.log1p
log_ndtr = ops.special_log_ndtr
log_softmax = ops.log_softmax
logit = ops.logit
logsumexp = ops.logsumexp
modified_bessel_i0 = ops.special_modified_bessel_i0
modified_bessel_i1 = ops.special_modified_bessel_i1
modified_bessel_k0 = ops.special_modified_bessel_k0
modified_bessel_k1 = ops.special_modified_bessel_k1
multigammaln = ops.mvlgamma
ndtr = ops.special_ndtr
ndtri = ops.special_ndtri
polygamma = ops.polygamma
psi = ops.digamma
round = ops.round
scaled_modified_bessel_k0 = ops.special_scaled_modified_bessel_k0
scaled_modified_bessel_k1 = ops.special_scaled_modified_bessel_k1
shifted_chebyshev_polynomial_t = ops.special_shifted_chebyshev_polynomial_t
shifted_chebyshev_polynomial_u = ops.special_shifted_chebyshev_polynomial_u
shifted_chebyshev_polynomial_v = ops.special_shifted_chebyshev_polynomial_v
shifted_chebyshev_polynomial_w = ops.special_shifted_chebyshev_polynomial_w
sinc = ops.sinc
softmax = ops.softmax
spherical_bessel_j0 = ops.special_spherical_bessel_j0
xlog1py = ops.special_xlog1py
xlogy = ops.xlogy
zeta = ops.special_zeta

__all__ = [
    "airy_ai",
    "bessel_j0",
    "bessel_j1",
    "bessel_y0",
    "bessel_y1",
    "chebyshev_polynomial_t",
    "chebyshev_polynomial_u",
    "chebyshev_polynomial_v",
    "chebyshev_polynomial_w",
    "digamma",
    "entr",
    "erf",
    "erfc",
    "erfcx",
    "erfinv",
    "exp2",
    "expit",
    "expm1",
    "gammainc",
    "gammaincc",
    "gammaln",
    "hermite_polynomial_h",
    "hermite_polynomial_he",
    "i0",
    "i0e",
    "i1",
    "i1e",
    "laguerre_polynomial_l",
    "legendre_polynomial_p",
    "log1p",
    "log_ndtr",
    "log_softmax",
    "logit",
    "logsumexp",
    "modified_bessel_i0",
    "modified_bessel_i1",
    "modified_bessel_k0",
    "modified_bessel_k1",
    "multigammaln",
    "ndtr",
    "ndtri",
    "polygamma",
    "psi",
    "round",
    "scaled_modified_bessel_k0",
    "scaled_modified_bessel_k1",
    "shifted_chebyshev_polynomial_t",
    "shifted_chebyshev_polynomial_u",
    "shifted_chebyshev_polynomial_v",
    "shifted_chebyshev_polynomial_w",
    "sinc",
    "softmax",
    "spherical_bessel_j0",
    "xlog1py",
    "xlogy",
    "zeta",
]
