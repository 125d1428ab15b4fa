"""The examples in the docstrings of taeda.insight run, and print what they say."""

from __future__ import annotations

import doctest
import importlib
from pathlib import Path

import pytest

import taeda
import taeda.insight

FILES = sorted(Path(taeda.insight.__file__).parent.glob("*.py"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_examples_of_docstrings(path):
    name = "taeda.insight" if path.stem == "__init__" else f"taeda.insight.{path.stem}"
    module = importlib.import_module(name)
    scope = {**vars(module), "taeda": taeda}
    failed, _ = doctest.testmod(module, extraglobs=scope, optionflags=doctest.ELLIPSIS)
    assert not failed


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_files_are_read_in_one_sitting(path):
    assert len(path.read_text().splitlines()) <= 400


def test_preview_of_an_optimizer():
    finder = doctest.DocTestFinder(recurse=False)
    (example,) = finder.find(taeda.optim.Optimizer.preview, "preview", globs={"taeda": taeda})
    assert not doctest.DocTestRunner().run(example).failed
