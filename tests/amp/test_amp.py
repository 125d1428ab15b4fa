"""Autocast chooses precisions as PyTorch's does; the scaler finds overflows."""

from __future__ import annotations

import math
import pickle
import threading

import pytest

import taeda
import taeda.nn.functional as F
from taeda.amp import GradScaler, autocast, custom_bwd, custom_fwd


def cases(library):
    """Calls whose results' dtypes are compared: of float32 inputs, and of lower ones."""
    functional = library.nn.functional
    m, v = library.ones(4, 4), library.ones(4)
    image, weight = library.ones(1, 2, 5, 5), library.ones(3, 2, 3, 3)
    return {
        "matmul": lambda c: c(m) @ c(m),
        "mm": lambda c: library.mm(c(m), c(m)),
        "mv": lambda c: c(m) @ c(v),
        "addmm": lambda c: library.addmm(c(m), c(m), c(m)),
        "bmm": lambda c: library.bmm(c(m)[None], c(m)[None]),
        "baddbmm": lambda c: library.baddbmm(c(m)[None], c(m)[None], c(m)[None]),
        "linear": lambda c: functional.linear(c(m), c(m), c(v)),
        "conv2d": lambda c: functional.conv2d(c(image), c(weight)),
        "conv_transpose2d": lambda c: functional.conv_transpose2d(c(image)[:, :1], c(weight)[:1]),
        "attention": lambda c: functional.scaled_dot_product_attention(c(m), c(m), c(m)),
        "add": lambda c: c(m) + c(m),
        "exp": lambda c: c(m).exp(),
        "sum": lambda c: c(m).sum(),
        "softmax": lambda c: functional.softmax(c(m), -1),
        "layer_norm": lambda c: functional.layer_norm(c(m), (4,)),
        "prod": lambda c: c(m).prod(),
        "trace": lambda c: library.trace(c(m)),
        "mse_loss": lambda c: functional.mse_loss(c(m), c(m)),
        "l1_loss": lambda c: functional.l1_loss(c(m), c(m)),
        "smooth_l1_loss": lambda c: functional.smooth_l1_loss(c(m), c(m)),
        "huber_loss": lambda c: functional.huber_loss(c(m), c(m)),
        "kl_div": lambda c: functional.kl_div(c(m), c(m), reduction="sum"),
        "binary_cross_entropy": lambda c: functional.binary_cross_entropy(c(m), c(m)),
        "with_logits": lambda c: functional.binary_cross_entropy_with_logits(c(m), c(m)),
        "cross_entropy": lambda c: functional.cross_entropy(c(m), library.tensor([0, 1, 2, 3])),
        "nll_loss": lambda c: functional.nll_loss(c(m), library.tensor([0, 1, 2, 3])),
        "avg_pool3d": lambda c: functional.avg_pool3d(c(image)[None], 2),
        "inv": lambda c: library.linalg.inv(c(m) + library.eye(4).to(c(m).dtype)),
        "cholesky": lambda c: library.linalg.cholesky(library.eye(4).to(c(m).dtype)),
        "cat": lambda c: library.cat([c(m), m]),
        "cat_low": lambda c: library.cat([c(m), c(m)]),
        "stack": lambda c: library.stack([m, c(m)]),
        "double": lambda c: m.double() @ m.double(),
        "ints": lambda c: library.ones(2, dtype=library.int64).sum(),
    }


@pytest.mark.parametrize("low", ["bfloat16", "float16"])
@pytest.mark.parametrize("given", ["float32", "low"])
@pytest.mark.parametrize("name", cases(taeda))
def test_dtypes_are_pytorchs(name, given, low):
    torch = pytest.importorskip("torch")
    found = []
    for library in (taeda, torch):
        dtype = getattr(library, low)

        def convert(x, to=dtype):
            return x if given == "float32" else x.to(to)

        with library.amp.autocast("cpu", dtype=dtype):
            found.append(str(cases(library)[name](convert).dtype).split(".")[1])
    assert found[0] == found[1]


def test_gradients_reach_float32_parameters():
    taeda.manual_seed(0)
    model = taeda.nn.Sequential(taeda.nn.Linear(4, 8), taeda.nn.ReLU(), taeda.nn.Linear(8, 1))
    x = taeda.randn(16, 4)
    plain = taeda.autograd.grad(model(x).square().mean(), model.parameters())
    with autocast("cpu"):
        y = model(x)
        assert y.dtype is taeda.bfloat16
        loss = F.mse_loss(y, taeda.zeros(16, 1))
        assert loss.dtype is taeda.float32
    cast = taeda.autograd.grad(loss, model.parameters())
    for a, b in zip(cast, plain, strict=True):
        assert a.dtype is taeda.float32
        assert (a - b).abs().max().item() < 0.05 * (1 + b.abs().max().item())


