"""The loss of sequences that are not aligned with their labels."""

from __future__ import annotations

from typing import Any

from taeda._C import Tensor
from taeda.nn import functional as F
from taeda.nn.modules.loss_base import _Loss

__all__ = ["CTCLoss"]


class CTCLoss(_Loss):
    """Connectionist temporal classification (Graves et al., 2006).

    Minus the log of the summed probabilities of all ways to spread a sequence of labels over the
    steps of a longer sequence, with blanks between.

    Args:
        blank: the number of the blank label.
        reduction: "mean" over the batch, of each loss divided by its number of labels; "sum"; or
            "none".
        zero_infinity: make infinite losses, of labels too many for their steps, and their gradients
            zero.

    Called with log probabilities (T, N, C) or (T, C), labels (N, S), (sum of target_lengths,) or
    (S,), and the lengths of both, of shape (N,) or ().
    """

    def __init__(
        self, blank: int = 0, reduction: str = "mean", zero_infinity: bool = False
    ) -> None:
        super().__init__(reduction=reduction)
        self.blank = blank
        self.zero_infinity = zero_infinity

    def forward(
        self, log_probs: Tensor, targets: Tensor, input_lengths: Any, target_lengths: Any
    ) -> Tensor:
        return F.ctc_loss(
            log_probs, targets, input_lengths, target_lengths, self.blank, self.reduction,
            self.zero_infinity,
        )  # fmt: skip
