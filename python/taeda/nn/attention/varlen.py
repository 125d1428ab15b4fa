"""Attention of sequences of different lengths that lie one after the other.

>>> import taeda
>>> from taeda.nn.attention.varlen import varlen_attn
>>> x = taeda.randn(5, 2, 8)  # two sequences, of 2 and 3 tokens
>>> starts = taeda.tensor([0, 2, 5])
>>> varlen_attn(x, x, x, starts, starts, 3, 3).shape
taeda.Size([5, 2, 8])
"""

from __future__ import annotations

import itertools
import math
from typing import Any, NamedTuple

import taeda
from taeda import _C
from taeda._C import Tensor

__all__ = ["AuxRequest", "varlen_attn", "varlen_attn_out"]

_ops = _C.ops


class AuxRequest(NamedTuple):
    """What `varlen_attn` is to return beside its result."""

    lse: bool = False


class _Keys(NamedTuple):
    """Where the keys of each sequence are."""

    starts: list[int]
    counts: list[int]
    pages: Tensor | None


def varlen_attn(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    cu_seq_q: Tensor,
    cu_seq_k: Tensor | None,
    max_q: int,
    max_k: int,
    *,
    return_aux: AuxRequest | None = None,
    scale: float | None = None,
    window_size: tuple[int, int] = (-1, -1),
    enable_gqa: bool = False,
    seqused_k: Tensor | None = None,
    block_table: Tensor | None = None,
    num_splits: int | None = None,
) -> Any:
    """softmax(query @ key.T * scale) @ value within each sequence, without padding.

    Args:
        query: of shape (Tq, heads, E), the sequences one after the other.
        key, value: of shape (Tk, heads, E); with `block_table` (pages, page size, heads, E).
        cu_seq_q, cu_seq_k: where each sequence begins, and where the last ends, (N + 1). None for
            the keys where `block_table` says where they are.
        max_q, max_k: what no sequence is longer than.
        return_aux: with `lse`, return also the logarithms of the sums that softmax divides by.
        scale: by default 1 / sqrt(E).
        window_size: how many positions to the left and to the right are seen, -1 for all:
            `(-1, 0)` is causal. The last query stands at the last key.
        enable_gqa: the heads of the key and the value are fewer, each shared by several.
        seqused_k: how many keys of each sequence take part, (N).
        block_table: of which pages each sequence's keys are, (N, pages); needs `seqused_k`.
        num_splits: as a number of 1 or more; each sequence is computed by itself, so the result
            does not depend on it, or on the other sequences.

    Returns:
        a tensor of the query's shape; with `lse` a tuple of it and a float32 tensor (Tq, heads).

    Raises:
        RuntimeError: the places do not fit the tensors.
    """
    queries = _starts("cu_seq_q", cu_seq_q, query.size(0))
    count = len(queries) - 1
    keys = _find_keys(key, cu_seq_k, seqused_k, block_table, count)
    lengths = [b - a for a, b in itertools.pairwise(queries)]
    if max(lengths, default=0) > max_q or max(keys.counts, default=0) > max_k:
        raise RuntimeError(
            f"varlen_attn: max_q {max_q} and max_k {max_k} must bound the lengths, which are up to "
            f"{max(lengths, default=0)} and {max(keys.counts, default=0)}"
        )
    if num_splits is not None and num_splits < 1:
        raise ValueError(f"varlen_attn: num_splits must be 1 or more, got {num_splits}")
    scale = 1 / math.sqrt(max(query.size(-1), 1)) if scale is None else scale
    with_sums = return_aux is not None and return_aux.lse
    results: list[Tensor] = []
    sums: list[Tensor] = []
    for i, part in enumerate(query.split(lengths)):
        q, k, v = (t.transpose(0, 1) for t in (part, _taken(key, keys, i), _taken(value, keys, i)))
        mask, causal = _visible(q.size(1), k.size(1), window_size, query.device)
        mixed = taeda.nn.functional.scaled_dot_product_attention(
            q, k, v, mask, is_causal=causal, scale=scale, enable_gqa=enable_gqa
        )
        results.append(mixed.transpose(0, 1))
        if with_sums:
            sums.append(_log_sums(q, k, mask, causal, scale))
    result = _ops.cat(results) if results else query.clone()
    if not with_sums:
        return result
    return result, _ops.cat(sums) if sums else query.new_empty(query.shape[:2]).float()


