"""User-defined operations under vmap: `autograd.Function`, and those of `taeda.library`."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, NamedTuple

from taeda._batching.dispatch import Op, as_it_is, one_by_one
from taeda._batching.tensor import Level, front, inside, level_of, separate, state, wrap
from taeda._C import Tensor
from taeda.autograd.function import Function
from taeda.utils._pytree import _broadcast_to_and_flatten, tree_flatten


class VmapInfo(NamedTuple):
    """The `info` argument of a `vmap` staticmethod."""

    batch_size: int
    randomness: str


# ---- autograd.Function --------------------------------------------------------------------------


def apply(function: Any, args: tuple[Any, ...]) -> Any:
    """As `function.apply(*args)`, for arguments some of which are batched."""
    name = function.__name__
    if function.setup_context is Function.setup_context and function is not _Mapped:
        raise RuntimeError(
            f"In order to use an autograd.Function with vmap, {name} must override the "
            "setup_context staticmethod."
        )
    has_rule = function.vmap is not Function.vmap
    if has_rule and function.generate_vmap_rule:
        raise RuntimeError(
            f"You tried to vmap over {name}, but it has both generate_vmap_rule=True and an "
            "overridden vmap staticmethod. Please set generate_vmap_rule=False or delete the "
            "overridden vmap staticmethod to avoid ambiguity."
        )
    if not has_rule and not function.generate_vmap_rule:
        raise RuntimeError(
            f"You tried to vmap over {name}, but it does not have vmap support. Please override "
            "and implement the vmap staticmethod or set generate_vmap_rule=True."
        )
    leaves, tree = tree_flatten(args)
    level = level_of(tuple(leaves))
    assert level is not None
    parts = [separate(x, level) for x in leaves]
    dims = tree.unflatten(0 if hidden else None for _, hidden in parts)
    values = tree.unflatten(value for value, _ in parts)
    outer = state.levels
    state.levels = outer[: level.index]
    try:
        if not has_rule:
            return _Mapped.run(function, level, values, dims)
        result = function.vmap(VmapInfo(level.size, level.randomness), dims, *values)
        return _placed(result, level, "the vmap staticmethod")
    finally:
        state.levels = outer


def _placed(result: Any, level: Level, what: str) -> Any:
    """Convert a rule's result (output, out_dims) to batched tensors."""
    if not isinstance(result, tuple) or len(result) != 2:
        got = f"{len(result)} of them" if isinstance(result, tuple) else f"a {type(result)}"
        raise RuntimeError(
            f"Expected {what} to have two returns, an output and out_dims with pytree structure "
            f"compatible with the output. Got {got} instead"
        )
    output, out_dims = result
    leaves, tree = tree_flatten(output)
    dims = _broadcast_to_and_flatten(out_dims, tree)
    if dims is None:
        raise RuntimeError(
            f"{what} returned an incompatible (output, out_dims) tuple. Expected out_dims="
            f"{out_dims} to be compatible with the structure of `output`. out_dims has structure "
            f"{tree_flatten(out_dims)[1]} but output has structure {tree}."
        )
    return tree.unflatten(
        x if dim is None or not isinstance(x, Tensor) else wrap(x.movedim(dim, 0), level)
        for x, dim in zip(leaves, dims, strict=True)
    )


class _Context:
    """The context of a Function that is mapped by `_Mapped`."""

    saved_tensors: tuple[Any, ...] = ()
    saved_for_forward: tuple[Any, ...] = ()
    to_save: tuple[Any, ...] = ()
    dirty: tuple[Any, ...] = ()
    constant: tuple[Any, ...] = ()
    materialize = True

    def __init__(self, needs_input_grad: tuple[bool, ...]) -> None:
        self.needs_input_grad = needs_input_grad

    def save_for_backward(self, *tensors: Any) -> None:
        self.to_save = tensors

    def save_for_forward(self, *tensors: Any) -> None:
        self.saved_for_forward = tensors

    def mark_dirty(self, *tensors: Any) -> None:
        self.dirty = tensors

    def mark_non_differentiable(self, *tensors: Any) -> None:
        self.constant = tensors

    def set_materialize_grads(self, value: bool) -> None:
        self.materialize = value


@dataclasses.dataclass
class _Call:
    """The mapped function, the batch size, and which arguments are batched."""

    function: Any
    size: int
    randomness: str
    batched: tuple[bool, ...]


