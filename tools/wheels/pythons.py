"""The Pythons that wheels are built for: interpreters of this machine, and folders of headers."""

from __future__ import annotations

import glob
import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

OLDEST, NEWEST = 10, 14  # of Python 3
_ASK = """
import json, sys, sysconfig
print(json.dumps([sys.version_info[1], bool(sysconfig.get_config_var("Py_GIL_DISABLED")),
                  sysconfig.get_path("include"), sys.implementation.name]))
"""


@dataclass(frozen=True, order=True)
class Python:
    """A version of CPython. Without `executable` it is only compiled for."""

    minor: int
    free_threaded: bool
    include: Path
    executable: Path | None = None

    @property
    def name(self) -> str:
        """As people write it: ``3.13``, ``3.14t``."""
        return f"3.{self.minor}" + "t" * self.free_threaded

    @property
    def tag(self) -> str:
        """Interpreter and ABI in a wheel's name: ``cp313-cp313``, ``cp314-cp314t``."""
        return f"cp3{self.minor}-cp3{self.minor}" + "t" * self.free_threaded

    def suffix(self, arch: str) -> str:
        """What the name of an extension module ends in."""
        return f".cpython-3{self.minor}{'t' * self.free_threaded}-{arch}-linux-gnu.so"


def of_interpreter(executable: Path) -> Python | None:
    """The Python that `executable` is, or None if it does not run, or has no headers."""
    try:
        asked = subprocess.run(
            [executable, "-I", "-c", _ASK], capture_output=True, text=True, timeout=60, check=True
        )
        minor, free_threaded, include, kind = json.loads(asked.stdout)
    except (OSError, ValueError, subprocess.SubprocessError):
        return None
    if kind != "cpython" or not (Path(include) / "Python.h").is_file():
        return None
    return Python(minor, free_threaded, Path(include), executable)


def of_headers(include: Path) -> Python:
    """The Python whose ``Python.h`` lies in the folder `include`."""
    text = (include / "patchlevel.h").read_text()
    minor = re.search(r"PY_MINOR_VERSION\s+(\d+)", text)
    if minor is None:
        raise ValueError(f"{include}/patchlevel.h names no version")
    return Python(int(minor[1]), include.name.endswith("t"), include)


def headers(python: Python, work: Path) -> Path:
    """The folder to compile with: of Debian's two, for all machines and for one, it makes one."""
    lines = (python.include / "pyconfig.h").read_text()
    if len(lines) > 5000 or "linux-gnu/python3" not in lines:
        return python.include
    made = work / f"headers-{python.name}"
    if not made.exists():
        whole = python.include.parent.glob(f"*-linux-gnu/{python.include.name}/pyconfig.h")
        shutil.copytree(python.include, made)
        shutil.copy(next(whole), made / "pyconfig.h")
    return made


def candidates() -> list[Path]:
    """Where interpreters are looked for: this one, PATH, pyenv's and uv's folders."""
    home = Path.home()
    found = [Path(sys.executable)]
    for minor in range(OLDEST, NEWEST + 1):
        for name in (f"python3.{minor}", f"python3.{minor}t"):
            on_path = shutil.which(name)
            if on_path:
                found.append(Path(on_path))
            for folder in (
                os.environ.get("PYENV_ROOT", home / ".pyenv") / Path("versions"),
                home / ".local/share/uv/python",
            ):
                found += map(Path, sorted(glob.glob(f"{folder}/*/bin/{name}")))
    return found


def find(given: list[Path]) -> list[Python]:
    """One Python for each version: those `given`, or all that this machine has."""
    found: dict[str, Python] = {}
    for path in given or candidates():
        python = of_headers(path) if path.is_dir() else of_interpreter(path)
        if python is None:
            if given:
                raise ValueError(f"{path} is no CPython with headers")
        elif OLDEST <= python.minor <= NEWEST:
            found.setdefault(python.name, python)
    return sorted(found.values())
