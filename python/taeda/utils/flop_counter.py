"""How many floating-point operations a program does: those of products, as a multiply and an add.

>>> import taeda
>>> from taeda.utils.flop_counter import FlopCounterMode
>>> with FlopCounterMode(display=False) as counter:
...     y = taeda.nn.Linear(8, 16)(taeda.ones(4, 8))
>>> counter.get_total_flops()
1024
"""

from __future__ import annotations

import warnings
from math import prod
from typing import TYPE_CHECKING, Any

from taeda import _C
from taeda.nn._module.hooks import register_module_forward_hook, register_module_forward_pre_hook

if TYPE_CHECKING:
    from collections.abc import Callable

    from typing_extensions import Self

    from taeda.nn import Module

    Shape = list[int]
    Rule = Callable[[list[Shape], Shape], int]

__all__ = ["FlopCounterMode"]

_RANGE = "module: "  # what names of ranges begin with


# ---- what each operation costs, by the shapes of its arguments and of its result ----------------


def _product(shapes: list[Shape], result: Shape) -> int:
    """Matrices multiplied: each element of the result is a dot product."""
    return 2 * prod(result) * shapes[0][-1]


def _added_product(shapes: list[Shape], result: Shape) -> int:
    return 2 * prod(result) * shapes[1][-1]


def _convolution(shapes: list[Shape], result: Shape) -> int:
    """Each element of the result is a dot product with a filter."""
    return 2 * prod(result) * prod(shapes[1][1:])


def _transposed_convolution(shapes: list[Shape], result: Shape) -> int:
    """Each element of the first argument is multiplied with a filter."""
    return 2 * prod(shapes[0]) * prod(shapes[1][1:])


def _filter_gradient(shapes: list[Shape], result: Shape) -> int:
    return 2 * prod(shapes[1]) * prod(result[1:])


def _attention(shapes: list[Shape], result: Shape) -> int:
    """Scores, and the values that they weigh."""
    q, k, v = shapes[:3]
    return 2 * prod(q[:-1]) * k[-2] * (q[-1] + v[-1])


def _attention_gradient(shapes: list[Shape], result: Shape) -> int:
    """Scores once more, and the gradients of scores, queries, keys and values."""
    _, q, k, v = shapes[:4]
    return 2 * prod(q[:-1]) * k[-2] * (3 * q[-1] + 2 * v[-1])


def _recurrence(shapes: list[Shape], result: Shape) -> int:
    """Each step multiplies its state with the weights for all gates."""
    gates, weight = shapes[0], next(s for s in shapes[1:] if s and s[0] == shapes[0][-1])
    return 2 * prod(gates) * weight[1]


def _recurrence_gradient(shapes: list[Shape], result: Shape) -> int:
    """Gradients of the states, and of the weights."""
    steps, weight = shapes[0], shapes[3]
    return 2 * 2 * prod(steps[:-1]) * prod(weight)


# By the trait `flops` of an operation's row.
_FORMULAS: dict[str, Rule] = {
    "product": _product,
    "added_product": _added_product,
    "convolution": _convolution,
    "transposed_convolution": _transposed_convolution,
    "filter_gradient": _filter_gradient,
    "attention": _attention,
    "attention_gradient": _attention_gradient,
    "recurrence": _recurrence,
    "recurrence_gradient": _recurrence_gradient,
}
_RULES = {name: _FORMULAS[formula] for name, formula in _C._op_traits("flops").items()}


class FlopCounterMode:
    """Inside ``with FlopCounterMode():`` the operations of products are counted.

    Counted are matrix products, convolutions, attention and recurrent layers, in the forward and
    the backward pass, of the thread that entered. What is done in a backward pass counts for the
    whole, not for a module. A profiler cannot run in the thread at the same time.

    Args:
        mods: not needed: modules are found when they are called.
        depth: down to which depth of modules ``get_table`` reports.
        display: print the table at the end.
    """

    def __init__(self, mods: Any = None, depth: int = 2, display: bool = True) -> None:
        if mods is not None:
            warnings.warn("FlopCounterMode: mods is not needed any more", stacklevel=2)
        self.depth = depth
        self.display = display
        self._counts: dict[str, dict[str, int]] = {"Global": {}}
        self._names: dict[int, str] = {}
        self._open: list[tuple[int, int]] = []  # modules that are being called, and their ranges
        self._hooks: list[Any] = []

    def __enter__(self) -> Self:
        self._counts = {"Global": {}}
        self._names.clear()
        _C._profile_start(True, False)
        self._hooks = [
            register_module_forward_pre_hook(self._begin),
            register_module_forward_hook(self._end, always_call=True),
        ]
        return self

    def __exit__(self, kind: Any, *rest: object) -> None:
        for hook in self._hooks:
            hook.remove()
        self._open.clear()
        self._count(_C._profile_stop())
        if self.display and kind is None:
            print(self.get_table(self.depth))

    def _begin(self, module: Module, args: Any) -> None:
        if id(module) not in self._names:
            root = type(module).__name__
            for name, child in module.named_modules():
                self._names[id(child)] = f"{root}.{name}" if name else root
        name = self._names[id(module)]
        self._open.append((id(module), _C._profile_enter(_RANGE + name)))

    def _end(self, module: Module, args: Any, output: Any) -> None:
        if self._open and self._open[-1][0] == id(module):
            _C._profile_exit(self._open.pop()[1])

    def _count(self, events: list[Any]) -> None:
        inside: list[bool] = []  # of an operation that has been counted
        for name, _, _, parent, _, user, shapes, result in events:
            op = "" if user else name.removeprefix("aten::")
            inside.append(op in _RULES or (parent >= 0 and inside[parent]))
            if op not in _RULES or (parent >= 0 and inside[parent]):
                continue
            flops = _RULES[op](shapes, result)
            around = {"Global"}
            while parent >= 0:
                if events[parent][5] and events[parent][0].startswith(_RANGE):
                    around.add(events[parent][0].removeprefix(_RANGE))
                parent = events[parent][3]
            for module in around:
                counts = self._counts.setdefault(module, {})
                counts[op] = counts.get(op, 0) + flops

    def get_total_flops(self) -> int:
        """The total number."""
        return sum(self._counts["Global"].values())

    def get_flop_counts(self) -> dict[str, dict[str, int]]:
        """The number for each operation, by module; ``"Global"`` is everything."""
        return {name: dict(counts) for name, counts in self._counts.items()}

    def get_table(self, depth: int | None = None) -> str:
        """The counts as a table.

        Args:
            depth: of the modules that are listed. Default: that of the counter.
        """
        depth = self.depth if depth is None else depth
        total = self.get_total_flops()
        modules = [n for n in sorted(self._counts) if n != "Global" and n.count(".") < depth]
        rows = []
        for name in ["Global", *modules]:
            counts = self._counts[name]
            rows.append((name, sum(counts.values())))
            rows += [(f" - {op}", flops) for op, flops in counts.items()]
        width = max(len(name) for name, _ in rows)
        lines = [f"{'Module':<{width}}  {'FLOP':>12}  % Total", "-" * (width + 23)]
        for name, flops in rows:
            share = flops / total if total else 0.0
            lines.append(f"{name:<{width}}  {_short(flops):>12}  {share:7.2%}")
        return "\n".join(lines)


def _short(flops: int) -> str:
    """A number with a suffix for thousands, millions and so on."""
    value, suffix = float(flops), ""
    for larger in ("K", "M", "B", "T"):
        if value < 1000:
            break
        value, suffix = value / 1000, larger
    return f"{value:.3f}{suffix}" if suffix else str(flops)
