"""CUDA, which this build does not have."""

from __future__ import annotations

__all__ = ["is_built", "matmul"]


def is_built() -> bool:
    """Whether taeda is compiled with CUDA: no."""
    return False


class _Matmul:
    """How exact matrix products on a GPU must be; those on the CPU are exact whatever is set."""

    allow_tf32 = False
    allow_fp16_reduced_precision_reduction = True
    allow_bf16_reduced_precision_reduction = True

    def __setattr__(self, name: str, value: object) -> None:
        if not hasattr(self, name):
            raise AttributeError(f"backends.cuda.matmul has no switch {name!r}")
        if not isinstance(value, bool):
            raise TypeError(f"backends.cuda.matmul.{name} must be a bool, got {value!r}")
        super().__setattr__(name, value)


matmul = _Matmul()
