"""In which order a stage computes micro-batches forward and backward."""

from __future__ import annotations

import abc
from collections.abc import Callable
from typing import Any

import taeda
from taeda import Tensor

from .stage import PipelineStage

__all__ = ["Schedule1F1B", "ScheduleGPipe"]


class _Schedule(abc.ABC):
    def __init__(
        self,
        stage: PipelineStage,
        n_microbatches: int,
        loss_fn: Callable[..., Tensor] | None = None,
        scale_grads: bool = True,
    ) -> None:
        if n_microbatches < 1:
            raise ValueError(
                f"{type(self).__name__}: n_microbatches must be at least 1, not {n_microbatches}"
            )
        self._stage, self._count = stage, n_microbatches
        self._loss_fn, self._scale = loss_fn, scale_grads

    @abc.abstractmethod
    def _order(self) -> list[tuple[str, int]]:
        """What to do: ``("F", i)`` or ``("B", i)`` for each micro-batch."""

    def step(
        self, *args: Any, target: Any = None, losses: list[Any] | None = None, **kwargs: Any
    ) -> Any:
        """Compute with a batch, forward and, with a loss, backward.

        Args:
            args: the inputs, in the first stage. They are divided along their first dimension.
            target: what the loss compares with, in the last stage; divided likewise.
            losses: gets the loss of each micro-batch, in the last stage.
            kwargs: other inputs of this stage's module, divided likewise.

        Returns:
            The output of the whole batch, in the last stage; None in others.
        """
        stage, trains = self._stage, self._loss_fn is not None and taeda.is_grad_enabled()
        inputs = [self._parts(x) for x in args]
        options = {name: self._parts(x) for name, x in kwargs.items()}
        targets = self._parts(target)
        outputs: dict[int, Any] = {}
        found: dict[int, Tensor] = {}
        for what, i in self._order():
            if what == "F":
                options_i = {name: parts[i] for name, parts in options.items()}
                outputs[i] = stage.forward_one(i, tuple(parts[i] for parts in inputs), options_i)
                if stage.is_last and self._loss_fn is not None:
                    found[i] = self._loss_fn(outputs[i], targets[i])
            elif trains:
                stage.backward_one(i, found[i] if stage.is_last else None)
        stage.finish()
        if trains and self._scale:
            for p in stage.submod.parameters():
                if p.grad is not None:
                    p.grad.div_(self._count)
        if not stage.is_last:
            return None
        if losses is not None:
            losses[:] = [found[i] for i in sorted(found)]
        return _joined([outputs[i] for i in range(self._count)])

    def _parts(self, value: Any) -> list[Any]:
        if not isinstance(value, Tensor):
            return [value] * self._count
        if value.size(0) < self._count:
            raise ValueError(
                f"{type(self).__name__}: {value.size(0)} examples cannot be divided into "
                f"{self._count} micro-batches"
            )
        return list(value.tensor_split(self._count))


def _joined(outputs: list[Any]) -> Any:
    if isinstance(outputs[0], tuple):
        return tuple(
            taeda.cat([o.detach() for o in column]) for column in zip(*outputs, strict=True)
        )
    return taeda.cat([output.detach() for output in outputs])


class ScheduleGPipe(_Schedule):
    """All micro-batches forward, then all backward (Huang et al. 2018).

    Args:
        stage: the layers of this process.
        n_microbatches: into how many parts a batch is divided.
        loss_fn: called with an output and its part of the target; None without training.
        scale_grads: divide gradients by the number of micro-batches.
    """

    def _order(self) -> list[tuple[str, int]]:
        numbers = range(self._count)
        return [("F", i) for i in numbers] + [("B", i) for i in numbers]


class Schedule1F1B(_Schedule):
    """Backward as soon as possible, so that few micro-batches are kept (Narayanan et al. 2019).

    Args:
        stage: the layers of this process.
        n_microbatches: into how many parts a batch is divided.
        loss_fn: called with an output and its part of the target; None without training.
        scale_grads: divide gradients by the number of micro-batches.
    """

    def _order(self) -> list[tuple[str, int]]:
        ahead = min(self._count, self._stage.num_stages - self._stage.stage_index)
        order = [("F", i) for i in range(ahead)]
        for i in range(self._count):
            order.append(("B", i))
            if ahead + i < self._count:
                order.append(("F", ahead + i))
        return order
