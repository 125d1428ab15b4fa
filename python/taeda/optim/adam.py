"""Adam."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import taeda

from ._base import FusedOptimizer, adam_numbers, add_scaled, apply_decay, new_step, zeros_for
from ._checks import check_at_least_0, check_betas, check_fused, check_lr

if TYPE_CHECKING:
    from taeda import Tensor

    from .optimizer import ParamsT

__all__ = ["Adam"]


def _check_tensor_options(who: str, lr: Any, betas: Any, only_numbers: bool) -> None:
    """Raise for options that are tensors where they cannot be."""
    is_tensor = [isinstance(value, taeda.Tensor) for value in (lr, *betas)]
    if is_tensor[1] != is_tensor[2]:
        raise ValueError(f"{who}: betas must be either both floats or both Tensors, got {betas}")
    names = ("lr", "betas[0]", "betas[1]")
    for name, value, tensor in zip(names, (lr, *betas), is_tensor, strict=True):
        if tensor and only_numbers:
            raise ValueError(
                f"{who}: {name} as a Tensor is not supported for capturable=False and foreach=True"
            )
        if tensor and value.numel() != 1:
            raise ValueError(f"{who}: a Tensor {name} must have 1 element, got {value.numel()}")


class Adam(FusedOptimizer):
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
        capturable: count steps on the GPU, so that a graph can record them; the learning rate may
            be a tensor there. ``step`` refuses it for other parameters.
        differentiable: record the step itself, so that gradients flow through it; slower.
        fused: like ``foreach``; the two cannot both be True. A ``GradScaler`` leaves it to the step
            to divide gradients, so that the host need not wait for a GPU.
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

    _op = "_fused_adam_"
    _state_lists = ("exp_avg", "exp_avg_sq", "max_exp_avg_sq", "step")

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
        check_fused(who, foreach=foreach, differentiable=differentiable, fused=fused)
        _check_tensor_options(who, lr, betas, bool(foreach) and not capturable)
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

    def _state_names(self, group: dict[str, Any]) -> tuple[str | None, ...]:
        return self._state_lists if group["amsgrad"] else ("exp_avg", "exp_avg_sq", None, "step")

    def _numbers(self, group: dict[str, Any]) -> dict[str, Any]:
        numbers = adam_numbers(group)
        numbers["decoupled"] = group["decoupled_weight_decay"]
        return numbers

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
        state["step"] += 1
        step = state["step"].item()
        grad = apply_decay(param, grad, group)
        mean, square = state["exp_avg"], state["exp_avg_sq"]
        mean.lerp_(grad, 1 - beta1)
        square.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
        if group["amsgrad"]:
            square = state["max_exp_avg_sq"] = taeda.maximum(state["max_exp_avg_sq"], square)
        root = (square.sqrt() / (1 - beta2**step) ** 0.5).add_(group["eps"])
        size = group["lr"] / (1 - beta1**step)
        add_scaled(param, mean / root, -size)
