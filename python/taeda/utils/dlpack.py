"""Memory shared with other libraries through DLPack.

>>> import numpy, taeda
>>> taeda.utils.dlpack.from_dlpack(numpy.arange(3.0))
tensor([0., 1., 2.], dtype=taeda.float64)
"""

from __future__ import annotations

from typing import Any

from taeda import Tensor, from_dlpack

__all__ = ["from_dlpack", "to_dlpack"]


def to_dlpack(tensor: Tensor) -> Any:
    """A capsule over a tensor's memory, which one library may take over, once.

    `from_dlpack` of most libraries takes the tensor itself, which is simpler.
    """
    return tensor.__dlpack__()
