"""Post-local SGD: gradients are averaged among all processes at first, then within groups of them.

Lin, Stich, Patel, Jaggi: Don't use large mini-batches, use local SGD, ICLR 2020.
"""

from __future__ import annotations

from typing import Any

from taeda.distributed._buckets import GradBucket
from taeda.distributed._group import new_subgroups
from taeda.futures import Future

from . import default_hooks

__all__ = ["PostLocalSGDState", "post_localSGD_hook"]


class PostLocalSGDState:
    """What `post_localSGD_hook` keeps from one step to the next.

    Args:
        process_group: the processes of the first steps; None for all.
        subgroup: those of later steps; None for those of this machine.
        start_localSGD_iter: how many steps are the first ones.
        post_local_gradient_allreduce: whether later gradients are averaged at all.
    """

    def __init__(
        self,
        process_group: Any,
        subgroup: Any,
        start_localSGD_iter: int,
        post_local_gradient_allreduce: bool = True,
    ) -> None:
        self.process_group = process_group
        self.subgroup = subgroup
        self.start_localSGD_iter = start_localSGD_iter
        self.post_local_gradient_allreduce = post_local_gradient_allreduce
        self.iter = 0

    def maybe_increase_iter(self, bucket: GradBucket) -> None:
        """Count a step at its last bucket."""
        if bucket.is_last():
            self.iter += 1


def post_localSGD_hook(state: PostLocalSGDState, bucket: GradBucket) -> Future[Any]:
    """Average gradients among all processes, and after some steps within a group of them.

    Parameters are to be averaged now and then by the caller.

    Args:
        state: how, and the count of steps.
        bucket: the gradients.
    """
    if state.iter < state.start_localSGD_iter:
        state.maybe_increase_iter(bucket)
        return default_hooks.allreduce_hook(state.process_group, bucket)
    if not state.post_local_gradient_allreduce:
        done: Future[Any] = Future()
        done.set_result(bucket.buffer())
        return done
    if state.subgroup is None:
        state.subgroup, _ = new_subgroups()
    return default_hooks.allreduce_hook(state.subgroup, bucket)
