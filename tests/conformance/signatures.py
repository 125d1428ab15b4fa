"""Calls of every operation in all the ways that its signature allows, made from the database's samples.

A sample says what to compute; a signature of PyTorch's in how many ways that can be written: arguments by
position in the order of the schema, with the defaults between them or all of them written out, or by
keyword, as a function or as a method. The signatures that PyTorch has deprecated and still takes come
from the table OLD.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any, NamedTuple

import torch

__all__ = ["OLD", "Call", "calls", "old_calls"]

# Deprecated signatures: numbers in front of what they multiply.
OLD = {
    "add": ["self alpha other"],
    "sub": ["self alpha other"],
    "addbmm": ["beta self alpha batch1 batch2", "beta self batch1 batch2"],
    "addcdiv": ["self value tensor1 tensor2"],
    "addcmul": ["self value tensor1 tensor2"],
    "addmm": ["beta self alpha mat1 mat2", "beta self mat1 mat2"],
    "addmv": ["beta self alpha mat vec", "beta self mat vec"],
    "addr": ["beta self alpha vec1 vec2", "beta self vec1 vec2"],
    "baddbmm": ["beta self alpha batch1 batch2", "beta self batch1 batch2"],
}


class Call(NamedTuple):
    """One way to write a call. `form`: its name; `method`: whether the first argument is the object."""

    form: str
    method: bool
    args: tuple[Any, ...]
    kwargs: dict[str, Any]


class _Parameter(NamedTuple):
    name: str
    keyword_only: bool
    has_default: bool
    default: Any


def _schemas(op: Any) -> list[list[_Parameter]]:
    """The parameters of each overload of an operation, or of the function written in Python."""
    if inspect.isbuiltin(op.op) or type(op.op).__name__ == "builtin_function_or_method":
        packet = getattr(torch.ops.aten, op.aten_name or op.name, None)
        if packet is None:
            return []
        found = []
        for name in packet.overloads():
            schema = getattr(packet, name)._schema
            if any(a.is_out for a in schema.arguments) or name.endswith("names"):
                continue
            found.append(
                [
                    _Parameter(a.name, a.kwarg_only, a.has_default_value(), a.default_value)
                    for a in schema.arguments
                ]
            )
        return found
    if op.op.__name__ == "<lambda>":  # of the database's own
        return []
    try:
        parameters = inspect.signature(op.op).parameters.values()
    except (TypeError, ValueError):
        return []
    kinds = inspect.Parameter
    if any(p.kind in (kinds.VAR_POSITIONAL, kinds.VAR_KEYWORD) for p in parameters):
        return []
    return [
        [
            _Parameter(
                p.name, p.kind is kinds.KEYWORD_ONLY, p.default is not kinds.empty, p.default
            )
            for p in parameters
        ]
    ]


def _bound(parameters: list[_Parameter], sample: Any) -> dict[str, Any] | None:
    """The sample's arguments by name, or None if they do not fit."""
    given = (sample.input, *sample.args)
    places = [p.name for p in parameters if not p.keyword_only]
    if len(given) > len(places):
        return None
    values = dict(zip(places, given, strict=False))
    for name, value in sample.kwargs.items():
        if name in values or not any(p.name == name for p in parameters):
            return None
        values[name] = value
    if any(p.name not in values and not p.has_default for p in parameters):
        return None
    return values


def _by_position(
    parameters: list[_Parameter], values: dict[str, Any], all_of_them: bool
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    places = [p for p in parameters if not p.keyword_only]
    last = max((i for i, p in enumerate(places) if p.name in values), default=-1)
    if all_of_them:
        last = len(places) - 1
    args = tuple(values.get(p.name, p.default) for p in places[: last + 1])
    kwargs = {p.name: values[p.name] for p in parameters if p.keyword_only and p.name in values}
    return args, kwargs


def calls(op: Any, sample: Any) -> Iterator[Call]:
    """The ways to write the call that a sample stands for."""
    for parameters in _schemas(op):
        values = _bound(parameters, sample)
        if values is None:
            continue
        args, kwargs = _by_position(parameters, values, all_of_them=False)
        yield Call("positional", False, args, kwargs)
        every, _ = _by_position(parameters, values, all_of_them=True)
        if len(every) > len(args):
            yield Call("all positional", False, every, kwargs)
        named = {"input" if k == "self" else k: v for k, v in values.items()}
        yield Call("keyword", False, (), named)
        if isinstance(sample.input, torch.Tensor) and parameters[0].name in ("self", "input"):
            yield Call("method", True, args, kwargs)
            if len(every) > len(args):
                yield Call("method, all positional", True, every, kwargs)
            rest = {k: v for k, v in values.items() if k not in ("self", "input")}
            yield Call("method, keyword", True, (sample.input,), rest)


def old_calls(op: Any, sample: Any) -> Iterator[Call]:
    """The call that a sample stands for, in deprecated signatures."""
    for signature in OLD.get(op.name, []):
        for parameters in _schemas(op):
            values = _bound(parameters, sample)
            if values is None:
                continue
            values = {"alpha": 2, "beta": 3, "value": 2, **values}
            args = tuple(values[name] for name in signature.split())
            yield Call(f"old: {signature}", False, args, {})
            if args[0] is sample.input:
                yield Call(f"old method: {signature}", True, args, {})
            else:
                rest = tuple(a for a in args if a is not sample.input)
                yield Call(f"old method: {signature}", True, (sample.input, *rest), {})
            break
