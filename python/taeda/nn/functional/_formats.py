"""Memory formats of results."""

from __future__ import annotations

from taeda._C import Tensor, channels_last, contiguous_format


def in_format_of(input: Tensor, result: Tensor) -> Tensor:
    """A result in memory of the format channels_last if the input is, otherwise contiguous."""
    last = not input.is_contiguous() and input.is_contiguous(memory_format=channels_last)
    return result.contiguous(memory_format=channels_last if last else contiguous_format)
