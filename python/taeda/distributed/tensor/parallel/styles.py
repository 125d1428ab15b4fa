"""How a module is divided: what each process has of its parameters, inputs and outputs."""

from __future__ import annotations

import abc
import fnmatch
from collections.abc import Callable
from typing import Any

import taeda
from taeda import Tensor
from taeda.distributed.device_mesh import DeviceMesh
from taeda.nn import functional as F
from taeda.nn.module import Module

from .._dtensor import DTensor, _made, distribute_tensor
from .._redistribute import Redistribute
from ..placement_types import Partial, Placement, Replicate, Shard
from ._linear import ColumnUnits, RowUnits

__all__ = [
    "ColwiseParallel",
    "ParallelStyle",
    "PrepareModuleInput",
    "PrepareModuleOutput",
    "RowwiseParallel",
    "SequenceParallel",
    "parallelize_module",
]


class ParallelStyle(abc.ABC):
    """A way to divide a module."""

    src_data_rank: int | None = 0
    units = 0  # in how many parts products are computed; 0: in one for each process

    @abc.abstractmethod
    def _apply(self, module: Module, device_mesh: DeviceMesh) -> Module:
        """Divide a module in place."""


def _positive(placed: Placement, dims: int) -> Placement:
    """The same with a dimension that counts from the front."""
    return Shard(placed.dim % dims) if isinstance(placed, Shard) else placed


def _shape(local: Tensor, mesh: DeviceMesh, placed: Placement) -> list[int]:
    """The shape of the whole, whose parts are all as large."""
    sizes = list(local.shape)
    if isinstance(placed, Shard):
        sizes[placed.dim] *= mesh.size()
    return sizes


def _moved(
    x: Tensor,
    mesh: DeviceMesh,
    before: Placement,
    after: Placement,
    grads: Placement | None = None,
) -> Tensor:
    """The part of this process after placements change, of a part or a DTensor."""
    if isinstance(x, DTensor):
        (before,), shape, local = x.placements, list(x.shape), x.as_subclass(Tensor)
    else:
        before = _positive(before, x.dim())
        shape, local = _shape(x, mesh, before), x
    after = _positive(after, x.dim())
    given = None if grads is None else [grads]
    return Redistribute.apply(local, shape, mesh, [before], [after], given)


def _result(x: Tensor, mesh: DeviceMesh, placed: Placement, local: bool) -> Tensor:
    if local:
        return x
    placed = _positive(placed, x.dim())
    return _made(x, mesh, [placed], _shape(x, mesh, placed))


def _divide(
    module: Module, mesh: DeviceMesh, places: dict[str, Placement], src: int | None
) -> None:
    """Replace parameters by DTensors; those without a place are replicated."""
    for name, p in list(module._parameters.items()):
        if p is not None and not isinstance(p, DTensor):
            placed = [places.get(name, Replicate())]
            made = distribute_tensor(p.detach(), mesh, placed, src_data_rank=src)
            setattr(module, name, taeda.nn.Parameter(made, p.requires_grad))


def _check(style: str, module: Module, mesh: DeviceMesh, kinds: tuple[type[Module], ...]) -> None:
    if not isinstance(module, kinds):
        names = " and ".join(f"nn.{kind.__name__}" for kind in kinds)
        raise NotImplementedError(f"{style} currently only support {names}!")
    if mesh.ndim != 1:
        raise ValueError(f"{style}: expected a mesh of one dimension, got {mesh}")


