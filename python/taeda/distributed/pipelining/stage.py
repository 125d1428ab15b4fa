"""The layers of one process of a pipeline, and what it exchanges with its neighbours."""

from __future__ import annotations

from typing import Any

import taeda
from taeda import Tensor
from taeda.distributed import _messages, _objects
from taeda.distributed._group import _known
from taeda.distributed._work import Work
from taeda.nn.module import Module

__all__ = ["PipelineStage"]

_FORWARD, _BACKWARD = 1 << 20, 1 << 21


class PipelineStage:
    """A stage of a pipeline: the layers of this process.

    Args:
        submodule: the layers. Inputs and outputs are one tensor or a tuple of them.
        stage_index: which stage it is, from 0; that of rank ``stage_index`` of the group.
        num_stages: how many there are, as many as processes.
        device: the CPU.
        input_args: not needed: shapes are sent along with the first micro-batch.
        output_args: not needed, likewise.
        group: the processes; all by default.
    """

    def __init__(
        self,
        submodule: Module,
        stage_index: int,
        num_stages: int,
        device: Any = "cpu",
        input_args: Any = None,
        output_args: Any = None,
        group: Any = None,
    ) -> None:
        self.submod = submodule
        self.stage_index, self.num_stages = stage_index, num_stages
        self.group = _known(group)
        self.device = taeda.device(device)
        if num_stages != self.group.size() or stage_index != self.group.rank():
            raise ValueError(
                f"PipelineStage: stage {stage_index} of {num_stages} must be that of rank "
                f"{self.group.rank()} of {self.group.size()}"
            )
        self._shapes: list[tuple[Any, Any]] | None = None
        self._sent_shapes = False
        self._sends: list[Work] = []
        self._inputs: dict[int, tuple[Tensor, ...]] = {}
        self._outputs: dict[int, tuple[Tensor, ...]] = {}

    @property
    def is_first(self) -> bool:
        """Whether it is the first stage."""
        return self.stage_index == 0

    @property
    def is_last(self) -> bool:
        """Whether it is the last stage."""
        return self.stage_index == self.num_stages - 1

    def _send(self, tensors: tuple[Tensor, ...], peer: int, tag: int) -> None:
        for i, tensor in enumerate(tensors):
            work = _messages.isend(tensor.detach(), group=self.group, group_dst=peer, tag=tag + i)
            if work is not None:
                self._sends.append(work)

    def _receive(self, like: list[tuple[Any, Any]], peer: int, tag: int) -> tuple[Tensor, ...]:
        found = []
        for i, (shape, dtype) in enumerate(like):
            found.append(taeda.empty(shape, dtype=dtype))
            _messages.recv(found[-1], group=self.group, group_src=peer, tag=tag + i)
        return tuple(found)

    def forward_one(self, number: int, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Compute with a micro-batch, of the stage before unless this is the first."""
        if not self.is_first:
            if self._shapes is None:
                said: list[Any] = [None]
                _objects.recv_object_list(said, group=self.group, group_src=self.stage_index - 1)
                self._shapes = said[0]
            args = self._receive(self._shapes or [], self.stage_index - 1, _FORWARD + 64 * number)
            for tensor in args:
                if tensor.is_floating_point() and taeda.is_grad_enabled():
                    tensor.requires_grad_()
            self._inputs[number] = args
        output = self.submod(*args, **kwargs)
        outputs = output if isinstance(output, tuple) else (output,)
        self._outputs[number] = outputs
        if not self.is_last:
            if not self._sent_shapes:
                self._sent_shapes = True
                said = [[(tuple(t.shape), t.dtype) for t in outputs]]
                _objects.send_object_list(said, group=self.group, group_dst=self.stage_index + 1)
            self._send(outputs, self.stage_index + 1, _FORWARD + 64 * number)
        return output

    def backward_one(self, number: int, loss: Tensor | None) -> None:
        """Compute the gradients of a micro-batch, from those of the stage behind or a loss."""
        outputs = self._outputs.pop(number)
        if loss is not None:
            loss.backward()
        else:
            wanted = [t for t in outputs if t.requires_grad]
            grads = self._receive(
                [(tuple(t.shape), t.dtype) for t in wanted],
                self.stage_index + 1,
                _BACKWARD + 64 * number,
            )
            taeda.autograd.backward(wanted, list(grads))
        if not self.is_first:
            inputs = [t for t in self._inputs.pop(number) if t.requires_grad]
            given = [taeda.zeros_like(t) if t.grad is None else t.grad for t in inputs]
            self._send(tuple(given), self.stage_index - 1, _BACKWARD + 64 * number)

    def finish(self) -> None:
        """Wait until everything is sent."""
        for work in self._sends:
            work.wait()
        self._sends = []
        self._outputs.clear()
        self._inputs.clear()
