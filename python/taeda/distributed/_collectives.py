"""What the processes of a group do together: all of them call the same function, in the same order.

Where ``async_op`` is set a `Work` is returned, whose ``wait`` waits for the end, and otherwise
None. Tensors are read and written in place, also where they are not contiguous. A process that is
gone, or does not come within the group's timeout, makes an operation raise `DistBackendError` in
all others, whose message names it.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import taeda
from taeda import Tensor

from ._arguments import (
    Op,
    check,
    check_list,
    check_op,
    check_same,
    flat_of,
    parts_of,
    root_of,
    split_of,
    supports_complex,
    write_back,
)
from ._group import _inside
from ._process_group import ProcessGroup
from ._types import Backend, ReduceOp
from ._work import Work

__all__ = [
    "all_gather",
    "all_gather_coalesced",
    "all_gather_into_tensor",
    "all_gather_single",
    "all_reduce",
    "all_reduce_coalesced",
    "all_to_all",
    "all_to_all_single",
    "barrier",
    "broadcast",
    "gather",
    "monitored_barrier",
    "reduce",
    "reduce_scatter",
    "reduce_scatter_single",
    "reduce_scatter_tensor",
    "scatter",
    "supports_complex",
]


def all_reduce(
    tensor: Tensor, op: Op = ReduceOp.SUM, group: Any = None, async_op: bool = False
) -> Work | None:
    """Combine a tensor of each process in all of them.

    Args:
        tensor: read and written; of the same shape and dtype in all processes.
        op: how to combine.
        group: the processes, all by default.
        async_op: return a `Work`.

    Raises:
        ValueError: there is no group; or complex numbers cannot be combined so.
        DistBackendError: another process is gone, or did not come in time.
    """
    check(tensor, "tensor")
    given = _inside(group)
    if given is None:
        return None
    check_op("all_reduce", op, tensor)

    def body(channel: Any) -> None:
        flat = flat_of(tensor)
        channel.all_reduce(flat, op)
        write_back(tensor, flat)

    return given._collective("all_reduce", body, [tensor], async_op)


def all_reduce_coalesced(
    tensors: list[Tensor], op: Op = ReduceOp.SUM, group: Any = None, async_op: bool = False
) -> Work | None:
    """`all_reduce` of several tensors of one dtype, which are sent together."""
    for tensor in tensors:
        check(tensor, "tensor")
    given = _inside(group)
    if given is None:
        return None
    check_op("all_reduce", op, *tensors)

    def body(channel: Any) -> None:
        flat = taeda.cat([flat_of(tensor) for tensor in tensors])
        channel.all_reduce(flat, op)
        for tensor, part in zip(tensors, flat.split([t.numel() for t in tensors]), strict=True):
            write_back(tensor, part)

    return given._collective("all_reduce_coalesced", body, list(tensors), async_op)


def reduce(
    tensor: Tensor,
    dst: int | None = None,
    op: Op = ReduceOp.SUM,
    group: Any = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Work | None:
    """Combine a tensor of each process in one of them, ``dst``; others keep theirs or lose it."""
    check(tensor, "tensor")
    given = _inside(group)
    if given is None:
        return None
    root = root_of("reduce", given, dst, group_dst, False)
    check_op("reduce", op, tensor)

    def body(channel: Any) -> None:
        flat = flat_of(tensor)
        if channel.rank != root:
            flat = flat.clone()
        channel.reduce(flat, root, op)
        if channel.rank == root:
            write_back(tensor, flat)

    return given._collective("reduce", body, [tensor], async_op)


def broadcast(
    tensor: Tensor,
    src: int | None = None,
    group: Any = None,
    async_op: bool = False,
    group_src: int | None = None,
) -> Work | None:
    """Send a tensor of one process, ``src``, to all."""
    check(tensor, "tensor")
    given = _inside(group)
    if given is None:
        return None
    root = root_of("broadcast", given, src, group_src, False)

    def body(channel: Any) -> None:
        flat = flat_of(tensor)
        channel.broadcast(flat, root)
        write_back(tensor, flat)

    return given._collective("broadcast", body, [tensor], async_op)


def all_gather(
    tensor_list: list[Tensor], tensor: Tensor, group: Any = None, async_op: bool = False
) -> Work | None:
    """Gather a tensor of each process in all of them, in the order of ranks.

    Args:
        tensor_list: one tensor for each process, to be written.
        tensor: that of this process.
        group: the processes, all by default.
        async_op: return a `Work`.
    """
    check(tensor, "tensor")
    given = _inside(group)
    if given is None:
        return None
    check_list(tensor_list, "tensor_list", "all_gather", given.size())
    for output in tensor_list:
        check_same("all_gather", output, tensor)

    def body(channel: Any) -> None:
        flats = [flat_of(output) for output in tensor_list]
        channel.all_gather(flats, flat_of(tensor))
        for output, flat in zip(tensor_list, flats, strict=True):
            write_back(output, flat)

    return given._collective("all_gather", body, list(tensor_list), async_op)


def all_gather_coalesced(
    output_tensor_lists: list[list[Tensor]],
    input_tensor_list: list[Tensor],
    group: Any = None,
    async_op: bool = False,
) -> Work | None:
    """`all_gather` of several tensors: ``output_tensor_lists[i]`` gets those of process ``i``."""
    given = _inside(group)
    if given is None:
        return None
    if len(output_tensor_lists) != given.size() or any(
        len(outputs) != len(input_tensor_list) for outputs in output_tensor_lists
    ):
        raise ValueError(
            "all_gather_coalesced: expected a list of as many tensors for each process"
        )
    works = [
        all_gather([outputs[i] for outputs in output_tensor_lists], input, group, async_op)
        for i, input in enumerate(input_tensor_list)
    ]
    return works[-1] if works else None


def all_gather_into_tensor(
    output_tensor: Tensor, input_tensor: Tensor, group: Any = None, async_op: bool = False
) -> Work | None:
    """Gather a tensor of each process into one, in all of them.

    Args:
        output_tensor: written; as many times larger than the other as there are processes.
        input_tensor: that of this process.
        group: the processes, all by default.
        async_op: return a `Work`.
    """
    check(output_tensor, "output_tensor")
    check(input_tensor, "input_tensor")
    given = _inside(group)
    if given is None:
        return None
    check_same("all_gather_into_tensor", output_tensor, input_tensor, given.size())

    def body(channel: Any) -> None:
        flat = flat_of(output_tensor)
        channel.all_gather(parts_of(flat, channel.size), flat_of(input_tensor))
        write_back(output_tensor, flat)

    return given._collective("all_gather_into_tensor", body, [output_tensor], async_op)


def all_gather_single(
    output_tensor: Tensor, input_tensor: Tensor, group: Any = None, async_op: bool = False
) -> Work | None:
    """`all_gather_into_tensor` under another name."""
    return all_gather_into_tensor(output_tensor, input_tensor, group, async_op)


def gather(
    tensor: Tensor,
    gather_list: list[Tensor] | None = None,
    dst: int | None = None,
    group: Any = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Work | None:
    """Gather a tensor of each process in one, ``dst``, whose ``gather_list`` gets them."""
    check(tensor, "tensor")
    given = _inside(group)
    if given is None:
        return None
    root = root_of("gather", given, dst, group_dst, True)
    if given.rank() == root:
        if not gather_list:
            raise ValueError("Argument ``gather_list`` must be specified on destination rank.")
        check_list(gather_list, "gather_list", "gather", given.size())
        for output in gather_list:
            check_same("gather", output, tensor)
    elif gather_list:
        raise ValueError("Argument ``gather_list`` must NOT be specified on non-destination ranks.")

    def body(channel: Any) -> None:
        flats = [flat_of(output) for output in gather_list or []]
        channel.gather(flat_of(tensor), flats, root)
        for output, flat in zip(gather_list or [], flats, strict=True):
            write_back(output, flat)

    return given._collective("gather", body, list(gather_list or [tensor]), async_op)


def scatter(
    tensor: Tensor,
    scatter_list: list[Tensor] | None = None,
    src: int | None = None,
    group: Any = None,
    async_op: bool = False,
    group_src: int | None = None,
) -> Work | None:
    """Send each process a tensor of ``src``'s list, which is written to ``tensor``."""
    check(tensor, "tensor")
    given = _inside(group)
    if given is None:
        return None
    root = root_of("scatter", given, src, group_src, True)
    if given.rank() == root:
        if not scatter_list:
            raise ValueError("Argument ``scatter_list`` must be specified on source rank.")
        check_list(scatter_list, "scatter_list", "scatter", given.size())
        for input in scatter_list:
            check_same("scatter", tensor, input)
    elif scatter_list:
        raise ValueError("Argument ``scatter_list`` must NOT be specified on non-source ranks.")

    def body(channel: Any) -> None:
        flat = flat_of(tensor)
        channel.scatter(flat, [flat_of(input) for input in scatter_list or []], root)
        write_back(tensor, flat)

    return given._collective("scatter", body, [tensor], async_op)


