"""Networks as functions of their parameters: ``factory``, and the models that it makes."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import taeda
from taeda import _C
from taeda._C import Tensor
from taeda.autograd._run import gradients_of
from taeda.functional._initialisation import (
    initialised,
    with_memory,
    with_tensors,
    without_values,
)
from taeda.functional._module_slots import ModuleSlots
from taeda.functional._parameters import Parameters, version_of
from taeda.nn import Module
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
        self.names = tuple(name for name, _ in module.named_parameters())
        self.buffer_names = tuple(buffers)
        self._slots = ModuleSlots(without_values(module), self.buffer_names)
        self._waiting: set[int] = set()  # models that have not run yet
        self.frozen = frozenset(n for n, p in module.named_parameters() if not p.requires_grad)

    def __repr__(self) -> str:
        return f"Factory({self._slots.module!r})"

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
                module = initialised(self._slots.emptied(), self._buffers)
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
        given = given if type(given) is dict else dict(given)
        own = self._checked_buffers(buffers)
        return self._run(
            self._slots.run_alone,
            lambda module: module(*args, **kwargs),
            given,
            own,
            training,
            seed,
        )

    def _own(self, parameters: Mapping[str, Tensor]) -> Parameters:
        """The parameters of a model: those given, found to be this network's."""
        given = self._checked(parameters, self.names, "parameters")
        if not isinstance(parameters, Parameters):
            return Parameters._of(dict(given), True)
        if tuple(given) == self.names:
            parameters._fits = self.names
        return parameters

    def _checked(self, given: Mapping[str, Any], names: tuple[str, ...], what: str) -> Any:
        if isinstance(given, Parameters):
            given._unchanged("factory")
            given = given._tensors
        elif not isinstance(given, Mapping):
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
        runner: Callable[[Callable[[Module], Any], dict[str, Tensor]], Any],
        function: Callable[[Module], Any],
        parameters: dict[str, Tensor],
        buffers: Parameters,
        training: bool | None,
        seed: int | None,
    ) -> tuple[Any, Parameters]:
        """Call a function of the module with these tensors in it.

        Args:
            runner: one of the ways of `ModuleSlots` to do so, for a network without buffers.
            function: what to call with the module.
            parameters, buffers: the tensors.
            training, seed: as those of `__call__`.

        Returns:
            its result, and the buffers afterwards.
        """
        if training is not None or seed is not None:
            with self._slots.lock, contextlib.ExitStack() as stack:
                if training is not None:
                    stack.enter_context(_in_mode(self._slots.module, training))
                if seed is not None:
                    stack.enter_context(fork_rng())
                    manual_seed(seed)
                return self._run(runner, function, parameters, buffers, None, None)
        if not self.buffer_names:
            return runner(function, parameters), buffers
        # Layers update buffers in place; what they get is a copy.
        copies = {name: tensor.clone() for name, tensor in buffers._all.items()}
        versions = [version_of(tensor) for tensor in copies.values()]
        slots = self._slots
        result, after = slots.run_alone(
            lambda module: (function(module), slots.held()), {**parameters, **copies}
        )
        changed = {
            name: after[name]
            for name, version in zip(copies, versions, strict=True)
            if version is None
            or after[name] is not copies[name]
            or version_of(copies[name]) != version
        }
        return result, buffers | Parameters._of(changed) if changed else buffers


