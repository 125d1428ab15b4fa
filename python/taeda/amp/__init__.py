"""Mixed precision: some operations in bfloat16, others in float32.

>>> import taeda
>>> model, x = taeda.nn.Linear(4, 2), taeda.ones(3, 4)
>>> with taeda.amp.autocast("cpu"):
...     y = model(x)
>>> y.dtype
taeda.bfloat16
"""

from .autocast_mode import autocast, custom_bwd, custom_fwd, is_autocast_available
from .grad_scaler import GradScaler

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd", "is_autocast_available"]
