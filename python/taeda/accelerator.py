"""The accelerator of this build, whichever it is: CUDA's devices where its library is installed.

>>> import taeda
>>> taeda.accelerator.is_available(), taeda.accelerator.current_accelerator()
(False, None)
"""

from taeda import _absent
from taeda.cuda import _library

_REST = _absent.members("accelerator")
if _library.path() is not None:
    from taeda.cuda import _accelerator

    _REST = _accelerator.members()
globals().update(_REST)

__all__ = [*_REST]
