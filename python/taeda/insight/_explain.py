"""`explain`: what binds a loss, a model and an optimizer, as a table with findings."""

from __future__ import annotations

import html
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import taeda
from taeda import Tensor

from . import _findings, _mistakes
from ._context import Context, Finding
from ._gradients import GradientState
from ._preview import Preview, preview
from ._table import Table, number, percent

if TYPE_CHECKING:
    from taeda.nn import Module
    from taeda.optim import Optimizer


@dataclass(frozen=True)
class ParameterRow:
    """What the loss, the optimizer and ``.grad`` say about one parameter.

    Attributes:
        name: in the model; ``names`` has all, of a shared one.
        shape: of the parameter.
        requires_grad: whether it does.
        norm: its Euclidean norm.
        reached: whether the loss depends on it.
        ops: the operations on a shortest way from it to the loss.
        modules: the modules on that way.
        grad: what its ``.grad`` holds.
        grad_norm: the norm of that, or None.
        optimizer: the class of the optimizer that holds it, or None.
        group: the number of that optimizer's group that has it, or None.
        settings: that group's options.
        update: the norm of what the next step would add to it, or None if it would not change.
        update_ratio: the same, relative to ``norm``.
    """

    name: str
    names: tuple[str, ...]
    shape: tuple[int, ...]
    requires_grad: bool
    norm: float
    reached: bool
    ops: tuple[str, ...]
    modules: tuple[str, ...]
    grad: GradientState
    grad_norm: float | None
    optimizer: str | None
    group: int | None
    settings: dict[str, Any]
    update: float | None
    update_ratio: float | None


