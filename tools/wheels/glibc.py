"""A C library to link against that is as old as the wheels promise.

Which symbol version a call binds to is decided by the library it is linked with, so a module that
is linked on a new system asks for a new glibc. Zig's package carries the list of every symbol of
every glibc and makes libraries of them that hold nothing but names and versions. GCC compiles
against this machine's headers and links with those.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

VERSION = "2.28"
LIBRARIES = {"c": 6, "ld": 2, "m": 6, "pthread": 0, "dl": 2, "rt": 1}

# What GCC's libraries, compiled for a newer glibc, look for and this one lacks.
_NEWER = """
#include <stdlib.h>
#include <sys/random.h>
#pragma GCC visibility push(hidden)

/* 2.32: whether the process has had one thread only; then reference counts need no atomics. */
char __libc_single_threaded = 0;

/* 2.36: what std::random_device draws from. */
unsigned arc4random(void) {
  unsigned drawn;
  if (getrandom(&drawn, sizeof drawn, 0) != sizeof drawn) abort();
  return drawn;
}
"""


def stubs(arch: str, folder: Path, compiler: str, python: Path) -> Path:
    """The folder with the libraries to link against, made if missing by the ziglang of `python`."""
    made = folder / f"glibc-{VERSION}-{arch}"
    if (made / "libc.so").exists():
        return made
    scratch = folder / f"zig-{arch}"
    scratch.mkdir(parents=True, exist_ok=True)
    made.mkdir(parents=True, exist_ok=True)
    (scratch / "empty.c").write_text("")
    command: list[str | Path] = [
        python,
        "-m",
        "ziglang",
        "cc",
        "-target",
        f"{arch}-linux-gnu.{VERSION}",
        "-shared",
    ]
    subprocess.run(
        [
            *command,
            "-o",
            "empty.so",
            "empty.c",
            *(f"-l{n}" for n in LIBRARIES if n not in ("c", "ld")),
        ],
        cwd=scratch,
        check=True,
        env={
            **os.environ,
            "ZIG_GLOBAL_CACHE_DIR": str(scratch.resolve() / "cache"),
            "ZIG_LOCAL_CACHE_DIR": str(scratch.resolve() / "cache"),
        },
    )
    for name, number in LIBRARIES.items():
        (library,) = scratch.glob(f"cache/o/*/lib{name}.so.{number}")
        shutil.copy(library, made)
        if name != "c":
            (made / f"lib{name}.so").symlink_to(library.name)
    (rest,) = scratch.glob("cache/o/*/libc_nonshared.a")
    shutil.copy(rest, made)
    (scratch / "newer.c").write_text(_NEWER)
    subprocess.run(
        [compiler, "-O2", "-fPIC", "-c", "newer.c", "-o", made.resolve() / "newer.o"],
        cwd=scratch,
        check=True,
    )
    # The linker reads this file as a script. libld stands for the loader, which has a few symbols.
    (made / "libc.so").write_text(
        "INPUT(libc.so.6 libc_nonshared.a newer.o AS_NEEDED(libld.so.2))\n"
    )
    shutil.rmtree(scratch)
    return made
