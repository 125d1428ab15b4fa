"""Cases on the guard device, in a process of their own: an access to its memory ends it.

    python -m tests.guard.run LIBRARY SUITE

With GUARD_TABLES=few in the environment, most ops fall back to the CPU; with GUARD_DEVICE=cuda, the
cases run on that device. Prints `begin NAME` and `ok NAME` or `failed NAME: why` for each case.
"""

from __future__ import annotations

import copy
import functools
import io
import math
import os
import pickle
import sys
import warnings
from collections.abc import Callable, Iterator

import taeda

DEVICE = os.environ.get("GUARD_DEVICE", "guard")
OWN_NUMBERS = DEVICE == "cuda"  # random ones are not those of the CPU


def on_device(value: object) -> object:
    """The value with its tensors on the device, leaves that require gradients among them."""
    if isinstance(value, taeda.Tensor):
        return value.detach().to(DEVICE).requires_grad_(value.requires_grad)
    if isinstance(value, (list, tuple)):
        return type(value)(on_device(v) for v in value)
    return value


def compare(what: str, got: object, expected: object) -> None:
    if isinstance(expected, taeda.Tensor):
        assert got.device.type == DEVICE, f"{what} is on {got.device}"
        wide = expected.dtype in (taeda.float64, taeda.complex128)
        close = {"rtol": 1e-9, "atol": 1e-11} if wide else {"rtol": 1e-5, "atol": 1e-6}
        taeda.testing.assert_close(got.cpu(), expected, **close, equal_nan=True)
    elif isinstance(expected, (list, tuple)):
        for g, e in zip(got, expected, strict=True):
            compare(what, g, e)
    else:
        assert got == expected, f"{what}: {got} instead of {expected}"


def tensors_in(value: object) -> list[taeda.Tensor]:
    if isinstance(value, taeda.Tensor):
        return [value]
    return [t for v in value for t in tensors_in(v)] if isinstance(value, (list, tuple)) else []


