"""Factories, copies and conversions."""

from __future__ import annotations

import pytest

import taeda

torch = pytest.importorskip("torch")

FACTORIES = {
    "zeros": "m.zeros(2, 3)",
    "zeros int": "m.zeros((2, 3), dtype=m.int32)",
    "ones": "m.ones(2, 3, dtype=m.float64)",
    "full": "m.full((2, 2), 3)",
    "full float": "m.full((2, 2), 3.5)",
    "full bool": "m.full((2, 2), True)",
    "full complex": "m.full((2, 2), 1 + 2j)",
    "full dtype": "m.full((2, 2), 3, dtype=m.float16)",
    "scalar_tensor": "m.scalar_tensor(4)",
    "arange": "m.arange(5)",
    "arange from": "m.arange(2, 7)",
    "arange step": "m.arange(2, 11, 3)",
    "arange down": "m.arange(5, -3, -2)",
    "arange float": "m.arange(5.0)",
    "arange fraction": "m.arange(0, 1, 0.1)",
    "arange dtype": "m.arange(0, 5, dtype=m.float64)",
    "arange int of float": "m.arange(0.5, 4.5, 1, dtype=m.int64)",
    "arange half": "m.arange(0, 3, 0.5, dtype=m.float16)",
    "arange none": "m.arange(0)",
    "linspace": "m.linspace(-1, 1, 7)",
    "linspace one": "m.linspace(3, 10, 1)",
    "linspace none": "m.linspace(3, 10, 0)",
    "linspace double": "m.linspace(0, 1, 11, dtype=m.float64)",
    "linspace int": "m.linspace(0, 10, 5, dtype=m.int64)",
    "logspace": "m.logspace(-1, 2, 4)",
    "logspace base": "m.logspace(0, 4, 5, 2.0)",
    "eye": "m.eye(3)",
    "eye rectangle": "m.eye(2, 4, dtype=m.int64)",
    "eye none": "m.eye(0)",
    "tril": "m.tril(m.arange(12).reshape(3, 4))",
    "tril diagonal": "m.tril(m.arange(12).reshape(3, 4), 1)",
    "triu": "m.triu(m.arange(24.0).reshape(2, 3, 4))",
    "triu diagonal": "m.triu(m.arange(12.0).reshape(3, 4), -1)",
    "triu transposed": "m.triu(m.arange(12.0).reshape(4, 3).t(), 1)",
    "tril_indices": "m.tril_indices(3, 4, 1)",
    "triu_indices": "m.triu_indices(4, 3, -1)",
    "zeros_like": "m.zeros_like(m.ones(2, 3, dtype=m.int32))",
    "ones_like": "m.ones_like(m.ones(2, 3), dtype=m.float64)",
    "full_like": "m.full_like(m.ones(2, 3), 7)",
    "new_zeros": "m.ones(2, dtype=m.float64).new_zeros(3)",
    "new_ones": "m.ones(2, dtype=m.float64).new_ones((2, 2), dtype=m.int8)",
    "new_full": "m.ones(2).new_full((2,), 3)",
    "hann": "m.hann_window(9)",
    "hann symmetric": "m.hann_window(9, False)",
    "hamming": "m.hamming_window(8)",
    "blackman": "m.blackman_window(7, dtype=m.float64)",
    "bartlett": "m.bartlett_window(8)",
    "meshgrid": "m.stack(m.meshgrid(m.arange(2), m.arange(3), indexing='xy'))",
    "complex": "m.complex(m.ones(2), m.zeros(2))",
}


@pytest.mark.parametrize("name", FACTORIES)
def test_factories(name):
    got, want = eval(FACTORIES[name], {"m": taeda}), eval(FACTORIES[name], {"m": torch})
    assert str(got.dtype)[6:] == str(want.dtype)[6:]
    assert tuple(got.shape) == tuple(want.shape)
    mine = torch.tensor(got.tolist(), dtype=want.dtype).reshape(want.shape)
    tolerance = {"rtol": 1e-6, "atol": 1e-7} if want.is_floating_point() else {}
    torch.testing.assert_close(mine, want, **tolerance)


def test_requires_grad_and_device():
    a = taeda.zeros(2, requires_grad=True)
    assert a.requires_grad
    assert a.is_leaf
    with pytest.raises(RuntimeError, match="can require gradients"):
        taeda.zeros(2, dtype=taeda.int64, requires_grad=True)
    m = taeda.ones(2, 3, device="meta")
    assert m.device.type == "meta"
    assert taeda.zeros_like(m).device.type == "meta"
    with pytest.raises(AssertionError, match="no CUDA support"):
        taeda.zeros(2, device="cuda:99")


