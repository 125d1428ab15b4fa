"""Extensions in C++: compiled when a program starts, or by setuptools or CMake.

`load` and `load_inline` compile sources into a Python module and import it. `CppExtension` and
`BuildExtension` are for a ``setup.py``; for CMake, ``find_package(taeda)`` finds the target
``taeda::taeda`` in the folder that ``python -m taeda.utils.cpp_extension --cmake-dir`` prints.

A source includes ``taeda/pybind11.h`` (``taeda/extension.h`` is the same), ``taeda/nanobind.h``, or
``taeda/taeda.h`` for neither: tensors, all operations, operations of one's own with derivatives.
These headers say what there is. An extension links to nothing of taeda's, and works with later
versions without being compiled again. `DeviceLibrary` compiles a device instead of a module.
"""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
from collections.abc import Sequence
from typing import Any

from taeda.utils._compiling import (
    binding_flags,
    build,
    check_compiler_is_found,
    extensions_folder,
    extensions_root,
    import_file,
)

__all__ = [
    "BuildExtension",  # noqa: F822 (see __getattr__)
    "CppExtension",
    "DeviceLibrary",
    "check_compiler_is_found",
    "check_compiler_ok_for_platform",
    "get_compiler_abi_compatibility_and_version",
    "get_default_build_root",
    "cmake_path",
    "device_include_paths",
    "include_paths",
    "is_ninja_available",
    "library_paths",
    "load",
    "load_inline",
    "verify_ninja_availability",
]

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
Text = str | Sequence[str]


def include_paths() -> list[str]:
    """The include folders for compiling an extension, in addition to Python's own.

    >>> import os, taeda
    >>> [folder] = taeda.utils.cpp_extension.include_paths()
    >>> sorted(os.listdir(os.path.join(folder, "taeda")))[:3]
    ['abi.h', 'extension.h', 'nanobind.h']
    """
    return [os.path.join(_PACKAGE, "include")]


def device_include_paths() -> list[str]:
    """The include folders for compiling a device (`taeda.register_device`).

    >>> import os, taeda
    >>> [folder] = taeda.utils.cpp_extension.device_include_paths()
    >>> os.path.isfile(os.path.join(folder, "kernels", "device_plugin.h"))
    True
    """
    installed = os.path.join(_PACKAGE, "include", "device")
    source_tree = os.path.join(os.path.dirname(os.path.dirname(_PACKAGE)), "csrc")
    return [installed if os.path.isdir(installed) else source_tree]


def library_paths() -> list[str]:
    """The folders of libraries that an extension is linked with: none, as there is nothing to link.

    >>> taeda.utils.cpp_extension.library_paths()
    []
    """
    return []


def cmake_path() -> str:
    """The folder in which CMake finds taeda: what ``taeda_ROOT`` or ``taeda_DIR`` should be."""
    return os.path.join(_PACKAGE, "share", "cmake", "taeda")


def load(
    name: str,
    sources: Text,
    extra_cflags: Sequence[str] | None = None,
    extra_ldflags: Sequence[str] | None = None,
    extra_include_paths: Text | None = None,
    build_directory: str | None = None,
    verbose: bool = False,
) -> Any:
    """Compile C++ sources into a Python module and import it.

    What has been compiled is kept, and compiled again only when a source, a header or a flag has
    changed; processes that ask for the same module wait for each other. The module's function is
    written with ``TAEDA_EXTENSION_NAME`` (or ``TORCH_EXTENSION_NAME``) as its name. Where the
    sources include ``taeda/nanobind.h`` or nanobind itself, nanobind's own library is compiled in.

    Args:
        name: the module's.
        sources: paths of C++ files.
        extra_cflags: more flags for the compiler, which is ``$CXX`` or c++; it gets ``-std=c++20
            -O2 -fvisibility=hidden``.
        extra_ldflags: more flags for the linker.
        extra_include_paths: more folders of headers.
        build_directory: where to compile, an existing folder; by default one for this module below
            ``$TAEDA_EXTENSIONS_DIR``, or else below the user's cache folder.
        verbose: print the commands.

    Returns:
        The module; the same one as before if nothing has changed since.

    Raises:
        RuntimeError: there is no compiler, or it found an error; the message has its output.
        ValueError: there are no sources, or one is of CUDA.

    >>> module = taeda.utils.cpp_extension.load("ext", ["ext.cpp"])  # doctest: +SKIP
    """
    sources = [sources] if isinstance(sources, str) else list(sources)
    paths = [extra_include_paths] if isinstance(extra_include_paths, str) else extra_include_paths
    if not name.isidentifier():
        raise ValueError(f"load: the name of a module must be an identifier, got {name!r}")
    if not sources:
        raise ValueError("load: there are no sources")
    if cuda := [source for source in sources if os.fspath(source).endswith(".cu")]:
        raise ValueError(f"load: extensions are written in C++; {cuda[0]} is CUDA's")
    library = build(
        name,
        [os.path.abspath(source) for source in sources],
        [*include_paths(), *(paths or [])],
        list(extra_cflags or []),
        list(extra_ldflags or []),
        build_directory or extensions_folder(name),
        verbose,
    )
    return import_file(library)