class _MovesConstants(taeda.overrides.TorchFunctionMode):
    """Moves the tensors that a case holds beside its inputs, such as indices and masks."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        def move(value: object) -> object:
            if isinstance(value, taeda.Tensor) and value.is_cpu and value.dim():
                return value.to(DEVICE)
            if type(value) in (list, tuple):
                return type(value)(move(v) for v in value)
            return value

        return func(*move(args), **{k: move(v) for k, v in (kwargs or {}).items()})


def run_op(call: Callable, inputs: list[taeda.Tensor]) -> None:
    """Value and gradients on the device are those on the CPU."""
    moved = on_device(inputs)
    taeda.manual_seed(0)
    expected = call(*inputs)
    taeda.manual_seed(0)
    with taeda.device(DEVICE), _MovesConstants():
        got = call(*moved)
    compare("the result", got, expected)
    leaves = [t for t in inputs if t.requires_grad]
    pairs = [
        (g, e)
        for g, e in zip(tensors_in(got), tensors_in(expected), strict=True)
        if e.requires_grad
    ]
    if not leaves or not pairs:
        return
    totals = [sum((t * t.conj()).real.sum() for t in side) for side in zip(*pairs, strict=True)]
    for total in totals:
        total.backward()
    for g, e in zip([t for t in moved if t.requires_grad], leaves, strict=True):
        assert (g.grad is None) == (e.grad is None), "one gradient is missing"
        if e.grad is not None:
            compare("a gradient", g.grad, e.grad)


def run_mixed(call: Callable, inputs: list[taeda.Tensor]) -> None:
    """With one tensor on the CPU and the others not: an error of the devices, or a right result."""
    expected = call(*inputs)
    for k in range(len(inputs)):
        moved = [x if i == k else on_device(x) for i, x in enumerate(inputs)]
        try:
            with taeda.device(DEVICE):
                got = call(*moved)
        except RuntimeError as error:
            named = "cpu" in str(error) and f"{DEVICE}:0" in str(error)
            assert named, f"argument {k}: {error}"
        else:
            compare(f"the result with argument {k} on the CPU", got, expected)


def op_cases() -> Iterator[tuple[str, Callable[[], None]]]:
    from tests.ops.cases import CASES

    for case in CASES:
        yield case.name, lambda case=case: run_op(case.call, case.inputs())


def run_made_there(call: Callable) -> None:
    """What it makes on the default device is there what it is on the CPU."""
    results = []
    for device in (DEVICE, "cpu"):
        taeda.manual_seed(0)
        with taeda.device(device):
            results.append(call())
    compare("the result", *results)


def place_cases() -> Iterator[tuple[str, Callable[[], object]]]:
    """In place, out=, numbers among tensors, and indices in the CPU's memory."""
    linalg, special = taeda.linalg, taeda.special

    def x(*shape: int) -> taeda.Tensor:
        size = shape or (4, 3)
        return taeda.linspace(0.1, 2, math.prod(size)).reshape(size).sin()

    def index() -> taeda.Tensor:
        return taeda.tensor([2, 0])

    def into(function: Callable, *args: object, **kwargs: object) -> taeda.Tensor:
        out = taeda.empty(0)
        assert function(*args, out=out, **kwargs) is out
        return out

    def range_in_a_view() -> taeda.Tensor:
        base = taeda.zeros(4, 4)
        taeda.arange(8.0, out=base[:, 1:3])
        return base

    def sorted_into() -> tuple[taeda.Tensor, ...]:
        out = taeda.empty(0), taeda.empty(0, dtype=taeda.int64)
        taeda.sort(x(), out=out)
        return out

    def change(function: Callable) -> taeda.Tensor:
        changed = x()
        before = changed._version
        function(changed)
        assert changed._version == before + 1
        return changed

    def on_cpu(*values: int) -> taeda.Tensor:
        return taeda.tensor(values, device="cpu")

    def ldl() -> taeda.Tensor:
        a = x(3, 3) + x(3, 3).T
        return linalg.ldl_solve(*linalg.ldl_factor(a), x(3, 2))

    def slope(f: Callable) -> taeda.Tensor:
        v = x().double().abs().requires_grad_()
        return taeda.autograd.grad(f(v).sum(), v, create_graph=True)[0]

    if not OWN_NUMBERS:
        yield "random_", lambda: change(lambda t: t.random_(9))
    yield from {
        "ones into": lambda: into(taeda.ones, 2, 2),
        "arange into a view": range_in_a_view,
        "sort into": sorted_into,
        "softmax into": lambda: into(taeda.softmax, x(), 0),
        "gather into": lambda: into(taeda.gather, x(), 0, index()[:, None]),
        "inv into": lambda: into(linalg.inv, x(3, 3) + taeda.eye(3)),
        "histc into": lambda: into(taeda.histc, x(), 3),
        "put_": lambda: change(lambda t: t.put_(index(), taeda.tensor([8.0, 9.0]))),
        "scatter_ of a number": lambda: change(lambda t: t.scatter_(1, index()[:, None], 5.0)),
        "index_fill_": lambda: change(lambda t: t.index_fill_(0, index(), 5.0)),
        "index_put_": lambda: change(
            lambda t: t.index_put_((on_cpu(2, 0),), taeda.tensor(7.0, device="cpu"))
        ),
        "a CPU mask": lambda: change(lambda t: t.__setitem__(on_cpu(2, 0, 2, 0) == 0, 7.0)),
        "tril_": lambda: change(lambda t: t.tril_()),
        "renorm_": lambda: change(lambda t: t.renorm_(2, 0, 0.5)),
        "indices of the CPU": lambda: (
            x()[on_cpu(2, 0)],
            x()[:, on_cpu(1)],
            x()[on_cpu(0, 1, 0, 1) == 0],
        ),
        "isin a number": lambda: taeda.isin(index(), 2),
        "isin of a number": lambda: taeda.isin(2, index()),
        "searchsorted of a number": lambda: taeda.searchsorted(taeda.arange(5.0), 2),
        "bucketize a number": lambda: taeda.bucketize(2.5, taeda.arange(5.0)),
        "ldl_solve": ldl,
        "lstsq": lambda: linalg.lstsq(x(5, 3) + taeda.eye(5)[:, :3], x(5, 2), driver="gelsd"),
        "zeta": lambda: special.zeta(taeda.tensor(2.5, device="cpu"), x().abs()),
        "derivative of zeta": lambda: slope(lambda v: special.zeta(2.5, v)),
        "derivative of a polynomial": lambda: slope(lambda v: special.chebyshev_polynomial_t(v, 3)),
    }.items()


def mixed_cases() -> Iterator[tuple[str, Callable[[], None]]]:
    from tests.ops.cases import CASES

    for case in CASES:
        inputs = case.inputs()
        if len(inputs) > 1 and all(isinstance(x, taeda.Tensor) for x in inputs):
            yield case.name, lambda case=case, inputs=inputs: run_mixed(case.call, inputs)


