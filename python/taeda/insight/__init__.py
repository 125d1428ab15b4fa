"""See what happens in training: what binds a model, a loss and an optimizer.

`explain` shows it as a table and finds mistakes, `wiring` draws it, `summary` measures a model,
`strict` turns silent mistakes of training loops into errors, and `record` keeps what each step did.
All are at the top level too: ``taeda.explain`` and so on. ``optimizer.preview()`` shows the next
step. None of it is loaded, or costs anything, before it is used.
"""

from __future__ import annotations

from ._context import Finding
from ._explain import Explanation, ParameterRow, explain
from ._gradients import GradientState
from ._preview import Preview, Update
from ._record import record
from ._session import TrainingMistake
from ._strict import strict
from ._summary import Layer, Summary, summary
from ._wiring import Wiring, wiring

__all__ = [
    "Explanation",
    "Finding",
    "GradientState",
    "Layer",
    "ParameterRow",
    "Preview",
    "Summary",
    "TrainingMistake",
    "Update",
    "Wiring",
    "explain",
    "record",
    "strict",
    "summary",
    "wiring",
]
