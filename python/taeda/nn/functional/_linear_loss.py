"""Losses that contain the linear layer before them."""

from __future__ import annotations

import re
from collections.abc import Callable

from taeda import _C
from taeda._C import Tensor, ops
from taeda.nn.functional._loss import cross_entropy

__all__ = ["linear_cross_entropy"]

_METHOD = re.compile(r"auto|aspect_ratio(:0*[1-9][0-9]*)?")
_HALF = (_C.float16, _C.bfloat16)
_OPTIONS = (
    "allow_retain_graph",
    "batch_chunk_size",
    "chunking_method",
    "acc_policy",
    "acc_dtype",
)


class LinearCrossEntropyOptions:
    """How `linear_cross_entropy` trades time for memory.

    The batch is cut into chunks. Backward computes the logits of a chunk again, so that there are
    never more logits in memory than those of one chunk.

    Args:
        allow_retain_graph: whether backward may go through the graph twice. It always may here.
        batch_chunk_size: rows in a chunk; by default as many as make a chunk's logits as large as
            the input.
        chunking_method: counts where `batch_chunk_size` is not given: "auto" is the default named
            there, "aspect_ratio:N" makes a chunk's logits an Nth part of the input's size (N is 1
            unless given), and None computes all rows at once.
        acc_policy: "accurate", "balanced", "compact" or "auto": how precisely gradients of half
            precision are added up over the chunks. They are always added up in their own dtype.
        acc_dtype: in which dtype the losses are added up: float32 for inputs of half precision, and
            the input's dtype for all others, are what may be given, and are the default.

    Raises:
        ValueError: a value that is not named here.

    >>> taeda.nn.LinearCrossEntropyOptions(batch_chunk_size=256).batch_chunk_size
    256
    """

    __slots__ = _OPTIONS

    def __init__(
        self,
        allow_retain_graph: bool = False,
        batch_chunk_size: int | None = None,
        chunking_method: str | None = "auto",
        acc_policy: str = "auto",
        acc_dtype: _C.dtype | None = None,
    ) -> None:
        size = batch_chunk_size
        if size is not None and not (isinstance(size, int) and size > 0):
            raise ValueError(f"batch_chunk_size must be positive int or None, got {size!r}")
        if chunking_method is not None and not _METHOD.fullmatch(chunking_method):
            raise ValueError(f"invalid chunking_method: {chunking_method!r}")
        if acc_policy not in ("accurate", "balanced", "compact", "auto"):
            raise ValueError(f"invalid acc_policy: {acc_policy!r}")
        if acc_dtype not in (None, *_HALF, _C.float32, _C.float64):
            raise ValueError(f"acc_dtype must be a real floating dtype, got {acc_dtype!r}")
        self.allow_retain_graph = allow_retain_graph
        self.batch_chunk_size = batch_chunk_size
        self.chunking_method = chunking_method
        self.acc_policy = acc_policy
        self.acc_dtype = acc_dtype

    def _values(self) -> list[object]:
        return [getattr(self, name) for name in _OPTIONS]

    def __repr__(self) -> str:
        named = zip(_OPTIONS, self._values(), strict=True)
        return f"LinearCrossEntropyOptions({', '.join(f'{n}={v!r}' for n, v in named)})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, LinearCrossEntropyOptions):
            return NotImplemented
        return self._values() == other._values()

    def __hash__(self) -> int:
        return hash(tuple(self._values()))

    def rows(self, input: Tensor, outputs: int) -> int:
        """The number of input rows per chunk, for this many outputs of the linear layer."""
        if self.batch_chunk_size is not None:
            return self.batch_chunk_size
        if self.chunking_method is None:
            return max(1, input.size(0))
        _, _, ratio = self.chunking_method.partition(":")
        return max(1, input.numel() // (int(ratio or 1) * max(1, outputs)))


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
    options: LinearCrossEntropyOptions | None = None,
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
        options: `nn.LinearCrossEntropyOptions`, to compute the logits in chunks and again in
            backward. None computes them at once and keeps them.

    Raises:
        TypeError: `options` is something else.
        ValueError: the batch sizes differ.
        RuntimeError: the shapes do not fit together, or a loss at several places has no batch.

    >>> x, w = taeda.zeros(2, 3), taeda.ones(4, 3)
    >>> taeda.nn.functional.linear_cross_entropy(x, w, taeda.tensor([0, 3]))
    tensor(1.3863)
    """
    name = "linear_cross_entropy"
    if not isinstance(options, LinearCrossEntropyOptions | None):
        raise TypeError(f"{name}: options must be LinearCrossEntropyOptions, got {options!r}")
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
    if not batched and len(shape) > 1:
        raise RuntimeError(
            f"{name}: a linear_weight of shape {tuple(linear_weight.shape)} asks for a batched "
            f"input of shape (N, {linear_weight.size(-1)}), got {tuple(input.shape)}"
        )
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
    flat = linear_weight.reshape(-1, input.size(-1))
    bias = None if linear_bias is None else linear_bias.reshape(-1)

    def loss(rows: Tensor, target: Tensor, reduction: str) -> Tensor:
        logits = ops.linear(rows, flat, bias).reshape(*rows.shape[:-1], *shape)
        return cross_entropy(
            logits,
            target,
            weight,
            ignore_index=-100 if ignore_index is None else ignore_index,
            reduction=reduction,
            label_smoothing=label_smoothing,
        )

    if options is None or not batched or input.size(0) == 0:
        return loss(input, target, reduction)
    acc = _C.float32 if input.dtype in _HALF else input.dtype
    if options.acc_dtype not in (None, acc):
        raise RuntimeError(
            f"{name}: acc_dtype must be {acc} for an input of {input.dtype}, got "
            f"{options.acc_dtype}"
        )
    losses = _chunked(loss, input, target, reduction, options.rows(input, flat.size(0)), acc)
    if reduction == "none":
        return ops.cat(losses)
    total = ops.stack(losses).sum()
    if reduction == "mean":
        total = total / _divisor(target, probabilities, shape[0], weight, ignore_index)
    return total.to(input.dtype)


def _chunked(
    loss: Callable[[Tensor, Tensor, str], Tensor],
    input: Tensor,
    target: Tensor,
    reduction: str,
    rows: int,
    acc: _C.dtype,
) -> list[Tensor]:
    """The chunks' losses, or their sums in `acc`; backward computes each chunk again."""
    from taeda.utils.checkpoint import checkpoint

    def one(x: Tensor, y: Tensor) -> Tensor:
        each = loss(x, y, "none")
        return each if reduction == "none" else each.sum(dtype=acc)

    if reduction not in ("none", "sum", "mean"):
        raise ValueError(f"{reduction} is not a valid value for reduction")
    return [
        checkpoint(one, x, y, use_reentrant=False, preserve_rng_state=False)
        for x, y in zip(input.split(rows), target.split(rows), strict=True)
    ]


def _divisor(
    target: Tensor, probabilities: bool, classes: int, weight: Tensor | None, ignore: int | None
) -> Tensor | int:
    """The divisor that makes a sum of losses their mean."""
    if probabilities:
        return target.numel() // classes
    counted = target != (-100 if ignore is None else ignore)
    if weight is None:
        return counted.sum()
    return weight[target[counted]].sum()
