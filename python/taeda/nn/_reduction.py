"""The `reduction` argument of losses, and the deprecated arguments that it replaced."""

from __future__ import annotations

import warnings

_NUMBERS = {"none": 0, "mean": 1, "elementwise_mean": 1, "sum": 2}


def get_enum(reduction: str, who: str = "get_enum") -> int:
    """Return the number of a reduction that the ops take: none 0, mean 1, sum 2.

    `who` asks, for the message that refuses another.
    """
    number = _NUMBERS.get(reduction)
    if number is None:
        raise ValueError(f"{who}: {reduction} is not a valid value for reduction")
    return number


def legacy_get_string(
    size_average: bool | None, reduce: bool | None, emit_warning: bool = True
) -> str:
    """Return the reduction for the deprecated arguments `size_average` and `reduce`."""
    size_average = True if size_average is None else size_average
    reduce = True if reduce is None else reduce
    reduction = "none" if not reduce else "mean" if size_average else "sum"
    if emit_warning:
        warnings.warn(
            "size_average and reduce args will be deprecated, please use "
            f"reduction='{reduction}' instead.",
            stacklevel=4,
        )
    return reduction


def legacy_get_enum(
    size_average: bool | None, reduce: bool | None, emit_warning: bool = True
) -> int:
    """Return the number of the reduction for the deprecated arguments."""
    return get_enum(legacy_get_string(size_average, reduce, emit_warning))


def resolve(reduction: str, size_average: bool | None, reduce: bool | None) -> str:
    """Return a loss's reduction from `reduction` and the deprecated arguments."""
    if size_average is not None or reduce is not None:
        return legacy_get_string(size_average, reduce)
    return reduction
