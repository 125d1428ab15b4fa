"""The functions behind the layers: each takes its weights as arguments and keeps no state."""

from typing import TYPE_CHECKING

from taeda.nn.functional._operations import *

# isort: split
# These have more or other arguments than the operations of the same names, and so come later.
from taeda._registry import let_classes_answer as _let_classes_answer
from taeda.nn.functional import (
    _activation,
    _attention,
    _conv,
    _ctc,
    _dropout,
    _embedding,
    _fractional,
    _linear_loss,
    _loss,
    _margin_loss,
    _norm,
    _operations,
    _pooling,
    _sampling,
    _shape,
)
from taeda.nn.functional._activation import *
from taeda.nn.functional._attention import *
from taeda.nn.functional._conv import *
from taeda.nn.functional._ctc import *
from taeda.nn.functional._dropout import *
from taeda.nn.functional._embedding import *
from taeda.nn.functional._fractional import *
from taeda.nn.functional._linear_loss import *
from taeda.nn.functional._loss import *
from taeda.nn.functional._margin_loss import *
from taeda.nn.functional._norm import *
from taeda.nn.functional._pooling import *
from taeda.nn.functional._sampling import *
from taeda.nn.functional._shape import *
from taeda.overrides import has_torch_function_unary as has_torch_function_unary
from taeda.overrides import has_torch_function_variadic as has_torch_function_variadic

if not TYPE_CHECKING:  # mypy reads lists of strings alone; to it, all from above is public
    _PARTS = (
        _activation, _attention, _conv, _ctc, _dropout, _embedding, _fractional, _linear_loss,
        _loss, _margin_loss, _norm, _operations, _pooling, _sampling, _shape,
    )  # fmt: skip
    __all__ = sorted({name for part in _PARTS for name in part.__all__})

_let_classes_answer(globals())


def __getattr__(name: str) -> object:
    if name == "grad":  # its functions call those of this module
        from taeda.nn import grad

        return grad
    raise AttributeError(f"module 'taeda.nn.functional' has no attribute {name!r}")
