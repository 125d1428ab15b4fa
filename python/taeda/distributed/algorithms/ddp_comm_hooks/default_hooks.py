"""Hooks that average gradients, as they are or in half precision."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import taeda
from taeda import Tensor
from taeda.distributed import _collectives as plain
from taeda.distributed._buckets import GradBucket
from taeda.distributed._group import _known
from taeda.futures import Future

__all__ = [
    "allreduce_hook",
    "bf16_compress_hook",
    "bf16_compress_wrapper",
    "fp16_compress_hook",
    "fp16_compress_wrapper",
]

Hook = Callable[[Any, GradBucket], "Future[Any]"]


def _averaged(tensor: Tensor, process_group: Any) -> Future[Any]:
    group = _known(process_group)
    work = plain.all_reduce(tensor.div_(group.size()), group=group, async_op=True)
    assert work is not None
    return work.get_future().then(lambda done: done.value()[0])


def allreduce_hook(process_group: Any, bucket: GradBucket) -> Future[Any]:
    """Average gradients: what happens without a hook.

    Args:
        process_group: the processes; None for all.
        bucket: the gradients.
    """
    return _averaged(bucket.buffer(), process_group)


def _compressed(dtype: Any, process_group: Any, bucket: GradBucket) -> Future[Any]:
    buffer = bucket.buffer()
    small = _averaged(buffer.to(dtype), process_group)

    def back(done: Future[Any]) -> Tensor:
        with taeda.no_grad():
            return buffer.copy_(done.value())

    return small.then(back)


def fp16_compress_hook(process_group: Any, bucket: GradBucket) -> Future[Any]:
    """Average gradients in float16, half as many bytes."""
    return _compressed(taeda.float16, process_group, bucket)


def bf16_compress_hook(process_group: Any, bucket: GradBucket) -> Future[Any]:
    """Average gradients in bfloat16, half as many bytes."""
    return _compressed(taeda.bfloat16, process_group, bucket)


def _wrapper(dtype: Any, hook: Hook) -> Hook:
    def wrapped(state: Any, bucket: GradBucket) -> Future[Any]:
        buffer = bucket.buffer()
        bucket.set_buffer(buffer.to(dtype))
        future = hook(state, bucket)

        def back(done: Future[Any]) -> Tensor:
            value = done.value()
            value = value[0] if isinstance(value, (list, tuple)) else value
            bucket.set_buffer(buffer)
            with taeda.no_grad():
                return buffer.copy_(value)

        return future.then(back)

    return wrapped


def fp16_compress_wrapper(hook: Hook) -> Hook:
    """A hook that gives another one gradients in float16."""
    return _wrapper(taeda.float16, hook)


def bf16_compress_wrapper(hook: Hook) -> Hook:
    """A hook that gives another one gradients in bfloat16."""
    return _wrapper(taeda.bfloat16, hook)
