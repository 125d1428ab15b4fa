"""Stochastic gradient descent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import taeda
from taeda import _C

from ._base import PerTensorOptimizer, add_scaled, check_at_least_0, check_lr, check_modes

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
        momentum, state = group["momentum"], self.state
        # Parameters whose velocity exists, and those whose first step this is.
        params: list[Any] = []
        grads: list[Any] = []
        buffers: list[Any] = []
        new_params: list[Any] = []
        new_grads: list[Any] = []
        new_buffers: list[Any] = []
        if group["differentiable"]:
            super()._step_group(group)
            return
        for param in group["params"]:
            grad = param.grad
            if grad is None:
                continue
            if not _C.is_fusable(param):
                super()._step_group(group)
                return
            if momentum == 0:
                params.append(param)
                grads.append(grad)
                continue
            buffer = state[param].get("momentum_buffer")
            if buffer is None:
                new_params.append(param)
                new_grads.append(grad)
            else:
                params.append(param)
                grads.append(grad)
                buffers.append(buffer)
        new_buffers = [
            taeda.empty_like(p, memory_format=taeda.preserve_format) for p in new_params
        ]
        for some, their_grads, velocities, first in (
            (params, grads, buffers, False),
            (new_params, new_grads, new_buffers, True),
        ):
            if not some:
                continue
            try:
                _C.ops._fused_sgd_(
                    some,
                    their_grads,
                    velocities,
                    lr=float(group["lr"]),
                    momentum=float(momentum),
                    dampening=float(group["dampening"]),
                    weight_decay=float(group["weight_decay"]),
                    nesterov=group["nesterov"],
                    maximize=group["maximize"],
                    is_first_step=first,
                )
            except (RuntimeError, TypeError):
                self._name_mismatch(group)
                raise
        for param, buffer in zip(new_params, new_buffers, strict=True):
            state[param]["momentum_buffer"] = buffer
