# Made by `python -m tests.stubs`. Do not edit: change an op, or tests/stubs/core.pyi.
from taeda import _ops
from taeda._C import Tensor as Tensor

fft = _ops.fft_fft
fft2 = _ops.fft_fft2
fftfreq = _ops.fft_fftfreq
fftn = _ops.fft_fftn
fftshift = _ops.fft_fftshift
hfft = _ops.fft_hfft
hfft2 = _ops.fft_hfft2
hfftn = _ops.fft_hfftn
ifft = _ops.fft_ifft
ifft2 = _ops.fft_ifft2
ifftn = _ops.fft_ifftn
ifftshift = _ops.fft_ifftshift
ihfft = _ops.fft_ihfft
ihfft2 = _ops.fft_ihfft2
ihfftn = _ops.fft_ihfftn
irfft = _ops.fft_irfft
irfft2 = _ops.fft_irfft2
irfftn = _ops.fft_irfftn
rfft = _ops.fft_rfft
rfft2 = _ops.fft_rfft2
rfftfreq = _ops.fft_rfftfreq
rfftn = _ops.fft_rfftn
