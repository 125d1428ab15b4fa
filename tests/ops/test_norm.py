"""Layer, RMS, group, instance and batch normalisation against PyTorch."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="compares with PyTorch")

import taeda  # noqa: E402
from tests.conformance.bridge import to_taeda  # noqa: E402
from tests.ops.compare import assert_close, compare, compare_error, leaf  # noqa: E402

F = "nn.functional."


@pytest.mark.parametrize(
    ("shape", "normalized"),
    [
        ((4, 7), (7,)),
        ((2, 3, 5), (5,)),
        ((2, 3, 5), (3, 5)),
        ((6,), (6,)),
        ((3, 300), (300,)),
        ((0, 4), (4,)),
        ((33, 5), (5,)),
        ((70, 37), (37,)),
        ((1030, 70), (70,)),
    ],
    ids=str,
)
@pytest.mark.parametrize("affine", [0, 1, 2])
def test_layer_and_rms_norm(shape: tuple, normalized: tuple, affine: int) -> None:
    x = leaf(*shape)
    w = leaf(*normalized, seed=1) if affine else None
    b = leaf(*normalized, seed=2) if affine == 2 else None
    compare(F + "layer_norm", x, normalized, w, b)
    compare(F + "layer_norm", x, normalized, w, b, 0.1, second=False)
    compare(F + "rms_norm", x, normalized, w)
    compare(F + "rms_norm", x, normalized, w, 0.1, second=False)


@pytest.mark.parametrize("shape", [(3, 6), (2, 6, 5), (2, 6, 3, 4)], ids=str)
@pytest.mark.parametrize("groups", [1, 2, 3, 6])
@pytest.mark.parametrize("affine", [False, True])
def test_group_norm(shape: tuple, groups: int, affine: bool) -> None:
    if len(shape) == 2 and groups == 6:
        pytest.skip("one value a group")
    w, b = (leaf(6, seed=1), leaf(6, seed=2)) if affine else (None, None)
    compare(F + "group_norm", leaf(*shape), groups, w, b)


def test_nothing_to_normalise() -> None:
    compare(F + "layer_norm", leaf(3, 0), (0,))
    compare(F + "group_norm", leaf(0, 4, 5), 2, leaf(4, seed=1), leaf(4, seed=2))


def test_a_weight_of_zero() -> None:
    w = torch.tensor([0.0, 1.0, 1e-300, 2.0], dtype=torch.float64, requires_grad=True)
    compare(F + "group_norm", leaf(3, 4, 5), 2, w)
    compare(F + "layer_norm", leaf(3, 4), (4,), w)


@pytest.mark.parametrize("shape", [(8, 5), (4, 3, 6), (2, 3, 4, 5), (2, 3, 2, 3, 2)], ids=str)
@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("affine", [False, True])
def test_batch_norm(shape: tuple, training: bool, affine: bool) -> None:
    c = shape[1]
    mean, var = leaf(c, seed=3, grad=False), leaf(c, seed=4, grad=False).abs() + 0.5
    w, b = (leaf(c, seed=1), leaf(c, seed=2)) if affine else (None, None)
    ours = [to_taeda(mean), to_taeda(var)]
    theirs = [mean.clone(), var.clone()]
    x = leaf(*shape)
    y = torch.nn.functional.batch_norm(x, *theirs, w, b, training, 0.2)
    y2 = taeda.nn.functional.batch_norm(to_taeda(x), *ours, to_taeda(w), to_taeda(b), training, 0.2)
    assert_close([y2.detach(), *ours], [y, *theirs], "batch_norm and its running statistics")
    compare(F + "batch_norm", x, mean, var, w, b, training)
    if training:
        compare(F + "batch_norm", x, None, None, w, b, True)
        if len(shape) > 2:
            compare(F + "instance_norm", x, None, None, w, b)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16], ids=str)
def test_dtypes(dtype: torch.dtype) -> None:
    x, w = leaf(6, 8, 4, dtype=dtype, grad=False), leaf(4, dtype=dtype, seed=1, grad=False)
    compare(F + "layer_norm", x, (4,), w, w)
    compare(F + "rms_norm", x, (4,), w)
    compare(F + "group_norm", x, 2)
    v = leaf(8, dtype=dtype, seed=1, grad=False)
    compare(F + "batch_norm", x, None, None, v, v, True)


def test_large_offsets_do_not_cancel() -> None:
    x = leaf(4, 1000, dtype=torch.float32, grad=False) + 1000
    expected = torch.nn.functional.layer_norm(x.double(), (1000,))
    ours = taeda.nn.functional.layer_norm(to_taeda(x), (1000,))
    torch.testing.assert_close(torch.from_dlpack(ours).double(), expected, rtol=1e-4, atol=1e-4)


def test_errors() -> None:
    x = torch.ones(2, 3, 4)
    compare_error(F + "layer_norm", x, (3,))
    compare_error(F + "layer_norm", x, (4,), torch.ones(3))
    compare_error(F + "layer_norm", x, ())
    compare_error(F + "rms_norm", x, (3,))
    compare_error(F + "group_norm", x, 2)
    compare_error(F + "batch_norm", x, torch.ones(2), torch.ones(2))
    compare_error(F + "batch_norm", x, None, None, None, None, False)
    compare_error(F + "batch_norm", torch.ones(1, 3), None, None, None, None, True)


@pytest.mark.parametrize("rows", [7, 8, 19])
def test_batch_norm_of_rows(rows: int) -> None:
    v, w, b = leaf(300, grad=False), leaf(300, seed=1), leaf(300, seed=2)
    x = leaf(rows, 300)
    compare(F + "batch_norm", x, v.clone(), v.abs(), w, b, True, second=False)
