"""gather and scatter, line by line: narrow and wide, dense and strided, rows that go to rows."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="compares with PyTorch")

import taeda  # noqa: E402
from tests.conformance.bridge import to_taeda  # noqa: E402
from tests.ops.compare import assert_close  # noqa: E402

NAMES = ["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16"]
NAMES += ["float32", "float64", "complex64"]


def numbers(*shape: int, dtype: str) -> torch.Tensor:
    g = torch.Generator().manual_seed(len(shape) + shape[0])
    return torch.randint(-9, 10, shape, generator=g).to(getattr(torch, dtype))


def places(*shape: int, size: int) -> torch.Tensor:
    return torch.randint(0, size, shape, generator=torch.Generator().manual_seed(3))


# Sizes of x, of the index before it is expanded, what it is expanded to, and the dimension.
LAYOUTS = [
    ((300, 7), (300, 5), None, 1),
    ((300, 7), (300, 1), None, 1),
    ((5, 40, 7), (5, 40, 1), None, 2),
    ((40, 3), (200, 3), None, 0),
    ((40, 50), (200, 1), (200, 50), 0),
    ((40, 3), (200, 1), (200, 3), 0),
    ((6, 9, 21), (6, 1, 1), (6, 1, 21), 1),
    ((6, 9, 21), (6, 4, 1), (6, 4, 21), 1),
    ((1, 9, 1, 5), (1, 4, 1, 5), None, 1),
    ((4, 5, 6, 7), (4, 5, 3, 7), None, 2),
    ((20000,), (40000,), None, 0),
    ((3, 40), (3, 20000), None, 1),
]


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize(("shape", "index", "expanded", "dim"), LAYOUTS)
def test_layouts(
    shape: tuple, index: tuple, expanded: tuple | None, dim: int, transposed: bool
) -> None:
    i = places(*index, size=shape[dim])
    if expanded:
        i = i.expand(expanded)
    x, src = numbers(*shape, dtype="float32"), numbers(*i.shape, dtype="float32")
    if transposed:
        x, src = (t.mT.contiguous().mT if t.dim() > 1 else t.repeat(2)[::2] for t in (x, src))
    ours, our_i, our_src = to_taeda(x), to_taeda(i), to_taeda(src)
    assert_close(ours.gather(dim, our_i), x.gather(dim, i))
    assert_close(ours.scatter_add(dim, our_i, our_src), x.scatter_add(dim, i, src))
    assert_close(ours.scatter(dim, our_i, 3), x.scatter(dim, i, 3))
    for reduce in ("amax", "amin"):
        theirs = x.scatter_reduce(dim, i, src, reduce)
        assert_close(ours.scatter_reduce(dim, our_i, our_src, reduce), theirs, reduce)
    # What is written twice is what comes last.
    last = to_taeda(x).scatter(dim, our_i, our_src)
    assert_close(last, x.scatter(dim, i, src))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("n", [3, 16, 37])
def test_rows_to_rows(name: str, n: int) -> None:
    x, src = numbers(11, n, dtype=name), numbers(8, n, dtype=name)
    i = places(8, size=11)
    rows = i[:, None].expand(8, n)
    ours, our_rows, our_src = to_taeda(x), to_taeda(rows), to_taeda(src)
    assert_close(ours.gather(0, our_rows), x.gather(0, rows))
    assert_close(ours.scatter_add(0, our_rows, our_src), x.scatter_add(0, rows, src))
    assert_close(ours.index_add(0, to_taeda(i), our_src), x.index_add(0, i, src))
    if name != "bool":
        theirs = x.scatter_reduce(0, rows, src, "prod")
        assert_close(ours.scatter_reduce(0, our_rows, our_src, "prod"), theirs)
    if name != "complex64":
        for reduce in ("amax", "amin"):
            theirs = x.scatter_reduce(0, rows, src, reduce)
            assert_close(ours.scatter_reduce(0, our_rows, our_src, reduce), theirs, reduce)


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float32", "float64"])
def test_nan_and_infinity(name: str) -> None:
    special = torch.tensor([float("nan"), float("inf"), -float("inf"), 0.0, 2.0])
    x, src = special.repeat_interleave(5).repeat(2), special.repeat(10)
    x, src = (t.to(getattr(torch, name)).reshape(2, 25) for t in (x, src))
    rows = torch.tensor([[1], [0]]).expand(2, 25)
    for i in (rows, torch.zeros(2, 25, dtype=torch.long) + torch.tensor([[1], [0]])):
        for reduce in ("sum", "prod", "amax", "amin"):
            theirs = x.scatter_reduce(0, i, src, reduce)
            ours = to_taeda(x).scatter_reduce(0, to_taeda(i), to_taeda(src), reduce)
            assert_close(ours, theirs, reduce)


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_threads(threads: int) -> None:
    before = taeda.get_num_threads()
    x, src = torch.randn(400, 300), torch.randn(1000, 300)
    i = places(1000, 300, size=400)
    sums = taeda.zeros(400, 300).scatter_add(0, to_taeda(i), to_taeda(src))
    taken = to_taeda(x).gather(0, to_taeda(i))
    try:
        taeda.set_num_threads(threads)
        assert taeda.equal(taeda.zeros(400, 300).scatter_add(0, to_taeda(i), to_taeda(src)), sums)
        assert taeda.equal(to_taeda(x).gather(0, to_taeda(i)), taken)
    finally:
        taeda.set_num_threads(before)


@pytest.mark.parametrize("bad", [-1, 7, 1 << 62, -(1 << 62)])
@pytest.mark.parametrize("shape", [(300, 5), (300, 1), (2, 40000)])
def test_places_outside(bad: int, shape: tuple) -> None:
    i = taeda.zeros(shape, dtype=taeda.int64)
    i[-1, -1] = bad
    x = taeda.zeros(shape[0], 7)
    for call in (
        lambda: x.gather(1, i),
        lambda: x.scatter(1, i, 1.0),
        lambda: x.scatter_add(1, i, taeda.ones(shape)),
        lambda: x.t().scatter_add(0, i.t(), taeda.ones(shape).t()),
        lambda: x.t().gather(0, i[:, -1:].t()),
    ):
        with pytest.raises(RuntimeError, match=f"index {bad} is out of bounds"):
            call()
    x.fill_(2)
    for call in (
        lambda: x.scatter_(1, i, 1.0),
        lambda: x.scatter_add_(1, i, taeda.ones(shape)),
        lambda: x.scatter_reduce_(1, i, taeda.ones(shape), "amin", include_self=False),
    ):
        with pytest.raises(RuntimeError, match=f"index {bad} is out of bounds"):
            call()
        assert (x == 2).all()
