"""Operations as modules, for models that can be quantised. They compute in floating point."""

from .functional_modules import FloatFunctional

__all__ = ["FloatFunctional"]
