"""Memory that runs out: a MemoryError, and everything goes on; never the end of the process."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.unsanitized("sanitizers reserve terabytes of address space")
ROOT = Path(__file__).parents[2]
LIMITED = """
import resource, sys, taeda
import taeda.nn.functional as F
a = taeda.randn(200, 200) + 200 * taeda.eye(200)
c, q = taeda.randn(200, 200, dtype=taeda.complex64), taeda.randn(2, 8, 256, 64)
taeda.set_num_threads(2)
pages = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (pages + int(float(sys.argv[1]) * (1 << 20)),) * 2)
outcomes = set()
for call in (
    lambda: taeda.linalg.inv(a), lambda: taeda.linalg.lu(a), lambda: taeda.linalg.qr(a),
    lambda: taeda.linalg.svd(a), lambda: taeda.linalg.eigh(a), lambda: taeda.linalg.lstsq(a, a),
    lambda: taeda.linalg.eig(a), lambda: c @ c, lambda: taeda.linalg.cholesky(a @ a.T),
    lambda: F.scaled_dot_product_attention(q, q, q),
):
    try:
        call()
        outcomes.add("ok")
    except MemoryError as error:
        assert "bytes" in str(error), error
        outcomes.add("MemoryError")
print(*sorted(outcomes))
"""


@pytest.mark.parametrize(
    "megabytes", [0, 1, 1.2, 1.4, 1.5, 1.6, 2, 4, 12, 20, 30, 33, 36, 40, 50, 70, 150]
)
def test_little_address_space(megabytes):
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, str(megabytes)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, ""), done
    if megabytes <= 20:
        assert "MemoryError" in done.stdout
    if megabytes == 150:
        assert done.stdout == "ok\n"


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    compiler = shutil.which("cc") or shutil.which("gcc")
    assert compiler, "a C compiler is needed to build failing_memory.c"
    path = tmp_path_factory.mktemp("library") / "failing_memory.so"
    source = Path(__file__).with_name("failing_memory.c")
    command = [compiler, "-O1", "-shared", "-fPIC", "-o", str(path), str(source), "-ldl"]
    subprocess.run(command, check=True)
    return path


def test_every_allocation_may_fail(library):
    done = subprocess.run(
        [sys.executable, "-m", "tests.robustness.low_memory"],
        capture_output=True,
        text=True,
        errors="replace",
        timeout=600,
        cwd=ROOT,
        env={**os.environ, "LD_PRELOAD": str(library)},
        check=False,
    )
    assert done.returncode == 0, f"{done.returncode}: {done.stdout}\n{done.stderr[-2000:]}"
    last = done.stdout.splitlines()[-1].split()
    assert done.stdout.count("\n") == 1 and int(last[1]) > 200 and int(last[3]) >= 60, done.stdout
