"""Complex numbers of two float16: complex32, beside PyTorch."""

from __future__ import annotations

import copy
import io
import pickle
import warnings

import numpy as np
import pytest

import taeda

VALUES = [1 + 2j, 3 - 1j, 0.1 + 0.3j]
OTHERS = [
    "bool", "uint8", "int8", "int32", "int64", "float16", "bfloat16", "float32", "float64",
    "complex32", "complex64", "complex128",
]  # fmt: skip

# Of `x`, three numbers of complex32, and the library L: what PyTorch's CPU kernels know.
SAME = """
L.tensor([1 + 2j, 3], dtype=L.chalf), L.tensor([1e6], dtype=L.complex32), L.tensor(x), L.as_tensor([x[0], x[1]])
L.zeros(2, dtype=L.chalf), L.ones(2, dtype=L.chalf), L.full((2,), 1 + 1j, dtype=L.chalf), x.new_tensor([1.0])
L.zeros_like(x), L.ones_like(x), L.full_like(x, 2j), L.empty_like(x).shape, x.new_zeros(2)
L.ones(2).chalf(), L.ones(2).half().chalf(), L.arange(2).chalf(), L.ones(2, dtype=L.cfloat).chalf(), x.chalf() is x
x.to(L.float32), x.to(L.int64), x.half(), x.cfloat(), x.cdouble(), x.bool(), L.ones(2).type_as(x)
L.ones(2, dtype=L.uint16).to(L.chalf), L.ones(2).to(L.float8_e5m2).to(L.chalf), x.to(L.float8_e5m2).float()
L.tensor([1e6 + 1j]).to(L.chalf), L.tensor([float("nan"), 1j]).chalf()
x.tolist(), x[0].item(), complex(x[0]), bool(x[0]), x.dtype, x.type(), x.is_complex(), x.element_size()
L.view_as_real(x), L.view_as_complex(L.arange(4.0).view(2, 2).half()), x.real, x.imag, L.real(x)
x.view(L.half), x.view(L.int32), L.ones(2, 2).half().view(L.chalf)
y = x.clone(); y.real = 5; y.imag[0] = 7; y
x.conj(), x.conj().imag, x.conj().resolve_conj(), x.view(1, 3).H, x.view(1, 3).adjoint()
x.clone(), x.view(1, 3).t().contiguous(), L.zeros(3, dtype=L.chalf).copy_(x), L.zeros(3, dtype=L.cfloat).copy_(x)
L.cat([x, x]), L.cat([x, L.ones(1)]), L.stack([x, x]), x.repeat(2), x.roll(1), L.tril(x.view(1, 3)), L.diag(x)
x[L.tensor([0, 2])], x[L.tensor([True, False, True])], x[1:], x.unfold(0, 2, 1), x.split(2), x.index_select(0, L.tensor([1, 1]))
y = x.clone(); y[0] = 3j; y[L.tensor([False, True, True])] = 1; y
x.clone().index_put_((L.tensor([0, 0]),), x[:2], accumulate=True), x.clone().index_put_((L.tensor([0]),), x[2], accumulate=True)
x.clone().index_add_(0, L.tensor([0, 0]), x[:2]), x.clone().index_copy_(0, L.tensor([0]), x[2:]), x.clone().index_fill_(0, L.tensor([0]), 1)
L.where(L.tensor([True, False, True]), x, x[0]), L.where(L.tensor([True, False, True]), x, 1.0)
x == x, x != x, x == 1, L.allclose(x, x), L.isclose(x, x + 0.1)
x.clone().fill_(2j), x.clone().zero_(), x.masked_fill(L.tensor([True, False, True]), 1j), x.masked_select(L.tensor([True, False, True]))
x.nonzero(), x.count_nonzero(), x.all(), x.any(), L.nn.functional.pad(x, (1, 1))
x + x, x - x, x * x, -x, x.abs(), x.sgn(), +x, 1 - x, L.add(x, x, alpha=2), L.addcmul(x, x, x), L.outer(x, x), x.clone().mul_(2)
x + L.ones(3).half(), x + L.ones(3), x + L.ones(3).double(), x + L.ones(3).bfloat16(), x + L.arange(3), x + L.ones(3).cfloat()
x + 1j, x + 1.5, L.ones(3).half() + 1j, L.ones(3).half() * 1j, L.ones(3).bfloat16() + 1j, x + L.tensor(1.0), x + L.tensor(1j)
x.isnan(), x.isinf(), x.isfinite(), x.isreal()
L.complex(L.ones(2).half(), L.arange(2.0).half())
x.sum(dtype=L.cfloat), x.norm(), L.linalg.vector_norm(x), x.std(), x.var()
L.nn.functional.conv1d(x.view(1, 1, 3), x.view(1, 1, 3))
x.to_sparse().to_dense(), L.from_dlpack(x), L.frombuffer(bytearray(b"\\0\\x3c\\0\\x3c"), dtype=L.chalf), x.untyped_storage().nbytes()
(L.empty(2, dtype=L.chalf, device="meta") + 1).dtype
L.manual_seed(0); L.randn(5, dtype=L.chalf), L.rand(5, dtype=L.chalf), L.randn_like(x), L.rand_like(x), x.clone().normal_(), x.clone().uniform_()
repr(x), repr(L.tensor([1e-4 + 1j, 2e4]).chalf()), repr(x[0]), repr(L.zeros(0, dtype=L.chalf))
L.chalf.itemsize, L.chalf.is_complex, L.chalf.is_floating_point, L.chalf.is_signed, L.chalf.to_real(), L.chalf.to_complex()
L.half.to_complex(), L.bfloat16.to_complex(), L.complex64.to_real(), isinstance(L.chalf, L.dtype)
L.finfo(L.chalf).max, L.finfo(L.chalf).eps, L.finfo(L.chalf).tiny, L.finfo(L.chalf).bits, L.finfo(L.chalf).dtype
""".strip().splitlines()

