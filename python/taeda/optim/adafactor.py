"""Adafactor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import taeda

from ._base import PerTensorOptimizer, new_step, zeros_for
from ._checks import check_lr

if TYPE_CHECKING:
    from taeda import Tensor

    from .optimizer import ParamsT

__all__ = ["Adafactor"]


class Adafactor(PerTensorOptimizer):
    """Steps scaled by running means of the gradient's square, of which only rows and columns are
    kept.

    A parameter of shape ``(..., m, n)`` has ``m + n`` numbers of state in place of Adam's ``2 m
    n``; one of fewer than two dimensions keeps its whole mean square. Steps are relative to the
    parameter's own size.

    Shazeer, Stern: Adafactor: Adaptive learning rates with sublinear memory cost, ICML 2018.

    Args:
        params: parameters, ``(name, parameter)`` pairs, or dicts of parameter groups.
        lr: the largest relative step; step ``n`` uses ``1 / sqrt(n)`` where that is less. A
            number or a tensor of one element.
        beta2_decay: the new square's share in the means at step ``n`` is ``n ** beta2_decay``.
        eps: the smallest mean square, ``None`` for the dtype's machine epsilon, squared where it
            bounds a square; and the smallest size of a parameter that steps are relative to.
        d: the largest root mean square of an update.
        weight_decay: each step first shrinks the parameter by ``lr * weight_decay`` of it.
        foreach: PyTorch's choice among its implementations; all values do the same here.
        maximize: climb the objective instead of descending it.

    Raises:
        ValueError: an option is out of its range.

    >>> w = taeda.nn.Parameter(taeda.ones(2, 3))
    >>> optimizer = taeda.optim.Adafactor([w])
    >>> (w * w).sum().backward()
    >>> optimizer.step()
    >>> optimizer.state[w]["row_var"].shape, optimizer.state[w]["col_var"].shape
    (taeda.Size([2, 1]), taeda.Size([1, 3]))
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-2,
        beta2_decay: float = -0.8,
        eps: tuple[float | None, float] = (None, 1e-3),
        d: float = 1.0,
        weight_decay: float = 0.0,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
    ) -> None:
        check_lr("Adafactor", lr)
        if not beta2_decay <= 0:
            raise ValueError(f"Adafactor: beta2_decay should be <= 0, got {beta2_decay}")
        for i, value in enumerate(eps):
            if value is not None and not value >= 0:
                raise ValueError(f"Adafactor: epsilon{i + 1} should be >= 0, got {value}")
        if not d >= 1:
            raise ValueError(f"Adafactor: the clipping threshold d should be >= 1, got {d}")
        if not weight_decay >= 0:
            raise ValueError(f"Adafactor: weight_decay should be >= 0, got {weight_decay}")
        defaults = {
            "lr": lr,
            "beta2_decay": beta2_decay,
            "eps": eps,
            "d": d,
            "weight_decay": weight_decay,
            "foreach": foreach,
            "maximize": maximize,
        }
        super().__init__(params, defaults)

    def _new_state(self, param: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        state = {"step": new_step()}
        if param.dim() > 1:
            *rest, rows, columns = param.shape
            state["row_var"] = taeda.zeros(*rest, rows, 1, dtype=param.dtype, device=param.device)
            state["col_var"] = taeda.zeros(
                *rest, 1, columns, dtype=param.dtype, device=param.device
            )
        else:
            state["variance"] = zeros_for(param)
        return state

    def _update_complex(
        self, param: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any]
    ) -> None:
        raise RuntimeError("Adafactor.step: complex parameters are not supported")

    def _update(
        self, param: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any]
    ) -> None:
        least_square, least_size = group["eps"]
        if least_square is None:
            least_square = taeda.finfo(param.dtype).eps
        state["step"] += 1
        step = state["step"].item()
        share = step ** group["beta2_decay"]
        lr = float(group["lr"])
        size = param.norm().item() / param.numel() ** 0.5
        rate = max(least_size, size) * min(lr, 1 / step**0.5)
        if group["weight_decay"] != 0:
            param.mul_(1 - lr * group["weight_decay"])
        if "variance" in state:
            square = state["variance"].lerp_(grad.square(), share).clone()
        else:
            # The best estimate of rank 1: the outer product of the means over columns and rows.
            rows, columns = state["row_var"], state["col_var"]
            rows.lerp_(grad.square().mean(-1, keepdim=True), share)
            columns.lerp_(grad.square().mean(-2, keepdim=True), share)
            square = rows @ columns / rows.mean(-2, keepdim=True).clamp_(min=least_square)
        update = square.clamp_(min=least_square**2).rsqrt_().mul_(grad)
        too_large = update.norm().item() / (update.numel() ** 0.5 * group["d"])
        param.add_(update, alpha=-rate / max(1.0, too_large))
