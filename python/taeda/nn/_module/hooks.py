"""The hooks of a Module, those of all Modules, and the calls of the backward ones."""

from __future__ import annotations

import warnings
import weakref
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import taeda
from taeda import _C
from taeda._C import Tensor
from taeda.utils.hooks import RemovableHandle

__all__ = [
    "RemovableHandle",
    "register_module_backward_hook",
    "register_module_buffer_registration_hook",
    "register_module_forward_hook",
    "register_module_forward_pre_hook",
    "register_module_full_backward_hook",
    "register_module_full_backward_pre_hook",
    "register_module_module_registration_hook",
    "register_module_parameter_registration_hook",
]


class CallHooks:
    """The hooks that run when a module is called, by handle id, in the order they run.

    A module has none of these until its first hook is registered. The dictionaries that end in
    `_kwargs`, `_always` and `_legacy` hold settings of the hooks with the same ids.
    """

    def __init__(self) -> None:
        self.forward_pre: OrderedDict[int, Callable[..., Any]] = OrderedDict()
        self.forward_pre_kwargs: OrderedDict[int, bool] = OrderedDict()
        self.forward: OrderedDict[int, Callable[..., Any]] = OrderedDict()
        self.forward_kwargs: OrderedDict[int, bool] = OrderedDict()
        self.forward_always: OrderedDict[int, bool] = OrderedDict()
        self.backward_pre: OrderedDict[int, Callable[..., Any]] = OrderedDict()
        self.backward: OrderedDict[int, Callable[..., Any]] = OrderedDict()
        self.backward_is_full: bool | None = None  # None until one of either kind is registered

    def empty(self) -> bool:
        return not (self.forward_pre or self.forward or self.backward_pre or self.backward)

    def claim_backward(self, full: bool) -> None:
        """Note that backward hooks are full ones, or legacy ones; a module has only one kind."""
        if self.backward_is_full is not None and self.backward_is_full != full:
            raise RuntimeError(
                "Module.register_backward_hook: Cannot use both regular backward hooks and full "
                "backward hooks on a single Module. Please use only one of them."
            )
        self.backward_is_full = full


class StateHooks:
    """The hooks that run when a module's state is saved or loaded, by handle id."""

    def __init__(self) -> None:
        self.save_pre: OrderedDict[int, Callable[..., Any]] = OrderedDict()
        self.save: OrderedDict[int, Callable[..., Any]] = OrderedDict()
        self.save_must_return_none: OrderedDict[int, bool] = OrderedDict()
        self.load_pre: OrderedDict[int, Callable[..., Any]] = OrderedDict()
        self.load_pre_with_module: OrderedDict[int, bool] = OrderedDict()
        self.load_post: OrderedDict[int, Callable[..., Any]] = OrderedDict()


class Table:
    """A module's attribute such as `_forward_hooks`: a live dictionary, created on first access.

    Args:
        group: the method of the module that returns its hooks, making them if need be.
        name: the dictionary among them.
    """

    def __init__(self, group: str, name: str) -> None:
        self.group = group
        self.name = name

    def __get__(self, module: Any, owner: type | None = None) -> Any:
        return self if module is None else getattr(getattr(module, self.group)(), self.name)

    def __set__(self, module: Any, value: Any) -> None:
        hooks = value if isinstance(value, OrderedDict) else OrderedDict(value)
        setattr(getattr(module, self.group)(), self.name, hooks)


def add(
    hooks: OrderedDict[int, Callable[..., Any]],
    hook: Callable[..., Any],
    *,
    prepend: bool = False,
    flags: tuple[OrderedDict[int, bool], ...] = (),
    handle_class: type[RemovableHandle] = RemovableHandle,
) -> RemovableHandle:
    """Register a hook, mark its id in each of `flags`, and return its handle."""
    handle = handle_class(hooks, extra_dict=list(flags))
    hooks[handle.id] = hook
    for flag in flags:
        flag[handle.id] = True
    if prepend:
        tables: tuple[OrderedDict[int, Any], ...] = (hooks, *flags)
        for table in tables:
            table.move_to_end(handle.id, last=False)
    return handle


# Hooks of every module. While there are none, `Module._call_hooks` is None, which is all that a
# call tests.
for_all = CallHooks()
_nothing = CallHooks()  # what `Module._call_hooks` is while `for_all` has some, so that calls look
on_parameter: OrderedDict[int, Callable[..., Any]] = OrderedDict()
on_buffer: OrderedDict[int, Callable[..., Any]] = OrderedDict()
on_module: OrderedDict[int, Callable[..., Any]] = OrderedDict()


