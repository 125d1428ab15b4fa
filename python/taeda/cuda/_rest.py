"""What is the same in the modules of all devices that this build lacks."""

from taeda import _absent

_REST = _absent.members("cuda")
globals().update(_REST)

__all__ = [*_REST]