def load_inline(
    name: str,
    cpp_sources: Text,
    functions: Text | dict[str, str] | None = None,
    extra_cflags: Sequence[str] | None = None,
    extra_ldflags: Sequence[str] | None = None,
    extra_include_paths: Text | None = None,
    build_directory: str | None = None,
    verbose: bool = False,
) -> Any:
    """Compile C++ given as text into a Python module and import it.

    The text needs no includes, ``using namespace taeda`` holds in it, and functions named in
    ``functions`` are bound with pybind11, or with nanobind where pybind11 is not installed.

    Args:
        name: the module's.
        cpp_sources: the text, or several that are joined.
        functions: names of functions to bind, or a dict from names to docstrings. Without it the
            text binds its own.
        extra_cflags: see `load`, as for the rest.
        extra_ldflags: see `load`.
        extra_include_paths: see `load`.
        build_directory: see `load`.
        verbose: see `load`.

    Raises:
        ImportError: functions are to be bound, and neither pybind11 nor nanobind is installed.
        RuntimeError: there is no compiler, or it found an error; the message has its output.

    >>> source = "Tensor twice(const Tensor& x) { return x * 2.0; }"
    >>> module = taeda.utils.cpp_extension.load_inline(  # doctest: +SKIP
    ...     "doubling", source, functions=["twice"]
    ... )
    """
    texts = [cpp_sources] if isinstance(cpp_sources, str) else list(cpp_sources)
    names = [functions] if isinstance(functions, str) else functions or {}
    docs = names if isinstance(names, dict) else dict.fromkeys(names, "")
    folder = build_directory or extensions_folder(name)
    path = os.path.join(folder, "main.cpp")
    text = _inline_text(texts, docs)
    try:
        with open(path, encoding="utf-8") as file:
            changed = file.read() != text
    except FileNotFoundError:
        changed = True
    if changed:
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
    return load(name, [path], extra_cflags, extra_ldflags, extra_include_paths, folder, verbose)


def _inline_text(texts: list[str], docs: dict[str, str]) -> str:
    if not docs:
        return "\n".join(["#include <taeda/taeda.h>", "using namespace taeda;", *texts, ""])
    import json

    kind = binding_flags()[0]
    macro = "PYBIND11_MODULE" if kind == "pybind11" else "NB_MODULE"
    bound = [
        f"  m.def({json.dumps(name)}, &{name}, {json.dumps(doc)});" for name, doc in docs.items()
    ]
    lines = [f"#include <taeda/{kind}.h>", "using namespace taeda;", *texts]
    lines += [f"{macro}(TAEDA_EXTENSION_NAME, m) {{", "  translate_errors();", *bound, "}", ""]
    return "\n".join(lines)


