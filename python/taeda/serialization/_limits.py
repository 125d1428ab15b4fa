"""What a file may cost: one place that bounds the memory, the depth and the steps of every reader.

A few bytes of a file can ask for gigabytes (compressed members, sizes that are not there, storages
read twice) or for hours (a tuple of a tuple of a tuple ... compared with its like). Each reader
charges what it is about to do to a budget, before it does it.
"""

from __future__ import annotations

import threading
from collections import Counter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Budget", "TooCostlyError", "brief", "current"]

FACTOR = 100  # bytes of memory for each byte of a file
SPARE = 64 << 20  # and these for any file
_STEPS_PER_BYTE, _SPARE_STEPS = 64, 4 << 20
_LARGEST_KEY, _DEEPEST_KEY = 10_000, 100
_MOST_INT = 2**63 - 1


class TooCostlyError(RuntimeError):
    """A file asks for more memory, or for more steps, than its size justifies."""


class Budget:
    """The memory and the steps that reading one file may still take.

    Args:
        label: names the file in messages.
        size: its bytes.
        max_memory: the bytes of memory allowed; by default ``FACTOR`` times its size, and
            ``SPARE``. The steps grow with it.

    Raises:
        ValueError: ``max_memory`` is not positive.
        TypeError: ``max_memory`` is no integer.
    """

    def __init__(self, label: str, size: int, max_memory: int | None = None) -> None:
        usual = FACTOR * size + SPARE
        if max_memory is not None:
            if type(max_memory) is not int:
                raise TypeError(
                    f"load: max_memory must be an int or None, got {type(max_memory).__name__}"
                )
            if max_memory <= 0:
                raise ValueError(f"load: max_memory must be positive, got {max_memory}")
        self.label, self.size = label, size
        self.memory = usual if max_memory is None else max_memory
        self.used = 0
        self.steps = _STEPS_PER_BYTE * size + _SPARE_STEPS
        self.steps *= max(1, -(-self.memory // usual))
        # Checks for after the storages' values have been read, in formats that have them last.
        self.unfilled: list[Callable[[], Any]] | None = None
        self._keys: Counter[tuple[int, int]] = Counter()

    def take(self, size: int, what: str) -> None:
        """Charge ``size`` bytes of memory."""
        self.used += size
        if self.used > self.memory:
            raise TooCostlyError(
                f"load: {self.label} is refused: its {self.size} bytes would unpack to more than "
                f"{self.memory} bytes of memory ({what}), as a zip bomb's do; max_memory=... "
                "allows more"
            )

    def step(self, count: int) -> None:
        """Charge ``count`` steps, about 10 to 100 nanoseconds each."""
        self.steps -= count
        if self.steps < 0:
            raise TooCostlyError(
                f"load: {self.label} is refused: its {self.size} bytes take more steps to read "
                "than such a file can need; a larger max_memory=... allows more"
            )

    def key(self, container: Any, key: Any) -> Any:
        """``key``, charged for being hashed and compared with those like it in ``container``.

        Raises:
            ValueError: it holds so many tuples in tuples that this would take for ever.
        """
        kind = type(key)
        if kind is str:
            return key
        size = 1 if kind is int else _size_of_key(key)
        if kind is not int or not -_MOST_INT <= key <= _MOST_INT:
            size += _text_size(key)
        self.step(size)
        if kind is int and -1 < key < _LARGEST_KEY:
            return key
        # Keys whose hashes are equal are compared one by one.
        place = id(container), hash(key)
        self._keys[place] += 1
        self.take(200, "keys of dicts")
        if self._keys[place] > 1:
            self.step(size * self._keys[place])
        return key


def _text_size(key: Any) -> int:
    if isinstance(key, int):
        return key.bit_length() // 64
    return len(key) // 64 if isinstance(key, (str, bytes)) else 0


def _size_of_key(key: Any) -> int:
    """How many objects are visited to hash ``key``, each as often as it is met."""
    count, waiting = 1, [(key, 0)]
    while waiting:
        item, depth = waiting.pop()
        if type(item) not in (tuple, frozenset):
            continue
        count += len(item)
        if count > _LARGEST_KEY or depth > _DEEPEST_KEY:
            raise ValueError("a key of a dict or an item of a set is too large")
        waiting += [(part, depth + 1) for part in item]
    return count


_local = threading.local()


class _Unlimited(Budget):
    """For streams that are read outside of ``load``."""

    def __init__(self) -> None:
        super().__init__("the file", 1 << 40)


def current() -> Budget:
    """The budget of the file that this thread is reading."""
    budget: Budget = getattr(_local, "budget", None) or _Unlimited()
    return budget


def is_reading() -> bool:
    """Whether this thread is reading a file whose budget is known."""
    return getattr(_local, "budget", None) is not None


class reading:
    """The ``with`` block in which a budget is the thread's current one."""

    def __init__(self, budget: Budget) -> None:
        self._budget = budget

    def __enter__(self) -> Budget:
        self._before = getattr(_local, "budget", None)
        _local.budget = self._budget
        return self._budget

    def __exit__(self, *exc: object) -> None:
        _local.budget = self._before


def brief(value: Any, most: int = 200) -> str:
    """``value`` for a message: never longer than ``most``, and in as few steps."""
    return _brief(value, most, 3)[:most]


def _brief(value: Any, most: int, depth: int) -> str:
    kind = type(value)
    if kind in (str, bytes, bytearray):
        text = repr(value[:most])
        return text if len(value) <= most and len(text) <= most else f"{text[: most - 3]}..."
    if kind is int:
        wide = value.bit_length() > 256
        return f"an integer of {value.bit_length()} bits" if wide else repr(value)
    if kind in (float, bool, complex, type(None)):
        return repr(value)
    if kind not in (tuple, list, dict, set, frozenset):
        return _own_text(value, most)
    if not value:
        return repr(value)
    if depth == 0:
        return "..."
    open_, close = "()" if kind is tuple else "[]" if kind is list else "{}"
    parts: list[str] = []
    used = 0
    for item in value.items() if kind is dict else value:
        if len(parts) == 8 or used > most:
            parts.append("...")
            break
        if kind is dict:
            pair = (_brief(part, most // 2, depth - 1) for part in item)
            parts.append(": ".join(pair))
        else:
            parts.append(_brief(item, most // 2, depth - 1))
        used += len(parts[-1])
    text = open_ + ", ".join(parts) + ("," if kind is tuple and len(value) == 1 else "") + close
    return text if len(text) <= most else f"{text[: most - 4]}...{close}"


def _own_text(value: Any, most: int) -> str:
    """The ``repr`` of an object that taeda knows to be short; else its type."""
    import taeda

    from ._rebuild import TorchName  # which is written by these functions

    if isinstance(value, type):
        return repr(value)[:most]
    if isinstance(value, (TorchName, taeda.dtype, taeda.device, taeda.layout)):
        return repr(value)
    if isinstance(value, taeda.Size):
        return f"taeda.Size([{', '.join(map(str, value[:8]))}{', ...' if len(value) > 8 else ''}])"
    if isinstance(value, taeda.Tensor):
        return f"a tensor of shape {_own_text(taeda.Size(value.shape), most)}"
    if callable(value) and hasattr(value, "__qualname__"):
        return f"{value.__module__}.{value.__qualname__}"[:most]
    return f"an object of {type(value).__module__}.{type(value).__qualname__}"[:most]
