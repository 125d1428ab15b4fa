"""Every public name says what it is, its example runs, and its source is where the site says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import taeda
from tools import public_examples, public_names

NAMES = public_names.names()
EVERY = [name for inside in NAMES.values() for name in inside]
ROOT = Path(__file__).resolve().parents[1]


def test_every_public_name_is_documented():
    assert [name.path for name in EVERY if not public_names.documentation(name)] == []
    assert len(EVERY) > 2900


def test_every_member_of_a_public_class_is_documented():
    bare = [
        member.path
        for name in EVERY
        if name.kind == "class" and name.module != "taeda.return_types"
        for member in public_names.members(name)
        if not public_names.described_member(name, member)
    ]
    assert bare == []


def test_the_first_line_says_what_a_name_does():
    """It is no signature, and no bare heading."""
    for name in EVERY:
        first = public_names.summary(name)
        assert first and not re.fullmatch(r"\w+\([^`]*\)|\w+:", first), name.path


def test_values_that_are_described_exist():
    paths = {name.path.removeprefix("taeda.") for name in EVERY if name.kind == "value"}
    assert set(public_names.described()) - paths == set()


@pytest.mark.parametrize("module", NAMES)
def test_examples_run(module):
    problems = [public_examples.checked(name)[1] for name in NAMES[module]]
    assert [problem for problem in problems if problem] == []


def test_examples_of_the_reference_run():
    """They are for names whose docstrings have none."""
    by_path = {name.path.removeprefix("taeda."): name for name in EVERY}
    for path, code in public_names.table(public_examples.MORE).items():
        assert ">>>" not in public_names.documentation(by_path[path]), path
        shown = public_examples.run(code)
        assert len(shown) < 16 and max(map(len, shown)) <= 130, path


def test_sources_are_found():
    """The line that a name's entry leads to has the name, or the code that makes several."""
    texts: dict[str, list[str]] = {}
    found = other = 0
    for name in EVERY:
        place = public_names.source(name)
        if place is None:
            continue
        file, line = place
        lines = texts.setdefault(file, (ROOT / file).read_text().splitlines())
        found += 1
        own = name.name.rstrip("_").removeprefix("linalg_")
        other += own not in lines[line - 1] and line > 1
    assert found > 0.94 * len(EVERY) and other < 60
    by_path = {name.path: name for name in EVERY}
    assert public_names.source(by_path["taeda.softmax"])[0] == "csrc/ops/nn/softmax.cpp"
    assert public_names.source(by_path["taeda.linalg.inv"])[0] == "csrc/ops/linalg/lu.cpp"
    assert public_names.source(by_path["taeda.relu"])[0] == "csrc/kernels/functors/activation.h"
    assert public_names.source(by_path["taeda.tanh"])[0] == "csrc/kernels/functors/math.h"
    linear = public_names.source(by_path["taeda.nn.Linear"])
    assert linear[0] == "python/taeda/nn/modules/linear.py"


def test_signatures():
    by_path = {name.path: name for name in EVERY}

    def shown(path):
        return public_names.signatures(by_path[path])

    assert shown("taeda.relu") == ["(input: Tensor) -> Tensor"]
    assert shown("taeda.Tensor.relu") == ["() -> Tensor"]
    assert len(shown("taeda.max")) == 3 and shown("taeda.pi") == [""]
    assert shown("taeda.get_default_dtype") == ["()"]
    assert shown("taeda.nn.Identity") == ["(*args, **kwargs)"]
    assert shown("taeda.nn.functional.relu") == ["(input: Tensor, inplace: bool = False) -> Tensor"]
    assert "device=None" in shown("taeda.nn.Linear")[0]


def test_named_tuples_name_their_fields():
    assert (
        taeda.return_types.max.__doc__ == "The named tuple that `max` returns: `values`, `indices`."
    )


def test_the_tests_of_mended_differences_exist():
    page = (ROOT / "docs" / "differences-met.md").read_text()
    named = re.findall(r"([\w/]+\.py)::(\w+)", page)
    missing = [
        f"{file}::{test}"
        for file, test in named
        if f"def {test}(" not in (ROOT / "tests" / file).read_text()
    ]
    assert missing == []
    assert len(named) > 180
