"""An operation whose implementations are Python functions, and the choice of one for a call."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

from taeda import _C
from taeda._C import Tensor
from taeda.autograd.function import Function
from taeda.autograd.grad_mode import no_grad
from taeda.library._schema import Schema

# Kernels are kept by the name of a device ("cpu", "cuda", "meta"), or under one of these.
ANY = "any"  # every device that has no kernel of its own
RECORDED = "recorded"  # composite: its operations are recorded, and run on any device
AUTOGRAD = "autograd"  # called instead of all others if a gradient is required
AUTOCAST = (
    "autocast"  # before the name of a device: called instead of all others under its autocast
)

OPERATORS: dict[str, Operator] = {}  # by "namespace::name"
AHEAD: dict[str, Callable[..., Any]] = {}  # "meta" kernels registered before the definition
COMPILED: dict[str, Any] = {}  # ops of C++ extensions, added by the core


def tensors_of(value: Any) -> list[Tensor]:
    """The tensors in a value: itself, or those of a list."""
    if isinstance(value, Tensor):
        return [value]
    if isinstance(value, (list, tuple)):
        return [item for item in value if isinstance(item, Tensor)]
    return []


class Operator:
    """An operation from outside the core. The core calls `run` for it, through the door.

    Args:
        qualname: "namespace::name".
        schema: what it takes and gives.
    """

    def __init__(self, qualname: str, schema: Schema) -> None:
        self.qualname = qualname
        self.schema = schema
        self.kernels: dict[str, Callable[..., Any]] = {}
        self.backward: Callable[..., Any] | None = None
        self.setup_context: Callable[..., Any] | None = None
        self.vmap: Callable[..., Any] | None = None
        self.checks_aliases = False
        self.autocast: dict[str, Any] = {}  # the dtype of a kind of device
        self._positional = [a for a in schema.arguments if not a.keyword_only]
        self.function: Any = _C._define_op(schema.core, f"{qualname}, from outside.", self.run)
        self.function.default = self.function
        self.function._operator = self
        self._recorder = self._make_recorder()

    def __repr__(self) -> str:
        return f"<operation {self.schema.text}>"

    # ---- a call ----

    def run(self, *args: Any) -> Any:
        """Compute the operation. `args`: one per argument of the schema."""
        args = tuple(
            list(value) if argument.is_list and value is not None else value
            for argument, value in zip(self.schema.arguments, args, strict=True)
        )
        from taeda.amp.autocast_mode import enabled_for

        kind = enabled_for(*args)
        if kind is not None:
            if kind in self.autocast:
                return self._run_autocast(args, kind)
            if AUTOCAST + kind in self.kernels:
                return self._call(self.kernels[AUTOCAST + kind], args)
        if _C.is_grad_enabled() and self._wants_gradient(args):
            if AUTOGRAD in self.kernels:
                return self._call(self.kernels[AUTOGRAD], args)
            if self.schema.mutates:
                self._refuse_change(args)
            recorded = self.backward is None and self._kernel(args) is self.kernels.get(RECORDED)
            if not recorded and "Tensor" in self.schema.returns:
                return self._record(args)
        kernel = self._kernel(args)
        if kernel is self.kernels.get(RECORDED):
            return self._call(kernel, args)
        with no_grad():
            return self._checked(self._call(kernel, args), args)

    def _run_autocast(self, args: tuple[Any, ...], kind: str) -> Any:
        """Compute the operation with its floating arguments cast, and autocast off."""
        dtype = self.autocast[kind]

        def cast(value: Any) -> Any:
            if isinstance(value, list):
                return [cast(item) for item in value]
            if not isinstance(value, Tensor) or not value.is_floating_point():
                return value
            return value if value.dtype is _C.float64 else value.to(dtype)

        from taeda.amp import autocast

        with autocast(kind, enabled=False):
            return self.run(*map(cast, args))

    def _wants_gradient(self, args: tuple[Any, ...]) -> bool:
        return any(t.requires_grad for value in args for t in tensors_of(value))

    def _refuse_change(self, args: tuple[Any, ...]) -> None:
        for argument, value in zip(self.schema.arguments, args, strict=True):
            if argument.mutated and any(t.requires_grad for t in tensors_of(value)):
                raise RuntimeError(
                    f"{self.qualname}(): argument '{argument.name}' is changed in place, which has "
                    "no derivative, but it requires a gradient"
                )

    def _call(self, function: Callable[..., Any], args: tuple[Any, ...]) -> Any:
        """Call an implementation, with keyword-only arguments as such."""
        count = len(self._positional)
        return function(*args[:count], **self._keywords(args))

    def _keywords(self, args: tuple[Any, ...]) -> dict[str, Any]:
        count = len(self._positional)
        names = (a.name for a in self.schema.arguments[count:])
        return dict(zip(names, args[count:], strict=True))

    def _kernel(self, args: tuple[Any, ...]) -> Callable[..., Any]:
        """The implementation for the device of the tensors."""
        devices = [t.device.type for value in args for t in tensors_of(value)]
        device = "meta" if "meta" in devices else devices[0] if devices else "cpu"
        found = self.kernels.get(device)
        if found is None and device != "meta":
            found = self.kernels.get(ANY)
        found = found or self.kernels.get(RECORDED)
        if found is not None:
            return found
        name = self.qualname
        if device == "meta":
            raise RuntimeError(
                f"{name}(): there is no implementation for tensors without data: add one with "
                f"taeda.library.register_fake('{name}', ...)"
            )
        have = ", ".join(sorted(self.kernels)) or "none"
        raise NotImplementedError(
            f"{name}(): there is no implementation for tensors on '{device}' (there is: {have}). "
            f"Add one with taeda.library.register_kernel('{name}', '{device}', ...)"
        )

    def _checked(self, result: Any, args: tuple[Any, ...]) -> Any:
        """The result, unless it shares memory with an argument or another result."""
        if not self.checks_aliases:
            return result
        seen = {t.untyped_storage()._cdata for value in args for t in tensors_of(value)}
        for tensor in tensors_of(result):
            storage = tensor.untyped_storage()._cdata
            if storage in seen:
                raise RuntimeError(
                    f"{self.qualname}(): a result must not be one of the arguments, nor share "
                    "memory with an argument or another result. Return a clone() of it instead."
                )
            seen.add(storage)
        return result

    # ---- gradients ----

    def _record(self, args: tuple[Any, ...]) -> Any:
        """Compute the operation as one step of the graph.

        The graph sees tensors alone, so lists of them are laid out and put together again.
        """
        count = len(self._positional)
        flat: list[Any] = []
        for argument, value in zip(self._positional, args[:count], strict=True):
            if argument.is_list and value is not None:
                flat += value
            else:
                flat.append(value)
        result = self._recorder.apply(args, *flat)
        return list(result) if self.schema.returns == "Tensor[]" else result

    def _nested(self, args: tuple[Any, ...], flat: tuple[Any, ...]) -> list[Any]:
        """`flat`, one item per tensor, with a list where the arguments have a list."""
        items = iter(flat)
        return [
            list(itertools.islice(items, len(value)))
            if argument.is_list and value is not None
            else next(items)
            for argument, value in zip(self._positional, args, strict=False)
        ]

    def _make_recorder(self) -> type[Function]:
        operator = self

        class Recorder(Function):
            @staticmethod
            def forward(ctx: Any, args: tuple[Any, ...], *flat: Any) -> Any:
                result = operator._checked(operator._call(operator._kernel(args), args), args)
                ctx._args = [len(v) if isinstance(v, list) else None for v in args]
                if operator.setup_context is not None:
                    _with_nested_needs(ctx, operator, args)
                    given = dict(ctx=ctx, inputs=args[: len(operator._positional)], output=result)
                    keywords = operator._keywords(args)
                    if keywords:
                        given["keyword_only_inputs"] = keywords
                    operator.setup_context(**given)
                return tuple(result) if isinstance(result, list) else result

            @staticmethod
            def backward(ctx: Any, *grads: Any) -> Any:
                return (None, *operator._gradients(ctx, grads))

        name = self.qualname.replace("::", "_").replace(".", "_")
        Recorder._backward_cls.__name__ = f"GeneratedBackwardFor_{name}_defaultBackward"
        return Recorder

    def _gradients(self, ctx: Any, grads: tuple[Any, ...]) -> Iterator[Any]:
        """The gradients of the registered derivative, one per tensor."""
        if self.backward is None:
            raise RuntimeError(
                f"{self.qualname}(): it has no derivative. Add one with "
                f"taeda.library.register_autograd('{self.qualname}', ...)"
            )
        given = (list(grads),) if self.schema.returns == "Tensor[]" else grads
        result = self.backward(ctx, *given)
        result = result if isinstance(result, tuple) else (result,)
        count = len(self._positional)
        if len(result) != count:
            raise RuntimeError(
                f"{self.qualname}(): the derivative must return {count} gradients, one for each "
                f"positional argument, but it returned {len(result)}"
            )
        for argument, length, value in zip(self._positional, ctx._args, result, strict=False):
            if length is None:
                yield value
                continue
            items = [None] * length if value is None else list(value)
            if len(items) != length:
                raise RuntimeError(
                    f"{self.qualname}(): the derivative must return {length} gradients for "
                    f"'{argument.name}', but it returned {len(items)}"
                )
            yield from items


def _with_nested_needs(ctx: Any, operator: Operator, args: tuple[Any, ...]) -> None:
    """Let `ctx.needs_input_grad` have one entry per argument of the operation."""
    ctx.needs_input_grad = tuple(operator._nested(args, ctx.needs_input_grad[1:]))


def find(op: Any) -> Operator:
    """The Operator for a name, for `taeda.ops.namespace.name`, or for what custom_op returned."""
    found = getattr(op, "_operator", None)
    if isinstance(found, Operator):
        return found
    if not isinstance(op, str):
        raise TypeError(f"expected an operation or its name, got {type(op).__name__}")
    if op not in OPERATORS:
        raise RuntimeError(f"no operation '{op}' has been defined through taeda.library")
    return OPERATORS[op]
