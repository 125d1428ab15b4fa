"""What findings are made from: a loss, its graph, the model and the optimizer."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from ._gradients import GradientState, gradient_state
from ._graph import Graph

if TYPE_CHECKING:
    from taeda import Tensor
    from taeda.nn import Module
    from taeda.optim import Optimizer


@dataclass(frozen=True)
class Finding:
    """Something to know about, or to mend.

    Attributes:
        kind: a short name for programs, such as ``"zero_grad"``.
        text: what is the matter.
        mend: the line of code that mends it; empty where there is nothing to mend.
        names: the parameters or modules that it is about.
        level: "mistake", or "note" for what may be as it should.
    """

    kind: str
    text: str
    mend: str = ""
    names: tuple[str, ...] = ()
    level: Literal["mistake", "note"] = "mistake"

    def __str__(self) -> str:
        return f"{self.text}\n    {self.mend}" if self.mend else self.text


@dataclass
class Held:
    """A parameter in an optimizer: in which group, and under which name, if any."""

    parameter: Any
    optimizer: Optimizer
    group: int
    name: str


@dataclass
class Context:
    """A loss with the model and the optimizers that belong to it.

    Attributes:
        grads: gradients that the loss's backward would give, by ids; empty if it cannot run.
        held: the optimizers' parameters, by ids.
        named: the model's parameters, by ids, with all their names.
    """

    loss: Tensor
    model: Module | None
    optimizers: tuple[Optimizer, ...]
    graph: Graph
    grads: dict[int, Tensor] = field(default_factory=dict)
    held: dict[int, Held] = field(default_factory=dict)
    named: dict[int, tuple[Any, list[str]]] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        loss: Tensor,
        model: Module | None,
        optimizers: tuple[Optimizer, ...],
        trace: bool = True,
    ) -> Context:
        """Look at everything once."""
        context = cls(loss, model, optimizers, Graph(loss, model))
        if trace:
            context.grads = context.graph.trace()
        if model is not None:
            for name, p in model.named_parameters(remove_duplicate=False):
                context.named.setdefault(id(p), (p, []))[1].append(name)
        for optimizer in optimizers:
            for i, group in enumerate(optimizer.param_groups):
                names = group.get("param_names")
                for j, p in enumerate(group["params"]):
                    name = names[j] if names else ""
                    context.held.setdefault(id(p), Held(p, optimizer, i, name))
        return context

    def name(self, parameter: Any) -> str:
        """A parameter's name in the model, or in the optimizer, or a description."""
        if id(parameter) in self.named:
            return self.named[id(parameter)][1][0]
        held = self.held.get(id(parameter))
        if held is not None and held.name:
            return held.name
        return f"(a tensor of shape {tuple(parameter.shape)})"

    @property
    def parameters(self) -> list[Any]:
        """The model's parameters, then those that only an optimizer holds."""
        own = [p for p, _ in self.named.values()]
        return own + [h.parameter for h in self.held.values() if id(h.parameter) not in self.named]

    @property
    def trainable(self) -> list[Any]:
        """The model's parameters that require a gradient."""
        return [p for p, _ in self.named.values() if p.requires_grad]

    def gradient(self, parameter: Any) -> GradientState:
        """What its ``.grad`` holds."""
        held = self.held.get(id(parameter))
        state = gradient_state(parameter, None if held is None else held.optimizer)
        if state.state != "accumulated" or state.used:
            return state
        leaf = self.graph.leaves.get(id(parameter))
        uses = 0 if leaf is None else len(self.graph.users.get(leaf.key, []))
        # One backward pass changes its own sum in place from the third use of a parameter on.
        backwards = state.backwards - max(0, uses - 2)
        if backwards <= 1 or self._is_given(parameter):
            return GradientState("fresh", 1)  # of this loss, whose graph may have been kept
        return GradientState("accumulated", backwards)

    def is_pending(self, parameter: Any) -> bool:
        """Whether ``loss.backward()`` is still to add to its ``.grad``."""
        return id(parameter) in self.grads and not self._is_given(parameter)

    def _is_given(self, parameter: Any) -> bool:
        """Whether its ``.grad`` is what ``loss.backward()`` gives."""
        pending, grad = self.grads.get(id(parameter)), parameter.grad
        if pending is None or grad is None or grad.is_sparse or pending.is_sparse:
            return False
        return bool((pending == grad).all())

    def make_optimizer(self) -> str:
        """The line that makes the optimizer from the model's parameters."""
        if not self.optimizers:
            return "optimizer = taeda.optim.SGD(model.parameters(), lr=0.1)"
        lr = self.optimizers[0].defaults.get("lr")
        options = f", lr={float(lr):g}" if lr is not None else ""
        kind = type(self.optimizers[0]).__name__
        return f"optimizer = taeda.optim.{kind}(model.parameters(){options})"
