"""Adamax, NAdam and RAdam: relatives of Adam."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import taeda

from ._base import (
    PerTensorOptimizer,
    add_scaled,
    check_at_least_0,
    check_betas,
    check_lr,
    check_modes,
    new_step,
    zeros_for,
)

if TYPE_CHECKING:
    from taeda import Tensor

    from .optimizer import ParamsT

__all__ = ["Adamax", "NAdam", "RAdam"]


def _decay(param: Tensor, grad: Tensor, group: dict[str, Any]) -> Tensor:
    """Apply weight decay: to ``param`` itself where decoupled, else to the gradient returned."""
    factor = group["weight_decay"]
    if factor == 0:
        return grad
    if group.get("decoupled_weight_decay"):
        param.mul_(1 - group["lr"] * factor)
        return grad
    return grad.add(param, alpha=factor)


class Adamax(PerTensorOptimizer):
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
        capturable: for steps recorded in CUDA graphs; only False is possible.

    Raises:
        ValueError: an option is out of its range.
    """

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
        check_modes("Adamax", foreach=foreach, differentiable=differentiable, capturable=capturable)
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

    def _update(
        self, param: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any]
    ) -> None:
        beta1, beta2 = group["betas"]
        state["step"] += 1
        step = state["step"].item()
        grad = _decay(param, grad, group)
        mean = state["exp_avg"]
        mean.lerp_(grad, 1 - beta1)
        recent = grad.abs().add_(group["eps"])
        largest = state["exp_inf"] = taeda.maximum(state["exp_inf"] * beta2, recent)
        add_scaled(param, mean / largest, -(group["lr"] / (1 - beta1**step)))


class NAdam(PerTensorOptimizer):
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
        capturable: for steps recorded in CUDA graphs; only False is possible.
        differentiable: record the step itself, so that gradients flow through it.

    Raises:
        ValueError: an option is out of its range.
    """

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
        check_modes("NAdam", foreach=foreach, differentiable=differentiable, capturable=capturable)
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
            "mu_product": new_step() + 1,
            "exp_avg": zeros_for(param),
            "exp_avg_sq": zeros_for(param),
        }

    def _update(
        self, param: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any]
    ) -> None:
        beta1, beta2 = group["betas"]
        state["step"] += 1
        step = state["step"].item()
        grad = _decay(param, grad, group)
        # The momentum of this step and of the next, which the update looks ahead to.
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


class RAdam(PerTensorOptimizer):
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
        capturable: for steps recorded in CUDA graphs; only False is possible.
        differentiable: record the step itself, so that gradients flow through it.

    Raises:
        ValueError: an option is out of its range.
    """

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
        check_modes("RAdam", foreach=foreach, differentiable=differentiable, capturable=capturable)
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

    def _update(
        self, param: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any]
    ) -> None:
        beta1, beta2 = group["betas"]
        state["step"] += 1
        step = state["step"].item()
        grad = _decay(param, grad, group)
        mean, square = state["exp_avg"], state["exp_avg_sq"]
        mean.lerp_(grad, 1 - beta1)
        square.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
        direction = mean / (1 - beta1**step)
        # rho is the number of gradients that the mean square amounts to (equations 5 and 6).
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
