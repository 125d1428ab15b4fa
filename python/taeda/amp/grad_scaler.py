"""Scaling losses so that small gradients do not vanish in float16."""

from __future__ import annotations

import warnings
from collections import defaultdict
from collections.abc import Callable
from enum import Enum
from typing import TYPE_CHECKING, Any

import taeda

if TYPE_CHECKING:
    from taeda.optim import Optimizer

__all__ = ["GradScaler"]

# What to call with each scaled loss and its factor.
on_scaled: list[Callable[[taeda.Tensor, float], None]] = []


class OptState(Enum):
    """The state of an optimizer since the last update."""

    READY = 0
    UNSCALED = 1
    STEPPED = 2


def _ready() -> OptState:
    """What an optimizer is before it is first seen; a function, so that scalers can be pickled."""
    return OptState.READY


class GradScaler:
    """Multiplies losses by a factor before backward, and divides gradients by it before the step.

    Steps whose gradients have overflowed are left out, and the factor falls; after many good ones
    it grows. (Micikevicius et al.: Mixed precision training, ICLR 2018.)

    Args:
        device: the type of device; for ``"cuda"``, which is not there, it warns and is disabled.
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
        if enabled and device != "cpu":
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
        self._scale = float(init_scale)
        self._growth_factor = growth_factor
        self._backoff_factor = backoff_factor
        self._growth_interval = growth_interval
        self._growth_tracker = 0
        self._forget()

    def _forget(self) -> None:
        """Reset the per-optimizer state after an update."""
        self._stages: dict[int, OptState] = defaultdict(_ready)
        self._found_inf: dict[int, bool] = {}

    def scale(self, outputs: Any) -> Any:
        """A tensor, or tensors in lists and tuples, times the factor.

        Raises:
            ValueError: there is something else in them.
        """
        if not self._enabled:
            return outputs
        if isinstance(outputs, taeda.Tensor):
            scaled = outputs * taeda.tensor(self._scale, device=outputs.device)
            for notice in on_scaled:
                notice(scaled, self._scale)
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
        key = id(optimizer)
        if self._stages[key] is OptState.UNSCALED:
            raise RuntimeError(
                "unscale_() has already been called on this optimizer since the last update()."
            )
        if self._stages[key] is OptState.STEPPED:
            raise RuntimeError("unscale_() is being called after step().")
        grads = [p.grad for g in optimizer.param_groups for p in g["params"] if p.grad is not None]
        if any(grad.dtype is taeda.float16 for grad in grads):
            raise ValueError("Attempting to unscale FP16 gradients.")
        with taeda.no_grad():
            for grad in grads:
                grad.mul_(1.0 / self._scale)
            if grads:
                self._found_inf[key] = not all(bool(grad.isfinite().all()) for grad in grads)
        self._stages[key] = OptState.UNSCALED

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
        key = id(optimizer)
        if self._stages[key] is OptState.STEPPED:
            raise RuntimeError("step() has already been called since the last update().")
        if self._stages[key] is OptState.READY:
            self.unscale_(optimizer)
        if key not in self._found_inf:
            raise AssertionError("No inf checks were recorded for this optimizer.")
        result = None if self._found_inf[key] else optimizer.step(*args, **kwargs)
        self._stages[key] = OptState.STEPPED
        return result

    def update(self, new_scale: Any = None) -> None:
        """Change the factor after all optimizers' steps: as said above, or to ``new_scale``.

        Raises:
            AssertionError: no optimizer has been stepped or unscaled.
        """
        if not self._enabled:
            return
        if new_scale is not None:
            self._scale = float(new_scale)
        else:
            if not self._found_inf:
                raise AssertionError("No inf checks were recorded prior to update.")
            if any(self._found_inf.values()):
                self._scale *= self._backoff_factor
                self._growth_tracker = 0
            else:
                self._growth_tracker += 1
                if self._growth_tracker == self._growth_interval:
                    self._grow()
        self._forget()

    def _grow(self) -> None:
        grown = self._scale * self._growth_factor
        if grown <= taeda.finfo(taeda.float32).max:
            self._scale = grown
        self._growth_tracker = 0

    def get_scale(self) -> float:
        """The factor; 1 where disabled."""
        return self._scale if self._enabled else 1.0

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
            "scale": self._scale,
            "growth_factor": self._growth_factor,
            "backoff_factor": self._backoff_factor,
            "growth_interval": self._growth_interval,
            "_growth_tracker": self._growth_tracker,
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
        self._scale = state_dict["scale"]
        self._growth_factor = state_dict["growth_factor"]
        self._backoff_factor = state_dict["backoff_factor"]
        self._growth_interval = state_dict["growth_interval"]
        self._growth_tracker = state_dict["_growth_tracker"]
