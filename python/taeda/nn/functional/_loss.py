"""Losses over classes and probabilities, and the differences of regression."""

from __future__ import annotations

import math
import warnings

import taeda
from taeda._C import Tensor, ops
from taeda.nn._reduction import get_enum, resolve

__all__ = [
    "binary_cross_entropy", "binary_cross_entropy_with_logits", "cross_entropy",
    "gaussian_nll_loss", "huber_loss", "kl_div", "l1_loss", "mse_loss",
    "nll_loss", "poisson_nll_loss", "smooth_l1_loss",
]  # fmt: skip


def reduced(loss: Tensor, reduction: str, who: str) -> Tensor:
    """The mean or the sum of a loss, or the loss itself; `who` asks."""
    number = get_enum(reduction, who)
    return loss.mean() if number == 1 else loss.sum() if number == 2 else loss


def cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """Minus the log of the softmax of the right class.

    Args:
        input: logits, of shape (C,), (N, C) or (N, C, ...).
        target: class numbers, of the input's shape without C; or probabilities, of its shape.
        weight: of shape (C,), the weights of the classes.
        size_average, reduce: deprecated; see `reduction`.
        ignore_index: a class number that counts for nothing.
        reduction: "mean" over the targets, by their weights; "sum"; or "none".
        label_smoothing: how much of a uniform distribution is mixed into the target.

    >>> logits = taeda.tensor([[0.0, 0.0], [0.0, 0.0]])
    >>> taeda.nn.functional.cross_entropy(logits, taeda.tensor([0, 1]))
    tensor(0.6931)
    """
    reduction = resolve(reduction, size_average, reduce)
    return ops.cross_entropy_loss(
        input, target, weight, get_enum(reduction, "cross_entropy"), ignore_index, label_smoothing
    )


