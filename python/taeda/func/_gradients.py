"""`grad`, `grad_and_value`, `vjp`, `jvp` and `linearize`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from taeda import _C
from taeda._C import Tensor
from taeda.autograd._run import grad as gradients_of
from taeda.autograd.forward_ad import dual_level, make_dual, unpack_dual
from taeda.autograd.grad_mode import enable_grad
from taeda.func._record import (
    Arguments,
    chosen,
    fresh,
    plain,
    separated,
    tensors_only,
    zeros,
)
from taeda.utils._pytree import tree_flatten

__all__ = ["grad", "grad_and_value", "jvp", "linearize", "vjp"]

_JVP = "jvp(f, primals, tangents)"
_TENSORS = "expected f(*primals) to return only tensors"


def grad_and_value(
    func: Callable[..., Any], argnums: int | tuple[int, ...] = 0, has_aux: bool = False
) -> Callable[..., tuple[Any, Any]]:
    """Like `grad`, but the function returned gives `(gradient, value)`.

    With `has_aux` it gives `(gradient, (value, aux))`.

    >>> import taeda
    >>> taeda.func.grad_and_value(lambda x: x**2)(taeda.tensor(3.0))
    (tensor(6.), tensor(9.))
    """
    name = "grad_and_value(f)(*args)"

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> tuple[Any, Any]:
        outside = _C.is_grad_enabled()
        with enable_grad():
            inputs = Arguments(args, chosen(argnums, len(args)))
            output, aux = separated(func(*inputs.args, **kwargs), has_aux, name)
            if not isinstance(output, Tensor):
                raise RuntimeError(
                    f"{name}: Expected f(*args) to return a Tensor, got {type(output)}"
                )
            if output.dim():
                raise RuntimeError(
                    f"{name}: Expected f(*args) to return a scalar Tensor, got tensor with "
                    f"{output.dim()} dims. Maybe you wanted to use the vjp or jacrev APIs instead?"
                )
            recorded = outside and inputs.joins_others([output])
            found = inputs.gradients([output], None, recorded, recorded)
        gradients = inputs.unflatten(found)
        gradient = gradients[0] if isinstance(argnums, int) else gradients
        value, aux = inputs.released((output, aux)) if outside else _without_history((output, aux))
        return gradient, (value, aux) if has_aux else value

    return wrapper


def _without_history(value: Any) -> Any:
    leaves, tree = tree_flatten(value)
    return tree.unflatten(plain(t) for t in leaves)


def grad(
    func: Callable[..., Any], argnums: int | tuple[int, ...] = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """Return a function that computes the gradient of `func`.

    Args:
        func: returns a tensor with one element and no dimensions.
        argnums: by which positional argument, or by which ones: then the gradient is a tuple. An
            argument may be a tensor, or a tuple, list or dictionary of them, and so is its
            gradient.
        has_aux: `func` returns `(output, aux)`, and the new function `(gradient, aux)`.

    The gradient is recorded where something outside of the call may want to differentiate it:
    transforms can be nested.

    Raises:
        RuntimeError: `func` returns something else, or argnums fits no argument.
        ValueError: an argument to differentiate by is no tensor.

    >>> import taeda
    >>> from taeda.func import grad
    >>> grad(grad(taeda.sin))(taeda.tensor(0.5)) + taeda.tensor(0.5).sin()
    tensor(0.)
    """
    both = grad_and_value(func, argnums, has_aux)

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        gradient, value = both(*args, **kwargs)
        return (gradient, value[1]) if has_aux else gradient

    return wrapper


def vjp(func: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """Run `func`, and return its output and a function that multiplies with its Jacobian.

    Args:
        func: returns a tensor, or a tuple, list or dictionary of them.
        primals: its arguments, likewise.
        has_aux: `func` returns `(output, aux)`.

    Returns:
        `(output, vjp_fn)`, or `(output, vjp_fn, aux)`. `vjp_fn(cotangents)` takes something of the
        structure of the output and returns a tuple with the product for each of the primals.

    >>> import taeda
    >>> y, vjp_fn = taeda.func.vjp(lambda x: x**2, taeda.tensor([1.0, 2.0]))
    >>> vjp_fn(taeda.ones(2))
    (tensor([2., 4.]),)
    """
    outside = _C.is_grad_enabled()
    with enable_grad():
        inputs = Arguments(primals, range(len(primals)))
        result, aux = separated(func(*inputs.args), has_aux, "vjp(f, *primals)")
        leaves, tree = tree_flatten(result)
        outputs = tensors_only(leaves, f"vjp(f, *primals): {_TENSORS}")
    joined = inputs.joins_others(outputs)

    def vjp_fn(
        cotangents: Any, retain_graph: bool = True, create_graph: bool | None = None
    ) -> tuple[Any, ...]:
        weights, given = tree_flatten(cotangents)
        if given != tree:
            raise RuntimeError(
                "Expected pytree structure of cotangents to be the same as pytree structure of "
                f"outputs to the function. cotangents: {given}, primal output: {tree}"
            )
        tensors_only(weights, "vjp_fn(cotangents): expected tensors")
        if create_graph is None:
            create_graph = _C.is_grad_enabled() and (
                joined or any(w.requires_grad for w in weights)
            )
        return inputs.unflatten(inputs.gradients(outputs, weights, retain_graph, create_graph))

    release = inputs.released if outside else _without_history
    output = release(result)
    return (output, vjp_fn, release(aux)) if has_aux else (output, vjp_fn)


def _directions(primals: Any, tangents: Any) -> tuple[list[Tensor], list[Tensor]]:
    if not isinstance(primals, tuple):
        raise RuntimeError(
            "jvp(f, primals, tangents): Expected primals to be a tuple. E.g. it should be valid to "
            "call f(*primals)."
        )
    flat, tree = tree_flatten(primals)
    vectors, given = tree_flatten(tangents)
    if tree != given:
        raise RuntimeError(
            "jvp(f, primals, tangents): Expected primals and tangents to have the same python "
            "structure. For example, if primals is a tuple of 3 tensors, tangents also must be. "
            f"Got primals with structure {tree} and tangents with structure {given}"
        )
    if not flat:
        raise RuntimeError(
            "jvp(f, primals, tangents): Expected primals to contain at least one Tensor."
        )
    for what, values in (("primals", flat), ("tangents", vectors)):
        for value in values:
            if not isinstance(value, Tensor):
                raise RuntimeError(
                    f"jvp(f, primals, tangents): Expected {what} to only contain Tensors, got "
                    f"{type(value)}"
                )
    return flat, vectors


def jvp(
    func: Callable[..., Any],
    primals: tuple[Any, ...],
    tangents: tuple[Any, ...],
    *,
    strict: bool = False,
    has_aux: bool = False,
) -> Any:
    """Run `func`, and multiply its Jacobian with `tangents`, in forward mode.

    Args:
        func: returns a tensor, or a tuple, list or dictionary of them.
        primals: the tuple of its arguments, likewise.
        tangents: of the structure and sizes of primals.
        strict: an output that no argument has to do with is an error rather than zeros.
        has_aux: `func` returns `(output, aux)`.

    Returns:
        `(output, product)`, or `(output, product, aux)`.

    Inside of another `jvp` or a `dual_level`, which hold the one level that there is, the product
    is computed by running backward twice.

    >>> import taeda
    >>> taeda.func.jvp(taeda.sin, (taeda.tensor(0.0),), (taeda.tensor(2.0),))
    (tensor(0.), tensor(2.))
    """
    flat, vectors = _directions(primals, tangents)
    if _C._at_dual_level():
        return _jvp_by_vjps(func, primals, vectors, strict, has_aux)
    _, tree = tree_flatten(primals)
    with dual_level():
        duals = [make_dual(x, t) for x, t in zip(flat, vectors, strict=True)]
        result, aux = separated(func(*tree.unflatten(duals)), has_aux, _JVP)
        outputs, structure = tree_flatten(result)
        tensors_only(outputs, f"{_JVP}: {_TENSORS}")
        unpacked = [unpack_dual(o) for o in outputs]
        if strict and any(u.tangent is None for u in unpacked):
            _fail_strict()
        found = [zeros(u.primal) if u.tangent is None else u.tangent for u in unpacked]
        output = structure.unflatten(u.primal for u in unpacked)
        extra, extra_tree = tree_flatten(aux)
        aux = extra_tree.unflatten(
            unpack_dual(t).primal if isinstance(t, Tensor) else t for t in extra
        )
    product = structure.unflatten(found)
    return (output, product, aux) if has_aux else (output, product)


def _fail_strict() -> None:
    raise RuntimeError(
        "jvp(f, primals, tangents, strict=True): The output of f is independent of the inputs. "
        "This is not allowed with strict=True."
    )


class _Linear:
    """The derivative of a function at some arguments: a gradient, as a function of its weights."""

    def __init__(self, func: Callable[..., Any], primals: tuple[Any, ...], has_aux: bool) -> None:
        with enable_grad():
            self.inputs = Arguments(primals, range(len(primals)))
            self.result, self.aux = separated(func(*self.inputs.args), has_aux, _JVP)
            leaves, self.tree = tree_flatten(self.result)
            self.outputs = tensors_only(leaves, f"{_JVP}: {_TENSORS}")
            self.weights = [fresh(zeros(o)) if o.requires_grad else zeros(o) for o in self.outputs]
            self.joined = self.inputs.joins_others(self.outputs)
            self.gradients = self.inputs.gradients(self.outputs, self.weights, True, True)

    def product(self, vectors: list[Tensor]) -> list[Tensor | None]:
        """The Jacobian times `vectors`; None for an output that depends on no argument."""
        kept = [i for i, g in enumerate(self.gradients) if g.requires_grad]
        by = [w for w in self.weights if w.requires_grad]
        recorded = _C.is_grad_enabled() and (self.joined or any(v.requires_grad for v in vectors))
        if not kept or not by:
            return [None] * len(self.outputs)
        with enable_grad():
            found = iter(
                gradients_of(
                    [self.gradients[i] for i in kept],
                    by,
                    [vectors[i] for i in kept],
                    retain_graph=True,
                    create_graph=recorded,
                    allow_unused=True,
                )
            )
        return [next(found) if w.requires_grad else None for w in self.weights]


def _jvp_by_vjps(
    func: Callable[..., Any],
    primals: tuple[Any, ...],
    vectors: list[Tensor],
    strict: bool,
    has_aux: bool,
) -> Any:
    linear = _Linear(func, primals, has_aux)
    for x, v in zip(linear.inputs.given, vectors, strict=True):
        if x.shape != v.shape:
            raise RuntimeError(
                "Trying to set a forward gradient that has a different size than that of the "
                f"original Tensor, this is not supported. Tensor is of size {list(x.shape)} while "
                f"the given forward gradient is of size {list(v.shape)}."
            )
    found = linear.product(vectors)
    if strict and any(t is None for t in found):
        _fail_strict()
    product = linear.tree.unflatten(
        zeros(o) if t is None else t for t, o in zip(found, linear.outputs, strict=True)
    )
    release = linear.inputs.released if _C.is_grad_enabled() else _without_history
    output = release(linear.result)
    return (output, product, release(linear.aux)) if has_aux else (output, product)


def linearize(func: Callable[..., Any], *primals: Any) -> tuple[Any, Callable[..., Any]]:
    """Run `func` once, and return its output and a function that multiplies with its Jacobian.

    `jvp_fn(*tangents)` does what `jvp` does at these primals, for as many tangents as there are to
    come, without running `func` again.

    >>> import taeda
    >>> y, jvp_fn = taeda.func.linearize(lambda x: x**2, taeda.tensor([1.0, 2.0]))
    >>> jvp_fn(taeda.tensor([1.0, 0.0])), jvp_fn(taeda.tensor([0.0, 1.0]))
    (tensor([2., 0.]), tensor([0., 4.]))
    """
    outside = _C.is_grad_enabled()
    linear = _Linear(func, primals, False)
    _, tree = tree_flatten(primals)

    def jvp_fn(*tangents: Any) -> Any:
        vectors, given = tree_flatten(tangents)
        if given != tree:
            raise RuntimeError(
                f"Expected the tangents {given} to have the same argspec as the primals {tree}"
            )
        for i, (x, v) in enumerate(zip(linear.inputs.given, vectors, strict=True)):
            if not isinstance(v, Tensor) or x.shape != v.shape:
                shape = v.shape if isinstance(v, Tensor) else type(v)
                raise RuntimeError(
                    f"tangent:{i} with shape {shape} in flattened pytree doesn't match the shape "
                    f"{x.shape} of the corresponding primal."
                )
        found = linear.product(vectors)
        return linear.tree.unflatten(
            zeros(o) if t is None else t for t, o in zip(found, linear.outputs, strict=True)
        )

    output = linear.inputs.released(linear.result) if outside else _without_history(linear.result)
    return output, jvp_fn
