"""`out=` over the memory of an input: refused where PyTorch refuses it, right everywhere else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import taeda

SHARED = "single memory location"


def buffer() -> tuple[taeda.Tensor, taeda.Tensor]:
    """Six elements, and six that begin one element later in the same memory."""
    memory = taeda.arange(7.0) + 1
    return memory[:6], memory[1:]


PARTLY: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda x, out: taeda.add(x, 1, out=out),
    "exp": lambda x, out: taeda.exp(x, out=out),
    "where": lambda x, out: taeda.where(x > 2, x, 0.0, out=out),
    "igamma": lambda x, out: taeda.igamma(x, x, out=out),
    "cumsum": lambda x, out: taeda.cumsum(x, 0, out=out),
    "sort": lambda x, out: taeda.sort(x, out=(out, taeda.empty(6, dtype=taeda.int64))),
    "topk": lambda x, out: taeda.topk(x, 6, out=(out, taeda.empty(6, dtype=taeda.int64))),
    "gather": lambda x, out: taeda.gather(x, 0, taeda.arange(6), out=out),
    "index_select": lambda x, out: taeda.index_select(x, 0, taeda.arange(6), out=out),
    "take": lambda x, out: taeda.take(x, taeda.arange(6), out=out),
    "cat": lambda x, out: taeda.cat([x[:3], x[3:]], out=out),
    "masked_select": lambda x, out: taeda.masked_select(x, x > 0, out=out),
    "scatter": lambda x, out: taeda.scatter(x, 0, taeda.arange(6), x, out=out),
}


@pytest.mark.parametrize("name", PARTLY)
def test_memory_that_is_shared_in_part_is_refused(name: str) -> None:
    x, out = buffer()
    before = out.clone()
    with pytest.raises(RuntimeError, match=SHARED):
        PARTLY[name](x, out)
    assert taeda.equal(out, before)


@pytest.mark.parametrize("name", ["gather", "index_select", "take"])
def test_the_very_input_is_refused_where_elements_move(name: str) -> None:
    x, _ = buffer()
    with pytest.raises(RuntimeError, match=SHARED):
        PARTLY[name](x, x)


@pytest.mark.parametrize("name", ["add", "exp", "where", "cumsum", "sort", "topk"])
def test_the_very_input_is_taken_elsewhere(name: str) -> None:
    x, _ = buffer()
    expected = taeda.empty(6)
    PARTLY[name](x.clone(), expected)
    PARTLY[name](x, x)
    assert taeda.equal(x, expected)


def test_other_results_may_lie_over_the_input() -> None:
    """`sort` moves values past each other, and only those; `kthvalue` reads its input for them alone."""
    x = taeda.tensor([3, 1, 2])
    with pytest.raises(RuntimeError, match=SHARED):
        taeda.kthvalue(x, 2, out=(x, taeda.empty((), dtype=taeda.int64)))
    values = taeda.empty_like(x)
    taeda.sort(x, out=(values, x))
    assert values.tolist() == [1, 2, 3]
    assert x.tolist() == [1, 2, 0]


def test_what_reaches_an_input_after_resizing_is_refused() -> None:
    memory = taeda.tensor([2, 1, 0])
    index, out = memory[1:], memory[:1]
    with pytest.raises(RuntimeError, match=SHARED):
        taeda.gather(taeda.tensor([5, 6]), 0, index, out=out)
    assert out.shape == (1,)
    empty = taeda.empty(0)
    with pytest.raises(RuntimeError, match=SHARED):
        taeda.cat([empty, taeda.ones(2)], out=empty)


def test_strided_memory_is_computed_first() -> None:
    memory = taeda.arange(8.0)
    out = taeda.add(memory[::2], 1, out=memory[:4])
    assert out.tolist() == [1, 3, 5, 7]


def test_matrix_products_and_decompositions_compute_first() -> None:
    x = taeda.arange(9.0).reshape(3, 3)
    expected = x @ x
    assert taeda.equal(taeda.mm(x, x, out=x), expected)


@pytest.mark.parametrize(
    "change",
    [
        lambda x: x[1:].add_(x[:-1]),
        lambda x: x.mul_(x[1]),
        lambda x: x.add_(x.t()),
        lambda x: x[1:].lerp_(x[:-1], 0.5),
    ],
)
def test_pointwise_operations_in_place_refuse_it_too(change: Callable[[Any], Any]) -> None:
    x = taeda.arange(9.0).reshape(3, 3)
    with pytest.raises(RuntimeError, match=SHARED):
        change(x)
    assert taeda.equal(x, taeda.arange(9.0).reshape(3, 3))


def test_out_of_operations_with_any_number_of_results() -> None:
    x = taeda.arange(6.0).reshape(3, 2)
    outs = [taeda.empty(2), taeda.empty(0), taeda.zeros(2)]
    assert taeda.unbind_copy(x, out=outs) is None
    assert [o.tolist() for o in outs] == x.tolist()
    first, rest = taeda.empty(1, 2), taeda.empty(2, 2)
    taeda.split_with_sizes_copy(x, [1, 2], out=(first, rest))
    assert taeda.equal(taeda.cat([first, rest]), x)
    with pytest.raises(RuntimeError, match="size 3, got size 2"):
        taeda.unbind_copy(x, out=outs[:2])
    with pytest.raises(TypeError, match="must be a tuple of Tensors"):
        taeda.unbind_copy(x, out=outs[0])


def test_out_of_native_batch_norm() -> None:
    x, w, mean = taeda.randn(5, 3), taeda.ones(3), taeda.zeros(3)
    for training in (True, False):
        stats = mean.clone(), w.clone(), training, 0.1, 1e-5
        expected = taeda.native_batch_norm(x, w, w, mean.clone(), w.clone(), *stats[2:])
        outs = tuple(taeda.empty(0) for _ in range(3))
        given = taeda.native_batch_norm(x, w, w, *stats, out=outs)
        assert all(a is b for a, b in zip(given, outs, strict=True))
        assert all(taeda.equal(a, b) for a, b in zip(outs, expected, strict=True))
    with pytest.raises(TypeError, match="tuple of 3"):
        taeda.native_batch_norm(x, w, w, w, w, False, 0.1, 1e-5, out=(x, x))


SEQUENCES: dict[str, Callable[[Any], Any]] = {
    "arange": lambda out: taeda.arange(0, 1, 1 / 6, out=out),
    "range": lambda out: taeda.range(0, 5, out=out),
    "linspace": lambda out: taeda.linspace(0, 5, 6, out=out),
    "logspace": lambda out: taeda.logspace(0, 1, 6, out=out),
    "fftfreq": lambda out: taeda.fft.fftfreq(6, out=out),
    "rfftfreq": lambda out: taeda.fft.rfftfreq(10, out=out),
}


@pytest.mark.filterwarnings("ignore:range is deprecated")
@pytest.mark.parametrize("name", SEQUENCES)
def test_sequences_stay_within_a_view_of_their_length(name: str) -> None:
    expected = SEQUENCES[name](taeda.empty(6))
    memory = taeda.full((3, 4), 9.0)
    view = memory.narrow(1, 1, 2)
    assert SEQUENCES[name](view) is view
    assert taeda.equal(view, expected.reshape(3, 2))
    assert (memory[:, [0, 3]] == 9).all()
    with pytest.raises(RuntimeError, match=SHARED):
        SEQUENCES[name](taeda.zeros(1).expand(3, 2))


def test_no_result_is_written_where_another_is_refused():
    values, indices = taeda.zeros(2), taeda.zeros(2)
    with pytest.raises(RuntimeError, match="expected out tensor to have dtype int64"):
        taeda.max(taeda.ones(2, 2), 1, out=(values, indices))
    assert values.tolist() == [0.0, 0.0]
