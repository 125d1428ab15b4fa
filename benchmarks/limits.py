"""What the machine can do at most: bytes copied and float32 multiply-adds per second.

Neither figure comes from a framework. Both are short loops given to the processor as machine code,
so that nothing needs a compiler: a copy by stores that go past the caches, and twelve independent
FMA instructions on the widest registers (AVX-512 or AVX2). Where those cannot run (not x86-64 with
AVX2 under Linux), copying is the C library's memmove, and the report takes the fastest matrix
product of the run for the other.
"""

from __future__ import annotations

import ctypes
import mmap
import platform
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

COPY_BYTES = 128 << 20  # several times the caches
COPY_BLOCK = 128
FMA_TURNS = 1_000_000
ACCUMULATORS = 12  # an FMA takes four cycles and two start in each: eight or more keep them busy
REPEATS = 12

# void copy(target, source, int64 blocks): four loads and four streaming stores of 32 bytes a turn,
# both pointers 128 further, until no block is left; then sfence, vzeroupper, ret.
COPY_CODE = bytes.fromhex(
    "c5fc1006 c5fc104e20 c5fc105640 c5fc105e60 c5fc2b07 c5fc2b4f20 c5fc2b5740 c5fc2b5f60"
    "4883ee80 4883ef80 48ffca 75cd 0faef8 c5f877 c3"
)


def fma_code(wide: bool) -> bytes:
    """Machine code of `void loop(int64 turns)`: each turn is twelve FMAs on registers of zeros.

    wide chooses the sixteen lanes of AVX-512 over the eight of AVX2.
    """
    body = b""
    for index in range(ACCUMULATORS):  # vfmadd231ps r(index), r15, r15
        high, register = index >= 8, 0xC7 + 8 * (index % 8)
        if wide:
            body += bytes([0x62, 0x52 if high else 0xD2, 0x05, 0x48, 0xB8, register])
        else:
            body += bytes([0xC4, 0x42 if high else 0xC2, 0x05, 0xB8, register])
    body += bytes([0x48, 0xFF, 0xCF])  # dec rdi
    back = bytes([0x75, 256 - len(body) - 2])  # jnz to the start of the body
    return b"\xc5\xfc\x77" + body + back + b"\xc5\xf8\x77\xc3"  # vzeroall ... vzeroupper, ret


def fma_lanes() -> int:
    """Float32 lanes of the widest FMA here; 0 where machine code of this module cannot run."""
    if not sys.platform.startswith("linux") or platform.machine() != "x86_64":
        return 0
    flags = set(Path("/proc/cpuinfo").read_text().split())
    return 16 if "avx512f" in flags else 8 if {"fma", "avx2"} <= flags else 0


@contextmanager
def machine_code(code: bytes, *arguments: type) -> Iterator[Callable | None]:
    """A function of no result out of machine code; None where none can run.

    It is called without the interpreter's lock, as all foreign functions are.
    """
    if not fma_lanes():
        yield None
        return
    try:
        page = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    except OSError:  # a system that lets no page be both written and run
        yield None
        return
    page.write(code)
    yield ctypes.CFUNCTYPE(None, *arguments)(address(page))
    page.close()


def address(memory: mmap.mmap) -> int:
    return ctypes.addressof(ctypes.c_char.from_buffer(memory))


def best_time(run: Callable[[int], object], threads: int) -> float:
    """Seconds of the fastest of several goes in which every thread runs its part."""
    times = []
    with ThreadPoolExecutor(threads) as pool:
        for _ in range(REPEATS + 1):  # the first starts the threads
            start = time.perf_counter()
            list(pool.map(run, range(threads)))
            times.append(time.perf_counter() - start)
    return min(times[1:])


def fma_rate(threads: int) -> float | None:
    """Float32 operations per second of FMA instructions that wait for nothing (two each)."""
    lanes = fma_lanes()
    with machine_code(fma_code(lanes == 16), ctypes.c_int64) as loop:
        if loop is None:
            return None
        seconds = best_time(lambda _: loop(FMA_TURNS), threads)
    return 2 * lanes * ACCUMULATORS * FMA_TURNS * threads / seconds


def copy_bandwidth(threads: int) -> float:
    """Bytes read and written per second by a large copy shared out to threads."""
    blocks = COPY_BYTES // COPY_BLOCK // threads
    part = blocks * COPY_BLOCK
    source, target = mmap.mmap(-1, part * threads), mmap.mmap(-1, part * threads)
    for memory in (source, target):
        if hasattr(mmap, "MADV_HUGEPAGE"):
            memory.madvise(mmap.MADV_HUGEPAGE)
        ctypes.memset(address(memory), 1, part * threads)
    read, write = address(source), address(target)

    def move(index: int) -> None:
        ctypes.memmove(write + index * part, read + index * part, part)

    pointers = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)
    with machine_code(COPY_CODE, *pointers) as stream:
        seconds = best_time(move, threads)
        if stream is not None:
            streamed = best_time(
                lambda index: stream(write + index * part, read + index * part, blocks), threads
            )
            seconds = min(seconds, streamed)
    return 2 * part * threads / seconds
