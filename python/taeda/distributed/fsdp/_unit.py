"""A module whose parameters are divided among processes, and gathered while it computes.

Between uses each process keeps a part of each parameter, along its first dimension (Rajbhandari et
al. 2020, ZeRO). Before forward, and again before backward, all parts are gathered into one piece of
memory, which is freed afterwards; saved values keep their place in it. When all gradients of the
unit are there, their sum is divided among processes again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import taeda
from taeda import _C, Tensor
from taeda.distributed import _collectives as plain
from taeda.distributed._work import Work
from taeda.distributed.device_mesh import DeviceMesh
from taeda.distributed.tensor import DTensor, Shard
from taeda.distributed.tensor._dtensor import _GRAD, _made
from taeda.distributed.tensor._redistribute import part_of
from taeda.nn.module import Module
from taeda.utils._pytree import tree_leaves

__all__ = ["Unit", "units_of"]


class _Divided:
    """A parameter of a unit: where it is used, its part and, while it is gathered, all of it."""

    def __init__(self, parameter: Tensor, mesh: DeviceMesh) -> None:
        self.uses: list[tuple[Module, str]] = []
        self.shape = parameter.shape
        self.requires_grad = parameter.requires_grad
        count = mesh.size()
        self.rows = -(-parameter.size(0) // count) if parameter.dim() else 0
        self.row = parameter[0].numel() if parameter.numel() else 0
        local = part_of(parameter.detach(), mesh, 0, Shard(0)).clone()
        made = _made(local, mesh, [Shard(0)], parameter.shape)
        self.part = taeda.nn.Parameter(made, parameter.requires_grad)
        self.whole: Tensor | None = None

    @property
    def padded(self) -> int:
        """Elements of a process's part, were it as large as the largest."""
        return self.rows * self.row

    def register(self, tensor: Tensor) -> None:
        """Let the modules use a tensor."""
        for module, name in self.uses:
            setattr(module, name, tensor)


