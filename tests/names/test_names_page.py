"""The count of PyTorch's names that taeda has, and docs/names.md."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys

import pytest

from tests.names import ours, theirs


def test_each_missing_name_has_a_reason():
    lacking = [f"{path}.{name}" for path, names in ours.missing().items() for name in names]
    assert [name for name in lacking if not ours.reason(name)] == []
    unused = [p for p in ours.REASONS if not any(re.fullmatch(p, name) for name in lacking)]
    assert unused == []


def test_the_page_lists_them():
    assert ours.PAGE.read_text() == ours.page(), "run python -m tests.names.ours"
    assert ours.KNOWN.read_text() == ours.known(), "run python -m tests.names.ours"


def test_the_list_is_pytorchs():
    torch = pytest.importorskip("torch", reason="compares with PyTorch")
    if not torch.__version__.startswith("2.13."):
        pytest.skip("the list is of PyTorch 2.13")
    # In a process of its own: importing every module of PyTorch changes settings of logging.
    program = "from tests.names import theirs\nprint(theirs.text(), end='')"
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    listed = theirs.LIST.read_text()
    if importlib.util.find_spec("tensorboard") is None:  # without which PyTorch hides these names
        listed = re.sub(r"^torch\.utils\.tensorboard.*\n", "", listed, flags=re.MULTILINE)
    assert done.stdout == listed
