"""Module: the base class of every layer, model and loss."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from taeda import _C
from taeda._C import Tensor
from taeda.nn._module import hooks as _hooks
from taeda.nn._module.calling import Calling, Signature
from taeda.nn._module.converting import Converting
from taeda.nn._module.finding import Finding
from taeda.nn._module.members import Members, Table
from taeda.nn._module.saving import Saving
from taeda.nn.parameter import Buffer, Parameter

if TYPE_CHECKING:
    from typing_extensions import Self


__all__ = ["Module"]

_TABLES = ("_parameters", "_buffers", "_modules")
_MISSING = object()


class Module(Calling, Finding, Saving, Converting):
    """Base class of layers, models and losses; write your own by subclassing it.

    Tensors wrapped in `Parameter`, and other Modules, become part of the module when they are
    assigned as attributes. They are ordinary attributes, and at the same time entries of the live
    dictionaries `_parameters`, `_buffers` and `_modules`.

    >>> class Scale(taeda.nn.Module):
    ...     def __init__(self, size):
    ...         super().__init__()
    ...         self.factor = taeda.nn.Parameter(taeda.ones(size))
    ...
    ...     def forward(self, x):
    ...         return self.factor * x
    >>> scale = Scale(3)
    >>> scale(taeda.full((3,), 2.0)).tolist()
    [2.0, 2.0, 2.0]
    >>> [name for name, _ in scale.named_parameters()]
    ['factor']

    Calling `super().__init__()` is a habit, not a need: the state is set up before `__init__`, so
    a subclass that forgets it, or that is a dataclass, works as well.

    Attributes:
        training: whether the module is in training mode; `train()` and `eval()` set it.
    """

    _parameters = Table()
    _buffers = Table()
    _modules = Table()
    training: bool
    call_super_init: bool = False
    __signature__ = Signature()
    # Whether members are found by `__getattr__` alone, as all are in PyTorch.
    _members_by_getattr: bool = False

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        find = getattr(cls, "__getattr__")  # noqa: B009 (hidden from type checkers)
        inherited = find is _getattr
        # A class whose `__getattr__` calls that of its base expects to be asked for members; one
        # with a `__setattr__` may keep what is no member in the tables.
        asks = not inherited and "__getattr__" in _names(find)
        if asks or cls.__setattr__ is not Module.__setattr__:
            cls._members_by_getattr = True
        plain = inherited and cls.__getattribute__ is object.__getattribute__
        if plain and not cls._members_by_getattr:
            _C._use_generic_getattr(cls)

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        make = super().__new__
        self = make(cls) if make is object.__new__ else make(cls, *args, **kwargs)
        if "_parameters" not in self.__dict__:
            self._set_up()
        return self

    def _set_up(self) -> None:
        owner = weakref.ref(self)
        state = self.__dict__
        state["training"] = True
        state["_parameters"] = Members(owner)
        state["_buffers"] = Members(owner)
        state["_non_persistent_buffers_set"] = set()
        state["_modules"] = Members(owner)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if self.call_super_init:
            super().__init__(*args, **kwargs)
        elif kwargs:
            name = type(self).__name__
            raise TypeError(
                f"{name}.__init__() got an unexpected keyword argument '{next(iter(kwargs))}'"
            )
        elif args:
            raise TypeError(
                f"{type(self).__name__}.__init__() takes 1 positional argument but "
                f"{len(args) + 1} were given"
            )

    # Attributes ---------------------------------------------------------------------------------

    if not TYPE_CHECKING:  # to a type checker, attributes are those that are declared

        def __getattr__(self, name: str) -> Any:
            """Find a member; called by name, and by classes with `_members_by_getattr`."""
            for table in _TABLES:
                members = self.__dict__.get(table, ())
                if name in members:
                    return members[name]
            raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __setattr__(self, name: str, value: Any) -> None:
        state = self.__dict__
        if "_parameters" not in state:  # another base's __new__ got here before ours
            self._set_up()
        if isinstance(value, Tensor):
            if isinstance(value, Parameter):
                self._check_free(name)
                self._check_name("parameter", name)
                self._leave_tables(name, keep="_parameters")
                if type(self).register_parameter is _register_parameter:
                    self._put_parameter(name, value)
                else:  # replaced by a subclass, or for all modules
                    self.register_parameter(name, value)
                return
            if isinstance(value, Buffer):
                self._check_free(name)
                self._check_name("buffer", name)
                self._leave_tables(name, keep="_buffers")
                if type(self).register_buffer is _register_buffer:
                    self._put_buffer(name, value, value.persistent)
                else:
                    self.register_buffer(name, value, value.persistent)
                return
        elif isinstance(value, Module) and name not in state["_parameters"]:
            self._check_free(name)
            self._leave_tables(name, keep="_modules")
            for hook in _hooks.on_module.values():
                replacement = hook(self, name, value)
                value = value if replacement is None else replacement
            state["_modules"][name] = value
            return
        if name in state["_parameters"]:
            if value is not None:
                raise TypeError(
                    f"{type(self).__name__}: cannot assign '{_type_name(value)}' as parameter "
                    f"'{name}' (taeda.nn.Parameter or None expected)"
                )
            state["_parameters"][name] = None
        elif name in state["_modules"]:
            if value is not None:
                raise TypeError(
                    f"{type(self).__name__}: cannot assign '{_type_name(value)}' as child module "
                    f"'{name}' (taeda.nn.Module or None expected)"
                )
            state["_modules"][name] = None
        elif name in state["_buffers"]:
            if value is not None and not isinstance(value, Tensor):
                raise TypeError(
                    f"{type(self).__name__}: cannot assign '{_type_name(value)}' as buffer "
                    f"'{name}' (taeda.nn.Buffer, taeda.Tensor or None expected)"
                )
            for hook in _hooks.on_buffer.values():
                replacement = hook(self, name, value)
                value = value if replacement is None else replacement
            state["_buffers"][name] = value
        else:
            object.__setattr__(self, name, value)
            if name in ("__dict__", "__class__"):
                self._bind_tables()

    def __delattr__(self, name: str) -> None:
        for table in _TABLES:
            if name in self.__dict__[table]:
                del self.__dict__[table][name]
                self._non_persistent_buffers_set.discard(name)
                return
        object.__delattr__(self, name)

    def _check_free(self, name: str) -> None:
        """Refuse a member's name that is one of the class's methods or properties."""
        if hasattr(getattr(type(self), name, None), "__get__"):
            raise KeyError(f"{type(self).__name__}: attribute '{name}' already exists")

    def _leave_tables(self, name: str, keep: str) -> None:
        """Before a member is registered in one table, remove one of that name from the others."""
        for table in _TABLES:
            if table != keep and name in self.__dict__[table]:
                del self.__dict__[table][name]
        if keep != "_buffers":
            self._non_persistent_buffers_set.discard(name)
        if name not in self.__dict__[keep]:
            self.__dict__.pop(name, None)

    def _bind_tables(self) -> None:
        """Make the tables this module's own after copying, unpickling, or changing its class."""
        state = self.__dict__
        owner = weakref.ref(self)
        for table in _TABLES:
            members = state.get(table, ())
            for name in members:
                state.pop(name, None)
            state[table] = Members(owner, members)
        state["_non_persistent_buffers_set"] = set(state.get("_non_persistent_buffers_set", ()))
        state.setdefault("training", True)

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._bind_tables()

    def __dir__(self) -> list[str]:
        # Children of containers have numbers as names; they are no use to completion.
        members = (name for table in _TABLES for name in self.__dict__.get(table, ()))
        return sorted(name for name in {*object.__dir__(self), *members} if not name[:1].isdigit())

    # Registration -------------------------------------------------------------------------------

    def _check_name(self, kind: str, name: Any) -> None:
        if not isinstance(name, str):
            raise TypeError(
                f"{type(self).__name__}: {kind} name should be a string. Got {_type_name(name)}"
            )
        if "." in name:
            raise KeyError(f'{type(self).__name__}: {kind} name can\'t contain ".", got: {name}')
        if name == "":
            raise KeyError(f'{type(self).__name__}: {kind} name can\'t be empty string ""')

    def _check_taken(self, name: str, table: dict[str, Any]) -> None:
        if name not in table and hasattr(self, name):
            raise KeyError(f"{type(self).__name__}: attribute '{name}' already exists")

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Add a parameter, as assigning it to an attribute does.

        Args:
            name: a free attribute name, without dots.
            param: a Parameter that is a leaf of the graph, or None to hold the name's place, as
                `bias=False` does: it is then no part of `state_dict`.

        Raises:
            KeyError: the name is taken, empty or has a dot.
            TypeError: `param` is something else.
        """
        self._check_name("parameter", name)
        self._check_taken(name, self._parameters)
        self._put_parameter(name, param)

    def _put_parameter(self, name: str, param: Parameter | None) -> None:
        if param is not None:
            if not isinstance(param, Parameter):
                raise TypeError(
                    f"{type(self).__name__}.register_parameter: cannot assign "
                    f"'{_type_name(param)}' object to parameter '{name}' (taeda.nn.Parameter or "
                    "None required)"
                )
            if param.grad_fn is not None:
                raise ValueError(
                    f"{type(self).__name__}.register_parameter: Cannot assign non-leaf Tensor to "
                    f"parameter '{name}'. Model parameters must be created explicitly. To express "
                    f"'{name}' as a function of another Tensor, compute the value in the forward() "
                    "method."
                )
            for hook in _hooks.on_parameter.values():
                replacement = hook(self, name, param)
                param = param if replacement is None else replacement
        self._parameters[name] = param

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Add a tensor that belongs to the module but is not trained, such as a running mean.

        Args:
            name: a free attribute name, without dots.
            tensor: the buffer, or None to hold the name's place.
            persistent: whether it is part of `state_dict`.

        Raises:
            KeyError: the name is taken, empty or has a dot.
            TypeError: `tensor` is neither a tensor nor None.
        """
        self._check_name("buffer", name)
        self._check_taken(name, self._buffers)
        if tensor is not None and not isinstance(tensor, Tensor):
            raise TypeError(
                f"{type(self).__name__}.register_buffer: cannot assign '{_type_name(tensor)}' "
                f"object to buffer '{name}' (Tensor or None required)"
            )
        self._put_buffer(name, tensor, persistent)

    def _put_buffer(self, name: str, tensor: Tensor | None, persistent: bool) -> None:
        for hook in _hooks.on_buffer.values():
            replacement = hook(self, name, tensor)
            tensor = tensor if replacement is None else replacement
        self._buffers[name] = tensor
        if persistent:
            self._non_persistent_buffers_set.discard(name)
        else:
            self._non_persistent_buffers_set.add(name)

    def add_module(self, name: str, module: Module | None) -> None:
        """Add a submodule, as assigning it to an attribute does.

        Raises:
            KeyError: the name is taken, empty or has a dot.
            TypeError: `module` is neither a Module nor None.
        """
        if module is not None and not isinstance(module, Module):
            raise TypeError(
                f"{type(self).__name__}.add_module: cannot add '{name}': {_type_name(module)} is "
                "not a Module subclass"
            )
        self._check_name("module", name)
        self._check_taken(name, self._modules)
        for hook in _hooks.on_module.values():
            replacement = hook(self, name, module)
            module = module if replacement is None else replacement
        self._modules[name] = module

    def register_module(self, name: str, module: Module | None) -> None:
        """The same as `add_module`."""
        self.add_module(name, module)

    # Modes --------------------------------------------------------------------------------------

    def apply(self, fn: Callable[[Module], Any]) -> Self:
        """Call `fn` with every module, children before their parents, and return this module.

        >>> def zero(module):
        ...     if isinstance(module, taeda.nn.Linear):
        ...         taeda.nn.init.zeros_(module.weight)
        >>> model = taeda.nn.Sequential(taeda.nn.Linear(2, 2)).apply(zero)
        """
        if not callable(fn):
            raise TypeError(
                f"{type(self).__name__}.apply: fn: '{type(fn).__name__}' object is not callable"
            )
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    def train(self, mode: bool = True) -> Self:
        """Set training mode, here and below; dropout and batch normalisation heed it."""
        if not isinstance(mode, bool):
            raise ValueError(
                f"{type(self).__name__}.train: training mode is expected to be boolean, got "
                f"{mode!r}"
            )
        self.training = mode
        for module in self.children():
            module.train(mode)
        return self

    def eval(self) -> Self:
        """Set evaluation mode, here and below: the same as `train(False)`."""
        return self.train(False)

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Set whether gradients are recorded for every parameter."""
        for parameter in self.parameters():
            parameter.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients of every parameter, or with `set_to_none=False`, make them zero."""
        for parameter in self.parameters():
            if parameter.grad is None:
                continue
            if set_to_none:
                parameter.grad = None
            else:
                grad = parameter.grad
                if grad.grad_fn is not None:
                    grad.detach_()
                else:
                    grad.requires_grad_(False)
                grad.zero_()

    # Printing -----------------------------------------------------------------------------------

    def _get_name(self) -> str:
        return type(self).__name__

    def extra_repr(self) -> str:
        """Return what the repr shows between the brackets; override it in a subclass."""
        return ""

    def __repr__(self) -> str:
        extra = self.extra_repr()
        scheme = self.__dict__.get("_init_scheme")
        if scheme is not None and any(p is not None for p in self._parameters.values()):
            extra = f"{extra}, init={scheme!r}" if extra else f"init={scheme!r}"
        extra_lines = extra.split("\n") if extra else []
        children = [
            f"({name}): " + repr(module).replace("\n", "\n  ")
            for name, module in self._modules.items()
        ]
        if not children and len(extra_lines) <= 1:
            return f"{self._get_name()}({extra})"
        return f"{self._get_name()}(\n  " + "\n  ".join([*extra_lines, *children]) + "\n)"

    def _repr_html_(self) -> str:
        from taeda._display import module_html

        return module_html(self)


def _type_name(value: Any) -> str:
    return type(value).__name__


def _names(function: Any) -> tuple[str, ...]:
    """The names that a function's code reads: attributes, and what is no local variable."""
    code = getattr(function, "__code__", None)
    return () if code is None else code.co_names


_register_parameter, _register_buffer = Module.register_parameter, Module.register_buffer
_getattr = getattr(Module, "__getattr__")  # noqa: B009
# Members are ordinary attributes, so that reading one need not look for a `__getattr__`.
_C._use_generic_getattr(Module)
