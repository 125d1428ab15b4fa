"""Distances, and margin losses."""

from __future__ import annotations

from collections.abc import Callable

from taeda._C import Tensor, ops
from taeda.nn._reduction import get_enum, resolve
from taeda.nn.functional._autocast import in_float32
from taeda.nn.functional._loss import reduced

__all__ = [
    "cosine_embedding_loss", "cosine_similarity", "hinge_embedding_loss", "margin_ranking_loss",
    "multi_margin_loss", "multilabel_margin_loss", "multilabel_soft_margin_loss",
    "pairwise_distance", "soft_margin_loss", "triplet_margin_loss",
    "triplet_margin_with_distance_loss",
]  # fmt: skip


def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """The cosine of the angle between vectors along a dimension.

    Args:
        x1, x2: of shapes that broadcast.
        dim: the dimension of the vectors.
        eps: the least norm that is divided by.
    """
    x1, x2 = ops.broadcast_tensors([x1, x2])
    norms = [x.norm(2.0, dim, keepdim=True).clamp_min(eps) for x in (x1, x2)]
    return ((x1 / norms[0]) * (x2 / norms[1])).sum(dim)


def pairwise_distance(
    x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False
) -> Tensor:
    """The p-norm of x1 - x2 + eps over the last dimension.

    Args:
        x1, x2: of shapes (N, D) or (D), or that broadcast.
        p: which norm.
        eps: keeps the derivative finite where the two are equal.
        keepdim: keep the last dimension, with size 1.
    """
    if isinstance(p, str):
        raise TypeError("pairwise_distance: p must be float, not str")
    return (x1 - x2 + eps).norm(p, -1, keepdim)


