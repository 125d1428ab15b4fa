"""Networks as functions of their parameters: ``factory``, and the models that it makes."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import taeda
from taeda import _C
from taeda._C import Tensor
from taeda.functional._initialisation import (
    initialised,
    with_memory,
    with_tensors,
    without_values,
)
from taeda.functional._parameters import Parameters, version_of
from taeda.nn import Module
from taeda.nn._members import Members
from taeda.random import fork_rng, manual_seed

__all__ = ["Factory", "Model", "factory"]


class Factory:
    """Makes models of one architecture from parameters; holds no parameters itself.

    ``factory(parameters)`` is a ``Model``: the network with these parameters. See ``factory``.

    Attributes:
        names: the parameters' names; one that several layers share has its first.
        buffer_names: the buffers' names, such as ``"1.running_mean"``.
        frozen: names of parameters that the network's maker has frozen, by ``requires_grad``.
    """

    def __init__(self, make: Callable[..., Module], args: Any, kwargs: Any) -> None:
        if isinstance(make, Module):
            if args or kwargs:
                raise TypeError(
                    "factory: arguments are for a class or a function that makes the network, but "
                    f"a {type(make).__name__} that is already made was given"
                )
            module: Any = make
            self._make = None
        elif callable(make):
            self._make = lambda: make(*args, **kwargs)
            module = self._made(None, keep_stream=True)
        else:
            raise TypeError(
                "factory: expected a Module, or a class or function that makes one, got "
                f"{type(make).__name__}"
            )
        buffers = {name: b.detach().clone() for name, b in module.named_buffers()}
        self._buffers = Parameters._of(buffers)
        self._module = without_values(module)
        self._lock = threading.RLock()
        self._places = _places(self._module)
        self._slots = _slots(self._places)
        self.names = tuple(name for name, _ in module.named_parameters())
        self.buffer_names = tuple(buffers)
        self.frozen = frozenset(n for n, p in module.named_parameters() if not p.requires_grad)

    def __repr__(self) -> str:
        return f"Factory({self._module!r})"

    # ---- parameters and buffers to begin with ---------------------------------------------------

    def init(self, seed: int | None = None) -> Parameters:
        """New parameters, initialised at random.

        Args:
            seed: which ones; the same as those of the network made after ``manual_seed(seed)``, and
                the default stream is left as it is. None draws from the default stream.

        Raises:
            ValueError: the factory was given a finished network with parameters that none of its
                layers' ``reset_parameters()`` sets.
        """
        return self._drawn(seed)[0]

    def buffers(self, seed: int | None = None) -> Parameters:
        """The buffers to begin with, such as the running statistics of batch normalisation.

        Args:
            seed: the buffers that belong to ``init(seed)``. None gives those of the network that
                the factory was made with: of a trained one, its statistics.
        """
        return self._buffers.clone() if seed is None else self._drawn(seed)[1]

    def _made(self, seed: int | None, keep_stream: bool) -> Module:
        assert self._make is not None
        with fork_rng(enabled=keep_stream):
            if seed is not None:
                manual_seed(seed)
            module = self._make()
        if not isinstance(module, Module):
            raise TypeError(f"factory: expected a Module to be made, got {type(module).__name__}")
        return module

    def _drawn(self, seed: int | None) -> tuple[Parameters, Parameters]:
        keep_stream = seed is not None
        if self._make is not None:
            module = self._made(seed, keep_stream)
        else:
            with fork_rng(enabled=keep_stream):
                if seed is not None:
                    manual_seed(seed)
                module = initialised(self._module, self._buffers)
        return (
            Parameters._of({name: p.detach() for name, p in module.named_parameters()}),
            Parameters._of({name: b.detach() for name, b in module.named_buffers()}),
        )

    # ---- models ---------------------------------------------------------------------------------

    def __call__(
        self,
        parameters: Mapping[str, Tensor],
        buffers: Mapping[str, Tensor] | None = None,
        *,
        training: bool | None = None,
        seed: int | None = None,
    ) -> Model:
        """The network with these parameters.

        Args:
            parameters: as ``init`` or an optimizer's step gives, or any mapping of those names.
            buffers: as ``buffers()`` or an earlier model's ``.buffers``; needed where the network
                has any.
            training: whether in training mode; None leaves each layer in the mode that it was in
                when the factory was made.
            seed: what each call draws its random numbers from, as for dropout, so that it is a
                function of its arguments alone. None draws from the default stream.

        Raises:
            ValueError: names are missing or unknown.
        """
        return Model(self, parameters, buffers, training, seed)

    def apply(
        self,
        parameters: Mapping[str, Tensor],
        buffers: Mapping[str, Tensor] | None,
        *args: Any,
        training: bool | None = None,
        seed: int | None = None,
        **kwargs: Any,
    ) -> tuple[Any, Parameters]:
        """The network's output and its buffers afterwards, as a function without side effects.

        The tensors are used as they are: this is the form to transform by ``taeda.func``.

        >>> net = taeda.functional.factory(taeda.nn.Linear(2, 1))
        >>> loss = lambda p, x: net.apply(p, None, x)[0].sum()
        >>> parameters = net.init(0)
        >>> taeda.func.grad(loss)(parameters, taeda.tensor([1.0, 2.0]))["weight"]
        tensor([[1., 2.]])
        """
        given = self._checked(parameters, self.names, "parameters")
        own = self._checked_buffers(buffers)
        return self._run(lambda module: module(*args, **kwargs), given, own, training, seed)

    def _checked(self, given: Mapping[str, Any], names: tuple[str, ...], what: str) -> Any:
        if isinstance(given, Parameters):
            given._unchanged("factory")
            given = given._tensors
        if not isinstance(given, Mapping):
            raise TypeError(f"factory: {what} must be a mapping, got {type(given).__name__}")
        if tuple(given) != names and given.keys() != set(names):
            missing = [name for name in names if name not in given]
            extra = [name for name in given if name not in names]
            raise ValueError(
                f"factory: the {what} are not this network's: missing are {missing}, unknown "
                f"{extra}"
            )
        return given

    def _checked_buffers(self, buffers: Mapping[str, Any] | None) -> Parameters:
        if buffers is None:
            if self.buffer_names:
                raise ValueError(
                    f"factory: the network has the buffers {list(self.buffer_names)}; pass them, "
                    "as in factory(parameters, buffers): factory.buffers() gives the first ones, "
                    "model.buffers those after a model's calls"
                )
            return self._buffers
        self._checked(buffers, self.buffer_names, "buffers")
        return buffers if isinstance(buffers, Parameters) else Parameters(buffers)

    def _run(
        self,
        function: Callable[[Module], Any],
        parameters: Mapping[str, Tensor],
        buffers: Parameters,
        training: bool | None,
        seed: int | None,
    ) -> tuple[Any, Parameters]:
        """Call a function of the module, in which these tensors are for as long."""
        if training is not None or seed is not None:
            with self._lock, contextlib.ExitStack() as stack:
                if training is not None:
                    stack.enter_context(_in_mode(self._module, training))
                if seed is not None:
                    stack.enter_context(fork_rng())
                    manual_seed(seed)
                return self._run(function, parameters, buffers, None, None)
        if not self.buffer_names:
            return self._placed(function, parameters)[0], buffers
        # Layers update buffers in place; what they get is a copy.
        copies = {name: tensor.clone() for name, tensor in buffers._all.items()}
        versions = [version_of(tensor) for tensor in copies.values()]
        result, after = self._placed(function, {**parameters, **copies})
        changed = {
            name: after[name]
            for name, version in zip(copies, versions, strict=True)
            if version is None
            or after[name] is not copies[name]
            or version_of(copies[name]) != version
        }
        return result, buffers | Parameters._of(changed) if changed else buffers

    def _placed(
        self, function: Callable[[Module], Any], tensors: Mapping[str, Tensor]
    ) -> tuple[Any, dict[str, Tensor]]:
        """Call a function of the module with these tensors in it; its result, and the buffers."""
        slots, put = self._slots, dict.__setitem__
        with self._lock:
            before = [table[key] for _, table, _, key in slots]
            try:
                # As table[key] = tensor for each, without the call of a Python method.
                for name, table, attributes, key in slots:
                    tensor = tensors[name]
                    put(table, key, tensor)
                    attributes[key] = tensor
                result = function(self._module)
                first = {name: self._places[name][0] for name in self.buffer_names}
                return result, {name: table[key] for name, (table, key) in first.items()}
            finally:
                for (_, table, attributes, key), tensor in zip(slots, before, strict=True):
                    put(table, key, tensor)
                    attributes[key] = tensor


class Model:
    """A network with certain parameters, made by a factory. Calling it runs the network.

    Nothing that it does changes its parameters. The only thing that a call leaves behind is the
    value of ``buffers``, where the network has any that its layers update.

    Attributes:
        parameters: what it was made with.
        buffers: those it was made with, as updated by its calls so far.
    """

    def __init__(
        self,
        maker: Factory,
        parameters: Mapping[str, Tensor],
        buffers: Mapping[str, Tensor] | None,
        training: bool | None,
        seed: int | None,
    ) -> None:
        self._factory = maker
        given = maker._checked(parameters, maker.names, "parameters")
        self.parameters = (
            parameters if isinstance(parameters, Parameters) else Parameters._of(dict(given), True)
        )
        self.buffers = maker._checked_buffers(buffers)
        self._training = training
        self._seed = seed
        self._inputs: dict[str, Tensor] | None = None

    def __repr__(self) -> str:
        return f"Model({self._factory._module!r}, {self.parameters!r})"

    def _used(self) -> dict[str, Tensor]:
        """The tensors that the network computes with: where gradients are wanted, leaves."""
        self.parameters._unchanged("model")
        if self._inputs is None:
            self._inputs = _as_leaves(self.parameters._all, self._factory.frozen)
        return self._inputs

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The network's output."""
        result, self.buffers = self._factory._run(
            lambda module: module(*args, **kwargs),
            self._used(),
            self.buffers,
            self._training,
            self._seed,
        )
        return result

    def backward(
        self,
        loss: Tensor,
        *,
        zeros: bool = False,
        retain_graph: bool = False,
        create_graph: bool = False,
    ) -> Parameters:
        """The gradient of a loss that was computed from this model's outputs.

        Args:
            loss: a tensor of one element.
            zeros: have zeros for parameters that the loss does not depend on. By default the
                gradient lacks their names, and optimizers leave them as they are.
            retain_graph: keep what the graph has saved, for another ``backward``.
            create_graph: let the gradient itself be differentiated.

        Raises:
            RuntimeError: the loss depends on none of the parameters.
        """
        used = self._used() if self._inputs is None else self._inputs
        inputs = {name: tensor for name, tensor in used.items() if tensor.requires_grad}
        found: tuple[Any, ...] = ()
        if loss.requires_grad and inputs:
            # A network may run parts of its forward again in backward, to save memory.
            found, self.buffers = self._factory._run(
                lambda _: taeda.autograd.grad(
                    loss,
                    tuple(inputs.values()),
                    retain_graph=retain_graph or create_graph,
                    create_graph=create_graph,
                    allow_unused=True,
                ),
                used,
                self.buffers,
                self._training,
                None,
            )
        gradients = {
            name: gradient
            for name, gradient in zip(inputs, found, strict=False)
            if gradient is not None
        }
        if not gradients:
            raise RuntimeError(
                "model.backward: the loss depends on none of this model's parameters; compute it "
                "from what this same model returned, with gradients enabled"
            )
        if zeros:
            gradients = {
                name: gradients[name] if name in gradients else taeda.zeros_like(tensor)
                for name, tensor in inputs.items()
            }
        return Parameters._of(gradients)

    def train(self, mode: bool = True) -> Model:
        """The same model in training mode, or out of it."""
        return Model(self._factory, self.parameters, self.buffers, mode, self._seed)

    def eval(self) -> Model:
        """The same model in evaluation mode."""
        return self.train(False)

    def module(self, *, shared: bool = False) -> Module:
        """An ordinary module with these parameters and buffers.

        Args:
            shared: False copies them. True has, for parameters, the very tensors that this model's
                outputs are computed from, for what looks at a module's part in a graph, such as
                ``taeda.explain``.
        """
        if shared:
            made = with_tensors(self._factory._module, {**self._used(), **self.buffers.clone()})
        else:
            made = with_memory(self._factory._module)
            (self.parameters | self.buffers).copy_to(made)
        return made if self._training is None else made.train(self._training)


