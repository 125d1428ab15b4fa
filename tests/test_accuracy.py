"""The errors of kernels beside references of more digits, below the bounds of docs/accuracy.md."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

import taeda
from benchmarks import levels
from benchmarks.accuracy import figures, page, table, ulps
from benchmarks.accuracy.cases import CASES
from benchmarks.accuracy.ulps import Summary
from benchmarks.rounds import ROOT
from taeda.profiler import profile

FAMILIES = list(dict.fromkeys(case.family for case in CASES.values()))
SHARE = 0.05  # of the points of the page
FOUND = figures.read()
BOUNDS = figures.bounds(FOUND, taeda.backends.cpu.get_cpu_capability())


def members(family):
    return [(key, case) for key, case in CASES.items() if case.family == family]


@pytest.mark.unsanitized("the bounds are of a build that fuses products with sums")
@pytest.mark.parametrize("family", FAMILIES)
def test_errors_are_below_their_bounds(family):
    above = {}
    for key, case in members(family):
        inputs = case.made(SHARE)
        found = ulps.summary(case.judge(inputs, table.outputs(taeda, case, inputs)))
        if not found.largest <= BOUNDS[key]:
            above[key] = (found.largest, BOUNDS[key])
    assert not above


# Whose results are small beside their scale, so that digits of theirs are worth little.
BLUNT = ("sum of 2^", "dot of", "uniform_", "geometric_")


@pytest.mark.parametrize(
    "family", ["pointwise", "matrix products", "convolutions", "normalizations"]
)
def test_a_kernel_of_fewer_digits_is_noticed(family):
    unnoticed = []
    for key, case in members(family):
        inputs = case.made(0.01)
        digits = ulps.format_of(case.dtype).digits
        worse = [y * (1 + 2.0 ** (8 - digits)) for y in table.outputs(taeda, case, inputs)]
        found = ulps.summary(case.judge(inputs, tuple(worse)))
        if found.largest <= BOUNDS[key] and not any(word in key for word in BLUNT):
            unnoticed.append((key, found.largest, BOUNDS[key]))
    assert not unnoticed


# Functions of elements whose results are exact or rounded once by their nature, by parts of names.
EXACT = (
    "shift", "bitwise", "logical", "isfinite", "isinf", "isnan", "masked_fill", "isposinf", "isneginf", "sign", "sgn",
    "ceil", "floor", "trunc", "fix", "frac", "round", "maximum", "minimum", "fmax", "fmin", "clamp",
    "clip", "relu", "hardtanh", "shrink", "threshold", "heaviside", "copysign", "nextafter", "gcd",
    "lcm", "nan_to_num", "conj_physical", "eq", "ge", "le", "lt", "gt", "ne", "greater", "less",
    "not_equal", "rsub",
)  # fmt: skip
SECOND_NAMES = ("arc", "absolute", "divide", "multiply", "subtract", "negative")


def test_every_function_of_elements_has_a_row():
    seen = set()
    for family in ("pointwise", "below the normal numbers", "losses", "complex", "special"):
        for _, case in members(family):
            if case.dtype in ("float32", "complex64"):
                inputs = case.made(0.001)
                with profile() as record:
                    table.outputs(taeda, case, inputs)
                seen |= {event.name.split("::")[-1].rstrip("_") for event in record.events()}
    known = {name.rstrip("_") for name in taeda._C._op_traits("elementwise")}
    bare = {name for name in known - seen if not any(part in name for part in SECOND_NAMES)}
    words = [word for word in EXACT if len(word) > 2]
    exact = {name for name in bare if name in EXACT or any(word in name for word in words)}
    assert bare == exact


def test_every_row_has_figures_and_all_figures_a_row():
    assert set(json.loads(figures.PATH.read_text())) == set(CASES)
    assert {level for _, _, level in FOUND} == set(levels.ENVIRONMENTS)


def test_the_page_is_of_these_figures():
    text = (ROOT / "docs" / "accuracy.md").read_text()
    versions = text.split("--write`. ")[1].split(", on one thread")[0]
    assert text == page.text(FOUND, list(levels.ENVIRONMENTS), versions)
    assert "no reason known" not in text


# ---- units in the last place


@pytest.mark.parametrize(
    ("dtype", "at", "unit"),
    [
        ("float32", 1.0, 2.0**-23),
        ("float32", -1.999, 2.0**-23),
        ("float32", 2.0, 2.0**-22),
        ("float32", 1e-45, 2.0**-149),
        ("float32", 0.0, 2.0**-149),
        ("float64", 1.0, 2.0**-52),
        ("float64", 0.0, 2.0**-1074),
        ("bfloat16", 3.0, 2.0**-6),
        ("float16", 1e-7, 2.0**-24),
        ("complex64", 1.0, 2.0**-23),
    ],
)
def test_unit(dtype, at, unit):
    assert float(ulps.unit(np.array([at]), dtype)[0]) == unit


def test_errors_of_numbers_that_are_no_numbers():
    top = np.finfo(np.float32).max
    value = np.array([math.nan, math.nan, 1.0, math.inf, -math.inf, math.inf, top], np.float32)
    reference = np.array([math.nan, 1.0, math.nan, 1e40, -math.inf, top, 1e40])
    off = ulps.errors(value, reference, "float32")
    assert off[[0, 3, 4]].tolist() == [0, 0, 0]
    assert np.isinf(off[[1, 2]]).all()
    assert off[5:].tolist() == [1, 1]


def test_errors_in_units_of_a_scale():
    value, reference = np.array([1.0]), np.array([1.0 + 2.0**-23])
    assert ulps.errors(value, reference, "float32").tolist() == [1]
    assert ulps.errors(value, reference, "float32", np.array([8.0])).tolist() == [0.125]
    both = ulps.errors(value + 1j, reference + 1j, "complex64")
    assert both.tolist() == [1, 0]
    with pytest.raises(ValueError, match="shape"):
        ulps.errors(value, np.ones(2), "float32")


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32", "float64"])
def test_inputs_are_numbers_of_the_type(dtype):
    x = np.random.default_rng(0).normal(size=1000)
    made = ulps.rounded(x, dtype)
    there = taeda.from_numpy(made.copy()).to(getattr(taeda, dtype))
    assert np.array_equal(table.to_array(there), made)
    assert np.abs(made - x).max() <= 2.0 ** (2 - ulps.FORMATS[dtype].digits)


# ---- the page


def found_of(ours, theirs):
    key = next(iter(CASES))
    return key, {
        (key, "taeda", "v4"): Summary(ours, ours / 2),
        (key, "torch", "v4"): Summary(theirs, theirs / 2),
    }


@pytest.mark.parametrize(
    ("ours", "theirs", "listed"),
    [(5.0, 2.0, True), (1.9, 0.5, False), (3.0, 2.0, False), (math.inf, 1.0, True)],
)
def test_what_is_listed_as_worse(ours, theirs, listed):
    key, found = found_of(ours, theirs)
    assert page.worse(found, key, ["v4"]) == (["v4"] if listed else [])
    assert ("None of more" in "\n".join(page.worse_lines(found, ["v4"]))) != listed


def test_numbers_on_the_page():
    assert [page.number(x) for x in (0.5, 12.34, 345.6, 7.5e15)] == [
        "0.50",
        "12.3",
        "346",
        "7.5e15",
    ]
    assert page.cell(None) == "—"


def test_bounds_of_an_unknown_instruction_set_are_the_largest():
    key = next(iter(CASES))
    found = {(key, "taeda", "v4"): Summary(1.0, 0), (key, "taeda", "v3"): Summary(2.0, 0)}
    found[key, "torch", "v4"] = Summary(9.0, 0)
    assert figures.bounds(found, "AVX512") == {key: figures.bound(1.0, key)}
    assert figures.bounds(found, "none of them") == {key: figures.bound(2.0, key)}


def test_bound():
    assert figures.bound(0.2, "pointwise/exp/float32") == 0.51
    assert figures.bound(2.0, "pointwise/exp/float32") == 2.6
    assert figures.bound(2.0, "linear algebra/qr/float32") == 10.4


def test_reasons_are_of_whole_rows():
    assert page.reason("linear algebra/eigh of 60 x 60/float32").startswith("our own")
    assert "Winograd" in page.reason("convolutions/winograd, gradient of the weight/float32")
    assert page.reason("none of them") == "no reason known"