# What both refuse, with the same type of error.
REFUSED = """
x.numpy()
L.arange(3, dtype=L.chalf)
L.linspace(0, 1, 3, dtype=L.chalf)
L.full((1,), 1e6, dtype=L.chalf)
L.zeros(1, dtype=L.chalf).fill_(1e6j)
float(x[0])
L.iinfo(L.chalf)
L.set_default_dtype(L.chalf)
L.view_as_complex(L.ones(1, 2).bfloat16())
x.sort()
x < x
x.max()
x.prod()
x.cumsum(0)
x.cumprod(0)
x.unique()
x.softmax(0)
L.fft.fft(x)
L.linalg.inv(x.view(1, 3)[:, :1])
L.promote_types(L.chalf, L.uint16)
L.promote_types(L.float8_e5m2, L.chalf)
x.sign()
x.histc()
""".strip().splitlines()

# Gradients of x, for a gradient of ones.
GRADIENTS = """
x * x
x + 1
x - 2 * x
-x
x.real
x.abs()
x.cfloat()
x.conj()
x[L.tensor([0, 0])]
x[1:]
x.index_select(0, L.tensor([1, 1]))
L.view_as_real(x)
L.where(L.tensor([True, False, True]), x, 2 * x)
L.cat([x, x])
L.complex(L.ones(3).half(), L.ones(3).half()) * x
x.sum(dtype=L.cfloat)
x.mean(dtype=L.cfloat)
""".strip().splitlines()


def evaluated(library, text, **names):
    """The value of the last expression in `text`, whose statements end in semicolons."""
    names |= {"L": library}
    *statements, value = text.split("; ")
    for statement in statements:
        exec(statement, names)
    return eval(value, names)


def sample(library, requires_grad=False):
    x = library.tensor(VALUES).to(library.complex32)
    return x.requires_grad_(requires_grad)


def plain(value):
    """`value` without the names of libraries; tensors as their dtype, shape and numbers."""
    if isinstance(value, (tuple, list)):
        return [plain(v) for v in value]
    if hasattr(value, "untyped_storage"):
        return plain(value.dtype), list(value.shape), np.array(value.tolist())
    text = repr(value) if not isinstance(value, str) else value
    return text.replace("torch.", "taeda.").replace("taeda.Size", "")


def same(ours, theirs):
    if isinstance(ours, list):
        return len(ours) == len(theirs) and all(map(same, ours, theirs))
    if isinstance(ours, tuple):
        return ours[:2] == theirs[:2] and np.allclose(
            ours[2], theirs[2], rtol=1e-3, atol=1e-4, equal_nan=True
        )
    return ours == theirs


@pytest.fixture
def torch():
    library = pytest.importorskip("torch")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield library


@pytest.mark.filterwarnings("ignore:Casting complex")
@pytest.mark.parametrize("text", SAME)
def test_same_as_pytorch(text, torch):
    ours = plain(evaluated(taeda, text, x=sample(taeda)))
    theirs = plain(evaluated(torch, text, x=sample(torch)))
    assert same(ours, theirs), (ours, theirs)


@pytest.mark.parametrize("text", REFUSED)
def test_refused_as_by_pytorch(text, torch):
    with pytest.raises(Exception) as theirs:
        evaluated(torch, text, x=sample(torch))
    with pytest.raises(theirs.type):
        evaluated(taeda, text, x=sample(taeda))


@pytest.mark.parametrize("text", GRADIENTS)
def test_gradients_are_pytorchs(text, torch):
    grads = []
    for library in (taeda, torch):
        x = sample(library, requires_grad=True)
        y = evaluated(library, text, x=x)
        y.backward(library.ones_like(y))
        grads.append(plain(x.grad))
    assert same(*grads), grads


