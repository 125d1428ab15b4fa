"""Attention."""

from __future__ import annotations

import math
from typing import Any

import taeda
from taeda._C import Tensor, ops
from taeda.amp.autocast_mode import enabled_for
from taeda.nn.attention import check_backend
from taeda.nn.functional._dropout import dropout

__all__ = ["multi_head_attention_forward", "scaled_dot_product_attention"]


def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """softmax(query @ key.T * scale + mask) @ value (Vaswani et al., 2017).

    Args:
        query: of shape (*, L, E).
        key: of shape (*, S, E).
        value: of shape (*, S, V).
        attn_mask: broadcast to (*, L, S): added to the scores, or if boolean, True where a
            position takes part.
        dropout_p: the probability with which a weight is dropped, in evaluation too.
        is_causal: position i sees positions up to i only; excludes `attn_mask`.
        scale: by default 1 / sqrt(E).
        enable_gqa: the heads (dimension -3) of the key and the value are fewer, each shared by
            several of the query.

    Returns:
        a tensor of shape (*, L, V).
    """
    check_backend()
    _check_inputs(query, key, value, attn_mask)
    if query.is_nested or key.is_nested or value.is_nested:
        from taeda.nested._attention import attend

        options = {"scale": scale, "enable_gqa": enable_gqa}
        return attend(query, key, value, attn_mask, dropout_p, is_causal, **options)
    if dropout_p > 1:
        raise RuntimeError(
            "scaled_dot_product_attention: dropout probability has to be between 0 and 1, but got "
            f"{dropout_p}"
        )
    scale = 1 / math.sqrt(max(query.size(-1), 1)) if scale is None else scale
    if enable_gqa:
        key = key.repeat_interleave(query.size(-3) // key.size(-3), -3)
        value = value.repeat_interleave(query.size(-3) // value.size(-3), -3)
    if is_causal and attn_mask is not None:
        raise RuntimeError(
            "scaled_dot_product_attention: explicit attn_mask should not be set when is_causal=True"
        )
    plain = _is_plain(query, key, value, attn_mask)
    if not plain or attn_mask is not None:
        _check_shapes(query, key, value, attn_mask)
    if plain and dropout_p == 0:
        return ops._attention(query, key, value, attn_mask, is_causal, scale)[0]
    if is_causal:
        shape = (query.size(-2), key.size(-2))
        attn_mask = ops.ones(shape, dtype=taeda.bool, device=query.device).tril()
    scores = (query * scale) @ key.transpose(-2, -1)
    if attn_mask is None:
        weights = ops.softmax(scores, -1)
    else:
        if attn_mask.dtype == taeda.bool:
            scores = scores.masked_fill(~attn_mask, -math.inf)
        else:
            scores = scores + attn_mask
        # A fully masked row gives zeros, not the 0 / 0 of an empty softmax.
        empty = (scores.detach() == -math.inf).all(-1, keepdim=True)
        weights = ops.softmax(scores.masked_fill(empty, 0.0), -1).masked_fill(empty, 0.0)
    if dropout_p > 0:
        weights = dropout(weights, dropout_p)
    return weights @ value


def _is_plain(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> bool:
    """Whether one call into the core computes it: no broadcasting, no mask that is trained."""
    return (
        query.is_floating_point()
        and query.shape[:-2] == key.shape[:-2] == value.shape[:-2]
        and query.size(-1) == key.size(-1)
        and key.size(-2) == value.size(-2)
        and not (mask is not None and mask.requires_grad)
    )


def _check_inputs(query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None) -> None:
    name = "scaled_dot_product_attention"
    for what, tensor in (("query", query), ("key", key), ("value", value)):
        if not isinstance(tensor, Tensor):
            raise TypeError(f"{name}: {what} must be Tensor, not {type(tensor).__name__}")
    if min(query.dim(), key.dim(), value.dim()) < 2:
        raise RuntimeError(
            f"{name}: Expected query, key, and value to all be at least 2 dimensional, but got "
            f"{query.dim()}, {key.dim()} and {value.dim()} dimensions"
        )
    same = query.dtype == key.dtype == value.dtype
    if not (same and attn_mask is None) and enabled_for(query, key, value) is not None:
        return  # they are converted
    if not same:
        raise RuntimeError(
            f"{name}: Expected query, key, and value to have the same dtype, but got "
            f"{query.dtype}, {key.dtype} and {value.dtype}"
        )
    if attn_mask is not None and attn_mask.dtype not in (taeda.bool, taeda.float32, query.dtype):
        raise RuntimeError(
            f"{name}: Expected attn_mask dtype to be bool or float or to match query dtype, but "
            f"got {attn_mask.dtype} and {query.dtype}"
        )


def _check_shapes(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> None:
    """Refuse what does not fit by the arguments' names, not by those of the products within."""
    fits = query.size(-1) == key.size(-1) and key.size(-2) == value.size(-2)
    if fits and query.shape[:-2] == key.shape[:-2] == value.shape[:-2]:
        if mask is None:
            return
        sizes = (key.size(-2), query.size(-2), *reversed(query.shape[:-2]))
        if mask.dim() <= len(sizes) and all(
            n in (1, m) for n, m in zip(reversed(mask.shape), sizes, strict=False)
        ):
            return
    else:
        for sizes in zip(*(reversed(t.shape[:-2]) for t in (query, key, value)), strict=False):
            fits = fits and len({n for n in sizes if n != 1}) < 2
        if fits:
            return
    shapes = [("query", query), ("key", key), ("value", value), ("attn_mask", mask)]
    given = ", ".join(f"{what} {list(t.shape)}" for what, t in shapes if t is not None)
    raise RuntimeError(
        "scaled_dot_product_attention: Expected a query of shape (*, L, E), a key (*, S, E), a "
        f"value (*, S, V) and a mask that broadcasts to (*, L, S), but got {given}"
    )


def _additive(mask: Tensor | None, name: str, dtype: Any) -> Tensor | None:
    """A boolean mask, True where a position is left out, as one to add."""
    if mask is None or mask.is_floating_point():
        return mask
    if mask.dtype != taeda.bool:
        raise AssertionError(
            f"multi_head_attention_forward: only bool and floating types of {name} are supported, "
            f"got {mask.dtype}"
        )
    return ops.zeros(mask.shape, dtype=dtype, device=mask.device).masked_fill_(mask, -math.inf)


def _project(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    in_proj_weight: Tensor | None,
    in_proj_bias: Tensor | None,
    separate: tuple[Tensor, ...] | None,
) -> tuple[Tensor, Tensor, Tensor]:
    biases = (None, None, None) if in_proj_bias is None else in_proj_bias.chunk(3)
    if separate is None:
        assert in_proj_weight is not None
        if query is key and key is value:
            q, k, v = ops.linear(query, in_proj_weight, in_proj_bias).chunk(3, -1)
            return q, k, v
        separate = in_proj_weight.chunk(3)
    q, k, v = (
        ops.linear(x, weight, bias)
        for x, weight, bias in zip((query, key, value), separate, biases, strict=True)
    )
    return q, k, v


def multi_head_attention_forward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim_to_check: int,
    num_heads: int,
    in_proj_weight: Tensor | None,
    in_proj_bias: Tensor | None,
    bias_k: Tensor | None,
    bias_v: Tensor | None,
    add_zero_attn: bool,
    dropout_p: float,
    out_proj_weight: Tensor,
    out_proj_bias: Tensor | None,
    training: bool = True,
    key_padding_mask: Tensor | None = None,
    need_weights: bool = True,
    attn_mask: Tensor | None = None,
    use_separate_proj_weight: bool = False,
    q_proj_weight: Tensor | None = None,
    k_proj_weight: Tensor | None = None,
    v_proj_weight: Tensor | None = None,
    static_k: Tensor | None = None,
    static_v: Tensor | None = None,
    average_attn_weights: bool = True,
    is_causal: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """Attention in several heads, between two projections; what `MultiheadAttention` calls.

    Args:
        query: of shape (L, N, E) or (L, E).
        key, value: of shape (S, N, *) or (S, *).
        embed_dim_to_check: E.
        num_heads: how many heads E is divided into.
        in_proj_weight, in_proj_bias: of shapes (3 E, E) and (3 E,).
        bias_k, bias_v: of shape (1, 1, E), one more position of the keys and the values.
        add_zero_attn: add one more position, of zeros.
        dropout_p: the probability with which an attention weight is dropped when `training`.
        out_proj_weight, out_proj_bias: of shapes (E, E) and (E,).
        training: whether there is dropout.
        key_padding_mask: of shape (N, S) or (S,): True for, or minus infinity added to, the keys
            that are left out.
        need_weights: return the attention weights too.
        attn_mask: of shape (L, S) or (N * heads, L, S), likewise.
        use_separate_proj_weight: use the next three instead of `in_proj_weight`.
        q_proj_weight, k_proj_weight, v_proj_weight: of shapes (E, E), (E, key size) and
            (E, value size).
        static_k, static_v: of shape (N * heads, S, E / heads), used instead of projected ones.
        average_attn_weights: average the returned weights over the heads.
        is_causal: `attn_mask` is the causal one, which it must then be given as.

    Returns:
        the result, of the query's shape; and the weights, of shape (N, L, S), or
        (N, heads, L, S) when not averaged, or None.
    """
    batched = query.dim() == 3
    if query.dim() not in (2, 3) or key.dim() != query.dim() or value.dim() != query.dim():
        raise AssertionError(
            "multi_head_attention_forward: query, key and value must all be 2D or all 3D, got "
            f"{query.dim()}D, {key.dim()}D and {value.dim()}D"
        )
    if is_causal and attn_mask is None:
        raise RuntimeError(
            "multi_head_attention_forward: Need attn_mask if specifying the is_causal hint: set "
            "attn_mask to the causal mask"
        )
    if not batched:
        same = query is key and key is value
        query = query.unsqueeze(1)
        key = query if same else key.unsqueeze(1)
        value = query if same else value.unsqueeze(1)
        if key_padding_mask is not None:
            key_padding_mask = key_padding_mask.unsqueeze(0)
    length, batch, embed = query.shape
    if embed != embed_dim_to_check:
        raise AssertionError(
            "multi_head_attention_forward: was expecting embedding dimension of "
            f"{embed_dim_to_check}, but got {embed} (query has shape {list(query.shape)})"
        )
    if embed % num_heads:
        raise AssertionError(
            f"multi_head_attention_forward: embed_dim {embed} not divisible by num_heads "
            f"{num_heads}"
        )
    head = embed // num_heads
    shapes = f"query {list(query.shape)}, key {list(key.shape)} and value {list(value.shape)}"
    if key.shape[:2] != value.shape[:2] or key.size(1) != batch:
        raise AssertionError(
            "multi_head_attention_forward: key and value must have the same length, and the "
            f"query's batch size, got {shapes}"
        )
    if not use_separate_proj_weight and key.shape != value.shape:
        raise AssertionError(
            f"multi_head_attention_forward: key and value must have the same shape, got {shapes}"
        )
    if not use_separate_proj_weight and embed != key.size(2):
        raise RuntimeError(
            "multi_head_attention_forward: query, key and value must have the same last size, got "
            f"{shapes}"
        )
    padding = _additive(key_padding_mask, "key_padding_mask", query.dtype)
    mask = _additive(attn_mask, "attn_mask", query.dtype)
    separate: Any = None
    if use_separate_proj_weight:
        for what, given, weight in (("key", key, k_proj_weight), ("value", value, v_proj_weight)):
            if weight is not None and weight.size(-1) != given.size(-1):
                raise AssertionError(
                    f"multi_head_attention_forward: expecting {what} weights shape of "
                    f"{(embed, given.size(-1))}, but got {tuple(weight.shape)}"
                )
        separate = (q_proj_weight, k_proj_weight, v_proj_weight)
    q, k, v = _project(query, key, value, in_proj_weight, in_proj_bias, separate)
    extra = 0
    if bias_k is not None and bias_v is not None:
        k = ops.cat([k, bias_k.repeat(1, batch, 1)])
        v = ops.cat([v, bias_v.repeat(1, batch, 1)])
        extra += 1

    def by_head(x: Tensor) -> Tensor:  # (S, N, E) to (N, heads, S, head size)
        return x.reshape(x.size(0), batch, num_heads, head).permute(1, 2, 0, 3)

    q, k, v = by_head(q), by_head(k), by_head(v)
    if static_k is not None:
        k = static_k.unflatten(0, (batch, num_heads))
    if static_v is not None:
        v = static_v.unflatten(0, (batch, num_heads))
    if add_zero_attn:
        k, v = ops.pad(k, (0, 0, 0, 1)), ops.pad(v, (0, 0, 0, 1))
        extra += 1
    source = k.size(2)
    if mask is not None:
        mask = ops.pad(mask, (0, extra)) if extra else mask
        if mask.dim() not in (2, 3):
            raise AssertionError(
                f"multi_head_attention_forward: attn_mask must be 2-D or 3-D, got {mask.dim()}-D"
            )
        size = (length, source) if mask.dim() == 2 else (batch * num_heads, length, source)
        if tuple(mask.shape) != size:
            raise RuntimeError(
                f"multi_head_attention_forward: The shape of the {mask.dim()}D attn_mask is "
                f"{mask.shape}, but should be {size}."
            )
        mask = mask if mask.dim() == 2 else mask.unflatten(0, (batch, num_heads))
    if padding is not None:
        padding = ops.pad(padding, (0, extra)) if extra else padding
        if tuple(padding.shape) != (batch, source):
            raise AssertionError(
                "multi_head_attention_forward: Expected key_padding_mask of shape "
                f"{(batch, source - extra)}, got {(padding.size(0), padding.size(-1) - extra)}"
            )
        padding = padding.reshape(batch, 1, 1, source)
        mask = padding if mask is None else mask + padding
    weights = None
    dropout_p = dropout_p if training else 0.0
    if need_weights:
        scores = (q * math.sqrt(1.0 / head)) @ k.transpose(-2, -1)
        weights = ops.softmax(scores if mask is None else scores + mask, -1)
        if dropout_p > 0:
            weights = dropout(weights, dropout_p)
        mixed = weights @ v
        weights = weights.mean(1) if average_attn_weights else weights
    else:
        mixed = scaled_dot_product_attention(q, k, v, mask, dropout_p)
    mixed = mixed.permute(2, 0, 1, 3).reshape(length, batch, embed)
    output = ops.linear(mixed, out_proj_weight, out_proj_bias)
    if not batched:
        output = output.squeeze(1)
        weights = None if weights is None else weights.squeeze(0)
    return output, weights