def _as_leaves(tensors: Mapping[str, Tensor], frozen: frozenset[str]) -> dict[str, Tensor]:
    """Leaves of a graph with the memory of those that no transform is looking at already."""
    if _C._at_dual_level():
        return dict(tensors)
    return {
        name: tensor.detach().requires_grad_()
        if type(tensor) is Tensor
        and not tensor.requires_grad
        and name not in frozen
        and (tensor.is_floating_point() or tensor.is_complex())
        else tensor
        for name, tensor in tensors.items()
    }


def _slots(places: dict[str, Any]) -> list[tuple[str, dict[str, Any], dict[str, Any], str]]:
    """The same as a list, each with the dictionary where a member is an attribute of its module."""
    return [
        (name, table, table._attributes() if isinstance(table, Members) else {}, key)
        for name, found in places.items()
        for table, key in found
    ]


def _places(module: Module) -> dict[str, list[tuple[dict[str, Any], str]]]:
    """Where each parameter and buffer is, by the name that it has in `named_parameters()`."""
    names: dict[int, str] = {}
    places: dict[str, list[tuple[dict[str, Any], str]]] = {}
    for prefix, owner in module.named_modules(remove_duplicate=False):
        for table in (owner._parameters, owner._buffers):
            for key, value in table.items():
                if value is None:
                    continue
                name = names.setdefault(id(value), f"{prefix}.{key}" if prefix else key)
                found = places.setdefault(name, [])
                if not any(table is other and key == k for other, k in found):
                    found.append((table, key))
    return places


