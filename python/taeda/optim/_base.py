"""What the optimizers of this package share beyond the base class."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import taeda
from taeda import _C

from .optimizer import Optimizer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from taeda import Tensor


def check_lr(who: str, lr: Any) -> None:
    """Raise unless ``lr`` is a number, or a tensor of one element, that is not negative."""
    if isinstance(lr, taeda.Tensor) and lr.numel() != 1:
        raise ValueError(f"{who}: a Tensor lr must have 1 element, got {lr.numel()}")
    if not lr >= 0:
        raise ValueError(f"{who}: Invalid learning rate: {float(lr)}; it must be at least 0")


def check_at_least_0(who: str, **values: Any) -> None:
    """Raise unless every value is at least 0."""
    for name, value in values.items():
        if not value >= 0:
            raise ValueError(f"{who}: Invalid {name} value: {value}; it must be at least 0")


def check_betas(who: str, betas: Any) -> None:
    """Raise unless ``betas`` are numbers from 0 up to, but not including, 1."""
    for i, beta in enumerate(betas):
        if not 0 <= beta < 1:
            raise ValueError(
                f"{who}: Invalid beta parameter at index {i}: {beta}; it must be in [0, 1)"
            )


def check_fused(
    who: str, *, foreach: bool | None, differentiable: bool, fused: bool | None
) -> None:
    """Raise for what ``fused=True`` cannot be combined with."""
    if fused and differentiable:
        raise RuntimeError(f"{who}: `fused` does not support `differentiable`")
    if fused and foreach:
        raise RuntimeError(f"{who}: `fused` and `foreach` cannot be `True` together")


def add_scaled(param: Tensor, direction: Tensor, factor: Any) -> None:
    """``param += factor * direction``, also for a factor that is a tensor to differentiate by."""
    if isinstance(factor, taeda.Tensor):
        param.add_(direction * factor)
    else:
        param.add_(direction, alpha=factor)


def apply_decay(param: Tensor, grad: Tensor, group: dict[str, Any]) -> Tensor:
    """Apply weight decay: to ``param`` itself where decoupled, else to the gradient returned."""
    factor = group["weight_decay"]
    if factor == 0:
        return grad
    if group.get("decoupled_weight_decay"):
        param.mul_(1 - group["lr"] * factor)
        return grad
    return grad.add(param, alpha=factor)


def floats(group: dict[str, Any], *names: str) -> dict[str, float]:
    """Options of a group as floats; those that are tensors too."""
    return {name: float(group[name]) for name in names}


def adam_numbers(group: dict[str, Any]) -> dict[str, Any]:
    """What the C++ steps of Adam and its relatives share."""
    beta1, beta2 = group["betas"]
    numbers = floats(group, "lr", "eps", "weight_decay")
    return {**numbers, "beta1": float(beta1), "beta2": float(beta2), "maximize": group["maximize"]}


def new_step(value: float = 0) -> Tensor:
    """A count of steps: float64 where that is the default dtype, else float32."""
    wide = taeda.get_default_dtype() == taeda.float64
    return taeda.full((), value, dtype=taeda.float64 if wide else taeda.float32)


def zeros_for(param: Tensor) -> Tensor:
    """Zeros laid out in memory as ``param`` is."""
    return taeda.zeros_like(param, memory_format=taeda.preserve_format)


def run_closure(closure: Callable[[], Any] | None) -> Any:
    """The loss of a closure that was given to ``step``, recomputed with gradients recorded."""
    if closure is None:
        return None
    with taeda.enable_grad():
        return closure()


def check_gradients(who: str, named: Iterable[tuple[str, Tensor]]) -> None:
    """Raise for the first gradient that does not fit its parameter."""
    for name, param in named:
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


class PerTensorOptimizer(Optimizer):
    """An optimizer that treats one parameter after the other, by tensor operations.

    A subclass gives ``_new_state(param, group)`` and ``_update(param, grad, state, group)``.
    ``_update`` changes ``param`` and the tensors in ``state`` in place, but never ``grad``; complex
    parameters reach it as pairs of real numbers.
    """

    _new_state: Callable[[Tensor, dict[str, Any]], dict[str, Any]]
    _update: Callable[[Tensor, Tensor, dict[str, Any], dict[str, Any]], None]

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for group in self.param_groups:
            for option, default in _LATER_OPTIONS.items():
                if option in self.defaults:
                    group.setdefault(option, default)
        for values in self.state.values():
            for name in self._counts:
                if isinstance(values.get(name), (int, float)):
                    values[name] = new_step(values[name])

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update the parameters once, from their gradients.

        Args:
            closure: recomputes the loss and the gradients and returns the loss.

        Returns:
            What ``closure`` returned, or None without one.

        Raises:
            RuntimeError: a gradient is not of its parameter's shape, dtype or device; the message
                names the parameter. Nothing has been changed in its group.
            AssertionError: ``capturable`` is True for parameters that are not on a GPU, or
                ``foreach`` and ``differentiable`` both are.
        """
        loss = run_closure(closure)
        for group in self.param_groups:
            params = [param for param in group["params"] if param.grad is not None]
            if not params:
                continue
            self._check_modes(group, params)
            self._step_group(params, group)
        return loss

    def _check_modes(self, group: dict[str, Any], params: list[Any]) -> None:
        """Raise for options that do not go with each other or with the parameters."""
        who = type(self).__name__
        if group.get("capturable"):
            raise AssertionError(
                f"{who}.step: capturable=True is for parameters on a GPU, whose steps a graph "
                f"records; these are on {params[0].device}"
            )
        if group.get("foreach") and group.get("differentiable"):
            raise AssertionError(
                f"{who}.step: foreach=True does not support autograd, which differentiable=True "
                "asks for"
            )
        if group.get("fused"):
            for name, param in self.named_params(group):
                if param.grad is not None and not param.is_floating_point():
                    raise RuntimeError(
                        f"{who}.step: `fused=True` requires real floating-point parameters, but "
                        f"parameter {name} is {param.dtype!r}"
                    )

    def _step_group(self, params: list[Any], group: dict[str, Any]) -> None:
        """Step one parameter after the other."""
        check_gradients(type(self).__name__, self.named_params(group))
        differentiable = group.get("differentiable", False)
        with taeda.set_grad_enabled(differentiable):
            for param in params:
                grad = param.grad
                state = self.state.get(param) or self._new_state(param, group)
                if differentiable:
                    # Earlier steps' graphs hold the earlier tensors, which must stay as they are.
                    for key, value in state.items():
                        if isinstance(value, taeda.Tensor) and key not in self._counts:
                            state[key] = value.clone()
                if group.get("maximize"):
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


