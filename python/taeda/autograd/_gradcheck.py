"""Checking derivatives against finite differences."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

from taeda import _C
from taeda._C import Tensor
from taeda.autograd import forward_ad
from taeda.autograd._run import grad
from taeda.autograd.function import Function
from taeda.autograd.grad_mode import enable_grad, no_grad

__all__ = ["GradcheckError", "gradcheck", "gradgradcheck"]

ops = _C.ops


class GradcheckError(RuntimeError):
    """A derivative is not what finite differences say."""


def _differentiable(values: Sequence[Any]) -> list[Tensor]:
    return [v for v in values if isinstance(v, Tensor) and v.requires_grad]


def _as_tuple(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, (tuple, list)) else (value,)


def _outputs_of(func: Callable[..., Any], inputs: Sequence[Any]) -> list[Tensor]:
    outputs = [o for o in _as_tuple(func(*inputs)) if isinstance(o, Tensor)]
    return [o for o in outputs if o.is_floating_point() or o.is_complex()]


def _reals(t: Tensor) -> Tensor:
    """All real numbers in `t`, in a row: a complex element gives two."""
    t = t.detach().contiguous()
    return (ops.view_as_real(t) if t.is_complex() else t).reshape(-1)


def _with_value(t: Tensor, place: int, delta: float) -> Any:
    """Add `delta` to one real number of `t`, counted as `_reals` counts them. Returns the old."""
    index, part = divmod(place, 2) if t.is_complex() else (place, 0)
    flat = []
    for size in reversed(t.shape):
        flat.append(index % size)
        index //= size
    where = tuple(reversed(flat))
    with no_grad():
        old = t[where].clone()
        t.data[where] = old + (delta * 1j if part else delta)
    return where, old


def _numerical(
    func: Callable[..., Any], inputs: Sequence[Any], x: Tensor, eps: float, count: int
) -> list[list[Tensor]]:
    """For each output the list of its changes, one per real number of `x`."""
    columns: list[list[Tensor]] = [[] for _ in range(count)]
    steps = x.numel() * (2 if x.is_complex() else 1)
    for place in range(steps):
        ends = []
        for sign in (eps, -eps):
            where, old = _with_value(x, place, sign)
            try:
                with no_grad():
                    ends.append([_reals(o).clone() for o in _outputs_of(func, inputs)])
            finally:
                with no_grad():
                    x.data[where] = old
        for k in range(count):
            columns[k].append((ends[0][k] - ends[1][k]) / (2 * eps))
    return columns


def _one_hot(like: Tensor, place: int) -> Tensor:
    v = ops.zeros(list(like.shape), dtype=like.dtype, device=like.device)
    index, part = divmod(place, 2) if like.is_complex() else (place, 0)
    v.reshape(-1)[index] = 1j if part else 1
    return v


def _analytical(output: Tensor, wanted: Sequence[Tensor]) -> list[list[Tensor]]:
    """For each wanted input the list of gradients, one per real number of `output`."""
    rows: list[list[Tensor]] = [[] for _ in wanted]
    for place in range(output.numel() * (2 if output.is_complex() else 1)):
        weights = _one_hot(output, place)
        found = grad(output, wanted, weights, retain_graph=True, allow_unused=True)
        for row, g, x in zip(rows, found, wanted, strict=True):
            if g is not None and g.shape != x.shape:
                raise GradcheckError(
                    f"Gradient has incorrect size: {tuple(g.shape)} for an input of size "
                    f"{tuple(x.shape)}"
                )
            row.append(_reals(ops.zeros_like(x) if g is None else g))
    return rows


def _matrix(lines: list[Tensor], rows: int, columns: int, like: Tensor) -> Tensor:
    if not lines or rows * columns == 0:
        return ops.zeros([rows, columns], dtype=_reals(like).dtype)
    return ops.stack(lines)


def _check_inputs(inputs: Sequence[Any], eps: float) -> list[Tensor]:
    wanted = _differentiable(inputs)
    if not wanted:
        raise ValueError(
            "gradcheck expects at least one input tensor to require gradient, but none of them "
            "have requires_grad=True."
        )
    for i, x in enumerate(inputs):
        if not isinstance(x, Tensor) or not x.requires_grad:
            continue
        if x.dtype not in (_C.float64, _C.complex128) and eps < 1e-4:
            warnings.warn(
                f"Input #{i} requires gradient and is not a double precision floating point or "
                "complex. This check will likely fail if all the inputs are not of double "
                "precision floating point or complex.",
                stacklevel=4,
            )
        if any(st == 0 and size > 1 for size, st in zip(x.shape, x.stride(), strict=True)):
            raise RuntimeError(
                f"The {i}th input has a dimension with stride 0. gradcheck only supports inputs "
                "that are non-overlapping to be able to compute the numerical gradients correctly."
            )
        x.retain_grad()
    return wanted


class _NoGradient(Function):
    """The same tensors, with a derivative that gives nothing."""

    @staticmethod
    def forward(ctx: Any, *tensors: Tensor) -> Any:
        return tuple(t.clone() for t in tensors)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return (None,) * len(grads)


def _check_forward(
    func: Callable[..., Any],
    inputs: Sequence[Any],
    numerical: list[list[list[Tensor]]],
    atol: float,
    rtol: float,
) -> None:
    """Compare the tangents of the outputs, one real number of an input at a time."""
    wanted = [i for i, x in enumerate(inputs) if isinstance(x, Tensor) and x.requires_grad]
    for j, position in enumerate(wanted):
        x = inputs[position]
        for place in range(x.numel() * (2 if x.is_complex() else 1)):
            with forward_ad.dual_level():
                given = list(inputs)
                given[position] = forward_ad.make_dual(x, _one_hot(x, place))
                found = [forward_ad.unpack_dual(o) for o in _outputs_of(func, given)]
            for i, (primal, tangent) in enumerate(found):
                a = _reals(ops.zeros_like(primal) if tangent is None else tangent).to(_C.float64)
                n = numerical[j][i][place].to(_C.float64)
                if not bool(ops.isclose(a, n, rtol, atol).all()):
                    raise GradcheckError(
                        f"Jacobian computed with forward mode mismatch for output {i} with respect "
                        f"to input {j}, at its element {place},\nnumerical:{n}\nanalytical:{a}\n"
                    )


def _check_undefined(func: Callable[..., Any], inputs: Sequence[Any], wanted: list[Tensor]) -> None:
    outputs = _differentiable(_outputs_of(func, inputs))
    if not outputs:
        return
    weights = [ops.ones_like(o).detach() for o in outputs]
    for g in grad(list(_NoGradient.apply(*outputs)), wanted, weights, allow_unused=True):
        if g is not None and not bool((g == 0).all()):
            raise GradcheckError(
                "Expected the backward function to handle undefined output grads: gradients that "
                "are missing must count as zero"
            )


def _run(
    func: Callable[..., Any],
    inputs: Sequence[Any],
    eps: float,
    atol: float,
    rtol: float,
    nondet_tol: float,
    check_undefined_grad: bool,
    check_grad_dtypes: bool,
    check_forward_ad: bool,
    check_backward_ad: bool,
) -> None:
    if not check_forward_ad and not check_backward_ad:
        raise AssertionError(
            "Expected at least one of check_forward_ad or check_backward_ad to be True"
        )
    wanted = _check_inputs(inputs, eps)
    with enable_grad():
        outputs = _outputs_of(func, inputs)
        again = _outputs_of(func, inputs)
    if not _differentiable(outputs):
        for j, x in enumerate(wanted):
            for i, column in enumerate(_numerical(func, inputs, x, eps, len(outputs))):
                if any(bool((c != 0).any()) for c in column):
                    raise GradcheckError(
                        f"Numerical gradient for function expected to be zero: output {i} does not "
                        f"require a gradient, but depends on input {j}"
                    )
        return
    numerical = [_numerical(func, inputs, x, eps, len(outputs)) for x in wanted]
    if check_forward_ad:
        _check_forward(func, inputs, numerical, atol, rtol)
    if not check_backward_ad:
        return
    for i, output in enumerate(outputs):
        if not output.requires_grad:
            continue
        analytical, repeated = _analytical(output, wanted), _analytical(again[i], wanted)
        if check_grad_dtypes:
            found = grad(
                output, wanted, ops.ones_like(output), retain_graph=True, allow_unused=True
            )
            for g, x in zip(found, wanted, strict=True):
                if g is not None and g.dtype != x.dtype:
                    raise GradcheckError(f"Gradient has dtype {g.dtype} for an input of {x.dtype}")
        for j, x in enumerate(wanted):
            rows, columns = _reals(output).numel(), _reals(x).numel()
            a = _matrix(analytical[j], rows, columns, x).to(_C.float64)
            b = _matrix(repeated[j], rows, columns, x).to(_C.float64)
            if a.numel() and float((a - b).abs().max()) > nondet_tol:
                raise GradcheckError(
                    "Backward is not reentrant, i.e., running backward with same input and "
                    f"grad_output multiple times gives different values. The tolerance for "
                    f"nondeterminism was {nondet_tol}."
                )
            n = _matrix(numerical[j][i], columns, rows, x).to(_C.float64).t()
            if a.numel() and not bool(ops.isclose(a, n, rtol, atol).all()):
                raise GradcheckError(
                    f"Jacobian mismatch for output {i} with respect to input {j},\n"
                    f"numerical:{n}\nanalytical:{a}\n"
                )
    if check_undefined_grad:
        _check_undefined(func, inputs, wanted)


def gradcheck(
    func: Callable[..., Any],
    inputs: Any,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_forward_ad: bool = False,
    check_backward_ad: bool = True,
) -> bool:
    """Compare the gradients of `func` with `(f(x + eps) - f(x - eps)) / (2 eps)`.

    Both Jacobians are computed whole, so inputs should be small; they should be of float64 or
    complex128, with values where `func` is smooth. A complex number counts as two real ones.

    Args:
        func: a function of tensors that returns a tensor or a tuple of them.
        inputs: its argument, or a tuple of them; those with `requires_grad` are checked.
        eps: how far the inputs are moved.
        atol: absolute tolerance.
        rtol: relative tolerance.
        raise_exception: raise an error where they differ; with False, return False.
        nondet_tol: how far two runs of the same backward may differ.
        check_undefined_grad: also check that missing gradients of outputs count as zeros.
        check_grad_dtypes: also check that each gradient has the dtype of its input.
        check_forward_ad: also check the tangents of forward mode.
        check_backward_ad: check the gradients; with False, the tangents alone.

    Raises:
        GradcheckError: they differ. ValueError: no input requires a gradient.

    >>> import taeda
    >>> x = taeda.rand(3, dtype=taeda.float64, requires_grad=True)
    >>> taeda.autograd.gradcheck(taeda.tanh, x)
    True
    """
    inputs = _as_tuple(inputs)
    try:
        _run(
            func,
            inputs,
            eps,
            atol,
            rtol,
            nondet_tol,
            check_undefined_grad,
            check_grad_dtypes,
            check_forward_ad,
            check_backward_ad,
        )
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def gradgradcheck(
    func: Callable[..., Any],
    inputs: Any,
    grad_outputs: Any = None,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_fwd_over_rev: bool = False,
    check_rev_over_rev: bool = True,
) -> bool:
    """`gradcheck` of the gradients of `func`: checks its second derivatives.

    Args:
        func: as in `gradcheck`.
        inputs: as in `gradcheck`.
        grad_outputs: the gradients of the outputs at which the derivative is taken; random ones by
            default.
        eps: as in `gradcheck`, like all that follow.
        atol: absolute tolerance.
        rtol: relative tolerance.
        raise_exception: raise an error where they differ.
        nondet_tol: how far two runs of the same backward may differ.
        check_undefined_grad: also check that missing gradients count as zeros.
        check_grad_dtypes: also check the gradients' dtypes.
        check_fwd_over_rev: also check the tangents that gradients have in forward mode.
        check_rev_over_rev: check the gradients of gradients.

    >>> import taeda
    >>> x = taeda.rand(3, dtype=taeda.float64, requires_grad=True)
    >>> taeda.autograd.gradgradcheck(taeda.tanh, x)
    True
    """
    inputs = _as_tuple(inputs)
    if grad_outputs is None:
        weights = []
        for output in _differentiable(_outputs_of(func, inputs)):
            random = ops.randn(output.shape, dtype=output.dtype, device=output.device)
            weights.append(random.requires_grad_())
    else:
        weights = list(_as_tuple(grad_outputs))
    count = len(weights)

    def gradients(*args: Any) -> tuple[Tensor, ...]:
        given, weighted = args[: len(args) - count], args[len(args) - count :]
        with enable_grad():
            outputs = _differentiable(_outputs_of(func, given))
            found = grad(
                outputs, _differentiable(given), weighted, create_graph=True, allow_unused=True
            )
        return tuple(g for g in found if g is not None)

    return gradcheck(
        gradients,
        (*inputs, *weights),
        eps=eps,
        atol=atol,
        rtol=rtol,
        raise_exception=raise_exception,
        nondet_tol=nondet_tol,
        check_undefined_grad=check_undefined_grad,
        check_grad_dtypes=check_grad_dtypes,
        check_forward_ad=check_fwd_over_rev,
        check_backward_ad=check_rev_over_rev,
    )
