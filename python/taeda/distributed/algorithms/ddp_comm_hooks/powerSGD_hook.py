"""PowerSGD: gradients of matrices are sent as products of two thin ones (Vogels et al. 2019)."""

from __future__ import annotations

from typing import Any

import taeda
from taeda import Tensor
from taeda.distributed import _collectives as plain
from taeda.distributed._buckets import GradBucket
from taeda.distributed._group import _known
from taeda.futures import Future

from . import default_hooks

__all__ = ["PowerSGDState", "powerSGD_hook"]


class PowerSGDState:
    """What `powerSGD_hook` keeps from one step to the next.

    Args:
        process_group: the processes; None for all.
        matrix_approximation_rank: the width of the thin matrices.
        start_powerSGD_iter: steps that average gradients as they are before.
        min_compression_rate: matrices are sent as they are unless this many times fewer numbers
            represent them.
        use_error_feedback: add to gradients what was lost in the step before.
        warm_start: begin with the matrices of the step before.
        orthogonalization_epsilon: added to norms, against division by zero.
        random_seed: of the first matrices, the same in all processes.
    """

    def __init__(
        self,
        process_group: Any = None,
        matrix_approximation_rank: int = 1,
        start_powerSGD_iter: int = 1000,
        min_compression_rate: float = 2,
        use_error_feedback: bool = True,
        warm_start: bool = True,
        orthogonalization_epsilon: float = 0,
        random_seed: int = 0,
    ) -> None:
        if (use_error_feedback or warm_start) and start_powerSGD_iter <= 1:
            raise ValueError(
                "Expect `start_powerSGD_iter` > 1 if `use_error_feedback` or `warm_start` is "
                "enabled, because PowerSGD can only be applied after the first two iterations in "
                "DDP."
            )
        self.process_group = process_group
        self.matrix_approximation_rank = matrix_approximation_rank
        self.start_powerSGD_iter = start_powerSGD_iter
        self.min_compression_rate = min_compression_rate
        self.use_error_feedback = use_error_feedback
        self.warm_start = warm_start
        self.orthogonalization_epsilon = orthogonalization_epsilon
        self.generator = taeda.Generator().manual_seed(random_seed)
        self.iter = 0
        self.error_dict: dict[int, Tensor] = {}
        self.q_memory_dict: dict[int, list[Tensor]] = {}

    def _compresses(self, shape: Any) -> bool:
        rows, columns = shape[0], shape.numel() // shape[0]
        return (rows + columns) * self.matrix_approximation_rank * self.min_compression_rate < (
            rows * columns
        )


def powerSGD_hook(state: PowerSGDState, bucket: GradBucket) -> Future[Any]:
    """Average gradients, of which those of matrices become products of thin ones.

    Args:
        state: how, and what is kept.
        bucket: the gradients.
    """
    group = _known(state.process_group)
    if bucket.is_last():
        state.iter += 1
    if state.iter < state.start_powerSGD_iter + bucket.is_last():
        return default_hooks.allreduce_hook(group, bucket)
    buffer = bucket.buffer()
    index = bucket.index()
    with taeda.no_grad():
        if state.use_error_feedback and index in state.error_dict:
            buffer += state.error_dict[index]
        before = buffer.clone() if state.use_error_feedback else None
        views = bucket.gradients()
        thin = [v for v in views if v.dim() > 1 and state._compresses(v.shape)]
        taken = {id(v) for v in thin}
        plain_ones = [v for v in views if id(v) not in taken]
        matrices = [v.view(v.size(0), -1) for v in thin]
        _average(plain_ones, group)
        factors = _factors(state, index, matrices)
        products = [m @ q for m, q in zip(matrices, factors, strict=True)]
        _average(products, group)
        for p in products:
            _orthogonalize(p, state.orthogonalization_epsilon)
        factors = [m.t() @ p for m, p in zip(matrices, products, strict=True)]
        local = [p @ q.t() for p, q in zip(products, factors, strict=True)]
        _average(factors, group)
        state.q_memory_dict[index] = factors
        if before is not None:
            # What this process has not been able to say, to be said in the next step.
            error = taeda.zeros_like(buffer)
            places = {id(v): part for v, part in zip(thin, local, strict=True)}
            offset = 0
            for v in views:
                if id(v) in places:
                    part = slice(offset, offset + v.numel())
                    error[part] = before[part] - places[id(v)].reshape(-1)
                offset += v.numel()
            state.error_dict[index] = error
        for m, p, q in zip(matrices, products, factors, strict=True):
            m.copy_(p @ q.t())
    done: Future[Any] = Future()
    done.set_result(buffer)
    return done


def _factors(state: PowerSGDState, index: int, matrices: list[Tensor]) -> list[Tensor]:
    if state.warm_start and index in state.q_memory_dict:
        factors = state.q_memory_dict[index]
    else:
        factors = []
        for m in matrices:
            rank = min(*m.shape, state.matrix_approximation_rank)
            made = taeda.randn(m.size(1), rank, generator=state.generator, dtype=m.dtype)
            factors.append(made)
    for q in factors:
        _orthogonalize(q, state.orthogonalization_epsilon)
    return factors


def _orthogonalize(matrix: Tensor, epsilon: float) -> None:
    """Make the columns orthonormal, one after another (Gram and Schmidt)."""
    for i in range(matrix.size(1)):
        column = matrix[:, i : i + 1]
        column /= column.norm() + epsilon
        rest = matrix[:, i + 1 :]
        if rest.size(1):
            rest -= (column * rest).sum(0) * column


def _average(tensors: list[Tensor], group: Any) -> None:
    """Average tensors over processes, all in one message."""
    if not tensors:
        return
    flat = taeda.cat([t.reshape(-1) for t in tensors]).div_(group.size())
    plain.all_reduce(flat, group=group)
    for t, part in zip(tensors, flat.split([t.numel() for t in tensors]), strict=True):
        t.copy_(part.view(t.shape))