class FusedOptimizer(PerTensorOptimizer):
    """An optimizer that updates all of a group's parameters by one call into C++.

    A subclass gives, beside the class variables, ``_numbers(group)``: the keyword arguments of the
    C++ step. ``_update`` is the same step by tensor operations, for ``differentiable`` and for
    tensors that the C++ step does not take.
    """

    _op: ClassVar[str]  # the C++ step
    _state_lists: ClassVar[tuple[str, ...]]  # the pieces of state that it takes, in order
    _numbers: Callable[[dict[str, Any]], dict[str, Any]]

    def _step_group(self, params: list[Any], group: dict[str, Any]) -> None:
        if group.get("differentiable"):
            super()._step_group(params, group)
        else:
            self._step_at_once(params, group)

    def _unused_states(self, group: dict[str, Any]) -> set[str]:
        """Those of ``_state_lists`` that the group's options make no use of."""
        return set()

    def _step_at_once(self, params: list[Any], group: dict[str, Any]) -> None:
        """Step parameters by one call into C++."""
        states = [self.state[param] for param in params]
        for param, state in zip(params, states, strict=True):
            if not state:
                state.update(self._new_state(param, group))
        unused = self._unused_states(group)
        lists = [
            [] if name in unused else [state[name] for state in states]
            for name in self._state_lists
        ]
        grads = [param.grad for param in params]
        self._call(params, grads, lists, group, self._numbers(group))

    def _call(
        self,
        params: list[Any],
        grads: list[Any],
        lists: list[list[Any]],
        group: dict[str, Any],
        numbers: dict[str, Any],
    ) -> None:
        """Call the C++ step; where it does not take the parameters, step by operations."""
        try:
            getattr(_C.ops, self._op)(params, grads, *lists, **numbers)
        except (RuntimeError, TypeError):
            self._name_mismatch(group)
            if all(param.device.type == "cpu" for param in params):
                raise
            super()._step_group(params, group)

    def _name_mismatch(self, group: dict[str, Any]) -> None:
        """Raise for the first gradient or piece of state that does not fit its parameter."""
        who = type(self).__name__
        check_gradients(who, self.named_params(group))
        for name, param in self.named_params(group):
            for key, value in self.state.get(param, {}).items():
                if not isinstance(value, taeda.Tensor) or value.dim() == 0:
                    continue
                if value.shape != param.shape:
                    raise RuntimeError(
                        f"{who}.step: parameter {name} has shape {tuple(param.shape)}, but its "
                        f"state {key!r} has shape {tuple(value.shape)}"
                    )


# Options that older files' groups may lack.
_LATER_OPTIONS = {
    "amsgrad": False,
    "capturable": False,
    "centered": False,
    "decoupled_weight_decay": False,
    "differentiable": False,
    "foreach": None,
    "fused": None,
    "maximize": False,
    "momentum": 0,
    "nesterov": False,
}
