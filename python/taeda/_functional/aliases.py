"""Operations under the names with an underscore by which packages call them."""

from taeda import _C

_segment_reduce = _C.ops.segment_reduce
_standard_gamma = _C.ops._standard_gamma
