"""The operations of the core as functions of the package's modules."""

from __future__ import annotations

from typing import TYPE_CHECKING

from taeda import _C

if TYPE_CHECKING:
    from taeda._C import Op

__all__ = ["functions"]


def functions(module: str) -> dict[str, Op]:
    """The operations whose rows name a module as theirs, by the names that they have there.

    Args:
        module: a module of the package, such as ``"linalg"``; ``""`` is the package itself.
    """
    ops = vars(_C.ops)
    own = [ops[name] for name, home in _C._function_modules.items() if home == module]
    return {op.__name__: op for op in own}