def _refresh() -> None:
    from taeda.nn.module import Module  # whose parts use this module

    Module._call_hooks = None if for_all.empty() else _nothing


class _GlobalHandle(RemovableHandle):
    def remove(self) -> None:
        super().remove()
        _refresh()


def _add_global(
    hooks: OrderedDict[int, Callable[..., Any]], hook: Callable[..., Any], *flags: Any
) -> RemovableHandle:
    handle = add(hooks, hook, flags=flags, handle_class=_GlobalHandle)
    _refresh()
    return handle


def register_module_forward_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(module, args)` before the forward of every module.

    What it returns, unless None, replaces the positional arguments. It runs before the module's
    own hooks.
    """
    return _add_global(for_all.forward_pre, hook)


def register_module_forward_hook(
    hook: Callable[..., Any], *, with_kwargs: bool = False, always_call: bool = False
) -> RemovableHandle:
    """Call `hook(module, args, output)` after the forward of every module.

    Args:
        hook: what it returns, unless None, replaces the output. It runs before the module's own.
        with_kwargs: call `hook(module, args, kwargs, output)` instead.
        always_call: call it also when the forward raises, with None as the output.
    """
    flags = []
    if with_kwargs:
        flags.append(for_all.forward_kwargs)
    if always_call:
        flags.append(for_all.forward_always)
    return _add_global(for_all.forward, hook, *flags)


def register_module_full_backward_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(module, grad_input, grad_output)` when any module's gradients are computed.

    What it returns, unless None, replaces `grad_input`. See `Module.register_full_backward_hook`.
    """
    for_all.claim_backward(True)
    return _add_global(for_all.backward, hook)


def register_module_backward_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Deprecated form of `register_module_full_backward_hook`.

    It sees the gradients of the last operation of the forward, not those of the module's inputs.
    """
    for_all.claim_backward(False)
    return _add_global(for_all.backward, hook)


def register_module_full_backward_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(module, grad_output)` before the backward of every module.

    What it returns, unless None, replaces `grad_output`.
    """
    return _add_global(for_all.backward_pre, hook)


def register_module_parameter_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(module, name, parameter)` when any module registers a parameter.

    What it returns, unless None, is registered instead.
    """
    return add(on_parameter, hook)


def register_module_buffer_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(module, name, buffer)` when any module registers a buffer.

    What it returns, unless None, is registered instead.
    """
    return add(on_buffer, hook)


