"""What a row of the page is: inputs, a call, and how its results are judged."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from benchmarks.accuracy import ulps
from benchmarks.accuracy.ulps import Array

Arrays = tuple[Array, ...]
Judge = Callable[[Arrays, Arrays], Array]


class Case(NamedTuple):
    """A call on stated inputs. `points` is how many numbers a function of one number is asked for."""

    family: str
    title: str
    dtype: str
    inputs: Callable[[np.random.Generator, int], Arrays]
    run: Callable[..., Any]  # of the framework and the inputs as tensors: one tensor or several
    judge: Judge  # of inputs and outputs: errors in ulps
    points: int = 20_000

    @property
    def key(self) -> str:
        return f"{self.family}/{self.title}/{self.dtype}"

    def made(self, share: float = 1.0) -> Arrays:
        """The inputs, always the same ones, as numbers that the dtype has."""
        rng = np.random.default_rng(zlib.crc32(self.key.encode()))
        found = self.inputs(rng, max(1, int(self.points * share)))
        return tuple(ulps.rounded(x, self.dtype) if x.dtype.kind in "fc" else x for x in found)


CASES: dict[str, Case] = {}


def add(case: Case) -> None:
    if case.key in CASES:
        raise ValueError(f"two rows {case.key}")
    CASES[case.key] = case


def to_tensor(framework: Any, x: Array, dtype: str) -> Any:
    """An array as a tensor; floating and complex numbers of the dtype."""
    tensor = framework.from_numpy(np.ascontiguousarray(x))
    if x.dtype.kind == "f":
        return tensor.to(getattr(framework, ulps.REAL.get(dtype, dtype)))
    return tensor


def to_array(tensor: Any) -> Array:
    tensor = tensor.detach()
    if str(tensor.dtype).endswith(("bfloat16", "float16")):
        tensor = tensor.float()
    return tensor.contiguous().numpy()


def outputs(framework: Any, case: Case, inputs: Arrays) -> Arrays:
    """What the framework makes of the inputs."""
    framework.manual_seed(0)
    found = case.run(framework, *(to_tensor(framework, x, case.dtype) for x in inputs))
    many: Sequence[Any] = found if isinstance(found, (tuple, list)) else (found,)
    return tuple(to_array(t) for t in many)


# ---- judges


def wide(x: Array) -> Array:
    """In the widest type of the machine, 64 binary digits on x86-64."""
    if x.dtype.kind == "c":
        return x.astype(np.clongdouble)
    return x.astype(np.longdouble) if x.dtype.kind == "f" else x


def double(x: Array) -> Array:
    """In twice as many digits or more, fast: for float32 and shorter."""
    if x.dtype.kind == "c":
        return x.astype(np.complex128)
    return x.astype(np.float64) if x.dtype.kind == "f" else x


def widened(dtype: str) -> Callable[[Array], Array]:
    return wide if dtype in ("float64", "complex128") else double


def beside(dtype: str, reference: Callable[..., Any], scaled: bool = False) -> Judge:
    """Errors beside `reference(*inputs)`: a value for each output or, if scaled, value and scale."""
    widen = widened(dtype)
    last: dict[str, Any] = {"inputs": None}  # the frameworks are judged one after the other

    def wanted_of(inputs: Arrays) -> list[Array | None]:
        if last["inputs"] is not inputs:
            with np.errstate(all="ignore"):
                wanted = reference(*(widen(x) for x in inputs))
            last["wanted"] = list(wanted) if isinstance(wanted, (tuple, list)) else [wanted]
            last["inputs"] = inputs
        return last["wanted"]

    def judge(inputs: Arrays, found: Arrays) -> Array:
        wanted = wanted_of(inputs)
        values, scales = (wanted[::2], wanted[1::2]) if scaled else (wanted, [None] * len(wanted))
        every = zip(found, values, scales, strict=True)
        return np.concatenate([ulps.errors(y, w, dtype, s) for y, w, s in every])

    return judge