def test_nesting_threads_and_decoration():
    m = taeda.ones(2, 2)
    assert taeda.autocast is autocast
    with autocast("cpu"):
        assert taeda.is_autocast_enabled("cpu") and not taeda.is_autocast_enabled()
        assert taeda.get_autocast_dtype("cpu") is taeda.bfloat16
        with autocast("cpu", enabled=False):
            assert (m @ m).dtype is taeda.float32
        with autocast("cpu", dtype=taeda.float16):
            assert (m @ m).dtype is taeda.float16
        assert (m @ m).dtype is taeda.bfloat16
        with taeda.no_grad():
            assert (m @ m).dtype is taeda.bfloat16
        assert (m @ m).dtype is taeda.bfloat16
        seen = []
        thread = threading.Thread(target=lambda: seen.append((m @ m).dtype))
        thread.start()
        thread.join()
        assert seen == [taeda.float32]
    assert (m @ m).dtype is taeda.float32
    with pytest.raises(KeyError), autocast("cpu"):
        raise KeyError
    assert (m @ m).dtype is taeda.float32

    @autocast("cpu")
    def product(x):
        return x @ x

    assert product(m).dtype is taeda.bfloat16
    assert (m @ m).dtype is taeda.float32


def test_parameters_that_change_within_a_block_are_converted_again():
    weight = taeda.nn.Parameter(taeda.ones(2, 2))
    x = taeda.ones(2, 2)
    with autocast("cpu"):
        assert (x @ weight).tolist() == [[2.0, 2.0]] * 2
        with taeda.no_grad():
            weight.mul_(2)
        assert (x @ weight).tolist() == [[4.0, 4.0]] * 2
        (x @ weight + x @ weight).sum().backward()
    assert weight.grad.tolist() == [[4.0, 4.0]] * 2


def test_in_place_and_out_are_left_alone():
    m = taeda.ones(2, 2)
    with autocast("cpu"):
        out = taeda.empty(2, 2)
        assert taeda.mm(m, m, out=out) is out and out.dtype is taeda.float32
        assert m.clone().addmm_(m, m).dtype is taeda.float32


def test_what_autocast_refuses():
    with pytest.raises(ValueError, match="device_type"):
        autocast(3)
    with pytest.raises(RuntimeError, match="not supported"):
        autocast("abacus")
    with pytest.warns(UserWarning, match="not available"), autocast("cuda"):
        assert (taeda.ones(2, 2) @ taeda.ones(2, 2)).dtype is taeda.float32
    with pytest.warns(UserWarning, match="not supported"), autocast("cpu", dtype=taeda.float64):
        assert (taeda.ones(2, 2) @ taeda.ones(2, 2)).dtype is taeda.float32


def test_custom_functions():
    class Product(taeda.autograd.Function):
        @staticmethod
        @custom_fwd(device_type="cpu")
        def forward(ctx, a, b):
            ctx.save_for_backward(a, b)
            return a @ b

        @staticmethod
        @custom_bwd(device_type="cpu")
        def backward(ctx, g):
            a, b = ctx.saved_tensors
            seen.append((g @ b.t()).dtype)
            return g.float() @ b.t().float(), a.t().float() @ g.float()

    class Single(Product):
        @staticmethod
        @custom_fwd(device_type="cpu", cast_inputs=taeda.float32)
        def forward(ctx, a, b):
            ctx.save_for_backward(a, b)
            return a @ b

    seen = []
    a = taeda.ones(2, 2, requires_grad=True)
    with autocast("cpu"):
        y = Product.apply(a, a)
        assert Single.apply(a.bfloat16(), a.bfloat16()).dtype is taeda.float32
    assert y.dtype is taeda.bfloat16
    y.sum().backward()
    assert seen == [taeda.bfloat16]


def parameter(*values):
    return taeda.nn.Parameter(taeda.tensor(list(values)))


def test_scaler_steps_and_changes_its_factor():
    p = parameter(1.0, 2.0)
    optimizer = taeda.optim.SGD([p], lr=0.1)
    scaler = GradScaler("cpu", init_scale=4.0, growth_interval=2)
    for expected in (4.0, 8.0):
        optimizer.zero_grad()
        scaler.scale((p * p).sum()).backward()
        scaler.step(optimizer)
        scaler.update()
        assert scaler.get_scale() == expected
    assert p.tolist() == pytest.approx([0.64, 1.28])
    before = p.tolist()
    optimizer.zero_grad()
    scaler.scale((p * math.inf).sum()).backward()
    assert scaler.step(optimizer) is None
    scaler.update()
    assert p.tolist() == before and scaler.get_scale() == 4.0


