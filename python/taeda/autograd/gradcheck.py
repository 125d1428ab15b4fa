"""Checking derivatives against finite differences."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from taeda import _C
from taeda._C import Tensor
from taeda.autograd import forward_ad
from taeda.autograd._jacobians import (
    GradcheckError,
    analytical_jacobian,
    as_tuple,
    differentiable,
    matrix,
    numerical_along,
    numerical_jacobian,
    one_hot,
    outputs_of,
    random_direction,
    reals,
)
from taeda.autograd._run import grad
from taeda.autograd._sparse_inputs import by_elements
from taeda.autograd.function import Function
from taeda.autograd.grad_mode import enable_grad

__all__ = ["GradcheckError", "gradcheck", "gradgradcheck"]

ops = _C.ops


class _Options(NamedTuple):
    """The options of `gradcheck`."""

    eps: float
    atol: float
    rtol: float
    nondet_tol: float
    undefined_grad: bool
    grad_dtypes: bool
    batched_grad: bool
    batched_forward_grad: bool
    forward_ad: bool
    backward_ad: bool
    fast: bool


def _check_inputs(inputs: Sequence[Any], eps: float) -> list[Tensor]:
    wanted = differentiable(inputs)
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


def _close(a: Tensor, n: Tensor, atol: float, rtol: float) -> bool:
    a, n = a.to("cpu", _C.float64), n.to("cpu", _C.float64)  # input and output may be elsewhere
    return bool(ops.isclose(a, n, rtol, atol).all())


def _tangents(
    func: Callable[..., Any], inputs: Sequence[Any], position: int, direction: Tensor
) -> list[Tensor]:
    """How each output moves as one input moves along `direction`, by forward mode."""
    with forward_ad.dual_level():
        given = list(inputs)
        given[position] = forward_ad.make_dual(inputs[position], direction)
        found = [forward_ad.unpack_dual(o) for o in outputs_of(func, given)]
    return [ops.zeros_like(primal) if t is None else t for primal, t in found]


# ---- every entry of the Jacobians ---------------------------------------------------------------


def _check_forward(
    func: Callable[..., Any],
    inputs: Sequence[Any],
    numerical: list[list[list[Tensor]]],
    options: _Options,
) -> None:
    """Compare the tangents of the outputs, one real number of an input at a time."""
    wanted = [i for i, x in enumerate(inputs) if isinstance(x, Tensor) and x.requires_grad]
    for j, position in enumerate(wanted):
        x = inputs[position]
        for place in range(x.numel() * (2 if x.is_complex() else 1)):
            for i, t in enumerate(_tangents(func, inputs, position, one_hot(x, place))):
                a, n = reals(t), numerical[j][i][place]
                if not _close(a, n, options.atol, options.rtol):
                    raise GradcheckError(
                        f"Jacobian computed with forward mode mismatch for output {i} with respect "
                        f"to input {j}, at its element {place},\nnumerical:{n}\nanalytical:{a}\n"
                    )


def _check_repeats(a: Tensor, b: Tensor, tolerance: float) -> None:
    if a.numel() and float((a - b).abs().max()) > tolerance:
        raise GradcheckError(
            "Backward is not reentrant, i.e., running backward with same input and grad_output "
            f"multiple times gives different values. The tolerance for nondeterminism was "
            f"{tolerance}."
        )


def _check_slow(
    func: Callable[..., Any],
    inputs: Sequence[Any],
    wanted: list[Tensor],
    outputs: list[Tensor],
    options: _Options,
) -> None:
    """Compare all entries of the Jacobians."""
    numerical = [numerical_jacobian(func, inputs, x, options.eps, len(outputs)) for x in wanted]
    if options.forward_ad:
        _check_forward(func, inputs, numerical, options)
    if not options.backward_ad:
        return
    with enable_grad():
        again = outputs_of(func, inputs)
    for i, output in enumerate(outputs):
        if not output.requires_grad:
            continue
        first, second = analytical_jacobian(output, wanted), analytical_jacobian(again[i], wanted)
        for j, x in enumerate(wanted):
            rows, columns = reals(output).numel(), reals(x).numel()
            a = matrix(first[j], rows, columns, x).to(_C.float64)
            _check_repeats(a, matrix(second[j], rows, columns, x), options.nondet_tol)
            n = matrix(numerical[j][i], columns, rows, x).to(_C.float64).t()
            if a.numel() and not _close(a, n, options.atol, options.rtol):
                raise GradcheckError(
                    f"Jacobian mismatch for output {i} with respect to input {j},\n"
                    f"numerical:{n}\nanalytical:{a}\n"
                )


# ---- one number of each Jacobian ----------------------------------------------------------------


def _check_fast(
    func: Callable[..., Any],
    inputs: Sequence[Any],
    wanted: list[Tensor],
    outputs: list[Tensor],
    options: _Options,
) -> None:
    """Compare v^T J u for one random v and u per Jacobian, along which errors of entries add up."""
    with enable_grad():
        again = outputs_of(func, inputs)
    generator = _C.Generator()
    places = [i for i, x in enumerate(inputs) if isinstance(x, Tensor) and x.requires_grad]
    along = [random_direction(x.detach(), generator) for x in wanted]
    weights = [random_direction(o.detach(), generator) for o in outputs]

    def compare(found: Tensor, n: Tensor, u: Tensor, v: Tensor, i: int, j: int, how: str) -> None:
        most = float(reals(u).abs().sum()) * float(reals(v).abs().sum())
        if not _close(found, n, options.atol * most, options.rtol):
            raise GradcheckError(
                f"Jacobian {how}mismatch for output {i} with respect to input {j},\n"
                f"numerical:{float(n)}\nanalytical:{float(found)}\n"
                "Both are v^T J u for one random v and u (fast_mode=True). fast_mode=False shows "
                "which entries of the Jacobian J differ."
            )

    for j, (x, u) in enumerate(zip(wanted, along, strict=True)):
        moved = numerical_along(func, inputs, x, u, options.eps)
        slopes = [(m * reals(v)).sum() for m, v in zip(moved, weights, strict=True)]
        if options.forward_ad:
            for i, t in enumerate(_tangents(func, inputs, places[j], u)):
                a = (reals(t) * reals(weights[i])).sum()
                compare(a, slopes[i], u, weights[i], i, j, "computed with forward mode ")
        if not options.backward_ad:
            continue
        for i, (output, v) in enumerate(zip(outputs, weights, strict=True)):
            if not output.requires_grad:
                continue
            first, second = (
                grad(o, x, v, retain_graph=True, materialize_grads=True)[0]
                for o in (output, again[i])
            )
            _check_repeats(reals(first), reals(second), options.nondet_tol)
            compare((reals(first) * reals(u)).sum(), slopes[i], u, v, i, j, "")


# ---- the rest -----------------------------------------------------------------------------------


class _NoGradient(Function):
    """The same tensors, with a derivative that gives nothing."""

    @staticmethod
    def forward(ctx: Any, *tensors: Tensor) -> Any:
        return tuple(t.clone() for t in tensors)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return (None,) * len(grads)


def _check_undefined(func: Callable[..., Any], inputs: Sequence[Any], wanted: list[Tensor]) -> None:
    outputs = differentiable(outputs_of(func, inputs))
    if not outputs:
        return
    weights = [ops.ones_like(o).detach() for o in outputs]
    for g in grad(list(_NoGradient.apply(*outputs)), wanted, weights, allow_unused=True):
        if g is not None and not bool((g == 0).all()):
            raise GradcheckError(
                "Expected the backward function to handle undefined output grads: gradients that "
                "are missing must count as zero"
            )


def _check_dtypes(wanted: list[Tensor], outputs: list[Tensor]) -> None:
    for output in differentiable(outputs):
        one = ops.ones_like(output)
        found = grad(output, wanted, one, retain_graph=True, allow_unused=True)
        for g, x in zip(found, wanted, strict=True):
            if g is not None and g.dtype != x.dtype:
                raise GradcheckError(f"Gradient has dtype {g.dtype} for an input of {x.dtype}")


def _same_in_a_batch(
    what: str,
    one: Callable[[Tensor], Sequence[Tensor | None]],
    batch: Callable[[Tensor], Sequence[Tensor | None]],
    of: Tensor,
) -> None:
    """Check that a batch of two gives the same results as its elements."""
    generator = _C.Generator()
    pair = [random_direction(of.detach(), generator) for _ in range(2)]
    singly = [one(v) for v in pair]
    try:
        together = batch(ops.stack(pair))
    except RuntimeError as error:
        raise GradcheckError(f"While computing batched {what}, got: {error}") from error
    for i, (b, *members) in enumerate(zip(together, *singly, strict=True)):
        if b is None and all(m is None for m in members):
            continue
        e = ops.stack(members)
        if b is None or not _close(reals(b), reals(e), 1e-8, 1e-5):
            raise GradcheckError(
                f"For tensor {i}, batched {what} differ from those computed one by one:\n"
                f"batched:{b}\none by one:{e}\n"
            )


def _check_batched_grad(wanted: list[Tensor], outputs: list[Tensor]) -> None:
    for output in differentiable(outputs):
        pull = functools.partial(grad, output, wanted, retain_graph=True, allow_unused=True)
        batch = functools.partial(pull, is_grads_batched=True)
        _same_in_a_batch("gradients", pull, batch, output)


def _check_batched_tangents(func: Callable[..., Any], inputs: Sequence[Any]) -> None:
    from taeda.func import vmap

    for position, x in enumerate(inputs):
        if not isinstance(x, Tensor) or not x.requires_grad:
            continue

        push = functools.partial(_tangents, func, inputs, position)
        _same_in_a_batch("tangents", push, vmap(push), x)


def _run(func: Callable[..., Any], inputs: Sequence[Any], options: _Options) -> None:
    for given, needed, asked in (
        ("check_batched_forward_grad", "check_forward_ad", options.batched_forward_grad),
        ("check_batched_grad", "check_backward_ad", options.batched_grad),
    ):
        if asked and not (options.forward_ad if "forward" in needed else options.backward_ad):
            raise AssertionError(f"Setting {given}=True requires {needed} to be True")
    if not options.forward_ad and not options.backward_ad:
        raise AssertionError(
            "Expected at least one of check_forward_ad or check_backward_ad to be True"
        )
    wanted = _check_inputs(inputs, options.eps)
    with enable_grad():
        outputs = outputs_of(func, inputs)
    if not differentiable(outputs):
        _check_constant(func, inputs, wanted, len(outputs), options.eps)
        return
    (_check_fast if options.fast else _check_slow)(func, inputs, wanted, outputs, options)
    if options.batched_forward_grad:
        _check_batched_tangents(func, inputs)
    if not options.backward_ad:
        return
    if options.batched_grad:
        _check_batched_grad(wanted, outputs)
    if options.grad_dtypes:
        _check_dtypes(wanted, outputs)
    if options.undefined_grad:
        _check_undefined(func, inputs, wanted)


def _check_constant(
    func: Callable[..., Any], inputs: Sequence[Any], wanted: list[Tensor], count: int, eps: float
) -> None:
    for j, x in enumerate(wanted):
        for i, column in enumerate(numerical_jacobian(func, inputs, x, eps, count)):
            if any(bool((c != 0).any()) for c in column):
                raise GradcheckError(
                    f"Numerical gradient for function expected to be zero: output {i} does not "
                    f"require a gradient, but depends on input {j}"
                )


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
    check_batched_grad: bool = False,
    check_batched_forward_grad: bool = False,
    check_forward_ad: bool = False,
    check_backward_ad: bool = True,
    fast_mode: bool = False,
    masked: bool | None = None,
) -> bool:
    """Compare the gradients of `func` with `(f(x + eps) - f(x - eps)) / (2 eps)`.

    Both Jacobians are computed whole, so inputs should be small, unless `fast_mode` is set. Inputs
    should be of float64 or complex128, with values where `func` is smooth. A complex number counts
    as two real ones.

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
        check_batched_grad: also check that `vmap` over backward gives the same gradients.
        check_batched_forward_grad: also check that `vmap` over forward mode gives the same.
        check_forward_ad: also check the tangents of forward mode.
        check_backward_ad: check the gradients; with False, the tangents alone.
        fast_mode: compare one number of each Jacobian, v^T J u for random vectors v and u. It takes
            a few calls of `func`, whatever the sizes.
        masked: of sparse inputs, True moves the elements that they have, and False (the default)
            all of them.

    Raises:
        GradcheckError: they differ.
        ValueError: no input requires a gradient.
        AssertionError: neither backward nor forward mode is to be checked, or only the other one's
            batches.

    >>> import taeda
    >>> x = taeda.rand(3, dtype=taeda.float64, requires_grad=True)
    >>> taeda.autograd.gradcheck(taeda.tanh, x)
    True
    """
    if masked is not None and not isinstance(masked, bool):
        raise TypeError(f"gradcheck: masked must be a bool, got {masked!r}")
    options = _Options(
        eps,
        atol,
        rtol,
        nondet_tol,
        check_undefined_grad,
        check_grad_dtypes,
        check_batched_grad,
        check_batched_forward_grad,
        check_forward_ad,
        check_backward_ad,
        fast_mode,
    )
    try:
        _run(*by_elements(func, as_tuple(inputs), bool(masked)), options)
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
    gen_non_contig_grad_outputs: bool = False,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_fwd_over_rev: bool = False,
    check_rev_over_rev: bool = True,
    fast_mode: bool = False,
    masked: bool | None = None,
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
        gen_non_contig_grad_outputs: make the random `grad_outputs` non-contiguous.
        raise_exception: raise an error where they differ.
        nondet_tol: how far two runs of the same backward may differ.
        check_undefined_grad: also check that missing gradients count as zeros.
        check_grad_dtypes: also check the gradients' dtypes.
        check_batched_grad: also check that `vmap` over backward gives the same.
        check_fwd_over_rev: also check the tangents that gradients have in forward mode.
        check_rev_over_rev: check the gradients of gradients.
        fast_mode: compare one number of each Jacobian.
        masked: as in `gradcheck`.

    >>> import taeda
    >>> x = taeda.rand(3, dtype=taeda.float64, requires_grad=True)
    >>> taeda.autograd.gradgradcheck(taeda.tanh, x)
    True
    """
    func, inputs = by_elements(func, as_tuple(inputs), bool(masked))
    if grad_outputs is None:
        weights = []
        for output in differentiable(outputs_of(func, inputs)):
            random = ops.randn(output.shape, dtype=output.dtype, device=output.device)
            if gen_non_contig_grad_outputs:
                random = ops.stack([random, random], -1)[..., 0]
            weights.append(random.requires_grad_())
    else:
        weights = list(as_tuple(grad_outputs))
    count = len(weights)

    def gradients(*args: Any) -> tuple[Tensor, ...]:
        given, weighted = args[: len(args) - count], args[len(args) - count :]
        with enable_grad():
            outputs = differentiable(outputs_of(func, given))
            found = grad(
                outputs, differentiable(given), weighted, create_graph=True, allow_unused=True
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
        check_batched_grad=check_batched_grad,
        check_forward_ad=check_fwd_over_rev,
        check_backward_ad=check_rev_over_rev,
        fast_mode=fast_mode,
        masked=masked,
    )
