"""Findings about the loss and the gradients: how they were made, and what they hold."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import Any

import taeda
from taeda import _C

from ._context import Context, Finding
from ._findings import Rule, listed
from ._graph import Graph, Op, Shape
from ._module_index import REARRANGING

_SEEN_THROUGH = REARRANGING | {"index", "dropout"}
_WITH_LOGITS = {"cross_entropy", "cross_entropy_loss"}
# Losses of pairs of elements, and differences.
_COMPARING = {"sub", "rsub"} | {
    name for name, (form, *_) in _C._op_traits("vmap").items() if form == "loss"
}
_SAVED = ("self", "input", "result", "other", "exponent", "target", "weight")


def detached(context: Context) -> Iterator[Finding]:
    """A loss without a graph."""
    loss = context.loss
    if loss.grad_fn is not None:
        return
    if loss.requires_grad:
        yield Finding(
            "detached",
            "The loss is a leaf: it was made anew, as by taeda.tensor(...), and backward() ends "
            "right there.",
            "loss = loss_fn(model(x), y)  # the result itself, not a new tensor of its value",
        )
    elif context.model is None or context.trainable:
        yield Finding(
            "detached",
            "The loss has no graph: it was computed within no_grad() or inference_mode(), or went "
            "through .detach(), .data, .item(), NumPy, or an operation without a gradient such as "
            "argmax or a comparison.",
            "loss = loss_fn(model(x), y)  # outside of no_grad(), from the outputs themselves",
        )


def scalar(context: Context) -> Iterator[Finding]:
    """A loss of several numbers."""
    if context.loss.numel() != 1:
        yield Finding(
            "not_scalar",
            f"The loss has shape {tuple(context.loss.shape)}; backward() needs a single number.",
            "loss = loss.mean()",
        )


def mode(context: Context) -> Iterator[Finding]:
    """Modules in evaluation mode."""
    if context.model is None:
        return
    if not context.model.training:
        yield Finding(
            "eval",
            "The model is in evaluation mode: dropout is off and batch normalisation uses and "
            "keeps old statistics.",
            "model.train()",
        )
        return
    names = [name for name, module in context.model.named_modules() if not module.training]
    if names:
        yield Finding(
            "eval_part",
            f"{listed(names)} is in evaluation mode, the model as a whole is not.",
            "model.train()  # if that is not meant",
            tuple(names),
            "note",
        )


def zero_grad(context: Context) -> Iterator[Finding]:
    """Gradients of earlier steps that a new one is added to, and used ones."""
    left: list[str] = []
    summed: list[str] = []
    stale: list[str] = []
    several = 0
    for p in context.parameters:
        state = context.gradient(p)
        if state.state in ("none", "zero"):
            continue
        name = context.name(p)
        if id(p) in context.grads and context.is_pending(p):
            left.append(name)
        elif state.state == "stale":
            stale.append(name)
        elif state.state == "accumulated":
            (left if state.used else summed).append(name)
            several = max(several, state.backwards)
    mend = "optimizer.zero_grad()  # in every step, before loss.backward()"
    if left:
        yield Finding(
            "zero_grad",
            f"{listed(left)} still hold the gradient of an earlier backward(), and the one of "
            "this loss is added to it.",
            mend,
            tuple(left),
        )
    if summed:
        yield Finding(
            "accumulated",
            f"The gradient of {listed(summed)} is the sum of {several} backwards, or was changed "
            "in place, as clipping does.",
            f"{mend}; unless a sum is meant",
            tuple(summed),
            "note",
        )
    if stale:
        yield Finding(
            "stale",
            f"A step has used the gradient of {listed(stale)}; another step() now repeats it.",
            "optimizer.zero_grad(); loss.backward()  # before the next optimizer.step()",
            tuple(stale),
            "note",
        )


def logits(context: Context) -> Iterator[Finding]:
    """A softmax or sigmoid where the loss function applies one itself, or none where it must."""
    yield from wrong_input(context.graph)


def wrong_input(graph: Graph) -> Iterator[Finding]:
    """The same, of a graph."""
    for op in graph.running():
        if op.module is not None:
            continue
        if op.name in _WITH_LOGITS or op.name == "log_softmax":
            before = graph.source(op, 0, _SEEN_THROUGH)
            if before is not None and before.name in ("softmax", "log_softmax", "sigmoid"):
                place = f" (`{before.module}`)" if before.module else ""
                yield Finding(
                    "softmax",
                    f"{before.name}{place} comes before cross_entropy, which takes the softmax of "
                    "its input itself: gradients are much too small.",
                    "loss = taeda.nn.functional.cross_entropy(logits, y)  # logits: without "
                    f"{before.name}",
                    (before.module,) if before.module else (),
                )
        elif op.name == "binary_cross_entropy_with_logits":
            before = graph.source(op, 0, _SEEN_THROUGH)
            if before is not None and before.name in ("sigmoid", "softmax"):
                yield Finding(
                    "sigmoid",
                    f"{before.name} comes before binary_cross_entropy_with_logits, which takes "
                    "the sigmoid of its input itself.",
                    "loss = taeda.nn.functional.binary_cross_entropy(probabilities, y)  # or "
                    f"leave out {before.name}",
                )
        elif op.name in ("nll_loss", "nll_loss2d"):
            before = graph.source(op, 0, _SEEN_THROUGH)
            if before is not None and before.name in ("linear", "conv", "relu", "softmax"):
                yield Finding(
                    "nll",
                    f"nll_loss gets the result of {before.name}; it needs logarithms of "
                    "probabilities.",
                    "loss = taeda.nn.functional.cross_entropy(logits, y)  # in place of nll_loss",
                )


def broadcast(context: Context) -> Iterator[Finding]:
    """Predictions and targets of different shapes, compared each with each."""
    yield from expanded(context.graph)


def expanded(graph: Graph) -> Iterator[Finding]:
    """The same, of a graph whose shapes are known."""
    for op in graph.running():
        if op.module is not None or op.name not in _COMPARING:
            continue
        found = _each_with_each(graph, op)
        if found is None:
            continue
        one, other = found
        yield Finding(
            "broadcast",
            f"{op.name} compares predictions of shape {one} with targets of another shape: "
            f"broadcasting makes {other} of them, each prediction against each target.",
            "y = y.reshape(prediction.shape)  # before the loss: (N,) and (N, 1) do not pair up",
        )
        return


def _each_with_each(graph: Graph, op: Op) -> tuple[Shape, Shape] | None:
    """The shape of the predictions and what they were expanded to, if they were."""
    for number, key in enumerate(op.inputs):
        if key is None:
            continue
        wide = op.shape if op.name in ("sub", "rsub") else None
        narrow = op.in_shapes[number] if number < len(op.in_shapes) else None
        maker = graph.ops[key]
        if maker.name == "unsqueeze":  # as s[:, None] - s[None, :], which is meant
            continue
        if maker.name in ("expand", "broadcast_to"):
            wide, narrow = maker.shape, next((s for s in maker.in_shapes if s), None)
        elif op.name not in ("sub", "rsub"):
            saved, target = op.saved("self"), op.saved("target")
            if saved is not None and target is not None:
                narrow = tuple(saved.shape)
                wide = _together(narrow, tuple(target.shape))
        if wide and narrow and _is_outer(narrow, wide):
            return narrow, wide
    return None


def _together(a: Shape, b: Shape) -> Shape:
    rank = max(len(a), len(b))
    a, b = (1,) * (rank - len(a)) + a, (1,) * (rank - len(b)) + b
    return tuple(max(m, n) for m, n in zip(a, b, strict=True))


def _is_outer(narrow: Shape, wide: Shape) -> bool:
    """Whether one column, or one row, of N values has become N of them."""
    n = prod(narrow)
    return n > 1 and wide[-2:] == (n, n) and prod(wide) == n * n


def not_finite(context: Context) -> Iterator[Finding]:
    """Infinities and NaN, and the operation where they first arose."""
    bad = [p for p in context.parameters if not p.isfinite().all()]
    if bad:
        names = [context.name(p) for p in bad]
        yield Finding(
            "weights_not_finite",
            f"{listed(names)} is not finite: an earlier step has destroyed it.",
            "model.load_state_dict(...)  # an earlier state; then clip gradients, or lower lr",
            tuple(names),
        )
        return
    if context.loss.is_floating_point() and not context.loss.isfinite().all():
        place = first_in_forward(context.graph)
        yield Finding(
            "loss_not_finite",
            f"The loss is {_value(context.loss)}" + (f": {place}." if place else "."),
            fix_for(place),
        )
    elif any(not g.is_sparse and not g.isfinite().all() for g in context.grads.values()):
        bad = [p for p in context.parameters if not _fine(context.grads.get(id(p)))]
        names = [context.name(p) for p in bad]
        place = first_in_backward(context.graph)
        yield Finding(
            "grad_not_finite",
            f"backward() gives {listed(names)} a gradient that is not finite"
            + (f": {place}." if place else "."),
            fix_for(place),
            tuple(names),
        )
    else:
        bad = [p for p in context.parameters if not _fine(p.grad)]
        if bad:
            names = [context.name(p) for p in bad]
            yield Finding(
                "grad_not_finite",
                f"The gradient of {listed(names)} is not finite; a step would destroy the weights.",
                "optimizer.zero_grad()  # and leave the step out",
                tuple(names),
            )


def _fine(grad: Any) -> bool:
    return grad is None or grad.is_sparse or bool(grad.isfinite().all())


def _value(loss: Any) -> str:
    return f"{loss.item():g}" if loss.numel() == 1 else "not finite"


FIXES = {
    "log": "x.clamp(min=1e-12).log()  # log(0) is infinite",
    "sqrt": "(x + 1e-12).sqrt()  # the slope of sqrt at 0 is infinite",
    "div": "x / (y + 1e-12)  # y is 0 somewhere",
    "pow": "x.clamp(min=1e-12) ** p  # the slope at 0 is infinite",
    "norm": "(x.square().sum() + 1e-12).sqrt()  # the slope of a norm at 0 is not defined",
    "exp": "x.clamp(max=80).exp()  # exp overflows",
    "acos": "x.clamp(-1 + 1e-6, 1 - 1e-6).acos()  # the slope at the ends is infinite",
}


def fix_for(place: str) -> str:
    word = place.split()[0] if place else ""
    default = (
        "taeda.nn.utils.clip_grad_norm_(model.parameters(), 1.0)  # before step(); or lower lr"
    )
    return FIXES.get(word.rpartition("_")[2], default)


def _at(op: Op) -> str:
    return f"{op.name} in `{op.module}`" if op.module else op.name


def first_in_forward(graph: Graph) -> str:
    """Words for the first operation whose result is not finite, as far as values were kept."""
    for key in reversed(graph.order):
        op = graph.ops[key]
        if op.leaf is not None:
            continue
        for name in _SAVED:
            value = op.saved(name)
            if value is None or not value.is_floating_point() or bool(value.isfinite().all()):
                continue
            if name == "result":
                return f"{_at(op)} gives values that are not finite"
            number = 1 if name in ("other", "exponent") else 0
            maker = graph.source(op, number)
            if maker is None or maker.leaf is not None or name in ("target", "weight"):
                return f"the data that {_at(op)} gets is not finite"
            return f"{_at(maker)} gives values that are not finite"
        if _overflows(op):
            return f"{_at(op)} gives values that are not finite"
    last = next(graph.running(), None)
    return f"{_at(last)} gives it, of finite values" if last is not None else ""


def _overflows(op: Op) -> bool:
    """Whether an operation on finite values that were kept, done again, is not finite."""
    function: Any = getattr(taeda, op.name, None)
    values = [v for v in (op.saved("self"), op.saved("other")) if v is not None]
    if function is None or not values or len(values) != len(op.inputs):
        return False
    try:
        with taeda.no_grad():
            result = function(*values)
    except (TypeError, RuntimeError):
        return False
    return isinstance(result, taeda.Tensor) and not bool(result.isfinite().all())


def first_in_backward(graph: Graph) -> str:
    """Words for the operation whose derivative made values that are not finite."""
    found = next((op for op in graph.running() if op.spoils), None)
    return f"{_at(found)} is where it first arises" if found is not None else ""


def updates(context: Context) -> Iterator[Finding]:
    """Gradients of exactly zero."""
    zero = [
        context.name(p)
        for p in context.parameters
        if (g := context.grads.get(id(p))) is not None and not g.is_sparse and not g.any()
    ]
    if zero:
        yield Finding(
            "zero_gradient",
            f"The gradient of {listed(zero)} is exactly zero: dead or saturated units, or unused "
            "rows.",
            names=tuple(zero),
            level="note",
        )


RULES: tuple[Rule, ...] = (
    detached, scalar, mode, zero_grad, logits, broadcast, not_finite, updates
)  # fmt: skip
