"""Choosing the precision of operations within a block."""

from __future__ import annotations

import functools
import warnings
from typing import TYPE_CHECKING, Any

import taeda
from taeda import _C

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["autocast", "custom_bwd", "custom_fwd", "is_autocast_available"]

_DEVICES = {"cpu": 0, "cuda": 2}  # where they are in `_C._autocast()`


def is_autocast_available(device_type: str) -> bool:
    """Whether :class:`autocast` works for a type of device."""
    return device_type == "cpu" or (device_type == "cuda" and taeda.cuda.is_available())


def is_autocast_enabled(device_type: str = "cuda") -> bool:
    """Whether autocast is on, in this thread, for a type of device; PyTorch's default is CUDA."""
    return device_type in _DEVICES and bool(_C._autocast()[_DEVICES[device_type]])


def get_autocast_dtype(device_type: str) -> Any:
    """The lower precision that autocast uses for a type of device."""
    if device_type not in _DEVICES:
        raise RuntimeError(f"get_autocast_dtype: device type {device_type!r} is not supported")
    return _C._autocast()[_DEVICES[device_type] + 1]


def set_autocast_enabled(device_type: str, enabled: bool) -> None:
    """Turn autocast on or off in this thread for a type of device; blocks are safer."""
    _change("set_autocast_enabled", device_type, 0, bool(enabled))


def set_autocast_dtype(device_type: str, dtype: Any) -> None:
    """Set the lower precision that autocast uses for a type of device in this thread."""
    _change("set_autocast_dtype", device_type, 1, dtype)


def is_autocast_cache_enabled() -> bool:
    """Whether parameters that autocast has converted are kept."""
    return bool(_C._autocast()[4])


def set_autocast_cache_enabled(enabled: bool) -> None:
    """Set whether what autocast has converted is kept until the outermost block ends."""
    _C._set_autocast(*_C._autocast()[:4], bool(enabled))


def clear_autocast_cache() -> None:
    """Forget the parameters that autocast has converted."""
    _C._clear_autocast_cache()


def _change(what: str, device_type: str, which: int, value: Any) -> None:
    if device_type not in _DEVICES:
        raise RuntimeError(f"{what}: device type {device_type!r} is not supported")
    state = list(_C._autocast())
    state[_DEVICES[device_type] + which] = value
    _C._set_autocast(*state)


def enabled_for(*values: Any) -> str | None:
    """The type of device whose autocast is on for these arguments; None where it is off."""
    state = _C._autocast()
    if not (state[0] or state[2]):
        return None
    flat = (t for v in values for t in (v if isinstance(v, (list, tuple)) else [v]))
    there = any(isinstance(t, taeda.Tensor) and t.device.type == "cuda" for t in flat)
    device_type = "cuda" if there else "cpu"
    return device_type if state[_DEVICES[device_type]] else None


class autocast:
    """Within the block, or a decorated function, operations choose their precision.

    Matrix products and convolutions take their float32 inputs as ``dtype``; losses, decompositions
    and Fourier transforms take lower ones as float32; ``cat`` and ``stack`` the widest of what they
    are given; other operations what their inputs are. On CUDA devices float32 is also for sums,
    norms, softmax, powers, exponentials and logarithms, and not for decompositions and transforms;
    ``binary_cross_entropy`` is an error there. float64 stays. Parameters are converted once in a
    block. Run ``backward()`` outside of it. Blocks may be nested.

    Args:
        device_type: ``"cpu"`` or ``"cuda"``: operations on such devices are meant. Where there is
            none, autocast warns and is off.
        dtype: ``taeda.bfloat16`` or ``taeda.float16``. The default is bfloat16 on the CPU, and
            float16 on CUDA devices. For others it warns and is off.
        enabled: False turns autocast off in the block.
        cache_enabled: whether converted parameters are kept until the outermost block ends; as in
            the block around by default.

    Raises:
        ValueError: ``device_type`` is not a string.
        RuntimeError: there are no such devices.
    """

    def __init__(
        self,
        device_type: str,
        dtype: Any = None,
        enabled: bool = True,
        cache_enabled: bool | None = None,
    ) -> None:
        if not isinstance(device_type, str):
            raise ValueError(
                f"Expected `device_type` of type `str`, got: `{type(device_type).__name__}`"
            )
        if device_type not in _DEVICES:
            raise RuntimeError(f"autocast: device type {device_type!r} is not supported")
        self.device = device_type
        if dtype is None:
            dtype = get_autocast_dtype(device_type)
        if enabled and not is_autocast_available(device_type):
            warnings.warn(
                f"User provided device_type of {device_type!r}, but it is not available. Disabling",
                stacklevel=2,
            )
            enabled = False
        if enabled and dtype not in (taeda.bfloat16, taeda.float16):
            kind = device_type.upper()
            warnings.warn(
                f"In {kind} autocast, but the target dtype {dtype} is not supported. Disabling "
                f"autocast. {kind} autocast supports taeda.bfloat16 and taeda.float16",
                stacklevel=2,
            )
            enabled = False
        self.fast_dtype = dtype
        self._enabled = enabled
        self._cache_enabled = cache_enabled
        self._before: list[Any] = []

    def __enter__(self) -> autocast:
        state = list(_C._autocast())
        self._before.append(tuple(state))
        at = _DEVICES[self.device]
        state[at] = self._enabled
        if self._enabled:
            state[at + 1] = self.fast_dtype
        if self._cache_enabled is not None:
            state[4] = self._cache_enabled
        _C._set_autocast(*state)
        return self

    def __exit__(self, *exc_info: object) -> None:
        before = self._before.pop()
        _C._set_autocast(*before)
        if not (before[0] or before[2]):
            _C._clear_autocast_cache()

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def decorated(*args: Any, **kwargs: Any) -> Any:
            with self:
                return function(*args, **kwargs)

        return decorated


