"""``python -m tools.wheels``: build a release's files, or check them."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from tools.wheels import build, check, pythons


def parse(arguments: list[str]) -> argparse.Namespace:
    """What the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m tools.wheels", description=__doc__)
    add = parser.add_argument
    add("--out", type=Path, default=Path("dist"), help="where the files go (default: dist)")
    add("--work", type=Path, default=Path("build/wheels"), help="the folder to build in")
    add(
        "--python",
        action="append",
        type=Path,
        default=[],
        metavar="PATH",
        help="an interpreter, or a folder of headers, to build for (default: all that are found)",
    )
    add("--arch", action="append", choices=sorted(build.COMPILERS), help="default: this machine's")
    add("--jobs", type=int, default=os.cpu_count(), help="compilers at once")
    add("--twice", action="store_true", help="build in two folders and compare the bytes")
    add("--check", action="store_true", help="check the wheels in OUT instead of building")
    add("--seconds", type=float, default=20, help="--check: what an installation may take (20)")
    add("--system", type=Path, help="--check: the system of tools/aarch64.sh, to run ARM's wheels")
    add(
        "--tests",
        nargs=argparse.REMAINDER,
        metavar="ARG",
        help="--check: run pytest on them with all arguments that follow",
    )
    return parser.parse_args(arguments)


def main(arguments: list[str]) -> int:
    """Run the command; the exit status."""
    asked = parse(arguments)
    asked.out.mkdir(parents=True, exist_ok=True)
    found = pythons.find(asked.python)
    if asked.check:
        return check.check(asked.out, asked.work, found, asked.tests, asked.system, asked.seconds)
    where = asked.arch or [os.uname().machine]
    made = build.release(asked.work / "first", asked.out, found, where, asked.jobs)
    for path in made:
        print(f"{path.stat().st_size / 1e6:7.2f} MB  {build.digest(path)[:16]}  {path.name}")
    if asked.twice:
        again = asked.work / "second-build-in-another-folder"
        other = build.release(again, again / "out", found, where, asked.jobs)
        different = [
            a.name for a, b in zip(made, other, strict=True) if build.digest(a) != build.digest(b)
        ]
        print("differ:", *different) if different else print(f"{len(made)} files: the same bytes")
        return 1 if different else 0
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
