"""Reductions and normalisations that leave out the elements where a mask is False.

``mask`` is a bool tensor that broadcasts to the input; without one, every element counts. A result that nothing
went into has the value of the empty reduction: 0 for a sum, NaN for a mean.

>>> x = taeda.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
>>> taeda.masked.mean(x, 1, mask=x > 1)
tensor([2.5000, 5.0000])
"""

from taeda.masked._normalise import (
    cumprod,
    cumsum,
    log_softmax,
    logaddexp,
    normalize,
    softmax,
    softmin,
)
from taeda.masked._reduce import (
    amax,
    amin,
    argmax,
    argmin,
    logsumexp,
    mean,
    median,
    norm,
    prod,
    std,
    sum,
    var,
)

__all__ = [
    "amax",
    "amin",
    "argmax",
    "argmin",
    "cumprod",
    "cumsum",
    "is_masked_tensor",
    "log_softmax",
    "logaddexp",
    "logsumexp",
    "mean",
    "median",
    "norm",
    "normalize",
    "prod",
    "softmax",
    "softmin",
    "std",
    "sum",
    "var",
]


def is_masked_tensor(obj: object, /) -> bool:
    """Whether something is a tensor with a mask of its own: there are none."""
    return False
