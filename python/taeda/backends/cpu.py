"""The CPU's instruction set."""

from __future__ import annotations

from taeda import _C

__all__ = ["get_cpu_capability"]

_NAMES = {"v2": "DEFAULT", "v3": "AVX2", "v4": "AVX512"}


def get_cpu_capability() -> str:
    """The instruction set that kernels run with, as PyTorch names it: "AVX512", "AVX2", "DEFAULT".

    ``TAEDA_CPU`` in the environment may ask for a lower one than the machine has.
    """
    return _NAMES.get(str(_C.cpu_level()).removeprefix("x86-64-"), "DEFAULT")
