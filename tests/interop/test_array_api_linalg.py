"""The array API standard: linear algebra and Fourier transforms."""

from __future__ import annotations

import numpy as np
import pytest

from tests.interop.array_api import REALS, agree, of_the_version, sample


@pytest.fixture(autouse=True)
def version_of_the_standard():
    with of_the_version():
        yield


LINALG = {
    "matmul": lambda xp, a, b, v: [xp.matmul(a, b), a @ b, xp.matmul(a, v), xp.matmul(v, a)],
    "vecdot": lambda xp, a, b, v: [xp.vecdot(a, b), xp.vecdot(a, v), xp.vecdot(a, b, axis=-2)],
    "tensordot": lambda xp, a, b, v: [xp.tensordot(a, b), xp.tensordot(a, v, axes=1), xp.tensordot(a, b, axes=((0,), (1,)))],
    "outer": lambda xp, a, b, v: xp.linalg.outer(v, v),
    "cross": lambda xp, a, b, v: [xp.linalg.cross(a[:3, :3], b[:3, :3]), xp.linalg.cross(a[:3, :], b[:3, :], axis=-2)],
    "diagonal": lambda xp, a, b, v: [xp.linalg.diagonal(a), xp.linalg.diagonal(a, offset=1), xp.linalg.trace(a), xp.linalg.trace(a, offset=-1)],
    "solve": lambda xp, a, b, v: [xp.linalg.solve(a, b), xp.linalg.solve(a, v), xp.linalg.solve(xp.stack([a, b, a, b]), a)],
    "inverse": lambda xp, a, b, v: [xp.linalg.inv(a), xp.linalg.det(a), *xp.linalg.slogdet(a), xp.linalg.matrix_power(a, 3), xp.linalg.matrix_power(a, -1)],
    "factors": lambda xp, a, b, v: [xp.linalg.cholesky(a @ a.mT + xp.eye(4, dtype=a.dtype)), xp.linalg.cholesky(a @ a.mT + xp.eye(4, dtype=a.dtype), upper=True), xp.linalg.eigvalsh(a + a.mT), xp.linalg.svdvals(a), xp.abs(xp.linalg.qr(a)[1]), xp.linalg.svd(a[:, :2])[0].mT[:0, :]],
    "norms": lambda xp, a, b, v: [xp.linalg.matrix_norm(a), xp.linalg.matrix_norm(a, ord="nuc"), xp.linalg.matrix_norm(a, ord=1, keepdims=True), xp.linalg.vector_norm(a), xp.linalg.vector_norm(a, axis=0, ord=1), xp.linalg.vector_norm(a, keepdims=True), xp.linalg.vector_norm(a, axis=(0, 1), ord=xp.inf)],
    "rank": lambda xp, a, b, v: [xp.linalg.matrix_rank(a), xp.linalg.matrix_rank(a, rtol=0.5), xp.linalg.pinv(a), xp.linalg.pinv(a, rtol=0.1)],
}  # fmt: skip


@pytest.mark.parametrize("name", LINALG)
@pytest.mark.parametrize("dtype", REALS)
def test_linear_algebra(name, dtype):
    a, b = (sample((4, 4), dtype, seed) + 2 * np.eye(4, dtype=dtype) for seed in (1, 2))
    agree(LINALG[name], a, b, sample((4,), dtype, 3))


def test_products_of_integers_and_complex_numbers():
    for left, right in [("int8", "int32"), ("complex64", "float64"), ("complex64", "complex64")]:
        x, y = sample((3, 3), left), sample((3, 3), right, 1)
        agree(lambda xp, x, y: [xp.matmul(x, y), xp.vecdot(x, y), xp.tensordot(x, y)], x, y)


def test_fourier_transforms():
    x = sample((4, 6), "complex128")
    for name in ("fft", "ifft", "hfft"):
        for norm in ("backward", "ortho", "forward"):
            agree(
                lambda xp, x: [
                    getattr(xp.fft, name)(x, norm=norm),
                    getattr(xp.fft, name)(x, n=5, axis=0),
                ],
                x,
            )
    for name in ("rfft", "ihfft"):
        agree(lambda xp, x: getattr(xp.fft, name)(x, axis=0), x.real.copy())
    for name in ("fftn", "ifftn", "irfftn"):
        agree(lambda xp, x: [getattr(xp.fft, name)(x), getattr(xp.fft, name)(x, axes=(0,))], x)
    agree(lambda xp, x: [xp.fft.rfftn(x), xp.fft.rfftn(x, s=(3, 4), axes=(0, 1))], x.real.copy())
    agree(lambda xp, x: [xp.fft.irfft(x), xp.fft.irfft(x, n=7, axis=0)], x)
    agree(lambda xp, x: [xp.fft.fftshift(x), xp.fft.ifftshift(x, axes=(1,))], x)
    agree(
        lambda xp: [
            xp.fft.fftfreq(5, d=0.5, dtype=xp.float64),
            xp.fft.rfftfreq(6, dtype=xp.float64),
        ]
    )
