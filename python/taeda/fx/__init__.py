"""Programs as graphs: recorded with proxies, changed step by step, and run again as modules.

>>> from taeda import fx
>>> module = fx.symbolic_trace(lambda x: taeda.relu(x) + 1)
>>> print(module.code)
def forward(self, x):
    relu = taeda.relu(x);  x = None
    add = relu + 1;  relu = None
    return add

"""

from __future__ import annotations

from . import (
    graph,
    graph_module,
    immutable_collections,
    interpreter,
    node,
    proxy,
    subgraph_rewriter,
)
from ._symbolic_trace import Tracer, symbolic_trace, wrap
from .graph import Graph
from .graph_module import GraphModule
from .interpreter import Interpreter, Transformer
from .node import Node, has_side_effect, map_arg
from .proxy import Proxy
from .subgraph_rewriter import replace_pattern

__all__ = [
    "Graph", "GraphModule", "Interpreter", "Node", "Proxy", "Tracer", "Transformer",
    "has_side_effect", "map_arg", "replace_pattern", "symbolic_trace", "wrap",
]  # fmt: skip
