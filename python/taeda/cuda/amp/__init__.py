"""Older names of :mod:`taeda.amp`, for CUDA. Without a device, they warn and do nothing.

>>> import taeda
>>> with taeda.cuda.amp.autocast(enabled=False):
...     pass
"""

from .autocast_mode import autocast, custom_bwd, custom_fwd
from .common import amp_definitely_not_available
from .grad_scaler import GradScaler

__all__ = ["GradScaler", "amp_definitely_not_available", "autocast", "custom_bwd", "custom_fwd"]