class Explanation:
    """What `explain` found: prints as a table, in notebooks as HTML.

    Attributes:
        rows: one `ParameterRow` for each parameter of the model and of the optimizer.
        findings: the `Finding`s, mistakes before notes.
        pending: the table's last column is what a step would do after ``loss.backward()``, which
            has not been called yet.
    """

    def __init__(
        self, loss: Tensor, rows: list[ParameterRow], findings: list[Finding], pending: bool
    ) -> None:
        self.rows = rows
        self.findings = sorted(findings, key=lambda f: f.level != "mistake")
        self.pending = pending
        kind = loss.grad_fn.name() if loss.grad_fn is not None else "no graph"
        value = f"{loss.item():.6g}" if loss.numel() == 1 else f"of shape {tuple(loss.shape)}"
        self._title = f"loss {value} ({kind})"

    @property
    def mistakes(self) -> list[Finding]:
        """The findings that are to be mended."""
        return [f for f in self.findings if f.level == "mistake"]

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain dicts, lists, numbers and strings."""
        return {
            "loss": self._title,
            "pending": self.pending,
            "parameters": [asdict(row) for row in self.rows],
            "findings": [asdict(finding) for finding in self.findings],
        }

    def table(self) -> Table:
        """The table of the parameters."""
        step = "next step" if not self.pending else "backward + step"
        headings = ["parameter", "shape", "norm", "way to the loss", ".grad", "optimizer", step]
        table = Table(self._title, headings, right=["norm", step])
        several = len({row.optimizer for row in self.rows} - {None}) > 1
        for row in self.rows:
            grad = str(row.grad)
            if row.grad_norm is not None:
                grad += f", {number(row.grad_norm)}"
            table.add(
                row.name,
                _shape(row.shape),
                number(row.norm),
                _way(row),
                grad,
                _group(row, several),
                "-"
                if row.update is None
                else f"{number(row.update)} ({percent(row.update_ratio)})",
            )
        return table

    def __repr__(self) -> str:
        lines = [self.table().text(), ""]
        if not self.findings:
            lines.append("Nothing to mend.")
        for finding in self.findings:
            mark = "!" if finding.level == "mistake" else "-"
            lines.append(f"{mark} {finding}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        text = self.table().html()
        for finding in self.findings:
            mark = "⚠" if finding.level == "mistake" else "ℹ"
            mend = f"<br><code>{html.escape(finding.mend)}</code>" if finding.mend else ""
            text += f'<div class="taeda-note">{mark} {html.escape(finding.text)}{mend}</div>'
        return text if self.findings else text + '<div class="taeda-note">Nothing to mend.</div>'


def explain(
    loss: Tensor,
    model: Module | None = None,
    optimizer: Optimizer | Iterable[Optimizer] | None = None,
) -> Explanation:
    """Say what ties a loss to a model and to an optimizer, and what is wrong with it.

    For each parameter: whether the loss reaches it through the graph, and by which operations and
    modules; what its ``.grad`` holds; which group of the optimizer has it, with which settings;
    and by how much the next ``step()`` will change it. Then findings, each with the line that
    mends it. No tensor is changed. Before ``loss.backward()`` its derivatives are run once, so
    hooks on tensors run, and all is known; afterwards the graph has been freed, and shapes and
    causes are no longer known.

    Which gradients a step has used is known of optimizers that were made from
    ``named_parameters()``. For others, a hook that the first call registers notes it in each step
    from then on.

    Args:
        loss: what ``backward()`` is, or was, called on.
        model: the module whose parameters are meant; the optimizer's alone if it is None.
        optimizer: what updates them; several optimizers, where each has some of them.

    Returns:
        An `Explanation`, which prints as a table.

    Raises:
        TypeError: an argument is not what it should be.

    >>> model = taeda.nn.Linear(2, 1)
    >>> optimizer = taeda.optim.SGD([model.weight], lr=0.1)
    >>> loss = model(taeda.ones(3, 2)).square().mean()
    >>> found = taeda.explain(loss, model, optimizer)
    >>> [(row.name, row.ops, row.group) for row in found.rows]
    [('weight', ('linear', 'square', 'mean'), 0), ('bias', ('linear', 'square', 'mean'), None)]
    >>> print(found.findings[0])
    The optimizer does not hold `bias`: step() never changes it.
        optimizer.add_param_group({"params": [model.bias]})  # or model.bias.requires_grad_(False)
    """
    context = Context.of(loss, model, check_arguments("explain", loss, model, optimizer))
    findings = [found for rule in (*_mistakes.RULES, *_findings.RULES) for found in rule(context)]
    pending = any(context.is_pending(p) for p in context.parameters if id(p) in context.grads)
    planned = {id(o): _planned(context, o, pending) for o in context.optimizers}
    rows = [_row(context, p, planned) for p in context.parameters]
    return Explanation(loss, rows, findings, pending)


def check_arguments(who: str, loss: Any, model: Any, optimizer: Any) -> tuple[Optimizer, ...]:
    """Raise TypeError for arguments that are not what they should be; returns the optimizers."""
    if not isinstance(loss, Tensor):
        raise TypeError(f"{who}(): loss must be a Tensor, got {type(loss).__name__}")
    if model is not None and not isinstance(model, taeda.nn.Module):
        raise TypeError(f"{who}(): model must be a Module, got {type(model).__name__}")
    if optimizer is None:
        return ()
    if isinstance(optimizer, taeda.optim.Optimizer):
        return (optimizer,)
    several = tuple(optimizer) if isinstance(optimizer, Iterable) else ()
    if not several or not all(isinstance(one, taeda.optim.Optimizer) for one in several):
        raise TypeError(
            f"{who}(): optimizer must be an Optimizer, or several of them, got "
            f"{type(optimizer).__name__}"
        )
    return several


def _planned(context: Context, optimizer: Optimizer, pending: bool) -> Preview | None:
    """What an optimizer would do next, if it can be told."""
    if isinstance(optimizer, taeda.optim.LBFGS):
        return None
    grads: dict[int, Tensor | None] = {}
    for held in context.held.values():
        p = held.parameter
        grad, more = p.grad, context.grads.get(id(p))
        if pending and more is not None:
            grad = more if grad is None else grad + more
        grads[id(p)] = grad
    try:
        return preview(optimizer, grads=grads)
    except (RuntimeError, TypeError, ValueError):
        return None  # step() itself would raise


def _row(context: Context, parameter: Any, plans: dict[int, Preview | None]) -> ParameterRow:
    path = context.graph.path(parameter)
    modules = list(dict.fromkeys(op.module for op in path if op.module is not None))
    held = context.held.get(id(parameter))
    options: dict[str, Any] = {}
    planned = None
    if held is not None:
        group = held.optimizer.param_groups[held.group]
        options = {k: v for k, v in group.items() if k not in ("params", "param_names")}
        planned = plans[id(held.optimizer)]
    update = planned.of(parameter) if planned is not None else None
    names = context.named.get(id(parameter), (None, []))[1]
    return ParameterRow(
        name=context.name(parameter),
        names=tuple(names),
        shape=tuple(parameter.shape),
        requires_grad=parameter.requires_grad,
        norm=float(parameter.detach().norm()),
        reached=context.graph.reaches(parameter),
        ops=tuple(op.name for op in path),
        modules=tuple(modules),
        grad=context.gradient(parameter),
        grad_norm=None if parameter.grad is None else float(parameter.grad.norm()),
        optimizer=None if held is None else type(held.optimizer).__name__,
        group=None if held is None else held.group,
        settings=options,
        update=None if update is None else update.norm,
        update_ratio=None if update is None else update.ratio,
    )


def _shape(shape: tuple[int, ...]) -> str:
    return "x".join(map(str, shape)) if shape else "1 number"


def _way(row: ParameterRow) -> str:
    if not row.reached:
        return "none" if row.requires_grad else "none (frozen)"
    ops = list(row.ops)
    if len(ops) > 4:
        ops = [*ops[:2], f"... {len(ops) - 3} more ...", ops[-1]]
    return " > ".join(ops)


def _group(row: ParameterRow, several: bool) -> str:
    if row.group is None:
        return "not held"
    shown = [f"{row.optimizer} group {row.group}" if several else f"group {row.group}"]
    for option in ("lr", "momentum", "weight_decay"):
        if row.settings.get(option):
            shown.append(f"{option}={float(row.settings[option]):g}")
    return " ".join(shown)
