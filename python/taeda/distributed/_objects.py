"""Python objects that processes exchange, as pickles: processes of a group trust each other."""

from __future__ import annotations

import io
import pickle
from typing import Any

import taeda
from taeda import Tensor

from ._arguments import root_of
from ._collectives import all_gather, broadcast, gather, scatter
from ._group import _inside
from ._messages import _other, recv, send
from ._process_group import ProcessGroup

__all__ = [
    "all_gather_object",
    "broadcast_object_list",
    "gather_object",
    "recv_object_list",
    "scatter_object_list",
    "send_object_list",
]


def _packed(value: Any) -> Tensor:
    file = io.BytesIO()
    pickle.Pickler(file).dump(value)
    return taeda.frombuffer(bytearray(file.getvalue()), dtype=taeda.uint8)


def _unpacked(tensor: Tensor) -> Any:
    return pickle.loads(tensor.numpy().tobytes())


def _sizes_of_all(group: ProcessGroup, size: int) -> list[int]:
    sizes = taeda.zeros(group.size(), 1, dtype=taeda.int64)
    all_gather(list(sizes.unbind(0)), taeda.tensor([size]), group)
    return [int(n) for n in sizes.reshape(-1).tolist()]


def all_gather_object(object_list: list[Any], obj: Any, group: Any = None) -> None:
    """Gather an object of each process in all of them.

    Args:
        object_list: as long as the group; gets copies, in the order of ranks.
        obj: that of this process, which can be pickled.
        group: the processes, all by default.
    """
    given = _inside(group)
    if given is None:
        return
    packed = _packed(obj)
    sizes = _sizes_of_all(given, packed.numel())
    length = max(sizes)
    padded = taeda.zeros(length, dtype=taeda.uint8)
    padded[: packed.numel()] = packed
    found = [taeda.empty(length, dtype=taeda.uint8) for _ in sizes]
    all_gather(found, padded, given)
    for i, (tensor, size) in enumerate(zip(found, sizes, strict=True)):
        object_list[i] = _unpacked(tensor[:size])


def gather_object(
    obj: Any,
    object_gather_list: list[Any] | None = None,
    dst: int | None = None,
    group: Any = None,
    group_dst: int | None = None,
) -> None:
    """Gather an object of each process in one, ``dst``, whose list gets copies."""
    given = _inside(group)
    if given is None:
        return
    root = root_of("gather_object", given, dst, group_dst, True)
    here = given.rank() == root
    if here and not object_gather_list:
        raise ValueError("Argument ``gather_list`` must be specified on destination rank.")
    packed = _packed(obj)
    sizes = _sizes_of_all(given, packed.numel())
    padded = taeda.zeros(max(sizes), dtype=taeda.uint8)
    padded[: packed.numel()] = packed
    found = [taeda.empty_like(padded) for _ in sizes] if here else None
    gather(padded, found, group=given, group_dst=root)
    if found is not None and object_gather_list is not None:
        for i, (tensor, size) in enumerate(zip(found, sizes, strict=True)):
            object_gather_list[i] = _unpacked(tensor[:size])


def broadcast_object_list(
    object_list: list[Any],
    src: int | None = None,
    group: Any = None,
    device: Any = None,
    group_src: int | None = None,
) -> None:
    """Send objects of one process, ``src``, to all: each list gets copies of them.

    Args:
        object_list: of the same length in all processes.
        src: whose they are.
        group: the processes, all by default.
        device: the CPU.
        group_src: its number in the group, in place of ``src``.
    """
    given = _inside(group)
    if given is None:
        return
    root = root_of("broadcast_object_list", given, src, group_src, True)
    here = given.rank() == root
    packed = [_packed(value) for value in object_list] if here else []
    count = len(object_list)
    sizes = taeda.tensor([p.numel() for p in packed] if here else [0] * count)
    if count:
        broadcast(sizes, group=given, group_src=root)
    lengths = [int(n) for n in sizes.tolist()]
    whole = taeda.cat(packed) if packed else taeda.empty(sum(lengths), dtype=taeda.uint8)
    broadcast(whole, group=given, group_src=root)
    object_list[:] = [_unpacked(part) for part in whole.split(lengths)] if count else []


def scatter_object_list(
    scatter_object_output_list: list[Any],
    scatter_object_input_list: list[Any] | None = None,
    src: int | None = None,
    group: Any = None,
    group_src: int | None = None,
) -> None:
    """Send each process an object of ``src``'s list: a copy becomes the output list's first."""
    given = _inside(group)
    if given is None:
        return
    root = root_of("scatter_object_list", given, src, group_src, True)
    here = given.rank() == root
    if not scatter_object_output_list:
        raise ValueError("scatter_object_list: expected a list of at least one element to write to")
    if here and len(scatter_object_input_list or []) != given.size():
        raise ValueError(
            f"scatter_object_list: expected one object for each process, which is {given.size()}"
        )
    packed = [_packed(value) for value in scatter_object_input_list or []] if here else []
    sizes = taeda.tensor([p.numel() for p in packed] if here else [0] * given.size())
    broadcast(sizes, group=given, group_src=root)
    lengths = [int(n) for n in sizes.tolist()]
    padded = []
    for part in packed:
        padded.append(taeda.zeros(max(lengths), dtype=taeda.uint8))
        padded[-1][: part.numel()] = part
    mine = taeda.empty(max(lengths), dtype=taeda.uint8)
    scatter(mine, padded or None, group=given, group_src=root)
    scatter_object_output_list[0] = _unpacked(mine[: lengths[given.rank()]])


def send_object_list(
    object_list: list[Any],
    dst: int | None = None,
    group: Any = None,
    device: Any = None,
    group_dst: int | None = None,
    use_batch: bool = False,
) -> None:
    """Send objects to another process, which calls `recv_object_list` with as many.

    Args:
        object_list: what is sent.
        dst: the other process.
        group: the processes, all by default.
        device: the CPU.
        group_dst: its number in the group, in place of ``dst``.
        use_batch: whether messages are begun together; they have one order either way.

    Raises:
        ValueError: there is no such process, or it is this one.
    """
    given = _inside(group)
    if given is None:
        return
    other = _other("destination", given, dst, group_dst)
    packed = [_packed(value) for value in object_list]
    send(taeda.tensor([p.numel() for p in packed]), group=given, group_dst=other)
    send(taeda.cat(packed), group=given, group_dst=other)


def recv_object_list(
    object_list: list[Any],
    src: int | None = None,
    group: Any = None,
    device: Any = None,
    group_src: int | None = None,
    use_batch: bool = False,
) -> int:
    """Receive objects of another process: copies replace those of the list.

    Args:
        object_list: as long as the list that is sent.
        src: the other process; any by default.
        group: the processes, all by default.
        device: the CPU.
        group_src: its number in the group, in place of ``src``.
        use_batch: as for `send_object_list`.

    Returns:
        The process that they came from; -1 where this one is not in the group.

    Raises:
        ValueError: there is no such process, or it is this one.
    """
    given = _inside(group)
    if given is None:
        return -1
    if given.size() == 1:
        _other("source", given, src, group_src)
    sizes = taeda.zeros(len(object_list), dtype=taeda.int64)
    source = recv(sizes, src, given, group_src=group_src)
    lengths = [int(n) for n in sizes.tolist()]
    whole = taeda.empty(sum(lengths), dtype=taeda.uint8)
    recv(whole, source, given)
    object_list[:] = [_unpacked(part) for part in whole.split(lengths)]
    return source
