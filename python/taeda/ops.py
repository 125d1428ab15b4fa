"""Operations by namespace: `taeda.ops.namespace.name(...)`.

They were defined with `taeda.library` or by a C++ extension (`taeda.utils.cpp_extension`). Those of
the namespace `aten` are taeda's own.
"""

from __future__ import annotations

import os
from typing import Any


class _OpNamespace:
    """The operations of one namespace."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        from taeda.library._operator import COMPILED, OPERATORS

        qualname = f"{self._name}::{name}"
        if qualname in OPERATORS:
            return OPERATORS[qualname].function
        if qualname in COMPILED:
            return COMPILED[qualname]
        if self._name == "aten":
            from taeda._aten import packet

            found = packet(name)
            if found is not None:
                return found
        raise AttributeError(f"'_OpNamespace' '{self._name}' object has no attribute '{name}'")

    def __dir__(self) -> list[str]:
        from taeda.library._operator import COMPILED, OPERATORS

        start = self._name + "::"
        names = {*OPERATORS, *COMPILED}
        return sorted(name.removeprefix(start) for name in names if name.startswith(start))

    def __repr__(self) -> str:
        return f"<namespace 'taeda.ops.{self._name}'>"


def load_library(path: str | os.PathLike[str]) -> None:
    """Load a C++ extension of taeda's, whose operations are then found under this module.

    Raises:
        OSError: there is no such file, or it is something else, such as an extension of PyTorch's.
    """
    from taeda.utils._compiling import import_file

    path = os.path.realpath(os.fspath(path))
    entry = b"PyInit_" + os.path.basename(path).partition(".")[0].encode()
    try:
        with open(path, "rb") as file:
            found = entry in file.read()
        if not found:
            raise ImportError("it is no extension written with taeda's headers")
        import_file(path)
    except (OSError, ImportError) as error:
        raise OSError(f"Could not load this library: {path}: {error}") from error


def __getattr__(name: str) -> _OpNamespace:
    if name.startswith("__"):
        raise AttributeError(f"module 'taeda.ops' has no attribute {name!r}")
    return _OpNamespace(name)
