"""The chi-squared distribution."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import constraints
from .gamma import Gamma

if TYPE_CHECKING:
    from taeda import Tensor

__all__ = ["Chi2"]


class Chi2(Gamma):
    """The sum of ``df`` squared standard normal numbers."""

    arg_constraints = {"df": constraints.positive}

    def __init__(self, df: Any, validate_args: bool | None = None) -> None:
        super().__init__(0.5 * df, 0.5, validate_args=validate_args)

    @property
    def df(self) -> Tensor:
        """The degrees of freedom."""
        return self.concentration * 2
