"""Apple's GPUs: there are none in this build, and everything here says so.

>>> import taeda
>>> taeda.mps.is_available(), taeda.mps.device_count()
(False, 0)
"""

from taeda import _absent

_REST = _absent.members("mps")
globals().update(_REST)

__all__ = [*_REST]
