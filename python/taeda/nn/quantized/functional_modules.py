"""Operations as modules, so that what they give could be watched."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

import taeda
from taeda import Tensor
from taeda.nn.module import Module
from taeda.nn.modules.linear import Identity

__all__ = ["FloatFunctional"]


class FloatFunctional(Module):
    """Operations whose results pass through the module ``activation_post_process``.

    That is an ``Identity`` unless it is replaced, by one that watches the range of values, say.

    >>> f = taeda.nn.quantized.FloatFunctional()
    >>> f.add_relu(taeda.tensor([1.0, 2.0]), taeda.tensor([3.0, -4.0]))
    tensor([4., 0.])
    """

    def __init__(self) -> None:
        super().__init__()
        self.activation_post_process: Module = Identity()

    def forward(self, x: Tensor) -> NoReturn:
        """The operations are called by their names.

        Raises:
            RuntimeError: always.
        """
        raise RuntimeError(
            "FloatFunctional is not intended to use the 'forward'. Please use the underlying "
            "operation"
        )

    def add(self, x: Tensor, y: Tensor) -> Tensor:
        """``x + y``."""
        return self.activation_post_process(taeda.add(x, y))

    def add_scalar(self, x: Tensor, y: float) -> Tensor:
        """``x + y`` with a number, which is not watched."""
        return taeda.add(x, y)

    def mul(self, x: Tensor, y: Tensor) -> Tensor:
        """``x * y``."""
        return self.activation_post_process(taeda.mul(x, y))

    def mul_scalar(self, x: Tensor, y: float) -> Tensor:
        """``x * y`` with a number, which is not watched."""
        return taeda.mul(x, y)

    def cat(self, x: Sequence[Tensor], dim: int = 0) -> Tensor:
        """The tensors one after another along a dimension."""
        return self.activation_post_process(taeda.cat(x, dim=dim))

    def add_relu(self, x: Tensor, y: Tensor) -> Tensor:
        """``relu(x + y)``."""
        return self.activation_post_process(taeda.nn.functional.relu(taeda.add(x, y)))

    def matmul(self, x: Tensor, y: Tensor) -> Tensor:
        """``x @ y``."""
        return self.activation_post_process(taeda.matmul(x, y))