class Unit:
    """The parameters of a module that are gathered together.

    Args:
        module: whose parameters, and those below it, are divided, but for those of other units.
        mesh: a grid of one dimension: the processes.
        free_after_forward: whether memory is freed between forward and backward.
        ignored: parameters that are not divided.

    Attributes:
        sync: whether the next backward divides gradients; otherwise they add up in whole ones.
        units: how many passes of all processes have gradients that are kept apart until the last,
            and then added up in one order; 0: each pass's are summed at once.
        is_root: whether it is not below another unit.
        frees_unless_root: whether ``free_after_forward`` does not hold for the root.
        gather_early: units whose parameters are gathered while this one computes.
    """

    def __init__(
        self,
        module: Module,
        mesh: DeviceMesh,
        free_after_forward: bool,
        ignored: Iterable[Tensor] = (),
    ) -> None:
        self.module, self.mesh, self.free_after_forward = module, mesh, free_after_forward
        self.group = mesh.get_group(0)
        self.sync = True
        self.units = 0
        self._kept: list[Tensor] = []
        self.is_root = True
        self.frees_unless_root = False
        self._below: list[Unit] = []
        self._divided = self._found({id(p) for p in ignored})
        self._buffer: Tensor | None = None
        self._received: Tensor | None = None
        self._gathering: Work | None = None
        self._gathered = False
        self._pending = 0
        self._queued = False
        self._reductions: list[tuple[Work, Tensor]] = []
        self.gather_early: dict[str, list[Unit]] = {"forward": [], "backward": []}
        for each in self._divided:
            each.register(each.part)
        module.register_forward_pre_hook(self._before_forward, with_kwargs=True, prepend=True)
        module.register_forward_hook(self._after_forward, always_call=True)

    def _found(self, ignored: set[int]) -> list[_Divided]:
        found: dict[int, _Divided] = {}

        def visit(module: Module) -> None:
            inner = getattr(module, "_fsdp_unit", None)
            if inner is not None:
                self._below += [inner, *inner._below]
                return
            for name, p in module._parameters.items():
                if p is None or id(p) in ignored:
                    continue
                if isinstance(p, DTensor):
                    raise NotImplementedError(
                        f"fully_shard: {name} is a DTensor already; grids of more dimensions are "
                        "not supported"
                    )
                if p.dim() == 0:
                    raise ValueError(
                        "fully_shard doesn't support scalar parameters. Change "
                        f"{name} to a 1D tensor with numel equal to 1."
                    )
                each = found.setdefault(id(p), _Divided(p, self.mesh))
                each.uses.append((module, name))
            for child in module._modules.values():
                if child is not None:
                    visit(child)

        visit(self.module)
        for unit in self._below:
            unit.is_root = False
        return list(found.values())

    # ---- gathering ----

    def start_gathering(self) -> None:
        """Begin to gather, if it has not been."""
        if self._gathered or self._gathering is not None or not self._divided:
            return
        count = self.mesh.size()
        dtype = self._divided[0].part.dtype
        if any(each.part.dtype != dtype for each in self._divided):
            raise ValueError("fully_shard: the parameters of a module must have one dtype")
        total = sum(each.padded for each in self._divided)
        sent = taeda.zeros(total, dtype=dtype)
        first = 0
        for each in self._divided:
            local = each.part.detach().as_subclass(Tensor).reshape(-1)
            sent[first : first + local.numel()] = local
            first += each.padded
        self._received = taeda.empty(count * total, dtype=dtype)
        self._gathering = plain.all_gather_into_tensor(
            self._received, sent, self.group, async_op=True
        )

    def gather(self) -> None:
        """Let the modules have whole parameters."""
        if self._gathered:
            return
        self.start_gathering()
        self._gathered = True
        if self._gathering is None:
            return
        self._gathering.wait()
        self._gathering = None
        assert self._received is not None
        self._place(self._received.view(self.mesh.size(), -1))
        self._received = None

    def _place(self, rows: Tensor) -> None:
        """Put what has come from each process where saved values look for it."""
        sizes = [each.shape.numel() for each in self._divided]
        if self._buffer is None:
            self._buffer = taeda.empty(sum(sizes), dtype=rows.dtype)
        else:
            self._buffer.untyped_storage().resize_(self._buffer.numel() * rows.element_size())
        target = self._buffer.detach().numpy()  # no change that saved values would complain of
        source = rows.numpy()
        column = first = 0
        for each, size in zip(self._divided, sizes, strict=True):
            whole = source[:, column : column + each.padded].reshape(-1)[:size]
            target[first : first + size] = whole
            # A new leaf for each pass gets its gradient when the operations that use it have been
            # computed, also where an older graph is still there.
            stale = each.whole is not None and each.whole.grad is None and self._pending <= 0
            if each.whole is None or stale:
                view = self._buffer[first : first + size].view(each.shape)
                each.whole = taeda.nn.Parameter(view, each.requires_grad)
                if each.requires_grad:
                    each.whole.register_post_accumulate_grad_hook(self._arrive)
            column += each.padded
            first += size
        for each in self._divided:
            assert each.whole is not None
            each.register(each.whole)

    def free(self) -> None:
        """Give back the memory of whole parameters, and let the modules have their parts."""
        if not self._gathered:
            return
        self._gathered = False
        for each in self._divided:
            each.register(each.part)
        if self._buffer is not None:
            self._buffer.untyped_storage().resize_(0)

    def keep_changes(self) -> None:
        """Take this process's parts of parameters that have been changed as a whole."""
        for each in self._divided:
            assert each.whole is not None
            local = each.part.detach().as_subclass(Tensor)
            local.copy_(part_of(each.whole.detach(), self.mesh, 0, Shard(0)))

    # ---- forward and backward ----

    def keep_apart(self, units: int) -> None:
        """Set `units`."""
        self.units, self._kept = units, []

    def _before_forward(self, module: Module, args: Any, kwargs: Any) -> None:
        if self.units and not self.sync:
            raise RuntimeError(
                f"{type(module).__name__}: the gradients of units are divided in each backward, "
                "but set_requires_gradient_sync(False) asks for none"
            )
        self.gather()
        for unit in self.gather_early["forward"]:
            unit.start_gathering()

    def _after_forward(self, module: Module, args: Any, output: Any) -> None:
        records = taeda.is_grad_enabled()
        keeps = self.frees_unless_root and self.is_root
        if (self.free_after_forward and not keeps) or not records:
            self.free()
        if not records:
            return
        self._pending = sum(each.requires_grad for each in self._divided)
        for tensor in tree_leaves(output):
            if isinstance(tensor, Tensor) and tensor.requires_grad:
                tensor.register_hook(self._before_backward)

    def _before_backward(self, grad: Tensor) -> None:
        if not self._queued:
            self._queued = True
            _C._queue_callback(self._after_backward)
        self.gather()
        for unit in self.gather_early["backward"]:
            unit.start_gathering()

    def _arrive(self, parameter: Tensor) -> None:
        self._pending -= 1
        if self._pending == 0:
            self._reduce()

    def _reduce(self) -> None:
        """Divide the gradients among processes, and free the parameters."""
        trained = [each for each in self._divided if each.requires_grad]
        if not self.sync:
            return
        count = self.mesh.size()
        columns = []
        for each in trained:
            assert each.whole is not None
            grad = each.whole.grad
            flat = taeda.zeros(count * each.padded, dtype=each.part.dtype)
            if grad is not None:
                flat[: grad.numel()] = grad.reshape(-1)
            columns.append(flat.view(count, -1))
            each.whole.grad = None
        if columns:
            sent = taeda.cat(columns, 1).div_(count)
            if self.units:
                received = taeda.empty_like(sent)
                work = plain.all_to_all_single(received, sent, group=self.group, async_op=True)
            else:
                received = taeda.empty(sent.size(1), dtype=sent.dtype)
                work = plain.reduce_scatter_tensor(received, sent, group=self.group, async_op=True)
            assert work is not None
            self._reductions.append((work, received))
        self.free()

    def _after_backward(self) -> None:
        """Backward is over: keep the parts of gradients that are this process's."""
        self._queued = False
        if self._pending > 0 and self.sync:
            self._pending = 0  # some parameters have got no gradient
            self._reduce()
        trained = [each for each in self._divided if each.requires_grad]
        for work, received in self._reductions:
            work.wait()
            total = self._added_up(received) if self.units else received
            if total is None:
                continue
            parts = total.split([each.padded for each in trained])
            for each, part in zip(trained, parts, strict=True):
                local = Tensor.size(each.part)
                mine = part[: local.numel()].view(local)
                before = _GRAD.__get__(each.part)
                _GRAD.__set__(each.part, mine.clone() if before is None else before + mine)
        self._reductions = []
        self.free()

    def _added_up(self, received: Tensor) -> Tensor | None:
        """The sum of all units' gradients in the order of processes and passes, after the last."""
        self._kept.append(received)
        if len(self._kept) < self.units // self.mesh.size():
            return None
        rows = taeda.stack(self._kept, 1).flatten(0, 1)
        self._kept = []
        total = rows[0].clone()
        for row in rows[1:]:
            total += row
        return total


def units_of(module: Module) -> Sequence[Unit]:
    """The units of a module and of those below it."""
    found = [getattr(each, "_fsdp_unit", None) for each in module.modules()]
    return [unit for unit in found if unit is not None]
