"""The running combination of slices by an associative function."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import taeda
from taeda.utils._pytree import tree_flatten, tree_unflatten

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["associative_scan"]


def associative_scan(
    combine_fn: Callable[[Any, Any], Any],
    xs: Any,
    dim: int,
    reverse: bool = False,
    combine_mode: str = "pointwise",
) -> Any:
    """Combine the slices of tensors from the first up to each: a cumulative sum, for ``a + b``.

    It takes a number of steps that is logarithmic in the length (the scheme of Blelloch, "Prefix
    sums and their applications", 1990).

    Args:
        combine_fn: an associative function of two trees like ``xs``, element by element along
            ``dim``: it is given many slices at once.
        xs: a tensor, or a tree of tensors of the same length along ``dim``.
        dim: along which to combine.
        reverse: begin at the end.
        combine_mode: "generic". ("pointwise" is for CUDA.)

    Returns:
        A tree like ``xs``.

    Raises:
        ValueError: another ``combine_mode``, no tensors, or tensors of different lengths.
        RuntimeError: ``combine_fn`` gives another tree.

    >>> from taeda.compat.private.associative_scan import associative_scan
    >>> x = taeda.arange(5.0)
    >>> associative_scan(lambda a, b: a + b, x, dim=0, combine_mode="generic")
    tensor([ 0.,  1.,  3.,  6., 10.])
    """
    if combine_mode == "pointwise":
        raise ValueError(
            "associative_scan: combine_mode='pointwise' is for tensors on CUDA; use 'generic'"
        )
    if combine_mode != "generic":
        raise ValueError(f"associative_scan: combine_mode must be 'generic', got {combine_mode!r}")
    leaves, spec = tree_flatten(xs)
    if not leaves or not all(isinstance(x, taeda.Tensor) for x in leaves):
        raise ValueError("associative_scan: xs must be tensors, and one at least")
    lengths = {x.size(dim) for x in leaves}
    if len(lengths) != 1:
        raise ValueError(f"associative_scan: lengths along dim {dim} differ: {sorted(lengths)}")

    def combine(a: list[Any], b: list[Any]) -> list[Any]:
        result, result_spec = tree_flatten(
            combine_fn(tree_unflatten(a, spec), tree_unflatten(b, spec))
        )
        if result_spec != spec:
            raise RuntimeError("associative_scan: combine_fn must return a tree like its arguments")
        return result

    # Along the first dimension, whatever `dim` is.
    rows = [x.movedim(dim, 0) for x in leaves]
    if reverse:
        rows = [x.flip(0) for x in rows]

    def at_front(a: list[Any], b: list[Any]) -> list[Any]:
        moved = combine([x.movedim(0, dim) for x in a], [x.movedim(0, dim) for x in b])
        return [x.movedim(dim, 0) for x in moved]

    rows = _scan(at_front, rows)
    if reverse:
        rows = [x.flip(0) for x in rows]
    return tree_unflatten([x.movedim(0, dim) for x in rows], spec)


def _scan(combine: Callable[[list[Any], list[Any]], list[Any]], rows: list[Any]) -> list[Any]:
    """The scan along the first dimension: that of pairs gives every second row, and so the rest."""
    n = rows[0].size(0)
    if n < 2:
        return rows
    odd = _scan(combine, combine([x[: n - 1 : 2] for x in rows], [x[1::2] for x in rows]))
    if n == 2:
        even = [x[:1] for x in rows]
    else:
        later = combine([x[: (n - 1) // 2] for x in odd], [x[2::2] for x in rows])
        even = [taeda.cat([x[:1], y]) for x, y in zip(rows, later, strict=True)]
    return [_interleave(a, b) for a, b in zip(even, odd, strict=True)]


def _interleave(even: Any, odd: Any) -> Any:
    """Rows of the one and the other in turn; the first may have one more."""
    n = odd.size(0)
    pairs = taeda.stack([even[:n], odd], 1).flatten(0, 1)
    return pairs if even.size(0) == n else taeda.cat([pairs, even[n:]])
