"""Fourier transforms on CUDA as on the CPU: by cuFFT on a GPU, by a stub of it in the shim."""

from __future__ import annotations

from tests.cuda.compare import COMPARED, compared
from tests.cuda.shim import run


def with_cufft(libraries) -> dict[str, str]:
    return {"LD_LIBRARY_PATH": f"{libraries / 'cufft'}:{libraries}"}


CODE = """
def spectrum(f, *shape, dtype=torch.float32, tol=2e-4):
    def both(x):
        x = x.detach().requires_grad_()
        y = f(x)
        y = torch.view_as_real(y) if y.is_complex() else y
        (y * y.detach().cos()).sum().backward()
        return y.detach(), x.grad
    same(both, torch.randn(shape, dtype=dtype), tol=tol)
"""


def test_transforms_of_lines(libraries):
    code = """
for dtype, tol in ((torch.float32, 2e-4), (torch.float64, 1e-10)):
    complex_dtype = torch.complex64 if dtype == torch.float32 else torch.complex128
    for shape, dim in [((12,), 0), ((3, 9), 1), ((3, 9), 0), ((2, 7, 5), 1), ((4, 1), 1), ((70, 40), 0)]:
        for norm in (None, "ortho", "forward"):
            how = dict(dim=dim, norm=norm)
            spectrum(lambda x: torch.fft.fft(x, **how), *shape, dtype=complex_dtype, tol=tol)
            spectrum(lambda x: torch.fft.ifft(x, **how), *shape, dtype=complex_dtype, tol=tol)
            spectrum(lambda x: torch.fft.fft(x, **how), *shape, dtype=dtype, tol=tol)
            spectrum(lambda x: torch.fft.rfft(x, **how), *shape, dtype=dtype, tol=tol)
            spectrum(lambda x: torch.fft.ihfft(x, **how), *shape, dtype=dtype, tol=tol)
        for n in (8, 9):
            spectrum(lambda x: torch.fft.irfft(x, n, dim), *shape, dtype=complex_dtype, tol=tol)
            spectrum(lambda x: torch.fft.hfft(x, n, dim), *shape, dtype=complex_dtype, tol=tol)
            spectrum(lambda x: torch.fft.rfft(x[1:], n, -1), 3, 7, dtype=dtype, tol=tol)  # not aligned
"""
    count = 2 * 6 * (3 * 5 + 2 * 3)
    assert compared(libraries, CODE + code, **with_cufft(libraries)) == count


def test_transforms_of_blocks(libraries):
    code = """
for dims in [(-2, -1), (-1, -2), (0, 2), (-3, -2, -1), (0, 1, 2, 3), (1, 2), (1, 1 + 2)]:
    for name in ("fftn", "ifftn", "irfftn", "hfftn"):
        spectrum(lambda x: getattr(torch.fft, name)(x, dim=dims), 2, 3, 4, 5, dtype=torch.complex64)
    for name in ("fftn", "rfftn", "ihfftn"):
        spectrum(lambda x: getattr(torch.fft, name)(x, dim=dims), 2, 3, 4, 5)
spectrum(lambda x: torch.fft.rfft2(x), 2, 1, 5)
spectrum(lambda x: torch.fft.rfft2(x), 2, 5, 1)
spectrum(lambda x: torch.fft.fft2(x), 2, 5, 1, dtype=torch.complex64)
spectrum(lambda x: torch.fft.fft2(x), 2, 1, 1, dtype=torch.complex64)
spectrum(lambda x: torch.fft.rfft2(x[1:]), 2, 3, 5)
same(lambda x: torch.fft.fft2(x), torch.zeros(0, 3, 5))
spectrum(lambda x: torch.istft(torch.stft(x, 16, window=torch.ones(16, device=x.device), return_complex=True), 16, window=torch.ones(16, device=x.device)), 2, 64)
"""
    assert compared(libraries, CODE + code, **with_cufft(libraries)) == 7 * 7 + 7


def test_plans_are_kept(libraries):
    code = """
x = torch.randn(3, 8, dtype=torch.complex64)
for i in range(600):
    n = 2 + i % 300
    y = torch.fft.fft(x.to("cuda"), n)
    if i % 50 == 0:
        torch.testing.assert_close(y.cpu(), torch.fft.fft(x, n), rtol=1e-4, atol=1e-4)
        print("ok")
"""
    assert compared(libraries, code, **with_cufft(libraries)) == 12


def test_without_cufft(libraries):
    """What is missing is named with the package that has it, and falls back where that is wanted."""
    code = """
x = torch.randn(4, device="cuda")
try:
    torch.fft.rfft(x)
except NotImplementedError as error:
    assert "without cuFFT (pip install nvidia-cufft)" in str(error), error
    torch.set_fallback("cpu")
    same(torch.fft.rfft, x.cpu())
"""
    done = run(libraries, "-c", COMPARED + code)
    assert done.returncode == 0, done.stderr[-3000:]
    if (libraries / "cufft").exists():
        assert done.stdout.split() == ["ok"]
