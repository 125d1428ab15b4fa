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

_DEVICES = ("cpu", "cuda")


def is_autocast_available(device_type: str) -> bool:
    """Whether :class:`autocast` works for a type of device."""
    return device_type == "cpu"


def is_autocast_enabled(device_type: str = "cuda") -> bool:
    """Whether autocast is on, in this thread, for a type of device; PyTorch's default is CUDA."""
    return device_type == "cpu" and bool(_C._autocast()[0])


def get_autocast_dtype(device_type: str) -> Any:
    """The lower precision that autocast uses for a type of device."""
    return _C._autocast()[1] if device_type == "cpu" else taeda.float16


class autocast:
    """Within the block, or a decorated function, operations choose their precision.

    Matrix products and convolutions take their float32 inputs as ``dtype``; losses, decompositions
    and Fourier transforms take lower ones as float32; ``cat`` and ``stack`` the widest of what they
    are given; other operations what their inputs are. float64 stays. Parameters are converted once
    in a block. Run ``backward()`` outside of it. Blocks may be nested.

    Args:
        device_type: ``"cpu"``; for ``"cuda"``, which is not there, autocast warns and is off.
        dtype: ``taeda.bfloat16``, the default, or ``taeda.float16``; for others it warns and is
            off.
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
        if enabled and device_type != "cpu":
            warnings.warn(
                f"User provided device_type of {device_type!r}, but it is not available. Disabling",
                stacklevel=2,
            )
            enabled = False
        if enabled and dtype not in (taeda.bfloat16, taeda.float16):
            warnings.warn(
                f"In CPU autocast, but the target dtype {dtype} is not supported. Disabling "
                "autocast. CPU autocast supports taeda.bfloat16 and taeda.float16",
                stacklevel=2,
            )
            enabled = False
        self.fast_dtype = dtype
        self._enabled = enabled
        self._cache_enabled = cache_enabled
        self._before: list[Any] = []

    def __enter__(self) -> autocast:
        before = _C._autocast()
        self._before.append(before)
        if self.device == "cpu":
            cache = before[2] if self._cache_enabled is None else self._cache_enabled
            _C._set_autocast(self._enabled, self.fast_dtype if self._enabled else before[1], cache)
        return self

    def __exit__(self, *exc_info: object) -> None:
        enabled, dtype, cache = self._before.pop()
        _C._set_autocast(enabled, dtype, cache)
        if not enabled:
            _C._clear_autocast_cache()

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def decorated(*args: Any, **kwargs: Any) -> Any:
            with self:
                return function(*args, **kwargs)

        return decorated


def _cast(value: Any, dtype: Any) -> Any:
    """Floating-point tensors in a value, but those of float64, in ``dtype``."""
    if isinstance(value, taeda.Tensor):
        fits = value.is_floating_point() and value.dtype is not taeda.float64
        return value.to(dtype) if fits else value
    if isinstance(value, dict):
        return {_cast(k, dtype): _cast(v, dtype) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(_cast(v, dtype) for v in value)
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
            return fwd(ctx, *_cast(args, cast_inputs), **_cast(kwargs, cast_inputs))

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
