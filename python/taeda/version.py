"""What this build is made for: ``version.cuda`` is None without CUDA."""

from __future__ import annotations

from taeda._version import __version__

__all__ = ["__version__", "cuda", "debug", "hip", "xpu"]

debug = False
cuda: str | None = None
hip: str | None = None
xpu: str | None = None
