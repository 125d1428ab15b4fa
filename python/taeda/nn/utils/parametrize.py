"""Parameters that are computed from others each time they are read.

`register_parametrization(layer, "weight", module)` makes `layer.weight` the output of `module` for
the tensor that was the weight, which is now trained as `layer.parametrizations.weight.original`.
"""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Iterator, Sequence
from typing import Any

import taeda
from taeda._C import Tensor
from taeda.nn.module import Module
from taeda.nn.modules.container import ModuleDict, ModuleList
from taeda.nn.parameter import Parameter

__all__ = [
    "ParametrizationList",
    "cached",
    "is_parametrized",
    "register_parametrization",
    "remove_parametrizations",
    "transfer_parametrizations_and_params",
    "type_before_parametrizations",
]

_cache: dict[tuple[int, str], Tensor] = {}
_cache_depth = 0


@contextlib.contextmanager
def cached() -> Iterator[None]:
    """Within this context, compute each parametrized tensor once and then reuse it.

    For layers whose weight is read many times in a forward, such as recurrent cells.

    >>> layer = taeda.nn.utils.parametrizations.weight_norm(taeda.nn.Linear(2, 2))
    >>> with taeda.nn.utils.parametrize.cached():
    ...     layer.weight is layer.weight
    True
    """
    global _cache_depth
    _cache_depth += 1
    try:
        yield
    finally:
        _cache_depth -= 1
        if not _cache_depth:
            _cache.clear()


class ParametrizationList(ModuleList):
    """The parametrizations of one tensor, and what they compute it from.

    Args:
        modules: one or more modules; each is applied to the output of the one before. Their
            `right_inverse`, where they have one, is applied to `original`, in reverse order, for
            the tensors that are trained.
        original: the parameter or buffer.
        unsafe: do not check that the shape and the dtype stay as they are.

    Attributes:
        original: what the first module is applied to; or, where its `right_inverse` returned
            several tensors, `original0`, `original1` and so on.
        is_tensor: whether there is one original.
        ntensors: how many originals there are.
    """

    original: Tensor

    def __init__(self, modules: Sequence[Module], original: Tensor, unsafe: bool = False) -> None:
        if not modules:
            raise ValueError("ParametrizationList requires one or more modules.")
        super().__init__(modules)
        self.unsafe = unsafe
        shape, dtype, before = original.shape, original.dtype, original.data
        with taeda.no_grad():
            new: Any = original
            for module in reversed(self):
                if hasattr(module, "right_inverse"):
                    with contextlib.suppress(NotImplementedError):
                        new = module.right_inverse(new)
        if not isinstance(new, (Tensor, Sequence)):
            raise ValueError(
                "ParametrizationList: 'right_inverse' must return a Tensor or a Sequence of "
                f"tensors (list, tuple...). Got {type(new).__name__}"
            )
        self.is_tensor = isinstance(new, Tensor)
        self.ntensors = 1 if isinstance(new, Tensor) else len(new)
        if isinstance(new, Tensor):
            self._check_dtype(dtype, new)
            with taeda.no_grad():
                original.data = new  # the same object, so that an optimizer keeps hold of it
            _register(self, original, "original")
        else:
            for i, part in enumerate(new):
                if not isinstance(part, Tensor):
                    raise ValueError(
                        "ParametrizationList: 'right_inverse' must return a Tensor or a Sequence "
                        f"of tensors (list, tuple...). Got element {i} of the sequence with type "
                        f"{type(part).__name__}."
                    )
                if isinstance(original, Parameter):
                    part = Parameter(part, original.requires_grad)
                _register(self, part.requires_grad_(original.requires_grad), f"original{i}")
        if not unsafe:
            try:
                self._check_result(self(), shape, dtype)
            except Exception:
                original.data = before
                raise

    @staticmethod
    def _check_dtype(dtype: Any, new: Tensor) -> None:
        if new.dtype != dtype:
            raise ValueError(
                "ParametrizationList: When `right_inverse` outputs one tensor, it may not change "
                f"the dtype.\noriginal.dtype: {dtype}\nright_inverse(original).dtype: {new.dtype}"
            )

    @staticmethod
    def _check_result(result: Any, shape: Any, dtype: Any) -> None:
        if not isinstance(result, Tensor):
            raise ValueError(
                "ParametrizationList: A parametrization must return a tensor. Got "
                f"{type(result).__name__}."
            )
        for what, before, after in (("dtype", dtype, result.dtype), ("shape", shape, result.shape)):
            if before != after:
                raise ValueError(
                    f"ParametrizationList: Registering a parametrization may not change the {what} "
                    f"of the tensor, unless `unsafe` flag is enabled.\nunparametrized {what}: "
                    f"{before}\nparametrized {what}: {after}"
                )

    def originals(self) -> list[Tensor]:
        """Return the tensors that the parametrized one is computed from."""
        if self.is_tensor:
            return [self.original]
        return [getattr(self, f"original{i}") for i in range(self.ntensors)]

    def right_inverse(self, value: Tensor) -> None:
        """Set the originals so that the parametrized tensor becomes `value`, or near it.

        Raises:
            RuntimeError: a parametrization has no `right_inverse`.
            ValueError: what it returned is no tensor, or not as many as there are originals.
        """
        with taeda.no_grad():
            new: Any = value
            for module in reversed(self):
                if not hasattr(module, "right_inverse"):
                    raise RuntimeError(
                        f"ParametrizationList: parametrization {type(module).__name__} does not "
                        "implement right_inverse."
                    )
                new = module.right_inverse(new)
            parts = [new] if isinstance(new, Tensor) else new
            if not isinstance(parts, Sequence) or len(parts) != self.ntensors:
                raise ValueError(
                    "ParametrizationList: right_inverse must return as many tensors as the "
                    f"parametrization is computed from ({self.ntensors})"
                )
            for original, part in zip(self.originals(), parts, strict=True):
                if not isinstance(part, Tensor) or part.dtype != original.dtype:
                    raise ValueError(
                        "ParametrizationList: The tensors returned by `right_inverse` must have "
                        f"the dtype {original.dtype} of the originals, got {part}"
                    )
            for original, part in zip(self.originals(), parts, strict=True):
                original.data = part.detach().clone() if part is value else part.detach()

    def forward(self) -> Tensor:
        """Compute the parametrized tensor."""
        result = self[0](*self.originals())
        for module in list(self)[1:]:
            result = module(result)
        return result