class _Mapped(Function):
    """A Function that applies another one to every element of a batch."""

    generate_vmap_rule = True

    @classmethod
    def run(cls, function: Any, level: Level, values: Sequence[Any], dims: Sequence[Any]) -> Any:
        """Apply it, and return batched tensors."""
        batched = tuple(dim == 0 for dim in dims)
        call = _Call(function, level.size, level.randomness, batched)
        result = cls.apply(call, *values)
        if isinstance(result, tuple):
            return tuple(wrap(x, level) if isinstance(x, Tensor) else x for x in result)
        return wrap(result, level) if isinstance(result, Tensor) else result

    @staticmethod
    def forward(ctx: Any, call: _Call, *values: Any) -> Any:
        """Run the function's `forward` and `setup_context` on batched tensors."""
        own = _Context(ctx.needs_input_grad[1:])
        with inside(call.size, call.randomness) as level:
            given = tuple(_wrapped(values, call.batched, level))
            if call.function is _Mapped:
                output = _Mapped.forward(own, *given)
            else:
                output = call.function.forward(*given)
                call.function.setup_context(own, given, output)
        outputs = output if isinstance(output, tuple) else (output,)
        known = {id(x): v for x, v in zip(given, values, strict=True)}
        for x in outputs:
            if isinstance(x, Tensor) and id(x) not in known:
                known[id(x)] = front(x, level)

        inputs = {id(x) for x in given}

        def stripped(tensors: tuple[Any, ...]) -> tuple[list[Any], tuple[bool, ...]]:
            """The values of saved tensors, and which of them have the batch's dimension."""
            values, batched = [], []
            for x in tensors:
                value, hidden = separate(x, level)
                values.append(known.get(id(x), value))
                batched.append(hidden or (id(x) in known and id(x) not in inputs))
            return values, tuple(batched)

        saved, ctx.saved_batched = stripped(own.to_save)
        ctx.save_for_backward(*saved)
        forward_saved, ctx.forward_batched = stripped(own.saved_for_forward)
        ctx.save_for_forward(*forward_saved)
        ctx.mark_dirty(*(known[id(x)] for x in own.dirty))
        ctx.mark_non_differentiable(*(known[id(x)] for x in own.constant))
        ctx.set_materialize_grads(own.materialize)
        own.to_save = own.saved_for_forward = own.dirty = own.constant = ()
        ctx.own, ctx.call = own, call
        ctx.shapes = [v.shape if isinstance(v, Tensor) else None for v in values]
        results = [known[id(x)] if isinstance(x, Tensor) else x for x in outputs]
        return tuple(results) if isinstance(output, tuple) else results[0]

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        """Run the function's derivative on batched tensors."""
        call, own, function = ctx.call, ctx.own, ctx.call.function
        derivative = function.backward if function.vjp is Function.vjp else function.vjp
        with inside(call.size, call.randomness) as level:
            own.saved_tensors = tuple(_wrapped(ctx.saved_tensors, ctx.saved_batched, level))
            given = [None if g is None else wrap(g, level) for g in grads]
            found = derivative(own, *given)
            own.saved_tensors = ()
        found = found if isinstance(found, tuple) else (found,)
        results: list[Any] = [None]
        for g, batched, shape in zip(found, call.batched, ctx.shapes, strict=True):
            if g is None or shape is None:
                results.append(None)
            elif batched:
                results.append(front(g, level))
            else:  # the same for all elements, so their gradients add up
                value, hidden = separate(g, level)
                results.append((value.sum(0) if hidden else value * level.size).reshape(shape))
        return tuple(results)

    @staticmethod
    def jvp(ctx: Any, _: Any, *tangents: Any) -> Any:
        """Run the function's `jvp` on batched tensors."""
        call, own = ctx.call, ctx.own
        with inside(call.size, call.randomness) as level:
            own.saved_for_forward = tuple(
                _wrapped(ctx.saved_for_forward, ctx.forward_batched, level)
            )
            # Functions read either of the two names.
            own.saved_tensors = own.saved_for_forward
            found = call.function.jvp(own, *_wrapped(tangents, call.batched, level))
            own.saved_for_forward = own.saved_tensors = ()
        if isinstance(found, tuple):
            return tuple(None if t is None else front(t, level) for t in found)
        return front(found, level)


def _wrapped(values: Sequence[Any], batched: Sequence[bool], level: Level) -> Any:
    return (
        wrap(v, level) if b and isinstance(v, Tensor) else v
        for v, b in zip(values, batched, strict=True)
    )


# ---- taeda.library ------------------------------------------------------------------------------


def from_library(op: Op, level: Level, args: Sequence[Any]) -> Any:
    """Apply the registered rule; run composite operations as they are; loop over the rest."""
    from taeda.library._operator import COMPILED, OPERATORS, RECORDED

    operator = OPERATORS.get(op.full_name)
    if operator is None:
        op.function = COMPILED[op.full_name]
        return one_by_one(op, level, args)
    if operator.vmap is None:
        if set(operator.kernels) == {RECORDED}:
            return as_it_is(op, level, args)
        op.function = operator.function
        return one_by_one(op, level, args)
    leaves, tree = tree_flatten(tuple(list(a) if isinstance(a, tuple) else a for a in args))
    parts = [separate(x, level) for x in leaves]
    values = tree.unflatten(value for value, _ in parts)
    dims = tree.unflatten(0 if hidden else None for _, hidden in parts)
    n = op.positional
    named = dict(zip(op.args[n:], values[n:], strict=True))
    info = VmapInfo(level.size, level.randomness)
    result = operator.vmap(info, dims[:n], *values[:n], **named)
    if not operator.schema.returns or result is None:
        return None
    placed = _placed(result, level, f"the vmap function of {op.full_name}")
    return tuple(placed) if isinstance(placed, list) else placed


__all__ = ["VmapInfo", "apply", "from_library"]
