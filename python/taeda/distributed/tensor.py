"""Tensors that are spread over several processes: the class, for checks. There are none."""

from __future__ import annotations

from typing import Any, NoReturn

from taeda import Tensor

__all__ = ["DTensor"]


class DTensor(Tensor):
    """A tensor of which each process has a part. None can be made: there are no groups here."""

    def __new__(cls, *args: Any, **kwargs: Any) -> NoReturn:
        """Refuse, with RuntimeError."""
        raise RuntimeError(
            "DTensor: this build has no groups of processes (distributed.is_available() is False)"
        )
