"""Instruction sets below the machine's own, for both frameworks and the libraries under them."""

from __future__ import annotations

ENVIRONMENTS = {
    "v4": {"TAEDA_CPU": "v4"},
    "v3": {
        "TAEDA_CPU": "v3",
        "ATEN_CPU_CAPABILITY": "avx2",
        "ONEDNN_MAX_CPU_ISA": "AVX2",
        "MKL_ENABLE_INSTRUCTIONS": "AVX2",
        "OPENBLAS_CORETYPE": "Haswell",
    },
    "v2": {
        "TAEDA_CPU": "v2",
        "ATEN_CPU_CAPABILITY": "default",
        "ONEDNN_MAX_CPU_ISA": "SSE41",
        "MKL_ENABLE_INSTRUCTIONS": "SSE4_2",
        "OPENBLAS_CORETYPE": "Nehalem",
    },
}
NAMES = {"v4": "AVX-512", "v3": "AVX2", "v2": "SSE4.2"}
CAPABILITIES = {"v4": "AVX512", "v3": "AVX2", "v2": "DEFAULT"}  # as either framework names them
OWN = ""  # the level of a process that is left to choose


def environment(level: str) -> dict[str, str]:
    """What holds a process to the level."""
    return ENVIRONMENTS.get(level, {})


def wrong(level: str, capability: str) -> str | None:
    """Why a process that runs with this capability is not at the level, if so."""
    if level == OWN or capability == CAPABILITIES[level]:
        return None
    return f"held to {level} ({CAPABILITIES[level]}), it runs with {capability}"


def title(level: str) -> str:
    return f"{level} ({NAMES[level]})" if level in NAMES else "the machine's own"