@in_float32
def hinge_embedding_loss(
    input: Tensor,
    target: Tensor,
    margin: float = 1.0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """X where the target is 1, max(0, margin - x) where it is -1.

    Args:
        input: distances, of any shape.
        target: of the same shape, 1 or -1.
        margin: how large the distances of the latter should be.
        size_average, reduce: deprecated; see `reduction`.
        reduction: "mean", "sum" or "none".
    """
    reduction = resolve(reduction, size_average, reduce)
    apart = ops.where(target != 1, (margin - input).clamp_min(0), 0.0)
    return reduced(apart + ops.where(target != -1, input, 0.0), reduction, "hinge_embedding_loss")


@in_float32
def margin_ranking_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """max(0, -y (x1 - x2) + margin).

    Args:
        input1, input2: of shape (N,) or ().
        target: of the same shape: 1 where the first should rank higher, else -1.
        margin: by how much.
        size_average, reduce: deprecated; see `reduction`.
        reduction: "mean", "sum" or "none".
    """
    reduction = resolve(reduction, size_average, reduce)
    if input1.dim() != input2.dim() or input1.dim() != target.dim():
        raise RuntimeError(
            "margin_ranking_loss : All input tensors should have same dimension but got sizes: "
            f"input1: {input1.shape}, input2: {input2.shape}, target: {target.shape} "
        )
    return reduced(
        (-target * (input1 - input2) + margin).clamp_min(0), reduction, "margin_ranking_loss"
    )


@in_float32
def cosine_embedding_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """1 - cos where the target is 1, max(0, cos - margin) where it is -1.

    Args:
        input1, input2: of shape (N, D) or (D,).
        target: of shape (N,) or ().
        margin: the largest cosine between vectors that should differ.
        size_average, reduce: deprecated; see `reduction`.
        reduction: "mean", "sum" or "none".
    """
    reduction = resolve(reduction, size_average, reduce)
    rank = target.dim() + 1
    if rank > 2:
        raise RuntimeError(
            "cosine_embedding_loss: 0D or 1D target tensor expected, multi-target not supported"
        )
    if input1.dim() != rank or input2.dim() != rank:
        raise RuntimeError(
            f"cosine_embedding_loss: {rank - 1}D target tensor expects {rank}D input tensors, but "
            f"found inputs with sizes {list(input1.shape)} and {list(input2.shape)}."
        )
    eps = 1e-12
    squares = ((input1 * input1).sum(-1) + eps) * ((input2 * input2).sum(-1) + eps)
    cosine = (input1 * input2).sum(-1) / squares.sqrt()
    alike = ops.where(target == 1, 1 - cosine, 0.0)
    apart = ops.where(target == -1, (cosine - margin).clamp_min(0), 0.0)
    return reduced(alike + apart, reduction, "cosine_embedding_loss")


def soft_margin_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """log(1 + exp(-y x)).

    Args:
        input: of any shape. The loss has its dtype.
        target: of the same shape, 1 or -1.
        size_average, reduce: deprecated; see `reduction`.
        reduction: "mean", "sum" or "none".
    """
    reduction = resolve(reduction, size_average, reduce)
    errors = (-target * input).to(input.dtype).exp().log1p()
    return reduced(errors, reduction, "soft_margin_loss")


@in_float32
def multi_margin_loss(
    input: Tensor,
    target: Tensor,
    p: int = 1,
    margin: float = 1.0,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """The sum over the wrong classes of max(0, margin - x[right] + x[wrong]) ** p, divided by C.

    Args:
        input: scores, of shape (N, C) or (C,).
        target: class numbers, of shape (N,) or ().
        p: 1 or 2.
        margin: by how much the right class should win.
        weight: of shape (C,), factors by the right class.
        size_average, reduce: deprecated; see `reduction`.
        reduction: "mean", "sum" or "none".
    """
    reduction = resolve(reduction, size_average, reduce)
    number = get_enum(reduction, "multi_margin_loss")
    return ops.multi_margin_loss(input, target, p, margin, weight, number)


@in_float32
def multilabel_margin_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """The sum over right and wrong classes of max(0, 1 - x[right] + x[wrong]), divided by C.

    Args:
        input: scores, of shape (N, C) or (C,).
        target: of the same shape: the numbers of the right classes, then a -1.
        size_average, reduce: deprecated; see `reduction`.
        reduction: "mean", "sum" or "none".
    """
    reduction = resolve(reduction, size_average, reduce)
    number = get_enum(reduction, "multilabel_margin_loss")
    return ops.multilabel_margin_loss(input, target, number)


def multilabel_soft_margin_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """The mean over classes of the binary cross entropy of logits.

    Args:
        input: logits, of shape (N, C) or (C,).
        target: of the same shape, 0 or 1.
        weight: broadcast to that shape, factors of the classes' losses.
        size_average, reduce: deprecated; see `reduction`.
        reduction: "mean", "sum" or "none".
    """
    reduction = resolve(reduction, size_average, reduce)
    loss = -(target * ops.logsigmoid(input) + (1 - target) * ops.logsigmoid(-input))
    if weight is not None:
        loss = loss * weight
    return reduced(loss.mean(-1), reduction, "multilabel_soft_margin_loss")


@in_float32
def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2,
    eps: float = 1e-6,
    swap: bool = False,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """max(0, d(anchor, positive) - d(anchor, negative) + margin) (Balntas et al., 2016).

    Args:
        anchor, positive, negative: of shape (N, D) or (D,).
        margin: by how much the negative should be further away.
        p, eps: those of the distance, `pairwise_distance`.
        swap: take the distance of the negative from the positive where it is less.
        size_average, reduce: deprecated; see `reduction`.
        reduction: "mean", "sum" or "none".
    """
    reduction = resolve(reduction, size_average, reduce)
    return triplet_margin_with_distance_loss(
        anchor,
        positive,
        negative,
        distance_function=lambda a, b: pairwise_distance(a, b, p, eps),
        margin=margin,
        swap=swap,
        reduction=reduction,
    )


def triplet_margin_with_distance_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    *,
    distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
) -> Tensor:
    """`triplet_margin_loss` with any function of two tensors as the distance.

    Raises:
        ValueError: the margin is not positive.
        RuntimeError: the tensors differ in their number of dimensions.
    """
    if margin <= 0:
        raise ValueError(
            f"triplet_margin_with_distance_loss: margin must be greater than 0, got {margin}"
        )
    if not anchor.dim() == positive.dim() == negative.dim():
        raise RuntimeError(
            "triplet_margin_with_distance_loss: The anchor, positive, and negative tensors are "
            f"expected to have the same number of dimensions, but got: anchor {anchor.dim()}D, "
            f"positive {positive.dim()}D, and negative {negative.dim()}D inputs"
        )
    distance = pairwise_distance if distance_function is None else distance_function
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = ops.minimum(far, distance(positive, negative))
    return reduced(
        (near - far + margin).clamp_min(0), reduction, "triplet_margin_with_distance_loss"
    )
