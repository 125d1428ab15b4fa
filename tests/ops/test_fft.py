"""Fourier transforms against SciPy in extended precision and PyTorch; derivatives; windows; stft."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import taeda
from taeda.autograd import gradcheck, gradgradcheck

fft = taeda.fft

# One, powers, products of small primes, primes in a pass of their own, primes that need a chirp.
LENGTHS = [1, 2, 3, 4, 5, 6, 7, 8, 12, 13, 16, 17, 30, 31, 37, 49, 64, 97, 120, 127, 128, 210, 243]
LONG = [256, 500, 521, 1000, 1024, 4093, 5040, 10007, 65536]
SHAPES = [(2, 3), (1, 1), (5, 1), (2, 17)]


def complex_array(shape: tuple, seed: int = 0) -> np.ndarray:
    g = np.random.default_rng(seed)
    return g.standard_normal(shape) + 1j * g.standard_normal(shape)


def assert_near(ours: Any, exact: np.ndarray, n: int) -> None:
    """Errors of some eps of the size of the numbers, growing like the logarithm of the length."""
    a = ours.numpy()
    assert a.shape == exact.shape
    eps = np.finfo(a.dtype).eps
    size = np.sqrt(np.mean(np.abs(exact) ** 2)) if exact.size else 1
    assert np.abs(a - exact).max(initial=0) <= 3 * eps * size * (1 + np.log2(n))


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
@pytest.mark.parametrize("n", LENGTHS + LONG)
def test_one_dimension(n: int, dtype: Any) -> None:
    sf = pytest.importorskip("scipy.fft")
    for outer, inner in SHAPES if n < 1000 else [(1, 1), (1, 3)]:
        x = complex_array((outer, n, inner)).astype(dtype)
        wide = x.astype(np.clongdouble)
        t = taeda.from_numpy(x)
        assert_near(fft.fft(t, dim=1), sf.fft(wide, axis=1), n)
        assert_near(fft.ifft(t, dim=1), sf.ifft(wide, axis=1), n)
        assert_near(fft.fft(t, dim=1, norm="ortho"), sf.fft(wide, axis=1, norm="ortho"), n)
        real = np.ascontiguousarray(x.real)
        half = sf.rfft(real.astype(np.longdouble), axis=1)
        r = taeda.from_numpy(real)
        assert_near(fft.rfft(r, dim=1), half, n)
        assert_near(fft.fft(r, dim=1), sf.fft(real.astype(np.longdouble), axis=1), n)
        assert_near(fft.ihfft(r, dim=1), half.conj() / n, n)
        back = fft.irfft(taeda.from_numpy(half.astype(dtype)), n, 1)
        assert_near(back, real.astype(np.longdouble), n)
        assert_near(fft.hfft(taeda.from_numpy((half.conj() / n).astype(dtype)), n, 1), real, n)


def test_imaginary_parts_that_a_real_line_lacks_are_not_read() -> None:
    for n in (4, 5, 1, 2):
        x = taeda.from_numpy(complex_array((3, n // 2 + 1)))
        y = x.clone()
        y[:, 0] += 7j
        if n % 2 == 0:
            y[:, -1] -= 3j
        assert taeda.equal(fft.irfft(x, n), fft.irfft(y, n))


def test_lengths_cut_and_fill() -> None:
    x = complex_array((3, 10))
    for n in (1, 4, 10, 17):
        for name in ("fft", "ifft"):
            ours = getattr(fft, name)(taeda.from_numpy(x), n, norm="forward")
            assert_near(ours, getattr(np.fft, name)(x, n, norm="forward"), n)
        assert_near(fft.rfft(taeda.from_numpy(x.real.copy()), n), np.fft.rfft(x.real, n), n)
        assert_near(fft.irfft(taeda.from_numpy(x), n), np.fft.irfft(x, n), n)
        assert_near(fft.hfft(taeda.from_numpy(x), n, -1), np.fft.hfft(x, n, -1), n)
        assert_near(fft.ihfft(taeda.from_numpy(x.real.copy()), n), np.fft.ihfft(x.real, n), n)


@pytest.mark.parametrize("norm", [None, "backward", "forward", "ortho"])
def test_several_dimensions(norm: str | None) -> None:
    sf = pytest.importorskip("scipy.fft")
    x = complex_array((3, 4, 6, 5))
    real = x.real.copy()
    for dim in ((0,), (1, 2), (3, 0), (2, 1, 3), (0, 1, 2, 3)):
        for s in (None, tuple(range(2, 2 + len(dim)))):
            for name in ("fftn", "ifftn", "irfftn", "hfftn"):
                ours = getattr(fft, name)(taeda.from_numpy(x), s, dim, norm)
                assert_near(ours, getattr(sf, name)(x, s, dim, norm), 64)
            for name in ("rfftn", "ihfftn"):
                ours = getattr(fft, name)(taeda.from_numpy(real), s, dim, norm)
                assert_near(ours, getattr(sf, name)(real, s, dim, norm), 64)
    t = taeda.from_numpy(x)
    assert_near(fft.fft2(t, norm=norm), sf.fft2(x, norm=norm), 64)
    assert_near(fft.irfft2(t, (4, 7), norm=norm), sf.irfft2(x, (4, 7), norm=norm), 64)
    assert_near(fft.hfft2(t, norm=norm), sf.hfft2(x, norm=norm), 64)


def test_layouts() -> None:
    x = complex_array((6, 5, 4))
    t = taeda.from_numpy(x)
    for view, array in (
        (t.permute(2, 0, 1), x.transpose(2, 0, 1)),
        (t[:, ::2], x[:, ::2]),
        (t[1:2].expand(3, 5, 4), np.broadcast_to(x[1:2], (3, 5, 4))),
        (t.flip(0), x[::-1]),
    ):
        for dim in range(3):
            assert_near(fft.fft(view, dim=dim), np.fft.fft(array, axis=dim), 8)
        assert_near(fft.irfftn(view), np.fft.irfftn(array), 64)
    before = t.clone()
    fft.fftn(t)
    assert taeda.equal(t, before)


def test_empty_batches_and_meta() -> None:
    for shape in ((0, 6), (3, 0, 6)):
        x = taeda.zeros(shape)
        assert fft.fft(x).shape == shape
        assert fft.rfft(x).shape == (*shape[:-1], 4)
        assert fft.irfft(x).shape == (*shape[:-1], 10)
    x = taeda.empty(4, 6, device="meta", requires_grad=True)
    y = fft.rfftn(x)
    assert y.is_meta and y.shape == (4, 4) and y.dtype == taeda.complex64
    fft.irfftn(y).sum().backward()
    assert x.grad.shape == (4, 6)


def test_the_same_bits_for_any_number_of_threads() -> None:
    g = taeda.Generator().manual_seed(0)
    inputs = [taeda.randn(s, generator=g) for s in ((300, 96), (3, 65536), (2, 40009), (64, 7, 33))]
    before = taeda.get_num_threads()
    results = []
    try:
        for threads in (1, 3, 4):
            taeda.set_num_threads(threads)
            results.append([fft.rfft(x, dim=d) for x in inputs for d in (0, 1)])
    finally:
        taeda.set_num_threads(before)
    for others in results[1:]:
        assert all(taeda.equal(a, b) for a, b in zip(results[0], others, strict=True))


def test_dtypes() -> None:
    assert fft.fft(taeda.arange(4)).dtype == taeda.complex64
    assert fft.rfft(taeda.ones(4, dtype=taeda.bool)).dtype == taeda.complex64
    assert fft.irfft(taeda.ones(4, dtype=taeda.float64)).dtype == taeda.float64
    for half in (taeda.float16, taeda.bfloat16):
        with pytest.raises(RuntimeError, match="Unsupported dtype"):
            fft.fft(taeda.ones(4, dtype=half))


def test_out() -> None:
    x = taeda.randn(3, 8)
    out = taeda.empty(0, dtype=taeda.complex64)
    assert fft.fft(x, out=out) is out
    assert taeda.equal(out, fft.fft(x))
    with pytest.raises(RuntimeError):
        fft.fft(x, out=taeda.empty(0))


@pytest.mark.parametrize(
    "call",
    [
        lambda x, c: fft.fft(x, n=0),
        lambda x, c: fft.irfft(x[:, :1]),
        lambda x, c: fft.fft(x, norm="other"),
        lambda x, c: fft.rfft(c),
        lambda x, c: fft.ihfftn(c),
        lambda x, c: fft.fftn(x, s=(1, 2, 3)),
        lambda x, c: fft.fftn(x, s=(1, 2), dim=(0,)),
        lambda x, c: fft.fftn(x, dim=(0, -2)),
        lambda x, c: fft.rfftn(x, dim=()),
        lambda x, c: taeda._C.ops._fft_c2c(x, [0], 1.0, True),
        lambda x, c: taeda._C.ops._fft_c2c(c, [], 1.0, True),
        lambda x, c: taeda._C.ops._fft_c2r(c, [1], 1.0, 3),
    ],
)
def test_bad_calls(call: Any) -> None:
    x = taeda.randn(3, 4)
    with pytest.raises(RuntimeError):
        call(x, x.to(taeda.complex64))


def test_bad_dimensions() -> None:
    for call in (
        lambda: fft.fft(taeda.ones(3), dim=1),
        lambda: fft.fft(taeda.tensor(1.0)),
        lambda: fft.fft2(taeda.ones(3)),
    ):
        with pytest.raises(IndexError):
            call()


@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"])
@pytest.mark.parametrize("n", [1, 2, 5, 6])
def test_derivatives(name: str, n: int) -> None:
    kinds = [taeda.float64] if name in ("rfft", "ihfft") else [taeda.float64, taeda.complex128]
    for dtype in kinds:
        x = taeda.randn(2, 4, dtype=dtype, requires_grad=True)
        for norm in (None, "ortho"):

            def f(t: Any, norm: Any = norm) -> Any:
                return getattr(fft, name)(t, n, 1, norm)

            assert gradcheck(f, (x,))
            assert gradgradcheck(f, (x,))


@pytest.mark.parametrize("name", ["fftn", "ifftn", "rfftn", "irfftn", "hfftn", "ihfftn"])
def test_derivatives_of_several_dimensions(name: str) -> None:
    dtype = taeda.float64 if name in ("rfftn", "ihfftn") else taeda.complex128
    x = taeda.randn(2, 3, 4, dtype=dtype, requires_grad=True)

    def f(t: Any) -> Any:
        return getattr(fft, name)(t, (3, 3), (2, 0))

    assert gradcheck(f, (x,))
    assert gradgradcheck(f, (x,))


def test_frequencies_and_shifts() -> None:
    for n in (1, 2, 5, 8):
        assert np.allclose(fft.fftfreq(n, 0.5, dtype=taeda.float64).numpy(), np.fft.fftfreq(n, 0.5))
        assert np.allclose(fft.rfftfreq(n, 3.0).numpy(), np.fft.rfftfreq(n, 3.0))
    x = np.arange(30.0).reshape(5, 6)
    t = taeda.from_numpy(x)
    for dim in (None, 0, 1, (0, 1)):
        assert np.array_equal(fft.fftshift(t, dim).numpy(), np.fft.fftshift(x, dim))
        assert np.array_equal(fft.ifftshift(t, dim).numpy(), np.fft.ifftshift(x, dim))
    with pytest.raises(RuntimeError):
        fft.fftfreq(4, dtype=taeda.int64)


def test_kaiser_window() -> None:
    for n in (0, 1, 2, 7, 100):
        for beta in (0.0, 5.0, 12.0, 100.0):
            ours = taeda.kaiser_window(n, False, beta, dtype=taeda.float64).numpy()
            assert np.allclose(ours, np.kaiser(n, beta), rtol=1e-13, atol=1e-15)
    periodic = taeda.kaiser_window(8, dtype=taeda.float64).numpy()
    assert np.allclose(periodic, np.kaiser(9, 12.0)[:-1], rtol=1e-13)
    with pytest.raises(RuntimeError):
        taeda.kaiser_window(-1)


class TestStft:
    def test_windows_one_by_one(self) -> None:
        x = taeda.randn(2, 40, dtype=taeda.float64)
        w = taeda.hann_window(8, dtype=taeda.float64)
        y = x.stft(8, 3, window=w, center=False, return_complex=True)
        assert y.shape == (2, 5, 11)
        for i in range(11):
            frame = x[:, 3 * i : 3 * i + 8] * w
            assert taeda.allclose(y[:, :, i], fft.rfft(frame), atol=1e-14)

    @pytest.mark.parametrize("n_fft", [8, 9])
    @pytest.mark.parametrize("normalized", [False, True])
    @pytest.mark.parametrize("kind", [taeda.float64, taeda.complex128])
    def test_round_trip(self, n_fft: int, normalized: bool, kind: Any) -> None:
        x = taeda.randn(3, 48, dtype=kind)
        w = taeda.hann_window(n_fft - 2, dtype=taeda.float64)
        whole = kind is taeda.complex128
        options = {"hop_length": 2, "win_length": n_fft - 2, "window": w, "normalized": normalized}
        y = taeda.stft(x, n_fft, **options, return_complex=True)
        z = taeda.istft(y, n_fft, **options, length=48, return_complex=whole)
        assert taeda.allclose(z, x, atol=1e-12)
        pairs = taeda.stft(x, n_fft, **options, return_complex=False)
        assert taeda.equal(taeda.view_as_complex(pairs.contiguous()), y)

    def test_derivatives(self) -> None:
        x = taeda.randn(20, dtype=taeda.float64, requires_grad=True)
        w = taeda.rand(6, dtype=taeda.float64, requires_grad=True)
        s = taeda.randn(4, 5, dtype=taeda.complex128, requires_grad=True)

        def forward(x: Any, w: Any) -> Any:
            return taeda.stft(x, 6, 4, window=w, return_complex=True)

        def back(s: Any, w: Any) -> Any:
            return taeda.istft(s, 6, 2, window=w + 0.5)

        assert gradcheck(forward, (x, w)) and gradgradcheck(forward, (x, w))
        assert gradcheck(back, (s, w)) and gradgradcheck(back, (s, w))

    def test_bad_calls(self) -> None:
        x = taeda.randn(40)
        y = taeda.stft(x, 8, return_complex=True)
        for call in (
            lambda: taeda.stft(x, 8),
            lambda: taeda.stft(x, 41, center=False, return_complex=True),
            lambda: taeda.stft(x, 8, hop_length=0, return_complex=True),
            lambda: taeda.stft(x, 8, win_length=9, return_complex=True),
            lambda: taeda.stft(x, 8, window=taeda.ones(7), return_complex=True),
            lambda: taeda.stft(x.to(taeda.complex64), 8, onesided=True),
            lambda: taeda.stft(x, 8, align_to_window=True, return_complex=True),
            lambda: taeda.stft(x[None, None], 8, return_complex=True),
            lambda: taeda.stft(x.to(taeda.int64), 8, return_complex=True),
            lambda: taeda.istft(y.abs(), 8),
            lambda: taeda.istft(y, 10),
            lambda: taeda.istft(y, 8, hop_length=9),
            lambda: taeda.istft(y, 8, window=taeda.zeros(8)),
            lambda: taeda.istft(y, 8, length=0),
            lambda: taeda.istft(y[:, :0], 8),
            lambda: taeda.istft(y, 8, return_complex=True),
        ):
            with pytest.raises(RuntimeError):
                call()
