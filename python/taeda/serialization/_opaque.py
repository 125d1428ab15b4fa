"""Placeholders for the classes that a file names, to inspect it without them."""

from __future__ import annotations

from typing import Any


class Opaque:
    """A placeholder object: its state from the file, without behaviour."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.args = args

    def __new__(cls, *args: Any, **kwargs: Any) -> Opaque:
        """Accept any arguments, as the replaced class may."""
        self = super().__new__(cls)
        self.args = args
        return self

    def __setstate__(self, state: Any) -> None:
        self.state = state

    def __hash__(self) -> int:
        return id(self)


def opaque_class(name: str) -> type:
    """A placeholder class for ``module.name``."""
    module, _, short = name.rpartition(".")
    return type(short, (Opaque,), {"__module__": module})