def reduce_scatter(
    output: Tensor,
    input_list: list[Tensor],
    op: Op = ReduceOp.SUM,
    group: Any = None,
    async_op: bool = False,
) -> Work | None:
    """Combine lists of tensors of all processes; process ``i`` gets what becomes of their i-th."""
    check(output, "output")
    given = _inside(group)
    if given is None:
        return None
    check_list(input_list, "input_list", "reduce_scatter", given.size())
    check_op("reduce_scatter", op, *input_list)
    check_same("reduce_scatter", output, input_list[given.rank()])

    def body(channel: Any) -> None:
        flat = flat_of(output)
        channel.reduce_scatter(flat, [flat_of(input) for input in input_list], op)
        write_back(output, flat)

    return given._collective("reduce_scatter", body, [output], async_op)


def reduce_scatter_tensor(
    output: Tensor,
    input: Tensor,
    op: Op = ReduceOp.SUM,
    group: Any = None,
    async_op: bool = False,
) -> Work | None:
    """Combine tensors of all processes, and give each process a part.

    Args:
        output: written: the part of this process.
        input: as many times larger as there are processes; it is left as it is.
        op: how to combine.
        group: the processes, all by default.
        async_op: return a `Work`.
    """
    check(output, "output")
    check(input, "input")
    given = _inside(group)
    if given is None:
        return None
    check_op("reduce_scatter_tensor", op, input)
    check_same("reduce_scatter_tensor", input, output, given.size())

    def body(channel: Any) -> None:
        flat = flat_of(output)
        channel.reduce_scatter(flat, parts_of(flat_of(input), channel.size), op)
        write_back(output, flat)

    return given._collective("reduce_scatter_tensor", body, [output], async_op)


