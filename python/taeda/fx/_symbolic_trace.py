"""`symbolic_trace`: record what a module or a function does, with proxies as its inputs."""

from __future__ import annotations

import contextlib
import inspect
import math
import types
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import taeda
from taeda import nn
from taeda._checks import _assert

from .graph import Graph
from .graph_module import GraphModule
from .node import Argument
from .proxy import ParameterProxy, Proxy, TracerBase

__all__ = ["Tracer", "symbolic_trace", "wrap"]

F = TypeVar("F")

# Functions that `wrap` has named: the globals of their module, and the name.
_wrapped: list[tuple[dict[str, Any], str]] = []


def wrap(fn_or_name: F) -> F:
    """Record calls of a function as one step: a tracer does not look inside.

    At the top level of a module: ``wrap("len")`` for what the module calls by that name, or as a
    decorator.

    Args:
        fn_or_name: a function of the module, or the name of one, or of what is built in.

    Raises:
        RuntimeError: it is neither a function nor a name.
        NotImplementedError: it was called within a function.

    >>> from taeda import fx
    >>> @fx.wrap
    ... def halves(x):
    ...     return x / 2 if x.sum() > 0 else x
    >>> print(fx.symbolic_trace(lambda x: halves(x) + 1).code)
    def forward(self, x):
        halves = halves_1(x);  x = None
        add = halves + 1;  halves = None
        return add
    """
    if not callable(fn_or_name) and not isinstance(fn_or_name, str):
        raise RuntimeError(
            f"fx.wrap: expected a function or the name of one, got {type(fn_or_name).__name__}"
        )
    name = fn_or_name if isinstance(fn_or_name, str) else str(getattr(fn_or_name, "__name__", ""))
    frame = inspect.currentframe()
    caller = frame.f_back if frame is not None else None
    if caller is None or caller.f_code.co_name != "<module>":
        raise NotImplementedError("fx.wrap must be called at the top level of a module")
    _wrapped.append((caller.f_globals, name))
    return fn_or_name