def _register(module: Module, tensor: Tensor, name: str) -> None:
    if isinstance(tensor, Parameter):
        module.register_parameter(name, tensor)
    else:
        module.register_buffer(name, tensor)


def _parametrized_class(cls: type, names: Sequence[str]) -> type:
    """A subclass of a module's class in which `names` are properties."""

    def reduce(self: Any, protocol: int) -> Any:
        return _restore, (cls, tuple(self.parametrizations)), self.__dict__

    members = {"__reduce_ex__": reduce, **{name: _property(name) for name in names}}
    return type(f"Parametrized{cls.__name__}", (cls,), members)


def _property(name: str) -> property:
    """Reads the tensor through its parametrizations, and sets it through their inverses."""

    def compute(self: Any) -> Tensor:
        if not _cache_depth:
            return self.parametrizations[name]()
        key = (id(self), name)
        if key not in _cache:
            _cache[key] = self.parametrizations[name]()
        return _cache[key]

    def assign(self: Any, value: Tensor) -> None:
        self.parametrizations[name].right_inverse(value)
        _cache.pop((id(self), name), None)

    return property(compute, assign)


def _restore(cls: type, names: tuple[str, ...]) -> Any:
    """Create a copied or unpickled parametrized module."""
    new: Any = _parametrized_class(cls, names)
    return new.__new__(new)


def _parametrizations(module: Any) -> Any:
    """The ParametrizationLists of a parametrized module, by the tensor's name."""
    return module.parametrizations


