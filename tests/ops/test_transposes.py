"""Copies of transposed matrices of elements of any size, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import taeda

DTYPES = ["uint8", "int16", "int32", "int64", "complex128"]
SIZES = [1, 3, 4, 7, 8, 15, 16, 17, 31, 33, 64, 65, 130, 300]


def bytes_of(dtype: str, *shape: int) -> np.ndarray:
    a = np.random.default_rng(0).integers(0, 256, (*shape, np.dtype(dtype).itemsize), np.uint8)
    if dtype == "complex128":
        return a.astype(np.float64)[..., 0] + 1j * a[..., 1]
    return a.view(dtype)[..., 0]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", SIZES)
def test_matrices(dtype: str, n: int) -> None:
    for m in SIZES:
        a = bytes_of(dtype, n, m)
        x = taeda.from_numpy(a)
        np.testing.assert_array_equal(x.t().contiguous().numpy(), a.T)
        wide = taeda.zeros(m, n + 3, dtype=x.dtype)
        wide[:, 1 : n + 1] = x.t()  # rows that begin anywhere
        np.testing.assert_array_equal(wide[:, 1 : n + 1].numpy(), a.T)
        assert not wide[:, 0].any()
        assert not wide[:, n + 1 :].any()


@pytest.mark.parametrize("dtype", DTYPES[:4])
@pytest.mark.parametrize("shape", [(3, 20, 17, 19), (2, 64, 8, 8), (5, 16, 3, 70)])
def test_planes(dtype: str, shape: tuple) -> None:
    a = bytes_of(dtype, *shape)
    x = taeda.from_numpy(a)
    for dims in [(0, 2, 3, 1), (0, 3, 1, 2), (3, 2, 1, 0), (1, 0, 3, 2)]:
        np.testing.assert_array_equal(x.permute(dims).contiguous().numpy(), a.transpose(dims))


@pytest.mark.parametrize("dtype", DTYPES[:4])
def test_past_the_caches(dtype: str) -> None:
    side = {1: 6400, 2: 4480, 4: 3200, 8: 2304}[np.dtype(dtype).itemsize]
    a = bytes_of(dtype, side, side + 64)
    np.testing.assert_array_equal(taeda.from_numpy(a).t().contiguous().numpy(), a.T)


@pytest.mark.parametrize("dtype", ["uint8", "int16", "int32", "int64"])
@pytest.mark.parametrize("row", [2, 3, 4, 8, 16])
def test_short_rows_that_stay_together(dtype: str, row: int) -> None:
    a = bytes_of(dtype, 5, 9, 33, row)
    for first in (0, 1):  # of which the second need not begin at a multiple of a row
        flat = bytes_of(dtype, a.size + 1)
        b = flat[first : first + a.size].reshape(a.shape)
        x = taeda.from_numpy(flat)[first : first + a.size].view(a.shape)
        for dims in [(1, 0, 2, 3), (2, 0, 1, 3), (2, 1, 0, 3)]:
            np.testing.assert_array_equal(x.permute(dims).contiguous().numpy(), b.transpose(dims))
        for flipped in [(0,), (1, 2), (2,), (3,), (0, 3)]:
            np.testing.assert_array_equal(x.flip(flipped).numpy(), np.flip(b, flipped))
        wide = taeda.zeros(5, 9, 33, row + 1, dtype=x.dtype)
        wide[..., 1:] = x
        np.testing.assert_array_equal(wide[..., 1:].numpy(), b)
        np.testing.assert_array_equal(x[:, ::2, 1:].contiguous().numpy(), b[:, ::2, 1:])


@pytest.mark.parametrize("dtype", ["int16", "int32", "float32", "float64", "complex64"])
@pytest.mark.parametrize("shape", [(2, 2), (3, 3), (4, 4), (2, 5), (8, 4), (4, 8), (5, 7)], ids=str)
def test_many_tiny_planes(shape, dtype):
    x = (np.arange(41 * 9 * 10).reshape(41, 9, 10) % 1009).astype(dtype)
    t, (n, m) = taeda.from_numpy(x.copy()), shape
    for part, want in [
        (t[:, :n, :m], x[:, :n, :m]),
        (t[::3, 1 : n + 1, 2 : m + 2], x[::3, 1 : n + 1, 2 : m + 2]),
        (t[:1, :n, :m].expand(6, n, m), np.broadcast_to(x[:1, :n, :m], (6, n, m))),
        (t.transpose(0, 1)[:n, :, :m].transpose(0, 1), x[:, :n, :m]),
    ]:
        turned = part.mT.contiguous()
        np.testing.assert_array_equal(turned.numpy(), want.swapaxes(1, 2))
        to = taeda.zeros(want.shape[0], m, n + 1, dtype=part.dtype)
        to[:, :, :n] = part.mT
        np.testing.assert_array_equal(to[:, :, :n].numpy(), want.swapaxes(1, 2))
        assert not to[:, :, n].any()