def _cast(value: Any, device_type: str, dtype: Any) -> Any:
    """Floating-point tensors of a type of device in a value, but those of float64, in ``dtype``."""
    if isinstance(value, taeda.Tensor):
        fits = value.is_floating_point() and value.dtype is not taeda.float64
        return value.to(dtype) if fits and value.device.type == device_type else value
    if isinstance(value, dict):
        return {
            _cast(k, device_type, dtype): _cast(v, device_type, dtype) for k, v in value.items()
        }
    if isinstance(value, (list, tuple)):
        return type(value)(_cast(v, device_type, dtype) for v in value)
    return value


def custom_fwd(
    fwd: Callable[..., Any] | None = None, *, device_type: str, cast_inputs: Any = None
) -> Any:
    """A decorator for the ``forward`` of an ``autograd.Function``.

    Args:
        fwd: the function; None gives the decorator.
        device_type: the type of device whose autocast is meant.
        cast_inputs: a dtype: where autocast is on, floating-point inputs are converted to it, and
            autocast is off inside. None keeps autocast as it is.

    Raises:
        ValueError: ``device_type`` is not a string.
    """
    if not isinstance(device_type, str):
        raise ValueError(
            f"Expected `device_type` of type `str`, got: `{type(device_type).__name__}`"
        )
    if fwd is None:
        return functools.partial(custom_fwd, device_type=device_type, cast_inputs=cast_inputs)

    @functools.wraps(fwd)
    def decorated(ctx: Any, *args: Any, **kwargs: Any) -> Any:
        ctx._dtype = get_autocast_dtype(device_type)
        enabled = is_autocast_enabled(device_type)
        if cast_inputs is None:
            ctx._fwd_used_autocast = enabled
            return fwd(ctx, *args, **kwargs)
        ctx._fwd_used_autocast = False
        if not enabled:
            return fwd(ctx, *args, **kwargs)
        with autocast(device_type, enabled=False):
            cast = _cast(args, device_type, cast_inputs)
            return fwd(ctx, *cast, **_cast(kwargs, device_type, cast_inputs))

    return decorated


def custom_bwd(bwd: Callable[..., Any] | None = None, *, device_type: str) -> Any:
    """A decorator for the ``backward`` of an ``autograd.Function`` whose forward has
    :func:`custom_fwd`: autocast is in it as it was in forward.
    """
    if not isinstance(device_type, str):
        raise ValueError(
            f"Expected `device_type` of type `str`, got: `{type(device_type).__name__}`"
        )
    if bwd is None:
        return functools.partial(custom_bwd, device_type=device_type)

    @functools.wraps(bwd)
    def decorated(ctx: Any, *grads: Any) -> Any:
        with autocast(device_type, enabled=ctx._fwd_used_autocast, dtype=ctx._dtype):
            return bwd(ctx, *grads)

    return decorated
