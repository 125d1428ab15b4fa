"""Every entry of PyTorch's module database: the same module, built and called with the same arguments."""

from __future__ import annotations

import copy
import inspect
import itertools
import pickle
import re
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="the conformance suite compares with PyTorch")
pytest.importorskip("expecttest", reason="PyTorch's module database needs expecttest")

import taeda  # noqa: E402
from tests.conformance.bridge import DTYPES, Untranslatable, to_taeda, to_torch  # noqa: E402
from tests.conformance.expected_modules import (  # noqa: E402
    ABSENT,
    ATTRIBUTES,
    DIFFERS,
    INPUTS,
    ROUNDING,
)

from torch.testing._internal.common_modules import (  # noqa: E402  isort: skip
    ModuleErrorEnum,
    module_db,
)

MAX_INPUTS = 24  # spread over all inputs of an entry
TOLERANCE = {torch.float32: (2e-5, 2e-5), torch.float64: (1e-9, 1e-9)}
NAMES = [info.name.removeprefix("nn.") for info in module_db]


def present(name: str) -> bool:
    return hasattr(taeda.nn, name)


ENTRIES = [info for info in module_db if present(info.name.removeprefix("nn."))]


def test_every_module_is_there() -> None:
    missing = {name for name in NAMES if not present(name)}
    assert missing == set(ABSENT), "modules of PyTorch's database that taeda lacks"


