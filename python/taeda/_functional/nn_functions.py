"""Functions of ``taeda.nn.functional`` that are public at the top level, too.

There they take numbers where the functions of ``nn.functional`` take words, and all arguments are
given. ``reduction`` is 0 for "none" (the default, as in PyTorch), 1 for "mean" and 2 for "sum".
"""

from __future__ import annotations

from typing import Any

from taeda._C import Tensor
from taeda.nn import functional as F

_REDUCTIONS = ("none", "mean", "sum")

# The same functions under both names.
bilinear = F.bilinear
channel_shuffle = F.channel_shuffle
cosine_similarity = F.cosine_similarity
pairwise_distance = F.pairwise_distance
rrelu_ = F.rrelu_


def _reduction(function: str, number: int) -> str:
    if number not in (0, 1, 2):
        raise ValueError(f"{function}(): reduction must be 0, 1 or 2, got {number}")
    return _REDUCTIONS[number]


def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    pos_weight: Tensor | None = None,
    reduction: int = 0,
) -> Tensor:
    """Return ``nn.functional.binary_cross_entropy_with_logits``; see there."""
    how = _reduction("binary_cross_entropy_with_logits", reduction)
    return F.binary_cross_entropy_with_logits(
        input, target, weight, reduction=how, pos_weight=pos_weight
    )


def cosine_embedding_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: int = 0
) -> Tensor:
    """Return ``nn.functional.cosine_embedding_loss``; see there."""
    how = _reduction("cosine_embedding_loss", reduction)
    return F.cosine_embedding_loss(input1, input2, target, margin, reduction=how)


def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Any,
    target_lengths: Any,
    blank: int = 0,
    reduction: int = 0,
    zero_infinity: bool = False,
) -> Tensor:
    """Return ``nn.functional.ctc_loss``; see there."""
    how = _reduction("ctc_loss", reduction)
    return F.ctc_loss(log_probs, targets, input_lengths, target_lengths, blank, how, zero_infinity)


def hinge_embedding_loss(
    input: Tensor, target: Tensor, margin: float = 1.0, reduction: int = 0
) -> Tensor:
    """Return ``nn.functional.hinge_embedding_loss``; see there."""
    how = _reduction("hinge_embedding_loss", reduction)
    return F.hinge_embedding_loss(input, target, margin, reduction=how)


def kl_div(
    input: Tensor, target: Tensor, reduction: int = 0, *, log_target: bool = False
) -> Tensor:
    """Return ``nn.functional.kl_div``; see there."""
    return F.kl_div(input, target, reduction=_reduction("kl_div", reduction), log_target=log_target)


def margin_ranking_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: int = 0
) -> Tensor:
    """Return ``nn.functional.margin_ranking_loss``; see there."""
    how = _reduction("margin_ranking_loss", reduction)
    return F.margin_ranking_loss(input1, input2, target, margin, reduction=how)


def poisson_nll_loss(
    input: Tensor, target: Tensor, log_input: bool, full: bool, eps: float, reduction: int
) -> Tensor:
    """Return ``nn.functional.poisson_nll_loss``; see there."""
    how = _reduction("poisson_nll_loss", reduction)
    return F.poisson_nll_loss(input, target, log_input, full, eps=eps, reduction=how)


def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2.0,
    eps: float = 1e-6,
    swap: bool = False,
    reduction: int = 0,
) -> Tensor:
    """Return ``nn.functional.triplet_margin_loss``; see there."""
    how = _reduction("triplet_margin_loss", reduction)
    return F.triplet_margin_loss(anchor, positive, negative, margin, p, eps, swap, reduction=how)


def rrelu(
    input: Tensor, lower: float = 1.0 / 8, upper: float = 1.0 / 3, training: bool = False
) -> Tensor:
    """Return ``nn.functional.rrelu``; see there."""
    return F.rrelu(input, lower, upper, training)


def alpha_dropout_(input: Tensor, p: float, train: bool) -> Tensor:
    """``nn.functional.alpha_dropout``, in place."""
    return F.alpha_dropout(input, p, train, inplace=True)


def feature_alpha_dropout_(input: Tensor, p: float, train: bool) -> Tensor:
    """``nn.functional.feature_alpha_dropout``, in place."""
    return F.feature_alpha_dropout(input, p, train, inplace=True)