def CppExtension(name: str, sources: Sequence[str], **kwargs: Any) -> Any:
    """A `setuptools.Extension` in C++20 that finds taeda's headers, and pybind11's.

    Args:
        name: the module's, with its package.
        sources: C++ files.
        **kwargs: what `setuptools.Extension` takes.

    >>> from setuptools import setup  # doctest: +SKIP
    >>> setup(
    ...     name="ext",
    ...     ext_modules=[CppExtension("ext", ["ext.cpp"])],
    ...     cmdclass={"build_ext": BuildExtension},
    ... )  # doctest: +SKIP
    """
    from setuptools import Extension

    from taeda.utils._compiling import found_binding_folders

    folders = [*include_paths(), *found_binding_folders(), *kwargs.pop("include_dirs", [])]
    return Extension(name, list(sources), include_dirs=folders, language="c++", **kwargs)


def DeviceLibrary(name: str, sources: Sequence[str], **kwargs: Any) -> Any:
    """A `setuptools.Extension` that is a device for `taeda.register_device`, not a Python module.

    Args:
        name: the library's, with its package; ``importlib.util.find_spec(name).origin`` is then
            where it has been installed.
        sources: C++ files.
        **kwargs: what `setuptools.Extension` takes.

    >>> from setuptools import setup  # doctest: +SKIP
    >>> setup(
    ...     ext_modules=[DeviceLibrary("mine.library", ["mine/device.cpp"])],
    ...     cmdclass={"build_ext": BuildExtension},
    ... )  # doctest: +SKIP
    """
    from setuptools import Extension

    folders = [*device_include_paths(), *kwargs.pop("include_dirs", [])]
    return Extension(name, list(sources), include_dirs=folders, language="c++", **kwargs)


@functools.cache
def _build_extension() -> type:
    from setuptools.command.build_ext import build_ext

    from taeda.utils._compiling import COMPILE_FLAGS

    class BuildExtension(build_ext):  # type: ignore[misc]
        """The command ``build_ext`` of a ``setup.py`` for extensions of taeda."""

        @classmethod
        def with_options(cls, **options: Any) -> type:
            """The command with attributes of it set, such as ``parallel=2``."""
            return type(cls.__name__, (cls,), options)

        def build_extension(self, ext: Any) -> None:
            """Compile one extension, with the flags of taeda's own build added."""
            leaf = ext.name.rpartition(".")[2]
            ext.extra_compile_args = [*COMPILE_FLAGS, *ext.extra_compile_args]
            ext.define_macros += [(f"{who}_EXTENSION_NAME", leaf) for who in ("TAEDA", "TORCH")]
            super().build_extension(ext)

    return BuildExtension


def __getattr__(name: str) -> Any:
    if name == "BuildExtension":  # made when it is asked for: setuptools need not be installed
        return _build_extension()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _main() -> None:
    import argparse

    parser = argparse.ArgumentParser(description="Where taeda keeps what extensions are built with")
    parser.add_argument("--include-dir", action="store_true", help="print the folder of headers")
    parser.add_argument("--cmake-dir", action="store_true", help="print what taeda_ROOT should be")
    chosen = parser.parse_args()
    if not chosen.include_dir and not chosen.cmake_dir:
        parser.error("choose --include-dir or --cmake-dir")
    if chosen.include_dir:
        print(include_paths()[0])
    if chosen.cmake_dir:
        print(cmake_path())


if __name__ == "__main__":
    _main()


def get_default_build_root() -> str:
    """The folder that extensions are built in unless `load` is given one."""
    return extensions_root()


def check_compiler_ok_for_platform(compiler: str) -> bool:
    """Whether there is such a compiler: extensions depend on no compiler's ABI."""
    return shutil.which(compiler) is not None


def get_compiler_abi_compatibility_and_version(compiler: str) -> tuple[bool, Any]:
    """Whether a compiler can be used, and its version."""
    from taeda.compat._torch import TorchVersion

    if not check_compiler_ok_for_platform(compiler):
        return False, TorchVersion("0.0.0")
    asked = subprocess.run([compiler, "-dumpfullversion", "-dumpversion"], capture_output=True)
    return True, TorchVersion(asked.stdout.decode().strip() or "0.0.0")


def is_ninja_available() -> bool:
    """Whether Ninja can be called."""
    return shutil.which("ninja") is not None


def verify_ninja_availability() -> None:
    """Raise RuntimeError unless Ninja can be called."""
    if not is_ninja_available():
        raise RuntimeError("Ninja is required to load C++ extensions (pip install ninja to get it)")
