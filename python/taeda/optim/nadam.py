"""NAdam."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._base import FusedOptimizer, adam_numbers, add_scaled, apply_decay, new_step, zeros_for
from ._checks import check_at_least_0, check_betas, check_lr

if TYPE_CHECKING:
    from taeda import Tensor

    from .optimizer import ParamsT

__all__ = ["NAdam"]


class NAdam(FusedOptimizer):
    """Adam with Nesterov's momentum.

    Dozat: Incorporating Nesterov momentum into Adam, ICLR workshop 2016.

    Args:
        params: parameters, ``(name, parameter)`` pairs, or dicts of parameter groups.
        lr: learning rate, a number or a tensor of one element.
        betas: shares of the running means of the gradient and its square kept at each step.
        eps: added to the root of the mean square.
        weight_decay: factor of the weight decay.
        momentum_decay: how fast the momentum's own schedule rises.
        decoupled_weight_decay: shrink the parameter by ``lr * weight_decay``, as AdamW does.
        foreach: PyTorch's choice among its implementations; all values do the same here.
        maximize: climb the objective instead of descending it.
        capturable: count steps on the GPU, so that a graph can record them; the learning rate may
            be a tensor there. ``step`` refuses it for other parameters.
        differentiable: record the step itself, so that gradients flow through it.

    Raises:
        ValueError: an option is out of its range.
    """

    _op = "_fused_nadam_"
    _state_lists = ("exp_avg", "exp_avg_sq", "step", "mu_product")
    _counts = ("step", "mu_product")

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum_decay: float = 4e-3,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_lr("NAdam", lr)
        check_at_least_0(
            "NAdam", epsilon=eps, weight_decay=weight_decay, momentum_decay=momentum_decay
        )
        check_betas("NAdam", betas)
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "momentum_decay": momentum_decay,
            "decoupled_weight_decay": decoupled_weight_decay,
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def _new_state(self, param: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        return {
            "step": new_step(),
            "mu_product": new_step(1),
            "exp_avg": zeros_for(param),
            "exp_avg_sq": zeros_for(param),
        }

    def _numbers(self, group: dict[str, Any]) -> dict[str, Any]:
        return {
            **adam_numbers(group),
            "momentum_decay": float(group["momentum_decay"]),
            "decoupled": group["decoupled_weight_decay"],
        }

    def _update(
        self, param: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any]
    ) -> None:
        beta1, beta2 = group["betas"]
        state["step"] += 1
        step = state["step"].item()
        grad = apply_decay(param, grad, group)
        # The momentum of this step, and of the next one for Nesterov's look-ahead.
        mu = beta1 * (1 - 0.5 * 0.96 ** (step * group["momentum_decay"]))
        next_mu = beta1 * (1 - 0.5 * 0.96 ** ((step + 1) * group["momentum_decay"]))
        state["mu_product"] *= mu
        product = state["mu_product"].item()
        mean, square = state["exp_avg"], state["exp_avg_sq"]
        mean.lerp_(grad, 1 - beta1)
        square.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
        root = (square / (1 - beta2**step)).sqrt_().add(group["eps"])
        lr = group["lr"]
        add_scaled(param, grad / root, -(lr * (1 - mu) / (1 - product)))
        add_scaled(param, mean / root, -(lr * next_mu / (1 - product * next_mu)))
