"""Tests that say nothing about a device beside the CPU, by reason: files, or tests of them."""

from __future__ import annotations

LEFT_OUT: dict[str, list[str]] = {
    "counts what the CPU's allocator does": [
        "tests/optim/test_steps.py::test_later_steps_allocate_nothing",
    ],
    "so many small operations that opening the memory for each takes minutes": [
        "tests/autograd/test_memory.py::test_a_million_operations_in_a_row",
        "tests/ops/test_lobpcg.py::test_derivatives",
    ],
    "an error inside of a kernel comes later, when somebody waits": [
        "tests/ops/test_layout_paths.py::test_whole_division",
        "tests/ops/test_pointwise.py::test_errors",
        "tests/ops/test_pointwise.py::test_integers_wrap_and_divide",
    ],
    "states of random generators are the CPU's": [
        "tests/ops/test_random.py::test_bad_states_are_refused",
        "tests/ops/test_random.py::test_state_travels_between_libraries",
    ],
    "expects a representation that names no device": [
        "tests/autograd/test_forward_ad.py::test_repr",
    ],
    "expects that to('cpu') copies nothing": [
        "tests/ops/test_creation.py::test_to",
    ],
}


def reason_for(nodeid: str) -> str | None:
    """Why the test is left out, or None."""
    place = nodeid.partition("[")[0]
    for reason, names in LEFT_OUT.items():
        if any(place == name or place.startswith(f"{name}::") for name in names):
            return reason
    return None