def test_errors():
    with pytest.raises(RuntimeError, match="negative dimension"):
        taeda.zeros(-1)
    with pytest.raises(RuntimeError, match="step must be nonzero"):
        taeda.arange(0, 3, 0)
    with pytest.raises(RuntimeError, match="inconsistent with step sign"):
        taeda.arange(0, 3, -1)
    with pytest.raises(RuntimeError, match="non-negative"):
        taeda.linspace(0, 1, -2)
    with pytest.raises(RuntimeError, match="at least 2 dimensions"):
        taeda.tril(taeda.ones(3))


def test_like_keeps_layout():
    x = taeda.empty(2, 3, 4, 5).permute(0, 2, 3, 1)
    assert taeda.zeros_like(x).stride() == x.stride()
    assert taeda.zeros_like(x, memory_format=taeda.contiguous_format).is_contiguous()
    y = taeda.empty(2, 3, 4, 5, memory_format=taeda.channels_last)
    assert y.stride() == torch.empty(2, 3, 4, 5, memory_format=torch.channels_last).stride()
    assert taeda.empty_like(y).stride() == y.stride()
    assert taeda.ones(2, 6)[:, ::2].clone().is_contiguous()


def test_out():
    out = taeda.empty(0)
    assert taeda.ones(2, 2, out=out) is out
    assert out.tolist() == [[1, 1], [1, 1]]
    out = taeda.empty(3, dtype=taeda.float64)
    assert taeda.arange(3, out=out) is out
    assert out.tolist() == [0, 1, 2]


CONVERSIONS = [
    "bool",
    "uint8",
    "int8",
    "int16",
    "int32",
    "int64",
    "float16",
    "bfloat16",
    "float32",
    "float64",
]


@pytest.mark.parametrize("source", CONVERSIONS)
@pytest.mark.parametrize("target", [*CONVERSIONS, "complex64"])
def test_conversion(source, target):
    x = torch.tensor([0, 1, 2, 3, 100] * 7).to(getattr(torch, source))
    a = taeda.tensor(x.tolist(), dtype=getattr(taeda, source))
    for got, want in [(a, x), (a[::3], x[::3]), (a[:1].expand(9), x[:1].expand(9))]:
        converted = got.to(getattr(taeda, target))
        assert converted.tolist() == want.to(getattr(torch, target)).tolist()


def test_half_rounding():
    values = [
        1 + 2**-11,
        1 + 3 * 2**-11,
        65504.0,
        65519.0,
        65520.0,
        1e-8,
        6e-8,
        -3e-5,
        1e9,
        float("nan"),
        0.1,
    ] * 3
    x = torch.tensor(values)
    for name in ("float16", "bfloat16"):
        got = taeda.tensor(values).to(getattr(taeda, name)).float().tolist()
        torch.testing.assert_close(
            torch.tensor(got), x.to(getattr(torch, name)).float(), equal_nan=True, rtol=0, atol=0
        )


def test_to():
    x = taeda.ones(2, 3)
    assert x.to(taeda.float32) is x
    assert x.to("cpu") is x
    assert x.to(taeda.float32, copy=True) is not x
    assert x.to(taeda.ones(1, dtype=taeda.int8)).dtype is taeda.int8
    assert x.to(device="cpu", dtype=taeda.float64).dtype is taeda.float64
    assert x.to("meta").device.type == "meta"
    assert x.type_as(taeda.ones(1, dtype=taeda.int16)).dtype is taeda.int16
    assert x.double().dtype is taeda.float64
    assert x.long().tolist() == [[1, 1, 1], [1, 1, 1]]
    with pytest.raises(NotImplementedError, match="meta"):
        x.to("meta").to("cpu")
    y = taeda.ones(2, requires_grad=True)
    (y.double() * 3).sum().backward()
    assert y.grad.dtype is taeda.float32
    assert y.grad.tolist() == [3, 3]


