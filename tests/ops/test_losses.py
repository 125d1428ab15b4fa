"""Losses against PyTorch: values, gradients for both inputs, every reduction."""

from __future__ import annotations

import pytest

import taeda

torch = pytest.importorskip("torch")
F = torch.nn.functional
ops = taeda._C.ops

REDUCTIONS = {0: "none", 1: "mean", 2: "sum"}
# name -> (ours, theirs, transform of the input, transform of the target, whether the target has a gradient)
CASES = {
    "mse": (ops.mse_loss, F.mse_loss, None, None, True),
    "l1": (ops.l1_loss, F.l1_loss, None, None, True),
    "smooth_l1": (ops.smooth_l1_loss, F.smooth_l1_loss, None, None, True),
    "huber": (ops.huber_loss, F.huber_loss, None, None, True),
    "soft_margin": (ops.soft_margin_loss, F.soft_margin_loss, None, "sign", False),
    "bce": (ops.binary_cross_entropy, F.binary_cross_entropy, "sigmoid", "sigmoid", True),
    "bce_logits": (
        ops.binary_cross_entropy_with_logits, F.binary_cross_entropy_with_logits, None, "sigmoid", True,
    ),
    "kl_div": (ops.kl_div, F.kl_div, "log_softmax", "softmax", True),
}  # fmt: skip


def values(seed, transform, shape=(4, 5)):
    x = torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    if transform in ("softmax", "log_softmax"):
        return getattr(torch, transform)(x, -1)
    return getattr(torch, transform)(x) if transform else x * 2


def pair(t, grad):
    mine = taeda.tensor(t.tolist(), dtype=taeda.float64)
    return t.clone().requires_grad_(grad), mine.requires_grad_(grad)


def close(a, b):
    torch.testing.assert_close(
        torch.tensor(a.tolist(), dtype=b.dtype), b.detach(), rtol=1e-7, atol=1e-9
    )


@pytest.mark.filterwarnings("ignore:reduction")
@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("name", CASES)
def test_loss(name, reduction):
    f, g, on_input, on_target, target_gradient = CASES[name]
    x, a = pair(values(0, on_input), True)
    t, b = pair(values(1, on_target), target_gradient)
    want, got = g(x, t, reduction=REDUCTIONS[reduction]), f(a, b, reduction=reduction)
    close(got, want)
    inputs, mine = ([x, t], [a, b]) if target_gradient else ([x], [a])
    first = torch.autograd.grad(want.sum() * 3, inputs, create_graph=True)
    fused = taeda.autograd.grad(got.sum() * 3, mine, retain_graph=True)
    graph = taeda.autograd.grad(got.sum() * 3, mine, create_graph=True)
    for w, h, k in zip(first, fused, graph, strict=True):
        close(h, w)
        close(k, w)
    if name != "kl_div":  # linear in its input
        (want2,) = torch.autograd.grad((first[0] ** 2).sum(), inputs[:1])
        (got2,) = taeda.autograd.grad((graph[0] ** 2).sum(), mine[:1])
        close(got2, want2)


def test_weights():
    x, a = pair(values(0, None), True)
    t, b = pair(values(1, "sigmoid"), False)
    w, c = pair(values(2, "sigmoid"), False)
    p, d = pair(values(3, "sigmoid", (5,)), False)
    for reduction, word in REDUCTIONS.items():
        want = F.binary_cross_entropy_with_logits(x, t, w, pos_weight=p, reduction=word)
        got = ops.binary_cross_entropy_with_logits(a, b, c, d, reduction)
        close(got, want)
        (g,) = torch.autograd.grad(want.sum(), [x])
        (h,) = taeda.autograd.grad(got.sum(), [a])
        close(h, g)
        want = F.binary_cross_entropy(torch.sigmoid(x), t, w, reduction=word)
        close(ops.binary_cross_entropy(taeda.sigmoid(a), b, c, reduction), want)


def test_parameters():
    x, a = pair(values(0, None), True)
    t, b = pair(values(1, None), False)
    close(ops.smooth_l1_loss(a, b, 1, 0.5), F.smooth_l1_loss(x, t, beta=0.5))
    close(ops.smooth_l1_loss(a, b, 1, 0.0), F.smooth_l1_loss(x, t, beta=0.0))
    close(ops.huber_loss(a, b, 2, 0.7), F.huber_loss(x, t, reduction="sum", delta=0.7))
    s, d = pair(values(2, "log_softmax"), False)
    close(ops.kl_div(a, d, 2, log_target=True), F.kl_div(x, s, reduction="sum", log_target=True))


def test_broadcast_and_half():
    a = taeda.ones(3, 1, requires_grad=True)
    loss = ops.mse_loss(a, taeda.zeros(1, 4))
    loss.backward()
    assert a.grad.shape == (3, 1)
    assert a.grad.flatten().tolist() == pytest.approx([2 / 3] * 3)
    h = ops.mse_loss(taeda.ones(4, dtype=taeda.float16), taeda.zeros(4, dtype=taeda.float16))
    assert h.dtype is taeda.float16


def test_errors():
    ones = taeda.ones(2)
    with pytest.raises(ValueError, match="reduction"):
        ops.mse_loss(ones, ones, 5)
    with pytest.raises(RuntimeError, match="beta"):
        ops.smooth_l1_loss(ones, ones, 1, -1.0)
    with pytest.raises(RuntimeError, match="delta"):
        ops.huber_loss(ones, ones, 1, 0.0)
    with pytest.raises(RuntimeError, match="between 0 and 1"):
        ops.binary_cross_entropy(ones * 2, ones)
    with pytest.raises(ValueError, match="same size"):
        ops.binary_cross_entropy(ones / 2, taeda.ones(3))
    with pytest.raises(ValueError, match="same as input size"):
        ops.binary_cross_entropy_with_logits(ones, taeda.ones(3))
