"""CUDA, which this build does not have."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

from taeda import _switches

__all__ = [
    "SDPAParams",
    "allow_fp16_bf16_reduction_math_sdp",
    "can_use_cudnn_attention",
    "can_use_efficient_attention",
    "can_use_flash_attention",
    "cudnn_sdp_enabled",
    "enable_cudnn_sdp",
    "enable_flash_sdp",
    "enable_math_sdp",
    "enable_mem_efficient_sdp",
    "flash_sdp_enabled",
    "fp16_bf16_reduction_math_sdp_allowed",
    "is_built",
    "is_ck_sdpa_available",
    "is_flash_attention_available",
    "math_sdp_enabled",
    "matmul",
    "mem_efficient_sdp_enabled",
    "sdp_kernel",
]


def is_flash_attention_available() -> bool:
    """Whether this build has flash attention for GPUs: no."""
    return False


def is_ck_sdpa_available() -> bool:
    """Whether this build has attention by composable kernels, for AMD's GPUs: no."""
    return False


class SDPAParams(NamedTuple):
    """What attention is computed of, to ask which implementation can."""

    query: Any
    key: Any
    value: Any
    attn_mask: Any
    dropout: float
    is_causal: bool
    enable_gqa: bool


def _can_use(params: SDPAParams, debug: bool) -> bool:
    if not isinstance(params, SDPAParams):
        raise TypeError(f"expected SDPAParams, got {type(params).__name__}")
    if debug:
        warnings.warn(
            "taeda has no GPU, so that no implementation for GPUs can be used", stacklevel=3
        )
    return False


def can_use_flash_attention(params: SDPAParams, debug: bool = False) -> bool:
    """Whether a GPU's flash attention can compute this: no; with ``debug`` a warning says why."""
    return _can_use(params, debug)


def can_use_efficient_attention(params: SDPAParams, debug: bool = False) -> bool:
    """Whether a GPU's memory-efficient attention can compute this: no."""
    return _can_use(params, debug)


def can_use_cudnn_attention(params: SDPAParams, debug: bool = False) -> bool:
    """Whether cuDNN's attention can compute this: no."""
    return _can_use(params, debug)


_reduced_sums = False


def fp16_bf16_reduction_math_sdp_allowed() -> bool:
    """What `allow_fp16_bf16_reduction_math_sdp` was told."""
    return _reduced_sums


def allow_fp16_bf16_reduction_math_sdp(enabled: bool) -> None:
    """Say whether attention on a GPU may add up in half precision; the CPU's never does."""
    global _reduced_sums
    if not isinstance(enabled, bool):
        raise RuntimeError(f"expected a bool, got {enabled!r}")
    _reduced_sums = enabled


def is_built() -> bool:
    """Whether taeda is compiled with CUDA: no."""
    return False


class _Matmul:
    """How exact matrix products on a GPU must be; those on the CPU are exact whatever is set.

    Parts of long sums are never added up in half precision, also where that is allowed.
    """

    allow_fp16_reduced_precision_reduction = True
    allow_bf16_reduced_precision_reduction = True

    def __setattr__(self, name: str, value: object) -> None:
        if not hasattr(self, name):
            raise AttributeError(f"backends.cuda.matmul has no switch {name!r}")
        if not isinstance(value, bool):
            raise TypeError(f"backends.cuda.matmul.{name} must be a bool, got {value!r}")
        super().__setattr__(name, value)

    @property
    def allow_tf32(self) -> bool:
        """Whether operands of float32 may be rounded to TF32.

        The same switch as ``set_float32_matmul_precision``: ``"highest"`` is False.
        """
        return _switches.get_float32_matmul_precision() != "highest"

    @allow_tf32.setter
    def allow_tf32(self, allowed: bool) -> None:
        _switches.set_float32_matmul_precision("high" if allowed else "highest")


matmul = _Matmul()


# Enabled implementations of attention on a GPU; the CPU ignores them.
_attention = {"flash": True, "mem_efficient": True, "math": True, "cudnn": True}


def flash_sdp_enabled() -> bool:
    """Whether flash attention may be chosen on a GPU."""
    return _attention["flash"]


def enable_flash_sdp(enabled: bool) -> None:
    """Say whether flash attention may be chosen on a GPU."""
    _attention["flash"] = bool(enabled)


def mem_efficient_sdp_enabled() -> bool:
    """Whether memory efficient attention may be chosen on a GPU."""
    return _attention["mem_efficient"]


def enable_mem_efficient_sdp(enabled: bool) -> None:
    """Say whether memory efficient attention may be chosen on a GPU."""
    _attention["mem_efficient"] = bool(enabled)


def math_sdp_enabled() -> bool:
    """Whether attention by plain operations may be chosen on a GPU."""
    return _attention["math"]


def enable_math_sdp(enabled: bool) -> None:
    """Say whether attention by plain operations may be chosen on a GPU."""
    _attention["math"] = bool(enabled)


def cudnn_sdp_enabled() -> bool:
    """Whether cuDNN's attention may be chosen on a GPU."""
    return _attention["cudnn"]


def enable_cudnn_sdp(enabled: bool) -> None:
    """Say whether cuDNN's attention may be chosen on a GPU."""
    _attention["cudnn"] = bool(enabled)


@contextlib.contextmanager
def sdp_kernel(
    enable_flash: bool = True,
    enable_math: bool = True,
    enable_mem_efficient: bool = True,
    enable_cudnn: bool = True,
) -> Iterator[None]:
    """Within this context, set the four switches so. Deprecated: see ``nn.attention.sdpa_kernel``.

    On the CPU attention is served by MATH and FLASH_ATTENTION, of which one must be enabled.
    """
    warnings.warn(
        "backends.cuda.sdp_kernel() is deprecated; use nn.attention.sdpa_kernel() instead",
        FutureWarning,
        stacklevel=3,
    )
    from taeda.nn.attention import SDPBackend, sdpa_kernel

    chosen = {
        SDPBackend.FLASH_ATTENTION: enable_flash,
        SDPBackend.MATH: enable_math,
        SDPBackend.EFFICIENT_ATTENTION: enable_mem_efficient,
        SDPBackend.CUDNN_ATTENTION: enable_cudnn,
    }
    before = dict(_attention)
    _attention.update(
        flash=enable_flash, math=enable_math, mem_efficient=enable_mem_efficient, cudnn=enable_cudnn
    )
    try:
        with sdpa_kernel([backend for backend, enabled in chosen.items() if enabled]):
            yield
    finally:
        _attention.update(before)