def inputs_of(info: Any, dtype: torch.dtype, training: bool, grad: bool = True) -> list:
    torch.manual_seed(2)
    found = info.module_inputs_func(
        info, device="cpu", dtype=dtype, requires_grad=grad, training=training
    )
    found = list(itertools.islice(found, 300))
    return found[:: max(1, -(-len(found) // MAX_INPUTS))]


def translated(value: Any, memo: dict | None = None) -> Any:
    """A constructor's or forward's argument as taeda's: tensors, dtypes, modules and functions."""
    memo = {} if memo is None else memo
    if isinstance(value, torch.Tensor):
        if id(value) not in memo:
            memo[id(value)] = to_taeda(value)
        return memo[id(value)]
    if isinstance(value, torch.nn.Module):
        args, kwargs = RECIPES[type(value)](value)
        ours = build(getattr(taeda.nn, type(value).__name__), args, kwargs)
        ours.load_state_dict(translated(dict(value.state_dict())))
        return ours
    if isinstance(value, (list, tuple)) and type(value) in (list, tuple):
        return type(value)(translated(v, memo) for v in value)
    if isinstance(value, dict):
        return {k: translated(v, memo) for k, v in value.items()}
    if callable(value) and getattr(value, "__module__", "").startswith("torch"):
        name = value.__name__
        for home in (taeda.nn.functional, taeda.nn, taeda):
            if hasattr(home, name):
                return getattr(home, name)
        raise Untranslatable(name)
    return to_taeda(value)


def layer_recipe(m: Any) -> Any:
    options = {
        "batch_first": m.self_attn.batch_first,
        "norm_first": m.norm_first,
        "bias": m.linear1.bias is not None,
        "dtype": DTYPES[m.linear1.weight.dtype],
    }
    attention = m.self_attn
    return (attention.embed_dim, attention.num_heads, m.linear1.out_features, m.dropout.p), options


# How to build the modules that other modules' constructors take, from one of PyTorch's.
RECIPES: dict[type, Any] = {
    torch.nn.TransformerEncoderLayer: layer_recipe,
    torch.nn.TransformerDecoderLayer: layer_recipe,
    torch.nn.LayerNorm: lambda m: ((m.normalized_shape,), {"eps": m.eps}),
    torch.nn.ReLU: lambda m: ((), {}),
}


def build(cls: Any, args: Any, kwargs: Any) -> Any:
    taeda.manual_seed(5)
    return cls(*args, **kwargs)


def pair(info: Any, case: Any) -> tuple[Any, Any]:
    """Ours and theirs, built with the same arguments and the same seed."""
    args, kwargs = case.constructor_input.args, case.constructor_input.kwargs
    cls = getattr(taeda.nn, info.name.removeprefix("nn."))
    ours = build(cls, translated(args), translated(kwargs))
    torch.manual_seed(5)
    return ours, info.module_cls(*args, **kwargs)


def describe(info: Any, case: Any) -> str:
    def short(v: Any) -> str:
        if isinstance(v, torch.Tensor):
            return f"{str(v.dtype)[6:]}{list(v.shape)}"
        if isinstance(v, (list, tuple)):
            return "(" + ", ".join(map(short, v)) + ")"
        return repr(v)

    def call(given: Any) -> str:
        parts = [short(v) for v in given.args]
        return ", ".join(parts + [f"{k}={short(v)}" for k, v in given.kwargs.items()])

    return f"{info.name}({call(case.constructor_input)})({call(case.forward_input)})"


def flat(value: Any) -> list:
    """The tensors in a nesting, in order."""
    if isinstance(value, (torch.Tensor, taeda.Tensor)):
        return [value]
    if isinstance(value, (list, tuple)):
        return [t for v in value for t in flat(v)]
    if isinstance(value, dict):
        return [t for v in value.values() for t in flat(v)]
    return []


def assert_close(ours: Any, theirs: Any, dtype: torch.dtype, where: str) -> None:
    if isinstance(theirs, torch.Tensor):
        assert isinstance(ours, taeda.Tensor), f"{where}: {type(ours).__name__} for a tensor"
        rtol, atol = TOLERANCE.get(theirs.dtype, (0, 0))
        if theirs.dtype == torch.float32:
            name = where.removeprefix("nn.").partition("(")[0]
            rtol = atol = ROUNDING.get(name, rtol)
        torch.testing.assert_close(
            to_torch(ours),
            theirs.detach(),
            rtol=rtol,
            atol=atol,
            equal_nan=True,
            msg=lambda m: f"{where}: {m}",
        )
    elif isinstance(theirs, (list, tuple)):
        assert len(ours) == len(theirs), where
        for i, (a, b) in enumerate(zip(ours, theirs, strict=True)):
            assert_close(a, b, dtype, f"{where}[{i}]")
    else:
        assert ours == theirs, where


def as_leaves(value: Any, memo: dict) -> Any:
    """The same arguments, with every tensor that requires grad a leaf; one tensor stays one."""
    if isinstance(value, torch.Tensor):
        if id(value) not in memo:
            memo[id(value)] = value.detach().clone().requires_grad_(value.requires_grad)
        return memo[id(value)]
    if type(value) in (list, tuple):
        return type(value)(as_leaves(v, memo) for v in value)
    if isinstance(value, dict):
        return {k: as_leaves(v, memo) for k, v in value.items()}
    return value


def backward(output: Any, ones_like: Any) -> None:
    outputs = [t for t in flat(output) if t.requires_grad]
    if outputs:
        # Weights that are no constant, or the gradient of a normalisation would vanish.
        grads = [ones_like(t) for t in outputs]
        namespace = taeda if isinstance(outputs[0], taeda.Tensor) else torch
        namespace.autograd.backward(outputs, grads)


def ramp(t: torch.Tensor) -> torch.Tensor:
    return torch.linspace(0.5, 1.5, t.numel(), dtype=t.dtype).reshape(t.shape)


def params(dtypes: tuple = (torch.float32, torch.float64), entries: Any = ENTRIES) -> list:
    found = []
    for info in entries:
        for dtype in dtypes:
            if dtype not in info.dtypes:
                continue
            name = info.name.removeprefix("nn.")
            found.append(pytest.param(info, dtype, id=f"{name}-{str(dtype)[6:]}"))
    return found


def expected_failure(info: Any, aspect: str) -> None:
    reason = DIFFERS.get((info.name.removeprefix("nn."), aspect))
    if reason:
        pytest.xfail(reason)


def skip_case(info: Any, case: Any) -> bool:
    """Inputs that one of the two cannot take, with a reason in `expected_modules`."""
    text = describe(info, case)
    return any(re.search(pattern, text) for pattern in INPUTS)


@pytest.mark.parametrize(("info", "dtype"), params())
@pytest.mark.parametrize("training", [True, False], ids=["train", "eval"])
@pytest.mark.filterwarnings("ignore")
def test_forward_and_gradients(info: Any, dtype: torch.dtype, training: bool) -> None:
    expected_failure(info, "values")
    compared = 0
    for case in inputs_of(info, dtype, training):
        if case.forward_input is None or skip_case(info, case):
            continue
        where = describe(info, case)
        ours, theirs = pair(info, case)
        theirs.to(dtype).train(training)
        ours.to(DTYPES[dtype]).train(training)
        given = as_leaves([list(case.forward_input.args), case.forward_input.kwargs], {})
        arguments = translated(given)
        leaves = [t for t in flat(given) if t.requires_grad]
        our_leaves = [t for t in flat(arguments) if t.requires_grad]
        torch.manual_seed(7)
        expected = theirs(*given[0], **given[1])
        taeda.manual_seed(7)
        actual = ours(*arguments[0], **arguments[1])
        assert_close(actual, expected, dtype, where)
        backward(expected, ramp)
        backward(actual, lambda t: to_taeda(ramp(torch.empty(t.shape, dtype=dtype))))
        names = list(zip(our_leaves, leaves, strict=True))
        mine, others = dict(ours.named_parameters()), dict(theirs.named_parameters())
        assert list(mine) == list(others), where
        names += [(mine[n], others[n]) for n in others]
        for i, (a, b) in enumerate(names):
            assert (a.grad is None) == (b.grad is None), f"{where}: gradient {i}"
            if b.grad is not None:
                assert_close(a.grad, b.grad, dtype, f"{where}: gradient {i}")
        # What the forward did to the buffers.
        assert_close(list(ours.buffers()), list(theirs.buffers()), dtype, f"{where}: buffers")
        compared += 1
    if not compared:
        pytest.skip("no input of this entry can be expressed in both")


@pytest.mark.parametrize(("info", "dtype"), params())
@pytest.mark.filterwarnings("ignore")
def test_initial_values_and_names(info: Any, dtype: torch.dtype) -> None:
    """Default initialisation bit for bit, state_dict, repr and attributes."""
    expected_failure(info, "initial")
    takes_dtype = (
        "dtype"
        in inspect.signature(getattr(taeda.nn, info.name.removeprefix("nn.")).__init__).parameters
    )
    for case in inputs_of(info, dtype, True):
        where = describe(info, case)
        if skip_case(info, case):
            continue
        if takes_dtype and dtype is torch.float64:
            case.constructor_input.kwargs = {**case.constructor_input.kwargs, "dtype": dtype}
        ours, theirs = pair(info, case)
        assert list(ours.state_dict()) == list(theirs.state_dict()), where
        lazy = any(torch.nn.parameter.is_lazy(p) for p in theirs.parameters())
        if not lazy:
            for name, value in theirs.state_dict().items():
                got = to_torch(ours.state_dict()[name])
                assert got.dtype == value.dtype, f"{where}: {name}"
                assert torch.equal(got, value), f"{where}: initial {name}"
        assert repr(ours) == repr(theirs).replace("torch.", "taeda."), where
        assert [n for n, _ in ours.named_modules()] == [n for n, _ in theirs.named_modules()]
        theirs_public = {k for k in vars(theirs) if not k.startswith("_")}
        absent = {k for k in theirs_public - set(ATTRIBUTES) if not hasattr(ours, k)}
        assert not absent, f"{where}: attributes {sorted(absent)}"


@pytest.mark.parametrize("info", [pytest.param(i, id=i.name[3:]) for i in ENTRIES])
@pytest.mark.filterwarnings("ignore")
def test_copies_and_pickles(info: Any) -> None:
    """A deep copy and an unpickled module say and do the same; training is theirs too."""
    expected_failure(info, "copies")
    for case in inputs_of(info, torch.float32, True, grad=False)[:6]:
        where = describe(info, case)
        if case.forward_input is None or skip_case(info, case):
            continue
        ours, _ = pair(info, case)
        ours.eval()
        others = [copy.deepcopy(ours), pickle.loads(pickle.dumps(ours))]
        arguments = translated([list(case.forward_input.args), case.forward_input.kwargs])
        taeda.manual_seed(1)
        expected = flat(ours(*copy.deepcopy(arguments[0]), **arguments[1]))
        for other in others:
            assert other.training is False
            taeda.manual_seed(1)
            actual = flat(other(*copy.deepcopy(arguments[0]), **arguments[1]))
            for a, e in zip(actual, expected, strict=True):
                assert_close(a, to_torch(e), torch.float32, where)
            assert repr(other) == repr(ours), where
            assert all(a is not b for a, b in zip(other.parameters(), ours.parameters()))  # noqa: B905
            other.load_state_dict(ours.state_dict())


@pytest.mark.parametrize("info", [pytest.param(i, id=i.name[3:]) for i in ENTRIES])
@pytest.mark.filterwarnings("ignore")
def test_from_the_meta_device(info: Any) -> None:
    """Built without memory, then filled from a state_dict, in either of the two ways."""
    cls = getattr(taeda.nn, info.name.removeprefix("nn."))
    if "device" not in inspect.signature(cls.__init__).parameters or info.name.startswith(
        "nn.Lazy"
    ):
        pytest.skip("takes no device, or has no shapes yet")
    for case in inputs_of(info, torch.float32, True, grad=False)[:6]:
        if case.forward_input is None or skip_case(info, case):
            continue
        ours, _ = pair(info, case)
        args, kwargs = case.constructor_input.args, case.constructor_input.kwargs
        arguments = translated([list(case.forward_input.args), case.forward_input.kwargs])
        taeda.manual_seed(1)
        expected = flat(ours.eval()(*copy.deepcopy(arguments[0]), **arguments[1]))
        for assign in (True, False):
            empty = cls(*translated(args), **{**translated(kwargs), "device": "meta"})
            assert all(t.is_meta for t in empty.parameters())
            if not assign:
                empty.to_empty(device="cpu")
            empty.load_state_dict(ours.state_dict(), assign=assign)
            assert repr(empty) == repr(ours)
            taeda.manual_seed(1)
            actual = flat(empty.eval()(*copy.deepcopy(arguments[0]), **arguments[1]))
            for a, e in zip(actual, expected, strict=True):
                assert_close(a, to_torch(e), torch.float32, describe(info, case))


@pytest.mark.parametrize(
    "info",
    [pytest.param(i, id=i.name[3:]) for i in ENTRIES if i.module_error_inputs_func],
)
@pytest.mark.filterwarnings("ignore")
def test_error_inputs(info: Any) -> None:
    expected_failure(info, "errors")
    errors = info.module_error_inputs_func(
        info, device="cpu", dtype=torch.float32, requires_grad=False, training=False
    )
    for error in errors:
        case = error.module_error_input
        args, kwargs = case.constructor_input.args, case.constructor_input.kwargs
        cls = getattr(taeda.nn, info.name.removeprefix("nn."))
        if error.error_on == ModuleErrorEnum.CONSTRUCTION_ERROR:
            with pytest.raises(error.error_type):
                build(cls, translated(args), translated(kwargs))
                pytest.fail(f"{info.name}{args}{kwargs} raised nothing")
        else:
            ours = build(cls, translated(args), translated(kwargs))
            given = translated([list(case.forward_input.args), case.forward_input.kwargs])
            with pytest.raises(error.error_type):
                ours(*given[0], **given[1])
                pytest.fail(f"{describe(info, case)} raised nothing; {error.error_regex}")