def register_parametrization(
    module: Module, tensor_name: str, parametrization: Module, *, unsafe: bool = False
) -> Module:
    """Compute a tensor of a module from now on by a parametrization.

    Args:
        module: the module; its class becomes a subclass named `Parametrized...`.
        tensor_name: the name of a parameter, of a buffer, or of what is parametrized already,
            where this one is applied to the result of the others.
        parametrization: a module from the trained tensor to the one that is used. If it has a
            method `right_inverse`, assigning to the attribute sets the trained tensor through it;
            it may return several tensors, which are then given to `forward`.
        unsafe: do not check that the shape and the dtype stay as they are.

    Returns:
        `module`.

    Raises:
        ValueError: there is no such tensor, or its shape or dtype would change.

    >>> class Positive(taeda.nn.Module):
    ...     def forward(self, x):
    ...         return x.exp()
    >>> layer = taeda.nn.Linear(2, 1)
    >>> _ = taeda.nn.utils.parametrize.register_parametrization(layer, "weight", Positive())
    >>> bool((layer.weight > 0).all()), list(layer.state_dict())
    (True, ['bias', 'parametrizations.weight.original'])
    """
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        known = _parametrizations(module)[tensor_name]
        if not unsafe:
            before = getattr(module, tensor_name)
            after = parametrization(before)
            ParametrizationList._check_result(after, before.shape, before.dtype)
            if hasattr(parametrization, "right_inverse"):
                with contextlib.suppress(NotImplementedError):
                    back = parametrization.right_inverse(after)
                    ParametrizationList._check_result(back, before.shape, before.dtype)
        known.append(parametrization)
        known.unsafe |= unsafe
        return module
    original: Tensor | None = module._parameters.get(tensor_name)
    if original is None:
        original = module._buffers.get(tensor_name)
    if original is None:
        raise ValueError(
            f"register_parametrization: Module '{module}' does not have a parameter, a buffer, or "
            f"a parametrized element with name '{tensor_name}'"
        )
    made = ParametrizationList([parametrization], original, unsafe=unsafe)
    delattr(module, tensor_name)
    if not is_parametrized(module):
        module.__class__ = _parametrized_class(type(module), ())
        module.add_module("parametrizations", ModuleDict())
    setattr(type(module), tensor_name, _property(tensor_name))
    _parametrizations(module)[tensor_name] = made
    return module


def is_parametrized(module: Module, tensor_name: str | None = None) -> bool:
    """Whether a module has a parametrized tensor, or a certain one."""
    known = getattr(module, "parametrizations", None)
    if not isinstance(known, ModuleDict):
        return False
    return len(known) > 0 if tensor_name is None else tensor_name in known


def remove_parametrizations(
    module: Module, tensor_name: str, leave_parametrized: bool = True
) -> Module:
    """Make a parametrized tensor an ordinary parameter or buffer again.

    Args:
        module: the module.
        tensor_name: which tensor.
        leave_parametrized: keep its value; otherwise it gets that of the original, of which there
            must then be one.

    Returns:
        `module`.

    Raises:
        ValueError: the tensor is not parametrized, or there are several originals to return to.
    """
    if not is_parametrized(module, tensor_name):
        raise ValueError(
            f"remove_parametrizations: Module {module} does not have a parametrization on "
            f"{tensor_name}"
        )
    lists = _parametrizations(module)
    known = lists[tensor_name]
    if not known.is_tensor and not leave_parametrized:
        raise ValueError(
            "remove_parametrizations: Cannot leave unparametrized (`leave_parametrized=False`) a "
            "tensor that is parametrized in terms of a sequence of tensors."
        )
    with taeda.no_grad():
        value = getattr(module, tensor_name)
    if known.is_tensor:
        original = known.original
        if leave_parametrized:
            original.data = value
    else:
        wanted = any(part.requires_grad for part in known.originals())
        original = Parameter(value) if wanted else value
    delattr(type(module), tensor_name)
    del lists[tensor_name]
    if not len(lists):
        delattr(module, "parametrizations")
        module.__class__ = type(module).__bases__[0]
    _register(module, original, tensor_name)
    return module


def type_before_parametrizations(module: Module) -> type:
    """Return the class that a module had before it was parametrized."""
    return type(module).__bases__[0] if is_parametrized(module) else type(module)


def transfer_parametrizations_and_params(
    from_module: Module, to_module: Module, tensor_name: str | None = None
) -> Module:
    """Parametrize the tensors of one module as those of another are, and copy their originals.

    Args:
        from_module: a module with parametrizations.
        to_module: the module to change; tensors that it lacks are added to it.
        tensor_name: only this one; by default all.

    Returns:
        `to_module`.
    """
    if not is_parametrized(from_module, tensor_name):
        raise ValueError(
            f"transfer_parametrizations_and_params: {type(from_module).__name__} has no "
            f"parametrization{'' if tensor_name is None else ' on ' + tensor_name}"
        )
    names = list(_parametrizations(from_module)) if tensor_name is None else [tensor_name]
    for name in names:
        source = _parametrizations(from_module)[name]
        if not hasattr(to_module, name):
            with taeda.no_grad():
                value = getattr(from_module, name).clone()
            wanted = source.originals()[0].requires_grad
            setattr(to_module, name, Parameter(value, wanted))
        for parametrization in source:
            made = copy.deepcopy(parametrization)
            register_parametrization(to_module, name, made, unsafe=source.unsafe)
        target = _parametrizations(to_module)[name]
        for theirs, ours in zip(source.originals(), target.originals(), strict=True):
            ours.data = theirs.detach().clone()
    return to_module
