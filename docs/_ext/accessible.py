"""What the theme leaves out for readers who use a keyboard or a screen reader.

Landmarks and headings of the sidebars get names and levels, code that scrolls can be reached by
the keyboard, and cells without text are no headings.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

CHANGES = {
    '<aside class="sidebar-drawer">': '<aside class="sidebar-drawer" aria-label="Pages">',
    '<aside class="toc-drawer">': '<aside class="toc-drawer" aria-label="On this page">',
    '<aside class="toc-drawer no-toc">': '<aside class="toc-drawer no-toc" aria-label="Nothing">',
    '<p class="caption" role="heading">': '<p class="caption" role="heading" aria-level="2">',
    '<div class="highlight"><pre>': '<div class="highlight"><pre tabindex="0">',
    '<th class="head"><p></p></th>': "<td></td>",
    '<th class="head"></th>': "<td></td>",
    '<div class="cell_output docutils': '<div tabindex="0" class="cell_output docutils',
    '<div class="table-wrapper': '<div tabindex="0" class="table-wrapper',
    '<div id="search-results"></div>': '<h1>Search</h1><div id="search-results" ></div>',
}
# Parameters one below the other, which Sphinx writes as a list of definitions without terms.
PARAMETERS = re.compile(r"<dl>\s*((?:<dd><em class=\"sig-param\">.*?</dd>\s*)+)</dl>", re.DOTALL)


def changed(page: str) -> str:
    """A page with what it lacks."""
    for old, new in CHANGES.items():
        page = page.replace(old, new)
    return PARAMETERS.sub(_as_lines, page)


def _as_lines(match: re.Match[str]) -> str:
    lines = match[1].replace("<dd>", "<span>").replace("</dd>", "</span>").rstrip()
    return f'<span class="params">{lines}</span>'


def on_finished(app: Any, error: Exception | None) -> None:
    if error is None and app.builder.format == "html":
        out = Path(app.outdir)
        for file in out.rglob("*.html"):
            if "source" not in file.relative_to(out).parts[:1]:
                text = file.read_text()
                if (better := changed(text)) != text:
                    file.write_text(better)


def setup(app: Any) -> dict[str, Any]:
    app.connect("build-finished", on_finished)
    return {"version": "1", "parallel_read_safe": True}
