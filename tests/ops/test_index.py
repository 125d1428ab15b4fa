"""Indexing with tensors against PyTorch: reads, writes, masks, errors, in-place forms, gradients."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="compares with PyTorch")

import taeda  # noqa: E402
from tests.conformance.bridge import to_taeda  # noqa: E402
from tests.ops.compare import assert_close, compare, compare_error, leaf  # noqa: E402

I = torch.tensor
INDICES: list[tuple] = [
    (I([0, 2, -1]),),
    (I([[0, 1], [2, 0]]),),
    (I(1),),
    (I([], dtype=torch.long),),
    (None, I([0, 3, 3])),
    (I([0, 1]), I([2, -1])),
    (I([[0], [2]]), I([1, 3])),
    (I([0, 1]), None, I([2, 0])),
    (None, I([1, 0]), I([2, 3])),
    (I([True, False, True]),),
    (None, I([True, False, True, True])),
    (torch.ones(3, 4) > 0,),
    (torch.tensor([[True, False, False, True], [False] * 4, [False, True, True, True]]),),
    (I([True, False, True]), None, I([0, 1])),
    (I([0, 2], dtype=torch.int32), I([1, 1])),
    (I([True, False, True]), I([0])),
]


def at(x: Any, index: tuple) -> Any:
    return x[tuple(slice(None) if i is None else i for i in index)]


def gradient_of(lib: Any, x: Any, y: Any) -> Any:
    (g,) = lib.autograd.grad([(y * y).sum()], [x], create_graph=True)
    (g2,) = lib.autograd.grad([(g * g * g).sum()], [x])
    return [g.detach(), g2]


@pytest.mark.parametrize(
    "index",
    INDICES,
    ids=lambda i: "-".join("None" if t is None else f"{t.dtype}{list(t.shape)}"[6:] for t in i),
)
@pytest.mark.parametrize("layout", ["contiguous", "permuted"])
def test_read_and_write(index: tuple, layout: str) -> None:
    x = (
        leaf(3, 4, 5)
        if layout == "contiguous"
        else leaf(5, 3, 4).detach().permute(1, 2, 0).requires_grad_()
    )
    ours_x, ours_index = to_taeda(x), to_taeda(index)
    theirs, ours = at(x, index), at(ours_x, ours_index)
    assert_close(ours, theirs, "read")
    assert_close(gradient_of(taeda, ours_x, ours), gradient_of(torch, x, theirs), "gradient")
    values = torch.randn(theirs.shape, dtype=torch.float64)
    for accumulate in (False, True):
        if not accumulate and theirs.shape[:1] == (3,) and len(index) == 2:
            continue  # one place named twice: which write stays is open
        indices = tuple(
            torch.arange(x.shape[d]).view([-1 if k == d else 1 for k in range(3)])
            if i is None
            else i
            for d, i in enumerate(index)
        )
        if any(i is None for i in index):
            continue
        a = x.detach().clone().index_put_(indices, values, accumulate)
        b = to_taeda(x.detach().clone()).index_put_(to_taeda(indices), to_taeda(values), accumulate)
        assert_close(b, a, "index_put_")


def test_index_put() -> None:
    x, v = leaf(4, 3), leaf(2, 3, seed=1)
    compare("index_put", x, (I([3, 0]),), v)
    compare("index_put", x, (I([3, 3]),), v, True)
    compare("index_put", x, (I([3, 0]), I([1, 1])), leaf(seed=2))
    compare("index_put", x, (torch.ones(4, 3) > 0,), leaf(seed=2))
    compare("index_put", x, (I([3, 0]),), leaf(3, seed=3))
    compare_error("index_put", x, (I([0, 1]),), torch.ones(4, dtype=torch.float64))
    compare_error("index_put", x.detach(), (I([0, 1]),), torch.ones(2, 3))


@pytest.mark.parametrize(
    "index",
    [
        (I([5]),),
        (I([-4]),),
        (I([0, 1]), I([0, 1, 2])),
        (I([True, False]),),
        (I([1.0]),),
        (I([0]), I([0]), I([0])),
    ],
    ids=str,
)
def test_index_errors(index: tuple) -> None:
    x = torch.randn(3, 4)
    with pytest.raises(IndexError) as theirs:
        x[index]
    with pytest.raises(IndexError) as ours:
        to_taeda(x)[to_taeda(index)]
    assert str(ours.value).split("\n")[0] == str(theirs.value).split("\n")[0]


@pytest.mark.parametrize("dim", [0, 1, -1])
def test_along_one_dimension(dim: int) -> None:
    x = leaf(4, 5, 3)
    index = I([2, 0, 2])
    shape = [4, 5, 3]
    shape[dim] = 3
    compare("index_select", x, dim, index)
    compare(
        "index_select", x.detach().transpose(0, 1).contiguous().transpose(0, 1), dim, index.int()
    )
    compare("index_add", x, dim, index, leaf(*shape, seed=1))
    compare("index_add", x, dim, index, leaf(*shape, seed=1), alpha=-0.5)
    compare("index_copy", x, dim, I([2, 0, 1]), leaf(*shape, seed=1))
    compare("index_fill", x, dim, index, 2.5)
    compare("index_fill", x, dim, index, leaf(seed=3))


def test_zero_dim() -> None:
    compare("index_select", leaf(), 0, I([0]))
    compare("index_add", leaf(), 0, I(0), leaf(seed=1))
    compare("index_fill", leaf(), 0, I([0]), 1.0)
    compare("take", leaf(), I([0, 0]))


@pytest.mark.parametrize(
    "name", ["bool", "uint8", "int16", "int64", "float16", "bfloat16", "complex128"]
)
def test_dtypes(name: str) -> None:
    dtype = getattr(torch, name)
    x = torch.randint(0, 2, (4, 3)).to(dtype)
    index = I([3, 0, 0])
    compare("index_select", x, 0, index)
    compare("index_add", x, 0, index, x[:3])
    compare("index_fill", x, 1, I([1]), 1)
    compare("index_copy", x, 0, I([3, 0, 1]), x[:3])
    compare("take", x, I([[0, -1], [5, 5]]))
    compare("masked_select", x, x == 1)
    compare("nonzero", x)


def test_flattened() -> None:
    x = leaf(3, 4)
    compare("take", x, I([[0, 11], [-1, 0]]))
    compare("Tensor.put", x, I([1, -1]), leaf(2, seed=1))
    compare("Tensor.put", x, I([1, 1]), leaf(2, seed=1), True)
    compare_error("take", x, I([12]))
    compare_error("take", x, I([1], dtype=torch.int32))


def test_masks() -> None:
    x = leaf(3, 4)
    mask = x.detach() > 0
    compare("masked_select", x, mask)
    compare("masked_select", x, mask[0])
    compare("masked_select", leaf(4), mask)
    compare("masked_scatter", x, mask, leaf(20, seed=1))
    compare("masked_scatter", x, mask[:, :1], leaf(3, 7, seed=1))
    compare("nonzero", x.detach().round())
    compare("nonzero", I(3.0))
    compare("nonzero", torch.ones(0, 2))
    compare("argwhere", mask.t())
    big = torch.randn(300, 700)
    compare("nonzero", big > 1)
    compare("nonzero", big > -9)
    compare("nonzero", (big > 1).view(100, 3, 7, 100).transpose(0, 3))
    compare("nonzero", (big > 0).view(300, 350, 2))
    compare("nonzero", big.flatten() > 0)
    compare("masked_select", big, big > 1)
    compare_error("masked_select", x, I([0, 1]))
    compare_error("masked_scatter", x, mask, torch.ones(1, dtype=torch.float64))


def test_one_hot() -> None:
    compare("nn.functional.one_hot", I([[0, 2], [1, 1]]))
    compare("nn.functional.one_hot", I([0, 2]), 5)
    compare_error("nn.functional.one_hot", I([5]), 3)
    compare_error("nn.functional.one_hot", I([-2]))


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("index_add_", (0, I([1, 1]), torch.ones(2, 3))),
        ("index_copy_", (1, I([2, 0]), torch.ones(4, 2))),
        ("index_fill_", (0, I([1, -1]), 7.0)),
        ("index_put_", ((I([1, 2]), I([0, 0])), I(3.0))),
        ("masked_scatter_", (torch.arange(12).view(4, 3) % 2 == 0, torch.arange(12.0))),
        ("put_", (I([0, 5]), torch.ones(2))),
    ],
    ids=lambda v: v if isinstance(v, str) else "",
)
@pytest.mark.parametrize("layout", ["contiguous", "transposed"])
def test_in_place(name: str, args: tuple, layout: str) -> None:
    base = torch.randn(4, 3) if layout == "contiguous" else torch.randn(3, 4).t()
    ours_base = to_taeda(base)
    theirs = base.clone(memory_format=torch.preserve_format)
    ours = ours_base.clone(memory_format=taeda.preserve_format)
    version = ours._version
    assert getattr(ours, name)(*to_taeda(args)) is ours
    getattr(theirs, name)(*args)
    assert_close(ours, theirs, name)
    assert ours._version > version


def test_writing_what_overlaps() -> None:
    x = taeda.zeros(1, 3).expand(2, 3)
    with pytest.raises(RuntimeError, match="single memory location"):
        x.index_fill_(0, taeda.tensor([0]), 1.0)
    y = taeda.arange(6.0)
    y.index_copy_(0, taeda.tensor([1, 2, 3]), y[:3])
    assert y.tolist() == [0.0, 0.0, 1.0, 2.0, 4.0, 5.0]


def test_errors() -> None:
    x = torch.randn(3, 4)
    compare_error("index_select", x, 0, I([5]))
    compare_error("index_select", x, 0, I([-1]))
    compare_error("index_select", x, 0, I([0.0]))
    compare_error("index_select", x, 0, I([[0]]))
    compare_error("index_add", x, 0, I([5]), x[:1])
    compare_error("index_add", x, 0, I([0, 1]), x)
    compare_error("index_copy", x, 0, I([5]), x[:1])
    compare_error("index_fill", x, 0, I([5]), 1.0)


def test_meta() -> None:
    x = taeda.empty(3, 4, device="meta")
    index = taeda.empty(5, dtype=taeda.int64, device="meta")
    assert x[index].shape == (5, 4)
    assert x.index_select(1, index).shape == (3, 5)
    assert x[:, index, None].shape == (3, 5, 1)
    with pytest.raises(NotImplementedError):
        x.nonzero()
