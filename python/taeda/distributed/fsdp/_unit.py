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
from taeda.distributed.tensor import DTensor, Placement, Replicate, Shard
from taeda.distributed.tensor._dtensor import _GRAD, _made
from taeda.distributed.tensor._redistribute import part_of
from taeda.distributed.tensor.placement_types import _StridedShard
from taeda.nn.module import Module
from taeda.utils._pytree import tree_leaves

__all__ = ["Unit", "keep_apart", "units_of"]


class _Divided:
    """A parameter of a unit: where it is used, its part and, while it is gathered, all of it.

    Where tensor parallelism has divided the parameter before, "all of it" is this process's part of
    then, and is a DTensor as it was.
    """

    def __init__(self, parameter: Tensor, mesh: DeviceMesh) -> None:
        self.uses: list[tuple[Module, str]] = []
        self.before = parameter if isinstance(parameter, DTensor) else None
        local = parameter.detach().as_subclass(Tensor)
        self.shape = local.shape
        self.requires_grad = parameter.requires_grad
        count = mesh.size(-1)
        self.rows = -(-local.size(0) // count) if local.dim() else 0
        self.row = local[0].numel() if local.numel() else 0
        own = part_of(local, mesh, mesh.ndim - 1, Shard(0)).clone()
        placed: list[Placement] = [*[Replicate()] * (mesh.ndim - 1), Shard(0)]
        whole_mesh = mesh
        if self.before is not None:
            whole_mesh = mesh._with(self.before.device_mesh)
            placed = _beside(placed, self.before)
        made = _made(own, whole_mesh, placed, parameter.shape)
        self.part = taeda.nn.Parameter(made, parameter.requires_grad)
        self.whole: Tensor | None = None

    def as_used(self, memory: Tensor) -> Tensor:
        """The parameter that the modules compute with, in some memory."""
        view = memory.view(self.shape)
        if self.before is not None:
            first = self.before
            view = _made(view, first.device_mesh, first.placements, first.shape)
        return taeda.nn.Parameter(view, self.requires_grad)

    @property
    def padded(self) -> int:
        """Elements of a process's part, were it as large as the largest."""
        return self.rows * self.row

    def register(self, tensor: Tensor) -> None:
        """Let the modules use a tensor."""
        for module, name in self.uses:
            setattr(module, name, tensor)


def _beside(placed: list[Placement], before: DTensor) -> list[Placement]:
    """Placements of a parameter that is divided further than it was."""
    rows = [
        before.device_mesh.size(dim)
        for dim, each in enumerate(before.placements)
        if isinstance(each, Shard) and each.dim % before.dim() == 0
    ]
    if rows:
        # Its rows have been divided before, so that parts of processes are not in their order.
        placed = [*placed[:-1], _StridedShard(0, split_factor=rows[0])]
    return [*placed, *before.placements]


class Unit:
    """The parameters of a module that are gathered together.

    Args:
        module: whose parameters, and those below it, are divided, but for those of other units.
        mesh: the processes: in a row, or in a grid each of whose rows divides parameters, of which
            the rows have copies (HSDP).
        free_after_forward: whether memory is freed between forward and backward.
        ignored: parameters that are not divided.

    Attributes:
        sync: whether the next backward divides gradients; otherwise they add up in whole ones.
        sums_copies: whether gradients are then added up over the rows of the grid.
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
        self.group = mesh.get_group(-1)
        self.copies = mesh.get_group(0) if mesh.ndim > 1 else None
        self.sync = self.sums_copies = True
        self._not_summed: list[Tensor] = []  # over copies; one for each reduction of a pass
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
        count = self.group.size()
        dtype, device = self._divided[0].part.dtype, self._divided[0].part.device
        if any(each.part.dtype != dtype for each in self._divided):
            raise ValueError("fully_shard: the parameters of a module must have one dtype")
        total = sum(each.padded for each in self._divided)
        sent = taeda.zeros(total, dtype=dtype, device=device)
        first = 0
        for each in self._divided:
            local = each.part.detach().as_subclass(Tensor).reshape(-1)
            sent[first : first + local.numel()] = local
            first += each.padded
        self._received = taeda.empty(count * total, dtype=dtype, device=device)
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
        self._place(self._received.view(self.group.size(), -1))
        self._received = None

    def _place(self, rows: Tensor) -> None:
        """Put what has come from each process where saved values look for it."""
        sizes = [each.shape.numel() for each in self._divided]
        if self._buffer is None:
            self._buffer = rows.new_empty(sum(sizes))
        else:
            self._buffer.untyped_storage().resize_(self._buffer.numel() * rows.element_size())
        target = self._buffer.data  # no change that saved values would complain of
        column = first = 0
        for each, size in zip(self._divided, sizes, strict=True):
            whole = rows[:, column : column + each.padded].reshape(-1)[:size]
            target[first : first + size] = whole
            if each.whole is None:
                each.whole = each.as_used(self._buffer[first : first + size])
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
            whole = each.whole.detach().as_subclass(Tensor)
            local.copy_(part_of(whole, self.mesh, self.mesh.ndim - 1, Shard(0)))

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
        count = self.group.size()
        columns = []
        for each in trained:
            assert each.whole is not None
            grad = _GRAD.__get__(each.whole)
            flat = taeda.zeros(count * each.padded, dtype=each.part.dtype, device=each.part.device)
            if grad is not None:
                flat[: grad.numel()] = grad.reshape(-1)
            columns.append(flat.view(count, -1))
            each.whole.grad = None
        if columns:
            sent = taeda.cat(columns, 1).div_(self.mesh.size())
            if self.units:
                received = taeda.empty_like(sent)
                work = plain.all_to_all_single(received, sent, group=self.group, async_op=True)
            else:
                received = sent.new_empty(sent.size(1))
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
        for total in self._totals():
            self._keep(total)
        self._reductions = []
        self.free()

    def _totals(self) -> list[Tensor]:
        """What each reduction has given to this process, added up over all processes."""
        for work, _ in self._reductions:
            work.wait()
        received = [tensor for _, tensor in self._reductions]
        if self.units:
            sums = [self._added_up(tensor) for tensor in received]
            return [total for total in sums if total is not None]
        if self.copies is None:
            return received
        self._not_summed += received
        if not self.sums_copies:
            return []
        totals, self._not_summed = self._not_summed, []
        works = [plain.all_reduce(t, group=self.copies, async_op=True) for t in totals]
        for each in works:
            assert each is not None
            each.wait()
        return totals

    def _keep(self, total: Tensor) -> None:
        """Add to the gradients of this process's parts."""
        trained = [each for each in self._divided if each.requires_grad]
        parts = total.split([each.padded for each in trained])
        for each, part in zip(trained, parts, strict=True):
            local = Tensor.size(each.part)
            mine = part[: local.numel()].view(local)
            before = _GRAD.__get__(each.part)
            _GRAD.__set__(each.part, mine.clone() if before is None else before + mine)

    def _added_up(self, received: Tensor) -> Tensor | None:
        """The sum of all units' gradients in the order of processes and passes, after the last."""
        self._kept.append(received)
        if len(self._kept) < self.units // self.mesh.size():
            return None
        rows = taeda.stack(self._kept, 1).flatten(0, 1)
        self._kept = []
        if self.copies is not None:
            own, rows = rows, rows.new_empty(self.copies.size() * rows.size(0), rows.size(1))
            plain.all_gather_into_tensor(rows, own, self.copies)
        total = rows[0].clone()
        for row in rows[1:]:
            total += row
        return total


def keep_apart(function: str, found: Sequence[Unit], units: int) -> None:
    """Let units keep the gradients of so many passes apart.

    Raises:
        TypeError: ``units`` is not an integer.
        ValueError: it is negative, or the number of processes does not divide it.
    """
    if not isinstance(units, int) or isinstance(units, bool):
        raise TypeError(f"{function}: units must be an integer, not {type(units).__name__}")
    if units < 0:
        raise ValueError(f"{function}: units must be at least 0, got {units}")
    for unit in found:
        if units % unit.mesh.size():
            raise ValueError(
                f"{function}: units ({units}) must be a multiple of the number of processes "
                f"({unit.mesh.size()})"
            )
    for unit in found:
        unit.keep_apart(units)


def units_of(module: Module) -> Sequence[Unit]:
    """The units of a module and of those below it."""
    found = [getattr(each, "_fsdp_unit", None) for each in module.modules()]
    return [unit for unit in found if unit is not None]
