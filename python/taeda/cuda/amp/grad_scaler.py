"""The scaling of losses for CUDA, and the state of an optimizer that it keeps."""

from __future__ import annotations

from taeda import amp
from taeda.amp.grad_scaler import OptState

__all__ = ["GradScaler", "OptState"]


class GradScaler(amp.GradScaler):
    """:class:`taeda.amp.GradScaler` for ``"cuda"``, whose arguments it takes but the first."""

    def __init__(
        self,
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        super().__init__(
            "cuda", init_scale, growth_factor, backoff_factor, growth_interval, enabled
        )
