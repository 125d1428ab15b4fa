"""Embedding: rows by index, their gradient, padding, renormalisation."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="compares with PyTorch")

import taeda  # noqa: E402
from tests.conformance.bridge import to_taeda  # noqa: E402
from tests.ops.compare import assert_close, compare, compare_error, leaf  # noqa: E402

NAME = "nn.functional.embedding"


@pytest.mark.parametrize("indices", [3, [0, 2, 2, 9], [[1, 1], [5, 0], [1, 1]], []], ids=str)
@pytest.mark.parametrize("dtype", [torch.int64, torch.int32], ids=str)
def test_rows(indices: object, dtype: torch.dtype) -> None:
    compare(NAME, torch.tensor(indices, dtype=dtype), leaf(10, 4))


@pytest.mark.parametrize("padding", [0, 3, -1, -10])
def test_padding(padding: int) -> None:
    compare(NAME, torch.tensor([[0, 3], [9, 3]]), leaf(10, 4), padding)


def test_many_repeats_are_added_in_order() -> None:
    index = torch.randint(20, (5000,), generator=torch.Generator().manual_seed(0))
    compare(NAME, index, leaf(20, 16), second=False)
    w = to_taeda(leaf(20, 16, dtype=torch.float32))
    before = taeda.get_num_threads()
    grads = []
    try:
        for threads in (1, 3):
            taeda.set_num_threads(threads)
            y = taeda.nn.functional.embedding(to_taeda(index), w)
            grads.append(taeda.autograd.grad((y * y).sum(), w)[0])
    finally:
        taeda.set_num_threads(before)
    assert taeda.equal(*grads)


@pytest.mark.parametrize("norm_type", [1.0, 2.0, 3.5])
def test_max_norm(norm_type: float) -> None:
    index, w = torch.tensor([1, 1, 4]), leaf(6, 5, grad=False)
    theirs, ours = w.clone(), to_taeda(w)
    y = torch.nn.functional.embedding(index, theirs, max_norm=1.0, norm_type=norm_type)
    y2 = taeda.nn.functional.embedding(to_taeda(index), ours, max_norm=1.0, norm_type=norm_type)
    assert_close([y2, ours], [y, theirs])


@pytest.mark.parametrize(
    "dtype", [torch.float32, torch.float16, torch.bfloat16, torch.complex64], ids=str
)
def test_dtypes(dtype: torch.dtype) -> None:
    compare(NAME, torch.tensor([[1, 2], [2, 0]]), leaf(5, 3, dtype=dtype, grad=False))


def test_errors() -> None:
    w = torch.ones(4, 3)
    compare_error(NAME, torch.tensor([4]), w)
    compare_error(NAME, torch.tensor([-1]), w)
    compare_error(NAME, torch.tensor([1.0]), w)
    compare_error(NAME, torch.tensor([1]), torch.ones(4))


def test_a_table_of_many_parts() -> None:
    index, w = torch.arange(9000).mul(7919).remainder(5000), leaf(5000, 70)
    compare(NAME, index, w, padding_idx=3)


def test_gradient_needs_one_row_for_each_index():
    rows, indices = taeda.ones(2, 5), taeda.tensor([0, 1, 2])
    with pytest.raises(RuntimeError, match=r"one row for each of the 3 indices.*\[2, 5\]"):
        taeda._C.ops.embedding_dense_backward(rows, indices, 4, -1)


@pytest.mark.parametrize("dtype", [taeda.float32, taeda.float64])
@pytest.mark.parametrize("width", [1, 5, 33, 64, 200])
def test_bags_check_every_index(dtype, width):
    """Each is checked where its row is read, in loops for rows of several lengths."""
    table = taeda.arange(7 * width, dtype=dtype).reshape(7, width)
    index = taeda.arange(300 * 30).reshape(300, 30) % 7
    bags = taeda.nn.functional.embedding_bag
    want = table[index].sum(1)
    assert taeda.equal(bags(index, table, mode="sum"), want)
    for bag, at in ((0, 0), (68, 17), (299, 29)):
        for wrong in (-1, 7, 2**62, -(2**63)):
            spoilt = index.clone()
            spoilt[bag, at] = wrong
            with pytest.raises(RuntimeError, match=f"got index {wrong} for a table of 7 rows"):
                bags(spoilt, table, mode="sum")
            starts, weights = taeda.arange(0, 9000, 30), taeda.ones(9000, dtype=dtype)
            for given in (None, weights):
                with pytest.raises(RuntimeError, match="embedding_bag"):
                    bags(spoilt.flatten(), table, starts, mode="sum", per_sample_weights=given)
    with pytest.raises(RuntimeError, match="got index 9"):
        bags(taeda.full((2, 3), 9), taeda.ones(7, 0), mode="sum")
