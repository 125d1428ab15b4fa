"""Operations with a derivative of your own."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from taeda import _C
from taeda._C import Tensor
from taeda.autograd import _run
from taeda.autograd.grad_mode import no_grad

__all__ = [
    "BackwardCFunction",
    "Function",
    "FunctionCtx",
    "FunctionMeta",
    "InplaceFunction",
    "once_differentiable",
]


class FunctionCtx(_C._FunctionBase):
    """The context that `forward` and `backward` of a Function share; attributes may be added.

    `needs_input_grad` has one bool per argument of forward: whether its gradient is wanted.
    `saved_tensors` gives back what `save_for_backward` was given. The arguments of the methods are
    kept in `to_save`, `dirty_tensors`, `non_differentiable` and `materialize_grads`.
    """

    _forward_cls: type[Function]
    saved_for_forward: tuple[Tensor | None, ...] = ()

    def save_for_backward(self, *tensors: Tensor | None) -> None:
        """Keep tensors for backward. In-place changes to them are detected when they are read.

        Inputs and outputs must be kept this way; an attribute would hold the graph in a cycle.
        """
        self.to_save = tensors

    def save_for_forward(self, *tensors: Tensor | None) -> None:
        """Keep tensors for `jvp`: its `saved_tensors`, also called `saved_for_forward`."""
        self.saved_for_forward = tensors

    def mark_dirty(self, *args: Tensor) -> None:
        """Declare inputs that forward changed in place. All of them must be returned."""
        self.dirty_tensors = args

    def mark_non_differentiable(self, *args: Tensor) -> None:
        """Declare outputs that have no gradient, like indices."""
        self.non_differentiable = args

    def set_materialize_grads(self, value: bool) -> None:
        """Whether backward is given zeros (the default) or None for a gradient that is missing."""
        self.materialize_grads = value

    def apply(self, *grads: Tensor | None) -> Any:
        """Run the derivative on the gradients of the outputs."""
        cls = self._forward_cls
        backward, vjp = cls.backward, cls.vjp
        if backward is not Function.backward and vjp is not Function.vjp:
            raise RuntimeError(
                f"{cls.__name__}: implementing both 'backward' and 'vjp' for a custom Function is "
                "not allowed. You should only implement one of them."
            )
        return (vjp if vjp is not Function.vjp else backward)(self, *grads)


class _FunctionMeta(type):
    """The class of `Function` classes, which gives each the class of its nodes."""

    def __init__(cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any]) -> None:
        super().__init__(name, bases, namespace)
        attributes = {"_forward_cls": cls, "__module__": cls.__module__}
        cls._backward_cls = type(name + "Backward", (FunctionCtx,), attributes)


def _with_defaults(forward: Callable[..., Any], args: Any, kwargs: Any) -> tuple[Any, ...]:
    import inspect

    bound = inspect.signature(forward).bind(*args, **kwargs)
    bound.apply_defaults()
    return bound.args


class Function(metaclass=_FunctionMeta):
    """An operation written in Python, with its derivative.

    Subclass it with two static methods. `forward(ctx, *args)` computes the result (a tensor or a
    tuple) without being recorded; `backward(ctx, *grads)` is given the gradient of each result and
    returns one per argument of forward, None where there is none. Alternatively
    `forward(*args)` and `setup_context(ctx, inputs, output)` share the first part. Call the
    operation as `YourFunction.apply(*args)`.

    >>> import taeda
    >>> class Cube(taeda.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         ctx.save_for_backward(x)
    ...         return x**3
    ...
    ...     @staticmethod
    ...     def backward(ctx, grad):
    ...         (x,) = ctx.saved_tensors
    ...         return 3 * x**2 * grad
    >>> x = taeda.tensor(2.0, requires_grad=True)
    >>> Cube.apply(x).backward()
    >>> x.grad
    tensor(12.)
    """

    _backward_cls: type[FunctionCtx]
    # Whether vmap may run forward, setup_context, backward and jvp on batched tensors.
    generate_vmap_rule = False

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise RuntimeError(
            f"{type(self).__name__} should not be instantiated. Methods on autograd functions are "
            "all static, so you should invoke them on the class itself: "
            f"{type(self).__name__}.apply(...)."
        )

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        """Compute the result. To be written by the subclass."""
        raise NotImplementedError(
            "You must implement the forward function for custom autograd.Function."
        )

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> Any:
        """Fill the context after a `forward` that takes none. To be written by the subclass."""
        raise NotImplementedError("setup_context is not implemented.")

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        """Compute one gradient per argument of forward. To be written by the subclass."""
        raise NotImplementedError(
            "You must implement either the backward or vjp method for your custom "
            "autograd.Function to use it with backward mode AD."
        )

    @staticmethod
    def vjp(ctx: Any, *grad_outputs: Any) -> Any:
        """Another name under which `backward` may be written."""
        return Function.backward(ctx, *grad_outputs)

    @staticmethod
    def jvp(ctx: Any, *grad_inputs: Any) -> Any:
        """Compute the tangent of each result from those of the arguments of forward.

        Called in forward mode, right after forward. An argument that is no tensor has None; a
        tensor without a tangent has zeros, or None after `ctx.set_materialize_grads(False)`. To be
        written by the subclass.
        """
        raise NotImplementedError(
            "You must implement the jvp function for custom autograd.Function to use it with "
            "forward mode AD."
        )

    @staticmethod
    def vmap(info: Any, in_dims: tuple[Any, ...], *args: Any) -> Any:
        """Compute the results for a batch. To be written by the subclass.

        Called within `taeda.vmap`, and needs a separate `setup_context`.

        Args:
            info: `info.batch_size` and `info.randomness` of the vmap.
            in_dims: for each argument the dimension that is mapped over, or None.
            args: the arguments, with that dimension.

        Returns:
            `(output, out_dims)`: the output with the mapped dimension, and where it is. The
            operation itself is applied to `args`, or others whose derivatives are known.
        """
        raise NotImplementedError(
            "To use autograd.Function with vmap, you must either override the vmap static method "
            "or set generate_vmap_rule=True."
        )

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Run the operation on `args`. Keyword arguments need a separate `setup_context`."""
        separate = cls.setup_context is not Function.setup_context
        if separate:
            args = _with_defaults(cls.forward, args, kwargs)
        elif kwargs:
            raise TypeError(f"{cls.__name__}.apply() takes no keyword arguments")
        batching = _run.batching
        if batching is not None and batching.is_concerned(args):
            from taeda._batching import custom  # which is made for this class

            return custom.apply(cls, args)
        result = _C._function_apply(cls, args, separate)
        if _run.nested is not None:
            _refuse_nested(cls.__name__, args, result)
        return result


def _refuse_nested(name: str, args: tuple[Any, ...], result: Any) -> None:
    """Refuse nested tensors where a history would be lost, as theirs is that of their values."""
    recorded = [isinstance(a, Tensor) and a.requires_grad for a in args]
    if not any(recorded) or not _C.is_grad_enabled():
        return
    results = result if isinstance(result, tuple) else (result,)
    given = [a for a, needed in zip(args, recorded, strict=True) if needed]
    if any(isinstance(x, _run.nested) for x in (*given, *results)):
        raise NotImplementedError(
            f"{name}.apply() has no derivative by nested tensors, nor of nested tensors that it "
            "gives: give and take their values()"
        )


def once_differentiable(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate a `backward` that cannot be differentiated itself: trying to is an error.

    Put it below `@staticmethod`. The derivative then runs without being recorded.
    """

    @functools.wraps(fn)
    def wrapper(ctx: Any, *grads: Any) -> Any:
        with no_grad():
            result = fn(ctx, *grads)
        if not _C.is_grad_enabled():
            return result
        if not any(isinstance(g, Tensor) and g.requires_grad for g in grads):
            return result
        message = (
            f"trying to differentiate twice a function that was marked with @once_differentiable: "
            f"{ctx._forward_cls.__name__}"
        )
        single = not isinstance(result, tuple)
        items = (result,) if single else result
        marked = tuple(
            _C._failing_history(message, item) if isinstance(item, Tensor) else item
            for item in items
        )
        return marked[0] if single else marked

    return wrapper


class InplaceFunction(Function):
    """A `Function` that an old program may make with whether it works in place.

    Args:
        inplace: kept as an attribute.
    """

    def __init__(self, inplace: bool = False) -> None:
        self.inplace = inplace


BackwardCFunction = FunctionCtx  # what `grad_fn` is, after a Function
FunctionMeta = _FunctionMeta
