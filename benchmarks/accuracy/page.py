"""docs/accuracy.md."""

from __future__ import annotations

from benchmarks.accuracy.cases import CASES
from benchmarks.accuracy.reasons import NOTES, REASONS
from benchmarks.accuracy.ulps import Summary
from benchmarks.report import NAMES, markdown_table

Found = dict[tuple[str, str, str], Summary]

TIMES, ULPS = 2.0, 2.0  # more than so many times PyTorch's error, and more than so many ulps

ORDER = [
    "pointwise",
    "below the normal numbers",
    "losses",
    "complex",
    "special",
    "reductions",
    "scans",
    "sums by index",
    "softmax and losses",
    "normalizations",
    "matrix products",
    "convolutions",
    "attention",
    "recurrent layers",
    "pooling and resampling",
    "distances",
    "Fourier transforms",
    "linear algebra",
    "random numbers",
    "optimizers",
]

INTRO = """# Accuracy

Written by `python -m benchmarks.accuracy --write`. {versions}, on one thread; v4 is AVX-512, v3 AVX2,
v2 SSE4.2, to which both frameworks and the libraries under them are held. Results are compared with references, never with one another.

An error is counted in **ulps**, units in the last place: the distance between two neighbouring numbers of the result's type (of 24
binary digits for float32, 53 for float64, 8 for bfloat16, 11 for float16), below the normal numbers the least number there is. A
result that is the nearest number to the true one is off by at most 0.5. Each cell has the largest error and, after a
stroke, the mean of all.

- **Functions of single numbers** are counted in ulps of the true result, so that small results must be as right as large ones. The
  reference is the C library's in long double (64 binary digits), or mpmath's in 50 decimal digits.
- **Sums, products of matrices, convolutions** and whatever else adds up terms that may cancel are counted in ulps of their
  *scale*: what the same sum gives of the terms' magnitudes. An error of 1 says that the result is the true one of inputs that
  differ from the given ones in the last place. What has another scale says so in `benchmarks/accuracy/cases`: softmax
  (of a probability times 1 + its logit's distance from the largest), Fourier transforms (the 2-norm of the input), functions that
  oscillate (the height of their waves), optimizers (the parameter and its updates).
- **Factorizations** are judged by the largest element of the residual (what the factors multiply to, less the matrix) over the
  matrix's largest row sum, and by how far orthogonal factors are from it, in units of 2^-23 and 2^-52.

Inputs are random with fixed seeds: evenly spread, of all exponents, and next to roots, poles and multiples of pi/2; those of
16 bits are rounded from such numbers. `tests/test_accuracy.py` holds every row below 1.3 times its largest error here
(factorizations, which depend on OpenBLAS's kernels, below 5.2 times).
"""


def number(value: float) -> str:
    if value >= 1e4:
        return f"{value:.1e}".replace("e+0", "e").replace("e+", "e")
    if value >= 100:
        return f"{value:.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def cell(found: Summary | None) -> str:
    return f"{number(found.largest)} / {number(found.mean)}" if found else "—"


def worse(found: Found, key: str, cpus: list[str]) -> list[str]:
    """The instruction sets on which taeda's largest error is far above PyTorch's."""
    result = []
    for cpu in cpus:
        ours, theirs = found.get((key, "taeda", cpu)), found.get((key, "torch", cpu))
        if ours and theirs and ours.largest > max(ULPS, TIMES * theirs.largest):
            result.append(cpu)
    return result


def family_lines(found: Found, family: str, cpus: list[str]) -> list[str]:
    names = [name for name in NAMES if any(name == framework for _, framework, _ in found)]
    rows = []
    for key in dict.fromkeys(key for key, _, _ in found):
        case = CASES[key]
        if case.family == family:
            cells = [cell(found.get((key, name, cpu))) for name in names for cpu in cpus]
            rows.append([case.title, case.dtype, *cells])
    heads = ["", "type", *(f"{NAMES[name]} {cpu}" for name in names for cpu in cpus)]
    note = [NOTES[family], ""] if family in NOTES else []
    return [f"## {family[0].upper()}{family[1:]}", "", *note, *markdown_table(heads, rows)]


def reason(key: str) -> str:
    """Of the first entry whose words are all in the row's name."""
    for words, text in REASONS.items():
        if all(word in key for word in words):
            return text
    return "no reason known"


def worse_lines(found: Found, cpus: list[str]) -> list[str]:
    rows = []
    for key in dict.fromkeys(key for key, _, _ in found):
        cells = [
            f"{cpu}: {number(found[key, 'taeda', cpu].largest)} beside {number(found[key, 'torch', cpu].largest)}"
            for cpu in worse(found, key, cpus)
        ]
        if cells:
            case = CASES[key]
            rows.append([f"{case.family}: {case.title}", case.dtype, ", ".join(cells), reason(key)])
    lines = ["## More than twice PyTorch's error", ""]
    if not rows:
        return [*lines, "None of more than 2 ulps.", ""]
    lines += [
        "The rows in which taeda's largest error is above 2 ulps and more than twice PyTorch's.",
        "",
    ]
    heads = ["row", "type", "largest errors", "reason"]
    return [
        *lines,
        "| " + " | ".join(heads) + " |",
        "|---|---|---|---|",
        *("| " + " | ".join(r) + " |" for r in rows),
        "",
    ]


def better(found: Found, cpus: list[str]) -> str:
    """How the rows compare, in a sentence."""
    counts = [0, 0, 0]
    for key in dict.fromkeys(key for key, _, _ in found):
        pairs = [
            (found[key, "taeda", cpu].largest, found[key, "torch", cpu].largest)
            for cpu in cpus
            if (key, "torch", cpu) in found and (key, "taeda", cpu) in found
        ]
        for ours, theirs in pairs:
            counts[0] += 1
            counts[1] += ours > max(ULPS, TIMES * theirs)
            counts[2] += theirs > max(ULPS, TIMES * ours)
    return (
        f"Of {counts[0]:,} pairs of figures, taeda's largest error is more than twice PyTorch's (and above 2 ulps) in {counts[1]},\n"
        f"PyTorch's more than twice taeda's in {counts[2]}."
    )


def text(found: Found, cpus: list[str], versions: str) -> str:
    families = {CASES[key].family for key, _, _ in found}
    lines = [INTRO.format(versions=versions), better(found, cpus), ""]
    for family in sorted(families, key=ORDER.index):
        lines += family_lines(found, family, cpus)
    lines += worse_lines(found, cpus)
    return "\n".join(lines).rstrip() + "\n"
