"""Helpers of this package's optimizers beyond the base class."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, ClassVar

import taeda
from taeda import _C

from ._checks import check_gradients
from .optimizer import Optimizer

if TYPE_CHECKING:
    from collections.abc import Callable

    from taeda import Tensor

    from .optimizer import ParamsT


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
    """Arguments shared by the C++ steps of Adam and its variants."""
    beta1, beta2 = group["betas"]
    return {
        "lr": float(group["lr"]),
        "beta1": float(beta1),
        "beta2": float(beta2),
        "eps": float(group["eps"]),
        "weight_decay": float(group["weight_decay"]),
        "maximize": group["maximize"],
    }


def new_step(value: float = 0) -> Tensor:
    """A count of steps: float64 where that is the default dtype, else float32."""
    wide = taeda.get_default_dtype() == taeda.float64
    return taeda.full((), value, dtype=taeda.float64 if wide else taeda.float32)


def zeros_for(param: Tensor) -> Tensor:
    """Zeros laid out in memory as ``param`` is."""
    return taeda.zeros_like(param, memory_format=taeda.preserve_format)


def run_closure(who: str, closure: Callable[[], Any]) -> Any:
    """The loss of a closure that was given to ``step``, recomputed with gradients recorded."""
    if not callable(closure):
        raise TypeError(f"{who}.step: closure: '{type(closure).__name__}' object is not callable")
    with taeda.enable_grad():
        return closure()


class PerTensorOptimizer(Optimizer):
    """An optimizer that treats one parameter after the other, by tensor operations.

    A subclass gives ``_new_state(param, group)`` and ``_update(param, grad, state, group)``.
    ``_update`` changes ``param`` and the tensors in ``state`` in place, but never ``grad``; complex
    parameters reach it as pairs of real numbers.
    """

    _foreach_refuses_autograd = True
    _met_gradient = False  # or been told that there was none
    _counts_on_device = False  # whether `capturable` is there
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
        for group in self.param_groups:
            if self._counts_there(group):
                for param in group["params"]:
                    self._count_on_device(param)

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update the parameters once, from their gradients.

        Args:
            closure: recomputes the loss and the gradients and returns the loss.

        Returns:
            What ``closure`` returned, or None without one.

        Raises:
            RuntimeError: a gradient is not of its parameter's shape, dtype or device, or is one
                that ``check_gradients`` refuses; the message names the parameter. Nothing has been
                changed in its group.
            AssertionError: ``capturable`` is True for parameters that are not on a GPU, or
                ``foreach`` and ``differentiable`` both are.
        """
        loss = None if closure is None else run_closure(type(self).__name__, closure)
        found = self.__dict__.get("found_inf")  # of a GradScaler, for the time of this step
        if found is not None and found.device.type == "cpu" and found.item():
            return loss
        for group in self.param_groups:
            self._check_modes(group)
            self._check_capture(group)
            watch = self._watch
            if watch is not None:
                watch.before_step(type(self).__name__, self.named_params(group))
            self._step_group(group)
            if watch is not None:
                watch.after_step(group["params"])
        if not self._met_gradient:
            self._look_for_gradients()
        return loss

    def _counts_there(self, group: dict[str, Any]) -> bool:
        """Whether the steps of parameters on a GPU are counted there."""
        return bool(group.get("capturable") or group.get("fused"))

    def _count_on_device(self, param: Tensor) -> None:
        """Move a parameter's counts to where it is, so that a graph may count."""
        for name in self._counts:
            count = self.state.get(param, {}).get(name)
            if isinstance(count, taeda.Tensor) and count.device.type == "cpu" and param.is_cuda:
                self.state[param][name] = taeda.full(
                    (), count.item(), dtype=taeda.float32, device=param.device
                )

    def _look_for_gradients(self) -> None:
        """Warn, once, if a step has found no gradient at all, and none has before."""
        parameters = [p for group in self.param_groups for p in group["params"]]
        if not parameters:
            return
        self._met_gradient = True
        if any(p.grad is not None for p in parameters):
            return
        warnings.warn(
            f"{type(self).__name__}.step: no parameter has a gradient, so that nothing has been "
            "changed; was backward() called, for a loss that these parameters take part in?",
            stacklevel=4,
        )

    def _check_modes(self, group: dict[str, Any]) -> None:
        """Raise for options that are incompatible with each other or with the parameters."""
        get = group.get
        if not (get("capturable") or get("fused") or get("foreach")):
            return
        contradict = get("foreach") and get("differentiable") and self._foreach_refuses_autograd
        who = type(self).__name__
        for name, param in self.named_params(group):
            if param.grad is None:
                continue
            if get("capturable") and not param.is_cuda:
                raise AssertionError(
                    f"{who}.step: capturable=True is for parameters on a GPU, whose steps a graph "
                    f"records; {name} is on {param.device}"
                )
            if get("capturable") and not self._counts_on_device:
                raise NotImplementedError(
                    f"{who}.step: capturable=True is not supported; steps are counted on the CPU"
                )
            if contradict:
                raise AssertionError(
                    f"{who}.step: foreach=True does not support autograd, which "
                    "differentiable=True asks for"
                )
            if get("fused") and not param.is_floating_point():
                raise RuntimeError(
                    f"{who}.step: `fused=True` requires real floating-point parameters, but "
                    f"parameter {name} is {param.dtype!r}"
                )

    def _check_capture(self, group: dict[str, Any]) -> None:
        """Raise where a graph would record a step that is another one each time."""
        params = group["params"]
        if not (self._counts and params and params[0].is_cuda) or group.get("capturable"):
            return
        if taeda.cuda.is_current_stream_capturing():
            raise RuntimeError(
                f"{type(self).__name__}.step: a graph cannot record steps that are counted, since "
                "every replay would make the same one; give the optimizer capturable=True"
            )

    def _step_group(self, group: dict[str, Any]) -> None:
        """Step one parameter after the other."""
        check_gradients(type(self).__name__, self.named_params(group))
        self._step_each([param for param in group["params"] if param.grad is not None], group)

    def _step_each(self, params: list[Any], group: dict[str, Any]) -> None:
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
    _run: ClassVar[Callable[..., None]]
    _counts_on_device = True
    # Steps parameters whose gradients are all sparse; None if these are refused.
    _step_sparse: Callable[[list[Any], dict[str, Any]], None] | None = None

    def __init__(self, params: ParamsT, defaults: dict[str, Any]) -> None:
        super().__init__(params, defaults)
        if defaults.get("fused"):
            self._step_supports_amp_scaling = True

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if self.defaults.get("fused"):
            self._step_supports_amp_scaling = True

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "_op" in cls.__dict__:
            cls._run = staticmethod(getattr(_C.ops, cls._op))

    def _step_group(self, group: dict[str, Any]) -> None:
        if group.get("differentiable"):
            self._say_before_change()
            super()._step_group(group)
            return
        names, numbers = self._state_names(group), self._step_numbers(group)
        try:
            stepped = _C._fused_step(self._op, group["params"], self.state, names, numbers)
        except (RuntimeError, TypeError):
            stepped = False  # nothing has changed yet; the general path handles it, or raises
        if stepped:
            return
        self._say_before_change()
        lists = _C._step_lists(group["params"], self.state, names)
        if lists is None:
            self._step_first(group)
        elif lists[0]:
            self._call(lists, group, numbers)

    def _step_numbers(self, group: dict[str, Any]) -> dict[str, Any]:
        """What ``_numbers`` gives, and what is read where the parameters are.

        That is a learning rate on a GPU, and the numbers that a GradScaler has set.
        """
        lr = group["lr"]
        if type(lr) is float and "found_inf" not in self.__dict__:
            return self._numbers(group)
        rate: Tensor | None = None
        if self._counts_there(group) and self._counts and isinstance(lr, taeda.Tensor):
            rate = lr.detach().float() if lr.is_cuda else None
        numbers = self._numbers(group if rate is None else {**group, "lr": 1.0})
        if rate is not None and "lr" in numbers:
            numbers = {**numbers, "rate": rate}
        for name in ("grad_scale", "found_inf"):
            number = getattr(self, name, None)
            if number is not None and group["params"]:
                device = group["params"][0].device
                number = number.to(device, taeda.float32, non_blocking=True)
                numbers = {**numbers, name: number}
        return numbers

    def _unscale(self, grads: list[Any], numbers: dict[str, Any]) -> bool:
        """Divide gradients for a step by operations, if a GradScaler asks; False: make no step."""
        scale, found = numbers.pop("grad_scale", None), numbers.pop("found_inf", None)
        if found is not None and found.item():
            return False
        if scale is not None:
            with taeda.no_grad():
                for grad in grads:
                    grad.div_(scale)
        return True

    def _say_before_change(self) -> None:
        if self._before_change is not None:
            self._before_change(self)

    def _state_names(self, group: dict[str, Any]) -> tuple[str | None, ...]:
        """``_state_lists``, with None for those that the group's options make no use of."""
        return self._state_lists

    def _step_first(self, group: dict[str, Any]) -> None:
        """Step a group of which some parameters have no state yet."""
        if group.get("capturable") and taeda.cuda.is_current_stream_capturing():
            raise RuntimeError(
                f"{type(self).__name__}.step: a graph cannot record the first step, which makes "
                "the optimizer's state: every replay would make it anew; step once before"
            )
        for param in group["params"]:
            if param.grad is not None and not self.state[param]:
                self.state[param].update(self._new_state(param, group))
                if self._counts_there(group):
                    self._count_on_device(param)
        lists = _C._step_lists(group["params"], self.state, self._state_names(group))
        if lists is None:
            raise KeyError(
                f"{type(self).__name__}.step: a parameter's state lacks one of "
                f"{[name for name in self._state_names(group) if name]}, which the group's "
                "options ask for"
            )
        self._call(lists, group, self._step_numbers(group))

    def _call(self, lists: list[list[Any]], group: dict[str, Any], numbers: dict[str, Any]) -> None:
        """Call the C++ step; where it does not take the parameters, step by operations."""
        if any(map(_C._dispatches, (*lists[0], *lists[1]))):  # whose class sees each operation
            if self._unscale(lists[1], numbers):
                self._step_each(lists[0], group)
            return
        try:
            self._run(*lists, **numbers)
        except (RuntimeError, TypeError):
            if self._step_sparse is not None and any(grad.is_sparse for grad in lists[1]):
                if self._unscale(lists[1], numbers):
                    self._split(lists, group, numbers)
                return
            self._name_mismatch(group)
            if all(param.device.type == "cpu" for param in lists[0]):
                raise
            if self._unscale(lists[1], numbers):
                self._step_each(lists[0], group)

    def _split(self, lists: list[list[Any]], group: dict[str, Any], numbers: Any) -> None:
        """Step the parameters whose gradients are sparse, then the others."""
        assert self._step_sparse is not None
        params, grads = lists[:2]
        self._step_sparse([p for p, g in zip(params, grads, strict=True) if g.is_sparse], group)
        dense = [i for i, grad in enumerate(grads) if not grad.is_sparse]
        if dense:
            self._call([[some[i] for i in dense] if some else [] for some in lists], group, numbers)

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


# Options that groups in older files may lack.
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
