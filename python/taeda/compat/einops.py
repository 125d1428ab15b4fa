"""einops for taeda's tensors where taeda is not in PyTorch's place: call `register` once.

``rearrange``, ``reduce``, ``repeat``, ``einsum``, ``pack`` and ``unpack`` then take them. Layers of
``einops.layers.torch`` are modules of PyTorch, for which `taeda.compat.install` is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import taeda

__all__ = ["register"]

_backend: Any = None


def register() -> None:
    """Make einops know taeda's tensors.

    Raises:
        ModuleNotFoundError: einops is not installed.
    """
    global _backend
    try:
        from einops._backends import AbstractBackend
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "taeda.compat.einops needs einops: pip install einops", name="einops"
        ) from error
    if _backend is None:  # einops finds the class by itself
        _backend = type("TaedaBackend", (_Operations, AbstractBackend), {})


class _Operations:
    """What einops calls."""

    framework_name = "taeda"

    def is_appropriate_type(self, tensor: Any) -> bool:
        """Whether it is a tensor of taeda."""
        return isinstance(tensor, taeda.Tensor)

    def from_numpy(self, x: Any) -> Any:
        """A tensor of an array's memory."""
        return taeda.from_numpy(x)

    def to_numpy(self, x: Any) -> Any:
        """An array of a tensor's memory."""
        return x.detach().numpy()

    def arange(self, start: int, stop: int) -> Any:
        """Whole numbers."""
        return taeda.arange(start, stop)

    def reduce(self, x: Any, operation: str, axes: Sequence[int]) -> Any:
        """Reduce dimensions; ``operation`` is min, max, sum, mean, prod, any or all."""
        dims = tuple(axes)
        if operation in ("min", "max"):
            return getattr(x, f"a{operation}")(dim=dims)
        if operation != "prod":
            return getattr(x, operation)(dim=dims)
        for dim in sorted(dims, reverse=True):
            x = x.prod(dim=dim)
        return x

    def transpose(self, x: Any, axes: Sequence[int]) -> Any:
        """The dimensions in another order."""
        return x.permute(tuple(axes))

    def stack_on_zeroth_dimension(self, tensors: list[Any]) -> Any:
        """Tensors as one, with a dimension in front."""
        return taeda.stack(tensors)

    def add_axis(self, x: Any, new_position: int) -> Any:
        """A dimension of size 1 more."""
        return x.unsqueeze(new_position)

    def add_axes(self, x: Any, n_axes: int, pos2len: dict[int, int]) -> Any:
        """Dimensions along which everything is repeated."""
        sizes = [-1] * n_axes
        for position, size in pos2len.items():
            x = x.unsqueeze(position)
            sizes[position] = size
        return x.expand(sizes)

    def tile(self, x: Any, repeats: Sequence[int]) -> Any:
        """Copies side by side."""
        return x.repeat(tuple(repeats))

    def concat(self, tensors: list[Any], axis: int) -> Any:
        """Tensors one after the other."""
        return taeda.cat(tensors, dim=axis)

    def is_float_type(self, x: Any) -> bool:
        """Whether its elements are floating point numbers."""
        return bool(x.is_floating_point())

    def einsum(self, pattern: str, *x: Any) -> Any:
        """A sum of products."""
        return taeda.einsum(pattern, *x)
