"""Grids of processes, and the groups along their dimensions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import taeda
from taeda import Tensor

from ._group import GroupMember, _known, _world, new_group
from ._process_group import ProcessGroup

__all__ = ["DeviceMesh", "init_device_mesh"]


class DeviceMesh:
    """A grid of processes. All processes make it, also those that are not in it.

    Args:
        device_type: ``"cpu"``.
        mesh: the numbers of processes in a grid; all in a row by default.
        mesh_dim_names: names of the dimensions.

    Raises:
        RuntimeError: there are more places in the grid than processes, or not as many names as
            dimensions.
    """

    def __init__(
        self,
        device_type: str,
        mesh: Any = None,
        *,
        mesh_dim_names: tuple[str, ...] | None = None,
        _groups: Sequence[Any] | None = None,
    ) -> None:
        world = _world()
        self.device_type = taeda.device(device_type).type
        numbers = list(range(world.size())) if mesh is None else mesh
        self.mesh = taeda.as_tensor(numbers, device="cpu").int()
        if self.mesh.numel() > world.size():
            raise RuntimeError(
                f"Mesh should not be bigger than default world size {world.size()}, but found "
                f"{self.mesh.numel()} ranks!"
            )
        for rank in self.mesh.reshape(-1).tolist():
            if not 0 <= rank < world.size():
                raise RuntimeError(f"DeviceMesh: there is no process {rank}")
        if mesh_dim_names is not None and len(mesh_dim_names) != self.mesh.ndim:
            raise RuntimeError(
                f"DeviceMesh: expected {self.mesh.ndim} mesh_dim_names, got {mesh_dim_names}"
            )
        self.mesh_dim_names = None if mesh_dim_names is None else tuple(mesh_dim_names)
        self._root = self  # of which it is a part
        self._rank = world.rank()
        self._groups = list(_groups) if _groups is not None else self._made_groups(world)

    def _made_groups(self, world: ProcessGroup) -> list[Any]:
        """For each dimension the group of the processes that lie along it beside this one."""
        found: list[Any] = []
        for dim in range(self.mesh.ndim):
            mine: Any = GroupMember.NON_GROUP_MEMBER
            rows = self.mesh.movedim(dim, -1).reshape(-1, self.mesh.shape[dim]).tolist()
            for ranks in rows:
                if ranks == list(range(world.size())):
                    mine = world
                    continue
                made = new_group(ranks, sort_ranks=False, group_desc=f"mesh_dim_{dim}")
                mine = made if self._rank in ranks else mine
            found.append(mine)
        return found

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return self.mesh.ndim

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes of the dimensions."""
        return tuple(self.mesh.shape)

    def size(self, mesh_dim: int | None = None) -> int:
        """The number of processes, in all or along one dimension."""
        return self.mesh.numel() if mesh_dim is None else int(self.mesh.shape[mesh_dim])

    def get_rank(self) -> int:
        """The number of this process among all."""
        return self._rank

    def _dimension(self, mesh_dim: int | str | None) -> int:
        if mesh_dim is None:
            if self.ndim > 1:
                raise RuntimeError(
                    f"DeviceMesh: mesh_dim must be given, as there are {self.ndim} dimensions"
                )
            return 0
        if isinstance(mesh_dim, str):
            if mesh_dim not in (self.mesh_dim_names or ()):
                raise KeyError(f"Invalid mesh_dim_name {mesh_dim}: there are {self.mesh_dim_names}")
            return self.mesh_dim_names.index(mesh_dim)  # type: ignore[union-attr]
        return range(self.ndim)[mesh_dim]

    def get_local_rank(self, mesh_dim: int | str | None = None) -> int:
        """The place of this process along a dimension."""
        dim = self._dimension(mesh_dim)
        place = self.get_coordinate()
        if place is None:
            raise RuntimeError(f"DeviceMesh: process {self._rank} is not in the mesh")
        return place[dim]

    def get_coordinate(self) -> tuple[int, ...] | None:
        """The place of this process, None where it is not in the grid."""
        found = (self.mesh == self._rank).nonzero()
        return tuple(found[0].tolist()) if len(found) else None

    def get_group(self, mesh_dim: int | str | None = None) -> ProcessGroup:
        """The processes that lie along a dimension beside this one."""
        return self._groups[self._dimension(mesh_dim)]

    def get_all_groups(self) -> list[ProcessGroup]:
        """The groups of all dimensions."""
        return list(self._groups)

    @staticmethod
    def from_group(
        group: ProcessGroup | list[ProcessGroup],
        device_type: str,
        mesh: Any = None,
        *,
        mesh_dim_names: tuple[str, ...] | None = None,
    ) -> DeviceMesh:
        """A grid of the processes of a group, or of one group for each dimension.

        Args:
            group: the group, or one for each dimension of ``mesh``.
            device_type: ``"cpu"``.
            mesh: the numbers of processes in a grid; of one group all in a row.
            mesh_dim_names: names of the dimensions.
        """
        if isinstance(group, (list, tuple)):
            if mesh is None:
                raise ValueError("Must pass mesh if passing multiple ProcessGroups")
            groups = [_known(each) for each in group]
        else:
            groups = [_known(group)]
            mesh = groups[0]._ranks
        return DeviceMesh(device_type, mesh, mesh_dim_names=mesh_dim_names, _groups=groups)

    def __getitem__(self, names: str | tuple[str, ...]) -> DeviceMesh:
        """The part of the grid along some dimensions, by name, that this process is in."""
        wanted = (names,) if isinstance(names, str) else tuple(names)
        if self.mesh_dim_names is None:
            raise RuntimeError("Cannot slice a DeviceMesh without mesh_dim_names!")
        dims = [self._dimension(name) for name in wanted]
        place = self.get_coordinate()
        if place is None:
            raise RuntimeError(f"DeviceMesh: process {self._rank} is not in the mesh")
        others = [dim for dim in range(self.ndim) if dim not in dims]
        part: Tensor = self.mesh.permute(*others, *dims)
        for dim in others:
            part = part[place[dim]]
        made = DeviceMesh(
            self.device_type, part, mesh_dim_names=wanted, _groups=[self._groups[d] for d in dims]
        )
        made._root = self._root
        return made

    def _with(self, other: DeviceMesh) -> DeviceMesh:
        """The part of the grid along the dimensions of this one and of another, in this order.

        Raises:
            ValueError: they are not parts of one grid.
        """
        if self._root is not other._root or self._root in (self, other):
            raise ValueError(
                f"{self} and {other} must be parts of one mesh, as mesh['dp'] and mesh['tp'] are"
            )
        names = (*(self.mesh_dim_names or ()), *(other.mesh_dim_names or ()))
        return self._root[names]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, DeviceMesh):
            return NotImplemented
        mine = self.device_type, self.mesh.tolist(), self.mesh_dim_names
        return mine == (other.device_type, other.mesh.tolist(), other.mesh_dim_names)

    def __hash__(self) -> int:
        return hash((self.device_type, str(self.mesh.tolist()), self.mesh_dim_names))

    def __repr__(self) -> str:
        names = self.mesh_dim_names
        sizes: Any = self.shape
        if names is not None:
            pairs = zip(names, self.shape, strict=True)
            sizes = "(" + ", ".join(f"{name}={size}" for name, size in pairs) + ")"
        return f"DeviceMesh({sizes}, '{self.device_type}')"