class _Linear(ParallelStyle):
    """What column-wise and row-wise styles have in common."""

    def __init__(
        self,
        input_layouts: Placement,
        output_layouts: Placement,
        use_local_output: bool,
    ) -> None:
        self.input_layouts, self.output_layouts = input_layouts, output_layouts
        self.use_local_output = use_local_output

    def _own_units(self, module: Module, size: int, mesh: DeviceMesh) -> int:
        """How many units a process computes of a dimension that is divided; 0 without units."""
        name, units = type(self).__name__, self.units
        if size % mesh.size():
            raise ValueError(
                f"{name}: {module} cannot be divided evenly among {mesh.size()} processes"
            )
        if units and (units % mesh.size() or size % units):
            raise ValueError(
                f"{name}: units ({units}) must be a multiple of the number of processes "
                f"({mesh.size()}), and divide {size}, which {module} has"
            )
        # An Embedding adds nothing up but zeros.
        return units // mesh.size() if isinstance(module, taeda.nn.Linear) else 0


class ColwiseParallel(_Linear):
    """Each process has some outputs of a Linear, or some columns of an Embedding.

    Args:
        input_layouts: how the input is placed; replicated by default.
        output_layouts: how the output is to be placed; divided along the last dimension by default.
        use_local_output: whether the output is this process's part rather than a DTensor.
    """

    def __init__(
        self,
        *,
        input_layouts: Placement | None = None,
        output_layouts: Placement | None = None,
        use_local_output: bool = True,
    ) -> None:
        super().__init__(
            input_layouts or Replicate(), output_layouts or Shard(-1), use_local_output
        )

    def _apply(self, module: Module, device_mesh: DeviceMesh) -> Module:
        mesh = device_mesh
        _check("ColwiseParallel", module, mesh, (taeda.nn.Linear, taeda.nn.Embedding))
        dim = 0 if isinstance(module, taeda.nn.Linear) else 1
        given: Any = module
        own = self._own_units(module, given.weight.size(dim), mesh)
        places: dict[str, Placement] = {"weight": Shard(dim), "bias": Shard(0)}
        _divide(module, mesh, places, self.src_data_rank)
        original = module.forward

        def forward(x: Tensor) -> Tensor:
            partial = x.is_floating_point() and not own
            x = _moved(x, mesh, self.input_layouts, Replicate(), Partial() if partial else None)
            if own:
                bias = None if given.bias is None else given.bias.to_local()
                y = ColumnUnits.apply(x, given.weight.to_local(), bias, own, mesh.get_group(0))
            else:
                y = _with_parts(module, original, x, None)
            y = _moved(y, mesh, Shard(-1), self.output_layouts)
            return _result(y, mesh, self.output_layouts, self.use_local_output)

        module.forward = forward  # type: ignore[method-assign]
        return module


class RowwiseParallel(_Linear):
    """Each process has some inputs of a Linear, or some rows of an Embedding.

    Args:
        input_layouts: how the input is placed; divided along the last dimension by default.
        output_layouts: how the output is to be placed; replicated by default.
        use_local_output: whether the output is this process's part rather than a DTensor.
    """

    def __init__(
        self,
        *,
        input_layouts: Placement | None = None,
        output_layouts: Placement | None = None,
        use_local_output: bool = True,
    ) -> None:
        super().__init__(
            input_layouts or Shard(-1), output_layouts or Replicate(), use_local_output
        )

    def _apply(self, module: Module, device_mesh: DeviceMesh) -> Module:
        mesh = device_mesh
        _check("RowwiseParallel", module, mesh, (taeda.nn.Linear, taeda.nn.Embedding))
        linear = isinstance(module, taeda.nn.Linear)
        given: Any = module
        own = self._own_units(module, given.weight.size(1 if linear else 0), mesh)
        _divide(module, mesh, {"weight": Shard(1 if linear else 0)}, self.src_data_rank)
        part = self._linear_part if linear else self._embedding_part

        def in_units(x: Tensor) -> Tensor:
            x = _moved(x, mesh, self.input_layouts, Shard(-1))
            y = RowUnits.apply(x, given.weight.to_local(), own, mesh.get_group(0))
            if given.bias is not None:  # before the output is divided, as is its gradient then
                y = y + given.bias.to_local()
            y = _moved(y, mesh, Replicate(), self.output_layouts)
            return _result(y, mesh, self.output_layouts, self.use_local_output)

        def forward(x: Tensor) -> Tensor:
            y = _moved(part(module, mesh, x), mesh, Partial(), self.output_layouts)
            if linear and given.bias is not None:
                divided = isinstance(self.output_layouts, Shard)
                grads = [Partial()] if divided else None
                y = y + given.bias.to_local(grad_placements=grads)
            return _result(y, mesh, self.output_layouts, self.use_local_output)

        module.forward = in_units if own else forward  # type: ignore[method-assign]
        return module

    def _linear_part(self, module: Any, mesh: DeviceMesh, x: Tensor) -> Tensor:
        x = _moved(x, mesh, self.input_layouts, Shard(-1))
        return F.linear(x, module.weight.to_local())

    def _embedding_part(self, module: Any, mesh: DeviceMesh, x: Tensor) -> Tensor:
        """The rows that this process has, and zeros for the others."""
        given = self.input_layouts if self.input_layouts != Shard(-1) else Replicate()
        x = _moved(x, mesh, given, Replicate())
        weight = module.weight.to_local()
        x = x - weight.size(0) * mesh.get_local_rank()
        mine = (x >= 0) & (x < weight.size(0))
        return F.embedding(x.where(mine, taeda.zeros_like(x)), weight) * mine.unsqueeze(-1)


