"""Every way of sorting a line, by its length and by how far its keys lie apart, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import taeda

# Around where elements are counted, merged, moved by digits, and shared out.
LENGTHS = [0, 1, 2, 3, 15, 16, 17, 31, 33, 100, 127, 160, 257, 1000, 1023, 1025]


def in_order(x: np.ndarray, descending: bool) -> np.ndarray:
    """The stable order along the last dimension; NaN counts as the largest, -0 as 0."""
    flipped = x[..., ::-1] if descending else x
    order = np.argsort(flipped, axis=-1, kind="stable")
    return x.shape[-1] - 1 - order[..., ::-1] if descending else order


def check(x: np.ndarray, t: taeda.Tensor | None = None) -> None:
    t = taeda.from_numpy(x.copy()) if t is None else t
    for descending in (False, True):
        order = in_order(x, descending)
        values, places = t.sort(dim=-1, descending=descending, stable=True)
        np.testing.assert_array_equal(places.numpy(), order)
        expected = np.take_along_axis(x, order, -1)
        bits = f"u{x.dtype.itemsize}"
        np.testing.assert_array_equal(
            np.ascontiguousarray(values.numpy()).view(bits),
            np.ascontiguousarray(expected).view(bits),
        )


def random_lines(kind: str, lines: int, n: int) -> np.ndarray:
    g = np.random.default_rng(n)
    if kind == "ties":
        return g.integers(0, 5, (lines, n))
    if kind == "constant":
        return np.full((lines, n), -7, np.int64)
    if kind == "bool":
        return g.integers(0, 2, (lines, n)).astype(bool)
    if kind in ("int8", "uint8", "int16", "int32", "int64"):
        info = np.iinfo(kind)
        x = g.integers(info.min, info.max, (lines, n), dtype=kind, endpoint=True)
        x[:, : min(n, 1)] = info.min
        x[:, n // 2 : n // 2 + 1] = info.max
        return x
    if kind == "outlier":  # far apart, but for keys that differ in their last bits alone
        x = g.integers(0, 40, (lines, n))
        x[:, : min(n, 1)] = np.iinfo(np.int64).min
        return x
    if kind == "clusters":  # whose keys' leading bits say little
        x = g.integers(0, 1 << 40, (lines, n))
        x[:, ::2] = g.integers(0, 1000, x[:, ::2].shape)
        x[:, ::5] = (1 << 39) + g.integers(0, 9, x[:, ::5].shape) * 4099
        return x
    x = g.standard_normal((lines, n)).astype(kind)
    x[:, 1::5] = x[:, : x[:, 1::5].shape[1]]
    x[:, 2::11], x[:, 3::11] = 0.0, -0.0
    x[:, 4::17], x[:, 6::19] = np.inf, -np.inf
    x[:, 7::23] = np.nan
    return x


KINDS = ["bool", "int8", "uint8", "int16", "int32", "int64", "float32", "float64"]


@pytest.mark.parametrize("kind", [*KINDS, "ties", "constant", "outlier"])
def test_lines(kind: str) -> None:
    for n in LENGTHS:
        check(random_lines(kind, 3, n))


@pytest.mark.parametrize("kind", [*KINDS, "ties", "outlier", "clusters"])
@pytest.mark.parametrize("n", [65_536, 150_001, 400_000])
def test_several_parts(kind: str, n: int) -> None:
    check(random_lines(kind, 1, n))


@pytest.mark.parametrize("n", [4, 16, 50, 300])
@pytest.mark.parametrize("kind", ["uint8", "int64", "float32"])
def test_strided_and_expanded(kind: str, n: int) -> None:
    x = random_lines(kind, 5, n)
    t = taeda.from_numpy(x.copy())
    check(x[:, ::2], t[:, ::2])
    check(np.ascontiguousarray(x.T), t.mT)
    check(np.broadcast_to(x[0], (4, n)).copy(), t[0].expand(4, n))
    check(np.broadcast_to(x[:, :1], (5, n)).copy(), t[:, :1].expand(5, n))
    for dim in (0, 1):
        places = taeda.stack([t, t.flip(1)]).transpose(0, 1).sort(dim=dim).indices
        order = np.argsort(np.stack([x, x[:, ::-1]]).swapaxes(0, 1), axis=dim, kind="stable")
        np.testing.assert_array_equal(places.numpy(), order)


@pytest.mark.parametrize("n", [5, 16, 40, 3000])
@pytest.mark.parametrize("kind", ["uint8", "int64", "float32", "float64"])
def test_first_of_a_line(kind: str, n: int) -> None:
    x = random_lines(kind, 3, n)
    t = taeda.from_numpy(x)
    for largest in (False, True):
        values, places = t.sort(dim=1, descending=largest)
        for k in {0, 1, n // 4, n // 4 + 1, n // 2, n - 1, n}:
            got = t.topk(k, largest=largest)
            assert got.indices.equal(places[:, :k])
            assert taeda.equal(got.values.nan_to_num(), values[:, :k].nan_to_num())
            some = t.topk(k, largest=largest, sorted=False).indices.sort().values
            assert some.equal(places[:, :k].sort().values)


@pytest.mark.parametrize("kind", ["int64", "ties", "float64"])
def test_mode_takes_the_least_and_its_last_place(kind: str) -> None:
    x = np.nan_to_num(random_lines(kind, 4, 200))
    values, places = taeda.from_numpy(x).mode(dim=1)
    for line, value, place in zip(x, values.tolist(), places.tolist(), strict=True):
        found, counts = np.unique(line, return_counts=True)
        assert value == found[counts.argmax()]
        assert place == np.flatnonzero(line == value)[-1]


@pytest.mark.parametrize("kind", [*KINDS[1:], "ties", "constant", "outlier", "ascending"])
@pytest.mark.parametrize("n", [131_072, 131_073, 200_001])
def test_ranks_of_long_lines(kind: str, n: int) -> None:
    x = np.arange(n) if kind == "ascending" else random_lines(kind, 1, n)[0]
    t = taeda.from_numpy(x)
    order = in_order(x, False)
    for rank in {0, 1, n // 3, n - 2, n - 1}:
        value, place = t.kthvalue(rank + 1)
        assert place == order[rank]
        np.testing.assert_equal(value.item(), x[order[rank]])
    step = taeda.stack([t, t], 1)[:, 1].kthvalue(n // 3 + 1)
    assert step.indices == order[n // 3]
    nans = int(np.isnan(x).sum()) if kind.startswith("float") else 0
    middle = order[(n - nans - 1) // 2]
    assert t.nanmedian(0).indices == middle
    assert t.median(0).indices == (np.flatnonzero(np.isnan(x))[0] if nans else middle)
    if nans:
        assert t.median().isnan()
        alone = t.clone().fill_(np.nan)
        assert alone.nanmedian(0).indices == 0
        assert alone.nanmedian().isnan()
