"""Pages with the source: the whole package, the files that define operations, and what is linked.

They are written beside Sphinx's own pages, lean: no navigation, and marks for keywords, strings,
comments and definitions only. A file that has not changed is not written again.
"""

from __future__ import annotations

import html
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from pygments.lexers import get_lexer_for_filename
from pygments.token import Comment, Keyword, Literal, Name, Number, String, _TokenType
from pygments.util import ClassNotFound

ROOT = Path(__file__).resolve().parents[2]
ALWAYS = ("python/taeda/**/*.py", "csrc/ops/**/*.cpp", "csrc/kernels/functors/*.h")
MARKS: list[tuple[_TokenType, str]] = [
    (Comment, "c"),
    (String, "s"),
    (Number, "m"),
    (Literal, "s"),
    (Keyword, "k"),
    (Name.Function, "f"),
    (Name.Class, "f"),
    (Name.Decorator, "d"),
]

PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title} - taeda</title>
<link rel="stylesheet" href="{up}_static/source.css">
</head>
<body>
<script>document.body.dataset.theme = localStorage.getItem("theme") || "auto"</script>
<header><nav aria-label="Place"><a href="{up}index.html">taeda</a> / {crumbs}</nav>
<h1>{title}</h1></header>
<main>
{body}
</main>
</body>
</html>
"""


def lines(text: str, name: str) -> Iterator[str]:
    """The lines of a file as HTML."""
    try:
        tokens: Iterable[tuple[Any, str]] = get_lexer_for_filename(name).get_tokens(text)
    except ClassNotFound:
        tokens = [(None, text)]
    line = ""
    for kind, value in tokens:
        mark = next((m for k, m in MARKS if kind is not None and kind in k), None)
        for i, part in enumerate(value.split("\n")):
            if i:
                yield line
                line = ""
            if part:
                code = html.escape(part, quote=False)
                line += f'<b class="{mark}">{code}</b>' if mark and part.strip() else code
    if line:
        yield line


def code(text: str, name: str) -> str:
    """A file's text, each line with an anchor that its number is made from."""
    found = "\n".join(f'<i id="L{n}">{line}</i>' for n, line in enumerate(lines(text, name), 1))
    return f'<pre tabindex="0">{found}\n</pre>'


def crumbs(path: Path, pages: set[str]) -> str:
    """The folders above a page, those that have a page as links."""
    parts = []
    for i, name in enumerate(path.parts[:-1]):
        folder = Path(*path.parts[: i + 1]).as_posix()
        up = os.path.relpath(folder + "/index.html", path.parent.as_posix())
        parts.append(f'<a href="{up}">{name}</a>' if folder in pages else name)
    return " / ".join([*parts, html.escape(path.name)])


def page_of_file(path: Path, pages: set[str]) -> str:
    text = (ROOT / path).read_text(errors="replace")
    up = "../" * len(path.parts)
    body = code(text, path.name)
    return PAGE.format(title=path.name, up=up, crumbs=crumbs(path, pages), body=body)


def page_of_folder(path: Path, pages: set[str], files: set[str]) -> str:
    rows = ""
    for child in sorted((ROOT / path).iterdir(), key=lambda p: (p.is_file(), p.name)):
        name = child.relative_to(ROOT).as_posix()
        text = html.escape(child.name)
        if child.name.startswith((".", "__pycache__")):
            continue
        if child.is_dir():
            link = f"{text}/index.html" if name in pages else None
            text += "/"
        else:
            link = f"{text}.html" if name in files else None
        rows += f'<li><a href="{link}">{text}</a></li>\n' if link else f"<li>{text}</li>\n"
    return PAGE.format(
        title=f"{path.name}/",
        up="../" * (len(path.parts) + 1),
        crumbs=crumbs(path / "x", pages).rpartition(" / ")[0],
        body=f"<ul>\n{rows}</ul>",
    )


def wanted(linked: set[str]) -> tuple[set[str], set[str]]:
    """The files and the folders that get a page."""
    files = {p.relative_to(ROOT).as_posix() for glob in ALWAYS for p in ROOT.glob(glob)}
    folders = {path for path in linked if (ROOT / path).is_dir()}
    files |= {path for path in linked if (ROOT / path).is_file()}
    for folder in folders:
        files |= {
            p.relative_to(ROOT).as_posix()
            for p in (ROOT / folder).iterdir()
            if p.suffix in (".py", ".cpp", ".h", ".md", ".txt", ".toml", ".sh")
        }
    return files, folders


def write(out: Path, linked: set[str]) -> int:
    """Write the pages, and return how many there are."""
    files, folders = wanted(linked)
    newest = Path(__file__).stat().st_mtime
    for path in sorted(files):
        target = out / "source" / f"{path}.html"
        changed = max(newest, (ROOT / path).stat().st_mtime)
        if not target.exists() or target.stat().st_mtime < changed:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(page_of_file(Path(path), folders))
    for path in sorted(folders):
        target = out / "source" / path / "index.html"
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(page_of_folder(Path(path), folders, files))
    return len(files) + len(folders)


def on_finished(app: Any, error: Exception | None) -> None:
    if error is None and app.builder.format == "html":
        linked = set().union(*app.env.taeda_sources.values())
        count = write(Path(app.outdir), linked)
        print(f"source pages: {count}")


def setup(app: Any) -> dict[str, Any]:
    app.connect("build-finished", on_finished)
    return {"version": "1", "parallel_read_safe": True}
