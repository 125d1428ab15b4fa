"""Attention within each sequence of a nested tensor."""

from __future__ import annotations

from typing import Any

import taeda
from taeda import _C
from taeda._C import Tensor
from taeda.nested._padded import from_dense, to_padded
from taeda.nested._ragged import Ragged
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
    if _worth_padding(q._ragged_, k._ragged_):
        return _padded(q, k, v, options)
    return _one_by_one(q, k, v, options)


def _worth_padding(queries: Ragged, keys: Ragged) -> bool:
    """Whether there is nothing to pad, or sequences are so short that calls cost more than work.

    A mask takes attention off its fastest path. 2 threads, forward and backward, padded and one by
    one: 64 sequences of 190 to 200 elements 144 and 77 ms, 512 of 6 to 8 elements 6.8 and 9.8 ms.
    """
    if min([*queries.counts, *keys.counts], default=0) == 0:
        return False
    return (queries.is_regular and keys.is_regular) or max(queries.longest, keys.longest) <= 8


def _padded(q: NestedTensor, k: NestedTensor, v: NestedTensor, options: Any) -> NestedTensor:
    """All sequences at once, with a mask where keys are padding."""
    keys, mask = k._ragged_, None
    if not keys.is_regular and not (options["is_causal"] and q._ragged_.is_same(keys)):
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


def _refusal(layer: Any, masks: tuple[Any, ...], need_weights: bool) -> str | None:
    """What a MultiheadAttention is asked for that nested tensors do not have."""
    if not layer.batch_first:
        return "batch_first=True, as the batch is their first dimension"
    if need_weights:
        return "need_weights=False"
    if any(mask is not None for mask in masks):
        return "no key_padding_mask or attn_mask: nothing is padded; is_causal=True is taken alone"
    if layer.bias_k is not None or layer.bias_v is not None or layer.add_zero_attn:
        return "neither add_bias_kv nor add_zero_attn"
    return None


def attend_in_heads(
    layer: Any, query: Any, key: Any, value: Any, masks: Any, need_weights: bool, is_causal: bool
) -> Tensor:
    """What a ``nn.MultiheadAttention`` gives for nested tensors, (batch, ragged, size)."""
    refused = _refusal(layer, masks, need_weights)
    if refused is not None:
        raise NotImplementedError(f"MultiheadAttention of nested tensors needs {refused}")
    weights: Any = (layer.q_proj_weight, layer.k_proj_weight, layer.v_proj_weight)
    if layer.in_proj_weight is not None:
        weights = layer.in_proj_weight.chunk(3)
    biases: Any = (None,) * 3 if layer.in_proj_bias is None else layer.in_proj_bias.chunk(3)
    inputs = query, key, value
    if query is key is value and layer.in_proj_weight is not None:
        projected: Any = _ops.linear(query, layer.in_proj_weight, layer.in_proj_bias).chunk(3, -1)
    else:
        parts = zip(inputs, weights, biases, strict=True)
        projected = [_ops.linear(x, weight, bias) for x, weight, bias in parts]
    heads = layer.num_heads, layer.head_dim
    q, k, v = (x.unflatten(-1, heads).transpose(1, 2) for x in projected)
    dropout = layer.dropout if layer.training else 0.0
    mixed: Any = attend(q, k, v, None, dropout, is_causal)
    return _ops.linear(
        mixed.transpose(1, 2).flatten(-2), layer.out_proj.weight, layer.out_proj.bias
    )
