"""Every derivative against finite differences in float64, first and second."""

from __future__ import annotations

import pytest

import taeda
from tests.ops.cases import CASES

IDS = [c.name for c in CASES]


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_first_derivative(case):
    assert taeda.autograd.gradcheck(case.call, case.inputs())


@pytest.mark.parametrize(
    "case", [c for c in CASES if c.second], ids=[c.name for c in CASES if c.second]
)
def test_second_derivative(case):
    assert taeda.autograd.gradgradcheck(case.call, case.inputs())


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_strided_inputs_give_the_same(case):
    """A transposed copy, made contiguous only in memory order, changes neither values nor gradients."""
    plain, strided = case.inputs(), []
    for t in plain:
        reverse = tuple(reversed(range(t.dim())))
        strided.append(t.detach().permute(reverse).contiguous().permute(reverse).requires_grad_())
    if case.name.startswith("as_strided"):
        pytest.skip("as_strided looks at the memory itself")
    for inputs in (plain, strided):
        result = case.call(*inputs)
        result.sum().backward()
    for a, b in zip(plain, strided, strict=True):
        assert taeda.allclose(a.grad, b.grad, equal_nan=True)


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_meta_tensors_have_the_same_shapes(case):
    inputs = [t.detach() for t in case.inputs()]
    expected = case.call(*inputs)
    try:
        actual = case.call(*[t.to("meta") for t in inputs])
    except (RuntimeError, NotImplementedError):
        # Results whose shape depends on the data cannot be told from shapes alone.
        assert "mask" in case.name or any(
            k in case.name
            for k in (
                "index",
                "where",
                "embedding",
                "gather",
                "scatter",
                "segment",
                "loss",
                "cross_entropy",
            )
        )
        return
    assert actual.device.type == "meta"
    assert actual.shape == expected.shape
    assert actual.dtype == expected.dtype


def test_numbers_keep_their_precision_in_differentiable_gradients():
    x = (taeda.rand(5, dtype=taeda.float64) + 0.5).requires_grad_()
    for function in (
        lambda: x**0.1,
        lambda: taeda.pow(0.1, x),
        lambda: taeda.lerp(x, 2 * x, 0.1),
        lambda: taeda.special.zeta(2.1, x),
        lambda: taeda.xlogy(0.1, x),
        lambda: x.clamp(0.1, 0.7),
    ):
        plain = taeda.autograd.grad(function().sum(), x)[0]
        recorded = taeda.autograd.grad(function().sum(), x, create_graph=True)[0]
        assert taeda.allclose(plain, recorded, rtol=1e-14, atol=0)
