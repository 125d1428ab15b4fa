"""Expressions that mean the same in taeda and in PyTorch."""

from __future__ import annotations

import warnings
from typing import Any


def shown(library: Any, text: str) -> str:
    """What an expression gives: its repr, or the type of the error.

    The library is `L`; statements may go before the expression, each with a semicolon after it.
    """
    *statements, expression = text.split(";")
    names: dict[str, Any] = {"L": library}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            for statement in statements:
                exec(statement.strip(), names)
            result = repr(eval(expression.strip(), names))
        except Exception as error:
            return type(error).__name__
    return " ".join(result.replace("torch", "taeda").split())
