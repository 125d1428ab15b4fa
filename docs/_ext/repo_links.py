"""Links from the site's pages to files of the repository.

The pages under ``docs/`` are read on GitHub too, so their links are relative paths. Those that lead
to a page of the site stay; those that lead to another file or folder of the repository become links
to a page with its source, which `source_pages` writes. Files outside of ``docs/`` that are pages of
the site too are named by ``repo_pages`` in conf.py: the page of the site is then a line of text on
GitHub and the whole file in the site.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.util.osutil import relative_uri

ROOT = Path(__file__).resolve().parents[2]
_FENCE = re.compile(r"^(\s*)(`{3,}|~{3,}).*?^\1?\2\s*$", re.MULTILINE | re.DOTALL)
_OTHERS = re.compile(r"^(\w+/)?\*\n", re.MULTILINE)
_LINK = re.compile(r"(\]\()([^)#\s:<>]*)(#[^)\s]*)?(\))")


class Places:
    """Where the files of the repository are in the site.

    Args:
        docs: the source folder.
        found: the names of the site's pages.
        pages: page -> the file outside of the source folder that it shows.
    """

    def __init__(self, docs: Path, found: set[str], pages: dict[str, str]) -> None:
        self.docs = docs
        self.found = found
        self.pages = {str(ROOT / file): page for page, file in pages.items()}

    def of(self, target: Path) -> str | None:
        """What to write in place of a path; None where it leads nowhere."""
        if (page := self.pages.get(str(target))) is not None:
            return f"/{page}.md"
        if target.is_dir():
            pages = (target / "README.md", target / "index.rst")
            target = next((page for page in pages if self._page(page)), target)
        if page := self._page(target):
            return "/" + page
        if target.suffix in (".svg", ".png") and self.docs in target.parents:
            return "/" + target.relative_to(self.docs).as_posix()
        if target.exists() and ROOT in target.parents:
            return "source:" + target.relative_to(ROOT).as_posix()
        return None

    def _page(self, target: Path) -> str | None:
        if target.suffix not in (".md", ".rst") or self.docs not in target.parents:
            return None
        path = target.relative_to(self.docs)
        return path.as_posix() if path.with_suffix("").as_posix() in self.found else None


def rewritten(text: str, folder: Path, places: Places) -> str:
    """A page's text with the paths of its links as the site needs them.

    Args:
        text: Markdown.
        folder: that the links are relative to.
        places: of the files.
    """

    def link(match: re.Match[str]) -> str:
        if not match[2]:
            return match[0]
        target = Path(os.path.normpath(folder / match[2]))
        place = places.of(target)
        return match[0] if place is None else f"{match[1]}{place}{match[3] or ''}{match[4]}"

    found, end = "", 0
    for fence in _FENCE.finditer(text):
        found += _LINK.sub(link, text[end : fence.start()]) + fence[0]
        end = fence.end()
    return found + _LINK.sub(link, text[end:])


def others(text: str, found: set[str]) -> str:
    """A page's text with each line such as ``guides/*`` replaced by the pages not listed yet."""
    listed = set(re.findall(r"^(?:.+<)?([\w/-]+)>?$", text, re.MULTILINE)) | {"index"}

    def pages(match: re.Match[str]) -> str:
        folder = match[1] or ""
        inside = {page for page in found if page.rpartition("/")[0] == folder.rstrip("/")}
        return "".join(f"{page}\n" for page in sorted(inside - listed))

    return _OTHERS.sub(pages, text)


def on_source_read(app: Any, docname: str, content: list[str]) -> None:
    if not str(app.env.doc2path(docname)).endswith(".md"):
        return
    file = Path(app.env.doc2path(docname))
    if docname in app.config.repo_pages:
        file = ROOT / app.config.repo_pages[docname]
        content[0] = file.read_text()
        app.env.note_dependency(str(file))
    places = Places(Path(app.srcdir).resolve(), set(app.env.found_docs), app.config.repo_pages)
    content[0] = rewritten(content[0], file.parent.resolve(), places)
    if docname == app.config.root_doc:
        content[0] = others(content[0], app.env.found_docs)
    if children := app.config.repo_children.get(docname):
        content[0] += f"\n\n```{{toctree}}\n:hidden:\n:glob:\n\n{children}\n```\n"


def source_links(doctree: nodes.document) -> Iterator[tuple[nodes.reference, str, str]]:
    """The ``source:`` links of a page: the node, the path, and the line or nothing."""
    for node in doctree.findall(nodes.reference):
        uri = node.get("refuri", "")
        if uri.startswith("source:"):
            path, _, line = uri.removeprefix("source:").partition("#")
            yield node, path, line


def on_doctree_read(app: Any, doctree: nodes.document) -> None:
    """Remember which files a page links to, for as long as it is not read again."""
    app.env.taeda_sources[app.env.docname] = {path for _, path, _ in source_links(doctree)}


def on_doctree_resolved(app: Any, doctree: nodes.document, docname: str) -> None:
    """Make ``source:`` links relative."""
    here = app.builder.get_target_uri(docname)
    for node, path, line in source_links(doctree):
        target = f"source/{path}{'/index' if (ROOT / path).is_dir() else ''}.html"
        node["refuri"] = relative_uri(here, target) + (f"#{line}" if line else "")
        node["internal"] = True


def on_builder_inited(app: Any) -> None:
    if not hasattr(app.env, "taeda_sources"):
        app.env.taeda_sources = {}


def on_purge(app: Any, env: Any, docname: str) -> None:
    getattr(env, "taeda_sources", {}).pop(docname, None)


def setup(app: Any) -> dict[str, Any]:
    app.add_config_value("repo_pages", {}, "env")
    app.add_config_value("repo_children", {}, "env")
    app.connect("builder-inited", on_builder_inited)
    app.connect("env-purge-doc", on_purge)
    app.connect("source-read", on_source_read)
    app.connect("doctree-read", on_doctree_read)
    app.connect("doctree-resolved", on_doctree_resolved)
    return {"version": "1", "env_version": 2, "parallel_read_safe": True}
