"""The examples of public names: those of the docstrings, and more for the reference's pages."""

from __future__ import annotations

import doctest
import io
import sys
from typing import Any

import taeda
from tools import public_names
from tools.public_names import ROOT, Name

# Name, colon, statements and an expression; what it gives is added when it is run.
MORE = ROOT / "docs" / "reference" / "examples.txt"


def checked(name: Name) -> tuple[int, str]:
    """Run the example of a docstring.

    Returns:
        The number of its lines, and what is wrong with them, "" if nothing is.
    """
    text = public_names.documentation(name)
    if ">>>" not in text:
        return 0, ""
    home = sys.modules.get(getattr(name.value, "__module__", None) or "", taeda)
    scope = {**vars(home), "taeda": taeda}
    example = doctest.DocTestParser().get_doctest(text, scope, name.path, None, None)
    runner = doctest.DocTestRunner(verbose=False, optionflags=doctest.ELLIPSIS)
    report = io.StringIO()
    taeda.manual_seed(0)
    result = runner.run(example, out=report.write)
    return result.attempted, report.getvalue() if result.failed else ""


def run(code: str) -> list[str]:
    """The lines of an example, and what it prints."""
    *statements, expression = code.split("; ")
    scope: dict[str, Any] = {"taeda": taeda, "nn": taeda.nn}
    lines = [f">>> {line}" for line in [*statements, expression]]
    taeda.manual_seed(0)
    for statement in statements:
        exec(statement, scope)
    value = eval(expression, scope)
    return lines + ([] if value is None else repr(value).split("\n"))
