"""cuDNN, which convolves on CUDA devices where NVIDIA's package nvidia-cudnn-cu13 is installed.

``enabled`` says whether it is used, ``allow_tf32`` whether it may round operands of float32 to
TF32. What it computes does not depend on timing, and no algorithm is chosen by trying, so that
``deterministic`` and ``benchmark`` only keep what they are set to. Values other than bools are
RuntimeErrors.

>>> import taeda
>>> taeda.backends.cudnn.allow_tf32 = False  # convolutions of float32 are computed in float32
>>> taeda.backends.cudnn.allow_tf32 = True
"""

from __future__ import annotations

import sys
from contextlib import contextmanager
from types import ModuleType
from typing import TYPE_CHECKING

from taeda.cuda import _library

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = [
    "allow_tf32",
    "benchmark",
    "deterministic",
    "enabled",
    "flags",
    "is_available",
    "version",
]

enabled = True
benchmark = False
deterministic = False
allow_tf32 = True

# The functions of the CUDA library that are told of them.
_TOLD = {"enabled": "use_cudnn", "allow_tf32": "allow_conv_tf32"}


class _Switches(ModuleType):
    def __setattr__(self, name: str, value: object) -> None:
        if name in ("enabled", "benchmark", "deterministic", "allow_tf32"):
            if not isinstance(value, bool):
                raise RuntimeError(f"backends.cudnn.{name} must be a bool, got {value!r}")
            if name in _TOLD:
                _library.set_switch(_TOLD[name], value)
        super().__setattr__(name, value)


_module = sys.modules[__name__]
_module.__class__ = _Switches


def is_available() -> bool:
    """Whether there is a CUDA device, and a cuDNN to use."""
    return version() is not None


def version() -> int | None:
    """CuDNN's version, such as 91002; None where it is not available."""
    from taeda import cuda
    from taeda.cuda import _runtime

    return (cuda.is_available() and _runtime.cudnn_version()) or None


@contextmanager
def flags(
    enabled: bool = False,
    benchmark: bool = False,
    deterministic: bool = False,
    allow_tf32: bool = True,
) -> Iterator[None]:
    """Set the switches for the length of a ``with`` block."""
    given = {
        "enabled": enabled,
        "benchmark": benchmark,
        "deterministic": deterministic,
        "allow_tf32": allow_tf32,
    }
    before = {name: getattr(_module, name) for name in given}
    try:
        for name, value in given.items():
            setattr(_module, name, value)
        yield
    finally:
        for name, value in before.items():
            setattr(_module, name, value)
