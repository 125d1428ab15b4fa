"""Grids of devices of several processes: of one, here."""

from __future__ import annotations

from typing import Any

import taeda

from ._group import ProcessGroup, _world

__all__ = ["DeviceMesh", "init_device_mesh"]


class DeviceMesh:
    """A grid with one place, for this process. `init_device_mesh` makes one.

    Args:
        device_type: ``"cpu"``.
        mesh: the numbers of processes in a grid: a 0, in as many dimensions as wanted.
        mesh_dim_names: names of the dimensions.

    Raises:
        RuntimeError: there are other numbers in ``mesh``, or not as many names as dimensions.
    """

    def __init__(
        self,
        device_type: str,
        mesh: Any = None,
        *,
        mesh_dim_names: tuple[str, ...] | None = None,
    ) -> None:
        self._group = _world()
        self.device_type = taeda.device(device_type).type
        self.mesh = taeda.as_tensor([0] if mesh is None else mesh, device="cpu").int()
        if self.mesh.numel() != 1:
            raise RuntimeError(
                "Mesh should not be bigger than default world size 1, but found "
                f"{self.mesh.numel()} ranks!"
            )
        if self.mesh.item() != 0:
            raise RuntimeError(f"DeviceMesh: there is no process {self.mesh.item()}")
        if mesh_dim_names is not None and len(mesh_dim_names) != self.mesh.ndim:
            raise RuntimeError(
                f"DeviceMesh: expected {self.mesh.ndim} mesh_dim_names, got {mesh_dim_names}"
            )
        self.mesh_dim_names = None if mesh_dim_names is None else tuple(mesh_dim_names)

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return self.mesh.ndim

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes of the dimensions, which are 1."""
        return tuple(self.mesh.shape)

    def size(self, mesh_dim: int | None = None) -> int:
        """The number of processes, in all or in one dimension: 1."""
        return 1 if mesh_dim is None else int(self.mesh.shape[mesh_dim])

    def get_rank(self) -> int:
        """The number of this process: 0."""
        return 0

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
        """The place of this process in a dimension: 0."""
        self._dimension(mesh_dim)
        return 0

    def get_coordinate(self) -> tuple[int, ...]:
        """The place of this process: zeros."""
        return (0,) * self.ndim

    def get_group(self, mesh_dim: int | str | None = None) -> ProcessGroup:
        """The processes that lie along a dimension."""
        self._dimension(mesh_dim)
        return self._group

    def get_all_groups(self) -> list[ProcessGroup]:
        """The groups of all dimensions."""
        return [self._group] * self.ndim

    @staticmethod
    def from_group(group: ProcessGroup, device_type: str, **options: Any) -> DeviceMesh:
        """A grid of the processes of a group."""
        return DeviceMesh(device_type, [0], mesh_dim_names=options.get("mesh_dim_names"))

    def __getitem__(self, names: str | tuple[str, ...]) -> DeviceMesh:
        """The part of the grid in some of its dimensions, by their names."""
        wanted = (names,) if isinstance(names, str) else tuple(names)
        if self.mesh_dim_names is None:
            raise RuntimeError("Cannot slice a DeviceMesh without mesh_dim_names!")
        for name in wanted:
            self._dimension(name)
        return DeviceMesh(
            self.device_type, self.mesh.reshape((1,) * len(wanted)), mesh_dim_names=wanted
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, DeviceMesh):
            return NotImplemented
        mine = self.device_type, self.shape, self.mesh_dim_names
        return mine == (other.device_type, other.shape, other.mesh_dim_names)

    def __hash__(self) -> int:
        return hash((self.device_type, self.shape, self.mesh_dim_names))

    def __repr__(self) -> str:
        names = self.mesh_dim_names
        sizes = self.shape if names is None else tuple(f"{name}=1" for name in names)
        return f"DeviceMesh({sizes}, '{self.device_type}')"


def init_device_mesh(
    device_type: str,
    mesh_shape: tuple[int, ...],
    *,
    mesh_dim_names: tuple[str, ...] | None = None,
) -> DeviceMesh:
    """Make a grid of the devices of all processes; without a group, it is made as well.

    Args:
        device_type: ``"cpu"``.
        mesh_shape: its sizes, which are 1.
        mesh_dim_names: names of its dimensions, all different.

    Raises:
        RuntimeError: a size is not 1, or the names do not fit.

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
    count = 1
    for size in mesh_shape:
        count *= size
    if not is_initialized():
        init_process_group()
    if count != 1:
        raise RuntimeError(
            f"Mesh should not be bigger than default world size 1, but found {count} ranks!"
        )
    mesh = taeda.zeros(mesh_shape, dtype=taeda.int32, device="cpu")
    return DeviceMesh(device_type, mesh, mesh_dim_names=mesh_dim_names)
