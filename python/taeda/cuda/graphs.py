"""Graphs of CUDA devices' work: what :mod:`taeda.cuda` has of them.

>>> import taeda
>>> taeda.cuda.graphs.is_current_stream_capturing()
False
"""

from __future__ import annotations

from taeda.cuda import (
    CUDAGraph,
    graph,
    graph_pool_handle,
    is_current_stream_capturing,
    make_graphed_callables,
)

__all__ = [
    "CUDAGraph",
    "graph",
    "graph_pool_handle",
    "is_current_stream_capturing",
    "make_graphed_callables",
]