def register_module_module_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(module, name, submodule)` when any module registers a submodule.

    What it returns, unless None, is registered instead.
    """
    return add(on_module, hook)


def as_tuple(values: Any) -> tuple[Any, ...]:
    return values if isinstance(values, tuple) else (values,)


class _Held:
    """Gradients at a module's outputs, until those at its inputs are there.

    The backward pass holds them, as its callback: where it ends early, they would otherwise be kept
    by the graph, and with `create_graph` they keep the graph.
    """

    def __init__(self, grads: tuple[Any, ...]) -> None:
        self.grads: tuple[Any, ...] | None = grads
        _C._queue_callback(self)

    def __call__(self) -> None:  # at the end of the pass
        self.grads = None


class BackwardTap:
    """Sees the gradients of one call of a module, at its outputs and at its inputs.

    The inputs and the outputs pass through an identity whose backward calls the hooks: the
    outputs' identity first (pre hooks), the inputs' one when the module's own backward is done.
    """

    def __init__(
        self, module: Any, hooks: list[Callable[..., Any]], pre_hooks: list[Callable[..., Any]]
    ) -> None:
        self.module = module
        self.hooks = hooks
        self.pre_hooks = pre_hooks
        self.grad_output: weakref.ref[_Held] | None = None
        self.grad_input: list[Any] = []  # grad_input before its gradients are filled in
        self.input_positions: list[int] = []
        self.output_count = 0
        self.output_positions: list[int] = []

    def tap_inputs(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        self.grad_input = [None] * len(args)
        positions = _differentiable(args)
        if not positions:
            return args
        self.input_positions = positions
        for position, value in enumerate(args):
            if isinstance(value, Tensor) and not value.requires_grad:
                # Its gradient is zero. Created when needed, so as not to keep the input alive.
                self.grad_input[position] = (value.shape, value.dtype, value.device)
        return _through(args, positions, self._at_inputs)

    def tap_output(self, output: Any) -> Any:
        single = isinstance(output, Tensor)
        if not single and not isinstance(output, (tuple, list)):
            warnings.warn(
                "For backward hooks to be called, module output should be a Tensor or a tuple of "
                f"Tensors but received {type(output)}",
                stacklevel=4,
            )
            return output
        values = (output,) if single else tuple(output)
        self.output_count = len(values)
        self.output_positions = _differentiable(values)
        if not self.output_positions:
            return output
        values = _through(values, self.output_positions, self._at_outputs)
        if single:
            return values[0]
        if hasattr(output, "_fields"):  # a named tuple
            return type(output)(*values)
        return type(output)(values)

    def _at_outputs(self, grads: tuple[Any, ...]) -> tuple[Any, ...]:
        grad_output = _spread(grads, self.output_positions, self.output_count)
        for hook in self.pre_hooks:
            result = hook(self.module, grad_output)
            if result is not None:
                grad_output = self._checked(result, self.output_count, "pre hook", "grad_output")
        if self.input_positions:
            self.grad_output = weakref.ref(_Held(grad_output))
        else:
            # No input needs a gradient, so this is where the module's backward ends for hooks.
            grad_input = tuple(self.grad_input)
            for hook in self.hooks:
                result = hook(self.module, grad_input, grad_output)
                if result is not None and any(g is not None for g in as_tuple(result)):
                    raise RuntimeError(
                        "register_full_backward_hook: Backward hook for Modules where no input "
                        "requires gradient should always return None or None for all gradients."
                    )
        return tuple(grad_output[position] for position in self.output_positions)

    def _at_inputs(self, grads: tuple[Any, ...]) -> tuple[Any, ...]:
        held = self.grad_output and self.grad_output()
        if not held or held.grads is None:  # the inputs are reached by a path around the outputs
            return grads
        grad_output, held.grads = held.grads, None
        full = [
            value and taeda.zeros(value[0], dtype=value[1], device=value[2])
            for value in self.grad_input
        ]
        for position, grad in zip(self.input_positions, grads, strict=True):
            full[position] = grad
        grad_input = tuple(full)
        for hook in self.hooks:
            result = hook(self.module, grad_input, grad_output)
            if result is not None:
                grad_input = self._checked(result, len(grad_input), "hook", "grad_input")
        return tuple(grad_input[position] for position in self.input_positions)

    @staticmethod
    def _checked(result: Any, count: int, kind: str, what: str) -> tuple[Any, ...]:
        result = as_tuple(result)
        if len(result) != count:
            raise RuntimeError(
                f"register_full_backward_hook: Backward {kind} returned an invalid number of "
                f"{what}, got {len(result)}, but expected {count}"
            )
        return result


def _differentiable(values: tuple[Any, ...]) -> list[int]:
    if not taeda.is_grad_enabled():
        return []
    return [i for i, v in enumerate(values) if isinstance(v, Tensor) and v.requires_grad]


def _spread(grads: tuple[Any, ...], positions: list[int], count: int) -> tuple[Any, ...]:
    full: list[Any] = [None] * count
    for position, grad in zip(positions, grads, strict=True):
        full[position] = grad
    return tuple(full)


def _through(
    values: tuple[Any, ...], positions: list[int], on_grad: Callable[..., Any]
) -> tuple[Any, ...]:
    tapped = _identity().apply(on_grad, *(values[position] for position in positions))
    result = list(values)
    for position, value in zip(positions, tapped, strict=True):
        result[position] = value
    return tuple(result)


_identity_class: Any = None


def _identity() -> Any:
    """The identity as an autograd Function that passes gradients to `on_grad`."""
    global _identity_class
    if _identity_class is None:
        from taeda.autograd import Function

        class Tap(Function):
            @staticmethod
            def forward(
                ctx: Any, on_grad: Callable[..., Any], *tensors: Tensor
            ) -> tuple[Tensor, ...]:
                ctx.on_grad = on_grad
                ctx.set_materialize_grads(False)
                return tuple(tensor.view_as(tensor) for tensor in tensors)

            @staticmethod
            def backward(ctx: Any, *grads: Tensor) -> tuple[Any, ...]:
                return (None, *ctx.on_grad(grads))

        _identity_class = Tap
    return _identity_class


def attach_legacy(module: Any, hooks: list[Callable[..., Any]], output: Any) -> None:
    """Register deprecated backward hooks on the graph node that made the module's output."""
    value = output
    while not isinstance(value, Tensor):
        if isinstance(value, dict):
            value = next(v for v in value.values() if isinstance(v, Tensor))
        else:
            value = value[0]
    node = value.grad_fn
    if node is None:
        return
    for hook in hooks:
        node.register_hook(lambda grads, outs, hook=hook: hook(module, grads, outs))