def test_copies():
    x = taeda.arange(6.0).reshape(2, 3)
    c = x.clone()
    c.zero_()
    assert x.tolist() == [[0, 1, 2], [3, 4, 5]]
    t = x.t()
    assert not t.is_contiguous()
    assert t.contiguous().tolist() == t.tolist()
    assert x.contiguous() is x
    x[0].copy_(taeda.tensor([7, 8, 9]))
    assert x.tolist() == [[7, 8, 9], [3, 4, 5]]
    x.fill_(2)
    assert x.tolist() == [[2, 2, 2], [2, 2, 2]]
    assert taeda.fill(x, 5.0).tolist() == [[5, 5, 5], [5, 5, 5]]
    with pytest.raises(RuntimeError, match="doesn't match the broadcast shape"):
        x.copy_(taeda.ones(2, 2, 3))
    big = taeda.arange(200 * 300).reshape(200, 300)
    assert (big.t().contiguous().t() == big).all()
    cube = taeda.arange(60 * 70 * 5).reshape(60, 70, 5)
    assert (cube.permute(2, 1, 0).contiguous().permute(2, 1, 0) == cube).all()


def test_copy_gradient():
    a = taeda.ones(3, requires_grad=True)
    b = taeda.zeros(2, 3, requires_grad=True)
    c = b * 1
    c.copy_(a * 2)
    (c * taeda.arange(6.0).reshape(2, 3)).sum().backward()
    assert a.grad.tolist() == [6, 10, 14]
    assert b.grad.tolist() == [[0, 0, 0], [0, 0, 0]]
    d = a.detach()
    assert not d.requires_grad
    d[0] = 5
    assert a.tolist() == [5, 1, 1]


def test_copying_a_number():
    x = taeda.zeros(2, 3)
    assert x[:, 1].copy_(2.5, non_blocking=True).tolist() == [2.5, 2.5]
    assert x.copy_(other=True) is x
    assert x.tolist() == [[1, 1, 1], [1, 1, 1]]
    w = taeda.ones(2, requires_grad=True)
    y = w * 3
    y.copy_(4)
    y.sum().backward()
    assert w.grad.tolist() == [0, 0]
    with pytest.raises(RuntimeError, match="leaf Variable that requires grad"):
        w.copy_(1.0)
    assert taeda.empty(2, device="meta").copy_(1.0).is_meta
    with pytest.raises(TypeError, match="must be Tensor"):
        x.copy_([1.0])


def test_triangle_gradient():
    x = taeda.ones(3, 3, requires_grad=True)
    taeda.tril(x).sum().backward()
    assert x.grad.tolist() == [[1, 0, 0], [1, 1, 0], [1, 1, 1]]


def test_promotion_functions():
    assert taeda.promote_types(taeda.int32, taeda.float16) is taeda.float16
    assert taeda.result_type(taeda.ones(2, dtype=taeda.int8), 2.5) is taeda.float32
    assert taeda.can_cast(taeda.int32, taeda.float32)
    assert not taeda.can_cast(taeda.float32, taeda.int32)


@pytest.mark.parametrize(
    "make", [lambda out: taeda.arange(8.0, out=out), lambda out: taeda.linspace(0, 7, 8, out=out)]
)
def test_ranges_into_a_view_keep_its_shape(make):
    x = taeda.full((4, 4), -1.0)
    out = x.narrow(1, 1, 2)
    assert make(out) is out
    assert out.tolist() == [[0, 1], [2, 3], [4, 5], [6, 7]]
    assert x[:, 0].tolist() == x[:, 3].tolist() == [-1] * 4


def test_data_that_contains_itself():
    loop = [0]
    loop.append(loop)
    with pytest.raises(TypeError, match="ragged"):
        taeda.tensor(loop)
    loop = []
    loop.append(loop)
    for make in (taeda.tensor, taeda.as_tensor):
        with pytest.raises(ValueError, match="too many dimensions"):
            make(loop)


def test_shared_lists_are_not_visited_again_and_again():
    data = [1.0]
    for _ in range(60):
        data = [data, data]
    with pytest.raises(MemoryError):
        taeda.tensor(data)


def test_data_that_changes_while_it_is_read():
    class Clears:
        def __float__(self):
            rows.clear()
            return 1.0

        __index__ = __float__

        def __len__(self):
            return 2

        def __getitem__(self, i):
            rows.clear()
            raise IndexError

    for first in (Clears(), [Clears(), 2.0]):
        rows = [first, [1.0, 2.0]]
        with pytest.raises((TypeError, ValueError, RuntimeError, IndexError)):
            taeda.tensor(rows)
