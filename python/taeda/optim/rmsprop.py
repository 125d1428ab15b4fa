"""RMSprop, Adagrad and Adadelta: steps scaled by what past gradients' squares were."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import taeda

from ._base import (
    PerTensorOptimizer,
    add_scaled,
    check_at_least_0,
    check_lr,
    check_modes,
    new_step,
    zeros_for,
)

if TYPE_CHECKING:
    from taeda import Tensor

    from .optimizer import ParamsT

__all__ = ["Adadelta", "Adagrad", "RMSprop"]


class RMSprop(PerTensorOptimizer):
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
        capturable: for steps recorded in CUDA graphs; only False is possible.
        foreach: PyTorch's choice among its implementations; all values do the same here.
        maximize: climb the objective instead of descending it.
        differentiable: record the step itself, so that gradients flow through it.

    Raises:
        ValueError: an option is out of its range.
    """

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
        check_modes(
            "RMSprop", foreach=foreach, differentiable=differentiable, capturable=capturable
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

    def _update(
        self, param: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any]
    ) -> None:
        alpha, momentum = group["alpha"], group["momentum"]
        state["step"] += 1
        if group["weight_decay"] != 0:
            grad = grad.add(param, alpha=group["weight_decay"])
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


class Adagrad(PerTensorOptimizer):
    """Gradients divided by the root of the sum of all their squares so far.

    Duchi, Hazan, Singer: Adaptive subgradient methods for online learning and stochastic
    optimization, JMLR 2011.

    Args:
        params: parameters, ``(name, parameter)`` pairs, or dicts of parameter groups.
        lr: learning rate, a number or a tensor of one element.
        lr_decay: step ``n`` uses ``lr / (1 + (n - 1) * lr_decay)``.
        weight_decay: factor of the L2 penalty.
        initial_accumulator_value: where the sums start.
        eps: added to the root.
        foreach: PyTorch's choice among its implementations; all values do the same here.
        maximize: climb the objective instead of descending it.
        differentiable: record the step itself, so that gradients flow through it.
        fused: like ``foreach``; the two cannot both be True.

    Raises:
        ValueError: an option is out of its range.
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-2,
        lr_decay: float = 0,
        weight_decay: float = 0,
        initial_accumulator_value: float = 0,
        eps: float = 1e-10,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        check_lr("Adagrad", lr)
        check_at_least_0(
            "Adagrad",
            lr_decay=lr_decay,
            weight_decay=weight_decay,
            initial_accumulator_value=initial_accumulator_value,
            epsilon=eps,
        )
        check_modes("Adagrad", foreach=foreach, differentiable=differentiable, fused=fused)
        defaults = {
            "lr": lr,
            "lr_decay": lr_decay,
            "eps": eps,
            "weight_decay": weight_decay,
            "initial_accumulator_value": initial_accumulator_value,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "fused": fused,
        }
        super().__init__(params, defaults)
        # The state exists from the start, as it does in PyTorch.
        for group in self.param_groups:
            for param in group["params"]:
                self.state[param] = self._new_state(param, group)

    def _new_state(self, param: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        start = group["initial_accumulator_value"]
        if param.is_complex():
            start = complex(start, start)
        total = taeda.full_like(param, start, memory_format=taeda.preserve_format)
        return {"step": new_step(), "sum": total.detach()}

    def _update(
        self, param: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any]
    ) -> None:
        state["step"] += 1
        step = state["step"].item()
        if group["weight_decay"] != 0:
            grad = grad.add(param, alpha=group["weight_decay"])
        total = state["sum"]
        total.addcmul_(grad, grad, value=1)
        rate = group["lr"] / (1 + (step - 1) * group["lr_decay"])
        add_scaled(param, grad / total.sqrt().add(group["eps"]), -rate)


class Adadelta(PerTensorOptimizer):
    """Gradients times the ratio of two roots: of past steps' mean square and of past gradients'.

    Zeiler: ADADELTA: An adaptive learning rate method, 2012.

    Args:
        params: parameters, ``(name, parameter)`` pairs, or dicts of parameter groups.
        lr: factor of the step, a number or a tensor of one element.
        rho: share of both mean squares kept at each step.
        eps: added to both mean squares.
        weight_decay: factor of the L2 penalty.
        foreach: PyTorch's choice among its implementations; all values do the same here.
        capturable: for steps recorded in CUDA graphs; only False is possible.
        maximize: climb the objective instead of descending it.
        differentiable: record the step itself, so that gradients flow through it.

    Raises:
        ValueError: an option is out of its range.
    """

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
        check_modes(
            "Adadelta", foreach=foreach, differentiable=differentiable, capturable=capturable
        )
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

    def _update(
        self, param: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any]
    ) -> None:
        rho, eps = group["rho"], group["eps"]
        state["step"] += 1
        if group["weight_decay"] != 0:
            grad = grad.add(param, alpha=group["weight_decay"])
        square, steps = state["square_avg"], state["acc_delta"]
        square.mul_(rho).addcmul_(grad, grad, value=1 - rho)
        delta = steps.add(eps).sqrt_() / square.add(eps).sqrt_() * grad
        steps.mul_(rho).addcmul_(delta, delta, value=1 - rho)
        add_scaled(param, delta, -group["lr"])
