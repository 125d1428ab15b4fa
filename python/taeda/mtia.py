"""Meta's accelerators: there are none in this build, and everything here says so.

>>> import taeda
>>> taeda.mtia.is_available(), taeda.mtia.device_count()
(False, 0)
"""

from taeda import _absent

_REST = _absent.members("mtia")
globals().update(_REST)

__all__ = [*_REST]
