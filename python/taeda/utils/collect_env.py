"""What a bug report should say of the machine: ``python -m taeda.utils.collect_env``."""

from __future__ import annotations

import os
import platform
import re
import subprocess
import sys
from collections.abc import Callable
from typing import NamedTuple

__all__ = [
    "SystemEnv",
    "get_env_info",
    "get_pip_packages",
    "get_pretty_env_info",
    "main",
    "run",
    "run_and_parse_first_match",
    "run_and_read_all",
    "run_and_return_first_line",
]

Run = Callable[[str], tuple[int, str, str]]


class SystemEnv(NamedTuple):
    """What `get_env_info` finds; None for what could not be found."""

    torch_version: str
    is_debug_build: str
    gcc_version: str | None
    clang_version: str | None
    cmake_version: str | None
    os: str | None
    libc_version: str
    python_version: str
    python_platform: str
    is_cuda_available: str
    pip_version: str
    pip_packages: str
    build: str
    cpu_info: str


def run(command: str | list[str]) -> tuple[int, str, str]:
    """Run a command; its exit status, and what it has printed and complained."""
    done = subprocess.run(
        command, shell=isinstance(command, str), capture_output=True, text=True, errors="replace"
    )
    return done.returncode, done.stdout.strip(), done.stderr.strip()


def run_and_read_all(run_lambda: Run, command: str) -> str | None:
    """What a command prints; None where it fails."""
    status, out, _ = run_lambda(command)
    return None if status else out


def run_and_parse_first_match(run_lambda: Run, command: str, regex: str) -> str | None:
    """The first group of a pattern in what a command prints; None where there is none."""
    status, out, _ = run_lambda(command)
    match = None if status else re.search(regex, out)
    return None if match is None else match.group(1)


def run_and_return_first_line(run_lambda: Run, command: str) -> str | None:
    """The first line that a command prints; None where it fails."""
    status, out, _ = run_lambda(command)
    return None if status else out.split("\n")[0]


def get_pip_packages(
    run_lambda: Run | None = None, patterns: set[str] | None = None
) -> tuple[str, str]:
    """The installed packages that matter, as ``name==version`` lines, after ``"pip3"``.

    Args:
        run_lambda: not needed: Python is asked for its packages.
        patterns: parts of the names that matter.
    """
    from importlib.metadata import distributions

    wanted = patterns or {"taeda", "torch", "numpy", "scipy", "triton", "onnx", "mypy"}
    found = {(d.metadata["Name"] or "", d.version) for d in distributions()}
    lines = [f"[pip3] {n}=={v}" for n, v in sorted(found) if any(w in n.lower() for w in wanted)]
    return "pip3", "\n".join(lines)


def _os_name() -> str | None:
    try:
        with open("/etc/os-release") as file:
            match = re.search(r'PRETTY_NAME="(.*)"', file.read())
        return f"{match.group(1)} ({platform.machine()})" if match else None
    except OSError:
        return platform.platform()


def get_env_info() -> SystemEnv:
    """Find out what a bug report should say."""
    import taeda

    pip, packages = get_pip_packages()
    return SystemEnv(
        torch_version=taeda.__version__,
        is_debug_build="False",
        gcc_version=run_and_parse_first_match(run, "gcc --version", r"gcc (.*)"),
        clang_version=run_and_parse_first_match(run, "clang --version", r"clang version (.*)"),
        cmake_version=run_and_parse_first_match(run, "cmake --version", r"cmake (.*)"),
        os=_os_name(),
        libc_version="-".join(platform.libc_ver()),
        python_version=f"{sys.version} ({sys.maxsize.bit_length() + 1}-bit runtime)",
        python_platform=platform.platform(),
        is_cuda_available="False",
        pip_version=pip,
        pip_packages=packages,
        build=taeda.__config__.show(),
        cpu_info=run_and_read_all(run, "lscpu") or f"{os.cpu_count()} CPUs",
    )


def get_pretty_env_info() -> str:
    """`get_env_info` as text."""
    info = get_env_info()

    def line(name: str, value: str | None) -> str:
        return f"{name}: {value or 'Could not collect'}"

    return "\n".join([
        line("taeda version", info.torch_version),
        line("Is debug build", info.is_debug_build),
        "",
        line("OS", info.os),
        line("GCC version", info.gcc_version),
        line("Clang version", info.clang_version),
        line("CMake version", info.cmake_version),
        line("Libc version", info.libc_version),
        "",
        line("Python version", info.python_version),
        line("Python platform", info.python_platform),
        line("Is CUDA available", info.is_cuda_available),
        "",
        "Build:",
        info.build,
        "",
        "CPU:",
        info.cpu_info,
        "",
        "Versions of relevant libraries:",
        info.pip_packages,
    ])  # fmt: skip


def main() -> None:
    """Print it."""
    print(get_pretty_env_info())


if __name__ == "__main__":
    main()