def module_cases() -> Iterator[tuple[str, Callable[[], None]]]:
    """Modules in training mode: results, gradients of input and parameters."""
    nn = taeda.nn
    images, rows = (2, 4, 8, 8), (3, 5)
    made: list[tuple[str, Callable[[], nn.Module], tuple[int, ...]]] = [
        ("Linear", lambda: nn.Linear(5, 7), rows),
        ("Conv2d", lambda: nn.Conv2d(4, 6, 3, padding=1), images),
        ("Conv2d depthwise", lambda: nn.Conv2d(4, 4, 3, groups=4), images),
        ("ConvTranspose2d", lambda: nn.ConvTranspose2d(4, 3, 3, stride=2), images),
        ("BatchNorm2d", lambda: nn.BatchNorm2d(4), images),
        ("GroupNorm", lambda: nn.GroupNorm(2, 4), images),
        ("LayerNorm", lambda: nn.LayerNorm(5), rows),
        ("RMSNorm", lambda: nn.RMSNorm(5), rows),
        ("MaxPool2d", lambda: nn.MaxPool2d(2), images),
        ("AvgPool2d", lambda: nn.AvgPool2d(2), images),
        ("AdaptiveAvgPool2d", lambda: nn.AdaptiveAvgPool2d(3), images),
        ("Upsample", lambda: nn.Upsample(scale_factor=2, mode="bilinear"), images),
        ("PReLU", lambda: nn.PReLU(), rows),
        ("GELU", lambda: nn.GELU(), rows),
        ("Softmax", lambda: nn.Softmax(1), rows),
        *([] if OWN_NUMBERS else [("Dropout", lambda: nn.Dropout(), rows)]),
        ("EmbeddingBag", lambda: _Bags(7, 3), (2, 3)),
        ("LSTM", lambda: nn.LSTM(5, 4, batch_first=True), (2, 3, 5)),
        ("GRU", lambda: nn.GRU(5, 4, bidirectional=True), (2, 3, 5)),
        ("MultiheadAttention", lambda: _SelfAttention(6, 2), (2, 4, 6)),
        (
            "TransformerEncoderLayer",
            lambda: nn.TransformerEncoderLayer(6, 2, 8, dropout=0.5 * (not OWN_NUMBERS)),
            (3, 2, 6),
        ),
    ]
    for name, make, shape in made:
        yield name, lambda make=make, shape=shape: run_module(make, shape)


class _Bags(taeda.nn.EmbeddingBag):
    """Bags of several sizes, added to the input."""

    def forward(self, x: taeda.Tensor) -> taeda.Tensor:
        index = taeda.tensor([1, 2, 4, 2], device=x.device)
        return super().forward(index, taeda.tensor([0, 3], device=x.device)) + x


class _SelfAttention(taeda.nn.MultiheadAttention):
    def forward(self, x: taeda.Tensor) -> taeda.Tensor:
        return super().forward(x, x, x)[0]


def run_module(make: Callable, shape: tuple[int, ...]) -> None:
    taeda.manual_seed(1)
    module = make().double()
    twin = copy.deepcopy(module).to(DEVICE)
    x = taeda.randn(shape, dtype=taeda.float64, requires_grad=True)
    run_op(lambda x: module(x) if x.device.type == "cpu" else twin(x), [x])
    for (name, p), q in zip(module.named_parameters(), twin.parameters(), strict=True):
        compare(f"the gradient of {name}", q.grad, p.grad)
    for (name, p), q in zip(module.named_buffers(), twin.buffers(), strict=True):
        compare(name, q, p)


def optimizer_cases() -> Iterator[tuple[str, Callable[[], None]]]:
    """Three steps of every optimizer."""
    optim = taeda.optim
    for name in (
        "SGD", "Adam", "AdamW", "Adamax", "NAdam", "RAdam", "RMSprop", "Adagrad", "Adadelta",
        "Rprop", "ASGD", "LBFGS",
    ):  # fmt: skip
        yield name, functools.partial(run_optimizer, getattr(optim, name))


def run_optimizer(cls: type) -> None:
    start = taeda.randn(4, 3, generator=taeda.Generator().manual_seed(2))

    def train(device: str) -> taeda.Tensor:
        p = start.to(device, copy=True).requires_grad_()
        optimizer = cls([p])

        def closure() -> taeda.Tensor:
            optimizer.zero_grad()
            loss = (p * p).sum()
            loss.backward()
            return loss

        for _ in range(3):
            optimizer.step(closure)
        return p.detach()

    compare("the parameter", train(DEVICE), train("cpu"))


