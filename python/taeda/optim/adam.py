"""Adam and AdamW."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import taeda
from taeda import _C

from ._base import (
    PerTensorOptimizer,
    check_at_least_0,
    check_betas,
    check_lr,
    check_modes,
    is_plain,
    new_step,
    zeros_for,
)

if TYPE_CHECKING:
    from taeda import Tensor

    from .optimizer import ParamsT

__all__ = ["Adam", "AdamW"]


class Adam(PerTensorOptimizer):
    """Steps scaled by running means of the gradient and of its square.

    Kingma, Ba: Adam: A method for stochastic optimization, ICLR 2015; ``amsgrad`` from Reddi, Kale,
    Kumar: On the convergence of Adam and beyond, ICLR 2018. Weight decay is an L2 penalty, added
    to the gradient, unless ``decoupled_weight_decay`` is set, which makes this AdamW.

    Args:
        params: parameters, ``(name, parameter)`` pairs, or dicts of parameter groups.
        lr: learning rate, a number or a tensor of one element.
        betas: shares of the running means of the gradient and its square kept at each step.
        eps: added to the root of the mean square.
        weight_decay: factor of the weight decay.
        amsgrad: divide by the largest mean square so far.
        foreach: PyTorch's choice among its implementations. All of a group's parameters are
            updated in one call here, whether it is None, True or False.
        maximize: climb the objective instead of descending it.
        capturable: for steps recorded in CUDA graphs; only False is possible.
        differentiable: record the step itself, so that gradients flow through it; slower.
        fused: like ``foreach``; the two cannot both be True.
        decoupled_weight_decay: shrink the parameter by ``lr * weight_decay`` instead.

    Raises:
        ValueError: an option is out of its range.

    >>> w = taeda.nn.Parameter(taeda.tensor([1.0, -2.0]))
    >>> optimizer = taeda.optim.Adam([w], lr=0.5)
    >>> (w * w).sum().backward()
    >>> optimizer.step()
    >>> w.detach()
    tensor([ 0.5000, -1.5000])
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        betas: tuple[float | Tensor, float | Tensor] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
        decoupled_weight_decay: bool = False,
    ) -> None:
        who = type(self).__name__
        check_lr(who, lr)
        check_at_least_0(who, epsilon=eps, weight_decay=weight_decay)
        check_betas(who, betas)
        check_modes(
            who,
            foreach=foreach,
            differentiable=differentiable,
            fused=fused,
            capturable=capturable,
        )
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "amsgrad": amsgrad,
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "differentiable": differentiable,
            "fused": fused,
            "decoupled_weight_decay": decoupled_weight_decay,
        }
        super().__init__(params, defaults)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for group in self.param_groups:
            group.setdefault("amsgrad", False)
            group.setdefault("maximize", False)
            group.setdefault("foreach", None)
            group.setdefault("capturable", False)
            group.setdefault("differentiable", False)
            group.setdefault("decoupled_weight_decay", False)
            group.setdefault("fused", None)
        for values in self.state.values():
            if "step" in values and not isinstance(values["step"], taeda.Tensor):
                values["step"] = new_step() + float(values["step"])

    def _step_group(self, group: dict[str, Any]) -> None:
        if group["differentiable"]:
            super()._step_group(group)
            return
        states, amsgrad = self.state, group["amsgrad"]
        params: list[Any] = []
        grads: list[Any] = []
        means: list[Any] = []
        squares: list[Any] = []
        maxima: list[Any] = []
        steps: list[Any] = []
        for param in group["params"]:
            grad = param.grad
            if grad is None:
                continue
            state = states[param]
            if not state:
                state.update(self._new_state(param, group))
            params.append(param)
            grads.append(grad)
            means.append(state["exp_avg"])
            squares.append(state["exp_avg_sq"])
            steps.append(state["step"])
            if amsgrad:
                maxima.append(state["max_exp_avg_sq"])
        if not params:
            return
        beta1, beta2 = group["betas"]
        try:
            _C.ops._fused_adam_(
                params,
                grads,
                means,
                squares,
                maxima,
                steps,
                lr=float(group["lr"]),
                beta1=float(beta1),
                beta2=float(beta2),
                weight_decay=float(group["weight_decay"]),
                eps=float(group["eps"]),
                amsgrad=amsgrad,
                maximize=group["maximize"],
                decoupled=group["decoupled_weight_decay"],
            )
        except (RuntimeError, TypeError):
            self._name_mismatch(group)
            if all(is_plain(param) for param in params):
                raise
            super()._step_group(group)

    def _new_state(self, param: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        state = {
            "step": new_step(),
            "exp_avg": zeros_for(param),
            "exp_avg_sq": zeros_for(param),
        }
        if group["amsgrad"]:
            state["max_exp_avg_sq"] = zeros_for(param)
        return state

    def _update(
        self, param: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any]
    ) -> None:
        beta1, beta2 = (float(beta) for beta in group["betas"])
        lr, decay = group["lr"], group["weight_decay"]
        state["step"] += 1
        step = state["step"].item()
        if decay != 0:
            if group["decoupled_weight_decay"]:
                param.mul_(1 - lr * decay)
            else:
                grad = grad.add(param, alpha=decay)
        mean, square = state["exp_avg"], state["exp_avg_sq"]
        mean.lerp_(grad, 1 - beta1)
        square.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
        if group["amsgrad"]:
            square = state["max_exp_avg_sq"] = taeda.maximum(state["max_exp_avg_sq"], square)
        root = (square.sqrt() / (1 - beta2**step) ** 0.5).add_(group["eps"])
        size = lr / (1 - beta1**step)
        if isinstance(size, taeda.Tensor):
            param.sub_(mean / root * size)
        else:
            param.addcdiv_(mean, root, value=-size)


class AdamW(Adam):
    """Adam with decoupled weight decay: each step first shrinks ``p`` by ``lr * weight_decay * p``.

    Loshchilov, Hutter: Decoupled weight decay regularization, ICLR 2019. The options are Adam's;
    ``weight_decay`` is 0.01 by default.
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        betas: tuple[float | Tensor, float | Tensor] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        super().__init__(
            params,
            lr,
            betas,
            eps,
            weight_decay,
            amsgrad,
            foreach=foreach,
            maximize=maximize,
            capturable=capturable,
            differentiable=differentiable,
            fused=fused,
            decoupled_weight_decay=True,
        )

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for group in self.param_groups:
            group["decoupled_weight_decay"] = True
