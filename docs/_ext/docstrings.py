"""Docstrings as reStructuredText.

The library's docstrings are plain text with a few conventions: code between backticks (one or two),
sections such as ``Args:`` with an indented list of names, list items that begin with a dash,
examples that begin with ``>>>``. Everything else is text, so characters that reStructuredText would
read as markup are escaped.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

# The headings of sections with one item for each name.
ITEMS = {
    "Args": "Arguments",
    "Arguments": "Arguments",
    "Attributes": "Attributes",
    "Keyword args": "Keyword arguments",
    "Raises": "Raises",
    "Warns": "Warns",
    "Shapes": "Shapes",
    "Shape": "Shapes",
}
# Those with text.
TEXTS = {"Returns": "Returns", "Yields": "Yields", "Note": "Note", "Example": "Example"}
TEXTS["Examples"] = "Examples"
_HEADING = re.compile(rf"({'|'.join([*ITEMS, *TEXTS])}):\s*(.*)$")
_CODE = re.compile(r"(?::\w+:)?``(.+?)``|(?::\w+:)?`([^`]+)`", re.DOTALL)
_ITEM = re.compile(r"(\*{0,2}[\w.]+(?:\[[^\]]*\])?(?:, \*{0,2}[\w.]+)*(?: \([^)]*\))?):\s+(.*)$")
_PAGE = re.compile(r"docs/([\w/-]+)\.md")
_BULLET = re.compile(r"(?:[-*•]|\d+\.)\s+")

Link = Callable[[str], "str | None"]


def escaped(text: str) -> str:
    """Text without markup."""
    return re.sub(r"([\\*_|`])", r"\\\1", text)


def inline(text: str, link: Link) -> str:
    """A paragraph: code stays code, and leads to what it names where `link` knows that."""
    parts: list[str] = []
    end = 0
    for match in _CODE.finditer(text):
        parts.append(escaped(text[end : match.start()]))
        parts.append(_code(" ".join((match[1] or match[2]).split()), link))
        end = match.end()
    parts.append(escaped(text[end:]))
    found = ""
    for i, part in enumerate(parts):
        # Inline markup has to be set off from a word that follows it or goes before.
        if i % 2 and found and re.match(r"[\w({\[\"'<-]", found[-1:]) and found[-1:].isalnum():
            found += "\\ "
        if i % 2 == 0 and i and part and (part[0].isalnum() or part[0] == "\\"):
            found += "\\ "
        found += part
    return found


def _code(code: str, link: Link) -> str:
    target = link(code)
    if target is not None:
        return f":py:obj:`{escaped(code)} <{target}>`"
    if page := _PAGE.fullmatch(code):  # seen from the folder of the reference
        return f"`{code} <../../{page[1]}.html>`__"
    if code.startswith("`") or code.endswith(("`", "\\")):
        return escaped(code)
    return f"``{code}``"


def blocks(lines: list[str]) -> list[list[str]]:
    """The paragraphs: runs of lines that are not blank, each with its indentation."""
    found: list[list[str]] = [[]]
    for line in lines:
        if line.strip():
            found[-1].append(line)
        elif found[-1]:
            found.append([])
    return found if found[-1] else found[:-1]


def indent_of(line: str) -> int:
    """How many spaces a line begins with."""
    return len(line) - len(line.lstrip())


def moved(lines: Iterable[str], by: str) -> list[str]:
    """Lines with something before each that is not blank."""
    return [by + line if line.strip() else "" for line in lines]


def text(lines: list[str], link: Link) -> list[str]:
    """Text without sections: paragraphs, lists, examples and blocks after a double colon."""
    found: list[str] = []
    literal: int | None = None  # the indentation of the paragraph that a literal block follows
    for block in blocks(lines):
        first = indent_of(block[0])
        if literal is not None and first > literal:
            found += ["", *block]
            continue
        literal = None
        if block[0].lstrip().startswith(">>>"):
            body = [line[first:] for line in block]
            found += ["", " " * first + ".. code-block:: pycon", ""]
            found += moved(body, " " * (first + 3))
            continue
        found.append("")
        found += _paragraph(block, link)
        if block[-1].endswith("::"):
            literal = first
    return found[1:]


def _paragraph(block: list[str], link: Link) -> list[str]:
    """One paragraph, or the lists in it; a doctest that follows at once gets a block of its own."""
    found: list[str] = []
    start = 0
    for i, line in enumerate(block[1:], start=1):
        stripped = line.lstrip()
        if stripped.startswith(">>>"):
            return [*_paragraph(block[:i], link), "", *text(block[i:], link)]
        if _BULLET.match(stripped) and indent_of(line) <= indent_of(block[start]):
            found += [*_sentence(block[start:i], link), ""]
            start = i
    return found + _sentence(block[start:], link)


def _sentence(lines: list[str], link: Link) -> list[str]:
    first = indent_of(lines[0])
    joined = " ".join(line.strip() for line in lines)
    bullet = _BULLET.match(joined)
    end = "::" if joined.endswith("::") else ""
    if bullet:
        return [" " * first + "* " + inline(joined[bullet.end() :], link)]
    return [" " * first + inline(joined.removesuffix(end), link) + end]


def items(lines: list[str], link: Link) -> list[str]:
    """The list of a section such as ``Args:``."""
    if not lines:
        return []
    outer = min(indent_of(line) for line in lines if line.strip())
    groups: list[list[str]] = []
    for line in lines:
        if line.strip() and indent_of(line) == outer:
            groups.append([line[outer:]])
        elif groups:
            groups[-1].append(line[outer:])
    found: list[str] = []
    for group in groups:
        match = _ITEM.match(group[0])
        rest = [match[2] if match else group[0], *_outdented(group[1:])]
        body = text([line for line in rest if line is not None], link)
        name = f"**{escaped(match[1])}**: " if match else ""
        found += ["* " + name + (body[0] if body else ""), *moved(body[1:], "  "), ""]
    return found


def _outdented(lines: list[str]) -> list[str]:
    least = min((indent_of(line) for line in lines if line.strip()), default=0)
    return [line[least:] for line in lines]


def converted(docstring: str, link: Link) -> list[str]:
    """The lines of a docstring as reStructuredText."""
    lines = docstring.split("\n")
    found: list[str] = []
    plain: list[str] = []
    i = 0
    while i < len(lines):
        heading = _HEADING.match(lines[i])
        if heading is None:
            plain.append(lines[i])
            i += 1
            continue
        found += [*text(plain, link), ""]
        plain = []
        i += 1
        inside: list[str] = []
        while i < len(lines) and (not lines[i].strip() or lines[i].startswith(" ")):
            inside.append(lines[i])
            i += 1
        found += _section(heading[1], heading[2], inside, link)
    return [*found, *text(plain, link)]


def _section(title: str, first: str, inside: list[str], link: Link) -> list[str]:
    while inside and not inside[-1].strip():
        inside.pop()
    if title in ITEMS and not first:
        body = items(inside, link)
        return [f":{ITEMS[title]}:", *moved(body, "   "), ""]
    own = _outdented(inside)
    body = text([first, *own] if first else own, link)
    return [f":{(ITEMS | TEXTS)[title]}:", *moved(body, "   "), ""]
