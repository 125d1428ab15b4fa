"""Muon."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import taeda

from ._base import PerTensorOptimizer, zeros_for
from ._checks import check_lr

if TYPE_CHECKING:
    from taeda import Tensor

    from .optimizer import ParamsT

__all__ = ["Muon"]


def orthogonalize(
    matrix: Tensor, coefficients: tuple[float, float, float], steps: int, eps: float
) -> Tensor:
    """A matrix with the same singular vectors and singular values near 1, in bfloat16.

    Newton-Schulz iterations ``x = a x + (b x x' + c (x x')^2) x`` from ``matrix`` scaled to norm 1.
    """
    a, b, c = coefficients
    x = matrix.bfloat16()
    is_tall = x.size(0) > x.size(1)
    if is_tall:
        x = x.t()
    x = x / x.norm().clamp(min=eps)
    for _ in range(steps):
        gram = x @ x.t()
        x = taeda.addmm(x, taeda.addmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return x.t() if is_tall else x


class Muon(PerTensorOptimizer):
    """Momentum whose steps are made orthogonal matrices; for the weights of hidden layers.

    Other parameters (embeddings, heads, biases, norms) are for another optimizer, such as AdamW.

    Jordan et al.: Muon: An optimizer for hidden layers in neural networks, 2024; the rate that
    matches AdamW's from Liu et al.: Muon is scalable for LLM training, 2025.

    Args:
        params: parameters of two dimensions, ``(name, parameter)`` pairs, or dicts of groups.
        lr: learning rate, a number or a tensor of one element.
        weight_decay: each step first shrinks the parameter by ``lr * weight_decay`` of it.
        momentum: share of the velocity that is kept.
        nesterov: look ahead along the velocity.
        ns_coefficients: ``(a, b, c)`` of the Newton-Schulz iterations.
        eps: the smallest norm that a step is scaled by.
        ns_steps: how many iterations, below 100.
        adjust_lr_fn: how the rate follows the shape ``(m, n)``: ``"original"``, or None, times
            ``sqrt(max(1, m / n))``; ``"match_rms_adamw"`` times ``0.2 sqrt(max(m, n))``, with which
            AdamW's rate and weight decay can be kept.

    Raises:
        ValueError: an option is out of its range, or a parameter has not two dimensions.

    >>> w = taeda.nn.Parameter(taeda.ones(2, 3))
    >>> optimizer = taeda.optim.Muon([w], lr=0.1)
    >>> (w * w).sum().backward()
    >>> optimizer.step()
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        weight_decay: float = 0.1,
        momentum: float = 0.95,
        nesterov: bool = True,
        ns_coefficients: tuple[float, float, float] = (3.4445, -4.775, 2.0315),
        eps: float = 1e-7,
        ns_steps: int = 5,
        adjust_lr_fn: str | None = None,
    ) -> None:
        check_lr("Muon", lr)
        for name, value in (("momentum", momentum), ("weight_decay", weight_decay)):
            if not value >= 0:
                raise ValueError(f"Muon: {name} should be >= 0, got {value}")
        if adjust_lr_fn not in (None, "original", "match_rms_adamw"):
            raise ValueError(
                "Muon: adjust_lr_fn must be None, 'original' or 'match_rms_adamw', got "
                f"{adjust_lr_fn!r}"
            )
        defaults = {
            "lr": lr,
            "weight_decay": weight_decay,
            "momentum": momentum,
            "nesterov": nesterov,
            "ns_coefficients": ns_coefficients,
            "eps": eps,
            "ns_steps": ns_steps,
            "adjust_lr_fn": adjust_lr_fn,
        }
        super().__init__(params, defaults)
        for group in self.param_groups:
            for name, param in self.named_params(group):
                if param.dim() != 2:
                    raise ValueError(
                        "Muon: only parameters of 2 dimensions are supported, but parameter "
                        f"{name} has shape {tuple(param.shape)}"
                    )

    def _new_state(self, param: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        return {"momentum_buffer": zeros_for(param)}

    def _update_complex(
        self, param: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any]
    ) -> None:
        raise RuntimeError("Muon.step: complex parameters are not supported")

    def _update(
        self, param: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any]
    ) -> None:
        if group["ns_steps"] >= 100:
            raise ValueError(f"Muon.step: ns_steps must be below 100, got {group['ns_steps']}")
        velocity = state["momentum_buffer"]
        velocity.lerp_(grad, 1 - group["momentum"])
        step = grad.lerp(velocity, group["momentum"]) if group["nesterov"] else velocity
        step = orthogonalize(step, group["ns_coefficients"], group["ns_steps"], group["eps"])
        lr = float(group["lr"])
        rows, columns = param.shape
        if group["adjust_lr_fn"] == "match_rms_adamw":
            factor = 0.2 * max(rows, columns) ** 0.5
        else:
            factor = max(1.0, rows / columns) ** 0.5
        param.mul_(1 - lr * group["weight_decay"])
        param.add_(step.to(param.dtype), alpha=-lr * factor)
