"""`linear_cross_entropy` in chunks: the loss and gradients of the plain one, with less in memory."""

from __future__ import annotations

from typing import Any

import pytest

import taeda
from taeda.nn import LinearCrossEntropyLoss, LinearCrossEntropyOptions
from taeda.nn.functional import linear_cross_entropy

OPTIONS = [
    LinearCrossEntropyOptions(),
    LinearCrossEntropyOptions(batch_chunk_size=2),
    LinearCrossEntropyOptions(batch_chunk_size=100, acc_dtype=taeda.float64),
    LinearCrossEntropyOptions(chunking_method=None),
    LinearCrossEntropyOptions(chunking_method="aspect_ratio:2"),
    LinearCrossEntropyOptions(chunking_method="aspect_ratio"),
]


def inputs(probabilities: bool) -> tuple[taeda.Tensor, taeda.Tensor, taeda.Tensor, taeda.Tensor]:
    taeda.manual_seed(0)
    x = taeda.randn(7, 3, dtype=taeda.float64)
    w, b = taeda.randn(5, 3, dtype=taeda.float64), taeda.randn(5, dtype=taeda.float64)
    y = taeda.tensor([0, 4, 2, 1, 1, 3, 0])
    if probabilities:
        y = taeda.randn(7, 5, dtype=taeda.float64).softmax(1)
    return x.requires_grad_(), w.requires_grad_(), b.requires_grad_(), y


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("reduction", ["none", "sum", "mean"])
@pytest.mark.parametrize(
    "more",
    [
        {},
        {"ignore_index": 1},
        {"weight": taeda.tensor([1.0, 2.0, 0.5, 0.1, 3.0], dtype=taeda.float64)},
        {"label_smoothing": 0.2},
        {"probabilities": True, "label_smoothing": 0.1},
    ],
    ids=str,
)
def test_chunks_give_the_plain_loss_and_gradients(
    options: LinearCrossEntropyOptions, reduction: str, more: dict[str, Any]
) -> None:
    more = dict(more)
    x, w, b, y = inputs(more.pop("probabilities", False))
    plain = linear_cross_entropy(x, w, y, linear_bias=b, reduction=reduction, **more)
    chunked = linear_cross_entropy(
        x, w, y, linear_bias=b, reduction=reduction, options=options, **more
    )
    taeda.testing.assert_close(chunked, plain)
    weights = taeda.arange(1.0, plain.numel() + 1, dtype=taeda.float64).reshape(plain.shape)
    expected = taeda.autograd.grad(plain, [x, w, b], weights)
    found = taeda.autograd.grad(chunked, [x, w, b], weights, create_graph=True)
    for a, e in zip(found, expected, strict=True):
        taeda.testing.assert_close(a, e)


def test_several_places_and_half_precision() -> None:
    x, w = taeda.randn(6, 3), taeda.randn(4, 2, 3)
    y = taeda.randint(0, 4, (6, 2))
    options = LinearCrossEntropyOptions(batch_chunk_size=4)
    taeda.testing.assert_close(
        linear_cross_entropy(x, w, y, options=options), linear_cross_entropy(x, w, y)
    )
    half = linear_cross_entropy(x.half(), w.half(), y, options=options)
    assert half.dtype == taeda.float16
    taeda.testing.assert_close(half.float(), linear_cross_entropy(x, w, y), rtol=5e-3, atol=5e-3)


def test_rows_of_a_chunk() -> None:
    x, outputs = taeda.ones(100, 8), 40
    rows = {
        method: LinearCrossEntropyOptions(chunking_method=method).rows(x, outputs)
        for method in ("auto", "aspect_ratio", "aspect_ratio:3", None)
    }
    assert rows == {"auto": 20, "aspect_ratio": 20, "aspect_ratio:3": 6, None: 100}


def test_the_module_passes_its_options_on() -> None:
    options = LinearCrossEntropyOptions(batch_chunk_size=2)
    loss = LinearCrossEntropyLoss(3, 5, options=options)
    assert "batch_chunk_size=2" in repr(loss)
    x, _, _, y = inputs(False)
    plain = linear_cross_entropy(x.float(), loss.linear.weight, y)
    taeda.testing.assert_close(loss(x.float(), y), plain)


@pytest.mark.parametrize(
    "wrong",
    [
        {"batch_chunk_size": 0},
        {"batch_chunk_size": 2.5},
        {"chunking_method": "x"},
        {"chunking_method": "aspect_ratio:0"},
        {"chunking_method": "aspect_ratio:"},
        {"acc_policy": "x"},
        {"acc_dtype": taeda.int64},
    ],
    ids=str,
)
def test_wrong_options(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        LinearCrossEntropyOptions(**wrong)


def test_wrong_arguments() -> None:
    x, w, _, y = inputs(False)
    with pytest.raises(TypeError, match="options must be LinearCrossEntropyOptions"):
        linear_cross_entropy(x, w, y, options={})  # type: ignore[arg-type]
    with pytest.raises(RuntimeError, match="acc_dtype"):
        options = LinearCrossEntropyOptions(acc_dtype=taeda.float16)
        linear_cross_entropy(x, w, y, options=options)
    with pytest.raises(ValueError, match="reduction"):
        linear_cross_entropy(x, w, y, reduction="x", options=LinearCrossEntropyOptions())
    with pytest.raises(RuntimeError, match="batched"):
        linear_cross_entropy(taeda.ones(3), taeda.ones(2, 4, 3), taeda.zeros(4, dtype=taeda.int64))
