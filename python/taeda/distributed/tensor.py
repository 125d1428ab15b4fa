"""Tensors that are spread over several processes: the class, for checks. There are none."""

from __future__ import annotations

from typing import Any, NoReturn

from taeda import Tensor

__all__ = ["DTensor"]


class DTensor(Tensor):
    """A tensor of which each process has a part. None can be made: groups have one process."""

    def __new__(cls, *args: Any, **kwargs: Any) -> NoReturn:
        """Refuse, with RuntimeError."""
        raise RuntimeError("DTensor: groups have one process, which has all of each tensor")
