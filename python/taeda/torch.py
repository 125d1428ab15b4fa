"""Run a PyTorch program on taeda: ``python -m taeda.torch script.py arguments``.

``import torch`` in the program, and in every module it imports, finds taeda. ``-m module`` runs a
module as ``python -m`` does. Processes that the program starts by ``fork`` inherit this; others are
ordinary Python.
"""

from __future__ import annotations

import os
import runpy
import sys

__all__ = ["main"]

_USAGE = "usage: python -m taeda.torch [-m module | script.py] [arguments]"


def main(arguments: list[str] | None = None) -> None:
    """Run the program that ``arguments`` (else the command line's) name, as ``__main__``."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    as_module = words[:1] == ["-m"]
    if as_module:
        del words[0]
    if not words or words[0] in ("-h", "--help"):
        print(_USAGE, file=sys.stdout if words else sys.stderr)
        raise SystemExit(0 if words else 2)
    from taeda import compat

    compat.install()
    if as_module:
        # As `python -m` does: modules are looked for from here.
        sys.path[0] = os.getcwd()
        sys.argv = words
        runpy.run_module(words[0], run_name="__main__", alter_sys=True)
        return
    script = words[0]
    if not os.path.exists(script):
        print(f"taeda.torch: there is no file {script!r}", file=sys.stderr)
        raise SystemExit(2)
    sys.path[0] = os.path.dirname(os.path.abspath(script))
    sys.argv = words
    runpy.run_path(script, run_name="__main__")


if __name__ == "__main__":
    main()