def nll_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Minus the input at the right class, the input being log probabilities.

    Args:
        input: of shape (C,), (N, C) or (N, C, ...).
        target: class numbers, of the input's shape without C.
        weight, size_average, ignore_index, reduce, reduction: as for `cross_entropy`.

    Raises:
        ValueError: the input and the target differ in N.
    """
    reduction = resolve(reduction, size_average, reduce)
    if input.dim() > 1 and target.dim() and input.size(0) != target.size(0):
        raise ValueError(
            f"nll_loss: Expected input batch_size ({input.size(0)}) to match target batch_size "
            f"({target.size(0)})."
        )
    return ops.nll_loss(input, target, weight, get_enum(reduction, "nll_loss"), ignore_index)


def binary_cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """-(y log x + (1 - y) log(1 - x)), each log limited to -100 or more.

    Args:
        input: probabilities, of any shape.
        target: of the same shape, with values between 0 and 1.
        weight: broadcast to that shape, factors of the elements' losses.
        size_average, reduce: deprecated; see `reduction`.
        reduction: "mean", "sum" or "none".

    Raises:
        ValueError: the input and the target differ in shape.
    """
    reduction = resolve(reduction, size_average, reduce)
    if target.shape != input.shape:
        raise ValueError(
            f"binary_cross_entropy: Using a target size ({target.shape}) that is different to the "
            f"input size ({input.shape}) is deprecated. Please ensure they have the same size."
        )
    if weight is not None:
        weight = weight.expand(target.shape)
    return ops.binary_cross_entropy(
        input, target, weight, get_enum(reduction, "binary_cross_entropy")
    )


def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    pos_weight: Tensor | None = None,
) -> Tensor:
    """`binary_cross_entropy` of the sigmoid of the input, without its loss of precision.

    Args:
        input: logits, of any shape.
        target: of the same shape, with values between 0 and 1.
        weight: broadcast to that shape, factors of the elements' losses.
        size_average, reduce: deprecated; see `reduction`.
        reduction: "mean", "sum" or "none".
        pos_weight: broadcast to that shape, factors of the losses of positive targets.

    Raises:
        ValueError: the input and the target differ in shape.
    """
    reduction = resolve(reduction, size_average, reduce)
    if target.shape != input.shape:
        raise ValueError(
            f"binary_cross_entropy_with_logits: Target size ({target.shape}) must be the same as "
            f"input size ({input.shape})"
        )
    if not (target.is_floating_point() or target.is_complex()):
        raise RuntimeError(
            f"binary_cross_entropy_with_logits: result type {input.dtype} can't be cast to the "
            f"desired output type {target.dtype}: convert the target, target.to(input.dtype)"
        )
    return ops.binary_cross_entropy_with_logits(
        input, target, weight, pos_weight, get_enum(reduction, "binary_cross_entropy_with_logits")
    )


def kl_div(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    log_target: bool = False,
) -> Tensor:
    """The Kullback-Leibler divergence of the target from the input: y (log y - x).

    Args:
        input: log probabilities, of any shape.
        target: probabilities, of the same shape.
        size_average, reduce: deprecated; see `reduction`.
        reduction: "batchmean", the sum divided by the size of the first dimension, is what
            mathematics calls by this name; also "mean", "sum" or "none".
        log_target: the target is given as log probabilities.
    """
    if size_average is not None or reduce is not None:
        reduction = resolve(reduction, size_average, reduce)
    elif reduction == "mean":
        warnings.warn(
            "reduction: 'mean' divides the total loss by both the batch size and the support "
            "size. 'batchmean' divides only by the batch size, and aligns with the KL div math "
            "definition.",
            stacklevel=2,
        )
    for name, tensor in (("input", input), ("target", target)):
        if not (tensor.is_floating_point() or tensor.is_complex()):
            raise RuntimeError(
                f"kl_div: Integral inputs not supported, but {name} is {tensor.dtype}"
            )
    number = get_enum("sum" if reduction == "batchmean" else reduction, "kl_div")
    result = ops.kl_div(input, target, number, log_target=log_target)
    if reduction == "batchmean" and input.dim():
        result = result / input.size(0)
    return result


def _same_size(name: str, input: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    if not (isinstance(input, Tensor) and isinstance(target, Tensor)):
        what, given = ("target", target) if isinstance(input, Tensor) else ("input", input)
        raise AttributeError(f"{name}: {what} must be a Tensor, got {type(given).__name__}")
    if not input.is_same_size(target):
        warnings.warn(
            f"Using a target size ({target.shape}) that is different to the input size "
            f"({input.shape}). This will likely lead to incorrect results due to broadcasting. "
            f"Please ensure they have the same size. (in {name})",
            stacklevel=3,
        )
        input, target = ops.broadcast_tensors([input, target])
    return input, target


def _weighted(who: str, loss: Tensor, weight: Tensor, reduction: str) -> Tensor:
    if weight.shape != loss.shape:
        raise ValueError(
            f"{who}: Weights and input must have the same size. Got shapes {list(weight.shape)} "
            f"and {list(loss.shape)}"
        )
    loss = loss * weight
    return loss.sum() / weight.sum() if reduction == "mean" else reduced(loss, reduction, who)


def mse_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """The squares of the differences.

    Args:
        input: of any shape.
        target: of the same shape; another one is broadcast, with a warning.
        size_average, reduce: deprecated; see `reduction`.
        reduction: "mean", "sum" or "none".
        weight: of the same shape, factors of the elements' losses; the mean is then weighted.

    >>> taeda.nn.functional.mse_loss(taeda.tensor([1.0, 3.0]), taeda.tensor([1.0, 1.0]))
    tensor(2.)
    """
    reduction = resolve(reduction, size_average, reduce)
    input, target = _same_size("mse_loss", input, target)
    if weight is not None:
        return _weighted("mse_loss", ops.mse_loss(input, target, 0), weight, reduction)
    return ops.mse_loss(input, target, get_enum(reduction, "mse_loss"))


def l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """The absolute values of the differences; the arguments are those of `mse_loss`."""
    reduction = resolve(reduction, size_average, reduce)
    input, target = _same_size("l1_loss", input, target)
    if weight is not None:
        return _weighted("l1_loss", ops.l1_loss(input, target, 0), weight, reduction)
    return ops.l1_loss(input, target, get_enum(reduction, "l1_loss"))


def smooth_l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    beta: float = 1.0,
) -> Tensor:
    """d² / (2 beta) for differences d below beta, abs(d) - beta / 2 above (Girshick, 2015).

    Args:
        input, target, size_average, reduce, reduction: as for `mse_loss`.
        beta: where the square ends; 0 makes it `l1_loss`.

    Raises:
        RuntimeError: beta is negative.
    """
    reduction = resolve(reduction, size_average, reduce)
    if beta < 0:
        raise RuntimeError(f"smooth_l1_loss does not support negative values for beta, got {beta}")
    input, target = _same_size("smooth_l1_loss", input, target)
    if beta == 0:
        return ops.l1_loss(input, target, get_enum(reduction, "smooth_l1_loss"))
    return ops.smooth_l1_loss(input, target, get_enum(reduction, "smooth_l1_loss"), beta)


def huber_loss(
    input: Tensor,
    target: Tensor,
    reduction: str = "mean",
    delta: float = 1.0,
    weight: Tensor | None = None,
) -> Tensor:
    """d² / 2 for differences d below delta, delta (abs(d) - delta / 2) above (Huber, 1964).

    Args:
        input, target, reduction, weight: as for `mse_loss`.
        delta: where the square ends.

    Raises:
        RuntimeError: delta is not positive.
    """
    if delta <= 0:
        raise RuntimeError(
            f"huber_loss does not support non-positive values for delta, got {delta}"
        )
    input, target = _same_size("huber_loss", input, target)
    if weight is not None:
        # Unlike those above, the mean of this one is not weighted.
        if weight.shape != input.shape:
            raise ValueError(
                "huber_loss: Weights and input must have the same size. Got shapes "
                f"{list(weight.shape)} and {list(input.shape)}"
            )
        return reduced(ops.huber_loss(input, target, 0, delta) * weight, reduction, "huber_loss")
    return ops.huber_loss(input, target, get_enum(reduction, "huber_loss"), delta)


def poisson_nll_loss(
    input: Tensor,
    target: Tensor,
    log_input: bool = True,
    full: bool = False,
    size_average: bool | None = None,
    eps: float = 1e-8,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Minus the log likelihood of a Poisson distribution.

    Args:
        input: the expected counts, or with `log_input` their logs, of any shape.
        target: the counts, of the same shape.
        log_input: the input is a log: exp(x) - y x; otherwise x - y log(x + eps).
        full: add Stirling's approximation of log(y!) where y > 1.
        size_average, reduce: deprecated; see `reduction`.
        eps: keeps the log finite.
        reduction: "mean", "sum" or "none".
    """
    reduction = resolve(reduction, size_average, reduce)
    get_enum(reduction, "poisson_nll_loss")
    if log_input:
        loss = input.exp() - target * input
    else:
        loss = input - target * (input + eps).log()
    if full:
        stirling = target * target.log() - target + 0.5 * (2 * math.pi * target).log()
        loss = loss + ops.where(target > 1, stirling, 0.0)
    return reduced(loss, reduction, "poisson_nll_loss")


