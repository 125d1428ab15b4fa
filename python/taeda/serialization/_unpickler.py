"""The reading half of checkpoints: pickle streams, run without running code.

A pickle stream is a program for a small stack machine. Python's own machine lets that program
import and call anything; the one here knows the same opcodes, but a program can name only what is
on a list, and can call only the functions on it that check their arguments.
"""

from __future__ import annotations

import pickle
import struct
from typing import TYPE_CHECKING, Any

from . import _rebuild
from ._limits import TooCostlyError, brief, current
from ._safe import allowed_objects

if TYPE_CHECKING:
    from collections.abc import Callable

UnpicklingError = pickle.UnpicklingError

_INT, _LONG, _FLOAT = struct.Struct("<i"), struct.Struct("<Q"), struct.Struct(">d")


class _Stop(Exception):
    """Carries the result out of the loop; no error."""


class SafeUnpickler:
    """Runs one pickle stream with only the names on the list.

    Args:
        data: the stream.
        load_storage: makes the storage that a persistent id (a tuple) describes.
        stand_in: makes a class, which must be harmless, in place of each name not on the list.
    """

    def __init__(
        self,
        data: Any,
        load_storage: Callable[[Any], Any],
        stand_in: Callable[[str], type] | None = None,
    ) -> None:
        self._data = memoryview(data)
        self._budget = current()
        self._load_storage = load_storage
        self._stand_in = stand_in
        self._at = 0
        self._stack: list[Any] = []
        self._outer: list[list[Any]] = []  # the stacks below each open mark
        self._memo: dict[int, Any] = {}
        self._allowed = allowed_objects()
        self._allowed_ids = {id(value) for value in self._allowed.values()}

    @property
    def position(self) -> int:
        """How many bytes of the stream have been read."""
        return self._at

    def load(self) -> Any:
        """Run the stream and return the object it describes.

        Raises:
            pickle.UnpicklingError: the stream is broken, or names what is not on the list.
        """
        opcodes, data, costs, spent = _OPCODES, self._data, _COSTS, 0
        start = 0
        try:
            while True:
                start = self._at
                code = data[start]
                opcode = opcodes.get(code)
                if opcode is None:
                    raise UnpicklingError(f"there is no opcode {bytes(data[start : start + 1])!r}")
                spent += costs[code]
                if spent > _CHARGED_AT_ONCE:
                    self._budget.take(spent, "its objects")
                    spent = 0
                self._at = start + 1
                opcode(self)
        except _Stop as stop:
            return stop.args[0]
        except UnpicklingError as error:
            text = str(error)
            if text.startswith("load:"):
                raise
            raise UnpicklingError(self._broken(start, text)) from error.__cause__
        except TooCostlyError:
            raise
        except (
            LookupError, TypeError, ValueError, AttributeError, OverflowError, RecursionError,
            RuntimeError,
        ) as error:  # fmt: skip
            if str(error).startswith("load:"):
                raise
            text = f"{type(error).__name__}: {str(error)[:500]}"
            raise UnpicklingError(self._broken(start, text)) from error

    def _broken(self, at: int, why: str) -> str:
        size = len(self._data)
        return f"load: the file's pickle stream is not valid at byte {at} of {size}: {why}"

    # Reading from the stream

    def _take(self, count: int) -> memoryview:
        start, end = self._at, self._at + count
        if end > len(self._data):
            raise UnpicklingError(f"it ends {end - len(self._data)} bytes too soon")
        self._at = end
        if count > 1000:
            self._budget.take(2 * count, "its texts")
        return self._data[start:end]

    def _byte(self) -> int:
        return self._take(1)[0]

    def _uint(self, count: int) -> int:
        return int.from_bytes(self._take(count), "little")

    def _text(self, count: int) -> str:
        return str(self._take(count), "utf-8", "surrogatepass")

    def _line(self) -> str:
        rest = self._data[self._at : self._at + 1000].tobytes()
        end = rest.find(b"\n")
        if end < 0:
            raise UnpicklingError("a line does not end")
        self._at += end + 1
        return rest[:end].decode()

    # The stack

    def _push(self, value: Any) -> None:
        self._stack.append(value)

    def _pop_mark(self) -> list[Any]:
        items = self._stack
        self._stack = self._outer.pop()
        return items

    def _open_mark(self) -> None:
        self._outer.append(self._stack)
        self._stack = []

    def _pop(self) -> None:
        if self._stack:
            del self._stack[-1]
        else:
            self._pop_mark()

    def _push_tuple(self, count: int) -> None:
        items = self._stack[len(self._stack) - count :]
        if len(items) < count:
            raise IndexError("the stack is empty")
        del self._stack[len(self._stack) - count :]
        self._push(tuple(items))

    def _protocol(self) -> None:
        version = self._byte()
        if version > pickle.HIGHEST_PROTOCOL:
            raise UnpicklingError(f"it is of pickle protocol {version}, which is not known")

    def _integer(self, count: int) -> None:
        self._push(int.from_bytes(self._take(count), "little", signed=True))

    def _memoize(self, key: int) -> None:
        self._memo[key] = self._stack[-1]

    def _extend(self) -> None:
        items, target = self._pop_mark(), self._stack[-1]
        self._only(target, list, "a list")
        target.extend(items)

    def _append(self) -> None:
        item, target = self._stack.pop(), self._stack[-1]
        self._only(target, list, "a list")
        target.append(item)

    def _set_items(self, items: list[Any]) -> None:
        target = self._stack[-1]
        self._only(target, dict, "a dict")
        if len(items) % 2:
            raise UnpicklingError("a dict has a key without a value")
        for i in range(0, len(items), 2):
            target[self._budget.key(target, items[i])] = items[i + 1]

    def _set_item(self) -> None:
        value, key = self._stack.pop(), self._stack.pop()
        self._set_items([key, value])

    def _make_dict(self) -> None:
        items = self._pop_mark()
        self._push({})
        self._set_items(items)

    def _add_items(self) -> None:
        items, target = self._pop_mark(), self._stack[-1]
        self._only(target, set, "a set")
        for item in items:
            target.add(self._budget.key(target, item))

    def _only(self, target: Any, kind: type, words: str) -> None:
        if not isinstance(target, kind):
            raise UnpicklingError(f"{type(target).__name__} is used as {words}")

    # Names and calls

    def _find(self, module: str, name: str) -> None:
        full_name = f"{module}.{name}"
        value = self._allowed.get(full_name)
        if value is None and module == "__builtin__":
            value = self._allowed.get(f"builtins.{name}")
        if value is None:
            value = _rebuild.lookup(full_name)
        if value is None and self._stand_in is not None:
            self._budget.take(2000, "the classes it names")
            value = self._allowed[full_name] = self._stand_in(full_name)
            self._allowed_ids.add(id(value))
        if value is None:
            shown, name = full_name[:300], name[:300]
            raise UnpicklingError(
                f"load: weights only load failed: the file refers to {shown}, which is not "
                "among the names that a file may use by default. If you trust the file, allow "
                f"this name with taeda.serialization.add_safe_globals([{name}]) or `with "
                f"taeda.serialization.safe_globals([{name}]):`. Loading with weights_only=False "
                "accepts every name, and lets the file run any code it contains."
            )
        self._push(value)

    def _find_stacked(self) -> None:
        name, module = self._stack.pop(), self._stack.pop()
        if type(name) is not str or type(module) is not str:
            raise UnpicklingError("a name is not a string")
        self._find(module, name)

    def _is_allowed(self, value: Any) -> bool:
        return id(value) in self._allowed_ids

    def _reduce(self) -> None:
        args, function = self._stack.pop(), self._stack.pop()
        if not self._is_allowed(function) and not _rebuild.is_callable_by_files(function):
            raise UnpicklingError(f"{brief(function)} is called, which is not allowed")
        self._only(args, tuple, "the arguments of a call")
        self._push(function(*args))

    def _new_object(self, *, keywords: bool) -> None:
        given: Any = self._stack.pop() if keywords else {}
        args, kind = self._stack.pop(), self._stack.pop()
        self._only(args, tuple, "the arguments of a call")
        self._only(given, dict, "the arguments of a call")
        if isinstance(kind, type) and self._is_allowed(kind):
            self._push(kind.__new__(kind, *args, **given))
        elif _rebuild.is_callable_by_files(kind) and not given:
            self._push(kind(*args))
        else:
            raise UnpicklingError(f"an object of {brief(kind)} is made, which is not allowed")

    def _build(self) -> None:
        state, target = self._stack.pop(), self._stack[-1]
        if self._is_allowed(type(target)):
            set_state = getattr(target, "__setstate__", None)
            if set_state is not None:
                set_state(state)
                return
        elif not _rebuild.may_have_attributes(target):
            raise UnpicklingError(f"attributes of a {type(target).__name__} are set")
        _rebuild.set_attributes(target, state)

    def _make_frozenset(self) -> None:
        items, made = self._pop_mark(), object()
        self._push(frozenset([self._budget.key(made, item) for item in items]))

    def _persistent(self) -> None:
        self._push(self._load_storage(self._stack.pop()))

    def _stop(self) -> None:
        value = self._stack.pop()
        if self._stack or self._outer:
            raise UnpicklingError("it ends with more than one object")
        raise _Stop(value)


