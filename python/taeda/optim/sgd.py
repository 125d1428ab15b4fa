"""Stochastic gradient descent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import taeda

from ._base import FusedOptimizer, add_scaled, apply_decay
from ._checks import check_at_least_0, check_fused, check_lr

if TYPE_CHECKING:
    from taeda import Tensor

    from .optimizer import ParamsT

__all__ = ["SGD"]


class SGD(FusedOptimizer):
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
        fused: like ``foreach``; the two cannot both be True. A ``GradScaler`` leaves it to the step
            to divide gradients, so that the host need not wait for a GPU.

    Sparse gradients change only the elements that they have; they take no ``weight_decay``.

    Raises:
        ValueError: an option is out of its range.

    >>> w = taeda.nn.Parameter(taeda.tensor([1.0, -2.0]))
    >>> optimizer = taeda.optim.SGD([w], lr=0.5)
    >>> (w * w).sum().backward()
    >>> optimizer.step()
    >>> w.detach()
    tensor([0., 0.])
    """

    _op = "_fused_sgd_"
    _foreach_refuses_autograd = False
    _state_lists = ("momentum_buffer",)
    _counts = ()

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
        check_fused("SGD", foreach=foreach, differentiable=differentiable, fused=fused)
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

    def _state_names(self, group: dict[str, Any]) -> tuple[str | None, ...]:
        return self._state_lists if group["momentum"] else (None,)

    def _numbers(self, group: dict[str, Any]) -> dict[str, Any]:
        return {
            "lr": float(group["lr"]),
            "momentum": float(group["momentum"]),
            "dampening": float(group["dampening"]),
            "weight_decay": float(group["weight_decay"]),
            "nesterov": group["nesterov"],
            "maximize": group["maximize"],
            "is_first_step": False,
        }

    def _step_first(self, group: dict[str, Any]) -> None:
        """Step parameters that have no velocity yet, which their gradients become, then others."""
        with_grad = [p for p in group["params"] if p.grad is not None]
        fresh = [p for p in with_grad if self.state[p].get("momentum_buffer") is None]
        grads = [p.grad for p in fresh]
        # Zeros, since a GPU may find that there is no step.
        velocities = [taeda.zeros_like(p, memory_format=taeda.preserve_format) for p in fresh]
        velocities = [velocity.detach() for velocity in velocities]
        numbers = self._step_numbers(group)
        self._call([fresh, grads, velocities], group, {**numbers, "is_first_step": True})
        for param, velocity in zip(fresh, velocities, strict=True):
            self.state[param].setdefault("momentum_buffer", velocity)
        new = {id(param) for param in fresh}
        others = [p for p in with_grad if id(p) not in new]
        if others:
            grads = [p.grad for p in others]
            velocities = [self.state[p]["momentum_buffer"] for p in others]
            self._call([others, grads, velocities], group, numbers)

    def _step_sparse(self, params: list[Any], group: dict[str, Any]) -> None:
        """Change only the elements that the gradients have; velocities are sparse, too."""
        if group["weight_decay"] != 0:
            raise RuntimeError("SGD: weight_decay is not compatible with sparse gradients")
        momentum, lr = group["momentum"], float(group["lr"])
        with taeda.no_grad():
            for param in params:
                move = -param.grad if group["maximize"] else param.grad
                if momentum != 0:
                    state = self.state[param]
                    velocity = state.get("momentum_buffer")
                    if velocity is None:
                        velocity = move.clone()
                    else:
                        share = 1 - group["dampening"]
                        velocity = (velocity * momentum).add(move, alpha=share).coalesce()
                    state["momentum_buffer"] = velocity
                    move = move.add(velocity, alpha=momentum) if group["nesterov"] else velocity
                param.add_(move, alpha=-lr)

    def _new_state(self, param: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        return {}

    def _update(
        self, param: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any]
    ) -> None:
        momentum = group["momentum"]
        grad = apply_decay(param, grad, group)
        if momentum != 0:
            velocity = state.get("momentum_buffer")
            if velocity is None:
                velocity = state["momentum_buffer"] = grad.clone()
            else:
                velocity.mul_(momentum).add_(grad, alpha=1 - group["dampening"])
            grad = grad.add(velocity, alpha=momentum) if group["nesterov"] else velocity
        add_scaled(param, grad, -group["lr"])