def reduce_scatter_single(
    output: Tensor,
    input: Tensor,
    op: Op = ReduceOp.SUM,
    group: Any = None,
    async_op: bool = False,
) -> Work | None:
    """`reduce_scatter_tensor` under another name."""
    return reduce_scatter_tensor(output, input, op, group, async_op)


def all_to_all(
    output_tensor_list: list[Tensor],
    input_tensor_list: list[Tensor],
    group: Any = None,
    async_op: bool = False,
) -> Work | None:
    """Send the i-th tensor of a list to process ``i``, and receive one of each process.

    Args:
        output_tensor_list: written, in the order of ranks.
        input_tensor_list: what is sent; sizes may differ, as long as both sides expect the same.
        group: the processes, all by default.
        async_op: return a `Work`.
    """
    given = _inside(group)
    if given is None:
        return None
    check_list(output_tensor_list, "output_tensor_list", "all_to_all", given.size())
    check_list(input_tensor_list, "input_tensor_list", "all_to_all", given.size())
    mine = given.rank()
    check_same("all_to_all", output_tensor_list[mine], input_tensor_list[mine])

    def body(channel: Any) -> None:
        flats = [flat_of(output) for output in output_tensor_list]
        channel.all_to_all(flats, [flat_of(input) for input in input_tensor_list])
        for output, flat in zip(output_tensor_list, flats, strict=True):
            write_back(output, flat)

    return given._collective("all_to_all", body, list(output_tensor_list), async_op)


def all_to_all_single(
    output: Tensor,
    input: Tensor,
    output_split_sizes: Sequence[int] | None = None,
    input_split_sizes: Sequence[int] | None = None,
    group: Any = None,
    async_op: bool = False,
) -> Work | None:
    """Send a part of a tensor to each process, and receive one of each.

    Args:
        output: written; parts lie along its first dimension, in the order of ranks.
        input: what is sent.
        output_split_sizes: the sizes of the parts along that dimension; equal by default.
        input_split_sizes: likewise.
        group: the processes, all by default.
        async_op: return a `Work`.
    """
    check(output, "output")
    check(input, "input")
    given = _inside(group)
    if given is None:
        return None
    count = given.size()
    mine = given.rank()
    outputs = split_of(output, output_split_sizes, count)
    check_same("all_to_all_single", outputs[mine], split_of(input, input_split_sizes, count)[mine])

    def body(channel: Any) -> None:
        flat = flat_of(output)
        sizes = [part.numel() for part in outputs]
        channel.all_to_all(flat.split(sizes), split_of(input, input_split_sizes, count))
        write_back(output, flat)

    return given._collective("all_to_all_single", body, [output], async_op)


def barrier(
    group: Any = None,
    async_op: bool = False,
    device_ids: list[int] | None = None,
    timeout: timedelta | None = None,
) -> Work | None:
    """Wait for all processes.

    Args:
        group: the processes, all by default.
        async_op: return a `Work`.
        device_ids: the device of this process, where the backend is ``"nccl"``.
        timeout: how long to wait; as long as the group's operations may take by default.
    """
    given = _inside(group)
    if given is None:
        return None
    if given.name() == Backend.NCCL:
        return _device_barrier(given, device_ids, async_op, timeout)
    if device_ids is not None:
        raise RuntimeError(
            f"Function argument device_ids not supported for the selected backend {given.name()}"
        )
    return given._collective("barrier", lambda channel: channel.barrier(), [], async_op, timeout)


def _device_barrier(
    group: ProcessGroup, ids: list[int] | None, async_op: bool, timeout: timedelta | None
) -> Work | None:
    """Wait, on the host, until the devices of all processes have come this far."""
    device = taeda.device("cuda", ids[0]) if ids else group.bound_device_id or "cuda"
    word = taeda.zeros(1, device=device)
    work = group._collective("barrier", lambda channel: channel.barrier(), [word], True, timeout)
    if async_op or work is None:
        return work
    work._block()
    return None


def monitored_barrier(
    group: Any = None, timeout: timedelta | None = None, wait_all_ranks: bool = False
) -> None:
    """`barrier` that says who did not come.

    Args:
        group: the processes, all by default.
        timeout: how long to wait; as long as the group's operations may take by default.
        wait_all_ranks: whether to name all who did not come; they are in any case.

    Raises:
        DistBackendError: somebody did not come in time.
    """
    given = _inside(group)
    if given is not None:
        given._collective(
            "monitored_barrier", lambda channel: channel.barrier(), [], False, timeout
        )
