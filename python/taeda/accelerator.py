"""The accelerator of this build, whichever it is: there is none.

>>> import taeda
>>> taeda.accelerator.is_available(), taeda.accelerator.current_accelerator()
(False, None)
"""

from taeda import _absent

_REST = _absent.members("accelerator")
globals().update(_REST)

__all__ = [*_REST]