def test_scaler_is_pytorchs():
    torch = pytest.importorskip("torch")
    found = []
    for library in (taeda, torch):
        p = library.nn.Parameter(library.tensor([1.0, 2.0]))
        optimizer = library.optim.SGD([p], lr=0.01)
        scaler = library.amp.GradScaler("cpu", init_scale=16.0, growth_interval=3)
        trace = []
        for i in range(12):
            optimizer.zero_grad()
            factor = math.nan if i in (4, 5) else 1.0
            scaler.scale((p * p).sum() * factor).backward()
            if i % 2:
                scaler.unscale_(optimizer)
            scaler.step(optimizer)
            scaler.update()
            trace.append((scaler.get_scale(), scaler.state_dict()["_growth_tracker"]))
        found.append((trace, p.tolist(), scaler.state_dict()))
    assert found[0][0] == found[1][0] and found[0][2] == found[1][2]
    assert found[0][1] == pytest.approx(found[1][1])


def test_scaler_checks_the_order_of_calls():
    p = parameter(1.0)
    optimizer = taeda.optim.SGD([p], lr=0.1)
    scaler = GradScaler("cpu")
    with pytest.raises(AssertionError, match="No inf checks"):
        scaler.update()
    with pytest.raises(AssertionError, match="No inf checks"):
        scaler.step(optimizer)
    scaler = GradScaler("cpu")
    scaler.scale(p.sum()).backward()
    scaler.unscale_(optimizer)
    assert p.grad.tolist() == [1.0]
    with pytest.raises(RuntimeError, match="already been called"):
        scaler.unscale_(optimizer)
    scaler.step(optimizer)
    with pytest.raises(RuntimeError, match="already been called"):
        scaler.step(optimizer)
    with pytest.raises(RuntimeError, match="after step"):
        scaler.unscale_(optimizer)
    with pytest.raises(RuntimeError, match="Closure"):
        scaler.step(optimizer, closure=lambda: None)
    half = taeda.nn.Parameter(taeda.ones(1).half())
    half.grad = taeda.ones(1).half()
    with pytest.raises(ValueError, match="FP16"):
        GradScaler("cpu").unscale_(taeda.optim.SGD([half], lr=0.1))
    with pytest.raises(ValueError, match="iterable of Tensors"):
        scaler.scale(3)


def test_scaler_states_and_being_disabled():
    scaler, other = GradScaler("cpu", init_scale=2.0), GradScaler("cpu")
    other.load_state_dict(scaler.state_dict())
    assert other.state_dict() == scaler.state_dict()
    with pytest.raises(RuntimeError, match="empty"):
        other.load_state_dict({})
    with pytest.warns(UserWarning, match="not available"):
        disabled = GradScaler()
    p = parameter(1.0)
    p.grad = taeda.ones(1)
    x = taeda.ones(1)
    assert disabled.scale(x) is x and disabled.state_dict() == {} and disabled.get_scale() == 1.0
    disabled.step(taeda.optim.SGD([p], lr=0.5))
    disabled.update()
    assert p.item() == 0.5 and not disabled.is_enabled()
    lists = GradScaler("cpu", init_scale=2.0).scale([x, (x, x)])
    assert lists[1][0].tolist() == [2.0]


@pytest.mark.filterwarnings("ignore:User provided device_type")
def test_the_names_for_cuda():
    m = taeda.ones(2, 2)
    with taeda.cuda.amp.autocast():
        assert (m @ m).dtype is (taeda.float16 if taeda.cuda.is_available() else taeda.float32)
    with taeda.cuda.amp.autocast(enabled=False):
        assert (m @ m).dtype is taeda.float32
    scaler = taeda.cuda.amp.GradScaler(enabled=False)
    assert isinstance(scaler, GradScaler) and scaler.scale(m) is m

    class Double(taeda.autograd.Function):
        @staticmethod
        @taeda.cuda.amp.custom_fwd(cast_inputs=taeda.float16)
        def forward(ctx, x):
            return x * 2

        @staticmethod
        @taeda.cuda.amp.custom_bwd
        def backward(ctx, grad):
            return grad * 2

    x = taeda.ones(2, requires_grad=True)
    Double.apply(x).sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]


def test_scalers_pickle():
    scaler = pickle.loads(pickle.dumps(taeda.amp.GradScaler("cpu", init_scale=4.0)))
    assert scaler.scale(taeda.ones(())) == 4