class SequenceParallel(ParallelStyle):
    """Each process has a part of the sequence, and all parameters of a norm or of dropout.

    Args:
        sequence_dim: the dimension of the sequence.
        use_local_output: whether the output is this process's part rather than a DTensor.
    """

    def __init__(self, *, sequence_dim: int = 1, use_local_output: bool = False) -> None:
        self.sequence_dim, self.use_local_output = sequence_dim, use_local_output

    def _apply(self, module: Module, device_mesh: DeviceMesh) -> Module:
        if self.units:
            raise NotImplementedError(
                "SequenceParallel: gradients are added up over processes, not over units"
            )
        mesh, placed = device_mesh, Shard(self.sequence_dim)
        _divide(module, mesh, {}, self.src_data_rank)
        original = module.forward

        def forward(x: Tensor) -> Tensor:
            # A plain tensor is this process's part already.
            local = _moved(x, mesh, placed, placed)
            y = _with_parts(module, original, local, [Partial()])
            return _result(y, mesh, placed, self.use_local_output)

        module.forward = forward  # type: ignore[method-assign]
        return module


def _with_parts(
    module: Module, forward: Callable[..., Any], x: Tensor, grads: list[Placement] | None
) -> Tensor:
    """What a module computes with this process's parts of its parameters."""
    kept = {name: p for name, p in module._parameters.items() if p is not None}
    try:
        for name, p in kept.items():
            assert isinstance(p, DTensor)
            module._parameters[name] = p.to_local(grad_placements=grads)
            module.__dict__[name] = module._parameters[name]
        return forward(x)
    finally:
        for name, p in kept.items():
            module._parameters[name] = module.__dict__[name] = p


