"""Discrete Fourier transforms.

Every function takes tensors of any size and of float32, float64, complex64 or complex128; integers
and bools become the default dtype first. ``n`` or ``s`` cut the input off or fill it with zeros;
``norm`` is ``"backward"`` (the inverse carries the factor ``1/n``, the default), ``"forward"`` or
``"ortho"``. All are differentiable to any order.

Lengths with small prime factors go through one pass for each factor (Stockham's self-sorting form
of Cooley and Tukey, "An algorithm for the machine calculation of complex Fourier series", 1965); a
large prime factor makes the transform a convolution with a chirp (Bluestein, "A linear filtering
approach to the computation of discrete Fourier transform", 1970).

>>> x = taeda.tensor([1.0, 2.0, 3.0, 4.0])
>>> taeda.fft.rfft(x)
tensor([10.+0.j, -2.+2.j, -2.+0.j])
>>> taeda.fft.irfft(taeda.fft.rfft(x))
tensor([1., 2., 3., 4.])
>>> taeda.fft.fftshift(taeda.fft.fftfreq(4))
tensor([-0.5000, -0.2500,  0.0000,  0.2500])
"""

from __future__ import annotations

from taeda._C import Tensor
from taeda._registry import functions

_FUNCTIONS = functions("fft")
globals().update(_FUNCTIONS)

__all__ = ["Tensor", *_FUNCTIONS]