@pytest.mark.parametrize("name", OTHERS)
def test_promotion_is_pytorchs(name, torch):
    def rules(library):
        d, h, x = getattr(library, name), library.complex32, sample(library)
        t = library.ones(1).to(d)
        return plain(
            [
                library.promote_types(h, d), library.promote_types(d, h), library.can_cast(h, d),
                library.can_cast(d, h), library.result_type(x, t), library.result_type(t, x[0]),
                library.result_type(t[0], x), library.result_type(t, 1j),
            ]
        )  # fmt: skip

    assert rules(taeda) == rules(torch)


def test_default_dtype_of_half(torch):
    def made(library):
        before = library.get_default_dtype()
        library.set_default_dtype(library.float16)
        try:
            return plain([library.tensor(1j), repr(library.tensor([1j]))])
        finally:
            library.set_default_dtype(before)

    ours, theirs = made(taeda), made(torch)
    assert same(ours, theirs), (ours, theirs)


def test_files_are_exchanged(torch):
    for writer, reader in ((taeda, torch), (torch, taeda), (taeda, taeda)):
        file = io.BytesIO()
        writer.save({"x": sample(writer)}, file)
        file.seek(0)
        x = reader.load(file)["x"]
        assert x.dtype is reader.complex32 and x.tolist() == sample(reader).tolist()


def test_copies():
    x = sample(taeda)
    for again in (copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
        assert again.dtype is taeda.complex32 and taeda.equal(again, x)
    assert pickle.loads(pickle.dumps(taeda.chalf)) is taeda.complex32
    with pytest.raises(TypeError, match="complex32"):
        x.numpy()
    taeda.testing.assert_close(x, x + 0.0001)
    with pytest.raises(AssertionError):
        taeda.testing.assert_close(x, x + 0.1)


# ---- where PyTorch's CPU has no kernel ----------------------------------------------------------

UNARY = "exp log sqrt sin cos tan sinh cosh tanh asin acos atan sigmoid reciprocal square angle"


@pytest.mark.parametrize("name", UNARY.split())
def test_pointwise_functions_are_computed_in_complex64_and_rounded_once(name):
    x = sample(taeda)
    got, wide = getattr(x, name)(), getattr(x.cfloat(), name)()
    narrow = taeda.float16 if name == "angle" else taeda.complex32
    assert got.dtype is narrow and taeda.equal(got, wide.to(narrow))


def test_quotients_and_powers():
    x = sample(taeda)
    for f in (lambda a: a / a[0], lambda a: a / 3, lambda a: a**2, lambda a: a**a):
        assert taeda.equal(f(x), f(x.cfloat()).chalf())


def test_sums_and_products():
    x = sample(taeda)
    assert taeda.equal(x.sum(), x.cfloat().sum().chalf()) and x.mean().dtype is taeda.complex32
    many = taeda.full((4096,), 1 + 1j, dtype=taeda.chalf)
    assert many.sum().item() == 4096 + 4096j and (many.sum(0) / 4).item() == 1024 + 1024j
    a, b = taeda.randn(5, 7, dtype=taeda.chalf), taeda.randn(7, 3, dtype=taeda.chalf)
    assert taeda.equal(a @ b, (a.cfloat() @ b.cfloat()).chalf())
    assert taeda.equal(taeda.bmm(a[None], b[None])[0], a @ b)


def test_gradients_where_operands_broadcast():
    x = sample(taeda, requires_grad=True)
    (x * taeda.ones(2, 2, 1, dtype=taeda.chalf)).backward(taeda.ones(2, 2, 3, dtype=taeda.chalf))
    assert x.grad.tolist() == [4, 4, 4]
    m = taeda.ones(2, 3, dtype=taeda.chalf, requires_grad=True)
    (m @ x.detach()).abs().sum().backward()
    assert m.grad.dtype is taeda.complex32 and m.grad.shape == (2, 3)


def test_layouts():
    x = (taeda.arange(24.0).reshape(2, 3, 4) + 1j).chalf()
    assert taeda.equal(x.transpose(0, 2).contiguous().cfloat(), x.cfloat().transpose(0, 2))
    assert taeda.equal(x[:, ::2, 1::2].clone().cfloat(), x.cfloat()[:, ::2, 1::2])
    assert taeda.equal(x[:1].expand(5, 3, 4).clone().cfloat(), x[:1].cfloat().expand(5, 3, 4))
    long = taeda.randn(5000, dtype=taeda.chalf)
    assert taeda.equal(long.cfloat()[::3], long[::3].cfloat())
    assert taeda.equal(long.gather(0, taeda.tensor([7, 1])), long[taeda.tensor([7, 1])])
    assert taeda.equal(long.flip(0).flip(0), long) and taeda.equal(
        long.take(taeda.tensor(3)), long[3]
    )


def test_optimizers_step():
    x = taeda.tensor([1 + 1j, 2 - 1j], dtype=taeda.chalf, requires_grad=True)
    x.grad = taeda.ones_like(x)
    taeda.optim.SGD([x], lr=0.5).step()
    assert x.tolist() == [0.5 + 1j, 1.5 - 1j]
