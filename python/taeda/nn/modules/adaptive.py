"""Softmax over very many classes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import taeda
from taeda._C import Tensor
from taeda.nn import functional as F
from taeda.nn.module import Module
from taeda.nn.modules.container import ModuleList, Sequential
from taeda.nn.modules.linear import Linear

__all__ = ["AdaptiveLogSoftmaxWithLoss"]


class _ASMoutput(NamedTuple):
    """The result of `AdaptiveLogSoftmaxWithLoss`: the targets' log probabilities, and the loss."""

    output: Tensor
    loss: Tensor


class AdaptiveLogSoftmaxWithLoss(Module):
    """A softmax that spends less on rare classes (Grave et al., 2017), with its loss.

    Classes are numbered from the most to the least frequent. The most frequent ones are in the
    head; the others in clusters, each with one class in the head that stands for it, and a
    smaller projection of the input the rarer its classes are.

    Args:
        in_features: the size of the input vectors.
        n_classes: how many classes there are.
        cutoffs: the first class of each cluster, in rising order.
        div_value: cluster i projects the input to `in_features // div_value ** (i + 1)` numbers.
        head_bias: whether the head adds something.
        device, dtype: those of the parameters.

    Called with an input (N, in_features) or (in_features,) and class numbers (N,) or (), it
    returns `output`, the log probabilities of the targets, and `loss`, minus their mean.

    >>> layer = taeda.nn.AdaptiveLogSoftmaxWithLoss(16, 100, cutoffs=[10, 50])
    >>> output, loss = layer(taeda.randn(4, 16), taeda.tensor([3, 20, 99, 0]))
    >>> tuple(output.shape), tuple(loss.shape)
    ((4,), ())
    """

    def __init__(
        self,
        in_features: int,
        n_classes: int,
        cutoffs: Sequence[int],
        div_value: float = 4.0,
        head_bias: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        cutoffs = list(cutoffs)
        if not cutoffs:
            raise ValueError(
                "AdaptiveLogSoftmaxWithLoss: cutoffs should be a sequence of length larger than 0"
            )
        whole = all(isinstance(cut, int) for cut in cutoffs)
        if (
            not whole
            or cutoffs != sorted(set(cutoffs))
            or not 0 < cutoffs[0] <= cutoffs[-1] < n_classes
        ):
            raise ValueError(
                "AdaptiveLogSoftmaxWithLoss: cutoffs should be a sequence of unique, "
                "positive integers sorted in an "
                "increasing order, where each value is between 1 and n_classes-1, got "
                f"{cutoffs} for n_classes={n_classes}"
            )
        self.in_features = in_features
        self.n_classes = n_classes
        self.cutoffs = [*cutoffs, n_classes]
        self.div_value = div_value
        self.head_bias = head_bias
        self.shortlist_size = cutoffs[0]
        self.n_clusters = len(cutoffs)
        self.head_size = self.shortlist_size + self.n_clusters
        options = {"device": device, "dtype": dtype}
        self.head = Linear(in_features, self.head_size, bias=head_bias, **options)
        self.tail = ModuleList()
        for i in range(self.n_clusters):
            between = int(in_features // div_value ** (i + 1))
            size = self.cutoffs[i + 1] - self.cutoffs[i]
            self.tail.append(
                Sequential(
                    Linear(in_features, between, bias=False, **options),
                    Linear(between, size, bias=False, **options),
                )
            )

    def reset_parameters(self) -> None:
        """Draw new initial values."""
        self.head.reset_parameters()
        for module in self.tail.modules():
            if isinstance(module, Linear):
                module.reset_parameters()

    def forward(self, input_: Tensor, target_: Tensor) -> _ASMoutput:
        if target_.dim() > 1:
            raise RuntimeError(
                "AdaptiveLogSoftmaxWithLoss: 0D or 1D target tensor expected, multi-target not "
                "supported"
            )
        batched = target_.dim() == 1
        if input_.dim() != target_.dim() + 1 or (batched and input_.size(0) != target_.size(0)):
            raise RuntimeError(
                "AdaptiveLogSoftmaxWithLoss: Input and target should have the same size in the "
                f"batch dimension, got shapes {list(input_.shape)} and {list(target_.shape)}"
            )
        input = input_ if batched else input_.unsqueeze(0)
        target = target_ if batched else target_.unsqueeze(0)
        if target.numel():
            low, high = int(target.min()), int(target.max())
            if low < 0 or high >= self.n_classes:
                raise RuntimeError(
                    "AdaptiveLogSoftmaxWithLoss: Target values should be in [0, "
                    f"{self.n_classes - 1}], but values in range [{low}, {high}] were found. "
                )
        head = F.log_softmax(self.head(input), 1)
        # The head's class of each target: its own, or that of its cluster.
        head_class = target
        output = input.new_zeros(target.shape)
        for i, cluster in enumerate(self.tail):
            start, end = self.cutoffs[i], self.cutoffs[i + 1]
            inside = (target >= start) & (target < end)
            head_class = taeda.where(inside, self.shortlist_size + i, head_class)
            rows = inside.nonzero().squeeze(1)
            if rows.numel():
                within = F.log_softmax(cluster(input[rows]), 1)
                chosen = within.gather(1, (target[rows] - start).unsqueeze(1)).squeeze(1)
                output = output.index_copy(0, rows, chosen)
        output = output + head.gather(1, head_class.unsqueeze(1)).squeeze(1)
        loss = (-output).mean()
        return _ASMoutput(output if batched else output.squeeze(0), loss)

    def log_prob(self, input: Tensor) -> Tensor:
        """Return the log probabilities of all classes, of shape (N, n_classes)."""
        head = F.log_softmax(self.head(input), 1)
        parts = [head[:, : self.shortlist_size]]
        for i, cluster in enumerate(self.tail):
            within = F.log_softmax(cluster(input), 1)
            parts.append(within + head[:, self.shortlist_size + i].unsqueeze(1))
        return taeda.cat(parts, 1)

    def predict(self, input: Tensor) -> Tensor:
        """Return the most probable class of each row: `log_prob(input).argmax(1)`, for less.

        Only rows whose best class in the head stands for a cluster need that cluster.
        """
        best = self.head(input).argmax(1)
        if bool((best >= self.shortlist_size).any()):
            rows = (best >= self.shortlist_size).nonzero().squeeze(1)
            best = best.index_copy(0, rows, self.log_prob(input[rows]).argmax(1))
        return best
