"""Adadelta."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._base import FusedOptimizer, add_scaled, apply_decay, floats, new_step, zeros_for
from ._checks import check_at_least_0, check_lr

if TYPE_CHECKING:
    from taeda import Tensor

    from .optimizer import ParamsT

__all__ = ["Adadelta"]


class Adadelta(FusedOptimizer):
    """Gradients times the ratio of two roots: of past steps' mean square and of past gradients'.

    Zeiler: ADADELTA: An adaptive learning rate method, 2012.

    Args:
        params: parameters, ``(name, parameter)`` pairs, or dicts of parameter groups.
        lr: factor of the step, a number or a tensor of one element.
        rho: share of both mean squares kept at each step.
        eps: added to both mean squares.
        weight_decay: factor of the L2 penalty.
        foreach: PyTorch's choice among its implementations; all values do the same here.
        capturable: count steps on the GPU, so that a graph can record them; the learning rate may
            be a tensor there. ``step`` refuses it for other parameters.
        maximize: climb the objective instead of descending it.
        differentiable: record the step itself, so that gradients flow through it.

    Raises:
        ValueError: an option is out of its range.
    """

    _op = "_fused_adadelta_"
    _state_lists = ("square_avg", "acc_delta", "step")

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        capturable: bool = False,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_lr("Adadelta", lr)
        if not 0 <= rho <= 1:
            raise ValueError(f"Adadelta: Invalid rho value: {rho}; it must be in [0, 1]")
        check_at_least_0("Adadelta", epsilon=eps, weight_decay=weight_decay)
        defaults = {
            "lr": lr,
            "rho": rho,
            "eps": eps,
            "weight_decay": weight_decay,
            "maximize": maximize,
            "capturable": capturable,
            "foreach": foreach,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def _new_state(self, param: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        return {
            "step": new_step(),
            "square_avg": zeros_for(param),
            "acc_delta": zeros_for(param),
        }

    def _numbers(self, group: dict[str, Any]) -> dict[str, Any]:
        return {
            **floats(group, "lr", "rho", "eps", "weight_decay"),
            "maximize": group["maximize"],
        }

    def _update(
        self, param: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any]
    ) -> None:
        rho, eps = group["rho"], group["eps"]
        state["step"] += 1
        grad = apply_decay(param, grad, group)
        square, steps = state["square_avg"], state["acc_delta"]
        square.mul_(rho).addcmul_(grad, grad, value=1 - rho)
        delta = steps.add(eps).sqrt_() / square.add(eps).sqrt_() * grad
        steps.mul_(rho).addcmul_(delta, delta, value=1 - rho)
        add_scaled(param, delta, -group["lr"])
