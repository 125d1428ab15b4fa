"""Finds and calls the rule of an operation with batched tensors."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Sequence
from typing import Any

from taeda import _C
from taeda._batching.tensor import BatchedTensor, Level, level_of, wrap
from taeda._C import Tensor

ops = _C.ops

ESCAPED = (
    "Either your tensor may have escaped from inside a function being vmapped and this is a user "
    "error, or it belongs to a vmap of another thread."
)


class Op:
    """An operation's overload, as passed to its rule.

    Attributes:
        name: without the underscore at the end of an in-place form.
        args: the arguments' names.
        kinds: their types, as in the schema.
        tensors: the positions of those that are tensors.
        function: calls it.
        inplace: whether it changes its first argument.
        mutated: the positions of the arguments that it changes, by its schema.
        form: the rule that its row says (`vmap`), and the ranks that go with it.
    """

    def __init__(self, name: str, schema: str, function: Any, traits: dict[str, Any]) -> None:
        self.full_name = name
        self.inplace = traits["inplace"] or (
            name.endswith("_") and not name.endswith("__") and "self!" in schema
        )
        self.name = name[:-1] if self.inplace else name
        self.function = function
        self.composite = traits["composite"]
        self.elementwise = traits["elementwise"]
        self.form: str | None = None
        self.ranks: list[int] = []
        if traits["vmap"]:
            self.form, *self.ranks = traits["vmap"]
        self.mutated: list[int] = []
        self.args: list[str] = []
        self.kinds: list[str] = []
        self.positional = 0
        for part in _arguments(schema):
            if part == "*":
                self.positional = len(self.args)
                continue
            arg, kind = part.split(":")
            if arg.endswith("!"):
                self.mutated.append(len(self.args))
            self.args.append(arg.rstrip("!"))
            self.kinds.append(kind.split("=")[0].strip())
        self.tensors = [i for i, k in enumerate(self.kinds) if k in ("Tensor", "Tensor?")]
        if ", *" not in schema and "(*" not in schema:
            self.positional = len(self.args)

    def position(self, name: str) -> int | None:
        """The position of the argument of this name, or None."""
        return self.args.index(name) if name in self.args else None

    def call(self, args: Sequence[Any]) -> Any:
        """Call it, with all of its arguments in order."""
        n = self.positional
        if n == len(args):
            return self.function(*args)
        return self.function(*args[:n], **dict(zip(self.args[n:], args[n:], strict=True)))


def _arguments(schema: str) -> list[str]:
    """The arguments in a schema, without the commas inside of brackets."""
    text = schema[schema.index("(") + 1 : schema.rindex(") ->")]
    parts, depth, start = [], 0, 0
    for i, c in enumerate(text):
        depth += (c in "[(") - (c in "])")
        if c == "," and not depth:
            parts.append(text[start:i].strip())
            start = i + 1
    parts.append(text[start:].strip())
    return [part for part in parts if part]


Rule = Callable[[Op, Level, Sequence[Any]], Any]

# Rules of single operations by name, and those of what is composed of others, for the whole of it.
RULES: dict[str, Rule] = {}
WHOLE: dict[str, Rule] = {}


def rule(*names: str, whole: bool = False) -> Callable[[Rule], Rule]:
    """Make a function the rule of operations, and of their in-place forms.

    Args:
        names: without the underscore at the end of an in-place form.
        whole: they are composed of others, and this is the rule of the whole.

    Raises:
        ValueError: there is no operation of this name, or it has a rule already.
    """
    table = WHOLE if whole else RULES

    def register(function: Rule) -> Rule:
        for name in names:
            if not (hasattr(ops, name) or hasattr(ops, name + "_")):
                raise ValueError(f"rule(): there is no operation {name!r}")
            if name in table or name in _by_row():
                raise ValueError(f"rule(): {name!r} has a rule already")
            table[name] = function
        return function

    return register


@functools.cache
def _by_row() -> dict[str, Any]:
    return _C._op_traits("vmap")


# ---- generic rules ----------------------------------------------------------


def as_it_is(op: Op, level: Level, args: Sequence[Any]) -> Any:
    """Run the operation: it is composed of others, or reads no elements."""
    return NotImplemented


def check_target(op: Op, level: Level, args: Sequence[Any]) -> None:
    """Raise RuntimeError unless the tensor that is changed in place is batched."""
    target = args[0]
    if type(target) is BatchedTensor and target._level is level:
        return
    raise RuntimeError(
        f"vmap: inplace arithmetic(self, *extra_args) is not possible: {op.full_name}() would "
        "write a Tensor that is vmapped over into `self`, which is not being vmapped over. Please "
        "try to use out-of-place operators instead of inplace arithmetic."
    )


def refuse(op: Op, args: Sequence[Any]) -> Any:
    """Raise the operation's own error about the shapes of its arguments for one element.

    For a value, which has one more dimension, it would be no error.
    """
    op.call(
        [
            ops.empty(a.shape, dtype=a.dtype, device=a.device) if isinstance(a, Tensor) else a
            for a in args
        ]
    )
    shapes = [list(a.shape) for a in args if isinstance(a, Tensor)]
    raise RuntimeError(f"vmap: {op.full_name}() does not take tensors of shapes {shapes}")


def wrapped(result: Any, level: Level) -> Any:
    """Hide the first dimension of each tensor of a result."""
    if isinstance(result, Tensor):
        return wrap(result, level)
    return tuple(wrap(item, level) for item in result)


_warned: set[str] = set()


def one_by_one(op: Op, level: Level, args: Sequence[Any]) -> Any:
    """Run the operation for each element of the batch, and stack the results."""
    if op.full_name not in _warned:
        _warned.add(op.full_name)
        warnings.warn(
            "There is a performance drop because we have not yet implemented the batching rule for "
            f"{op.full_name}.",
            UserWarning,
            stacklevel=2,
        )
    return loop(op, level, args)


def loop(op: Op, level: Level, args: Sequence[Any]) -> Any:
    """As `one_by_one`, without the warning."""
    if op.inplace:
        check_target(op, level, args)
    for i in op.mutated:
        if args[i] is not None and level_of(args[i]) is not level:
            check_target(op, level, [args[i]])
    if level.size == 0:
        raise RuntimeError(
            f"vmap: {op.full_name}() has no batching rule for a mapped dimension of size 0"
        )
    results = [op.call([_element(a, level, i) for a in args]) for i in range(level.size)]
    if op.inplace:
        return args[0]
    if results[0] is None:
        return None
    if isinstance(results[0], Tensor):
        return wrap(ops.stack(results), level)
    if not isinstance(results[0], (tuple, list)):
        raise RuntimeError(
            f"Batching rule not implemented for {op.full_name}. We could not generate a fallback."
        )
    return tuple(wrap(ops.stack(column), level) for column in zip(*results, strict=True))


def _element(x: Any, level: Level, i: int) -> Any:
    if type(x) is BatchedTensor and x._level is level:
        return x._value.select(0, i)
    if type(x) is tuple and x and not isinstance(x[0], (int, float)):
        return tuple(_element(item, level, i) for item in x)
    return x
