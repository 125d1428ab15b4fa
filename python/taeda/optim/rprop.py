"""Rprop."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import taeda

from ._base import FusedOptimizer, new_step, zeros_for
from ._checks import check_lr

if TYPE_CHECKING:
    from taeda import Tensor

    from .optimizer import ParamsT

__all__ = ["Rprop"]


class Rprop(FusedOptimizer):
    """Steps of each element's own size, in the direction of the gradient's sign.

    A size grows while the sign stays and shrinks when it changes; after a change, the element
    waits for one step. For full batches: the noise of small ones changes signs.

    Riedmiller, Braun: A direct adaptive method for faster backpropagation learning: the RPROP
    algorithm, ICNN 1993.

    Args:
        params: parameters, ``(name, parameter)`` pairs, or dicts of parameter groups.
        lr: the first steps' size, a number or a tensor of one element.
        etas: the factors by which sizes shrink, between 0 and 1, and grow, above 1.
        step_sizes: the smallest and the largest size.
        capturable: count steps on the GPU, so that a graph can record them; the learning rate may
            be a tensor there. ``step`` refuses it for other parameters.
        foreach: PyTorch's choice among its implementations; all values do the same here.
        maximize: climb the objective instead of descending it.
        differentiable: record the step itself, so that gradients flow through it.

    Raises:
        ValueError: an option is out of its range.

    >>> w = taeda.nn.Parameter(taeda.tensor([1.0, -2.0]))
    >>> optimizer = taeda.optim.Rprop([w], lr=0.5)
    >>> (w * w).sum().backward()
    >>> optimizer.step()
    >>> w.detach()
    tensor([ 0.5000, -1.5000])
    """

    _op = "_fused_rprop_"
    _state_lists = ("prev", "step_size", "step")

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-2,
        etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50),
        *,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_lr("Rprop", lr)
        if not 0 < etas[0] < 1 < etas[1]:
            raise ValueError(
                f"Rprop: Invalid eta values: {etas[0]}, {etas[1]}; the first must be between 0 and "
                "1, the second above 1"
            )
        defaults = {
            "lr": lr,
            "etas": etas,
            "step_sizes": step_sizes,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "capturable": capturable,
        }
        super().__init__(params, defaults)

    def _new_state(self, param: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        size = float(group["lr"])
        return {
            "step": new_step(),
            "prev": zeros_for(param),
            "step_size": taeda.full_like(
                param,
                complex(size, size) if param.is_complex() else size,
                memory_format=taeda.preserve_format,
            ).detach(),
        }

    def _numbers(self, group: dict[str, Any]) -> dict[str, Any]:
        slower, faster = group["etas"]
        least, most = group["step_sizes"]
        return {
            "etaminus": float(slower),
            "etaplus": float(faster),
            "step_size_min": float(least),
            "step_size_max": float(most),
            "maximize": group["maximize"],
        }

    def _update(
        self, param: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any]
    ) -> None:
        slower, faster = group["etas"]
        least, most = group["step_sizes"]
        state["step"] += 1
        previous, size = state["prev"], state["step_size"]
        turn = (grad * previous).detach()
        grows, shrinks, stays = (size.new_full((), n) for n in (faster, slower, 1.0))
        factor = taeda.where(turn > 0, grows, taeda.where(turn < 0, shrinks, stays))
        size.mul_(factor).clamp_(least, most)
        grad = grad.masked_fill(turn < 0, 0)
        param.sub_(grad.sign() * size)
        previous.copy_(grad)
