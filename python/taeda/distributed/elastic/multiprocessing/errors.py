"""Telling the launcher why a process has failed."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

__all__ = ["record"]

T = TypeVar("T", bound=Callable[..., object])


def record(fn: T) -> T:
    """Decorate a program's main function, so that the launcher says why it failed.

    An exception is written to the file that the launcher names in the environment
    (TORCHELASTIC_ERROR_FILE), and raised.

    Args:
        fn: the function.

    >>> from taeda.distributed.elastic.multiprocessing.errors import record
    >>> @record
    ... def main():
    ...     return 3
    >>> main()
    3
    """

    @functools.wraps(fn)
    def recorded(*args: object, **kwargs: object) -> object:
        try:
            return fn(*args, **kwargs)
        except Exception as error:
            path = os.environ.get("TORCHELASTIC_ERROR_FILE")
            if path:
                said = {
                    "message": f"{type(error).__name__}: {error}",
                    "extraInfo": {
                        "py_callstack": traceback.format_exc(),
                        "timestamp": str(time.time()),
                    },
                }
                with contextlib.suppress(OSError):
                    Path(path).write_text(json.dumps({"message": said}))
            raise

    return recorded  # type: ignore[return-value]
