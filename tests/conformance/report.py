"""docs/conformance.md: what the suite has shown, by namespace and by name."""

from __future__ import annotations

from collections import Counter

from tests.conformance.collector import Outcomes
from tests.conformance.entries import KEYS, function_of, key_of, op_db
from tests.conformance.expected import DIFFERS, OUT_OF_SCOPE

HEAD = """# Conformance

What `tests/conformance` shows against PyTorch's op database (`op_db` of `torch.testing`, {total} entries). This page is written by
`python -m tests.conformance`; change the code, not the page.

- **values**: results, dtypes and shapes agree for float32, float64, int64, bool and complex64, as far as the entry supports them.
- **gradients**: first and, where the entry has them, second gradients agree in float64 and complex128 (entries without a
  gradient count as agreeing).
- **forms**: error inputs, the method, the in-place method and `out=`.
- **forward and backward** asks for values and gradients, **everything** also for the forms. An entry in which a single dtype or
  sample differs does not count.
"""
NAMESPACES = ("nn.functional", "linalg", "fft", "special", "signal.windows", "masked", "sparse")


def namespace_of(name: str) -> str:
    if name.startswith(("_", "torch.")):
        return "private names"
    return next((n for n in NAMESPACES if name.startswith(n + ".")), "taeda")


def page(entries: dict[str, Outcomes]) -> str:
    """The whole page, in Markdown."""
    return "\n".join(
        [HEAD.format(total=len(op_db)), *table(entries), "", *missing(), *differences()]
    )


def table(entries: dict[str, Outcomes]) -> list[str]:
    """How many entries of each namespace agree."""
    rows: dict[str, Counter] = {}
    for op in op_db:
        row = rows.setdefault(namespace_of(op.name), Counter())
        row["entries"] += 1
        if id(op) not in KEYS or key_of(op) in OUT_OF_SCOPE:
            continue
        found = entries.get(key_of(op), Outcomes())
        ran = bool(found.groups.get("values"))
        agrees = {g: ran and found.agrees(g) for g in ("values", "gradients", "forms")}
        row["present"] += 1
        row.update({g: int(v) for g, v in agrees.items()})
        row["both"] += agrees["values"] and agrees["gradients"]
        row["all"] += all(agrees.values())
    columns = ("entries", "present", "values", "gradients", "forms", "both", "all")
    lines = [
        "| namespace | entries | present | values | gradients | forms | forward and backward | everything |",
        "|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for name in sorted(rows, key=lambda n: -rows[n]["entries"]):
        lines.append(f"| {name} | " + " | ".join(str(rows[name][c]) for c in columns) + " |")
    total = sum(rows.values(), Counter())
    lines.append("| **all** | " + " | ".join(f"**{total[c]}**" for c in columns) + " |")
    return lines


def missing() -> list[str]:
    """Entries that taeda has no function for, by namespace."""
    names: dict[str, list[str]] = {}
    for op in op_db:
        if function_of(op) is None and key_of(op) not in OUT_OF_SCOPE:
            names.setdefault(namespace_of(op.name), []).append(f"`{key_of(op)}`")
    lines = ["## Missing", ""]
    for namespace in sorted(names):
        lines += [f"- {namespace}: {', '.join(sorted(names[namespace]))}"]
    lines += ["", "Out of scope:", ""]
    lines += [f"- `{key}`: {reason}" for key, reason in sorted(OUT_OF_SCOPE.items())]
    return [*lines, ""]


def differences() -> list[str]:
    """The expected failures, each with its reason."""
    lines = ["## Known differences", "", "| entry | aspect | reason |", "|---|---|---|"]
    for key, reason in sorted(DIFFERS.items(), key=str):
        name, aspect = key if isinstance(key, tuple) else (key, "everything")
        lines.append(f"| `{name}` | {aspect} | {reason.replace('|', '/')} |")
    return [*lines, ""]
