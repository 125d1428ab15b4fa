"""Tensors that one process sends to another."""

from __future__ import annotations

from typing import Any

from taeda import Tensor

from . import flight_recorder
from ._arguments import check, flat_of, root_of, write_back
from ._group import GroupMember, _inside, _known
from ._process_group import ProcessGroup
from ._work import Work

__all__ = ["P2POp", "batch_isend_irecv", "irecv", "isend", "recv", "send"]


def _other(what: str, group: ProcessGroup, rank: int | None, group_rank: int | None) -> int:
    """The number in the group of the process that this one sends to or receives from."""
    try:
        other = root_of(what, group, rank, group_rank, False)
    except RuntimeError as error:
        raise ValueError(
            f"Invalid {what} rank: there is no process {rank if rank is not None else group_rank} "
            f"in a group of {group.size()}"
        ) from error
    if other == group.rank():
        raise ValueError(
            f"Invalid {what} rank: {what} rank should not be the same as the rank of the current "
            "process."
        )
    return other


def isend(
    tensor: Tensor,
    dst: int | None = None,
    group: Any = None,
    tag: int = 0,
    group_dst: int | None = None,
) -> Work | None:
    """Begin to send a tensor to another process.

    Args:
        tensor: what is sent; it must stay as it is until the `Work` is over.
        dst: the other process.
        group: the processes, all by default.
        tag: what tells messages apart.
        group_dst: the other process's number in the group, in place of ``dst``.

    Raises:
        ValueError: there is no such process, or it is this one.
    """
    check(tensor, "tensor")
    given = _inside(group)
    if given is None:
        return None
    return given._message(True, tensor, _other("destination", given, dst, group_dst), tag)


def send(
    tensor: Tensor,
    dst: int | None = None,
    group: Any = None,
    tag: int = 0,
    group_dst: int | None = None,
) -> None:
    """Send a tensor to another process; the arguments are those of `isend`."""
    work = isend(tensor, dst, group, tag, group_dst)
    if work is not None:
        work.wait()


def irecv(
    tensor: Tensor,
    src: int | None = None,
    group: Any = None,
    tag: int = 0,
    group_src: int | None = None,
) -> Work | None:
    """Begin to receive a tensor of another process.

    Args:
        tensor: what is written, at the latest when the `Work` has been waited for.
        src: the other process; any by default.
        group: the processes, all by default.
        tag: what tells messages apart.
        group_src: the other process's number in the group, in place of ``src``.

    Raises:
        ValueError: there is no such process, or it is this one.
    """
    check(tensor, "tensor")
    given = _inside(group)
    if given is None:
        return None
    if src is None and group_src is None and given.size() > 1:
        return given._message(False, tensor, None, tag)
    return given._message(False, tensor, _other("source", given, src, group_src), tag)


def recv(
    tensor: Tensor,
    src: int | None = None,
    group: Any = None,
    tag: int = 0,
    group_src: int | None = None,
) -> int:
    """Receive a tensor of another process; the arguments are those of `irecv`.

    Returns:
        The process that it came from.
    """
    work = irecv(tensor, src, group, tag, group_src)
    if work is None:
        return -1
    work.wait()
    return work._source_rank()


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
        check(tensor, "tensor")
        self.op, self.tensor, self.tag = op, tensor, tag
        self.group, self.peer, self.group_peer = group, peer, group_peer
        if group != GroupMember.NON_GROUP_MEMBER:
            self.group = _known(group)
            self.group_peer = _other("peer", self.group, peer, group_peer)
            self.peer = self.group._ranks[self.group_peer]

    def __repr__(self) -> str:
        return f"P2POp({self.op.__name__} {self.peer}, {self.tensor.shape}, {self.tensor.dtype})"


def batch_isend_irecv(p2p_op_list: list[P2POp]) -> list[Work]:
    """Begin to send and receive several tensors.

    Args:
        p2p_op_list: what to do, in any order.

    Returns:
        A `Work` for each; one for all where they concern tensors of GPUs, which begin together.
    """
    if p2p_op_list[0].tensor.is_cuda:
        return [_together(p2p_op_list)]
    works = [p.op(p.tensor, p.peer, p.group, p.tag) for p in [p2p_op_list[0], *p2p_op_list[1:]]]
    return [work for work in works if work is not None]


def _together(wanted: list[P2POp]) -> Work:
    """Begin messages of one group by NCCL, all at once. All processes must have made the group's
    communicator before, or take part.
    """
    group = wanted[0].group
    if any(p.group is not group or not p.tensor.is_cuda or p.tag for p in wanted):
        raise ValueError(
            "batch_isend_irecv: messages that begin together have one group, tensors of GPUs and "
            "no tags"
        )

    def body(channel: Any) -> None:
        flats = [flat_of(p.tensor) for p in wanted]
        pairs = [(p, (p.group_peer, flat)) for p, flat in zip(wanted, flats, strict=True)]
        channel.exchange(
            [pair for p, pair in pairs if p.op is isend],
            [pair for p, pair in pairs if p.op is irecv],
        )
        for p, (_, flat) in pairs:
            if p.op is irecv:
                write_back(p.tensor, flat)

    name = "batch_isend_irecv"
    tensors = [p.tensor for p in wanted]
    sizes = [list(t.shape) for t in tensors]
    record = flight_recorder._add(group.group_name, 0, name, sizes, str(tensors[0].dtype))
    seconds = group._timeout.total_seconds()
    return group._nccl_group(name).begin(name, body, tensors, seconds, record)
