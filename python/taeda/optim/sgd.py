"""Stochastic gradient descent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import taeda
from taeda import _C

from ._base import (
    PerTensorOptimizer,
    add_scaled,
    check_at_least_0,
    check_lr,
    check_modes,
    is_plain,
)

if TYPE_CHECKING:
    from taeda import Tensor

    from .optimizer import ParamsT

__all__ = ["SGD"]


class SGD(PerTensorOptimizer):
    """Stochastic gradient descent, with momentum where wanted.

    With gradient ``g`` (to which ``weight_decay * p`` is added) and velocity ``v``, a step is
    ``v = momentum * v + (1 - dampening) * g`` and ``p = p - lr * v``; the first ``v`` is ``g``.
    Nesterov's form steps by ``g + momentum * v``. (Sutskever, Martens, Dahl, Hinton: On the
    importance of initialization and momentum in deep learning, ICML 2013; here, as in PyTorch, the
    learning rate multiplies the velocity and is not part of it.)

    Args:
        params: parameters, ``(name, parameter)`` pairs, or dicts of parameter groups.
        lr: learning rate, a number or a tensor of one element.
        momentum: share of the velocity that is kept.
        dampening: share of the gradient that does not enter the velocity.
        weight_decay: factor of the L2 penalty.
        nesterov: look ahead along the velocity; needs ``momentum`` and no ``dampening``.
        maximize: climb the objective instead of descending it.
        foreach: PyTorch's choice among its implementations. All of a group's parameters are
            updated in one call here, whether it is None, True or False.
        differentiable: record the step itself, so that gradients flow through it; slower.
        fused: like ``foreach``; the two cannot both be True.

    Raises:
        ValueError: an option is out of its range.

    >>> w = taeda.nn.Parameter(taeda.tensor([1.0, -2.0]))
    >>> optimizer = taeda.optim.SGD([w], lr=0.5)
    >>> (w * w).sum().backward()
    >>> optimizer.step()
    >>> w.detach()
    tensor([0., 0.])
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: float = 0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        check_lr("SGD", lr)
        check_at_least_0("SGD", momentum=momentum, weight_decay=weight_decay)
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError(
                "SGD: Nesterov momentum requires a momentum and zero dampening, got "
                f"momentum={momentum}, dampening={dampening}"
            )
        check_modes("SGD", foreach=foreach, differentiable=differentiable, fused=fused)
        defaults = {
            "lr": lr,
            "momentum": momentum,
            "dampening": dampening,
            "weight_decay": weight_decay,
            "nesterov": nesterov,
            "maximize": maximize,
            "foreach": foreach,
            "differentiable": differentiable,
            "fused": fused,
        }
        super().__init__(params, defaults)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for group in self.param_groups:
            for option in ("nesterov", "maximize", "differentiable"):
                group.setdefault(option, False)
            for option in ("foreach", "fused"):
                group.setdefault(option, None)

    def _step_group(self, group: dict[str, Any]) -> None:
        if group["differentiable"]:
            super()._step_group(group)
            return
        params, grads = [], []
        for param in group["params"]:
            grad = param.grad
            if grad is not None:
                params.append(param)
                grads.append(grad)
        if not params:
            return
        try:
            self._step_together(params, grads, group)
        except (RuntimeError, TypeError):
            self._name_mismatch(group)
            if all(is_plain(param) for param in params):
                raise
            super()._step_group(group)

    def _step_together(self, params: list[Any], grads: list[Any], group: dict[str, Any]) -> None:
        """Step parameters in one call; in two where some have no velocity yet."""
        momentum = group["momentum"]
        buffers: list[Any] = []
        new = False
        if momentum:
            states = [self.state[param] for param in params]
            buffers = [state.get("momentum_buffer") for state in states]
            is_new = [buffer is None for buffer in buffers]
            new = all(is_new)
            if new:
                buffers = [taeda.empty_like(p, memory_format=taeda.preserve_format) for p in params]
            elif any(is_new):
                for wanted in (True, False):
                    some = [i for i, flag in enumerate(is_new) if flag is wanted]
                    self._step_together([params[i] for i in some], [grads[i] for i in some], group)
                return
        _C.ops._fused_sgd_(
            params,
            grads,
            buffers,
            lr=float(group["lr"]),
            momentum=float(momentum),
            dampening=float(group["dampening"]),
            weight_decay=float(group["weight_decay"]),
            nesterov=group["nesterov"],
            maximize=group["maximize"],
            is_first_step=new,
        )
        if new:
            for state, buffer in zip(states, buffers, strict=True):
                state["momentum_buffer"] = buffer

    def _new_state(self, param: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        return {}

    def _update(
        self, param: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any]
    ) -> None:
        momentum = group["momentum"]
        if group["weight_decay"] != 0:
            grad = grad.add(param, alpha=group["weight_decay"])
        if momentum != 0:
            velocity = state.get("momentum_buffer")
            if velocity is None:
                velocity = state["momentum_buffer"] = grad.clone()
            else:
                velocity.mul_(momentum).add_(grad, alpha=1 - group["dampening"])
            grad = grad.add(velocity, alpha=momentum) if group["nesterov"] else velocity
        add_scaled(param, grad, -group["lr"])
