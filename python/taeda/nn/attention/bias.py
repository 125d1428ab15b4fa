"""Causal masks for queries and keys of different numbers."""

from __future__ import annotations

import enum

import taeda
from taeda._C import Tensor

__all__ = ["CausalVariant", "causal_lower_right", "causal_upper_left"]


class CausalVariant(enum.IntEnum):
    """Which corner of the scores the diagonal starts from."""

    UPPER_LEFT = 1
    LOWER_RIGHT = 2


def _causal(size: tuple[int, ...], variant: CausalVariant) -> Tensor:
    if len(size) != 2:
        raise AssertionError(
            f"{variant.name.lower()} only supports 2D tensors, got {len(size)} sizes"
        )
    queries, keys = size
    shift = keys - queries if variant is CausalVariant.LOWER_RIGHT else 0
    return taeda.ones(queries, keys, dtype=taeda.bool).tril(shift)


def causal_upper_left(*size: int) -> Tensor:
    """Return the mask in which query i sees the keys up to i; True where it sees one.

    Args:
        *size: how many queries and how many keys.

    >>> taeda.nn.attention.bias.causal_upper_left(2, 3)
    tensor([[ True, False, False],
            [ True,  True, False]])
    """
    return _causal(size, CausalVariant.UPPER_LEFT)


def causal_lower_right(*size: int) -> Tensor:
    """Return the mask in which the last query sees all keys, and each before it one less.

    Args:
        *size: how many queries and how many keys.

    >>> taeda.nn.attention.bias.causal_lower_right(2, 3)
    tensor([[ True,  True, False],
            [ True,  True,  True]])
    """
    return _causal(size, CausalVariant.LOWER_RIGHT)
