"""Classes that stand for those a file names, so that it can be looked at without them."""

from __future__ import annotations

from typing import Any


class Opaque:
    """An object of a class that is not loaded: what the file says of it, and nothing it does."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.args = args

    def __new__(cls, *args: Any, **kwargs: Any) -> Opaque:
        """Take any arguments, as the class that this stands for may."""
        self = super().__new__(cls)
        self.args = args
        return self

    def __setstate__(self, state: Any) -> None:
        self.state = state

    def __hash__(self) -> int:
        return id(self)


def opaque_class(name: str) -> type:
    """A class that stands for ``module.name``."""
    module, _, short = name.rpartition(".")
    return type(short, (Opaque,), {"__module__": module})
