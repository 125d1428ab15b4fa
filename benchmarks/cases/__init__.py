"""What is measured. A case prepares its data and returns the function to time.

Each case is given the framework as a module (`taeda` or `torch`), so both run the same text.
"""

from __future__ import annotations

from benchmarks.cases import compute, files, memory, overhead, training  # each adds its cases
from benchmarks.cases.table import CASES, Case

__all__ = ["CASES", "Case", "compute", "files", "memory", "overhead", "training"]
