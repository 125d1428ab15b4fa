"""Running a C++ compiler: which files are out of date, flags, and error reports."""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

COMPILE_FLAGS = ["-std=c++20", "-O2", "-fPIC", "-fvisibility=hidden"]
_loaded: dict[str, Any] = {}  # modules that this process has imported, by the path of their file


def _compiler() -> list[str]:
    return shlex.split(os.environ.get("CXX", "")) or ["c++"]


def check_compiler_is_found() -> bool:
    """Whether there is a C++ compiler: ``$CXX``, or ``c++`` on the path.

    >>> isinstance(taeda.utils.cpp_extension.check_compiler_is_found(), bool)
    True
    """
    return shutil.which(_compiler()[0]) is not None


def extensions_root() -> str:
    """The folder that holds those in which extensions are compiled."""
    root = os.environ.get("TAEDA_EXTENSIONS_DIR")
    if not root:
        cache = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
        root = os.path.join(cache, "taeda_extensions")
    return os.path.join(root, str(sysconfig.get_config_var("SOABI")))


def extensions_folder(name: str) -> str:
    """The default folder in which `name` is compiled; created if missing."""
    folder = os.path.join(extensions_root(), name)
    os.makedirs(folder, exist_ok=True)
    return folder


def found_binding_folders() -> list[str]:
    """The header folders of pybind11 and nanobind, of those that are installed."""
    folders = []
    for find in (_pybind11, _nanobind):
        try:
            folders += find()[0]
        except ImportError:
            continue
    return folders


def binding_flags(wanted: str | None = None) -> tuple[str, list[str], list[str]]:
    """pybind11 or nanobind, whichever is wanted or there: its name, header folders and sources."""
    errors = []
    for name, find in (("pybind11", _pybind11), ("nanobind", _nanobind)):
        if wanted in (None, name):
            try:
                return (name, *find())
            except ImportError as error:
                errors.append(str(error))
    raise ImportError(
        f"cpp_extension: {wanted or 'pybind11 or nanobind'} is needed to compile this extension "
        f"({'; '.join(errors)})"
    )


def _pybind11() -> tuple[list[str], list[str]]:
    import pybind11  # type: ignore[import-not-found,unused-ignore]

    return [pybind11.get_include()], []


def _nanobind() -> tuple[list[str], list[str]]:
    import nanobind

    robin_map = os.path.join(os.path.dirname(nanobind.__file__), "ext", "robin_map", "include")
    source = os.path.join(nanobind.source_dir(), "nb_combined.cpp")
    return [nanobind.include_dir(), robin_map], [source]


def _included_bindings(sources: list[str]) -> tuple[list[str], list[str]]:
    """The header folders and further sources of the binding libraries that sources include."""
    folders, more = [], []
    for name, pattern in (
        ("pybind11", r"<(pybind11/|taeda/pybind11|taeda/extension)"),
        ("nanobind", r"<(nanobind/|taeda/nanobind)"),
    ):
        used = False
        for source in sources:
            with open(source, encoding="utf-8", errors="replace") as file:
                used = used or bool(re.search(r"#\s*include\s*" + pattern, file.read()))
        if used:
            _, headers, extra = binding_flags(name)
            folders += headers
            more += extra
    return folders, more


