"""Each C++ type has one definition: of two with one name, the linker keeps parts of either."""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path

CSRC = Path(__file__).parents[1] / "csrc"
OPENS = re.compile(r"^(?:inline )?namespace ?([\w:]*) ?\{$")
CLOSES = re.compile(r"^\}(?:  // namespace.*)?$")
DEFINES = re.compile(
    r"^(?:template <.*> )?(?:struct|class|union|enum class) (?:alignas\(.*?\) )?(\w+)"
)


def types_of(path: Path) -> list[str]:
    """Types that other files may see, with their namespaces; formatting puts them at a line's start."""
    found, spaces = [], []
    for line in path.read_text().splitlines():
        opened, named = OPENS.match(line), DEFINES.match(line)
        if opened and not line.endswith("}"):
            spaces.append(opened[1])
        elif named and "{" in line and "" not in spaces:
            if not line[named.end() :].startswith("<"):  # a specialization
                found.append("::".join([*spaces, named[1]]))
        elif CLOSES.match(line) and "// namespace" in line and spaces:
            spaces.pop()
    return found


def test_each_type_is_defined_once():
    files = defaultdict(set)
    for path in sorted(CSRC.rglob("*.[hc]*")):
        for name in types_of(path):
            files[name].add(path.relative_to(CSRC).as_posix())
    assert "taeda::Plan" in files, "nothing is found any more"
    assert {name: where for name, where in files.items() if len(where) > 1} == {}
