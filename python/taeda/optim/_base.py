"""What the optimizers of this package share beyond the base class."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import taeda

from .optimizer import Optimizer

if TYPE_CHECKING:
    from collections.abc import Callable

    from taeda import Tensor


def check_lr(who: str, lr: Any) -> None:
    """Raise unless ``lr`` is a number, or a tensor of one element, that is not negative."""
    if isinstance(lr, taeda.Tensor):
        if lr.numel() != 1:
            raise ValueError(f"{who}: a Tensor lr must have 1 element, got {lr.numel()}")
    elif not lr >= 0:
        raise ValueError(f"{who}: Invalid learning rate: {lr}; it must be at least 0")


def check_at_least_0(who: str, **values: Any) -> None:
    """Raise unless every value is at least 0."""
    for name, value in values.items():
        if not value >= 0:
            raise ValueError(f"{who}: Invalid {name} value: {value}; it must be at least 0")


def check_betas(who: str, betas: Any) -> None:
    """Raise unless ``betas`` are two numbers from 0 up to, but not including, 1."""
    for i, beta in enumerate(betas):
        if not 0 <= beta < 1:
            raise ValueError(
                f"{who}: Invalid beta parameter at index {i}: {beta}; it must be in [0, 1)"
            )


def check_modes(
    who: str,
    *,
    foreach: bool | None,
    differentiable: bool,
    fused: bool | None = None,
    capturable: bool = False,
) -> None:
    """Raise for combinations of these options that PyTorch refuses too, and for ``capturable``."""
    if foreach and fused:
        raise RuntimeError(f"{who}: `fused` and `foreach` cannot be `True` together")
    if fused and differentiable:
        raise RuntimeError(f"{who}: `fused` does not support `differentiable`")
    if capturable:
        raise ValueError(
            f"{who}: capturable=True is for steps recorded in CUDA graphs, which taeda has not; "
            "leave it False"
        )


def add_scaled(param: Tensor, direction: Tensor, factor: Any) -> None:
    """``param += factor * direction``, also for a factor that is a tensor to differentiate by."""
    if isinstance(factor, taeda.Tensor):
        param.add_(direction * factor)
    else:
        param.add_(direction, alpha=factor)


def new_step() -> Tensor:
    """A count of steps, at 0."""
    return taeda.zeros((), dtype=taeda.float32)


def zeros_for(param: Tensor) -> Tensor:
    """Zeros laid out in memory as ``param`` is."""
    return taeda.zeros_like(param, memory_format=taeda.preserve_format)


def is_plain(param: Tensor) -> bool:
    """Whether the C++ steps take this parameter: real floating-point numbers on the CPU."""
    return bool(param.device.type == "cpu" and param.is_floating_point())


class PerTensorOptimizer(Optimizer):
    """An optimizer that treats one parameter after the other, by tensor operations.

    A subclass gives ``_new_state(param, group)`` and ``_update(param, grad, state, group)``.
    ``_update`` changes ``param`` and the tensors in ``state`` in place, but never ``grad``; complex
    parameters reach it as pairs of real numbers.
    """

    _new_state: Callable[[Tensor, dict[str, Any]], dict[str, Any]]
    _update: Callable[[Tensor, Tensor, dict[str, Any], dict[str, Any]], None]

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update the parameters once, from their gradients.

        Args:
            closure: recomputes the loss and the gradients and returns the loss.

        Returns:
            What ``closure`` returned, or None without one.
        """
        loss = None
        if closure is not None:
            with taeda.enable_grad():
                loss = closure()
        for group in self.param_groups:
            self._step_group(group)
        return loss

    def _step_group(self, group: dict[str, Any]) -> None:
        """Step one group by tensor operations."""
        differentiable = group.get("differentiable", False)
        with taeda.set_grad_enabled(differentiable):
            for param in group["params"]:
                grad = param.grad
                if grad is None:
                    continue
                if grad.shape != param.shape:
                    self._name_mismatch(group)
                state = self.state.get(param) or self._new_state(param, group)
                if differentiable:
                    # Earlier steps' graphs hold the earlier tensors, which must stay as they are.
                    for key, value in state.items():
                        if isinstance(value, taeda.Tensor) and key != "step":
                            state[key] = value.clone()
                if group["maximize"]:
                    grad = -grad
                if param.is_complex():
                    self._update_complex(param, grad, state, group)
                else:
                    self._update(param, grad, state, group)
                if state:
                    self.state[param] = state

    def _update_complex(
        self, param: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any]
    ) -> None:
        """Update real and imaginary parts as independent numbers, as PyTorch does."""
        real = taeda.view_as_real
        parts = {
            key: real(value) if isinstance(value, taeda.Tensor) and value.is_complex() else value
            for key, value in state.items()
        }
        before = dict(parts)
        self._update(real(param), real(grad), parts, group)
        for key, value in parts.items():
            if value is not before.get(key):
                is_pair = isinstance(value, taeda.Tensor) and value.dim() == param.dim() + 1
                state[key] = taeda.view_as_complex(value) if is_pair else value

    def _name_mismatch(self, group: dict[str, Any]) -> None:
        """Raise for the first gradient or piece of state that does not fit its parameter."""
        who = type(self).__name__
        for name, param in self.named_params(group):
            grad = param.grad
            if grad is None:
                continue
            if grad.shape != param.shape:
                raise RuntimeError(
                    f"{who}.step: parameter {name} has shape {tuple(param.shape)}, but its "
                    f"gradient has shape {tuple(grad.shape)}"
                )
            if grad.dtype != param.dtype or grad.device != param.device:
                raise RuntimeError(
                    f"{who}.step: parameter {name} is {param.dtype!r} on {param.device}, but its "
                    f"gradient is {grad.dtype!r} on {grad.device}"
                )
            for key, value in self.state.get(param, {}).items():
                if not isinstance(value, taeda.Tensor) or value.dim() == 0:
                    continue
                if value.shape != param.shape:
                    raise RuntimeError(
                        f"{who}.step: parameter {name} has shape {tuple(param.shape)}, but its "
                        f"state {key!r} has shape {tuple(value.shape)}"
                    )