@contextmanager
def _locked(folder: str) -> Iterator[None]:
    """Keep other processes from compiling in a folder. The lock ends with the process."""
    import fcntl

    with open(os.path.join(folder, "lock"), "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _run(command: list[str], folder: str, verbose: bool) -> None:
    if verbose:
        print(shlex.join(command), flush=True)
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise RuntimeError(
            f"cpp_extension: there is no C++ compiler {command[0]!r}; install one, or name one in "
            "the environment variable CXX"
        ) from None
    if done.returncode:
        raise RuntimeError(
            f"cpp_extension: compiling failed with status {done.returncode}:\n"
            f"{shlex.join(command)}\n{done.stdout}{done.stderr}"
        )


def _stamp(path: str) -> str:
    """A file's time and size, to detect changes; nothing if it is missing."""
    try:
        status = os.stat(path)
    except FileNotFoundError:
        return ""
    return f"{path} {status.st_mtime_ns} {status.st_size}"


def _dependencies(listing: str) -> list[str]:
    """The files that a listing in make's language, as compilers write it, says an object needs."""
    try:
        with open(listing, encoding="utf-8") as file:
            text = file.read()
    except FileNotFoundError:
        return []
    names = re.split(r"(?<!\\)\s+", text.replace("\\\n", " ").partition(": ")[2].strip())
    return [name.replace("\\ ", " ") for name in names]


class _Unit:
    """One source and the object that is made of it."""

    def __init__(self, source: str, folder: str, flags: list[str]) -> None:
        digest = hashlib.sha256(source.encode()).hexdigest()[:8]
        stem = os.path.splitext(os.path.basename(source))[0]
        self.object = os.path.join(folder, f"{stem}-{digest}.o")
        self._listing, self._note = self.object + ".d", self.object + ".made"
        options = ["-MMD", "-MF", self._listing, "-c", source, "-o", self.object]
        self._command = [*_compiler(), *flags, *options]

    def state(self) -> str:
        """The command, and everything that the object was made from as it is now."""
        files = _dependencies(self._listing)
        return "\n".join([shlex.join(self._command), *map(_stamp, files)])

    def compile(self, folder: str, verbose: bool) -> None:
        """Make the object, unless it is there and nothing has changed."""
        if os.path.exists(self.object) and os.path.exists(self._note):
            with open(self._note, encoding="utf-8") as file:
                if file.read() == self.state():
                    return
        _run(self._command, folder, verbose)
        with open(self._note, "w", encoding="utf-8") as file:
            file.write(self.state())


def build(
    name: str,
    sources: list[str],
    include: list[str],
    compile_flags: list[str],
    link_flags: list[str],
    folder: str,
    verbose: bool,
) -> str:
    """Compile a module, as far as it has changed, and return the path of its file.

    The file's name says what it was made of, so that a module that has changed is another file:
    Python cannot load one file twice.
    """
    from concurrent.futures import ThreadPoolExecutor

    for source in sources:
        if not os.path.isfile(source):
            raise FileNotFoundError(f"cpp_extension: there is no source {source!r}")
    folder = os.path.abspath(folder)
    headers, more = _included_bindings(sources)
    paths = [*include, *headers, sysconfig.get_path("include")]
    flags = [*COMPILE_FLAGS, *(f"-I{path}" for path in paths), *compile_flags]
    flags += [f"-D{who}_EXTENSION_NAME={name}" for who in ("TAEDA", "TORCH")]
    units = [_Unit(source, folder, flags) for source in [*sources, *more]]
    with _locked(folder):
        with ThreadPoolExecutor(max(1, min(len(units), os.cpu_count() or 1))) as pool:
            list(pool.map(lambda unit: unit.compile(folder, verbose), units))
        made_of = "\n".join([*(unit.state() for unit in units), *link_flags])
        version = hashlib.sha256(made_of.encode()).hexdigest()[:12]
        suffix = sysconfig.get_config_var("EXT_SUFFIX")
        place = os.path.join(folder, version)
        library = os.path.join(place, f"{name}{suffix}")
        if not os.path.exists(library):
            os.makedirs(place, exist_ok=True)
            objects = [unit.object for unit in units]
            shared = ["-dynamiclib", "-undefined", "dynamic_lookup"]
            shared = shared if sys.platform == "darwin" else ["-shared"]
            part = library + ".part"
            _run([*_compiler(), *shared, *objects, *link_flags, "-o", part], folder, verbose)
            os.replace(part, library)
    return library


def import_file(path: str) -> Any:
    """Import a compiled module, once in a process."""
    import importlib.machinery
    import importlib.util

    if path not in _loaded:
        name = os.path.basename(path).partition(".")[0]
        loader = importlib.machinery.ExtensionFileLoader(name, path)
        spec = importlib.util.spec_from_file_location(name, path, loader=loader)
        assert spec is not None
        module = importlib.util.module_from_spec(spec)
        loader.exec_module(module)
        _loaded[path] = module
    return _loaded[path]
