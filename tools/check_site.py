"""Check the built site: ``python -m tools.check_site`` after ``python -m tools.site``.

- links: every link inside the site leads to a page, and to an anchor on it, that exist; others are
  well formed, and no page loads anything from elsewhere;
- spelling: codespell over the pages' sources and the library's docstrings;
- browser: headless Chromium shows every page at a phone's width (390 px), where nothing may be
  wider than the screen, and axe-core looks at contrast, headings and the rest of WCAG 2.1 AA,
  light and dark.

The browser's part needs Chromium and chromium-driver (from the system's packages), the extra
``docs``, and axe-core (``npm install --no-save axe-core``).
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

from tools import browser
from tools.site import HTML, ROOT

SPELLED = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "docs", "python/taeda"]
# Names and words of the field that codespell takes for mistakes.
WORDS = ROOT / "tools" / "words.txt"


# ---- links --------------------------------------------------------------------------------------


@dataclass
class Page:
    """What a page links to, loads and can be linked at."""

    links: list[str] = field(default_factory=list)
    loads: list[str] = field(default_factory=list)
    anchors: set[str] = field(default_factory=set)


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.page = Page()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {key: value or "" for key, value in attrs}
        if "id" in found:
            self.page.anchors.add(found["id"])
        if tag == "a" and "href" in found:
            self.page.links.append(found["href"])
        elif tag == "link" and found.get("rel") in ("stylesheet", "preload", "icon"):
            self.page.loads.append(found.get("href", ""))
        elif tag in ("img", "script", "iframe", "source", "video", "audio") and "src" in found:
            self.page.loads.append(found["src"])


@cache
def read(file: Path) -> Page:
    """The links of a page."""
    reader = _Reader()
    reader.feed(file.read_text(errors="replace"))
    return reader.page


def wrong_link(file: Path, link: str) -> str | None:
    """What is wrong with a link of a page; None if nothing is."""
    try:
        parts = urlsplit(link)
    except ValueError as error:
        return str(error)
    if parts.scheme or parts.netloc:
        if parts.scheme == "mailto":
            return None
        good = parts.scheme in ("http", "https") and re.fullmatch(r"[\w.-]+\.\w+", parts.netloc)
        return None if good else "not a web address"
    target = file if not parts.path else file.parent / unquote(parts.path)
    if target.is_dir():
        target = target / "index.html"
    if not target.exists():
        return "no such file"
    anchor = unquote(parts.fragment)
    if anchor and target.suffix == ".html" and anchor not in read(target.resolve()).anchors:
        return "no such anchor"
    return None


def links(site: Path) -> Iterator[str]:
    """What is wrong with the links of all pages."""
    for file in sorted(site.rglob("*.html")):
        page = read(file.resolve())
        for link in dict.fromkeys(page.links):
            if problem := wrong_link(file.resolve(), link):
                yield f"{file.relative_to(site)}: {link}: {problem}"
        for link in dict.fromkeys(page.loads):
            outside = urlsplit(link).scheme not in ("", "data") or link.startswith("//")
            if outside:
                yield f"{file.relative_to(site)}: loads {link} from elsewhere"
            elif not link.startswith("data:") and wrong_link(file.resolve(), link.split("?")[0]):
                yield f"{file.relative_to(site)}: {link}: no such file"
    for sheet in sorted(site.rglob("*.css")):
        for link in re.findall(r"""(?:url\(|@import\s+)["']?(https?:[^"')]+)""", sheet.read_text()):
            yield f"{sheet.relative_to(site)}: loads {link} from elsewhere"


# ---- spelling -----------------------------------------------------------------------------------


def spelling() -> Iterator[str]:
    """The words that codespell knows as misspellings."""
    command = [sys.executable, "-m", "codespell_lib", "--ignore-words", str(WORDS)]
    command += ["--skip", "*/_build/*,*.svg,*.pyi,_sobol_numbers.py,*/examples/data/*"]
    done = subprocess.run([*command, *SPELLED], cwd=ROOT, capture_output=True, text=True)
    if done.returncode not in (0, 64, 65) and not done.stdout:
        yield done.stderr.strip()
    yield from done.stdout.splitlines()


# ---- all ----------------------------------------------------------------------------------------


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.check_site", description=__doc__)
    parser.add_argument("--site", type=Path, default=HTML, help="the built site")
    parser.add_argument("--pages", default="**/*.html", help="which pages the browser looks at")
    parser.add_argument("--no-browser", action="store_true", help="only links and spelling")
    parser.add_argument("--axe", type=Path, default=browser.AXE, help="axe.min.js of axe-core")
    arguments = parser.parse_args()
    if not (arguments.site / "index.html").exists():
        parser.error(f"{arguments.site} has no site: run python -m tools.site before")
    site = arguments.site.resolve()
    checks = {"links": links(site), "spelling": spelling()}
    if not arguments.no_browser:
        checks["browser"] = browser.check(site, arguments.pages, arguments.axe)
    failed = False
    for name, problems in checks.items():
        count = 0
        for problem in problems:
            print(f"  {problem}", flush=True)
            count += 1
        failed |= bool(count)
        print(f"{name}: {count or 'no'} problem{'' if count == 1 else 's'}", flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
