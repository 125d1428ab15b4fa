"""`python -m tests.conformance [-n WORKERS]`: run the suite and write docs/conformance.md."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.conformance.collector import Collector

HERE = Path(__file__).resolve().parent
PAGE = HERE.parents[1] / "docs" / "conformance.md"


def main() -> int:
    collector = Collector()
    # In worker processes, a crash counts against the entry that was running, and the rest go on.
    arguments = sys.argv[1:] or ["-n", "2"]
    paths = [str(HERE / "test_ops.py"), str(HERE / "test_forms.py")]
    options = ["-q", "-p", "no:cacheprovider", "--tb=no", "--max-worker-restart=1000"]
    status = pytest.main([*arguments, *options, *paths], plugins=[collector])
    if not collector.entries:
        return int(status)
    # Not before the run: PyTorch's modules must be imported under pytest.
    from tests.conformance.report import page, table

    PAGE.write_text(page(collector.entries))
    print("\n".join(table(collector.entries)))
    for name in collector.unexpected:
        print("unexpected:", name)
    print(f"written: {PAGE}")
    return int(status)


if __name__ == "__main__":
    sys.exit(main())
