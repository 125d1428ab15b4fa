"""Counting into bins, runs of equal elements, blocks on a diagonal: against NumPy and by hand."""

from __future__ import annotations

import numpy as np
import pytest

import taeda

# Few and many elements for each bin, blocks and parts that do not come out even.
SIZES = [0, 1, 7, 511, 513, 4097, 65_536, 150_003]
NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int16", "int32", "int64"])
@pytest.mark.parametrize("n", SIZES)
def test_bincount(dtype: str, n: int) -> None:
    g = np.random.default_rng(n)
    for most in (1, 3, 100, *(() if dtype.endswith("8") else (5000,))):
        x = g.integers(0, most, n).astype(dtype)
        t = taeda.from_numpy(x)
        np.testing.assert_array_equal(t.bincount().numpy(), np.bincount(x))
        np.testing.assert_array_equal(t.bincount(minlength=50).numpy(), np.bincount(x, None, 50))
        np.testing.assert_array_equal(t[::2].bincount().numpy(), np.bincount(x[::2]))
        weights = taeda.ones(n).double() * 0.5
        np.testing.assert_array_equal(t.bincount(weights).numpy(), np.bincount(x) * 0.5)


def test_bincount_takes_no_negative_number() -> None:
    x = taeda.zeros(10_000, dtype=taeda.int8)
    x[7777] = -1
    with pytest.raises(RuntimeError, match="non-negative"):
        x.bincount()
    with pytest.raises(RuntimeError, match="non-negative"):
        x.bincount(taeda.ones(10_000))
    assert taeda.tensor([3]).expand(1000).bincount().tolist() == [0, 0, 0, 1000]


@pytest.mark.parametrize("dtype", [taeda.float32, taeda.float64])
@pytest.mark.parametrize("n", SIZES)
def test_histograms(dtype: taeda.dtype, n: int) -> None:
    taeda.manual_seed(n)
    x = taeda.randn(n, dtype=dtype)
    x[3::7] = x[3::7].round()  # on edges
    for bins in (1, 4, 100, 5000):
        edges = taeda.linspace(-2, 2, bins + 1, dtype=dtype)
        expected = np.histogram(x.numpy(), edges.numpy())[0]
        found = x.histogram(bins, range=(-2.0, 2.0))
        np.testing.assert_array_equal(found.hist.numpy(), expected)
        np.testing.assert_array_equal(found.bin_edges.numpy(), edges.numpy())
        np.testing.assert_array_equal(x.histogram(edges).hist.numpy(), expected)
        if n:
            density = x.histogram(bins, range=(-2.0, 2.0), density=True).hist
            assert (
                density.sum().item() * 4 / bins == pytest.approx(1, abs=1e-3) or not expected.any()
            )
        if bins <= 4:  # whose edges have no error
            counted = x[(x >= -2) & (x <= 2)]
            places = ((counted + 2) * bins / 4).to(taeda.int64).clamp(max=bins - 1)
            expected = places.bincount(minlength=bins).to(dtype)
            assert x.histc(bins, -2, 2).equal(expected)


def test_histograms_of_special_values() -> None:
    x = taeda.tensor([NAN, INF, -INF, 0.0, 1.0, 0.5, 2.0, -0.0]).repeat(500)
    assert x.histc(2, 0, 1).tolist() == [1000.0, 1000.0]
    assert x.histogram(2, range=(0.0, 1.0)).hist.tolist() == [1000.0, 1000.0]
    for wrong in (x, x[:1], x[1:3]):
        with pytest.raises(RuntimeError, match="not finite"):
            wrong.histc(4)
        with pytest.raises(RuntimeError, match="not finite"):
            wrong.histogram(4)
    same = taeda.full((5000,), 3.0)
    assert same.histc(2).tolist() == [0.0, 5000.0]
    assert same.histogram(2).hist.tolist() == [0.0, 5000.0]
    assert taeda.full((100,), 1e30).histogram(3).hist.sum().item() == 100
    assert same.expand(3, 5000).mT.histc(2).tolist() == [0.0, 15000.0]
    assert taeda.empty(5, device="meta").histc(4).shape == (4,)
    far = taeda.tensor([-3e38, 0.0, 3e38]).repeat(100)  # differences beyond float32
    for bins in (2, 100_000):
        assert far.histc(bins).sum().item() == 300
        assert far.histogram(bins, range=(-3e38, 3e38)).hist.numel() == bins  # edges are NaN


