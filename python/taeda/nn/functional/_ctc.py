"""The loss of connectionist temporal classification."""

from __future__ import annotations

from collections.abc import Sequence

from taeda._C import Tensor, ops
from taeda.nn._reduction import get_enum, resolve
from taeda.nn.functional._autocast import in_float32

__all__ = ["ctc_loss"]


@in_float32
def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Tensor | Sequence[int],
    target_lengths: Tensor | Sequence[int],
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> Tensor:
    """Minus the log probability of target sequences, whichever way they are aligned with the input.

    An alignment is a label or a blank for each step; repeated labels count once, unless a blank is
    between them (Graves et al. 2006).

    Args:
        log_probs: of shape (T, N, C) or (T, C), the result of `log_softmax`. The gradient takes
            that for granted.
        targets: labels, of shape (N, S), or all of them joined in one dimension.
        input_lengths: the number of steps of each sequence, of shape (N,) or ().
        target_lengths: the number of labels of each target, likewise.
        blank: the label of a blank.
        reduction: "mean" (each loss over its target's length, then over the batch), "sum", "none".
        zero_infinity: 0 instead of infinity, without a gradient, for targets too long for their
            input.

    >>> log_probs = taeda.zeros(2, 1, 3).log_softmax(-1)
    >>> taeda.nn.functional.ctc_loss(log_probs, taeda.tensor([[1]]), [2], [1])
    tensor(1.0986)
    """
    reduction = resolve(reduction, None, None)
    get_enum(reduction, "ctc_loss")  # refuses an unknown one before all else
    lengths = [_numbers(v) for v in (input_lengths, target_lengths)]
    single = log_probs.dim() == 2
    if single:
        log_probs = log_probs.unsqueeze(1)
        targets = targets.reshape(1, -1)
    loss = ops._ctc_loss(log_probs, targets, lengths[0], lengths[1], blank, zero_infinity)
    if reduction == "mean":
        like = ops.scalar_tensor(0, dtype=loss.dtype, device=loss.device)
        each = like.new_tensor(lengths[1]).clamp_min(1)
        return (loss / each).mean()
    if reduction == "sum":
        return loss.sum()
    return loss.squeeze(0) if single else loss


def _numbers(lengths: Tensor | Sequence[int]) -> list[int]:
    if not isinstance(lengths, Tensor):
        return [int(n) for n in lengths]
    if lengths.is_floating_point() or lengths.is_complex():
        raise RuntimeError(f"ctc_loss: lengths must be integers, got {lengths.dtype}")
    return lengths.reshape(-1).tolist()