def grid_sampler(
    input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> Tensor:
    """Return ``nn.functional.grid_sample``; see there.

    Args:
        interpolation_mode: 0, 1 or 2 for "bilinear", "nearest" and "bicubic".
        padding_mode: 0, 1 or 2 for "zeros", "border" and "reflection".
    """
    modes, paddings = ("bilinear", "nearest", "bicubic"), ("zeros", "border", "reflection")
    if interpolation_mode not in (0, 1, 2) or padding_mode not in (0, 1, 2):
        raise ValueError(
            "grid_sampler(): interpolation_mode and padding_mode must be 0, 1 or 2, got "
            f"{interpolation_mode} and {padding_mode}"
        )
    how, pad = modes[interpolation_mode], paddings[padding_mode]
    return F.grid_sample(input, grid, how, pad, align_corners)


def affine_grid_generator(theta: Tensor, size: Any, align_corners: bool) -> Tensor:
    """Return ``nn.functional.affine_grid``; see there."""
    return F.affine_grid(theta, size, align_corners)


def instance_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    use_input_stats: bool,
    momentum: float,
    eps: float,
    cudnn_enabled: bool,
) -> Tensor:
    """Return ``nn.functional.instance_norm``; see there. ``cudnn_enabled`` chooses nothing."""
    del cudnn_enabled
    return F.instance_norm(
        input, running_mean, running_var, weight, bias, use_input_stats, momentum, eps
    )


def norm_except_dim(v: Tensor, pow: int = 2, dim: int = 0) -> Tensor:
    """Return norms over all dimensions but one, which is kept with the others at size 1.

    Args:
        v: of any shape.
        pow: the order of the norm.
        dim: the dimension that is left; -1 for none, so that the result has no dimension.
    """
    if dim == -1:
        return v.norm(pow)
    if not 0 <= dim < v.dim():
        raise IndexError(f"norm_except_dim(): there is no dimension {dim} in {v.dim()}")
    others = [d for d in range(v.dim()) if d != dim]
    return v.norm(pow, others, keepdim=True) if others else v.abs()


def frobenius_norm(input: Tensor, dim: Any, keepdim: bool = False) -> Tensor:
    """Return the 2-norm over one or two dimensions, or over all where ``dim`` is empty."""
    dims = [dim] if isinstance(dim, int) else list(dim)
    if len(dims) > 2:
        raise RuntimeError(f"frobenius_norm(): dim must have at most 2 elements, got {dims}")
    return input.norm(2, dims or list(range(input.dim())), keepdim=keepdim)


def vander(x: Tensor, N: int | None = None, increasing: bool = False) -> Tensor:
    """Return Vandermonde's matrix (n, N) of a vector (n,): its powers, by columns.

    Args:
        N: how many powers, from 0 on; n by default.
        increasing: begin with the power 0. By default that is the last column.

    >>> taeda.vander(taeda.tensor([1, 2, 3]))
    tensor([[1, 1, 1],
            [4, 2, 1],
            [9, 3, 1]])
    """
    if x.dim() != 1:
        raise RuntimeError(f"vander(): x must have one dimension, got {x.dim()}")
    n = x.shape[0] if N is None else N
    if n < 0:
        raise RuntimeError(f"vander(): N must not be negative, got {n}")
    import taeda

    column = x.to(taeda.result_type(x, 1)).unsqueeze(1)
    if n == 0:
        return column[:, :0]
    factors = [taeda.ones_like(column), column.expand(-1, n - 1)]
    powers = taeda.cat(factors, 1).cumprod(1)
    return powers if increasing else powers.flip(1)


def adjoint(input: Tensor) -> Tensor:
    """Return a view with the last two dimensions swapped, its elements conjugated.

    >>> taeda.adjoint(taeda.tensor([[1 + 1j, 2]]))
    tensor([[1.-1.j],
            [2.-0.j]])
    """
    return input.adjoint()


def get_device(input: Tensor) -> int:
    """Return the index of a tensor's device, -1 for the CPU."""
    return input.get_device()


def detach_(input: Tensor) -> Tensor:
    """Cut a tensor off its history, in place."""
    return input.detach_()


def resize_as_(input: Tensor, the_template: Tensor) -> Tensor:
    """Change the sizes, in place, to those of another tensor."""
    return input.resize_as_(the_template)


def spmm(input: Tensor, mat2: Tensor) -> Tensor:
    """Return the product of matrices of which the first is sparse."""
    return input @ mat2


dsmm = spmm


def is_distributed(input: Tensor) -> bool:
    """Whether the tensor is spread over several processes: no."""
    if not isinstance(input, Tensor):
        raise TypeError(f"is_distributed(): expected a Tensor, got {type(input).__name__}")
    return False
