"""Programs with planted mistakes: each is one change to a training loop, and they combine."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import taeda
from taeda import nn
from taeda.insight import TrainingMistake
from taeda.nn import functional as F


class Net(nn.Module):
    """Two layers and a head; `cut` is what happens to the hidden values on their way."""

    def __init__(self, outputs: int = 3) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(4, 8), nn.Linear(8, 8)
        self.drop, self.head = nn.Dropout(0.1), nn.Linear(8, outputs)
        self.extra: list[Any] = []
        self.cut: Callable[[Any], Any] = lambda h: h

    def forward(self, x):
        h = self.second(self.cut(self.first(x).tanh())).tanh()
        for layer in self.extra:
            h = layer(h).tanh()
        return self.head(self.drop(h))


@dataclass
class Program:
    """A training loop in parts, each of which a mistake may replace."""

    outputs: int = 3
    change_model: list[Callable[[Net], Any]] = field(default_factory=list)
    optimized: Callable[[Net], Any] = lambda model: model.parameters()
    after_optimizer: list[Callable[[Net], Any]] = field(default_factory=list)
    target: Callable[[], Any] = lambda: taeda.tensor([0, 1, 2, 0, 1, 2])
    loss: Callable[[Any, Any], Any] = F.cross_entropy
    finish: Callable[[Any], Any] = lambda loss: loss
    events: tuple[str, ...] = ("zero", "forward", "backward", "step")


@dataclass(frozen=True)
class Mistake:
    """A mistake: what it does to a program, what finds it, and a piece of the line that mends it.

    Where it is about certain parameters or modules, the finding names one of them, `about`.

    Mistakes with a slot in common replace the same part, or one makes the other impossible to make:
    they do not combine.
    """

    name: str
    slots: frozenset[str]
    plant: Callable[[Program], None]
    kinds: frozenset[str]
    mend: str
    about: str = ""


MISTAKES: list[Mistake] = []


def mistake(slots: str, kinds: str, mend: str, about: str = ""):
    def add(plant):
        sets = frozenset(slots.split()), plant, frozenset(kinds.split())
        MISTAKES.append(Mistake(plant.__name__, *sets, mend, about))
        return plant

    return add


def same(target):
    return lambda: taeda.ones(6) if target == "flat" else taeda.ones(6, 1)


@mistake("events", "accumulated zero_grad", "optimizer.zero_grad()")
def zero_grad_is_missing(p):
    p.events = ("forward", "backward", "step")


@mistake("events", "no_gradient", "loss.backward(); optimizer.step()")
def zero_grad_after_backward(p):
    p.events = ("forward", "backward", "zero", "step")


@mistake("events", "stale", "loss.backward()")
def two_steps(p):
    p.events = ("zero", "forward", "backward", "step", "step")


@mistake("events", "accumulated", "optimizer.zero_grad()")
def two_backwards(p):
    p.events = ("zero", "forward", "backward", "forward", "backward", "step")


@mistake("events", "graph_twice", "a new forward")
def one_graph_twice(p):
    p.events = ("zero", "forward", "retain", "backward", "step")


@mistake("events", "no_gradient", "loss.backward(); optimizer.step()")
def no_backward(p):
    p.events = ("zero", "forward", "step")


@mistake("mode", "eval", "model.train()")
def evaluation_mode(p):
    p.after_optimizer.append(lambda model: model.eval())


@mistake("optimizer first second", "partial", "add_param_group|requires_grad_", "first.weight")
def head_only(p):
    p.optimized = lambda model: model.head.parameters()


@mistake("optimizer second", "partial", "add_param_group|requires_grad_", "second.weight")
def one_layer_forgotten(p):
    p.optimized = lambda model: [*model.first.parameters(), *model.head.parameters()]


@mistake("optimizer events", "replaced", "optimizer = ", "second.weight")
def of_another_model(p):
    p.optimized = lambda model: copy.deepcopy(model).parameters()


@mistake("optimizer", "twice", "optimizer = ", "first.weight")
def a_parameter_twice(p):
    p.optimized = lambda model: [*model.parameters(), model.first.weight]


@mistake("head", "replaced", "optimizer = ", "head.weight")
def head_replaced(p):
    p.after_optimizer.append(lambda m: setattr(m, "head", nn.Linear(8, m.head.out_features)))


@mistake("second", "replaced", "optimizer = ", "second.weight")
def weight_replaced(p):
    p.after_optimizer.append(
        lambda m: setattr(m.second, "weight", nn.Parameter(m.second.weight.detach().clone()))
    )


@mistake("first", "frozen", "requires_grad_", r"first.weight|\(8, 4\)")
def frozen_in_the_optimizer(p):
    p.change_model.append(lambda model: model.first.requires_grad_(False))


@mistake(
    "first second head cut finish events loss optimizer unused",
    "all_frozen",
    "requires_grad_(True)",
)
def everything_frozen(p):
    p.change_model.append(lambda model: model.requires_grad_(False))


@mistake("cut first", "cut", "remove .detach()")
def detached_between(p):
    p.change_model.append(lambda model: setattr(model, "cut", lambda h: h.detach()))


@mistake("cut first", "cut", "no_grad")
def numpy_between(p):
    p.change_model.append(
        lambda model: setattr(model, "cut", lambda h: taeda.tensor(h.detach().numpy()))
    )


@mistake(
    "finish first second head cut events loss optimizer extra unused",
    "detached",
    "not a new tensor",
)
def a_new_tensor(p):
    p.finish = lambda loss: taeda.tensor(loss.item(), requires_grad=True)


@mistake("finish first second head cut events loss extra unused", "detached", "outside of no_grad")
def a_detached_loss(p):
    p.finish = lambda loss: loss.detach()


@mistake("extra", "unregistered", "ModuleList")
def layers_in_a_list(p):
    p.change_model.append(lambda model: model.extra.append(nn.Linear(8, 8)))


@mistake("unused", "unreached", "use it in forward()", "spare")
def a_layer_that_is_not_used(p):
    p.change_model.append(lambda model: model.add_module("spare", nn.Linear(2, 2)))


@mistake("loss", "softmax", "without softmax")
def softmax_before_cross_entropy(p):
    p.loss = lambda out, y: F.cross_entropy(out.softmax(1), y)


@mistake("loss", "nll", "cross_entropy(logits, y)")
def nll_of_logits(p):
    p.loss = F.nll_loss


@mistake("loss", "sigmoid", "leave out sigmoid")
def sigmoid_before_its_own(p):
    p.outputs, p.target = 1, same("column")
    p.loss = lambda out, y: F.binary_cross_entropy_with_logits(out.sigmoid(), y)


@mistake("loss", "broadcast", "reshape")
def column_against_row(p):
    p.outputs, p.target = 1, same("flat")
    p.loss = lambda out, y: ((out - y) ** 2).mean()


@mistake("loss", "broadcast", "reshape")
def row_against_column(p):
    p.outputs, p.target = 1, same("column")
    p.loss = lambda out, y: F.mse_loss(out.squeeze(1), y)


@mistake("loss", "grad_not_finite not_finite", "sqrt")
def square_root_of_zero(p):
    p.loss = lambda out, y: (out * 0).sqrt().mean() + F.cross_entropy(out, y)


@mistake("loss", "loss_not_finite not_finite", "log")
def logarithm_of_zero(p):
    p.loss = lambda out, y: (out * 0).log().mean()


@mistake("loss events", "not_scalar", "loss.mean()")
def several_numbers(p):
    p.loss = lambda out, y: F.cross_entropy(out, y, reduction="none")


def build(*planted: Mistake):
    """The program with the mistakes, its model and its optimizer."""
    taeda.manual_seed(0)
    p = Program()
    for one in planted:
        one.plant(p)
    model = Net(p.outputs)
    for change in p.change_model:
        change(model)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        optimizer = taeda.optim.SGD(p.optimized(model), lr=0.1)
    for change in p.after_optimizer:
        change(model)
    return p, model, optimizer


def run(p: Program, model: Net, optimizer: Any, steps: int, look: Callable[[Any], Any]) -> None:
    """Train, and call `look` with the loss after each event."""
    x, loss = taeda.randn(6, 4), None
    for _ in range(steps):
        for event in p.events:
            if event == "zero":
                optimizer.zero_grad()
            elif event == "forward":
                loss = p.finish(p.loss(model(x), p.target()))
            elif event == "step":
                optimizer.step()
            elif loss.requires_grad and loss.numel() == 1:
                loss.backward(retain_graph=True) if event == "retain" else loss.backward()
            if loss is not None:
                look(loss)


def words(finding) -> str:
    """All that a finding says; its text has the first few names only."""
    return " ".join([finding.text, finding.mend, *finding.names])


def found_by_explain(*planted: Mistake) -> dict[str, str]:
    """Kinds of findings, with the lines that mend them."""
    p, model, optimizer = build(*planted)
    found = {}

    def look(loss):
        for finding in taeda.explain(loss, model, optimizer).mistakes:
            found.setdefault(finding.kind, []).append(words(finding))

    run(p, model, optimizer, 2, look)
    return {kind: " ".join(texts) for kind, texts in found.items()}


def found_by_strict(*planted: Mistake) -> dict[str, str]:
    """The same of strict, with each mistake allowed once it has been found."""
    found: dict[str, str] = {}
    names = {
        "softmax": "logits", "sigmoid": "logits", "nll": "logits", "loss_not_finite": "not_finite"
    }  # fmt: skip
    for _ in range(10):
        p, model, optimizer = build(*planted)
        allow = {names.get(kind, kind) for kind in found}
        try:
            with taeda.strict(allow=allow):
                run(p, model, optimizer, 4, lambda loss: None)
        except TrainingMistake as error:
            for finding in error.findings:
                found[finding.kind] = words(finding)
        else:
            break
    return found