def init_device_mesh(
    device_type: str,
    mesh_shape: tuple[int, ...],
    *,
    mesh_dim_names: tuple[str, ...] | None = None,
) -> DeviceMesh:
    """Make a grid of all processes, row by row; without a group, it is made as well.

    Args:
        device_type: ``"cpu"``.
        mesh_shape: its sizes, whose product is the number of processes.
        mesh_dim_names: names of its dimensions, all different.

    Raises:
        RuntimeError: there are not as many processes, or the names do not fit.

    >>> import taeda.distributed as dist
    >>> dist.init_process_group("gloo", rank=0, world_size=1, store=dist.HashStore())
    >>> mesh = dist.init_device_mesh("cpu", (1, 1), mesh_dim_names=("dp", "tp"))
    >>> mesh["tp"].size(), mesh.get_coordinate()
    (1, (0, 0))
    >>> dist.destroy_process_group()
    """
    from ._group import init_process_group, is_initialized

    if mesh_dim_names is not None:
        if len(set(mesh_dim_names)) != len(mesh_dim_names):
            raise RuntimeError(f"Each mesh_dim_name must be unique, got {mesh_dim_names}")
        if len(mesh_dim_names) != len(mesh_shape):
            raise RuntimeError("mesh_shape and mesh_dim_names should have same length!")
    if not is_initialized():
        init_process_group()
    mesh = taeda.arange(math.prod(mesh_shape)).reshape(mesh_shape)
    return DeviceMesh(device_type, mesh, mesh_dim_names=mesh_dim_names)