class Model:
    """A network with certain parameters, made by a factory. Calling it runs the network.

    Nothing that it does changes its parameters. The only thing that a call leaves behind is the
    value of ``buffers``, where the network has any that its layers update.

    Attributes:
        parameters: what it was made with.
        buffers: those it was made with, as updated by its calls so far.
    """

    __slots__ = (
        "__weakref__",
        "_all_leaves",
        "_factory",
        "_inputs",
        "_seed",
        "_simple",
        "_training",
        "buffers",
        "parameters",
    )

    def __init__(
        self,
        maker: Factory,
        parameters: Mapping[str, Tensor],
        buffers: Mapping[str, Tensor] | None,
        training: bool | None,
        seed: int | None,
    ) -> None:
        self._inputs: dict[str, Tensor] | None = None
        self._all_leaves = True
        self._factory = maker
        if (
            type(parameters) is Parameters
            and parameters._fits is maker.names
            and parameters._versions is None
        ):
            self.parameters = parameters  # as the last step returned them
        else:
            self.parameters = maker._own(parameters)
        plain = buffers is None and not maker.buffer_names
        self.buffers = maker._buffers if plain else maker._checked_buffers(buffers)
        self._training = training
        self._seed = seed
        # A call has nothing to do but to put the tensors in their places.
        self._simple = training is None and seed is None and not maker.buffer_names
        maker._waiting.add(id(self))

    def __del__(self) -> None:
        maker = self._factory
        maker._waiting.discard(id(self))
        # The next model, if it has been made, puts its own tensors in place of this one's.
        if not maker._waiting and (self._inputs is None or maker._slots.resident is self._inputs):
            maker._slots.release()

    def __repr__(self) -> str:
        return f"Model({self._factory._slots.module!r}, {self.parameters!r})"

    def _used(self) -> dict[str, Tensor]:
        """The tensors that the network computes with: where gradients are wanted, leaves."""
        if self._inputs is None:
            self.parameters._release_spent()
            maker = self._factory
            self._inputs = self.parameters._leaves() if not maker.frozen else None
            if self._inputs is None:
                self.parameters._watch()  # the network could write into their memory
                self._inputs, self._all_leaves = _as_leaves(self.parameters, maker.frozen)
            maker._waiting.discard(id(self))
        else:
            self.parameters._unchanged("model")
        return self._inputs

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The network's output."""
        maker, used = self._factory, self._used()
        if self._simple:
            return maker._slots.call(used, args, kwargs)
        result, self.buffers = maker._run(
            maker._slots.run,
            lambda module: module(*args, **kwargs),
            used,
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
        inputs = used = self._used() if self._inputs is None else self._inputs
        if not self._all_leaves:
            inputs = {name: tensor for name, tensor in used.items() if tensor.requires_grad}
        gradients: dict[str, Tensor] = {}
        if loss.requires_grad and inputs:
            keep = retain_graph or create_graph
            wanted = (loss, tuple(inputs.values()), keep, create_graph)
            # A network may run parts of its forward again in backward, to save memory.
            again = self._factory._slots.run_again
            if self._simple:
                found = again(used, gradients_of, *wanted)
            else:
                found, self.buffers = self._factory._run(
                    lambda function, tensors: again(tensors, function, None),
                    lambda _: gradients_of(*wanted),
                    used,
                    self.buffers,
                    self._training,
                    None,
                )
            for name, gradient in zip(inputs, found, strict=True):
                if gradient is not None:
                    gradients[name] = gradient
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
        return Parameters._made(gradients)

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
            tensors = {**self._used(), **self.buffers.clone()}
            made = with_tensors(self._factory._slots.emptied(), tensors)
        else:
            made = with_memory(self._factory._slots.emptied())
            (self.parameters | self.buffers).copy_to(made)
        return made if self._training is None else made.train(self._training)


def _as_leaves(parameters: Parameters, frozen: frozenset[str]) -> tuple[dict[str, Tensor], bool]:
    """Leaves of a graph with the memory of those that no transform is looking at already.

    Returns:
        the tensors to compute with, and whether all of them are such leaves.
    """
    tensors = parameters._all
    if _C._at_dual_level():
        return dict(tensors), False
    leaves = {
        name: tensor.detach().requires_grad_()
        if type(tensor) is Tensor
        and not tensor.requires_grad
        and name not in frozen
        and (tensor.is_floating_point() or tensor.is_complex())
        else tensor
        for name, tensor in tensors.items()
    }
    whole = not any(leaves[name] is tensor for name, tensor in tensors.items())
    counted = None not in (parameters._versions or [None])  # not those of inference mode
    parameters._plain = whole and counted and not parameters._exported
    return leaves, whole


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
