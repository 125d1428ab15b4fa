"""Losses that contain the linear layer before them."""

from __future__ import annotations

from taeda._C import Tensor, ops
from taeda.nn.functional._loss import cross_entropy

__all__ = ["linear_cross_entropy"]


def linear_cross_entropy(
    input: Tensor,
    linear_weight: Tensor,
    target: Tensor,
    *,
    linear_bias: Tensor | None = None,
    weight: Tensor | None = None,
    reduction: str = "mean",
    ignore_index: int | None = None,
    label_smoothing: float = 0.0,
    options: None = None,
) -> Tensor:
    """The cross entropy of a linear layer's output.

    Args:
        input: of shape (N, I) or (I,).
        linear_weight: of shape (C, I), or (C, d1, d2, ..., I) for a loss at each of d1, d2, ...
        target: class numbers, of shape (N, d1, d2, ...), or probabilities, (N, C, d1, d2, ...);
            without N where the input has none.
        linear_bias: of the weight's shape without I.
        weight, reduction, label_smoothing: as for `cross_entropy`.
        ignore_index: as for `cross_entropy`, by default -100; only for class numbers.
        options: must be None: the logits are computed in one piece.

    Raises:
        ValueError: `options` is something else, or the batch sizes differ.
        RuntimeError: the shapes do not fit together.

    >>> x, w = taeda.zeros(2, 3), taeda.ones(4, 3)
    >>> taeda.nn.functional.linear_cross_entropy(x, w, taeda.tensor([0, 3]))
    tensor(1.3863)
    """
    name = "linear_cross_entropy"
    if options is not None:
        raise ValueError(f"{name}: options must be None, got {options!r}")
    if input.dim() not in (1, 2):
        raise RuntimeError(f"{name}: expected input with dimensionality 1 or 2, got {input.dim()}")
    if input.size(-1) != linear_weight.size(-1):
        raise RuntimeError(
            f"{name}: expected equal input and linear_weight last dimensions (in_features), got "
            f"{input.size(-1)} and {linear_weight.size(-1)}, respectively"
        )
    shape = linear_weight.shape[:-1]
    if linear_bias is not None and linear_bias.shape != shape:
        raise RuntimeError(
            f"{name}: expected linear_bias shape {tuple(shape)}, got {tuple(linear_bias.shape)}"
        )
    batched = input.dim() == 2
    if ignore_index is not None and target.dim() == len(shape) + batched:
        raise RuntimeError(
            f"{name}: ignore_index cannot be specified when target contains probabilities"
        )
    if batched and target.dim() and target.size(0) != input.size(0):
        raise ValueError(
            f"{name}: Expected input batch_size ({input.size(0)}) to match target batch_size "
            f"({target.size(0)})."
        )
    probabilities = target.dim() == len(shape) + batched
    if probabilities and not target.is_floating_point():
        raise RuntimeError(
            f"{name}: Expected floating point type for target with class probabilities, got "
            f"{target.dtype}"
        )
    bias = None if linear_bias is None else linear_bias.reshape(-1)
    logits = ops.linear(input, linear_weight.reshape(-1, input.size(-1)), bias)
    logits = logits.reshape(*input.shape[:-1], *shape)
    if not batched and len(shape) > 1:
        logits, target = logits.unsqueeze(0), target.unsqueeze(0)
    result = cross_entropy(
        logits,
        target,
        weight,
        ignore_index=-100 if ignore_index is None else ignore_index,
        reduction=reduction,
        label_smoothing=label_smoothing,
    )
    return result.squeeze(0) if not batched and result.dim() else result
