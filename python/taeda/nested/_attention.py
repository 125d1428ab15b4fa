"""Attention within each sequence of a nested tensor."""

from __future__ import annotations

from typing import Any

import taeda
from taeda import _C
from taeda._C import Tensor
from taeda.nested._padded import from_dense, to_padded
from taeda.nested._tensor import NestedTensor, make, pack

_ops = _C.ops
_NAME = "scaled_dot_product_attention"


def attend(
    query: Any, key: Any, value: Any, mask: Any, dropout_p: float, is_causal: bool, **options: Any
) -> NestedTensor:
    """Scaled dot product attention of nested (batch, heads, ragged, size), sequence by sequence.

    The key and the value have the same sequences; the query may have others, as many.
    """
    if mask is not None:
        raise NotImplementedError(f"{_NAME}(): attn_mask is not supported with nested tensors")
    for what, x in (("query", query), ("key", key), ("value", value)):
        if not isinstance(x, NestedTensor) or x._dim_ != x.dim() - 2:
            raise RuntimeError(
                f"{_NAME}(): with nested tensors the query, the key and the value must all be "
                f"nested, of shape (batch, ..., ragged, size), but the {what} is of shape "
                f"{tuple(x._size() if isinstance(x, NestedTensor) else x.shape)}"
            )
    q, k, v = pack(query), pack(key), pack(value)
    if len(q) != len(k) or not k._ragged_.is_same(v._ragged_):
        raise RuntimeError(
            f"{_NAME}(): the key and the value must have the same sequences, as many as the query"
        )
    options |= {"dropout_p": dropout_p, "is_causal": is_causal}
    if _worth_padding(q._ragged_.counts, k._ragged_.counts):
        return _padded(q, k, v, options)
    return _one_by_one(q, k, v, options)


def _worth_padding(queries: list[int], keys: list[int]) -> bool:
    """Whether sequences are about as long, so that padding costs little beside the loop."""
    if not queries or min(*queries, *keys) == 0:
        return False
    pairs = sum(a * b for a, b in zip(queries, keys, strict=True))
    return len(queries) * max(queries) * max(keys) <= 1.25 * pairs


def _padded(q: NestedTensor, k: NestedTensor, v: NestedTensor, options: Any) -> NestedTensor:
    """All sequences at once, with a mask where keys are padding."""
    keys, mask = k._ragged_, None
    regular = keys.shortest == keys.longest
    if not regular and not (options["is_causal"] and q._ragged_.is_same(keys)):
        device = q._values_.device
        lengths = _C.tensor(keys.counts, device=device)
        mask = _ops.arange(keys.longest, device=device) < lengths.unsqueeze(1)
        mask = mask.reshape(len(q), *[1] * (q.dim() - 2), keys.longest)
        if options["is_causal"]:
            size = (q._ragged_.longest, keys.longest)
            mask = mask & _ops.ones(size, dtype=taeda.bool, device=device).tril()
            options = options | {"is_causal": False}
    result = taeda.nn.functional.scaled_dot_product_attention(
        to_padded(q, 0), to_padded(k, 0), to_padded(v, 0), mask, **options
    )
    return from_dense(result, q._ragged_, q._dim_, q._strided_)


def _one_by_one(q: NestedTensor, k: NestedTensor, v: NestedTensor, options: Any) -> NestedTensor:
    """One sequence after the other: work grows with the square of each length."""
    parts: list[Tensor] = [
        taeda.nn.functional.scaled_dot_product_attention(a, b, c, **options)
        for a, b, c in zip(*(x.unbind() for x in (q, k, v)), strict=True)
    ]
    values = _ops.cat(parts, q._dim_ - 1)
    return make(values, q._ragged_, q._dim_, q._strided_)
