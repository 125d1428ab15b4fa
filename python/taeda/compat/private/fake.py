"""Stands for ``torch._subclasses``: tensors that compilers compute shapes with; there are none."""

from __future__ import annotations

from typing import Any

from taeda import Tensor

__all__ = ["FakeTensor", "is_fake"]


class FakeTensor(Tensor):
    """A tensor without data that has a device. taeda has no instances."""

    def __new__(cls, *args: Any, **kwargs: Any) -> FakeTensor:
        """Refuse to make one."""
        raise TypeError("FakeTensor: there are none; tensors without data are on the meta device")


def is_fake(x: object) -> bool:
    """Whether a value is such a tensor: no."""
    return isinstance(x, FakeTensor)
