"""Stands for ``torch._C._distributed_rpc``: what packages ask of references to other processes."""

from __future__ import annotations

from typing import NoReturn

__all__ = ["PyRRef"]


class PyRRef:
    """PyTorch's type of references to values of other processes, for ``isinstance``.

    Groups have one process, so that there are none.
    """

    def __new__(cls) -> NoReturn:
        raise TypeError("PyRRef: groups have one process, which holds no references to others")
