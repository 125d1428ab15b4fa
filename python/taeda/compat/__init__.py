"""taeda in PyTorch's place: after ``install()``, ``import torch`` means taeda in this process.

Scripts can be run so without a change: ``python -m taeda.torch script.py arguments``. A PyTorch that
is installed is not touched, and not loaded. What taeda lacks fails where it is imported or looked
up, with a message that names it.

>>> import taeda.compat
>>> taeda.compat.install()
>>> import torch
>>> torch.tensor([1.0, 2.0]).sum()
tensor(3.)
>>> taeda.compat.uninstall()
"""

from __future__ import annotations

import sys

__all__ = ["install", "is_installed", "uninstall"]


def install() -> None:
    """Let ``import torch``, ``import torch.nn`` and so on find taeda, from now on, in this process.

    Does nothing where that is so already.

    Raises:
        RuntimeError: PyTorch itself has been imported.
    """
    from ._torch import Finder, is_stand_in

    if is_installed():
        return
    present = sys.modules.get("torch")
    if present is not None and not is_stand_in(present):
        raise RuntimeError(
            "compat.install: PyTorch has already been imported; call install() before anything "
            "that imports torch, or run the program with python -m taeda.torch"
        )
    sys.meta_path.insert(0, Finder())


def uninstall() -> None:
    """Take back what ``install`` did. Modules that have imported torch keep what they have."""
    from ._torch import ROOTS, Finder, is_stand_in

    sys.meta_path[:] = [finder for finder in sys.meta_path if not isinstance(finder, Finder)]
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] in ROOTS and is_stand_in(module):
            del sys.modules[name]


def is_installed() -> bool:
    """Whether ``import torch`` finds taeda."""
    from ._torch import Finder

    return any(isinstance(finder, Finder) for finder in sys.meta_path)
