"""User-defined operations, dispatched like taeda's own.

`custom_op` turns a typed Python function into an operation; `register_fake` tells what it gives for
tensors without data, `register_autograd` what its derivative is. `Library` does the same from a
schema. What is defined is called as `taeda.ops.namespace.name(...)`, takes part in autograd, in
`no_grad` and in `__torch_function__`, and checks its arguments as every operation does.

>>> import taeda
>>> @taeda.library.custom_op("docs::cube", mutates_args=())
... def cube(x: taeda.Tensor) -> taeda.Tensor:
...     return taeda.from_numpy(x.detach().numpy() ** 3)
>>> def setup_context(ctx, inputs, output):
...     ctx.save_for_backward(*inputs)
>>> def backward(ctx, grad):
...     (x,) = ctx.saved_tensors
...     return 3 * x * x * grad
>>> cube.register_autograd(backward, setup_context=setup_context)
>>> x = taeda.tensor([1.0, 2.0], requires_grad=True)
>>> cube(x).sum().backward()
>>> x.grad
tensor([ 3., 12.])
>>> taeda.ops.docs.cube(x.detach())
tensor([1., 8.])
"""

from __future__ import annotations

import re
import warnings
import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import taeda
from taeda.library import _operator, _schema
from taeda.library._checking import OpCheckError as OpCheckError
from taeda.library._checking import opcheck
from taeda.library._operator import (
    AHEAD,
    ANY,
    AUTOCAST,
    AUTOGRAD,
    OPERATORS,
    RECORDED,
    Operator,
)
from taeda.library._schema import infer_schema

__all__ = [
    "CustomOpDef",
    "Library",
    "custom_op",
    "define",
    "impl",
    "impl_abstract",
    "infer_schema",
    "opcheck",
    "register_autocast",
    "register_autograd",
    "register_fake",
    "register_kernel",
    "register_vmap",
]

DeviceTypes = str | Sequence[str] | None

# The names of PyTorch's dispatch keys that make sense here, and what they are called.
_KEYS = {
    "": RECORDED,
    "CPU": "cpu",
    "CUDA": "cuda",
    "Meta": "meta",
    "CompositeImplicitAutograd": RECORDED,
    "CompositeExplicitAutograd": ANY,
    "Autograd": AUTOGRAD,
    "AutogradCPU": AUTOGRAD,
    "AutogradCUDA": AUTOGRAD,
    **{f"Autocast{key}": AUTOCAST + key.lower() for key in ("CPU", "CUDA", "XPU")},
}
_defining: set[str] = set()  # namespaces that have a Library of kind "DEF"


def _check_name(qualname: str) -> None:
    if not re.fullmatch(r"\w+::\w+", qualname):
        raise ValueError(
            f"expected the name of an operation, 'namespace::name', but got '{qualname}'"
        )


def _device_types(given: DeviceTypes) -> list[str]:
    """The kernels' names for a choice of devices."""
    if given is None:
        return [ANY]
    names = [given] if isinstance(given, str) else list(given)
    return [ANY if name == "default" else taeda.device(name).type for name in names]


def _add(qualname: str, schema: str) -> Operator:
    operator = Operator(qualname, _schema.parse(qualname, schema))
    OPERATORS[qualname] = operator
    if qualname in AHEAD:
        operator.kernels["meta"] = AHEAD.pop(qualname)
    return operator


def _remove(operators: list[Operator], kernels: list[tuple[Operator, str]]) -> None:
    for operator, key in kernels:
        operator.kernels.pop(key, None)
    for operator in operators:
        if OPERATORS.get(operator.qualname) is operator:
            del OPERATORS[operator.qualname]


# ---- from a function ----------------------------------------------------------------------------


