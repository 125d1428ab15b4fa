"""Attention whose scores and masks are given as functions (Dong et al., 2024).

A `mask_mod(b, h, q, kv)` says which positions take part, a `score_mod(score, b, h, q, kv)` changes
the scores. They are called once, with index tensors that broadcast against each other to (B, H, Q,
KV): write them with tensor operations, so `(q >= kv) & (q - kv < 64)`, not with `and` or `if`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple, TypedDict

import taeda
from taeda._C import Tensor

__all__ = [
    "FlexKernelOptions",
    "AuxOutput",
    "AuxRequest",
    "BlockMask",
    "and_masks",
    "create_block_mask",
    "create_mask",
    "flex_attention",
    "noop_mask",
    "or_masks",
]

Mod = Callable[..., Tensor]
_DEFAULT_SPARSE_BLOCK_SIZE = 128  # along queries and keys; packages know it by this name


class FlexKernelOptions(TypedDict, total=False):
    """Options of a GPU's kernel, for annotations; `flex_attention` takes any dict."""

    BLOCK_M: int
    BLOCK_N: int
    num_warps: int
    num_stages: int


class AuxRequest(NamedTuple):
    """Additional results to request from `flex_attention`."""

    lse: bool = False
    max_scores: bool = False


class AuxOutput(NamedTuple):
    """The additional results of `flex_attention` that were requested.

    Attributes:
        lse: the logarithms of the sums of the exponentials of the scores, of shape (B, H, Q).
        max_scores: the largest scores, of shape (B, H, Q).
    """

    lse: Tensor | None = None
    max_scores: Tensor | None = None


def noop_mask(batch: Tensor, head: Tensor, token_q: Tensor, token_kv: Tensor) -> Tensor:
    """The mask in which every position takes part."""
    return batch.new_ones((), dtype=taeda.bool)


def _combined(name: str, mask_mods: tuple[Mod, ...], start: bool, join: str) -> Mod:
    if not all(callable(mod) for mod in mask_mods):
        raise RuntimeError(f"{name}: All inputs should be callable mask_mods: {mask_mods}")

    def combined(b: Tensor, h: Tensor, q: Tensor, kv: Tensor) -> Tensor:
        result = b.new_full((), start, dtype=taeda.bool)
        for mod in mask_mods:
            result = getattr(result, join)(mod(b, h, q, kv))
        return result

    return combined


def and_masks(*mask_mods: Mod) -> Mod:
    """Return the mask_mod of the positions that take part in all of several."""
    return _combined("and_masks", mask_mods, True, "__and__")


def or_masks(*mask_mods: Mod) -> Mod:
    """Return the mask_mod of the positions that take part in one of several."""
    return _combined("or_masks", mask_mods, False, "__or__")


def _indices(sizes: tuple[int, ...], device: Any) -> list[Tensor]:
    """For each dimension, its indices, in a shape that broadcasts against the others'."""
    rank = len(sizes)
    return [
        taeda.arange(size, device=device).reshape([-1 if d == i else 1 for d in range(rank)])
        for i, size in enumerate(sizes)
    ]


def create_mask(
    mod_fn: Mod, B: int | None, H: int | None, Q_LEN: int, KV_LEN: int, device: Any = None
) -> Tensor:
    """Return a mask_mod as a tensor of shape (B, H, Q_LEN, KV_LEN).

    Args:
        mod_fn: the mask_mod.
        B, H: how many batches and heads; None for 1, where the mask does not depend on them.
        Q_LEN, KV_LEN: how many queries and keys.
        device: where to make it.

    >>> from taeda.nn.attention.flex_attention import create_mask
    >>> create_mask(lambda b, h, q, kv: q >= kv, None, None, 2, 2)
    tensor([[[[ True, False],
              [ True,  True]]]])
    """
    sizes = (B or 1, H or 1, Q_LEN, KV_LEN)
    mask = mod_fn(*_indices(sizes, device))
    if not isinstance(mask, Tensor) or mask.dtype != taeda.bool:
        got = mask.dtype if isinstance(mask, Tensor) else type(mask).__name__
        raise TypeError(f"create_mask: the mask_mod must return a tensor of bools, got {got}")
    return mask.expand(sizes).contiguous()


