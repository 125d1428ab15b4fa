"""Meshes of devices, which programs name in annotations; none can be made without processes."""

from __future__ import annotations

from typing import Any, NoReturn

__all__ = ["DeviceMesh", "init_device_mesh"]


def _refuse(what: str) -> NoReturn:
    raise RuntimeError(f"{what}: this build has no distributed training, see is_available()")


class DeviceMesh:
    """Devices of several processes in a grid. taeda has no instances."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        _refuse("DeviceMesh")


def init_device_mesh(device_type: str, mesh_shape: tuple[int, ...], **options: Any) -> NoReturn:
    """Make a mesh of the devices of all processes.

    Raises:
        RuntimeError: always, as there is one process.
    """
    _refuse("init_device_mesh")
