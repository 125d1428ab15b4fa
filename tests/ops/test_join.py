"""cat, stack and their relatives against PyTorch."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="compares with PyTorch")

import taeda  # noqa: E402
from tests.ops.compare import compare, compare_error, leaf  # noqa: E402


@pytest.mark.parametrize("dim", [0, 1, -1])
def test_cat(dim: int) -> None:
    shapes = [[2, 3, 4], [2, 3, 4]]
    shapes[1][dim] = 5
    a, b = leaf(*shapes[0]), leaf(*shapes[1], seed=1)
    compare("cat", [a, b, leaf(*shapes[0], seed=2)], dim)
    compare("cat", [a, b.transpose(0, 1).contiguous().transpose(0, 1)], dim)
    compare("concat", (a, b), dim=dim)


def test_promotion_and_empty_parts() -> None:
    compare("cat", [torch.ones(2, 2), torch.ones(1, 2, dtype=torch.float64)])
    compare("cat", [torch.ones(2, dtype=torch.int32), torch.ones(2, dtype=torch.float16)])
    compare("cat", [torch.ones(2, dtype=torch.bool), torch.tensor([3])])
    compare("cat", [torch.ones(0), leaf(2, 3, dtype=torch.float32)])
    compare("cat", [torch.ones(0), torch.ones(0)])
    compare("cat", [torch.ones(0, 3), torch.ones(2, 3)])
    compare("cat", [leaf(2, 3), leaf(2, 3, dtype=torch.float32, seed=1)], 1)


def test_channels_last_is_kept() -> None:
    parts = [torch.randn(2, c, 4, 5).to(memory_format=torch.channels_last) for c in (3, 2)]
    ours = compare("cat", parts, 1)
    assert ours.is_contiguous(memory_format=taeda.channels_last)


@pytest.mark.parametrize("dim", [0, 1, 2, -1])
def test_stack(dim: int) -> None:
    compare("stack", [leaf(2, 3, seed=i) for i in range(3)], dim)
    compare("stack", [leaf(2, 3).t().detach(), torch.randn(3, 2)], dim)
    for dtype in (torch.bool, torch.int16, torch.complex128):
        compare("stack", [torch.ones(2, 2, dtype=dtype)] * 3, dim)


def test_stack_of_scalars() -> None:
    compare("stack", [leaf(seed=i) for i in range(4)])
    compare("stack", [torch.ones(0, 2), torch.ones(0, 2)], 1)


@pytest.mark.parametrize("name", ["hstack", "vstack", "dstack", "column_stack"])
def test_stacks_by_name(name: str) -> None:
    compare(name, [leaf(3), leaf(3, seed=1)])
    compare(name, [leaf(2, 3), leaf(2, 3, seed=1)])
    compare(name, [leaf(2, 3, 1), leaf(2, 3, 1, seed=1)])


def test_block_diag() -> None:
    compare("block_diag", leaf(2, 3), leaf(seed=1), leaf(2, seed=2))


def test_out() -> None:
    out = taeda.empty(0)
    result = taeda.cat([taeda.ones(2), taeda.zeros(1)], out=out)
    assert result is out
    assert out.tolist() == [1.0, 1.0, 0.0]


def test_errors() -> None:
    x = torch.randn(3, 4)
    compare_error("cat", [])
    compare_error("cat", [x, torch.ones(3, 4, 5)])
    compare_error("cat", [x, torch.ones(3, 5)])
    compare_error("cat", [torch.tensor(1.0), torch.tensor(2.0)])
    compare_error("cat", [x, x], 5)
    compare_error("stack", [])
    compare_error("stack", [x, torch.ones(3)])
    compare_error("hstack", [])
    with pytest.raises(RuntimeError, match="Expected size 4 but got size 5 for tensor number 1"):
        taeda.cat([taeda.ones(3, 4), taeda.ones(3, 5)])


def test_meta() -> None:
    x = taeda.empty(2, 3, device="meta")
    assert taeda.cat([x, x], 1).shape == (2, 6)
    assert taeda.stack([x, x], -1).shape == (2, 3, 2)


def test_kron() -> None:
    compare("kron", leaf(2, 3), leaf(4, 1, seed=1))
    compare("kron", leaf(2), leaf(3, 2, 2, seed=1))
    compare("kron", leaf(), leaf(3, seed=1))
    compare("kron", torch.arange(3), torch.ones(2, 2))