def varlen_attn_out(out: Tensor, *args: Any, **options: Any) -> Any:
    """Write what `varlen_attn` gives into a tensor; without gradients. The rest are its arguments.

    Args:
        out: of the query's shape and dtype.
    """
    with taeda.no_grad():
        found = varlen_attn(*args, **options)
        result = found[0] if isinstance(found, tuple) else found
        if out.shape != result.shape or out.dtype != result.dtype:
            raise RuntimeError(
                f"varlen_attn_out: expected out of shape {list(result.shape)} and {result.dtype}, "
                f"got {list(out.shape)} and {out.dtype}"
            )
        out.copy_(result)
    return (out, found[1]) if isinstance(found, tuple) else out


def _starts(name: str, places: Any, total: int) -> list[int]:
    """Where sequences begin, and where the last ends, which must be the end of the tensor."""
    if not isinstance(places, Tensor) or places.dim() != 1 or places.is_floating_point():
        raise RuntimeError(f"varlen_attn: {name} must be a 1-D tensor of integers")
    found: list[int] = places.tolist()
    if not found or found != sorted(found) or found[0] != 0 or found[-1] != total:
        raise RuntimeError(
            f"varlen_attn: {name} must rise from 0 to the {total} tokens, got {found}"
        )
    return found


def _find_keys(key: Tensor, places: Any, used: Any, pages: Any, count: int) -> _Keys:
    if pages is None:
        starts = _starts("cu_seq_k", places, key.size(0))
        counts = [b - a for a, b in itertools.pairwise(starts)]
    elif used is None:
        raise RuntimeError("varlen_attn: block_table needs seqused_k")
    else:
        starts, counts = [0] * (len(pages) + 1), [pages.size(1) * key.size(1)] * len(pages)
    limits = counts if used is None else used.tolist()
    if not len(counts) == len(limits) == count:
        raise RuntimeError(
            f"varlen_attn: there are queries of {count} sequences and keys of {len(limits)}"
        )
    if any(not 0 <= n <= most for n, most in zip(limits, counts, strict=True)):
        raise RuntimeError(f"varlen_attn: seqused_k {limits} must be at most {counts}")
    return _Keys(starts, limits, pages)


def _taken(x: Tensor, keys: _Keys, i: int) -> Tensor:
    """The keys or values of one sequence, (tokens, heads, size)."""
    if keys.pages is None:
        return x.narrow(0, keys.starts[i], keys.counts[i])
    number = -(-keys.counts[i] // x.size(1))
    pages = x.index_select(0, keys.pages[i, :number].long())
    return pages.flatten(0, 1).narrow(0, 0, keys.counts[i])


def _visible(
    queries: int, keys: int, window: tuple[int, int], device: Any
) -> tuple[Tensor | None, bool]:
    """Which keys each query sees: a mask, or whether it is the usual causal one."""
    left, right = window
    if left < 0 and right < 0:
        return None, False
    if left < 0 and right == 0 and queries == keys:
        return None, True
    stands = _ops.arange(queries, device=device).unsqueeze(1) + (keys - queries)
    place = _ops.arange(keys, device=device)
    seen = _ops.ones((queries, keys), dtype=taeda.bool, device=device)
    if left >= 0:
        seen = seen & (place >= stands - left)
    if right >= 0:
        seen = seen & (place <= stands + right)
    return seen, False


def _log_sums(q: Tensor, k: Tensor, mask: Tensor | None, causal: bool, scale: float) -> Tensor:
    """The logarithm of each query's sum of exponentials, (tokens, heads)."""
    if k.size(0) != q.size(0):
        k = k.repeat_interleave(q.size(0) // k.size(0), 0)
    scores = (q.float() * scale) @ k.float().transpose(-2, -1)
    if causal:
        mask = _ops.ones(scores.shape[-2:], dtype=taeda.bool, device=q.device).tril()
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)
    return scores.logsumexp(-1).transpose(0, 1)