def gaussian_nll_loss(
    input: Tensor,
    target: Tensor,
    var: Tensor | float,
    full: bool = False,
    eps: float = 1e-6,
    reduction: str = "mean",
) -> Tensor:
    """Minus the log likelihood of a normal distribution (Nix and Weigend, 1994).

    Args:
        input: the expectations, of shape (*, D).
        target: of the same shape.
        var: the variances: one number, or of the input's shape, or of that shape without its last
            dimension or with 1 in one dimension.
        full: add log(2 pi) / 2.
        eps: the least variance; the limit has no gradient.
        reduction: "mean", "sum" or "none".

    Raises:
        ValueError: a variance is negative, or their shape is another.
    """
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(
            f"gaussian_nll_loss: {reduction} is not valid as a reduction: none, mean or sum"
        )
    if not isinstance(var, Tensor):
        if var < 0:
            raise ValueError(f"gaussian_nll_loss: var has negative entry/entries: {var}")
        var = taeda.full_like(input, var)
    elif var.shape != input.shape:
        if input.shape[:-1] == var.shape:
            var = var.unsqueeze(-1)
        elif var.dim() != input.dim() or [
            size for own, size in zip(input.shape, var.shape, strict=True) if size != own
        ] != [1]:
            raise ValueError(
                f"gaussian_nll_loss: var is of incorrect size {list(var.shape)} for input of size "
                f"{list(input.shape)}"
            )
    if bool((var < 0).any()):
        raise ValueError(
            f"gaussian_nll_loss: var has negative entry/entries, down to {var.min().item()}"
        )
    var = var.clone()
    with taeda.no_grad():
        var.clamp_(min=eps)
    loss = 0.5 * (var.log() + (input - target) ** 2 / var)
    if full:
        loss = loss + 0.5 * math.log(2 * math.pi)
    return reduced(loss, reduction, "gaussian_nll_loss")
