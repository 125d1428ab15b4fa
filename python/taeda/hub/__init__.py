r"""Models from a folder with a ``hubconf.py``, whose functions are the entry points.

Only folders on this machine: repositories are not downloaded. Files of weights are, by
``load_state_dict_from_url``.

>>> import os, tempfile
>>> import taeda
>>> folder = tempfile.mkdtemp()
>>> with open(os.path.join(folder, "hubconf.py"), "w") as file:
...     _ = file.write("def tiny(n):\n    'A tiny model.'\n    return [n]\n")
>>> taeda.hub.list(folder, source="local"), taeda.hub.load(folder, "tiny", 3, source="local")
(['tiny'], [3])
"""

from __future__ import annotations

import builtins
import importlib
import importlib.util
import os
import sys
from typing import Any
from urllib.parse import urlparse

from ._download import (
    HASH_REGEX,
    _get_torch_home,
    download_url_to_file,
    get_dir,
    load_state_dict_from_url,
    set_dir,
)

__all__ = [
    "HASH_REGEX",
    "download_url_to_file",
    "get_dir",
    "help",
    "list",
    "load",
    "load_state_dict_from_url",
    "set_dir",
]


def __getattr__(name: str) -> Any:
    if name == "tqdm" and importlib.util.find_spec("tqdm") is not None:
        # Packages take it from here.
        return importlib.import_module("tqdm").tqdm
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _entries(folder: Any, source: str, what: str) -> Any:
    """The module that a folder's ``hubconf.py`` makes."""
    if source != "local":
        raise ValueError(
            f'hub.{what}: source must be "local", got {source!r}: taeda downloads nothing; clone '
            "the repository and give its folder"
        )
    folder = os.path.expanduser(os.fspath(folder))
    path = os.path.join(folder, "hubconf.py")
    if not os.path.isfile(path):
        raise FileNotFoundError(f"hub.{what}: there is no {path!r}")
    spec = importlib.util.spec_from_file_location("hubconf", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # The file imports its neighbours by their names.
    sys.path.insert(0, folder)
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(folder)
    for name in getattr(module, "dependencies", []):
        if importlib.util.find_spec(name) is None:
            raise RuntimeError(f"hub.{what}: {path} needs the package {name!r}, which is missing")
    return module


def _entry(module: Any, model: str, what: str) -> Any:
    function = getattr(module, model, None) if isinstance(model, str) else None
    if not callable(function) or model.startswith("_"):
        raise RuntimeError(f"hub.{what}: cannot find callable {model!r} in hubconf")
    return function


def list(repo_or_dir: Any, *, source: str = "github") -> builtins.list[str]:
    """The names of a folder's entry points.

    Args:
        repo_or_dir: the folder.
        source: must be ``"local"``.

    Raises:
        ValueError: ``source`` is another one.
        FileNotFoundError: the folder has no ``hubconf.py``.
    """
    module = _entries(repo_or_dir, source, "list")
    return [name for name, value in vars(module).items() if callable(value) and name[0] != "_"]


def help(repo_or_dir: Any, model: str, *, source: str = "github") -> str | None:
    """The docstring of a folder's entry point; the arguments are those of ``load``."""
    doc: str | None = _entry(_entries(repo_or_dir, source, "help"), model, "help").__doc__
    return doc


def load(repo_or_dir: Any, model: str, *args: Any, source: str = "github", **kwargs: Any) -> Any:
    """Call a folder's entry point, which **runs the code in that folder**.

    Args:
        repo_or_dir: the folder.
        model: the entry point's name.
        args: passed to it.
        source: must be ``"local"``.
        kwargs: passed to it.

    Raises:
        ValueError: ``source`` is another one.
        FileNotFoundError: the folder has no ``hubconf.py``.
        RuntimeError: it has no such entry point, or needs a package that is missing.
    """
    return _entry(_entries(repo_or_dir, source, "load"), model, "load")(*args, **kwargs)
