"""gather and scatter against PyTorch."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="compares with PyTorch")

import taeda  # noqa: E402
from tests.conformance.bridge import to_taeda  # noqa: E402
from tests.ops.compare import assert_close, compare, compare_error, leaf  # noqa: E402


def index_for(shape: tuple, dim: int, size: int, unique: bool = False) -> torch.Tensor:
    g = torch.Generator().manual_seed(5)
    if unique:
        return torch.rand(*shape, generator=g).argsort(dim)
    return torch.randint(0, size, shape, generator=g)


@pytest.mark.parametrize("dim", [0, 1, 2, -1])
def test_gather(dim: int) -> None:
    x = leaf(4, 5, 3)
    compare("gather", x, dim, index_for((4, 5, 3), dim, (4, 5, 3)[dim]))
    compare("gather", x, dim, index_for((2, 3, 3), dim, (4, 5, 3)[dim]).int())
    compare("gather", leaf(3, 4, 5).detach().permute(1, 2, 0), dim, index_for((4, 5, 3), dim, 3))
    compare("take_along_dim", x, index_for((4, 5, 3), dim, 3) - 1, dim)


def test_broadcasting_take() -> None:
    compare("take_along_dim", leaf(3, 4), torch.tensor([[0], [3], [1]]), 1)
    compare("take_along_dim", leaf(3, 4), torch.tensor([[0, 3, 1]]), 1)
    compare("take_along_dim", leaf(3, 4), torch.tensor([0, 11, 5]))


@pytest.mark.filterwarnings("ignore:The reduce argument")
@pytest.mark.parametrize("dim", [0, 1, 2])
def test_scatter(dim: int) -> None:
    x, src = leaf(4, 5, 3), leaf(4, 5, 3, seed=1)
    unique = index_for((4, 5, 3), dim, 0, unique=True)
    repeated = index_for((3, 4, 2), dim, 2)
    compare("scatter", x, dim, unique, src)
    compare("scatter", x, dim, repeated, 1.5)
    compare("scatter_add", x, dim, repeated, leaf(3, 4, 2, seed=1))
    compare("scatter_add", x.detach(), dim, repeated, src.detach())
    compare("scatter", x.detach(), dim, repeated, src.detach(), reduce="add")
    compare("scatter", x.detach(), dim, repeated, src.detach(), reduce="multiply")
    compare("scatter", x.detach(), dim, repeated, 2.0, reduce="multiply")


@pytest.mark.parametrize("reduce", ["sum", "prod", "mean", "amax", "amin"])
@pytest.mark.parametrize("include_self", [True, False])
def test_scatter_reduce(reduce: str, include_self: bool) -> None:
    x, src = leaf(4, 5), leaf(4, 5, seed=1)
    for dim in (0, 1):
        index = index_for((4, 5), dim, 4)
        compare("scatter_reduce", x, dim, index, src, reduce, include_self=include_self)
        ints = torch.randint(-5, 5, (4, 5))
        compare("scatter_reduce", ints, dim, index, ints.flip(0), reduce, include_self=include_self)
    with torch.no_grad():
        src[0, 0] = src[1, 1] = 0
    compare(
        "scatter_reduce",
        x,
        0,
        index_for((4, 5), 0, 4),
        src,
        reduce,
        include_self=include_self,
        second=False,
    )


@pytest.mark.parametrize("name", ["bool", "uint8", "int32", "float16", "bfloat16", "complex64"])
def test_dtypes(name: str) -> None:
    x = torch.randint(0, 2, (4, 3)).to(getattr(torch, name))
    index = index_for((4, 3), 0, 4)
    compare("gather", x, 0, index)
    compare("scatter", x, 0, index, 1)
    compare("scatter_add", x, 0, index, x)


def test_zero_dim_and_empty() -> None:
    compare("gather", leaf(), 0, torch.tensor([0, 0]))
    compare("gather", leaf(), 0, torch.tensor(0))
    compare("scatter", leaf(), 0, torch.tensor(0), leaf(seed=1))
    compare("gather", leaf(3, 4), 0, torch.zeros(0, dtype=torch.long), second=False)
    compare(
        "scatter_add",
        leaf(3, 4),
        0,
        torch.zeros(0, 4, dtype=torch.long),
        torch.ones(0, 4, dtype=torch.float64),
    )


@pytest.mark.parametrize("name", ["scatter_", "scatter_add_", "scatter_reduce_"])
def test_in_place(name: str) -> None:
    x, src = torch.randn(3, 4).t(), torch.randn(4, 3)
    index = index_for((4, 3), 0, 0, unique=True)
    extra = ("amax",) if name == "scatter_reduce_" else ()
    theirs = x.clone(memory_format=torch.preserve_format)
    ours = to_taeda(theirs)
    getattr(theirs, name)(0, index, src, *extra)
    assert getattr(ours, name)(0, to_taeda(index), to_taeda(src), *extra) is ours
    assert_close(ours, theirs, name)


def test_large() -> None:
    x = torch.randn(200, 500)
    for dim in (0, 1):
        index = index_for((200, 500), dim, 200)
        compare("gather", x, dim, index)
        compare("scatter_add", x.double(), dim, index, x.double())


def test_errors() -> None:
    x = torch.randn(3, 4)
    one = torch.tensor([[5]])
    compare_error("gather", x, 0, one)
    compare_error("gather", x, 0, torch.tensor([[-1]]))
    compare_error("gather", x, 0, torch.tensor([5]))
    compare_error("gather", x, 0, torch.zeros(2, 5, dtype=torch.long))
    compare_error("gather", x, 0, torch.zeros(1, 1))
    compare_error("scatter", x, 0, one, x)
    compare_error("scatter", x, 0, one * 0, x.double())
    compare_error("scatter", x, 0, torch.zeros(2, 5, dtype=torch.long), x)
    compare_error("scatter_reduce", x, 0, one * 0, x, "median")
    with pytest.raises(RuntimeError, match="index 5 is out of bounds for dimension 0 with size 3"):
        taeda.ones(3, 4).gather(0, taeda.tensor([[5]]))
