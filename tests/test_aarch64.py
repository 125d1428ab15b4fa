"""The kernels on 64-bit ARM: that they compile, and use its vector instructions (NEON)."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

CSRC = Path(__file__).resolve().parents[1] / "csrc"
COMPILER = next(
    (c for c in ("aarch64-linux-gnu-g++", "aarch64-linux-gnu-g++-12") if shutil.which(c)), None
)
# What the hot loops of each file must contain, on vectors of four floats.
HOT = {
    "gemm/simd/gemm_kernels.cpp": ["fmla"],
    "conv/simd/winograd.cpp": ["fadd", "fsub"],
    "nn/simd/softmax.cpp": ["fmla", "fmul", "fadd"],
    "nn/simd/norm.cpp": ["fmla", "fadd"],
    "nn/simd/optim.cpp": ["fmla", "fsqrt", "fdiv"],
    "pointwise/simd/rounding.cpp": ["frintm"],
    "reduce/simd/reduce_sum.cpp": ["fadd"],
}


@pytest.mark.skipif(COMPILER is None, reason="needs a cross compiler: g++-aarch64-linux-gnu")
@pytest.mark.parametrize("file", HOT)
def test_hot_kernels_use_neon(file):
    flags = ["-std=c++20", "-O3", "-fno-math-errno", "-fno-trapping-math", "-Wno-psabi"]
    source = CSRC / "kernels" / "cpu" / file
    run = subprocess.run(
        [COMPILER, *flags, "-Wall", "-Wextra", "-Werror", "-DTAEDA_ISA=base", f"-I{CSRC}"]
        + ["-S", "-o", "-", source],
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr[-4000:]
    used = set(re.findall(r"\t(\w+)\tv\d+\.4s", run.stdout))
    assert set(HOT[file]) <= used
