"""Every optimizer configuration of PyTorch's database: trajectories, resumed ones, states, errors; every schedule."""

from __future__ import annotations

import copy
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="the conformance suite compares with PyTorch")
pytest.importorskip("expecttest", reason="PyTorch's optimizer database needs expecttest")

import taeda  # noqa: E402
from tests.conformance.bridge import tensor_to_taeda, to_taeda, to_torch  # noqa: E402

from torch.testing._internal.common_optimizers import OptimizerErrorEnum, optim_db  # noqa: E402  isort: skip

STEPS = 20
# SparseAdam, which takes sparse gradients only, is compared in tests/optim.
INFOS = [info for info in optim_db if not info.only_supports_sparse_grads]
# Another order of roundings grows along a trajectory; Muon's steps are computed in bfloat16.
TOLERANCE = {"float32": 2e-4, "float64": 1e-9, "complex64": 2e-4, "bfloat16": 5e-2}
LOOSE = {"Muon": 2e-2, "ASGD": 1e-8}  # PyTorch's foreach ASGD holds its rate in float32


def test_no_optimizer_is_missing():
    assert {info.optim_cls.__name__ for info in optim_db} <= set(dir(taeda.optim))


def configurations() -> list:
    found = []
    for info in INFOS:
        name = info.optim_cls.__name__
        for i, given in enumerate(info.optim_inputs_func(device="cpu")):
            implementations = [{}] + [{flag: True} for flag in info.supported_impls]
            for flags in implementations if i == 0 else [{}]:
                if flags == {"differentiable": True}:
                    continue
                label = "-".join([name, str(i), *flags])
                found.append(pytest.param(name, {**given.kwargs, **flags}, id=label))
    return found


def start(name: str, dtype: torch.dtype) -> list:
    shapes = [(3, 4), (5, 2)] if name == "Muon" else [(3, 4), (5,), (2, 3, 2), ()]
    generator = torch.Generator().manual_seed(7)
    return [torch.randn(shape, generator=generator, dtype=dtype) for shape in shapes]


class Run:
    """Some steps of one library's optimizer on a small problem that is the same for both."""

    def __init__(self, library: Any, name: str, options: dict, values: list) -> None:
        self.library, self.name, self.options = library, name, options
        self.params = [library.nn.Parameter(v) for v in values]
        self.optimizer = getattr(library.optim, name)(self.params, **options)

    def loss(self) -> Any:
        total = 0.0
        for i, p in enumerate(self.params):
            real = self.library.view_as_real(p) if p.is_complex() else p
            total = total + (real * real).sum() * (i + 1) / 5 + real.sin().sum() / 10
        return total

    def step(self, i: int) -> None:
        def closure() -> Any:
            self.optimizer.zero_grad()
            loss = self.loss()
            loss.backward()
            return loss

        if self.name == "LBFGS":
            self.optimizer.step(closure)
            return
        closure()
        if i == 3:
            self.params[1].grad = None
        self.optimizer.step()

    def values(self) -> list:
        return [p.detach() for p in self.params]


def pair(name: str, options: dict, dtype: torch.dtype) -> tuple[Run, Run]:
    values = start(name, dtype)
    ours = Run(taeda, name, to_taeda(options), [tensor_to_taeda(v) for v in values])
    theirs = Run(torch, name, copy.deepcopy(options), [v.clone() for v in values])
    return ours, theirs


def tolerance(name: str, dtype: torch.dtype) -> float:
    return max(LOOSE.get(name, 0), TOLERANCE[str(dtype)[6:]])


def assert_same_values(ours: Run, theirs: Run, most: float, where: str) -> None:
    for a, b in zip(ours.values(), theirs.values(), strict=True):
        torch.testing.assert_close(
            to_torch(a), b, rtol=most, atol=most, msg=lambda m: f"{where}: {m}"
        )


def assert_same_state(ours: Any, theirs: Any, most: float, where: str = "state_dict") -> None:
    if isinstance(theirs, torch.Tensor) or isinstance(ours, taeda.Tensor):
        ours = to_torch(ours) if isinstance(ours, taeda.Tensor) else torch.tensor(ours)
        theirs = torch.as_tensor(theirs)
        torch.testing.assert_close(
            ours, theirs, rtol=20 * most, atol=most, check_dtype=ours.dim() > 0
        )
    elif isinstance(theirs, dict):
        assert list(ours) == list(theirs), where
        for key, value in theirs.items():
            assert_same_state(ours[key], value, most, f"{where}[{key!r}]")
    elif isinstance(theirs, (list, tuple)):
        assert len(ours) == len(theirs), where
        for i, (a, b) in enumerate(zip(ours, theirs, strict=True)):
            assert_same_state(a, b, most, f"{where}[{i}]")
    elif isinstance(theirs, float):
        assert ours == pytest.approx(theirs, rel=20 * most, abs=most), where
    else:
        assert ours == theirs, where


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=lambda d: str(d)[6:])
@pytest.mark.parametrize(("name", "options"), configurations())
def test_trajectory(name: str, options: dict, dtype: torch.dtype) -> None:
    ours, theirs = pair(name, options, dtype)
    most = tolerance(name, dtype)
    for i in range(STEPS):
        ours.step(i)
        theirs.step(i)
        assert_same_values(ours, theirs, most, f"step {i}")
    if name == "LBFGS":  # its directions are differences of nearly equal numbers
        mine, other = ours.optimizer.state_dict(), theirs.optimizer.state_dict()
        assert_same_state(mine["param_groups"], other["param_groups"], most)
        assert set(mine["state"][0]) == set(other["state"][0])
    else:
        assert_same_state(ours.optimizer.state_dict(), theirs.optimizer.state_dict(), 20 * most)