def _opcodes() -> dict[int, Callable[[SafeUnpickler], None]]:
    m = SafeUnpickler
    table: dict[bytes, Callable[[Any], None]] = {
        # Stream and stack
        pickle.PROTO: m._protocol,
        pickle.FRAME: lambda s: s._take(8) and None,
        pickle.STOP: m._stop,
        pickle.MARK: m._open_mark,
        pickle.POP: m._pop,
        pickle.POP_MARK: lambda s: s._pop_mark() and None,
        pickle.DUP: lambda s: s._push(s._stack[-1]),
        # The memo
        pickle.BINPUT: lambda s: s._memoize(s._byte()),
        pickle.LONG_BINPUT: lambda s: s._memoize(s._uint(4)),
        pickle.MEMOIZE: lambda s: s._memoize(len(s._memo)),
        pickle.BINGET: lambda s: s._push(s._memo[s._byte()]),
        pickle.LONG_BINGET: lambda s: s._push(s._memo[s._uint(4)]),
        # Constants and numbers
        pickle.NONE: lambda s: s._push(None),
        pickle.NEWTRUE: lambda s: s._push(True),
        pickle.NEWFALSE: lambda s: s._push(False),
        pickle.BININT: lambda s: s._push(_INT.unpack(s._take(4))[0]),
        pickle.BININT1: lambda s: s._push(s._byte()),
        pickle.BININT2: lambda s: s._push(s._uint(2)),
        pickle.LONG1: lambda s: s._integer(s._byte()),
        pickle.LONG4: lambda s: s._integer(s._uint(4)),
        pickle.BINFLOAT: lambda s: s._push(_FLOAT.unpack(s._take(8))[0]),
        # Text and bytes
        pickle.SHORT_BINUNICODE: lambda s: s._push(s._text(s._byte())),
        pickle.BINUNICODE: lambda s: s._push(s._text(s._uint(4))),
        pickle.BINUNICODE8: lambda s: s._push(s._text(s._uint(8))),
        pickle.SHORT_BINSTRING: lambda s: s._push(str(s._take(s._byte()), "latin1")),
        pickle.BINSTRING: lambda s: s._push(str(s._take(s._uint(4)), "latin1")),
        pickle.SHORT_BINBYTES: lambda s: s._push(bytes(s._take(s._byte()))),
        pickle.BINBYTES: lambda s: s._push(bytes(s._take(s._uint(4)))),
        pickle.BINBYTES8: lambda s: s._push(bytes(s._take(s._uint(8)))),
        pickle.BYTEARRAY8: lambda s: s._push(bytearray(s._take(s._uint(8)))),
        # Containers
        pickle.EMPTY_TUPLE: lambda s: s._push(()),
        pickle.TUPLE1: lambda s: s._push_tuple(1),
        pickle.TUPLE2: lambda s: s._push_tuple(2),
        pickle.TUPLE3: lambda s: s._push_tuple(3),
        pickle.TUPLE: lambda s: s._push(tuple(s._pop_mark())),
        pickle.EMPTY_LIST: lambda s: s._push([]),
        pickle.LIST: lambda s: s._push(s._pop_mark()),
        pickle.APPEND: m._append,
        pickle.APPENDS: m._extend,
        pickle.EMPTY_DICT: lambda s: s._push({}),
        pickle.DICT: m._make_dict,
        pickle.SETITEM: m._set_item,
        pickle.SETITEMS: lambda s: s._set_items(s._pop_mark()),
        pickle.EMPTY_SET: lambda s: s._push(set()),
        pickle.ADDITEMS: m._add_items,
        pickle.FROZENSET: m._make_frozenset,
        # Names, calls and storages
        pickle.GLOBAL: lambda s: s._find(s._line(), s._line()),
        pickle.STACK_GLOBAL: m._find_stacked,
        pickle.REDUCE: m._reduce,
        pickle.NEWOBJ: lambda s: s._new_object(keywords=False),
        pickle.NEWOBJ_EX: lambda s: s._new_object(keywords=True),
        pickle.BUILD: m._build,
        pickle.BINPERSID: m._persistent,
    }
    return {code[0]: action for code, action in table.items()}


