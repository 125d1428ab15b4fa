"""What the processor can do, as Linux tells it."""

from __future__ import annotations

import os
import platform
import re
from pathlib import Path
from types import MappingProxyType
from typing import Any

# PyTorch's names of x86 extensions, and Linux's where that has another.
_X86 = {
    "fma3": "fma", "lzcnt": "abm", "sha": "sha_ni", "bmi": "bmi1", "sse3": "pni",
    "avx512_f": "avx512f", "avx512_cd": "avx512cd", "avx512_dq": "avx512dq",
    "avx512_bw": "avx512bw", "avx512_vl": "avx512vl", "avx512_ifma": "avx512ifma",
    "avx512_vbmi": "avx512vbmi", "avx512_4vnniw": "avx512_4vnniw",
    "avx512_4fmaps": "avx512_4fmaps", "avx_vnni_int8": "avx_vnni_int8",
    "avx_vnni_int16": "avx_vnni_int16",
} | {
    name: name
    for name in (
        "sse", "sse2", "ssse3", "sse4_1", "sse4_2", "sse4a", "avx", "avx2", "avx_vnni",
        "avx512_vbmi2", "avx512_bitalg", "avx512_vpopcntdq", "avx512_vnni", "avx512_bf16",
        "avx512_fp16", "avx512_vp2intersect", "avx_ne_convert", "amx_bf16",
        "amx_tile", "amx_int8", "amx_fp16", "fma4", "f16c", "bmi2", "popcnt", "aes", "clflush",
        "clflushopt", "clwb",
    )
}  # fmt: skip

_ARM = {
    "neon": "asimd", "fp16_arith": "asimdhp", "bf16": "bf16", "i8mm": "i8mm", "dot": "asimddp",
    "sve": "sve", "sve2": "sve2", "sve_bf16": "svebf16", "sme": "sme", "sme2": "sme2",
    "atomics": "atomics", "fhm": "asimdfhm", "rdm": "asimdrdm", "crc32": "crc32", "aes": "aes",
    "sha1": "sha1", "sha2": "sha2", "pmull": "pmull",
}  # fmt: skip


def _fields(name: str, text: str) -> list[str]:
    return re.findall(rf"^{name}\s*: ?(.*)$", text, re.MULTILINE)


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""


def _cache_sizes() -> dict[str, int]:
    """Bytes of the first core's data caches, by name."""
    found = {}
    for folder in sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")):
        level, kind, size = (_read(folder / name).strip() for name in ("level", "type", "size"))
        if kind in ("Data", "Unified") and level in ("1", "2") and size.endswith("K"):
            found["l1d_cache_size" if level == "1" else "l2_cache_size"] = int(size[:-1]) * 1024
    return found


def capabilities() -> MappingProxyType[str, Any]:
    """By PyTorch's names: whether the processor has each extension, and what else is known."""
    architecture = platform.machine()
    text = _read(Path("/proc/cpuinfo"))
    arm = architecture in ("aarch64", "arm64")
    flags = set(" ".join(_fields("Features" if arm else "flags", text)[:1]).split())
    result: dict[str, Any] = {"architecture": architecture}
    if flags:
        result |= {name: flag in flags for name, flag in (_ARM if arm else _X86).items()}
    models = _fields("model name", text)
    sockets, cores = _fields("physical id", text), _fields("core id", text)
    logical = os.cpu_count() or 1
    result |= {
        "cpu_name": models[0].strip() if models else platform.processor(),
        "num_logical_cores": logical,
        "num_physical_cores": len(set(zip(sockets, cores, strict=False))) or logical,
        "num_sockets": len(set(sockets)) or 1,
    }
    return MappingProxyType(result | _cache_sizes())
