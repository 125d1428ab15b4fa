"""Write the type stubs, or with `--check` only say whether they are up to date."""

from __future__ import annotations

import argparse
import sys

from tests.stubs.generate import stubs


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.stubs", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; fail if out of date")
    check = parser.parse_args().check
    stale = [
        path for path, text in stubs().items() if not path.exists() or path.read_text() != text
    ]
    for path in stale:
        if not check:
            path.write_text(stubs()[path])
        print(f"{'out of date' if check else 'written'}: {path}")
    return int(check and bool(stale))


if __name__ == "__main__":
    sys.exit(main())