class BlockMask:
    """A mask, with a summary of which blocks of queries and keys have something to compute.

    Make one with `create_block_mask`. `mask[b]`, `mask[b, h]` select batches and heads.

    Args:
        mask: of shape (B, H, Q, KV), True where a position takes part.
        mask_mod: what it was made from.
        BLOCK_SIZE: the sizes of a block along Q and KV.

    Attributes:
        shape, seq_lengths: (B, H, Q, KV), and (Q, KV).
        kv_num_blocks, full_kv_num_blocks: of shape (B, H, blocks of Q), int32: how many blocks of
            keys are computed in part, and how many whole.
        kv_indices, full_kv_indices: of shape (B, H, blocks of Q, blocks of KV), int32: which they
            are, those first.
    """

    def __init__(self, mask: Tensor, mask_mod: Mod, BLOCK_SIZE: tuple[int, int]) -> None:
        self.mask = mask
        self.mask_mod = mask_mod
        self.BLOCK_SIZE = BLOCK_SIZE
        self.shape = tuple(mask.shape)
        self.seq_lengths = self.shape[2:]
        q, kv = BLOCK_SIZE
        batches, heads, rows, columns = self.shape
        padded = taeda.nn.functional.pad(mask, (0, -columns % kv, 0, -rows % q))
        blocks = padded.reshape(batches, heads, -(-rows // q), q, -(-columns // kv), kv)
        count = blocks.sum((3, 5))
        full = count == q * kv
        partial = (count > 0) & ~full
        self._computed = count > 0
        self.kv_num_blocks, self.kv_indices = _ordered(partial)
        self.full_kv_num_blocks, self.full_kv_indices = _ordered(full)

    @classmethod
    def from_kv_blocks(
        cls,
        kv_num_blocks: Tensor,
        kv_indices: Tensor,
        full_kv_num_blocks: Tensor | None = None,
        full_kv_indices: Tensor | None = None,
        BLOCK_SIZE: int | tuple[int, int] = _DEFAULT_SPARSE_BLOCK_SIZE,
        mask_mod: Mod | None = None,
        seq_lengths: tuple[int, int] | None = None,
    ) -> BlockMask:
        """Make one of which blocks of keys each block of queries sees.

        Args:
            kv_num_blocks, kv_indices: how many blocks, of shape (B, H, blocks of Q), and which they
                are, the first of (B, H, blocks of Q, blocks of KV); `mask_mod` says what takes
                part in them.
            full_kv_num_blocks, full_kv_indices: likewise, for blocks that take part as a whole.
            BLOCK_SIZE: the size of a block, or its sizes along Q and KV.
            mask_mod: says which positions take part; by default all.
            seq_lengths: the sizes of Q and KV; by default, of whole blocks.
        """
        if (full_kv_num_blocks is None) != (full_kv_indices is None):
            raise AssertionError(
                "from_kv_blocks: full_kv_num_blocks and full_kv_indices go together"
            )
        if kv_indices.dim() != 4:
            raise RuntimeError(
                f"from_kv_blocks: kv_indices must have 4 dimensions, got {kv_indices.dim()}"
            )
        q, kv = sizes = _block_sizes("from_kv_blocks", BLOCK_SIZE)
        rows, columns = kv_indices.shape[-2:]
        lengths = (rows * q, columns * kv) if seq_lengths is None else tuple(seq_lengths)

        def spread(count: Tensor, indices: Tensor) -> Tensor:
            listed = taeda.arange(columns, device=indices.device) < count.unsqueeze(-1)
            blocks = taeda.zeros_like(indices, dtype=taeda.bool)
            blocks = blocks.scatter(-1, indices.to(taeda.int64), listed)
            every = blocks.repeat_interleave(q, -2).repeat_interleave(kv, -1)
            return every[..., : lengths[0], : lengths[1]]

        mask_mod = noop_mask if mask_mod is None else mask_mod
        mask = spread(kv_num_blocks, kv_indices)
        B, H, Q_LEN, KV_LEN = mask.shape
        mask = mask & create_mask(mask_mod, B, H, Q_LEN, KV_LEN, mask.device)
        if full_kv_num_blocks is not None and full_kv_indices is not None:
            mask = mask | spread(full_kv_num_blocks, full_kv_indices)
        return cls(mask, mask_mod, sizes)

    def __getitem__(self, index: Any) -> BlockMask:
        index = index if isinstance(index, tuple) else (index,)
        # A number keeps its dimension, as a slice of one.
        kept = tuple(slice(i, i + 1 or None) if isinstance(i, int) else i for i in index)
        return BlockMask(self.mask[kept], self.mask_mod, self.BLOCK_SIZE)

    def to(self, device: Any) -> BlockMask:
        """Return the mask on another device."""
        return BlockMask(self.mask.to(device), self.mask_mod, self.BLOCK_SIZE)

    def to_dense(self) -> Tensor:
        """Return which blocks have something to compute, of shape (B, H, blocks, blocks)."""
        return self._computed.to(taeda.int32)

    def numel(self) -> int:
        """Return B * H * Q * KV."""
        return math.prod(self.shape)

    def sparsity(self) -> float:
        """Return the percentage of scores in skipped blocks."""
        q, kv = self.BLOCK_SIZE
        return 100 * (1 - int(self._computed.sum()) * q * kv / self.numel())

    def to_string(self, grid_size: int = 20) -> str:
        """Return a picture of the blocks: what is computed, in whole or in part.

        Args:
            grid_size: the most rows and columns to show of each batch and head.
        """
        texts = []
        for b, batch in enumerate(self._computed.tolist()):
            for h, head in enumerate(batch):
                rows = ["".join("██" if one else "  " for one in row[:grid_size]) for row in head]
                texts.append("\n".join([f"({b}, {h})", *rows[:grid_size]]))
        return "\n".join(texts)

    def __repr__(self) -> str:
        return (
            f"BlockMask(shape={self.shape}, sparsity={self.sparsity():.2f}%, \n"
            f"{self[0, 0].to_string()}\n)"
        )


def _ordered(blocks: Tensor) -> tuple[Tensor, Tensor]:
    """For each row of block flags, how many are set, and all columns, those that are set first."""
    columns = blocks.to(taeda.int32).argsort(-1, descending=True, stable=True)
    return blocks.sum(-1).to(taeda.int32), columns.to(taeda.int32)


def _block_sizes(name: str, given: int | tuple[int, int]) -> tuple[int, int]:
    sizes = (given, given) if isinstance(given, int) else tuple(given)
    if len(sizes) != 2 or min(sizes) < 1:
        raise ValueError(f"{name}: BLOCK_SIZE must be one or two positive ints, got {given}")
    return sizes


def create_block_mask(
    mask_mod: Mod,
    B: int | None,
    H: int | None,
    Q_LEN: int,
    KV_LEN: int,
    device: Any = None,
    BLOCK_SIZE: int | tuple[int, int] = _DEFAULT_SPARSE_BLOCK_SIZE,
) -> BlockMask:
    """Make a BlockMask of a mask_mod.

    Args:
        mask_mod: says which positions take part; see the module.
        B, H: how many batches and heads; None for 1, where the mask does not depend on them.
        Q_LEN, KV_LEN: how many queries and keys.
        device: where to make it.
        BLOCK_SIZE: the size of a block, or its sizes along Q and KV.
    """
    sizes = _block_sizes("create_block_mask", BLOCK_SIZE)
    return BlockMask(create_mask(mask_mod, B, H, Q_LEN, KV_LEN, device), mask_mod, sizes)


def _check(query: Tensor, key: Tensor, value: Tensor, enable_gqa: bool) -> None:
    if not query.dim() == key.dim() == value.dim() == 4:
        raise NotImplementedError(
            "flex_attention: query, key and value must be 4D tensors (B, H, L, E), got "
            f"{query.dim()}D, {key.dim()}D and {value.dim()}D"
        )
    if query.dtype != key.dtype or query.dtype != value.dtype:
        raise ValueError(
            "flex_attention: Expected query, key, and value to have the same dtype, but got "
            f"{query.dtype}, {key.dtype} and {value.dtype}"
        )
    if key.shape[:3] != value.shape[:3] or key.size(3) != query.size(3):
        raise ValueError(
            f"flex_attention: query {list(query.shape)}, key {list(key.shape)} and value "
            f"{list(value.shape)} do not fit together"
        )
    heads, shared = query.size(1), key.size(1)
    if heads != shared and not enable_gqa:
        raise ValueError(
            "flex_attention: Expect query and key/value to have the same number of heads but got "
            f"Hq={heads} and Hkv={shared}. Try setting enable_gqa=True for GQA."
        )
    if heads % shared:
        raise ValueError(
            "flex_attention: Expect number of query heads to be a multiple of kv heads for GQA but "
            f"got Hq={heads} and Hkv={shared}."
        )


def flex_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    score_mod: Mod | None = None,
    block_mask: BlockMask | None = None,
    scale: float | None = None,
    enable_gqa: bool = False,
    return_lse: bool = False,
    kernel_options: dict[str, Any] | None = None,
    *,
    return_aux: AuxRequest | None = None,
) -> Any:
    """softmax(score_mod(query @ key.T * scale)) @ value over the positions of a mask.

    Args:
        query: of shape (B, H, Q, E).
        key: of shape (B, H, KV, E).
        value: of shape (B, H, KV, V).
        score_mod: changes the scores; see the module.
        block_mask: which positions take part; by default all. A query that sees none gives zeros.
        scale: by default 1 / sqrt(E).
        enable_gqa: the key and the value have fewer heads, each shared by several of the query.
        return_lse: return also the log-sum-exp of the scores, of shape (B, H, Q).
        kernel_options: tuning of PyTorch's kernels; here it chooses nothing.
        return_aux: return also an `AuxOutput` with what this asks for.

    Returns:
        a tensor of shape (B, H, Q, V); with `return_lse` or `return_aux`, a pair.

    >>> from taeda.nn.attention.flex_attention import create_block_mask, flex_attention
    >>> q = taeda.ones(1, 2, 5, 4)
    >>> causal = create_block_mask(lambda b, h, q, kv: q >= kv, None, None, 5, 5)
    >>> tuple(flex_attention(q, q, q, block_mask=causal).shape)
    (1, 2, 5, 4)
    """
    _check(query, key, value, enable_gqa)
    repeats = query.size(1) // key.size(1)
    if repeats > 1:
        key, value = key.repeat_interleave(repeats, 1), value.repeat_interleave(repeats, 1)
    scale = 1 / math.sqrt(max(query.size(-1), 1)) if scale is None else scale
    scores = (query @ key.transpose(-2, -1)) * scale
    if scores.dtype in (taeda.float16, taeda.bfloat16):
        scores = scores.float()
    if score_mod is not None:
        changed = score_mod(scores, *_indices(tuple(scores.shape), scores.device))
        if not isinstance(changed, Tensor):
            raise ValueError(
                f"flex_attention: score_mod must return a tensor, got {type(changed).__name__}"
            )
        scores = changed.expand(scores.shape).to(scores.dtype)
    if block_mask is not None:
        if block_mask.seq_lengths != scores.shape[2:]:
            raise ValueError(
                f"flex_attention: block_mask was created for block_mask.shape={block_mask.shape} "
                f"but got q_len={query.size(2)} and kv_len={key.size(2)}."
            )
        scores = scores.masked_fill(~block_mask.mask.to(scores.device), -math.inf)
    empty = (scores == -math.inf).all(-1, keepdim=True)
    weights = scores.masked_fill(empty, 0.0).softmax(-1).masked_fill(empty, 0.0)
    output = weights.to(query.dtype) @ value
    if return_aux is not None:
        lse = scores.logsumexp(-1) if return_aux.lse else None
        largest = scores.amax(-1) if return_aux.max_scores else None
        return output, AuxOutput(lse, largest)
    return (output, scores.logsumexp(-1)) if return_lse else output