class PrepareModuleInput(ParallelStyle):
    """Places the inputs of a module otherwise before it computes.

    Args:
        input_layouts: how positional inputs are placed; None for those that are left as they are.
        desired_input_layouts: how they are to be.
        use_local_output: whether the module gets parts rather than DTensors.
    """

    def __init__(
        self,
        *,
        input_layouts: Any = None,
        desired_input_layouts: Any = None,
        use_local_output: bool = False,
    ) -> None:
        self.before = input_layouts if isinstance(input_layouts, tuple) else (input_layouts,)
        wanted = desired_input_layouts
        self.after = wanted if isinstance(wanted, tuple) else (wanted,)
        self.use_local_output = use_local_output
        if len(self.before) != len(self.after):
            raise ValueError("PrepareModuleInput: as many desired layouts as layouts are needed")

    def _apply(self, module: Module, device_mesh: DeviceMesh) -> Module:
        def prepare(module: Module, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
            if len(inputs) != len(self.before):
                raise ValueError("module inputs and input_layouts should have same length!")
            return _placed(inputs, device_mesh, self.before, self.after, self.use_local_output)

        module.register_forward_pre_hook(prepare)
        return module


class PrepareModuleOutput(ParallelStyle):
    """Places the outputs of a module otherwise after it has computed.

    Args:
        output_layouts: how they are placed; None for those that are left as they are.
        desired_output_layouts: how they are to be.
        use_local_output: whether parts are returned rather than DTensors.
    """

    def __init__(
        self,
        *,
        output_layouts: Any,
        desired_output_layouts: Any,
        use_local_output: bool = True,
    ) -> None:
        self.before = output_layouts if isinstance(output_layouts, tuple) else (output_layouts,)
        wanted = desired_output_layouts
        self.after = wanted if isinstance(wanted, tuple) else (wanted,)
        self.use_local_output = use_local_output
        if len(self.before) != len(self.after):
            raise ValueError("PrepareModuleOutput: as many desired layouts as layouts are needed")

    def _apply(self, module: Module, device_mesh: DeviceMesh) -> Module:
        def prepare(module: Module, inputs: Any, output: Any) -> Any:
            outputs = output if isinstance(output, tuple) else (output,)
            if len(outputs) != len(self.before):
                raise ValueError("module outputs and output_layouts should have same length!")
            made = _placed(outputs, device_mesh, self.before, self.after, self.use_local_output)
            return made if isinstance(output, tuple) else made[0]

        module.register_forward_hook(prepare)
        return module


def _placed(
    values: tuple[Any, ...], mesh: DeviceMesh, before: Any, after: Any, local: bool
) -> tuple[Any, ...]:
    made = []
    for value, b, a in zip(values, before, after, strict=True):
        if b is not None and isinstance(value, Tensor):
            value = _result(_moved(value, mesh, b, a), mesh, a, local)
        made.append(value)
    return tuple(made)


def parallelize_module(
    module: Module,
    device_mesh: DeviceMesh | None = None,
    parallelize_plan: ParallelStyle | dict[str, ParallelStyle] | None = None,
    *,
    src_data_rank: int | None = 0,
    units: int = 0,
) -> Module:
    """Divide a module, or modules below it, in place, and return it.

    Args:
        module: the module.
        device_mesh: the processes, in a row; all by default.
        parallelize_plan: how to divide it; or, by the names of modules below it, in which ``*``
            stands for any part between dots, how to divide those.
        src_data_rank: the process whose parameters all get; None if they are the same in all.
        units: into how many parts the products of a Linear are divided, so that any number of
            processes that divides it computes the same bits, also one: each computes some parts,
            and sums over them are taken in their order. It costs as many smaller products, and
            messages of as many outputs as a process has parts. 0: one for each process.

    Raises:
        NotImplementedError: a style does not know a module's class, or units.
        TypeError: ``units`` is not an integer.
        ValueError: a module cannot be divided evenly; or ``units`` is negative.
    """
    if not isinstance(units, int) or isinstance(units, bool):
        raise TypeError(f"parallelize_module: units must be an integer, not {type(units).__name__}")
    if units < 0:
        raise ValueError(f"parallelize_module: units must be at least 0, got {units}")
    mesh = DeviceMesh("cpu") if device_mesh is None else device_mesh
    if isinstance(parallelize_plan, ParallelStyle):
        parallelize_plan.src_data_rank, parallelize_plan.units = src_data_rank, units
        return parallelize_plan._apply(module, mesh)
    for pattern, style in (parallelize_plan or {}).items():
        atoms = pattern.split(".")
        for name, each in list(module.named_modules()):
            found = name.split(".")
            if len(found) == len(atoms) and all(map(fnmatch.fnmatchcase, found, atoms)):
                style.src_data_rank, style.units = src_data_rank, units
                style._apply(each, mesh)
    return module
