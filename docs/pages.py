"""The pages of this folder that are notebooks: their code, and what they need.

The tests run them as plain programs; the site's conf.py leaves those unexecuted whose data is
missing.
"""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent
PAGES = sorted(
    path for folder in ("start", "guides", "how", "gallery") for path in ROOT.glob(f"{folder}/*.md")
)
CELL = re.compile(r"^```\{code-cell\} ipython3\n((?::.*\n)*)(.*?)^```", re.MULTILINE | re.DOTALL)
IMPORT = re.compile(r"^(?:import |from |.*find_spec\(\")(\w+)", re.MULTILINE)
HEADER = re.compile(r"#include <taeda/(nanobind)\.h>")
FOLDER = re.compile(r"/usr/share/[\w/-]+")


def code(page: Path) -> str:
    """The code cells of a page, one after the other."""
    return "\n".join(cell for _, cell in CELL.findall(page.read_text()))


def missing(page: Path) -> list[str]:
    """What a page needs and is not here: packages it imports, folders of data it reads."""
    program = code(page)
    packages = sorted({*IMPORT.findall(program), *HEADER.findall(program)})
    folders = sorted(set(FOLDER.findall(program)))
    return [name for name in packages if importlib.util.find_spec(name) is None] + [
        folder for folder in folders if not Path(folder).exists()
    ]
