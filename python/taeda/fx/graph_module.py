"""`GraphModule`: a module that runs a graph."""

from __future__ import annotations

import copy
import linecache
from collections.abc import Callable, Mapping
from typing import Any

from taeda import nn

from .graph import Graph, PythonCode

__all__ = ["GraphModule"]


class GraphModule(nn.Module):
    """A module whose ``forward`` is the code of a graph.

    Each has a class of its own, with that ``forward``. It can be copied and pickled; functions in
    the graph are pickled by their names.

    Args:
        root: where the attributes and modules are that the graph names: a module, or a dict from
            their paths.
        graph: the graph.
        class_name: of the class.

    Raises:
        RuntimeError: the graph names what is not in ``root``.

    >>> from taeda import fx
    >>> module = fx.symbolic_trace(lambda x: (x + 1).relu())
    >>> for node in module.graph.find_nodes(op="call_method"):
    ...     node.target = "abs"
    >>> _ = module.recompile()
    >>> module(taeda.tensor([-3.0]))
    tensor([2.])
    """

    def __new__(cls, *args: Any, **kwargs: Any) -> GraphModule:
        base = next(c for c in cls.__mro__ if "_made_for_one" not in c.__dict__)
        return super().__new__(type(base.__name__, (base,), {"_made_for_one": True}))

    def __init__(
        self,
        root: nn.Module | Mapping[str, Any],
        graph: Graph,
        class_name: str = "GraphModule",
    ) -> None:
        super().__init__()
        type(self).__name__ = class_name
        self.meta: dict[str, Any] = {}
        if isinstance(root, nn.Module):
            self.training = root.training
        for node in graph.nodes:
            if node.op in ("get_attr", "call_module"):
                self._take(root, str(node.target))
        meta = getattr(root, "meta", None)
        if isinstance(root, nn.Module) and isinstance(meta, dict):
            self.meta.update(meta)
        self.graph = graph

    def _take(self, root: Any, path: str) -> None:
        """Take from ``root`` what is at a path."""
        *owners, name = path.split(".")
        value: Any = root
        if isinstance(root, Mapping):
            if path not in root:
                raise RuntimeError(
                    f"GraphModule: the graph refers to {path!r}, which is not in the given dict"
                )
            value = root[path]
        else:
            for part in path.split("."):
                if not hasattr(value, part):
                    raise RuntimeError(f"GraphModule: the root module has no {path!r}")
                value = getattr(value, part)
        owner: Any = self
        for part in owners:
            if not hasattr(owner, part):
                owner.add_module(part, nn.Module())
            owner = getattr(owner, part)
        if isinstance(value, nn.Module | nn.Parameter) or not hasattr(value, "untyped_storage"):
            setattr(owner, name, value)
        elif getattr(owner, name, None) is not value:
            owner.register_buffer(name, value)

    @property
    def graph(self) -> Graph:
        """The graph; after a change of it, call `recompile`."""
        return self._graph

    @graph.setter
    def graph(self, g: Graph) -> None:
        if not isinstance(g, Graph):
            raise AssertionError(f"Expected a Graph instance, but got {type(g)}")
        self._graph = g
        g.owning_module = self
        self.recompile()

    def recompile(self) -> PythonCode:
        """Make ``forward`` from the graph anew."""
        made = self._graph.python_code(root_module="self")
        self._code = made.src
        file = f"<fx {type(self).__name__} {id(self):x}>"
        # Tracebacks show the code.
        linecache.cache[file] = (len(made.src), None, made.src.splitlines(True), file)
        names = dict(made.globals)
        exec(compile(made.src, file, "exec"), names)
        type(self).forward = names["forward"]  # type: ignore[method-assign]
        return made

    @property
    def code(self) -> str:
        """The code of ``forward``."""
        return self._code

    def print_readable(self, print_output: bool = True) -> str:
        """Print the code as a class, and return it."""
        body = "".join(f"    {line}\n" for line in self._code.splitlines())
        text = f"class {type(self).__name__}(torch.nn.Module):\n{body}"
        if print_output:
            print(text)
        return text

    # ---- submodules -----------------------------------------------------------------------------

    def add_submodule(self, target: str, m: nn.Module) -> bool:
        """Put a module at a path; modules on the way are made.

        Returns:
            Whether that is possible: what is on the way must be modules.
        """
        *owners, name = target.split(".")
        owner: Any = self
        for part in owners:
            if not hasattr(owner, part):
                owner.add_module(part, nn.Module())
            owner = getattr(owner, part)
            if not isinstance(owner, nn.Module):
                return False
        owner.add_module(name, m)
        return True

    def delete_submodule(self, target: str) -> bool:
        """Remove the module at a path.

        Returns:
            Whether there was one.
        """
        path, _, name = target.rpartition(".")
        try:
            owner = self.get_submodule(path)
        except AttributeError:
            return False
        if not isinstance(getattr(owner, name, None), nn.Module):
            return False
        delattr(owner, name)
        return True

    def delete_all_unused_submodules(self) -> None:
        """Remove the modules that the graph neither calls nor reads from."""
        used: set[str] = set()
        for node in self.graph.nodes:
            if node.op in ("call_module", "get_attr"):
                parts = str(node.target).split(".")
                used.update(".".join(parts[:i]) for i in range(1, len(parts) + 1))
            if node.op == "call_module":
                whole = self.get_submodule(str(node.target))
                used.update(f"{node.target}.{name}" for name, _ in whole.named_modules() if name)
        for name in [name for name, _ in self.named_modules() if name and name not in used]:
            self.delete_submodule(name)

    # ---- copies ---------------------------------------------------------------------------------

    def _state(self) -> dict[str, Any]:
        """What it has beside the graph."""
        return {k: v for k, v in self.__dict__.items() if k not in ("_graph", "_code")}

    def __reduce_ex__(self, protocol: Any) -> Any:
        base = next(c for c in type(self).__mro__ if "_made_for_one" not in c.__dict__)
        return _rebuilt, (base, type(self).__name__, self._graph), self._state()

    def __deepcopy__(self, memo: dict[int, Any]) -> GraphModule:
        return self._copied(lambda state: copy.deepcopy(state, memo))

    def __copy__(self) -> GraphModule:
        return self._copied(lambda state: {k: copy.copy(v) for k, v in state.items()})

    def _copied(self, copied: Callable[[dict[str, Any]], dict[str, Any]]) -> GraphModule:
        _, (base, name, graph), state = self.__reduce_ex__(4)
        made = _rebuilt(base, name, copy.deepcopy(graph))
        made.__setstate__(copied(state))
        return made

    def __str__(self) -> str:
        return f"{super().__repr__()}\n\n{self._code}"


def _rebuilt(base: type[GraphModule], name: str, graph: Graph) -> GraphModule:
    """A module with a graph, whose state comes next."""
    made = base.__new__(base)
    type(made).__name__ = name
    made.graph = graph
    return made