def package_cases() -> Iterator[tuple[str, Callable[[], None]]]:
    yield "printing", run_printing
    yield "saving and loading", run_saving
    yield "DataLoader", run_loading
    yield "vmap and grad", run_transforms
    yield "pickle and deepcopy", run_pickle
    yield "items and lists", run_items
    yield "indices of devices", run_indices
    yield "gradcheck", run_gradcheck


def run_printing() -> None:
    x = taeda.arange(6.0).reshape(2, 3)
    text = repr(x.to(DEVICE))
    assert text == repr(x)[:-1] + f", device='{DEVICE}:0')", text
    assert "10000" in str(taeda.arange(10001, device=DEVICE))


def run_saving() -> None:
    model = taeda.nn.Linear(3, 2).to(DEVICE)
    file = io.BytesIO()
    taeda.save(model.state_dict(), file)
    for where in (None, "cpu"):
        file.seek(0)
        state = taeda.load(file, map_location=where)
        assert state["weight"].device.type == (where or DEVICE)
        assert taeda.equal(state["weight"].cpu(), model.weight.cpu())


def run_loading() -> None:
    data = taeda.utils.data.TensorDataset(taeda.arange(10.0), taeda.arange(10))
    rows = [
        x.to(DEVICE) * y.to(DEVICE) for x, y in taeda.utils.data.DataLoader(data, 4, num_workers=2)
    ]
    compare("the batches", taeda.cat(rows), taeda.arange(10.0) ** 2)


def run_transforms() -> None:
    x = taeda.randn(4, 3, dtype=taeda.float64)
    f = taeda.func.vmap(taeda.func.grad(lambda v: (v * v).sin().sum()))
    compare("per-sample gradients", f(x.to(DEVICE)), f(x))


def run_pickle() -> None:
    x = taeda.randn(3).to(DEVICE)
    for y in (pickle.loads(pickle.dumps(x)), copy.deepcopy(x)):
        compare("the copy", y, x.cpu())


def run_items() -> None:
    x = taeda.arange(6).reshape(2, 3).to(DEVICE)
    assert x.tolist() == [[0, 1, 2], [3, 4, 5]] and x[1, 2].item() == 5 and int(x.sum()) == 15
    assert list(x[0].cpu().numpy()) == [0, 1, 2]
    try:
        x.numpy()
    except TypeError as error:
        assert "Tensor.cpu()" in str(error)
    else:
        raise AssertionError("a tensor of the device became an array")


def run_gradcheck() -> None:
    x = taeda.rand(3, dtype=taeda.float64).to(DEVICE).requires_grad_()
    for function in (taeda.sin, lambda x: x.sin().cpu()):
        assert taeda.autograd.gradcheck(function, x) and taeda.autograd.gradgradcheck(function, x)


def run_indices() -> None:
    x, y = taeda.ones(2, device=f"{DEVICE}:0"), taeda.ones(2, device=f"{DEVICE}:1")
    assert y.device.index == 1
    compare("a copy between devices", y.to(f"{DEVICE}:0"), taeda.ones(2))
    for wrong in (lambda: x + y, lambda: taeda.ones(2, device=f"{DEVICE}:2")):
        try:
            wrong()
        except RuntimeError:
            continue
        raise AssertionError("no error")


SUITES = {
    "ops": op_cases,
    "mixed": mixed_cases,
    "places": lambda: (
        (name, functools.partial(run_made_there, call)) for name, call in place_cases()
    ),
    "modules": module_cases,
    "optimizers": optimizer_cases,
    "package": package_cases,
}


def main(library: str, suite: str) -> None:
    if DEVICE == "cuda":  # by TAEDA_CUDA_LIBRARY, when it is first named
        assert taeda.ones(1, device=DEVICE).is_cuda
    else:
        taeda.register_device(DEVICE, library)
    if os.environ.get("GUARD_TABLES") == "few":
        taeda.set_fallback("cpu")
    warnings.simplefilter("always")
    for name, run in SUITES[suite]():
        print("begin", name, flush=True)
        try:
            run()
            print("ok", name, flush=True)
        except Exception as error:
            print(f"failed {name}: {type(error).__name__}: {str(error)[:300]!r}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