COMPLEX = [info.optim_cls.__name__ for info in INFOS if info.supports_complex]


@pytest.mark.parametrize("name", COMPLEX)
def test_complex_trajectory(name: str) -> None:
    ours, theirs = pair(name, {}, torch.complex64)
    for i in range(STEPS):
        ours.step(i)
        theirs.step(i)
        assert_same_values(ours, theirs, TOLERANCE["complex64"], f"step {i}")


@pytest.mark.parametrize("name", [info.optim_cls.__name__ for info in INFOS])
def test_bfloat16_trajectory(name: str) -> None:
    """taeda computes a step in float32 and rounds once, so values agree to bfloat16's digits only."""
    ours, theirs = pair(name, {}, torch.bfloat16)
    for i in range(3):
        ours.step(i)
        theirs.step(i)
    assert_same_values(ours, theirs, TOLERANCE["bfloat16"], "after 3 steps")


@pytest.mark.parametrize(("name", "options"), configurations())
def test_resuming_from_pytorch_and_into_it(name: str, options: dict) -> None:
    ours, theirs = pair(name, options, torch.float64)
    most = tolerance(name, torch.float64)
    for i in range(STEPS // 2):
        ours.step(i)
        theirs.step(i)
    crossed = Run(taeda, name, to_taeda(options), [tensor_to_taeda(v) for v in theirs.values()])
    crossed.optimizer.load_state_dict(to_taeda(theirs.optimizer.state_dict()))
    back = Run(torch, name, options, [to_torch(v).clone() for v in ours.values()])
    back.optimizer.load_state_dict(to_their_state(ours.optimizer.state_dict()))
    for i in range(STEPS // 2, STEPS):
        for run in (ours, theirs, crossed, back):
            run.step(i)
    assert_same_values(crossed, theirs, most, "from PyTorch")
    assert_same_values(ours, back, most, "into PyTorch")


def to_their_state(value: Any) -> Any:
    if isinstance(value, taeda.Tensor):
        return to_torch(value).clone()
    if isinstance(value, dict):
        return {k: to_their_state(v) for k, v in value.items()}
    if isinstance(value, list):
        return [to_their_state(v) for v in value]
    return value


@pytest.mark.parametrize(("name", "options"), configurations())
def test_resuming_is_exact(name: str, options: dict) -> None:
    straight, _ = pair(name, options, torch.float32)
    first, _ = pair(name, options, torch.float32)
    for i in range(STEPS):
        straight.step(i)
    for i in range(STEPS // 2):
        first.step(i)
    second = Run(taeda, name, to_taeda(options), [v.clone() for v in first.values()])
    second.optimizer.load_state_dict(copy.deepcopy(first.optimizer.state_dict()))
    for i in range(STEPS // 2, STEPS):
        second.step(i)
    for a, b in zip(straight.values(), second.values(), strict=True):
        assert a.tolist() == b.tolist()


def error_inputs() -> list:
    found = []
    for info in INFOS:
        torch.manual_seed(0)
        for error in info.optim_error_inputs_func(device="cpu", dtype=torch.float32):
            label = f"{info.optim_cls.__name__}-{error.optimizer_error_input.desc}"
            found.append(pytest.param(info.optim_cls.__name__, error, id=label))
    return found


def with_parameters(value: Any) -> Any:
    """Like to_taeda, with the same tensor wherever PyTorch has the same one."""
    seen: dict[int, Any] = {}

    def convert(v: Any) -> Any:
        if isinstance(v, torch.Tensor):
            if id(v) not in seen:
                seen[id(v)] = tensor_to_taeda(v)
                if v.grad is not None:
                    seen[id(v)].grad = tensor_to_taeda(v.grad)
            return seen[id(v)]
        if isinstance(v, dict):
            return {k: convert(x) for k, x in v.items()}
        if isinstance(v, (list, tuple)):
            return type(v)(convert(x) for x in v)
        return v

    return convert(value)


@pytest.mark.parametrize(("name", "error"), error_inputs())
def test_errors(name: str, error: Any) -> None:
    given = error.optimizer_error_input
    params = [torch.nn.Parameter(torch.ones(1))] if given.params is None else given.params
    make = getattr(taeda.optim, name)
    params, options = with_parameters(params), to_taeda(given.kwargs)
    if error.error_on is OptimizerErrorEnum.CONSTRUCTION_ERROR:
        if issubclass(error.error_type, Warning):
            with pytest.warns(error.error_type):
                make(params, **options)
        else:
            with pytest.raises(error.error_type):
                make(params, **options)
    else:
        optimizer = make(params, **options)
        with pytest.raises(error.error_type):
            optimizer.step()
