"""Objects that processes exchange, and what one sends to another, of which there is none."""

from __future__ import annotations

import io
import pickle
from typing import Any

from taeda import Tensor

from ._collectives import Work, _check, _check_root
from ._group import GroupMember, _is_outside, _known

__all__ = [
    "P2POp",
    "all_gather_object",
    "batch_isend_irecv",
    "broadcast_object_list",
    "gather_object",
    "irecv",
    "isend",
    "recv",
    "recv_object_list",
    "scatter_object_list",
    "send",
    "send_object_list",
]

# ---- objects ------------------------------------------------------------------------------------


def _sent(value: Any) -> Any:
    """What arrives of an object: a copy of it."""
    file = io.BytesIO()
    pickle.Pickler(file).dump(value)
    return pickle.loads(file.getvalue())


def all_gather_object(object_list: list[Any], obj: Any, group: Any = None) -> None:
    """Gather an object of each process in all of them: a copy becomes ``object_list[0]``."""
    if not _is_outside(group):
        object_list[0] = _sent(obj)


def gather_object(
    obj: Any,
    object_gather_list: list[Any] | None = None,
    dst: int | None = None,
    group: Any = None,
    group_dst: int | None = None,
) -> None:
    """Gather an object of each process in one, ``dst``: a copy becomes the list's first."""
    if _is_outside(group):
        return
    _check_root("gather_object", dst, group_dst)
    if not object_gather_list:
        raise ValueError("Argument ``gather_list`` must be specified on destination rank.")
    object_gather_list[0] = _sent(obj)


def broadcast_object_list(
    object_list: list[Any],
    src: int | None = None,
    group: Any = None,
    device: Any = None,
    group_src: int | None = None,
) -> None:
    """Send objects of one process, ``src``, to all: the list's become copies."""
    if not _is_outside(group):
        _check_root("broadcast_object_list", src, group_src)
        object_list[:] = [_sent(value) for value in object_list]


def scatter_object_list(
    scatter_object_output_list: list[Any],
    scatter_object_input_list: list[Any] | None = None,
    src: int | None = None,
    group: Any = None,
    group_src: int | None = None,
) -> None:
    """Send each process an object of ``src``'s list: a copy becomes the output list's first."""
    if _is_outside(group):
        return
    _check_root("scatter_object_list", src, group_src)
    if not scatter_object_output_list:
        raise ValueError("scatter_object_list: expected a list of at least one element to write to")
    if not scatter_object_input_list or len(scatter_object_input_list) != 1:
        raise ValueError("scatter_object_list: expected one object for each process, which is 1")
    scatter_object_output_list[0] = _sent(scatter_object_input_list[0])


# ---- from one process to another ----------------------------------------------------------------


def _nobody(what: str, rank: int | None) -> None:
    if rank in (None, 0):
        raise ValueError(
            f"Invalid {what} rank: {what} rank should not be the same as the rank of the current "
            "process."
        )
    raise ValueError(f"Invalid {what} rank: there is no process {rank} in a group of 1")


def isend(
    tensor: Tensor,
    dst: int | None = None,
    group: Any = None,
    tag: int = 0,
    group_dst: int | None = None,
) -> Work | None:
    """Send a tensor to another process: ValueError, as there is none."""
    _check(tensor, "tensor")
    if not _is_outside(group):
        _nobody("destination", dst if dst is not None else group_dst)
    return None


def send(
    tensor: Tensor,
    dst: int | None = None,
    group: Any = None,
    tag: int = 0,
    group_dst: int | None = None,
) -> None:
    """Send a tensor to another process: ValueError, as there is none."""
    isend(tensor, dst, group, tag, group_dst)


def irecv(
    tensor: Tensor,
    src: int | None = None,
    group: Any = None,
    tag: int = 0,
    group_src: int | None = None,
) -> Work | None:
    """Receive a tensor of another process: ValueError, as there is none."""
    _check(tensor, "tensor")
    if not _is_outside(group):
        _nobody("source", src if src is not None else group_src)
    return None


def recv(
    tensor: Tensor,
    src: int | None = None,
    group: Any = None,
    tag: int = 0,
    group_src: int | None = None,
) -> int:
    """Receive a tensor of another process: ValueError, as there is none."""
    irecv(tensor, src, group, tag, group_src)
    return -1


def send_object_list(
    object_list: list[Any],
    dst: int | None = None,
    group: Any = None,
    device: Any = None,
    group_dst: int | None = None,
    use_batch: bool = False,
) -> None:
    """Send objects to another process: ValueError, as there is none."""
    if not _is_outside(group):
        _nobody("destination", dst if dst is not None else group_dst)


def recv_object_list(
    object_list: list[Any],
    src: int | None = None,
    group: Any = None,
    device: Any = None,
    group_src: int | None = None,
    use_batch: bool = False,
) -> int:
    """Receive objects of another process: ValueError, as there is none."""
    if not _is_outside(group):
        _nobody("source", src if src is not None else group_src)
    return -1


class P2POp:
    """A sending or receiving, for `batch_isend_irecv`.

    Args:
        op: `isend` or `irecv`.
        tensor: what to send, or where to write.
        peer: the other process.
        group: the processes, all by default.
        tag: what tells messages apart.
        group_peer: the other process's number in the group, in place of ``peer``.
    """

    def __init__(
        self,
        op: Any,
        tensor: Tensor,
        peer: int | None = None,
        group: Any = None,
        tag: int = 0,
        group_peer: int | None = None,
    ) -> None:
        if op not in (isend, irecv):
            raise ValueError("P2POp: op must be isend or irecv")
        _check(tensor, "tensor")
        if group != GroupMember.NON_GROUP_MEMBER:
            group = _known(group)
        self.op, self.tensor, self.group, self.tag = op, tensor, group, tag
        self.peer = peer if peer is not None else group_peer
        self.group_peer = self.peer

    def __repr__(self) -> str:
        return f"P2POp({self.op.__name__} {self.peer}, {self.tensor.shape}, {self.tensor.dtype})"


def batch_isend_irecv(p2p_op_list: list[P2POp]) -> list[Work]:
    """Send and receive several tensors: ValueError, as there is no other process."""
    works = [p.op(p.tensor, p.peer, p.group, p.tag) for p in [p2p_op_list[0], *p2p_op_list[1:]]]
    return [work for work in works if work is not None]
