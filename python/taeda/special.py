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
from taeda._registry import functions

_FUNCTIONS = functions("special")
globals().update(_FUNCTIONS)

# Functions of taeda itself, some under another name.
digamma = ops.digamma
erf = ops.erf
erfc = ops.erfc
erfinv = ops.erfinv
exp2 = ops.exp2
expit = ops.sigmoid
expm1 = ops.expm1
gammainc = ops.igamma
gammaincc = ops.igammac
gammaln = ops.lgamma
i0 = ops.i0
log1p = ops.log1p
log_softmax = ops.log_softmax
logit = ops.logit
logsumexp = ops.logsumexp
multigammaln = ops.mvlgamma
polygamma = ops.polygamma
psi = ops.digamma
round = ops.round
sinc = ops.sinc
softmax = ops.softmax
xlogy = ops.xlogy

__all__ = [
    *_FUNCTIONS,
    "digamma",
    "erf",
    "erfc",
    "erfinv",
    "exp2",
    "expit",
    "expm1",
    "gammainc",
    "gammaincc",
    "gammaln",
    "i0",
    "log1p",
    "log_softmax",
    "logit",
    "logsumexp",
    "multigammaln",
    "polygamma",
    "psi",
    "round",
    "sinc",
    "softmax",
    "xlogy",
]
