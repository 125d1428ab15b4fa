"""Which files a build spent its time on: python tools/compile_times.py build/dev

Reads Ninja's log of a build folder. A source that is compiled for several instruction sets counts
once, with the sum. The times are each compiler's own, so build with as many jobs as there are free
cores, and without ccache (CCACHE_DISABLE=1).
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path


def compile_times(log: str) -> Counter[str]:
    """{source: seconds} from the text of a .ninja_log; a file's last build counts."""
    last = {}
    for line in log.splitlines():
        if not line.startswith("#"):
            start, end, _, output, _ = line.split("\t")
            last[output] = (int(end) - int(start)) / 1000
    times: Counter[str] = Counter()
    for output, seconds in last.items():
        if output.endswith((".o", ".gch")):
            # CMakeFiles/simd_v3.dir/csrc/kernels/cpu/nn/simd/norm.cpp.o
            times[output.split(".dir/")[-1].removesuffix(".o")] += seconds
    return times


def main() -> None:
    """Prints the total and the ten dearest sources."""
    times = compile_times((Path(sys.argv[1]) / ".ninja_log").read_text())
    print(f"{sum(times.values()) / 60:.1f} minutes of compiling, {len(times)} files\n")
    print("| file | seconds |\n|---|---:|")
    for source, seconds in times.most_common(10):
        print(f"| `{source}` | {seconds:.1f} |")


if __name__ == "__main__":
    main()