@contextlib.contextmanager
def _in_mode(module: Module, training: bool) -> Iterator[None]:
    before = [(child, child.training) for child in module.modules()]
    try:
        for child, _ in before:
            child.training = training
        yield
    finally:
        for child, mode in before:
            child.training = mode


def factory(make: Module | Callable[..., Module], *args: Any, **kwargs: Any) -> Factory:
    """A network as a function of its parameters.

    Args:
        make: a class or a function that makes the network, or a finished one. A finished network is
            left alone; of it, ``init`` initialises each layer anew by its ``reset_parameters()``,
            and does not know of anything else that was done to it.
        args, kwargs: what the class or function is called with.

    >>> import taeda
    >>> from taeda import nn
    >>> factory = taeda.functional.factory(
    ...     nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 1))
    ... )
    >>> optimizer = taeda.functional.optimizer(taeda.optim.SGD, lr=0.1)
    >>> parameters = factory.init(0)
    >>> state = optimizer.init(parameters)
    >>> x, y = taeda.ones(4, 2), taeda.zeros(4, 1)
    >>> for _ in range(20):
    ...     model = factory(parameters)
    ...     loss = nn.functional.mse_loss(model(x), y)
    ...     gradient = model.backward(loss)
    ...     parameters, state = optimizer.step(parameters, gradient, state)
    >>> loss.item() < 0.01
    True
    """
    return Factory(make, args, kwargs)