class CustomOpDef:
    """An operation made by `custom_op`. Calling it calls the operation."""

    def __init__(self, operator: Operator, function: Callable[..., Any]) -> None:
        self._operator = operator
        self._init_fn = function
        self.__doc__ = function.__doc__
        self.__name__ = function.__name__

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._operator.function(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<CustomOpDef({self._operator.qualname})>"

    def register_kernel(
        self, device_types: DeviceTypes, fn: Callable[..., Any] | None = None, /
    ) -> Any:
        """Use another function for tensors on some devices; a decorator where `fn` is left out."""
        return register_kernel(self, device_types, fn)

    def register_fake(self, fn: Callable[..., Any], /) -> Callable[..., Any]:
        """Use a function for tensors without data: it returns empty ones of the right shape."""
        register_fake(self, fn)
        return fn

    def register_autograd(
        self,
        backward: Callable[..., Any],
        /,
        *,
        setup_context: Callable[..., Any] | None = None,
    ) -> None:
        """Add a derivative; see `taeda.library.register_autograd`."""
        register_autograd(self, backward, setup_context=setup_context)

    def register_vmap(self, func: Callable[..., Any] | None = None) -> Any:
        """Add a rule for vmap; see `taeda.library.register_vmap`."""
        return register_vmap(self, func)


def custom_op(
    name: str,
    fn: Callable[..., Any] | None = None,
    /,
    *,
    mutates_args: str | Iterable[str],
    device_types: DeviceTypes = None,
    schema: str | None = None,
) -> Any:
    """Make an operation of a Python function. A decorator where `fn` is left out.

    The function may do whatever it likes with its tensors, NumPy included; autograd does not look
    inside. It must not return its arguments or views of them. An operation of the same name is
    replaced.

    Args:
        name: "namespace::name".
        fn: the function. All its parameters and its result are annotated, unless `schema` is given.
        mutates_args: the names of the arguments that it changes in place, or "unknown".
        device_types: the devices that it works on, such as "cpu"; all of them by default.
        schema: what `infer_schema` would make of the annotations.

    Returns:
        A `CustomOpDef`.

    Raises:
        ValueError: the name has no namespace, or an annotation is missing or not supported.

    >>> @taeda.library.custom_op("docs::halve_", mutates_args={"x"})
    ... def halve_(x: taeda.Tensor) -> None:
    ...     x.detach().numpy()[...] /= 2
    >>> x = taeda.ones(2)
    >>> halve_(x)
    >>> x
    tensor([0.5000, 0.5000])
    """

    def make(function: Callable[..., Any]) -> CustomOpDef:
        _check_name(name)
        text = infer_schema(function, mutates_args=mutates_args) if schema is None else schema
        operator = _add(name, text)
        operator.checks_aliases = True
        for key in _device_types(device_types):
            operator.kernels[key] = function
        return CustomOpDef(operator, function)

    return make if fn is None else make(fn)


# ---- from a schema ------------------------------------------------------------------------------


class Library:
    """Operations of one namespace, defined by schemas. They last as long as this object.

    Args:
        ns: the namespace.
        kind: "DEF" for the one place that defines a namespace, "FRAGMENT" to define more in it,
            "IMPL" to add implementations alone.
        dispatch_key: what `impl` takes when it is not told.

    >>> library = taeda.library.Library("docs_shift", "DEF")
    >>> library.define("shift(Tensor x, float by=1.0) -> Tensor")
    'shift'
    >>> library.impl("shift", lambda x, by: x + by, "CompositeImplicitAutograd")
    >>> taeda.ops.docs_shift.shift(taeda.zeros(2), by=3.0)
    tensor([3., 3.])
    """

    def __init__(self, ns: str, kind: str, dispatch_key: str = "") -> None:
        if kind not in ("DEF", "FRAGMENT", "IMPL"):
            raise ValueError(f"Library: kind must be 'DEF', 'FRAGMENT' or 'IMPL', got '{kind}'")
        if not ns.isidentifier() or ns in ("prim", "aten"):
            raise ValueError(f"Library: '{ns}' is no namespace that can be defined in")
        if kind == "DEF":
            if ns in _defining:
                raise RuntimeError(
                    f"Library: the namespace '{ns}' has been defined already; use kind 'FRAGMENT' "
                    "to add to it"
                )
            _defining.add(ns)
        self.ns = ns
        self.kind = kind
        self.dispatch_key = dispatch_key
        self._operators: list[Operator] = []
        self._kernels: list[tuple[Operator, str]] = []
        self._remove = weakref.finalize(self, _remove, self._operators, self._kernels)
        if kind == "DEF":
            weakref.finalize(self, _defining.discard, ns)

    def __repr__(self) -> str:
        return f"Library(kind={self.kind}, ns={self.ns}, dispatch_key={self.dispatch_key})"

    def define(self, schema: str) -> str:
        """Define an operation by a schema such as ``"shift(Tensor x, float by=1.0) -> Tensor"``.

        Returns:
            Its name.
        """
        if self.kind == "IMPL":
            raise RuntimeError("Library: a library of kind 'IMPL' defines nothing")
        name, bracket, rest = schema.strip().partition("(")
        qualname = f"{self.ns}::{name.strip().removeprefix(self.ns + '::')}"
        _check_name(qualname)
        if qualname in OPERATORS:
            raise RuntimeError(f"Library: the operation '{qualname}' has been defined already")
        self._operators.append(_add(qualname, bracket + rest))
        return name.strip()

    def impl(self, op_name: Any, fn: Callable[..., Any], dispatch_key: str = "") -> None:
        """Add an implementation.

        Args:
            op_name: the operation's name in this namespace, or the operation.
            fn: a function that takes the arguments of the schema.
            dispatch_key: "CPU", "CUDA" or "Meta" for tensors there; "CompositeExplicitAutograd" for
                every device; "CompositeImplicitAutograd" (the default) where the function is
                written in differentiable operations; "Autograd" where it sees to its gradient;
                "AutocastCPU" for calls under autocast, which it switches off for those it makes.
        """
        if not callable(fn):
            raise TypeError(f"impl(): fn must be callable, not {type(fn).__name__}")
        if isinstance(op_name, str) and "::" not in op_name:
            op_name = f"{self.ns}::{op_name}"
        operator = _operator.find(op_name)
        word = dispatch_key or self.dispatch_key
        if word not in _KEYS:
            raise ValueError(f"impl(): unknown dispatch key '{word}'; known are {list(_KEYS)[1:]}")
        key = _KEYS[word]
        if key in operator.kernels:
            raise RuntimeError(f"impl(): {operator.qualname} has an implementation for '{word}'")
        operator.kernels[key] = fn
        self._kernels.append((operator, key))


def define(qualname: str, schema: str, *, lib: Library | None = None) -> None:
    """Define an operation by its name, "namespace::name", and ``"(Tensor x) -> Tensor"``.

    Args:
        lib: the library that it belongs to, and ends with; without one it lasts.
    """
    _check_name(qualname)
    if lib is not None:
        lib.define(qualname.removeprefix(lib.ns + "::") + schema)
        return
    if qualname in OPERATORS:
        raise RuntimeError(f"define(): the operation '{qualname}' has been defined already")
    _add(qualname, schema)


def impl(
    qualname: str,
    types: str | Sequence[str],
    func: Callable[..., Any] | None = None,
    *,
    lib: Library | None = None,
) -> Any:
    """Add an implementation for devices ("cpu", "cuda", or "default" for all).

    A decorator where `func` is left out.
    """
    return register_kernel(qualname, types, func, lib=lib)


# ---- adding to what is defined ------------------------------------------------------------------


def register_kernel(
    op: Any,
    device_types: DeviceTypes,
    func: Callable[..., Any] | None = None,
    /,
    *,
    lib: Library | None = None,
) -> Any:
    """Use a function for tensors on some devices. A decorator where `func` is left out.

    Args:
        op: a name, an operation or a `CustomOpDef`.
        device_types: "cpu", "cuda", a list of such, or None for all devices.
        func: takes the arguments of the operation.
        lib: the library that the function is taken away with.
    """
    operator = _operator.find(op)
    keys = _device_types(device_types)

    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        for key in keys:
            operator.kernels[key] = function
            if lib is not None:
                lib._kernels.append((operator, key))
        return function

    return add if func is None else add(func)


def register_fake(
    op: Any,
    func: Callable[..., Any] | None = None,
    /,
    *,
    lib: Library | None = None,
) -> Any:
    """Use a function for tensors without data. A decorator where `func` is left out.

    Args:
        op: a name, an operation or a `CustomOpDef`. An operation of that name may be defined later.
        func: returns tensors of the shape, dtype and device that the operation would return.
        lib: the library that the function is taken away with.

    >>> taeda.library.define("docs::pairs", "(Tensor x) -> Tensor")
    >>> @taeda.library.register_fake("docs::pairs")
    ... def pairs(x):
    ...     return x.new_empty(x.shape[0] // 2, 2)
    >>> taeda.ops.docs.pairs(taeda.empty(6, device="meta")).shape
    taeda.Size([3, 2])
    """
    if isinstance(op, str) and op not in OPERATORS:
        _check_name(op)

        def keep(function: Callable[..., Any]) -> Callable[..., Any]:
            AHEAD[op] = function
            if lib is not None:
                weakref.finalize(lib, AHEAD.pop, op, None)
            return function

        return keep if func is None else keep(func)
    operator = _operator.find(op)

    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        operator.kernels["meta"] = function
        if lib is not None:
            lib._kernels.append((operator, "meta"))
        return function

    return add if func is None else add(func)


def register_autograd(
    op: Any,
    backward: Callable[..., Any],
    /,
    *,
    setup_context: Callable[..., Any] | None = None,
) -> None:
    """Add a derivative to an operation.

    Args:
        op: a name, an operation or a `CustomOpDef`. It must not change its arguments.
        backward: `backward(ctx, *grads)` is given the gradient of each result and returns one per
            positional argument, None where there is none; lists of them for lists of tensors.
        setup_context: `setup_context(ctx, inputs, output)` runs after the operation and keeps what
            `backward` needs, tensors with `ctx.save_for_backward`. An operation with keyword-only
            arguments passes them as `keyword_only_inputs`.

    Raises:
        RuntimeError: the operation changes an argument in place.
    """
    operator = _operator.find(op)
    if not callable(backward):
        raise TypeError(
            f"register_autograd(): backward must be callable, not {type(backward).__name__}"
        )
    if operator.schema.mutates:
        raise RuntimeError(
            f"register_autograd(): {operator.schema.text} changes an argument in place; give the "
            "derivative to an operation that does not"
        )
    if any(a.keyword_only and a.is_tensors for a in operator.schema.arguments):
        raise NotImplementedError(
            f"register_autograd(): {operator.schema.text} has keyword-only tensors, which cannot "
            "have a gradient"
        )
    operator.backward = backward
    operator.setup_context = setup_context


def impl_abstract(
    qualname: str, func: Callable[..., Any] | None = None, *, lib: Library | None = None
) -> Any:
    """`register_fake` under an old name. Deprecated."""
    warnings.warn("library.impl_abstract is deprecated; use register_fake", FutureWarning, 2)
    return register_fake(qualname, func, lib=lib)


def register_autocast(
    op: Any, device_type: str, cast_inputs: taeda.dtype, /, *, lib: Library | None = None
) -> None:
    """Let an operation compute in a dtype within `amp.autocast`: its floating arguments are cast.

    Args:
        op: a name, an operation or a `CustomOpDef`.
        device_type: ``"cpu"`` or ``"cuda"``.
        cast_inputs: the dtype; those of float64 stay.
        lib: the library that this is taken away with.

    Raises:
        ValueError: the device is another one.
    """
    if device_type not in ("cpu", "cuda"):
        raise ValueError(f"register_autocast(): device_type must be cpu or cuda, got {device_type}")
    operator = _operator.find(op)
    operator.autocast[device_type] = cast_inputs
    if lib is not None:
        weakref.finalize(lib, operator.autocast.pop, device_type, None)


def register_vmap(
    op: Any,
    func: Callable[..., Any] | None = None,
    /,
    *,
    lib: Library | None = None,
) -> Any:
    """Add a rule for `taeda.vmap` to an operation. A decorator where `func` is left out.

    Without one, an operation that is not written in others runs once for each element of a batch.

    Args:
        op: a name, an operation or a `CustomOpDef`.
        func: `func(info, in_dims, *args, **kwargs)` gets `info.batch_size` and `info.randomness` of
            the vmap, for each positional argument the dimension that is mapped over or None, and
            the arguments with it. It returns `(output, out_dims)`.
        lib: the library that the rule is taken away with.

    >>> @taeda.library.custom_op("docs::twice", mutates_args=())
    ... def twice(x: taeda.Tensor) -> taeda.Tensor:
    ...     return taeda.from_numpy(2 * x.numpy())
    >>> @twice.register_vmap
    ... def rule(info, in_dims, x):
    ...     return twice(x), in_dims[0]
    >>> taeda.vmap(twice)(taeda.ones(2, 1))
    tensor([[2.],
            [2.]])
    """
    operator = _operator.find(op)

    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        operator.vmap = function
        if lib is not None:
            weakref.finalize(lib, setattr, operator, "vmap", None)
        return function

    return add if func is None else add(func)
