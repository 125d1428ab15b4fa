"""Short programs that give, or refuse, on both libraries the same: what users ran into first."""

from __future__ import annotations

import copy
import io
import pickle
import tempfile
import warnings
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="the programs run on PyTorch too")

import taeda  # noqa: E402

NAN, INF = float("nan"), float("inf")


def plain(value: Any, library: Any) -> Any:
    """Numbers, dtypes and shapes of a result."""
    if isinstance(value, library.Tensor):
        dtype = str(value.dtype).split(".")[-1]
        if value.device.type == "meta":
            return dtype, tuple(value.shape)
        dense = value.detach()
        dense = dense if dense.layout is library.strided else dense.to_dense()
        flat = dense.resolve_conj().reshape(-1).tolist()
        if library is torch:
            flat = pytest.approx(flat, rel=1e-4, abs=1e-6, nan_ok=True)
        return dtype, tuple(value.shape), flat, value.requires_grad
    if isinstance(value, tuple | list):
        return [plain(part, library) for part in value]
    if isinstance(value, dict):
        return {key: plain(part, library) for key, part in value.items()}
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


def outcome(program: Any, library: Any) -> Any:
    """What a program gives, or the type of its error."""
    library.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return plain(program(library), library)
        except Exception as error:
            return type(error).__name__


def gradient(library: Any, function: Any, *values: Any) -> Any:
    """The gradients of a function's sum at some values."""
    given = [library.tensor(value, requires_grad=True) for value in values]
    function(*given).sum().backward()
    return [x.grad for x in given]


def filled(library: Any, *sizes: int) -> Any:
    return library.arange(float(library.Size(sizes).numel())).reshape(sizes)


def into_a_view(library: Any) -> Any:
    x = library.zeros(3, 3)
    library.arange(3.0, out=x[:, 0])
    library.linspace(0, 1, 3, out=x[:, 1])
    library.logspace(0, 1, 3, out=x[:, 2])
    return x


def in_itself(library: Any) -> Any:
    z: list[Any] = [0]
    z += [z]
    return library.tensor(z)


def a_negative_length(library: Any) -> Any:
    class Sequence:
        def __len__(self) -> int:
            return -5

        def __getitem__(self, i: int) -> int:
            return 1

    return library.tensor(Sequence())


def data_replaced_before_backward(library: Any) -> Any:
    w, v = library.ones(2, 2, requires_grad=True), library.ones(2)
    y = w.mv(v)
    v.data = library.tensor([3.0, 4.0])
    y.sum().backward()
    return w.grad


def float_power_in_place(library: Any) -> Any:
    x = library.ones(2, dtype=library.float64, requires_grad=True)
    y = x * 2
    y.float_power_(3)
    y.sum().backward()
    return y, x.grad


def a_module_for_a_parameter(library: Any) -> Any:
    library.nn.Linear(2, 2).weight = library.nn.ReLU()


