"""docs/insight.md shows what its code prints, and the picture that it draws."""

from __future__ import annotations

import contextlib
import io
import re
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"
BLOCK = re.compile(r"```python\n(.*?)```(?:\n\n```text\n(.*?)```)?", re.DOTALL)
NUMBER = re.compile(r"-?\d+\.\d+(?:e[+-]?\d+)?")


def plain(text: str) -> list[str]:
    """The words of a text, with numbers and what rules them off left out."""
    return re.sub(r"-{2,}", "", NUMBER.sub("#", text)).split()


def test_output_of_the_page(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    scope: dict[str, object] = {}
    blocks = BLOCK.findall((DOCS / "insight.md").read_text())
    assert len(blocks) >= 8
    for code, expected in blocks:
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(compile(code, "insight.md", "exec"), scope)
        printed = out.getvalue()
        assert plain(printed) == plain(expected)
        for a, b in zip(NUMBER.findall(printed), NUMBER.findall(expected), strict=True):
            assert float(a) == pytest.approx(float(b), rel=0.02)
    assert (tmp_path / "wiring.svg").read_text() == (DOCS / "insight-wiring.svg").read_text()


def test_nothing_of_it_is_loaded_by_the_package():
    import subprocess

    code = "import sys, taeda; print([m for m in sys.modules if 'insight' in m])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
