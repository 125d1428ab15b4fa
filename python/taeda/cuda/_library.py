"""The library of CUDA's kernels, where the package ``taeda-cuda`` is installed.

It is loaded when a CUDA device is first named, and finds the driver by itself.
"""

from __future__ import annotations

import ctypes
import functools
import importlib.util
import os
from pathlib import Path

from taeda import _C
from taeda.cuda import _settings

__all__ = ["load", "path", "set_switch"]

_LIBRARIES = ("cu13", "lib"), ("cudnn", "lib"), ("nccl", "lib")
_loaded: ctypes.CDLL | None = None
_switches: dict[str, bool] = {}  # what the library is told of, by the function that tells it


@functools.cache
def path() -> str | None:
    """The library's file; None where it is not installed.

    ``TAEDA_CUDA_LIBRARY`` in the environment names another one.
    """
    given = os.environ.get("TAEDA_CUDA_LIBRARY")
    if given is not None:
        return given or None
    spec = importlib.util.find_spec("taeda_cuda")
    if spec is None or spec.origin is None:
        return None
    return str(Path(spec.origin).with_name("libtaeda_cuda.so"))


@functools.cache
def load() -> bool:
    """Load the library if there is one: whether there is."""
    global _loaded
    library = path()
    if library is None:
        return False
    _settings.from_environment()
    _C._load_cuda(library)
    _loaded = ctypes.CDLL(library)
    _settings.tell(_loaded.taeda_cuda_set_allocator)
    _loaded.taeda_cuda_library_folders(":".join(_folders()).encode())
    for name, on in _switches.items():
        set_switch(name, on)
    return True


def set_switch(name: str, on: bool) -> None:
    """Call ``taeda_cuda_<name>``, now or as soon as the library is loaded."""
    _switches[name] = on
    if _loaded is not None:
        getattr(_loaded, f"taeda_cuda_{name}")(on)


def _folders() -> list[str]:
    """Where NVIDIA's packages, such as nvidia-cublas, have their libraries."""
    spec = importlib.util.find_spec("nvidia")  # a namespace package
    places = spec.submodule_search_locations if spec else None
    return [str(Path(place, *lib)) for place in places or () for lib in _LIBRARIES]
