"""Graphs of CUDA devices' work: what :mod:`taeda.cuda` has of them.

>>> import taeda
>>> taeda.cuda.graphs.is_current_stream_capturing()
False
"""

from __future__ import annotations

from taeda import cuda as _cuda

_NAMES = (
    "CUDAGraph",
    "graph",
    "graph_pool_handle",
    "is_current_stream_capturing",
    "make_graphed_callables",
)
globals().update({name: getattr(_cuda, name) for name in _NAMES})
__all__ = [*_NAMES]
