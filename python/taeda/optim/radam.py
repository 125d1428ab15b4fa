"""RAdam."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._base import FusedOptimizer, adam_numbers, add_scaled, apply_decay, new_step, zeros_for
from ._checks import check_at_least_0, check_betas, check_lr

if TYPE_CHECKING:
    from taeda import Tensor

    from .optimizer import ParamsT

__all__ = ["RAdam"]


class RAdam(FusedOptimizer):
    """Adam that steps without scaling while too few gradients have been seen to scale by.

    Liu, Jiang, He, Chen, Liu, Gao, Han: On the variance of the adaptive learning rate and beyond,
    ICLR 2020.

    Args:
        params: parameters, ``(name, parameter)`` pairs, or dicts of parameter groups.
        lr: learning rate, a number or a tensor of one element.
        betas: shares of the running means of the gradient and its square kept at each step.
        eps: added to the root of the mean square.
        weight_decay: factor of the weight decay.
        decoupled_weight_decay: shrink the parameter by ``lr * weight_decay``, as AdamW does.
        foreach: PyTorch's choice among its implementations; all values do the same here.
        maximize: climb the objective instead of descending it.
        capturable: count steps on the GPU, so that a graph can record them; the learning rate may
            be a tensor there. ``step`` refuses it for other parameters.
        differentiable: record the step itself, so that gradients flow through it.

    Raises:
        ValueError: an option is out of its range.
    """

    _op = "_fused_radam_"
    _state_lists = ("exp_avg", "exp_avg_sq", "step")

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_lr("RAdam", lr)
        check_at_least_0("RAdam", epsilon=eps, weight_decay=weight_decay)
        check_betas("RAdam", betas)
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "decoupled_weight_decay": decoupled_weight_decay,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def _new_state(self, param: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        return {
            "step": new_step(),
            "exp_avg": zeros_for(param),
            "exp_avg_sq": zeros_for(param),
        }

    def _numbers(self, group: dict[str, Any]) -> dict[str, Any]:
        return {
            **adam_numbers(group),
            "decoupled": group["decoupled_weight_decay"],
        }

    def _update(
        self, param: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any]
    ) -> None:
        beta1, beta2 = group["betas"]
        state["step"] += 1
        step = state["step"].item()
        grad = apply_decay(param, grad, group)
        mean, square = state["exp_avg"], state["exp_avg_sq"]
        mean.lerp_(grad, 1 - beta1)
        square.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
        direction = mean / (1 - beta1**step)
        # rho is the length of the approximated simple moving average (equations 5 and 6).
        correction = 1 - beta2**step
        rho_limit = 2 / (1 - beta2) - 1
        rho = rho_limit - 2 * step * beta2**step / correction
        if rho > 5:
            rectifier = (
                (rho - 4) * (rho - 2) * rho_limit / ((rho_limit - 4) * (rho_limit - 2) * rho)
            ) ** 0.5
            scale = correction**0.5 / square.sqrt().add(group["eps"])
            direction = direction * scale * rectifier
        add_scaled(param, direction, -group["lr"])
