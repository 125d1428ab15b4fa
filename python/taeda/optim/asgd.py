"""Averaged stochastic gradient descent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import taeda

from ._base import FusedOptimizer, apply_decay, floats, new_step, zeros_for
from ._checks import check_at_least_0, check_lr

if TYPE_CHECKING:
    from taeda import Tensor

    from .optimizer import ParamsT

__all__ = ["ASGD"]


class ASGD(FusedOptimizer):
    """Stochastic gradient descent that also keeps the average of all parameters so far.

    The average is ``state[p]["ax"]``. Step ``n`` shrinks the parameter by ``lambd * eta`` and
    goes ``eta`` along the gradient, where ``eta = lr / (1 + lambd * lr * n) ** alpha``.

    Polyak, Juditsky: Acceleration of stochastic approximation by averaging, SIAM Journal on
    Control and Optimization, 1992; the schedule from Bottou: Large-scale machine learning with
    stochastic gradient descent, COMPSTAT 2010.

    Args:
        params: parameters, ``(name, parameter)`` pairs, or dicts of parameter groups.
        lr: learning rate, a number or a tensor of one element.
        lambd: factor of the decay towards 0.
        alpha: power by which the rate falls.
        t0: the step after which averaging starts; until then the average is the parameter.
        weight_decay: factor of the L2 penalty.
        foreach: PyTorch's choice among its implementations; all values do the same here.
        maximize: climb the objective instead of descending it.
        differentiable: record the step itself, so that gradients flow through it.
        capturable: count steps on the GPU, so that a graph can record them; the learning rate may
            be a tensor there. ``step`` refuses it for other parameters.

    Raises:
        ValueError: an option is out of its range.

    >>> w = taeda.nn.Parameter(taeda.tensor([1.0, -2.0]))
    >>> optimizer = taeda.optim.ASGD([w], lr=0.5, lambd=0.0)
    >>> (w * w).sum().backward()
    >>> optimizer.step()
    >>> optimizer.state[w]["ax"]
    tensor([0., 0.])
    """

    _op = "_fused_asgd_"
    _state_lists = ("ax", "step", "eta", "mu")
    _counts = ("step", "eta", "mu")

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-2,
        lambd: float = 1e-4,
        alpha: float = 0.75,
        t0: float = 1e6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        check_lr("ASGD", lr)
        check_at_least_0("ASGD", weight_decay=weight_decay)
        defaults = {
            "lr": lr,
            "lambd": lambd,
            "alpha": alpha,
            "t0": t0,
            "weight_decay": weight_decay,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "capturable": capturable,
        }
        super().__init__(params, defaults)

    def _new_state(self, param: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        return {
            "step": new_step(),
            "eta": new_step(float(group["lr"])),
            "mu": new_step(1),
            "ax": zeros_for(param),
        }

    def _numbers(self, group: dict[str, Any]) -> dict[str, Any]:
        return {
            **floats(group, "lr", "lambd", "alpha", "t0", "weight_decay"),
            "maximize": group["maximize"],
        }

    def _update(
        self, param: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any]
    ) -> None:
        lr, lambd = group["lr"], group["lambd"]
        state["step"] += 1
        step, eta, mu = (state[name].item() for name in ("step", "eta", "mu"))
        grad = apply_decay(param, grad, group)
        param.mul_(1 - lambd * eta)
        param.add_(grad, alpha=-eta)
        average = state["ax"]
        if mu == 1:
            average.copy_(param)
        else:
            average.add_((param - average) * mu)
        with taeda.no_grad():
            state["eta"].fill_(float(lr) / (1 + lambd * float(lr) * step) ** group["alpha"])
            state["mu"].fill_(1 / max(1, step - group["t0"]))
