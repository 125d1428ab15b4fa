"""Backends, reductions and levels of logging."""

from __future__ import annotations

import enum
from typing import Any


class Backend(str):
    """The name of a means of communication, in lower case."""

    UNDEFINED = "undefined"
    GLOO = "gloo"
    NCCL = "nccl"
    XCCL = "xccl"
    UCC = "ucc"
    MPI = "mpi"
    FAKE = "fake"
    backend_list = ["undefined", "gloo", "nccl", "xccl", "ucc", "mpi", "fake"]
    default_device_backend_map = {"cpu": "gloo", "cuda": "nccl", "xpu": "xccl", "mps": "gloo"}

    __slots__ = ()

    def __new__(cls, name: str) -> Backend:
        """A name, in lower case."""
        if not isinstance(name, str):
            raise ValueError(f"Backend name must be a string, but got: {name}")
        return super().__new__(cls, name.lower())


class BackendConfig:
    """Which means of communication each kind of device uses, from ``"gloo"`` or ``"cpu:gloo"``.

    >>> import taeda.distributed as dist
    >>> dist.BackendConfig("gloo")
    cpu:gloo,cuda:gloo
    """

    def __init__(self, backend: str) -> None:
        text = str(backend).lower()
        if text == Backend.UNDEFINED:
            # A group asks for NCCL when it is first given a tensor of a GPU.
            text = "cpu:gloo,cuda:nccl"
        pairs = [part.partition(":") for part in text.split(",")]
        if len(pairs) == 1 and not pairs[0][1]:
            pairs = [(device, ":", text) for device in ("cpu", "cuda")]
        self.device_backend_map = {device: Backend(name) for device, _, name in pairs}
        if any(not colon for _, colon, _ in pairs) or len(self.device_backend_map) < len(pairs):
            raise ValueError(
                f"BackendConfig: expected a backend or 'device:backend,...', got {backend!r}"
            )

    def get_device_backend_map(self) -> dict[str, Backend]:
        """Return the means of communication by device."""
        return self.device_backend_map

    def __repr__(self) -> str:
        return ",".join(f"{device}:{name}" for device, name in self.device_backend_map.items())


def names_of(backend: str) -> list[Backend]:
    """What carries the messages of some kind of device, as a backend says."""
    if Backend(backend) == Backend.UNDEFINED:
        return []
    return list(BackendConfig(backend).device_backend_map.values())


class _RedOpType(enum.Enum):
    """How the values of several processes are combined into one."""

    SUM = 0
    AVG = 1
    PRODUCT = 2
    MIN = 3
    MAX = 4
    BAND = 5
    BOR = 6
    BXOR = 7
    PREMUL_SUM = 8


class _ReduceOpType(type):
    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, _RedOpType) or super().__instancecheck__(instance)


class ReduceOp(metaclass=_ReduceOpType):
    """How the values of several processes are combined into one, such as ``ReduceOp.SUM``."""

    RedOpType: type[enum.Enum] = _RedOpType
    SUM = _RedOpType.SUM
    AVG = _RedOpType.AVG
    PRODUCT = _RedOpType.PRODUCT
    MIN = _RedOpType.MIN
    MAX = _RedOpType.MAX
    BAND = _RedOpType.BAND
    BOR = _RedOpType.BOR
    BXOR = _RedOpType.BXOR
    PREMUL_SUM = _RedOpType.PREMUL_SUM

    def __init__(self, op: Any) -> None:
        self.op = op

    def __eq__(self, other: object) -> bool:
        return self.op == getattr(other, "op", other)

    def __hash__(self) -> int:
        return hash(self.op)


class DebugLevel(enum.Enum):
    """How much is checked and logged; nothing is."""

    OFF = 0
    INFO = 1
    DETAIL = 2


_RedOpType.__name__ = _RedOpType.__qualname__ = "RedOpType"