def test_counts_do_not_depend_on_threads() -> None:
    x = taeda.rand(300_001)
    whole = (x * 900).to(taeda.int64)
    found = []
    before = taeda.get_num_threads()
    for threads in (1, 2, 3):
        taeda.set_num_threads(threads)
        found.append([x.histc(77), x.histogram(77).hist, whole.bincount()])
    taeda.set_num_threads(before)
    for other in found[1:]:
        assert all(a.equal(b) for a, b in zip(found[0], other, strict=True))


@pytest.mark.parametrize("n", [0, 1, 2, 3, 1000])
@pytest.mark.parametrize("different", [1, 3, 10**6])
def test_runs(n: int, different: int) -> None:
    x = np.random.default_rng(n).integers(0, different, n)
    first = np.flatnonzero(np.diff(x, prepend=-1))
    for t in (taeda.from_numpy(x), taeda.from_numpy(x.repeat(2))[::2], taeda.from_numpy(x + 0.5)):
        alone = taeda.unique_consecutive(t)
        values, inverse, counts = taeda.unique_consecutive(t, True, True)
        assert alone.equal(values)
        assert values.equal(t[taeda.from_numpy(first)])
        assert counts.tolist() == np.diff(np.append(first, n)).tolist()
        assert values[inverse].equal(t)
        assert taeda.unique(t).equal(taeda.unique(t, return_counts=True)[0])


def test_runs_keep_their_first_element() -> None:
    x = taeda.tensor([0.0, -0.0, NAN, NAN, -0.0, 0.0, 1.0])
    got = taeda.unique_consecutive(x)
    assert str(got.tolist()) == "[0.0, nan, nan, -0.0, 1.0]"


def test_block_diag() -> None:
    a, b = taeda.rand(2, 3, requires_grad=True), taeda.rand(4, requires_grad=True)
    got = taeda.block_diag(a, taeda.empty(0, 2), b, taeda.tensor(7), taeda.empty(1, 0))
    expected = taeda.zeros(5, 10)
    expected[:2, :3], expected[2, 5:9], expected[3, 9] = a.detach(), b.detach(), 7
    assert got.equal(expected)
    taeda.autograd.gradcheck(taeda.block_diag, (a.double(), b.double()))
    taeda.autograd.gradgradcheck(taeda.block_diag, (a.double(), b.double()))
    assert taeda.block_diag(a.mT, taeda.ones(1).expand(3, 3)).dtype == taeda.float32
    assert taeda.block_diag(taeda.tensor([1]), taeda.tensor([2.0])).tolist() == [[1, 0], [0, 2]]
    each = taeda.func.vmap(taeda.block_diag, (0, None))(taeda.stack([a, a + 1]), b)
    assert each.equal(taeda.stack([taeda.block_diag(a, b), taeda.block_diag(a + 1, b)]))
    assert taeda.block_diag(taeda.empty(2, 3, device="meta")).shape == (2, 3)
    for wrong in ([], [a[0]], [a, a.double()], [a, a.expand(2, 2, 3)]):
        with pytest.raises(RuntimeError, match="_block_diag"):
            taeda._C.ops._block_diag([t.detach() for t in wrong])
    for edges in (taeda.empty(0), taeda.ones(1), taeda.ones(3).double()):
        with pytest.raises(RuntimeError, match="_count_between"):
            taeda._C.ops._count_between(taeda.ones(3), edges)
    with pytest.raises(RuntimeError, match="same device"):
        taeda.block_diag(taeda.empty(2, 3, device="meta"), taeda.ones(2))


@pytest.mark.parametrize("n", [1, 3, 1000, 70_001])
@pytest.mark.parametrize("dtype", ["bool", "int16", "float32", "complex128"])
def test_masked_scatter(n: int, dtype: str) -> None:
    g = np.random.default_rng(n)
    x, source = (g.integers(0, 100, n).astype(dtype) for _ in range(2))
    for mask in (g.integers(0, 2, n).astype(bool), np.ones(n, bool), np.zeros(n, bool)):
        expected = x.copy()
        expected[mask] = source[: mask.sum()]
        tensors = (taeda.from_numpy(v.copy()) for v in (x, mask, source))
        assert taeda.masked_scatter(*tensors).numpy().tobytes() == expected.tobytes()


