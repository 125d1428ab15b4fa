"""Adamax."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import taeda

from ._base import FusedOptimizer, adam_numbers, add_scaled, apply_decay, new_step, zeros_for
from ._checks import check_at_least_0, check_betas, check_lr

if TYPE_CHECKING:
    from taeda import Tensor

    from .optimizer import ParamsT

__all__ = ["Adamax"]


class Adamax(FusedOptimizer):
    """Adam with the largest recent gradient in place of the root mean square.

    Kingma, Ba: Adam: A method for stochastic optimization, ICLR 2015, section 7.

    Args:
        params: parameters, ``(name, parameter)`` pairs, or dicts of parameter groups.
        lr: learning rate, a number or a tensor of one element.
        betas: shares of the running mean and of the running maximum kept at each step.
        eps: added to the gradients' sizes.
        weight_decay: factor of the L2 penalty.
        foreach: PyTorch's choice among its implementations; all values do the same here.
        maximize: climb the objective instead of descending it.
        differentiable: record the step itself, so that gradients flow through it.
        capturable: count steps on the GPU, so that a graph can record them; the learning rate may
            be a tensor there. ``step`` refuses it for other parameters.

    Raises:
        ValueError: an option is out of its range.
    """

    _op = "_fused_adamax_"
    _state_lists = ("exp_avg", "exp_inf", "step")

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        check_lr("Adamax", lr)
        check_at_least_0("Adamax", epsilon=eps, weight_decay=weight_decay)
        check_betas("Adamax", betas)
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "capturable": capturable,
        }
        super().__init__(params, defaults)

    def _new_state(self, param: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        return {"step": new_step(), "exp_avg": zeros_for(param), "exp_inf": zeros_for(param)}

    def _numbers(self, group: dict[str, Any]) -> dict[str, Any]:
        return adam_numbers(group)

    def _update(
        self, param: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any]
    ) -> None:
        beta1, beta2 = group["betas"]
        state["step"] += 1
        step = state["step"].item()
        grad = apply_decay(param, grad, group)
        mean = state["exp_avg"]
        mean.lerp_(grad, 1 - beta1)
        recent = grad.abs().add_(group["eps"])
        largest = state["exp_inf"] = taeda.maximum(state["exp_inf"] * beta2, recent)
        add_scaled(param, mean / largest, -(group["lr"] / (1 - beta1**step)))
