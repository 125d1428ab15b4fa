"""ctc_loss against PyTorch: lengths, repeated labels, impossible targets, gradients."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="compares with PyTorch")

import taeda  # noqa: E402
from tests.conformance.bridge import to_taeda  # noqa: E402


def both(logits: Any, *args: Any, **kwargs: Any) -> list[tuple[Any, Any]]:
    """Each library's losses and the gradient of the logits."""
    results = []
    for lib, x, rest in ((torch, logits, args), (taeda, to_taeda(logits), to_taeda(list(args)))):
        x = x.detach().requires_grad_()
        loss = lib.nn.functional.ctc_loss(x.log_softmax(-1), *rest, reduction="none", **kwargs)
        loss.sum().backward()
        results.append((loss.detach().numpy(), x.grad.numpy()))
    return results


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("longest", [0, 1, 2, 5, 40])
@pytest.mark.parametrize("blank", [0, 3])
def test_lengths(dtype: Any, longest: int, blank: int) -> None:
    torch.manual_seed(longest)
    steps, batch, classes = 90, 5, 7
    logits = torch.randn(steps, batch, classes, dtype=dtype) * 3
    targets = torch.randint(0, classes - 1, (batch, max(longest, 1)))
    targets += (targets >= blank).long()  # repeated labels among them
    ends = torch.tensor([longest, longest, longest // 2, 0, min(longest, 1)])
    lengths = torch.tensor([steps, 85, 88, steps, 84])
    (loss, grad), (ours, slope) = both(logits, targets, lengths, ends, blank=blank)
    exact = dtype == torch.float64
    near = {"rtol": 1e-10, "atol": 1e-10} if exact else {"rtol": 2e-5, "atol": 1e-5}
    torch.testing.assert_close(torch.tensor(ours), torch.tensor(loss), **near)
    far = {"rtol": 1e-8, "atol": 1e-10} if exact else {"rtol": 1e-3, "atol": 2e-5}
    torch.testing.assert_close(torch.tensor(slope), torch.tensor(grad), **far)


def test_impossible_targets() -> None:
    logits = torch.randn(4, 3, 5)
    targets = torch.tensor([[1, 2, 3, 4], [1, 1, 1, 2], [2, 0, 0, 0]])  # the second needs 6 steps
    args = (targets, torch.tensor([4, 4, 4]), torch.tensor([4, 4, 1]))
    (loss, grad), (ours, slope) = both(logits, *args, zero_infinity=True)
    torch.testing.assert_close(torch.tensor(ours), torch.tensor(loss))
    torch.testing.assert_close(torch.tensor(slope), torch.tensor(grad), rtol=1e-4, atol=1e-5)
    (loss, _), (ours, _) = both(logits, *args)
    torch.testing.assert_close(torch.tensor(ours), torch.tensor(loss))


@pytest.mark.parametrize("scale", [30.0, 300.0])
def test_far_apart(scale: float) -> None:
    """Probabilities of which most are nothing beside others."""
    logits = torch.randn(30, 2, 6, dtype=torch.float64) * scale
    args = (
        torch.tensor([[1, 2, 2, 3], [4, 5, 1, 1]]),
        torch.tensor([30, 28]),
        torch.tensor([4, 3]),
    )
    (loss, grad), (ours, slope) = both(logits, *args)
    torch.testing.assert_close(torch.tensor(ours), torch.tensor(loss), rtol=1e-10, atol=1e-10)
    torch.testing.assert_close(torch.tensor(slope), torch.tensor(grad), rtol=1e-6, atol=1e-8)
