"""The slots of parameters and buffers in a network, and the tensors that are put there."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from taeda import _C
from taeda._C import Tensor
from taeda.nn import Module
from taeda.nn._module.members import Members

__all__ = ["ModuleSlots"]


class ModuleSlots:
    """A module without values, which runs with tensors that are put in their places.

    What it ran with last may stay there, so that the next run has less to do: only for as long as
    its owner lives, who calls ``release``.

    Attributes:
        module: it. While it does not run, it is to be used by way of ``emptied``.
        buffers: the names of its buffers.
        resident: what it last ran with, if that is still there.
    """

    def __init__(self, module: Module, buffers: tuple[str, ...]) -> None:
        self.module = module
        self.buffers = buffers
        self.lock = threading.RLock()
        self.resident: dict[str, Tensor] | None = None
        self._running: dict[str, Tensor] | None = None
        self._found = _slots_of(module)
        self._slots = [
            (name, table, table._attributes() if isinstance(table, Members) else {}, key)
            for name, found in self._found.items()
            for table, key in found
        ]
        self._empty = {name: table[key] for name, table, _, key in self._slots}

    def _fill(self, tensors: dict[str, Tensor]) -> None:
        self.resident = None
        _C._put_tensors(self._slots, tensors)
        self.resident = tensors

    def _clear(self) -> None:
        self.resident = None
        _C._put_tensors(self._slots, self._empty)

    def emptied(self) -> Module:
        """The module without values."""
        with self.lock:
            if self.resident is not None and self._running is None:
                self._clear()
        return self.module

    def release(self) -> None:
        """Empty the module, unless it runs: whose tensors it holds does not need them any more."""
        if self.resident is not None and self.lock.acquire(blocking=False):
            try:
                if self._running is None:
                    self._clear()
            finally:
                self.lock.release()

    def run(self, function: Callable[[Module], Any], tensors: dict[str, Tensor]) -> Any:
        """Call a function of the module with these tensors, which stay there afterwards."""
        with self.lock:
            outer, self._running = self._running, tensors
            try:
                self._fill(tensors)
                return function(self.module)
            finally:
                self._running = outer
                if outer is not None:
                    self._fill(outer)

    def call(self, tensors: dict[str, Tensor], args: Any, kwargs: Any) -> Any:
        """``run`` the module itself."""
        with self.lock:
            outer, self._running = self._running, tensors
            try:
                self._fill(tensors)
                return self.module(*args, **kwargs)
            finally:
                self._running = outer
                if outer is not None:
                    self._fill(outer)

    def run_again(
        self, tensors: dict[str, Tensor], function: Callable[..., Any], *args: Any
    ) -> Any:
        """Call a function, which may run the module again as it last ran with these tensors.

        It does not look at what the module's forward has changed.
        """
        with self.lock:
            if self.resident is not tensors or self._running is not None:
                return self.run(lambda _: function(*args), tensors)
            self._running = tensors
            try:
                return function(*args)
            finally:
                self._running = None

    def run_alone(self, function: Callable[[Module], Any], tensors: dict[str, Tensor]) -> Any:
        """``run``, and leave nothing there."""
        with self.lock:
            try:
                return self.run(function, tensors)
            finally:
                if self._running is None:
                    self._clear()

    def held(self) -> dict[str, Tensor]:
        """The buffers that are in the module now."""
        first = {name: self._found[name][0] for name in self.buffers}
        return {name: table[key] for name, (table, key) in first.items()}


def _slots_of(module: Module) -> dict[str, list[tuple[dict[str, Any], str]]]:
    """Where each parameter and buffer is, by the name that it has in `named_parameters()`."""
    names: dict[int, str] = {}
    slots: dict[str, list[tuple[dict[str, Any], str]]] = {}
    for prefix, owner in module.named_modules(remove_duplicate=False):
        for table in (owner._parameters, owner._buffers):
            for key, value in table.items():
                if value is None:
                    continue
                name = names.setdefault(id(value), f"{prefix}.{key}" if prefix else key)
                found = slots.setdefault(name, [])
                if not any(table is other and key == k for other, k in found):
                    found.append((table, key))
    return slots