def a_call_with_plain_attributes(library: Any) -> Any:
    class Scaled(library.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.scale = library.ones(2)

        def forward(self, x: Any) -> Any:
            return x * self.scale

    given = {"scale": library.tensor([3.0, 4.0])}
    return library.func.functional_call(Scaled(), given, (library.ones(2),))


def recurrent(library: Any, change: Any) -> Any:
    layer = library.nn.LSTM(2, 3)
    change(library, layer)
    result, _ = layer(library.ones(2, 1, 2))
    result.sum().backward()
    return result, sorted(name for name, p in layer.named_parameters() if p.grad is not None)


def hand_made_weight_drop(library: Any, layer: Any) -> None:
    raw = layer.weight_hh_l0
    del layer._parameters["weight_hh_l0"]
    layer.register_parameter("raw", raw)
    layer.weight_hh_l0 = raw * 0.5


def a_function_with_its_own_tangent(library: Any) -> Any:
    class Square(library.autograd.Function):
        @staticmethod
        def forward(x: Any) -> Any:
            return x**2

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            ctx.save_for_backward(*inputs)
            ctx.save_for_forward(*inputs)

        @staticmethod
        def backward(ctx: Any, gradient: Any) -> Any:
            return gradient * 2 * ctx.saved_tensors[0]

        @staticmethod
        def jvp(ctx: Any, tangent: Any) -> Any:
            return tangent * 2 * ctx.saved_tensors[0]

    one, func = library.ones(2), library.func
    return func.jvp(Square.apply, (one,), (one,)), func.jacfwd(Square.apply)(one)


def one_tensor_twice(library: Any) -> Any:
    class Twice(library.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            y = x * 2
            return y, y

        @staticmethod
        def backward(ctx: Any, first: Any, second: Any) -> Any:
            return first + second

    return gradient(library, lambda x: sum(Twice.apply(x)), [1.0, 2.0])


def a_hook_on_one_of_several(library: Any) -> Any:
    x = library.ones(2, 2, requires_grad=True)
    first, second = x.unbind()
    first.register_hook(lambda g: g * 3)
    (first + second).sum().backward()
    return x.grad


def schedules_in_schedules(library: Any) -> Any:
    optimizer = library.optim.SGD([library.ones(1, requires_grad=True)], lr=1.0)
    rates = library.optim.lr_scheduler
    both = [rates.ConstantLR(optimizer, 0.5, 3), rates.ExponentialLR(optimizer, 0.9)]
    parts = [rates.ChainedScheduler(both), rates.ExponentialLR(optimizer, 0.5)]
    whole, found = rates.SequentialLR(optimizer, parts, [3]), []
    for _ in range(6):
        optimizer.step()
        whole.step()
        found.append(optimizer.param_groups[0]["lr"])
    return found


def whole_modules(library: Any) -> Any:
    nn, file = library.nn, io.BytesIO()
    library.save(nn.Sequential(nn.LSTM(2, 2), nn.MultiheadAttention(4, 2)), file)
    file.seek(0)
    classes = [nn.Sequential, nn.LSTM, nn.modules.activation.MultiheadAttention]
    classes.append(nn.modules.linear.NonDynamicallyQuantizableLinear)
    with library.serialization.safe_globals(classes):
        return [type(part).__name__ for part in library.load(file, weights_only=True)]


def a_group_of_one(library: Any) -> Any:
    group, x = library.distributed, library.ones(2)
    place = f"file://{tempfile.mktemp()}"
    group.init_process_group("gloo", init_method=place, rank=0, world_size=1)
    try:
        gathered = [library.zeros(2)]
        group.all_reduce(x)
        group.all_gather(gathered, x)
        group.barrier()
        return x, gathered, group.get_world_size()
    finally:
        group.destroy_process_group()


def aliases(library: Any) -> Any:
    F, x = library.nn.functional, library.ones(1, 1, 2, 2, 2)
    same = F.dropout3d(x, 0.5, True, True).data_ptr() == x.data_ptr()
    y = library.ones(1, 1, 2, 2)
    return same, F.pixel_shuffle(y, 1).data_ptr() == y.data_ptr()


def unsigned_numbers(library: Any) -> Any:
    dtypes = (library.uint16, library.uint32, library.uint64)
    drawn = [str(library.empty(4, dtype=d).random_().dtype).split(".")[-1] for d in dtypes]
    large = library.tensor([2**63 + 5], dtype=library.uint64)
    return drawn, [library.randint(0, 10, (3,), dtype=d).tolist() for d in dtypes], large.tolist()


def storages(library: Any) -> Any:
    x, y = library.arange(6.0), library.empty(0)
    y.set_(x.untyped_storage(), 1, (2, 2), (2, 1))
    typed = library.FloatStorage(3)
    typed.fill_(2.0)
    empty = library.empty(3, device="meta").untyped_storage()
    return y, list(typed), x.storage()[1], empty.nbytes()


PROGRAMS: dict[str, Any] = {
    "a bool after a dimension": lambda L: [
        filled(L, 2, 3).std(1, False), filled(L, 2, 3).var(1, False), L.std(filled(L, 2, 3), False)
    ],
    "old signatures of sums": lambda L: [
        L.add(L.ones(2), 2, L.ones(2)), L.sub(L.ones(2), 2, L.ones(2)),
        L.addcmul(L.ones(2), 2, L.ones(2), L.ones(2)), L.addcdiv(L.ones(2), 2, L.ones(2), L.ones(2)),
    ],
    "old signatures of products": lambda L: [
        L.addmm(1, L.ones(2, 2), 3, L.ones(2, 2), L.ones(2, 2)),
        L.addmv(2, L.ones(2), 3, L.ones(2, 2), L.ones(2)),
        L.ones(2, 2).addbmm_(1, L.ones(3, 2, 2), L.ones(3, 2, 2)),
    ],
    "new by size": lambda L: list(L.ones(1).new(size=(2, 3)).shape),
    "resize_as_ with a format": lambda L: list(
        L.ones(1, 2, 3, 4)
        .resize_as_(L.ones(1, 2, 3, 4), memory_format=L.channels_last)
        .stride()
    ),
    "a list in itself": in_itself,
    "a negative length": a_negative_length,
    "results into views": into_a_view,
    "a result that overlaps itself": lambda L: L.arange(3.0, out=L.zeros(1).expand(3)),
    "draws that overlap": lambda L: L.zeros(1).expand(3).bernoulli_(),
    "uniform draws that overlap": lambda L: L.zeros(1).expand(3).uniform_(),
    "0 to a power": lambda L: gradient(L, lambda b: L.pow(L.zeros(2), b), [0.0, 2.0]),
    "a negative number to a complex power": lambda L: gradient(
        L, lambda b: L.pow(L.tensor([-2.0]), b).abs(), [1 + 1j]
    ),
    "differences beside infinity": lambda L: L.gradient(L.tensor([1.0, INF, 2.0, 3.0, 5.0])),
    "data replaced before backward": data_replaced_before_backward,
    "float_power_": float_power_in_place,
    "renorm_": lambda L: gradient(L, lambda x: (x * 1).renorm_(2, 0, 1.0), [[0.0, 1], [2.0, 3]]),
    "unique of a leaf": lambda L: L.unique(
        L.ones(3, requires_grad=True), return_counts=True
    )[0].requires_grad,
    "linear by a CSR weight": lambda L: gradient(
        L, lambda x: L.nn.functional.linear(x, L.eye(2).to_sparse_csr()), [[1.0, 2.0]]
    ),
    "a module for a parameter": a_module_for_a_parameter,
    "the size of a lazy parameter": lambda L: L.nn.LazyLinear(2).weight.numel(),
    "a call with plain attributes": a_call_with_plain_attributes,
    "copies of modules by to": lambda L: L.nn.Linear(1, 1).to("cpu", copy=True),
    "reflections of nothing": lambda L: L.nn.ReflectionPad1d(2)(L.ones(1, 1, 0)),
    "vstack of a tensor": lambda L: L.vstack(L.ones(2, 2)),
    "baddbmm of mixed dtypes": lambda L: L.baddbmm(
        L.ones(1, 2, 2), L.ones(1, 2, 2, dtype=L.float64), L.ones(1, 2, 2)
    ),
    "sample weights of another dtype": lambda L: L.nn.functional.embedding_bag(
        L.tensor([0, 1]), L.ones(2, 2), L.tensor([0]), mode="sum",
        per_sample_weights=L.ones(2, dtype=L.float64),
    ),
    "sample weights beside half precision": lambda L: L.nn.functional.embedding_bag(
        L.tensor([[0, 1]]), L.ones(2, 2).half(), mode="sum", per_sample_weights=L.ones(1, 2)
    ),
    "integer targets": lambda L: L.nn.functional.binary_cross_entropy_with_logits(
        L.ones(2), L.ones(2, dtype=L.int64)
    ),
    "weight_norm of an LSTM": lambda L: recurrent(
        L, lambda L, layer: L.nn.utils.weight_norm(layer, "weight_hh_l0")
    ),
    "parametrized LSTM": lambda L: recurrent(
        L, lambda L, layer: L.nn.utils.parametrizations.weight_norm(layer, "weight_ih_l0")
    ),
    "spectral_norm of an LSTM": lambda L: recurrent(
        L, lambda L, layer: L.nn.utils.spectral_norm(layer, "weight_hh_l0")
    ),
    "weight drop": lambda L: recurrent(L, hand_made_weight_drop),
    "flat weights": lambda L: [
        L.nn.GRU(2, 3)._flat_weights_names, [tuple(w.shape) for w in L.nn.GRU(2, 3)._flat_weights]
    ],
    "a function with its own tangent": a_function_with_its_own_tangent,
    "one tensor twice": one_tensor_twice,
    "a hook on one of several": a_hook_on_one_of_several,
    "copies of operations": lambda L: copy.deepcopy(L.ops.aten.add) is not None,
    "a scaler in a pickle": lambda L: pickle.loads(pickle.dumps(L.amp.GradScaler("cpu"))).get_scale(),
    "schedules in schedules": schedules_in_schedules,
    "empty batches": lambda L: [
        L.nn.AdaptiveAvgPool1d(2)(L.ones(0, 3, 4)).shape,
        L.nn.TransformerDecoderLayer(4, 2)(L.ones(3, 0, 4), L.ones(3, 0, 4)).shape,
    ][0][2],
    "bags with a last offset": lambda L: L.nn.EmbeddingBag(
        3, 2, include_last_offset=True, _weight=L.ones(3, 2)
    )(L.tensor([0, 1, 2]), L.tensor([0, 2, 3])),
    "a saved conjugate": lambda L: gradient(L, lambda x: (x.conj() * x).real, [1 + 2j]),
    "searchsorted of a number": lambda L: L.searchsorted(L.tensor([1.0, 3.0, 5.0]), 2.5),
    "aliases": aliases,
    "whole modules by the names of classes": whole_modules,
    "unsigned numbers": unsigned_numbers,
    "storages": storages,
    "Sobol's sequence": lambda L: L.quasirandom.SobolEngine(3, scramble=True, seed=1).draw(4),
    "names of dimensions": lambda L: L.ones(2, 3).refine_names("a", "b").names,
    "saved values by name": lambda L: [
        n for n in dir((L.ones(2, requires_grad=True) ** 2).grad_fn) if n.startswith("_saved")
    ],
    "a group of one process": a_group_of_one,
    "diagonals": lambda L: L.sparse.spdiags(L.ones(1, 3), L.tensor([0]), (3, 3)),
    "a product where a matrix has elements": lambda L: L.sparse.sampled_addmm(
        L.eye(3).to_sparse_csr(), L.ones(3, 3), L.ones(3, 3)
    ),
    "an einsum of wrong sizes": lambda L: L.einsum("ij,jk->ik", L.ones(2, 3), L.ones(4, 2)),
    "a copy of a number": lambda L: L.ones(2).copy_(3),
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_as_in_pytorch(name: str) -> None:
    with taeda.strict():  # which has nothing against any of them
        given = outcome(PROGRAMS[name], taeda)
    assert given == outcome(PROGRAMS[name], torch)