_OPCODES = _opcodes()

# About how many bytes of memory each opcode takes, at most; texts are charged by their length.
_CHARGED_AT_ONCE = 1 << 20
_COSTS = [48] * 256
for _code, _cost in {
    pickle.MARK: 72, pickle.MEMOIZE: 140, pickle.BINPUT: 120, pickle.LONG_BINPUT: 140,
    pickle.EMPTY_LIST: 96, pickle.LIST: 96, pickle.APPEND: 16, pickle.EMPTY_DICT: 80,
    pickle.DICT: 240, pickle.SETITEM: 120, pickle.EMPTY_SET: 232, pickle.FROZENSET: 232,
    pickle.TUPLE: 64, pickle.TUPLE1: 64, pickle.TUPLE2: 72, pickle.TUPLE3: 80,
    pickle.REDUCE: 300, pickle.NEWOBJ: 300, pickle.NEWOBJ_EX: 300, pickle.BINPERSID: 300,
    pickle.BINGET: 8, pickle.LONG_BINGET: 8, pickle.DUP: 8, pickle.POP: 0, pickle.POP_MARK: 0,
    pickle.BYTEARRAY8: 80, pickle.BUILD: 0, pickle.STOP: 0, pickle.FRAME: 0, pickle.PROTO: 0,
    pickle.NONE: 8, pickle.NEWTRUE: 8, pickle.NEWFALSE: 8,
}.items():  # fmt: skip
    _COSTS[_code[0]] = _cost


class AnyUnpickler(pickle.Unpickler):
    """Python's unpickler, which runs arbitrary code; PyTorch's names are mapped to taeda's."""

    def __init__(self, file: Any, load_storage: Callable[[Any], Any]) -> None:
        super().__init__(file)
        self.persistent_load = load_storage  # type: ignore[method-assign]

    def find_class(self, module: str, name: str) -> Any:
        """The object for ``module.name``; names under ``torch`` are looked up under ``taeda``."""
        known = allowed_objects().get(f"{module}.{name}") or _rebuild.lookup(f"{module}.{name}")
        if known is not None and module.partition(".")[0] == "torch":
            return known
        package, _, rest = module.partition(".")
        if package not in ("torch", "taeda"):
            return super().find_class(module, name)
        import importlib

        path = f"taeda.{rest}" if rest else "taeda"
        if rest == "_C._nn":  # PyTorch's place for some functions of nn.functional
            path = "taeda.nn.functional"
        # A class may be in a different file than in PyTorch; its package exports it in both.
        while path:
            try:
                return getattr(importlib.import_module(path), name)
            except (ImportError, AttributeError):
                path = path.rpartition(".")[0]
        raise UnpicklingError(f"load: the file refers to {module}.{name}, which taeda lacks")
