"""Build the documentation site: ``python -m tools.site``, after ``pip install -e ".[docs]"``.

A warning is an error: a link that leads nowhere, an example that gives something else than it says,
a page that takes too long to run. The site is then in ``docs/_build/html``.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
HTML = DOCS / "_build" / "html"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.site", description=__doc__)
    parser.add_argument("--fresh", action="store_true", help="read every page anew")
    parser.add_argument("--out", type=Path, default=HTML, help="the folder of the site")
    parser.add_argument("--page-seconds", type=int, help="what a page may take; 10 by default")
    arguments = parser.parse_args()
    from sphinx.cmd.build import main as sphinx

    start = time.monotonic()
    options = ["-W", "--keep-going", "-q", *(["-E", "-a"] if arguments.fresh else [])]
    options += ["-d", str(DOCS / "_build" / "doctrees")]
    if arguments.page_seconds is not None:  # on a machine that does other work at the same time
        options += ["-D", f"page_seconds={arguments.page_seconds}"]
    failed = sphinx([*options, str(DOCS), str(arguments.out)])
    files = [path for path in arguments.out.rglob("*") if path.is_file()]
    pages = sum(path.suffix == ".html" for path in files)
    size = sum(path.stat().st_size for path in files) / 1e6
    print(f"{pages} pages, {size:.1f} MB, {time.monotonic() - start:.0f} s: {arguments.out}")
    return failed


if __name__ == "__main__":
    sys.exit(main())
