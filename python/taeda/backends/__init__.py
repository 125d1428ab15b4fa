"""Properties of backends, and the switches that PyTorch's scripts set.

Queries answer what is so: on the CPU, matrix products come from OpenBLAS and everything else from
taeda's own kernels. Switches that have nothing to choose keep what they are set to.

>>> import taeda
>>> taeda.backends.cudnn.is_available(), taeda.backends.mkl.is_available()
(False, False)
>>> taeda.backends.cudnn.benchmark = True
"""

import contextlib
from collections.abc import Iterator

from . import (
    cpu,
    cuda,
    cudnn,
    cusparselt,
    mha,
    mkl,
    mkldnn,
    mps,
    nnpack,
    openmp,
    opt_einsum,
    quantized,
)

__all__ = [
    "cpu",
    "cuda",
    "cudnn",
    "cusparselt",
    "mha",
    "mkl",
    "mkldnn",
    "mps",
    "nnpack",
    "openmp",
    "opt_einsum",
    "quantized",
]


@contextlib.contextmanager
def __allow_nonbracketed_mutation() -> Iterator[None]:
    """Within this context switches may be set one by one, as they may without it."""
    yield
