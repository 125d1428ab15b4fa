"""RMSprop."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._base import FusedOptimizer, add_scaled, apply_decay, floats, new_step, zeros_for
from ._checks import check_at_least_0, check_lr

if TYPE_CHECKING:
    from taeda import Tensor

    from .optimizer import ParamsT

__all__ = ["RMSprop"]


class RMSprop(FusedOptimizer):
    """Gradients divided by the root of their running mean square.

    Hinton, Srivastava, Swersky: Neural networks for machine learning, lecture 6, 2012; the centred
    form from Graves: Generating sequences with recurrent neural networks, 2013.

    Args:
        params: parameters, ``(name, parameter)`` pairs, or dicts of parameter groups.
        lr: learning rate, a number or a tensor of one element.
        alpha: share of the mean square kept at each step.
        eps: added to the root.
        weight_decay: factor of the L2 penalty.
        momentum: share of the velocity that is kept.
        centered: divide by the root of the variance instead of the mean square.
        capturable: count steps on the GPU, so that a graph can record them; the learning rate may
            be a tensor there. ``step`` refuses it for other parameters.
        foreach: PyTorch's choice among its implementations; all values do the same here.
        maximize: climb the objective instead of descending it.
        differentiable: record the step itself, so that gradients flow through it.

    Raises:
        ValueError: an option is out of its range.
    """

    _op = "_fused_rmsprop_"
    _state_lists = ("square_avg", "momentum_buffer", "grad_avg", "step")

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum: float = 0,
        centered: bool = False,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_lr("RMSprop", lr)
        check_at_least_0(
            "RMSprop", epsilon=eps, momentum=momentum, weight_decay=weight_decay, alpha=alpha
        )
        defaults = {
            "lr": lr,
            "momentum": momentum,
            "alpha": alpha,
            "eps": eps,
            "centered": centered,
            "weight_decay": weight_decay,
            "capturable": capturable,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def _new_state(self, param: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        state = {"step": new_step(), "square_avg": zeros_for(param)}
        if group["momentum"] > 0:
            state["momentum_buffer"] = zeros_for(param)
        if group["centered"]:
            state["grad_avg"] = zeros_for(param)
        return state

    def _state_names(self, group: dict[str, Any]) -> tuple[str | None, ...]:
        momentum = "momentum_buffer" if group["momentum"] > 0 else None
        return "square_avg", momentum, "grad_avg" if group["centered"] else None, "step"

    def _numbers(self, group: dict[str, Any]) -> dict[str, Any]:
        return {
            **floats(group, "lr", "alpha", "eps", "weight_decay", "momentum"),
            "maximize": group["maximize"],
        }

    def _update(
        self, param: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any]
    ) -> None:
        alpha, momentum = group["alpha"], group["momentum"]
        state["step"] += 1
        grad = apply_decay(param, grad, group)
        square = state["square_avg"]
        square.mul_(alpha).addcmul_(grad, grad, value=1 - alpha)
        if group["centered"]:
            mean = state["grad_avg"]
            mean.lerp_(grad, 1 - alpha)
            square = square.addcmul(mean, mean, value=-1)
        scaled = grad / square.sqrt().add(group["eps"])
        if momentum > 0:
            scaled = state["momentum_buffer"].mul_(momentum).add_(scaled)
        add_scaled(param, scaled, -group["lr"])
