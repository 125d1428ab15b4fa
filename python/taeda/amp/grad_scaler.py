"""Scaling losses so that small gradients do not vanish in float16."""

from __future__ import annotations

import inspect
import warnings
from collections import defaultdict
from collections.abc import Callable
from enum import Enum
from typing import TYPE_CHECKING, Any

import taeda
from taeda import _C

if TYPE_CHECKING:
    from taeda import Tensor
    from taeda.optim import Optimizer

__all__ = ["GradScaler"]

# What to call with each scaled loss and its factor.
on_scaled: list[Callable[[taeda.Tensor, float], None]] = []


class OptState(Enum):
    """The state of an optimizer since the last update."""

    READY = 0
    UNSCALED = 1
    STEPPED = 2


def _first_state() -> dict[str, Any]:
    """What is known of an optimizer before it is first seen; a function, so that it is pickled."""
    return {"stage": OptState.READY, "found_inf_per_device": {}}


class GradScaler:
    """Multiplies losses by a factor before backward, and divides gradients by it before the step.

    Steps whose gradients have overflowed are left out, and the factor falls; after many good ones
    it grows. (Micikevicius et al.: Mixed precision training, ICLR 2018.) The factor is a number in
    the device's memory: on a GPU the host waits once a step, for whether there was an overflow; not
    for optimizers with ``fused=True``, which divide the gradients and leave out steps themselves.

    Args:
        device: the type of device; where there is no such device, it warns and is disabled.
        init_scale: the first factor.
        growth_factor: what it is multiplied by after ``growth_interval`` good steps, above 1.
        backoff_factor: what it is multiplied by after a bad one, below 1.
        growth_interval: see there.
        enabled: False makes all methods do nothing but step the optimizer.

    >>> model = taeda.nn.Linear(2, 1)
    >>> optimizer = taeda.optim.SGD(model.parameters(), lr=0.1)
    >>> scaler = GradScaler("cpu", init_scale=8.0)
    >>> scaler.scale(model(taeda.ones(3, 2)).sum()).backward()
    >>> scaler.step(optimizer)
    >>> scaler.update()
    >>> scaler.get_scale()
    8.0
    """

    def __init__(
        self,
        device: str = "cuda",
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        self._device = device
        self._enabled = enabled
        if enabled and device != "cpu" and not (device == "cuda" and taeda.cuda.is_available()):
            warnings.warn(
                f"GradScaler is enabled, but {device} is not available. Disabling.", stacklevel=2
            )
            self._enabled = False
        if not self._enabled:
            return
        if growth_factor <= 1.0:
            raise AssertionError("The growth factor must be > 1.0.")
        if backoff_factor >= 1.0:
            raise AssertionError("The backoff factor must be < 1.0.")
        self._init_scale = float(init_scale)
        self._init_growth_tracker = 0
        self._scale: Tensor | None = None  # made on the device of the first loss
        self._growth_tracker: Tensor | None = None
        self._growth_factor = growth_factor
        self._backoff_factor = backoff_factor
        self._growth_interval = growth_interval
        self._per_optimizer_states: dict[int, dict[str, Any]] = defaultdict(_first_state)

    def _numbers(self, device: Any = None) -> tuple[Tensor, Tensor]:
        """The factor, and how many good steps there were since it changed."""
        if self._scale is None or self._growth_tracker is None:
            place = self._device if device is None else device
            self._scale = taeda.full((), self._init_scale, dtype=taeda.float32, device=place)
            self._growth_tracker = taeda.full(
                (), self._init_growth_tracker, dtype=taeda.int32, device=place
            )
        return self._scale, self._growth_tracker

    def scale(self, outputs: Any) -> Any:
        """A tensor, or tensors in lists and tuples, times the factor.

        Raises:
            ValueError: there is something else in them.
        """
        if not self._enabled:
            return outputs
        if isinstance(outputs, taeda.Tensor):
            scale, _tracker = self._numbers(outputs.device)
            scaled = outputs * scale.to(outputs.device, non_blocking=True)
            for notice in on_scaled:
                notice(scaled, self.get_scale())
            return scaled
        if isinstance(outputs, (list, tuple)):
            return type(outputs)(self.scale(item) for item in outputs)
        if hasattr(outputs, "__iter__"):
            return map(self.scale, outputs)
        raise ValueError("outputs must be a Tensor or an iterable of Tensors")

    def unscale_(self, optimizer: Optimizer) -> None:
        """Divide the gradients of an optimizer's parameters by the factor, as before clipping.

        Raises:
            RuntimeError: it has been called for this optimizer since the last update.
            ValueError: a gradient is float16: its parameter should be float32.
        """
        if not self._enabled:
            return
        state = self._per_optimizer_states[id(optimizer)]
        if state["stage"] is OptState.UNSCALED:
            raise RuntimeError(
                "unscale_() has already been called on this optimizer since the last update()."
            )
        if state["stage"] is OptState.STEPPED:
            raise RuntimeError("unscale_() is being called after step().")
        scale, _tracker = self._numbers()
        inverse = scale.double().reciprocal().float()  # of large factors too
        state["found_inf_per_device"] = self._multiply(optimizer, inverse, halves=False)
        state["stage"] = OptState.UNSCALED

    def _multiply(self, optimizer: Optimizer, factor: Tensor, *, halves: bool) -> dict[Any, Tensor]:
        """Multiply all gradients; for each device, 1 where one of them was not finite.

        Args:
            optimizer: whose gradients.
            factor: a number.
            halves: whether gradients may be float16.
        """
        by_device: dict[Any, list[Tensor]] = defaultdict(list)
        for param in (p for g in optimizer.param_groups for p in g["params"]):
            if param.grad is not None:
                if param.grad.dtype is taeda.float16 and not halves:
                    raise ValueError("Attempting to unscale FP16 gradients.")
                grad = param.grad
                values = grad._values() if grad.layout is taeda.sparse_coo else grad
                by_device[values.device].append(values)
        found: dict[Any, Tensor] = {}
        with taeda.no_grad():
            for device, grads in by_device.items():
                found[device] = taeda.zeros((), dtype=taeda.float32, device=device)
                there = factor.to(device, non_blocking=True)
                _C.ops._amp_foreach_non_finite_check_and_unscale_(grads, found[device], there)
        return found

    def step(self, optimizer: Optimizer, *args: Any, **kwargs: Any) -> Any:
        """Step an optimizer, unless its gradients have overflowed.

        Returns:
            What ``optimizer.step(*args, **kwargs)`` returned; None where it was left out.

        Raises:
            RuntimeError: a closure is given, or ``step`` has been called since the last update.
            AssertionError: no parameter has a gradient.
        """
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs:
            raise RuntimeError("Closure use is not currently supported if GradScaler is enabled.")
        state = self._per_optimizer_states[id(optimizer)]
        if state["stage"] is OptState.STEPPED:
            raise RuntimeError("step() has already been called since the last update().")
        if getattr(optimizer, "_step_supports_amp_scaling", False):
            result = self._step_by_itself(optimizer, state, *args, **kwargs)
            state["stage"] = OptState.STEPPED
            return result
        if state["stage"] is OptState.READY:
            self.unscale_(optimizer)
        found = state["found_inf_per_device"]
        if not found:
            raise AssertionError("No inf checks were recorded for this optimizer.")
        overflowed = any([bool(flag.item()) for flag in found.values()])
        result = None if overflowed else optimizer.step(*args, **kwargs)
        state["stage"] = OptState.STEPPED
        return result

    def _step_by_itself(
        self, optimizer: Optimizer, state: dict[str, Any], *args: Any, **kwargs: Any
    ) -> Any:
        """Step an optimizer that divides gradients and leaves out bad steps itself."""
        if "grad_scaler" in inspect.signature(optimizer.step).parameters:
            warnings.warn(
                "GradScaler.step: an optimizer's step should read self.grad_scale and "
                "self.found_inf instead of taking grad_scaler, which will not be given any more",
                FutureWarning,
                stacklevel=3,
            )
            return optimizer.step(*args, **{**kwargs, "grad_scaler": self})
        scaled: Any = optimizer  # given the two attributes for the time of its step
        scale, _tracker = self._numbers()
        factor = getattr(optimizer, "grad_scale", None)
        if state["stage"] is OptState.READY:
            one = taeda.ones((), dtype=taeda.float32, device=scale.device)
            state["found_inf_per_device"] = self._multiply(optimizer, one, halves=True)
            factor = scale if factor is None else scale * factor
        found = self._overflows(state["found_inf_per_device"])
        scaled.grad_scale = factor
        scaled.found_inf = taeda.zeros_like(scale) if found is None else found
        try:
            return optimizer.step(*args, **kwargs)
        finally:
            del scaled.grad_scale, scaled.found_inf

    def _overflows(self, found: dict[Any, Tensor]) -> Tensor | None:
        """How many devices have found overflows, where the factor is; None: nobody has looked."""
        scale, _tracker = self._numbers()
        flags = [flag.to(scale.device, non_blocking=True) for flag in found.values()]
        return sum(flags[1:], flags[0]) if flags else None

    def update(self, new_scale: Any = None) -> None:
        """Change the factor after all optimizers' steps: as said above, or to ``new_scale``.

        Raises:
            AssertionError: no optimizer has been stepped or unscaled.
        """
        if not self._enabled:
            return
        scale, tracker = self._numbers()
        if new_scale is not None:
            scale.fill_(new_scale)
        else:
            states = self._per_optimizer_states.values()
            overflows = [self._overflows(state["found_inf_per_device"]) for state in states]
            found = [number for number in overflows if number is not None]
            if not found:
                raise AssertionError("No inf checks were recorded prior to update.")
            _C.ops._amp_update_scale_(
                scale,
                tracker,
                sum(found[1:], found[0]),
                self._growth_factor,
                self._backoff_factor,
                self._growth_interval,
            )
        self._per_optimizer_states = defaultdict(_first_state)

    def get_scale(self) -> float:
        """The factor; 1 where disabled. Waits for the device."""
        if not self._enabled:
            return 1.0
        return self._init_scale if self._scale is None else float(self._scale.item())

    def _get_growth_tracker(self) -> int:
        if self._growth_tracker is None:
            return self._init_growth_tracker
        return int(self._growth_tracker.item())

    def get_growth_factor(self) -> float:
        """The multiplier by which the factor grows."""
        return self._growth_factor

    def set_growth_factor(self, new_factor: float) -> None:
        """Set what the factor is multiplied by to grow."""
        self._growth_factor = new_factor

    def get_backoff_factor(self) -> float:
        """The multiplier by which the factor shrinks."""
        return self._backoff_factor

    def set_backoff_factor(self, new_factor: float) -> None:
        """Set what the factor is multiplied by to fall."""
        self._backoff_factor = new_factor

    def get_growth_interval(self) -> int:
        """After how many good steps the factor grows."""
        return self._growth_interval

    def set_growth_interval(self, new_interval: int) -> None:
        """Set after how many good steps the factor grows."""
        self._growth_interval = new_interval

    def is_enabled(self) -> bool:
        """Whether it does anything."""
        return self._enabled

    def state_dict(self) -> dict[str, Any]:
        """The state for resuming later; empty if disabled. PyTorch's structure."""
        if not self._enabled:
            return {}
        return {
            "scale": self.get_scale(),
            "growth_factor": self._growth_factor,
            "backoff_factor": self._backoff_factor,
            "growth_interval": self._growth_interval,
            "_growth_tracker": self._get_growth_tracker(),
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what ``state_dict()`` gave.

        Raises:
            RuntimeError: it is empty: it comes from a disabled scaler.
        """
        if not self._enabled:
            return
        if not state_dict:
            raise RuntimeError(
                "The source state dict is empty, possibly because it was saved from a disabled "
                "instance of GradScaler."
            )
        self._init_scale = state_dict["scale"]
        self._growth_factor = state_dict["growth_factor"]
        self._backoff_factor = state_dict["backoff_factor"]
        self._growth_interval = state_dict["growth_interval"]
        self._init_growth_tracker = state_dict["_growth_tracker"]
        if self._scale is not None and self._growth_tracker is not None:
            self._scale.fill_(self._init_scale)
            self._growth_tracker.fill_(self._init_growth_tracker)