@pytest.mark.parametrize("size", [1, 5, 300, 9000])
def test_gather_and_scatter_along_lines(size: int) -> None:
    g = np.random.default_rng(size)
    x = g.standard_normal((6, size)).astype(np.float32)
    for count in (1, size // 3 + 1, size):
        at = np.stack([g.permutation(size)[:count] for _ in range(6)])
        t, places = taeda.from_numpy(x), taeda.from_numpy(at)
        np.testing.assert_array_equal(t.gather(1, places).numpy(), np.take_along_axis(x, at, 1))
        source = g.standard_normal(at.shape).astype(np.float32)
        expected = x.copy()
        np.put_along_axis(expected, at, source, 1)
        got = t.scatter(1, places, taeda.from_numpy(source))
        np.testing.assert_array_equal(got.numpy(), expected)
        added = t.scatter_add(1, places, taeda.from_numpy(source)).numpy()
        lines = np.arange(6)[:, None]
        expected = x.copy()
        expected[lines, at] += source
        np.testing.assert_array_equal(added, expected)
        three = t.view(2, 3, size).gather(2, places.view(2, 3, count))
        assert three.view(6, count).equal(t.gather(1, places))


def test_addr_and_vander() -> None:
    taeda.manual_seed(0)
    m, a, b = taeda.rand(4, 3).double(), taeda.rand(4).double(), taeda.rand(3).double()
    outer = np.multiply.outer(a.numpy(), b.numpy())
    for beta in (0, 0.5, 1, -2):
        for alpha in (0, 1, 3.5):
            expected = beta * m.numpy() + alpha * outer
            got = taeda.addr(m, a, b, beta=beta, alpha=alpha)
            np.testing.assert_allclose(got.numpy(), expected, rtol=1e-14)
    assert taeda.addr(m.fill_(NAN), a, b, beta=0).isfinite().all()
    for x in ([2.0, 0.0, -3.0, 0.5], [2, 0, -3], [1j, 2 - 1j], []):
        for n in (None, 0, 1, 2, 5):
            for increasing in (False, True):
                got = taeda.vander(taeda.tensor(x), n, increasing=increasing)
                expected = np.vander(np.array(x), n, increasing)
                assert tuple(got.shape) == expected.shape
                np.testing.assert_allclose(got.numpy(), expected, rtol=1e-6)
    x = taeda.tensor([2.0, 0.0, -1.0], dtype=taeda.float64, requires_grad=True)
    assert taeda.autograd.gradcheck(lambda v: taeda.vander(v, 4), (x,))


@pytest.mark.parametrize("dtype", ["float32", "complex64", "int64", "bool"])
@pytest.mark.parametrize("of_vectors", ["float32", "complex64", "int64", "bool"])
def test_addr_of_mixed_dtypes(dtype: str, of_vectors: str) -> None:
    """The result has the common dtype, whatever the factors are; some do not go with it."""
    torch = pytest.importorskip("torch")

    def outcome(library, alpha, beta):
        m = library.full((2, 2), 3, dtype=getattr(library, dtype))
        v = library.ones(2, dtype=getattr(library, of_vectors))
        try:
            result = library.addr(m, v, v, alpha=alpha, beta=beta)
        except RuntimeError:
            return None
        return str(result.dtype).split(".")[1], result.tolist()

    for alpha in (1j, 2.5, 2, True):
        for beta in (1, 1j, 0.5, 0, False):
            assert outcome(taeda, alpha, beta) == outcome(torch, alpha, beta), (alpha, beta)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ((32, 3, 3), (20, 2, 5)),
        ((9, 2), (8, 3)),
        ((8, 1, 4), (8, 3, 1)),
        ((10, 0, 2), (9, 2, 2)),
        ((16,), (12, 3)),
        ((64, 3), (64, 20)),
    ],
)
def test_kron_of_batches(a: tuple[int, ...], b: tuple[int, ...]) -> None:
    taeda.manual_seed(0)
    x, y = taeda.rand(*a), taeda.rand(*b)
    np.testing.assert_array_equal(taeda.kron(x, y).numpy(), np.kron(x.numpy(), y.numpy()))
    strided = taeda.kron(x.mT if x.dim() > 1 else x, y.flip(-1)).numpy()
    expected = np.kron(x.mT.numpy() if x.dim() > 1 else x.numpy(), y.flip(-1).numpy())
    np.testing.assert_array_equal(strided, expected)
    if 0 < x.numel() * y.numel() < 2000:
        leaves = [t.double().requires_grad_() for t in (x, y)]
        assert taeda.autograd.gradcheck(taeda.kron, leaves)
        assert taeda.autograd.gradgradcheck(taeda.kron, leaves)


def test_more_bins_than_their_numbers_can_count() -> None:
    with pytest.raises(RuntimeError, match=r"histc\(\): bins must be at most 2147483646, but got"):
        taeda.histc(taeda.ones(3), 2**31)
    edges = taeda.ones(1).expand(2**31 + 1)
    with pytest.raises(RuntimeError, match="at most 2147483646 bins, got 2147483648"):
        taeda._C.ops._count_between(taeda.ones(3), edges)
