"""The standard's extension for Fourier transforms: see ``taeda.fft``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from taeda import fft as _fft
from taeda._C import Tensor, dtype

__all__ = [
    "fft", "fftfreq", "fftn", "fftshift", "hfft", "ifft", "ifftn", "ifftshift", "ihfft", "irfft",
    "irfftn", "rfft", "rfftfreq", "rfftn",
]  # fmt: skip

Axes = Sequence[int] | None


def _line(name: str) -> Callable[..., Tensor]:
    """Make a transform along one dimension."""
    function = getattr(_fft, name)

    def apply(
        x: Tensor, /, *, n: int | None = None, axis: int = -1, norm: str = "backward"
    ) -> Tensor:
        return function(x, n, axis, norm)

    apply.__name__ = apply.__qualname__ = name
    apply.__doc__ = f"``taeda.fft.{name}`` along ``axis``, cut or filled to ``n`` elements."
    return apply


def _grid(name: str) -> Callable[..., Tensor]:
    """Make a transform along several dimensions."""
    function = getattr(_fft, name)

    def apply(x: Tensor, /, *, s: Axes = None, axes: Axes = None, norm: str = "backward") -> Tensor:
        return function(x, s, axes, norm)

    apply.__name__ = apply.__qualname__ = name
    apply.__doc__ = f"``taeda.fft.{name}`` along ``axes``, cut or filled to the sizes ``s``."
    return apply


fft = _line("fft")
ifft = _line("ifft")
rfft = _line("rfft")
irfft = _line("irfft")
hfft = _line("hfft")
ihfft = _line("ihfft")
fftn = _grid("fftn")
ifftn = _grid("ifftn")
rfftn = _grid("rfftn")
irfftn = _grid("irfftn")


def fftfreq(n: int, /, *, d: float = 1.0, dtype: dtype | None = None, device: Any = None) -> Tensor:
    """Return the frequencies of ``fft`` for ``n`` samples at a distance of ``d``."""
    return _fft.fftfreq(n, d, dtype=dtype, device=device)


def rfftfreq(
    n: int, /, *, d: float = 1.0, dtype: dtype | None = None, device: Any = None
) -> Tensor:
    """Return the frequencies of ``rfft`` for ``n`` samples at a distance of ``d``."""
    return _fft.rfftfreq(n, d, dtype=dtype, device=device)


def fftshift(x: Tensor, /, *, axes: int | Axes = None) -> Tensor:
    """Move frequency zero to the middle of each dimension, or of ``axes``."""
    return _fft.fftshift(x, axes)


def ifftshift(x: Tensor, /, *, axes: int | Axes = None) -> Tensor:
    """Undo ``fftshift``."""
    return _fft.ifftshift(x, axes)
