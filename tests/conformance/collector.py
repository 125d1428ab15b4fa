"""A pytest plugin that notes how the tests of each entry went. It imports neither PyTorch nor taeda."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Outcomes:
    """How the tests of one entry went, by group."""

    groups: dict[str, Counter] = field(default_factory=dict)

    def add(self, group: str, outcome: str) -> None:
        self.groups.setdefault(group, Counter())[outcome] += 1

    def agrees(self, group: str) -> bool:
        """No test of the group failed, be it expected or not; groups without tests agree."""
        found = self.groups.get(group, Counter())
        return not found["failed"] and not found["xfailed"]


GROUPS = {
    "test_values": "values",
    "test_gradients": "gradients",
    "test_error_inputs": "forms",
    "test_method": "forms",
    "test_inplace": "forms",
    "test_out": "forms",
}
WITH_DTYPE = ("test_values", "test_gradients")


class Collector:
    """A pytest plugin that notes the outcome of every test of an entry."""

    def __init__(self) -> None:
        self.entries: dict[str, Outcomes] = {}
        self.unexpected: list[str] = []

    def pytest_runtest_logreport(self, report: Any) -> None:
        test, _, rest = report.nodeid.rpartition("::")[2].partition("[")
        if test not in GROUPS or (report.when != "call" and report.outcome == "passed"):
            return
        key = rest.removesuffix("]")
        if test in WITH_DTYPE:
            key = key.rpartition("-")[0]
        outcome = "xfailed" if hasattr(report, "wasxfail") else report.outcome
        self.entries.setdefault(key, Outcomes()).add(GROUPS[test], outcome)
        if outcome == "failed":
            self.unexpected.append(report.nodeid.rpartition("/")[2])