def _holds_proxy(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Proxy | None:
    found: list[Proxy] = []

    def look(a: Any) -> None:
        if isinstance(a, Proxy):
            found.append(a)
        elif isinstance(a, tuple | list):
            for part in a:
                look(part)
        elif isinstance(a, dict):
            look(list(a.values()))

    look([args, kwargs])
    return found[0] if found else None


def _recording(function: Any) -> Any:
    """A function whose calls with proxies are steps."""

    def called(*args: Any, **kwargs: Any) -> Any:
        proxy = _holds_proxy(args, kwargs)
        if proxy is None:
            return function(*args, **kwargs)
        return proxy.tracer.create_proxy("call_function", function, args, kwargs)

    return called


class _Patches:
    """Entries of dicts that are replaced for a while."""

    def __init__(self) -> None:
        self._former: list[tuple[dict[str, Any], str, bool, Any]] = []
        self._seen: set[int] = set()

    def set(self, table: dict[str, Any], name: str, value: Any) -> None:
        self._former.append((table, name, name in table, table.get(name)))
        table[name] = value

    def wrap_all(self, table: dict[str, Any], functions: dict[int, Any]) -> None:
        """Record the calls of those functions that a table has by whatever name."""
        if id(table) in self._seen:
            return
        self._seen.add(id(table))
        for name, value in list(table.items()):
            if id(value) in functions and not name.startswith("__"):
                self.set(table, name, _recording(value))

    def undo(self) -> None:
        for table, name, was, value in reversed(self._former):
            if was:
                table[name] = value
            else:
                table.pop(name, None)
        self._former.clear()


class Tracer(TracerBase):
    """Records a graph from a module or a function.

    Subclasses choose which modules are single steps (`is_leaf_module`), and more.

    Args:
        autowrap_modules: modules whose functions are single steps.
        autowrap_functions: functions that are single steps.

    >>> from taeda import fx
    >>> class All(fx.Tracer):
    ...     def is_leaf_module(self, m, module_qualified_name):
    ...         return False
    >>> graph = All().trace(taeda.nn.Sequential(taeda.nn.Linear(2, 2), taeda.nn.ReLU()))
    >>> [node.name for node in graph.nodes]
    ['input_1', '_0_weight', '_0_bias', 'linear', 'relu', 'output']
    """

    def __init__(
        self,
        autowrap_modules: tuple[types.ModuleType, ...] = (math,),
        autowrap_functions: tuple[Callable[..., Any], ...] = (),
    ) -> None:
        self._modules_of = autowrap_modules
        self._functions = {id(f): f for f in autowrap_functions}
        for module in autowrap_modules:
            for name, value in vars(module).items():
                if not name.startswith("_") and callable(value):
                    self._functions[id(value)] = value
        self.root: nn.Module = nn.Module()
        self._paths: dict[int, str] = {}  # of the root's tensors
        self._constants = 0

    # ---- what subclasses may choose -------------------------------------------------------------

    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
        """Whether a call of a module is one step: those of ``nn`` are, but for `Sequential`."""
        ours = type(m).__module__.startswith(("taeda.nn", "torch.nn"))
        return ours and not isinstance(m, nn.Sequential)

    def path_of_module(self, mod: nn.Module) -> str:
        """Where a module is within the root.

        Raises:
            NameError: it is not there.
        """
        for path, module in self.root.named_modules():
            if module is mod:
                return path
        raise NameError("module is not installed as a submodule")

    def call_module(
        self,
        m: nn.Module,
        forward: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> Any:
        """What a call of a module is: a step, or what the module does."""
        path = self.path_of_module(m)
        if self.is_leaf_module(m, path):
            return self.create_proxy("call_module", path, args, kwargs)
        return forward(*args, **kwargs)

    def _leaf(self, a: Any) -> Argument:
        if isinstance(a, taeda.Tensor):
            return self._tensor(a)
        if isinstance(a, nn.Module):
            return self.create_node("get_attr", self.path_of_module(a), (), {})
        return super()._leaf(a)

    def _tensor(self, a: taeda.Tensor) -> Argument:
        path = self._paths.get(id(a))
        if path is None:
            path = next((name for name, value in vars(self.root).items() if value is a), None)
        if path is None:
            while hasattr(self.root, f"_tensor_constant{self._constants}"):
                self._constants += 1
            path = f"_tensor_constant{self._constants}"
            setattr(self.root, path, a)
        return self.create_node("get_attr", path, (), {})

    # ---- tracing --------------------------------------------------------------------------------

    def trace(
        self, root: nn.Module | Callable[..., Any], concrete_args: dict[str, Any] | None = None
    ) -> Graph:
        """Run a module's ``forward``, or a function, with proxies, and record what it does.

        Args:
            root: the module or function.
            concrete_args: values of arguments that are not recorded: the graph is for them alone.

        Raises:
            TraceError: what happens depends on values of tensors.
        """
        if isinstance(root, nn.Module):
            self.root, function = root, type(root).forward
            first: tuple[Any, ...] = (root,)
        else:
            self.root, function = nn.Module(), root
            first = ()
        self.graph = Graph(tracer_cls=type(self))
        tensors = [*self.root.named_buffers(), *self.root.named_parameters()]
        self._paths = {id(tensor): path for path, tensor in tensors}
        patches = _Patches()
        try:
            self._record_parameters(patches)
            args, kwargs = self._inputs(function, len(first), concrete_args or {})
            self._patch(patches, function)
            with self._modules_are_steps(patches):
                result = _all_by_position(function)(*first, *args, **kwargs)
        finally:
            patches.undo()
        self.graph.output(self.create_arg(result))
        return self.graph

    def _inputs(
        self, function: Any, skip: int, concrete: dict[str, Any]
    ) -> tuple[list[Any], dict[str, Any]]:
        """What to call the function with: proxies, and the values that are given."""
        parameters = list(inspect.signature(function).parameters.values())[skip:]
        stars: dict[Any, str] = {
            inspect.Parameter.VAR_POSITIONAL: "*",
            inspect.Parameter.VAR_KEYWORD: "**",
        }
        flat = any(parameter.kind in stars for parameter in parameters)
        if flat:  # as `_all_by_position` takes them
            parameters.sort(key=lambda parameter: parameter.kind in stars)
        args: list[Any] = []
        kwargs: dict[str, Any] = {}
        given = dict(concrete)
        for parameter in parameters:
            name = parameter.name
            default = () if parameter.default is parameter.empty else (parameter.default,)
            target = stars.get(parameter.kind, "") + name
            value: Any = self.create_proxy("placeholder", target, default, {})
            if name in given:
                value = self._specialised(value, name, given.pop(name))
            if parameter.kind is parameter.KEYWORD_ONLY and not flat:
                kwargs[name] = value
            else:
                args.append(value)
        if given:
            raise TypeError(f"trace(): the function has no arguments {', '.join(given)}")
        return args, kwargs

    def _specialised(self, proxy: Proxy, name: str, value: Any) -> Any:
        """A value in place of an input, which the graph checks to be that."""
        message = f"{name} has been specialized to have value {value} but got another value"
        if isinstance(value, bool | int | float | str):
            same = proxy == value
            self.create_proxy("call_function", _assert, (same, message), {})
        return value

    def _record_parameters(self, patches: _Patches) -> None:
        """Have modules read their parameters as steps."""
        for module in self.root.modules():
            for name, parameter in list(module._parameters.items()):
                if parameter is not None:
                    path = self._paths[id(parameter)]
                    proxy = ParameterProxy(self, path, parameter)
                    patches.set(vars(module), name, proxy)

    def _patch(self, patches: _Patches, function: Any) -> None:
        """Record calls of functions that are single steps."""
        for table, name in _wrapped:
            value = table.get(name, getattr(__import__("builtins"), name, None))
            if value is not None:
                patches.set(table, name, _recording(value))
        for module in self._modules_of:
            patches.wrap_all(vars(module), self._functions)
        patches.wrap_all(getattr(function, "__globals__", {}), self._functions)

    @contextlib.contextmanager
    def _modules_are_steps(self, patches: _Patches) -> Iterator[None]:
        tracer = self

        def called(module: nn.Module, *args: Any, **kwargs: Any) -> Any:
            patches.wrap_all(getattr(type(module).forward, "__globals__", {}), tracer._functions)

            def forward(*args: Any, **kwargs: Any) -> Any:
                return original(module, *args, **kwargs)

            return tracer.call_module(module, forward, args, kwargs)

        original, outer = nn.Module.__call__, vars(nn.Module).get("__call__")
        nn.Module.__call__ = called  # type: ignore[assignment]
        try:
            yield
        finally:
            if outer is None:
                del nn.Module.__call__
            else:  # a tracer within a tracer
                nn.Module.__call__ = outer  # type: ignore[method-assign]


def _all_by_position(function: Any) -> Any:
    """A function that takes what ``*args`` and ``**kwargs`` hold as two values more."""
    code = getattr(function, "__code__", None)
    starred = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS
    if code is None or not code.co_flags & starred:
        return function
    count = code.co_argcount + code.co_kwonlyargcount
    count += bool(code.co_flags & inspect.CO_VARARGS) + bool(code.co_flags & inspect.CO_VARKEYWORDS)
    flat = code.replace(
        co_argcount=count,
        co_kwonlyargcount=0,
        co_posonlyargcount=0,
        co_flags=code.co_flags & ~starred,
    )
    made = types.FunctionType(
        flat, function.__globals__, function.__name__, None, function.__closure__
    )
    made.__kwdefaults__ = None
    return made


def symbolic_trace(
    root: nn.Module | Callable[..., Any], concrete_args: dict[str, Any] | None = None
) -> GraphModule:
    """The graph of what a module or a function does, as a module.

    The function is run once, with proxies. What depends on the values of tensors cannot be
    recorded; loops and conditions that do not are unrolled.

    Args:
        root: a module or a function.
        concrete_args: values of arguments that are not recorded.

    Raises:
        TraceError: what happens depends on values of tensors.

    >>> from taeda import fx
    >>> class Residual(taeda.nn.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.layer = taeda.nn.Linear(3, 3)
    ...
    ...     def forward(self, x):
    ...         return x + self.layer(x).relu()
    >>> print(fx.symbolic_trace(Residual()).code)
    def forward(self, x):
        layer = self.layer(x)
        relu = layer.relu();  layer = None
        add = x + relu;  x = relu = None
        return add
    """
    tracer = Tracer()
    graph = tracer.trace(root, concrete_args)
    name = type(root).__name__ if isinstance(root, nn.Module) else root.__name__
    return GraphModule(tracer.root, graph, name)
