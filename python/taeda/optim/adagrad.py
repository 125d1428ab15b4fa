"""Adagrad."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import taeda

from ._base import FusedOptimizer, add_scaled, apply_decay, floats, new_step
from ._checks import check_at_least_0, check_fused, check_lr

if TYPE_CHECKING:
    from taeda import Tensor

    from .optimizer import ParamsT

__all__ = ["Adagrad"]


class Adagrad(FusedOptimizer):
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
        fused: like ``foreach``; the two cannot both be True. A ``GradScaler`` leaves it to the step
            to divide gradients, so that the host need not wait for a GPU.

    Sparse gradients change only the elements that they have; they take no ``weight_decay``.

    Raises:
        ValueError: an option is out of its range.
    """

    _op = "_fused_adagrad_"
    _state_lists = ("sum", "step")

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
        check_fused("Adagrad", foreach=foreach, differentiable=differentiable, fused=fused)
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
                if self._counts_there(group):
                    self._count_on_device(param)

    def _new_state(self, param: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        start = group["initial_accumulator_value"]
        if param.is_complex():
            start = complex(start, start)
        total = taeda.full_like(param, start, memory_format=taeda.preserve_format)
        return {"step": new_step(), "sum": total.detach()}

    def share_memory(self) -> None:
        """Move the state into memory that other processes can share."""
        for state in self.state.values():
            state["sum"].share_memory_()

    def _numbers(self, group: dict[str, Any]) -> dict[str, Any]:
        return {
            **floats(group, "lr", "lr_decay", "weight_decay", "eps"),
            "maximize": group["maximize"],
        }

    def _step_sparse(self, params: list[Any], group: dict[str, Any]) -> None:
        """Change only the elements that the gradients have, and their sums."""
        if group["weight_decay"] != 0:
            raise RuntimeError("Adagrad: weight_decay is not compatible with sparse gradients")
        with taeda.no_grad():
            for param in params:
                grad = param.grad.coalesce()
                positions, values = tuple(grad.indices()), grad.values()
                values = -values if group["maximize"] else values
                state = self.state[param]
                state["step"] += 1
                rate = float(group["lr"]) / (1 + (state["step"].item() - 1) * group["lr_decay"])
                state["sum"].index_put_(positions, values * values, accumulate=True)
                move = values / state["sum"][positions].sqrt_().add_(group["eps"])
                param.index_put_(positions, move * -rate, accumulate=True)

    def _update(
        self, param: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any]
    ) -> None:
        state["step"] += 1
        step = state["step"].item()
        grad = apply_decay(param, grad, group)
        total = state["sum"]
        total.addcmul_(grad, grad, value=1)
        rate = group["lr"] / (1 + (step - 1) * group["lr_decay"])
        add_scaled(param, grad / total.sqrt().add(group["eps"]), -rate)
