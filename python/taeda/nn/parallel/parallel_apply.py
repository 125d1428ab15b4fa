"""Several modules called, each with its own input."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .data_parallel import _check_devices

if TYPE_CHECKING:
    from collections.abc import Sequence

    from taeda.nn.module import Module

__all__ = ["parallel_apply"]


def parallel_apply(
    modules: Sequence[Module],
    inputs: Sequence[Any],
    kwargs_tup: Sequence[dict[str, Any]] | None = None,
    devices: Sequence[Any] | None = None,
) -> list[Any]:
    """Call each module with its input. On GPUs that would be at the same time.

    Args:
        modules: what to call.
        inputs: for each its argument, or a tuple of them.
        kwargs_tup: for each its keyword arguments.
        devices: GPUs, one for each; None on the CPU.

    Returns:
        The results.

    Raises:
        ValueError: there are not equally many of each.

    >>> from taeda.nn.parallel import parallel_apply
    >>> parallel_apply([taeda.nn.ReLU(), taeda.nn.Tanh()], [taeda.ones(1), taeda.zeros(1)])
    [tensor([1.]), tensor([0.])]
    """
    named = [{} for _ in modules] if kwargs_tup is None else list(kwargs_tup)
    given = [devices] if devices is not None else []
    if any(len(each) != len(modules) for each in (inputs, named, *given)):
        raise ValueError(
            f"parallel_apply: expected {len(modules)} inputs, kwargs_tup and devices, one for each "
            "module"
        )
    _check_devices("parallel_apply", [d for d in devices or () if d is not None])
    return [
        module(*(x if isinstance(x, (list, tuple)) else (x,)), **options)
        for module, x, options in zip(modules, inputs, named, strict=True)
    ]
