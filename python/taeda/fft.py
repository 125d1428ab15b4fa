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

from taeda._C import Tensor, ops

fft = ops.fft_fft
ifft = ops.fft_ifft
rfft = ops.fft_rfft
irfft = ops.fft_irfft
hfft = ops.fft_hfft
ihfft = ops.fft_ihfft
fft2 = ops.fft_fft2
ifft2 = ops.fft_ifft2
rfft2 = ops.fft_rfft2
irfft2 = ops.fft_irfft2
hfft2 = ops.fft_hfft2
ihfft2 = ops.fft_ihfft2
fftn = ops.fft_fftn
ifftn = ops.fft_ifftn
rfftn = ops.fft_rfftn
irfftn = ops.fft_irfftn
hfftn = ops.fft_hfftn
ihfftn = ops.fft_ihfftn
fftfreq = ops.fft_fftfreq
rfftfreq = ops.fft_rfftfreq
fftshift = ops.fft_fftshift
ifftshift = ops.fft_ifftshift

__all__ = [
    "Tensor",
    "fft",
    "fft2",
    "fftfreq",
    "fftn",
    "fftshift",
    "hfft",
    "hfft2",
    "hfftn",
    "ifft",
    "ifft2",
    "ifftn",
    "ifftshift",
    "ihfft",
    "ihfft2",
    "ihfftn",
    "irfft",
    "irfft2",
    "irfftn",
    "rfft",
    "rfft2",
    "rfftfreq",
    "rfftn",
]
