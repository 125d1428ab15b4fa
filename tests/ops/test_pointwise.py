"""Pointwise ops against PyTorch: values, dtypes, layouts, derivatives, in-place and out= forms, errors."""

from __future__ import annotations

import itertools
import math

import pytest

import taeda

torch = pytest.importorskip("torch")

DTYPES = ["bool", "uint8", "int8", "int16", "int32", "int64"]
DTYPES += ["float16", "bfloat16", "float32", "float64", "complex64", "complex128"]


def ours(t):
    """A taeda tensor with the values, dtype and strides of a PyTorch one."""
    reach = 1 + sum((n - 1) * s for n, s in zip(t.shape, t.stride(), strict=True))
    memory = t.detach().as_strided((reach if t.numel() else 0,), (1,)).tolist()
    flat = taeda.tensor(memory, dtype=getattr(taeda, str(t.dtype)[6:]))
    out = flat.as_strided(tuple(t.shape), t.stride()).detach()
    return out.requires_grad_() if t.requires_grad else out


def same(a, b, rtol=None, atol=None, what=""):
    assert str(a.dtype)[6:] == str(b.dtype)[6:], (what, a.dtype, b.dtype)
    assert tuple(a.shape) == tuple(b.shape), what
    mine = torch.tensor(a.detach().tolist(), dtype=b.dtype).reshape(b.shape)
    torch.testing.assert_close(
        mine, b.detach(), rtol=rtol, atol=atol, equal_nan=True, msg=what or None
    )


def sample(dtype, shape=(3, 5), low=-4.0, high=4.0, seed=0):
    g = torch.Generator().manual_seed(seed)
    dtype = getattr(torch, dtype) if isinstance(dtype, str) else dtype
    if dtype is torch.bool:
        return torch.rand(shape, generator=g) > 0.5
    x = torch.rand(shape, generator=g, dtype=torch.float64) * (high - low) + low
    if dtype.is_complex:
        return torch.complex(x, sample(torch.float64, shape, low, high, seed + 7)).to(dtype)
    if dtype is torch.uint8:
        x = x.abs()
    return x.to(dtype)


# name -> the domain in which it is tested
UNARY = {
    "abs": (-4, 4), "neg": (-4, 4), "sign": (-4, 4), "sgn": (-4, 4), "positive": (-4, 4),
    "reciprocal": (0.5, 4), "sqrt": (0.1, 4), "rsqrt": (0.1, 4), "square": (-4, 4),
    "exp": (-4, 4), "exp2": (-4, 4), "expm1": (-4, 4),
    "log": (0.1, 4), "log2": (0.1, 4), "log10": (0.1, 4), "log1p": (-0.9, 4),
    "sin": (-9, 9), "cos": (-9, 9), "tan": (-1.2, 1.2),
    "asin": (-0.9, 0.9), "acos": (-0.9, 0.9), "atan": (-4, 4),
    "sinh": (-4, 4), "cosh": (-4, 4), "tanh": (-4, 4),
    "asinh": (-4, 4), "acosh": (1.1, 4), "atanh": (-0.9, 0.9),
    "sigmoid": (-6, 6), "logit": (0.1, 0.9), "erf": (-3, 3), "erfc": (-3, 3),
    "erfinv": (-0.95, 0.95), "lgamma": (0.2, 6), "digamma": (0.2, 6),
    "ceil": (-4, 4), "floor": (-4, 4), "round": (-4, 4), "trunc": (-4, 4), "frac": (-4, 4),
    "deg2rad": (-4, 4), "rad2deg": (-4, 4), "angle": (-4, 4), "sinc": (-4, 4),
    "relu": (-4, 4), "selu": (-4, 4), "celu": (-4, 4), "hardshrink": (-4, 4),
    "isnan": (-4, 4), "isinf": (-4, 4), "isfinite": (-4, 4), "isposinf": (-4, 4),
    "isneginf": (-4, 4), "signbit": (-4, 4), "logical_not": (-4, 4), "bitwise_not": (-4, 4),
    "nan_to_num": (-4, 4), "conj_physical": (-4, 4),
}  # fmt: skip
FUNCTIONAL = ["relu6", "leaky_relu", "elu", "gelu", "silu", "mish", "softplus", "logsigmoid"]
FUNCTIONAL += ["hardtanh", "hardsigmoid", "hardswish", "softshrink"]
FLOATS = ["float64", "float32", "float16", "bfloat16"]
TOLERANCE = {"float16": (2e-3, 1e-3), "bfloat16": (1.6e-2, 1e-2), "complex64": (1e-5, 1e-5)}


def outcome(f):
    try:
        return f(), None
    except (RuntimeError, TypeError, ValueError, NotImplementedError) as e:
        return None, e


def functional(module, name):
    if name in UNARY:
        return getattr(module, name)
    return getattr(taeda._C.ops if module is taeda else torch.nn.functional, name)


@pytest.mark.parametrize("name", [*UNARY, *FUNCTIONAL])
def test_unary(name):
    f, g = functional(taeda, name), functional(torch, name)
    for dtype in DTYPES:
        x = sample(dtype, low=UNARY.get(name, (-4, 4))[0], high=UNARY.get(name, (-4, 4))[1])
        want, error = outcome(lambda: g(x))
        got, mine = outcome(lambda: f(ours(x)))
        if error is None:  # a few more dtypes work here
            assert mine is None, (dtype, mine)
            rtol, atol = TOLERANCE.get(dtype, (None, None))
            same(got, want, rtol, atol, f"{name} {dtype}")


def grads(result, inputs, module):
    """First and second derivatives of the result's weighted sum."""
    weight = result.detach() * 0 + 0.7
    first = module.autograd.grad(
        (result * weight).sum(), inputs, create_graph=True, allow_unused=True
    )
    total = sum((g * g).sum() for g in first if g is not None and g.requires_grad)
    if not hasattr(total, "backward"):
        return first, ()
    second, error = outcome(lambda: module.autograd.grad(total, inputs, allow_unused=True))
    return first, second if error is None or module is taeda else None


def check_gradients(f, g, inputs, what):
    theirs = [t.detach().requires_grad_() for t in inputs]
    mine = [ours(t) for t in theirs]
    wanted, got = grads(g(*theirs), theirs, torch), grads(f(*mine), mine, taeda)
    for order, (w, h) in enumerate(zip(wanted, got, strict=True)):
        if w is None:  # hardsigmoid's second derivative is not there
            continue
        for a, b in itertools.zip_longest(h, w):
            if b is None or a is None:
                assert b is None or not b.any(), (what, order)
                assert a is None or not a.any(), (what, order)
            else:
                same(a, b, 1e-6, 1e-8, f"{what}, derivative {order + 1}")
    # The fused loops, which run where no graph is asked for.
    mine = [ours(t) for t in theirs]
    result = f(*mine)
    (result * (result.detach() * 0 + 0.7)).sum().backward()
    for a, b in zip(mine, wanted[0], strict=True):
        if b is not None and a.grad is not None:
            same(a.grad, b, 1e-6, 1e-8, f"{what}, fused")


NO_COMPLEX_GRADIENT = ("sgn", "angle", "abs", "silu", "nan_to_num")
NO_GRADIENT = [
    "isnan",
    "isinf",
    "isfinite",
    "isposinf",
    "isneginf",
    "signbit",
    "logical_not",
    "bitwise_not",
]


@pytest.mark.parametrize("name", [n for n in [*UNARY, *FUNCTIONAL] if n not in NO_GRADIENT])
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_unary_gradient(name, dtype):
    x = sample(dtype, low=UNARY.get(name, (-4, 4))[0], high=UNARY.get(name, (-4, 4))[1])
    if dtype == "complex128":
        if outcome(lambda: functional(torch, name)(x))[1] or name in NO_COMPLEX_GRADIENT:
            pytest.skip("not defined, or not differentiable twice")
        theirs, mine = x.requires_grad_(), ours(x)
        functional(torch, name)(theirs).abs().sum().backward()
        functional(taeda, name)(mine).abs().sum().backward()
        same(mine.grad, theirs.grad, 1e-6, 1e-8, name)
    else:
        check_gradients(functional(taeda, name), functional(torch, name), [x], name)


@pytest.mark.parametrize("name", ["abs", "sgn", "angle"])
def test_complex_gradient_of_real_parts(name):
    x = sample("complex128").requires_grad_()
    y = ours(x)
    (getattr(torch, name)(x) * 2).real.sum().backward()
    taeda.real(getattr(taeda, name)(y) * 2).sum().backward()
    same(y.grad, x.grad)


BINARY = "add sub mul div true_divide floor_divide remainder fmod maximum minimum fmax fmin eq ne lt le gt ge"
BINARY += " logical_and logical_or logical_xor bitwise_and bitwise_or bitwise_xor atan2 copysign"
BINARY += " bitwise_left_shift bitwise_right_shift gcd lcm hypot logaddexp logaddexp2 xlogy heaviside rsub"
BINARY = BINARY.split()


@pytest.mark.filterwarnings("ignore:ComplexHalf")
@pytest.mark.parametrize("name", BINARY)
def test_binary_dtypes(name):
    f, g = getattr(taeda, name), getattr(torch, name)
    for a, b in itertools.product(DTYPES, DTYPES):
        x, y = sample(a, low=0.6, high=6), sample(b, low=1.1, high=5, seed=3)
        if y.dtype is torch.bool:
            y = torch.ones_like(y)
        want, error = outcome(lambda x=x, y=y: g(x, y))
        if error is not None:
            continue  # a few more combinations of dtypes work here
        got, mine = outcome(lambda x=x, y=y: f(ours(x), ours(y)))
        assert mine is None, (a, b, error, mine)
        rtol, atol = TOLERANCE["bfloat16"] if "16" in a + b else (None, None)
        same(got, want, rtol, atol, f"{name} {a} {b}")


@pytest.mark.filterwarnings("ignore:ComplexHalf")
@pytest.mark.parametrize(
    "name", ["add", "mul", "div", "eq", "lt", "pow", "floor_divide", "maximum"]
)
def test_promotion_categories(name):
    """Tensors with dimensions, zero-dimensional tensors and numbers count differently."""
    f, g = getattr(taeda, name), getattr(torch, name)
    for a, b in itertools.product(DTYPES, DTYPES):
        x, y = sample(a, low=1, high=4), sample(b, (), low=1, high=3)
        if y.dtype is torch.bool:
            y = torch.tensor(True)
        want, error = outcome(lambda x=x, y=y: g(x, y))
        got, mine = outcome(lambda x=x, y=y: f(ours(x), ours(y)))
        if error is None:
            assert mine is None, (a, b, mine)
            assert str(got.dtype)[6:] == str(want.dtype)[6:], (a, b, got.dtype, want.dtype)
    if name == "maximum":
        return
    for a, number in itertools.product(DTYPES, [True, 2, 2.5, 2 + 1j]):
        x = sample(a, low=1, high=4)
        want, error = outcome(lambda x=x, number=number: g(x, number))
        got, mine = outcome(lambda x=x, number=number: f(ours(x), number))
        if error is None:
            assert mine is None, (a, number, mine)
            assert str(got.dtype)[6:] == str(want.dtype)[6:], (a, number, got.dtype, want.dtype)


GRADIENTS = {
    "add": (-2, 2), "sub": (-2, 2), "mul": (-2, 2), "div": (0.5, 2), "remainder": (0.5, 2), "fmod": (0.5, 2),
    "pow": (0.5, 2), "maximum": (-2, 2), "minimum": (-2, 2), "fmax": (-2, 2), "fmin": (-2, 2), "atan2": (0.3, 2),
    "hypot": (0.3, 2), "logaddexp": (-2, 2), "logaddexp2": (-2, 2), "xlogy": (0.3, 2), "copysign": (0.3, 2),
}  # fmt: skip


@pytest.mark.parametrize("name", GRADIENTS)
@pytest.mark.parametrize(
    "shapes", [((3, 4), (3, 4)), ((3, 4), (4,)), ((3, 1), (1, 4)), ((), (2, 2))]
)
def test_binary_gradient(name, shapes):
    low, high = GRADIENTS[name]
    inputs = [sample("float64", s, low, high, i) for i, s in enumerate(shapes)]
    check_gradients(getattr(taeda, name), getattr(torch, name), inputs, name)


@pytest.mark.parametrize("exponent", [2, 3, 0.5, -0.5, -1, -2, 1, 0, 1.7, 4])
def test_power_of_number(exponent):
    x = sample("float64", low=0.5, high=3)
    check_gradients(lambda t: t**exponent, lambda t: t**exponent, [x], f"** {exponent}")
    check_gradients(lambda t: 2.5**t, lambda t: 2.5**t, [x], "2.5 **")
    for dtype in ("int32", "int64", "float32", "complex64"):
        v = sample(dtype, low=1, high=4)
        want, error = outcome(lambda v=v: v**exponent)
        got, mine = outcome(lambda v=v: ours(v) ** exponent)
        assert (error is None) == (mine is None), (dtype, error, mine)
        if error is None:
            same(got, want, 1e-5, 1e-5, dtype)


def test_integer_power():
    x = torch.tensor([-3, -2, -1, 0, 1, 2, 3])
    for e in range(6):
        same(ours(x) ** e, x**e)
    same(taeda.pow(2, ours(x.abs())), torch.pow(2, x.abs()))
    with pytest.raises(RuntimeError, match="Integers to negative integer powers"):
        ours(x) ** -1


TERNARY = {
    "addcmul": lambda m: lambda a, b, c: m.addcmul(a, b, c, value=0.7),
    "addcdiv": lambda m: lambda a, b, c: m.addcdiv(a, b, c, value=0.7),
    "lerp": lambda m: lambda a, b, c: m.lerp(a, b, c),
    "lerp number": lambda m: lambda a, b, c: m.lerp(a, b, 0.3) + c,
    "clamp": lambda m: lambda a, b, c: m.clamp(a, b, c),
    "where": lambda m: lambda a, b, c: m.where(a > 1, b, c * a),
    "where number": lambda m: lambda a, b, c: m.where(a > 1, b, 0.5) * c,
    "add alpha": lambda m: lambda a, b, c: m.add(a, b, alpha=0.3) * c,
    "sub alpha": lambda m: lambda a, b, c: m.sub(a, b, alpha=2) * c,
    "rsub": lambda m: lambda a, b, c: m.rsub(a, b) * c,
    "masked_fill": lambda m: lambda a, b, c: m.masked_fill(a * b, a > 1, 0.5) * c,
}


@pytest.mark.parametrize("name", TERNARY)
@pytest.mark.parametrize("shapes", [((3, 4), (3, 4), (3, 4)), ((3, 4), (4,), (3, 1))])
def test_ternary_gradient(name, shapes):
    inputs = [sample("float64", s, 0.5, 2, i) for i, s in enumerate(shapes)]
    check_gradients(TERNARY[name](taeda), TERNARY[name](torch), inputs, name)


def layouts(dtype="float32"):
    yield sample(dtype, (4, 6))
    yield sample(dtype, (6, 4)).t()
    yield sample(dtype, (8, 12))[::2, ::2]
    yield sample(dtype, (1, 6)).expand(4, 6)
    yield sample(dtype, (4, 1))
    yield sample(dtype, ())
    yield sample(dtype, (6,))
    yield sample(dtype, (2, 6, 4)).permute(0, 2, 1)
    yield sample(dtype, (2, 3, 4, 6)).permute(0, 3, 1, 2).permute(0, 2, 3, 1)
    yield sample(dtype, (0, 6))


def test_layouts():
    """Values and strides of results, for every pair of layouts."""
    for x, y in itertools.product(layouts(), layouts()):
        want, error = outcome(lambda x=x, y=y: x + y)
        if error is not None:
            with pytest.raises(RuntimeError, match="must match the size of tensor b"):
                ours(x) + ours(y)
            continue
        got = ours(x) + ours(y)
        same(got, want)
        if want.numel():
            assert got.stride() == want.stride(), (x.shape, x.stride(), y.shape, y.stride())
        same(ours(x).double() * ours(y), x.double() * y)
        same(ours(x).half() * ours(y).half(), x.half() * y.half(), 1e-3, 1e-3)


@pytest.mark.parametrize("n", [1, 63, 64, 65, 1023, 1025, 5000, 100_001])
def test_sizes(n):
    """Around the borders of buffers, vectors and threads' shares."""
    x, y = torch.arange(n, dtype=torch.float32) / 7, torch.arange(n, dtype=torch.float64) + 1
    a, b = taeda.arange(n, dtype=taeda.float32) / 7, taeda.arange(n, dtype=taeda.float64) + 1
    for got, want in [
        (a * 2.5, x * 2.5),
        (a + b, x + y),
        (a.half() + 1, x.half() + 1),
        (a < b, x < y),
    ]:
        assert str(got.dtype)[6:] == str(want.dtype)[6:]
        mine = torch.from_numpy(got.numpy())
        torch.testing.assert_close(mine, want)
    rows = torch.from_numpy((a.reshape(-1, 1) + taeda.arange(3)).numpy())
    torch.testing.assert_close(rows, x.reshape(-1, 1) + torch.arange(3))


def test_inplace_and_out():
    x, y = sample("float32"), sample("float32", seed=1)
    a = ours(x)
    b = a
    a += ours(y)
    assert a is b
    same(a, x + y)
    same(ours(x).mul_(ours(y)), x * y)
    same(ours(x).add_(ours(y.double())), x.clone().add_(y.double()))
    out = taeda.empty(0)
    assert taeda.add(ours(x), ours(y), out=out) is out
    same(out, x + y)
    out = taeda.empty((3, 5), dtype=taeda.float64)
    same(taeda.exp(ours(x), out=out), torch.exp(x, out=torch.empty(3, 5, dtype=torch.float64)))
    with pytest.raises(
        RuntimeError, match="result type Float can't be cast to the desired output type Long"
    ):
        taeda.add(ours(x), ours(y), out=taeda.empty(3, 5, dtype=taeda.int64))
    with pytest.raises(
        RuntimeError, match="result type Float can't be cast to the desired output type Long"
    ):
        taeda.arange(3).add_(1.5)
    with pytest.raises(
        RuntimeError, match=r"output with shape \[\] doesn't match the broadcast shape \[2\]"
    ):
        taeda.tensor(1.0).add_(taeda.ones(2))
    with pytest.raises(RuntimeError, match="more than one element of the written-to tensor"):
        taeda.zeros(1).expand(4).add_(1)


def test_overlap():
    """What an op reads is never what it has just written, or it is refused: see test_out_memory."""
    a = taeda.arange(2000)
    a[1::2].add_(a[0:-1:2])
    x = torch.arange(2000)
    same(a[1::2], x[1::2] + x[0:-1:2])
    m = taeda.arange(12.0).reshape(4, 3).t()
    m[:, :2].sub_(m[:, 1:3].clone()).sub_(m[:, :2])
    same(m[:, :2], torch.zeros(3, 2))


def test_integers_wrap_and_divide():
    for dtype in ("int8", "int32", "int64", "uint8"):
        info = torch.iinfo(getattr(torch, dtype))
        x = torch.tensor([info.max, info.min, 3, 7], dtype=getattr(torch, dtype))
        y = torch.tensor([2, 3, 2, 5], dtype=x.dtype)
        for f in ("add", "sub", "mul", "floor_divide", "remainder", "fmod"):
            same(getattr(taeda, f)(ours(x), ours(y)), getattr(torch, f)(x, y), what=f"{f} {dtype}")
    signs = torch.tensor([-7, -6, 6, 7]), torch.tensor([3, -4, 4, -3])
    for f in ("floor_divide", "remainder", "fmod"):
        same(getattr(taeda, f)(*map(ours, signs)), getattr(torch, f)(*signs), what=f)
        floats = [t.double() for t in signs]
        same(getattr(taeda, f)(*map(ours, floats)), getattr(torch, f)(*floats), what=f)
    for mode in (None, "floor", "trunc"):
        got = taeda.div(ours(signs[0]), ours(signs[1]), rounding_mode=mode)
        same(got, torch.div(*signs, rounding_mode=mode))
    for f in ("floor_divide", "remainder", "fmod"):
        with pytest.raises(RuntimeError, match="ZeroDivisionError"):
            getattr(taeda, f)(taeda.tensor([1, 2]), taeda.tensor([1, 0]))


def test_errors():
    mask = taeda.tensor([True, False])
    with pytest.raises(RuntimeError, match="Subtraction, the `-` operator, with a bool tensor"):
        mask - mask
    with pytest.raises(RuntimeError, match="Negation, the `-` operator, on a bool tensor"):
        -mask
    with pytest.raises(RuntimeError, match="At least one of 'min' or 'max' must not be None"):
        taeda.clamp(taeda.ones(2))
    with pytest.raises(RuntimeError, match="argument alpha must not be a floating point number"):
        taeda.add(taeda.arange(2), taeda.arange(2), alpha=1.5)
    with pytest.raises(NotImplementedError, match="not implemented for 'Float'"):
        taeda.bitwise_and(taeda.ones(2), taeda.ones(2))
    with pytest.raises(RuntimeError, match="rounding_mode"):
        taeda.div(taeda.ones(2), 2, rounding_mode="up")


def test_special_values():
    values = [
        0.0,
        -0.0,
        1.0,
        -1.0,
        math.inf,
        -math.inf,
        math.nan,
        1e-40,
        1e-300,
        88.8,
        -104.0,
        1e4,
        1e10,
        3e38,
    ]
    skip = {"nan_to_num", "lgamma", "round", "sinc", "bitwise_not"}
    for dtype in ("float32", "float64"):
        x = torch.tensor(values, dtype=getattr(torch, dtype))
        for name in UNARY:
            if name in skip:
                continue
            same(
                getattr(taeda, name)(ours(x)),
                getattr(torch, name)(x),
                1e-5,
                1e-30,
                f"{name} {dtype}",
            )
        pairs = torch.cartesian_prod(x, x).t()
        for name in ("maximum", "minimum", "fmax", "fmin", "remainder", "fmod", "atan2", "hypot", "pow", "xlogy",
                     "copysign", "logaddexp", "eq", "lt", "heaviside"):  # fmt: skip
            got = getattr(taeda, name)(ours(pairs[0]), ours(pairs[1]))
            same(got, getattr(torch, name)(pairs[0], pairs[1]), 1e-5, 1e-30, f"{name} {dtype}")
    x = torch.tensor([math.nan, math.inf, -math.inf, 1.5])
    same(taeda.nan_to_num(ours(x)), torch.nan_to_num(x))
    same(taeda.nan_to_num(ours(x), 1.0, 2.0, 3.0), torch.nan_to_num(x, 1.0, 2.0, 3.0))


def test_round_decimals():
    x = sample("float64", low=-300, high=300)
    for d in (-2, -1, 0, 1, 3):
        same(taeda.round(ours(x), decimals=d), torch.round(x, decimals=d))
    half = torch.tensor([0.5, 1.5, 2.5, -0.5])
    same(taeda.round(ours(half)), torch.round(half))


def test_where_forms():
    x = sample("float32")
    got, want = taeda.where(ours(x) > 0), torch.where(x > 0)
    assert [g.tolist() for g in got] == [w.tolist() for w in want]
    same(taeda.where(ours(x) > 0, 1.0, 0.0), torch.where(x > 0, 1.0, 0.0))
    same(taeda.where(ours(x) > 0, ours(x), 0), torch.where(x > 0, x, 0))


def test_complex_parts():
    z = sample("complex64")
    a = ours(z)
    same(taeda.real(a), z.real)
    same(taeda.imag(a), z.imag)
    same(taeda.conj(a), z.conj().resolve_conj())
    same(taeda.view_as_real(a), torch.view_as_real(z))
    same(taeda.view_as_complex(taeda.view_as_real(a)), z)
    same(taeda.complex(taeda.real(a), taeda.imag(a)), z)
    same(taeda.polar(taeda.abs(a), taeda.angle(a)), z, 1e-5, 1e-6)
    taeda.real(a).zero_()
    assert not taeda.real(a).any()


def test_meta():
    a = taeda.empty(3, 1, device="meta")
    b = taeda.empty(4, device="meta", dtype=taeda.float64)
    assert (a + b).shape == (3, 4)
    assert (a * b).dtype is taeda.float64
    assert (a > b).dtype is taeda.bool


def test_default_dtype():
    taeda.set_default_dtype(taeda.float64)
    try:
        assert taeda.exp(taeda.arange(3)).dtype is taeda.float64
        assert (taeda.arange(3) + 1.5).dtype is taeda.float64
    finally:
        taeda.set_default_dtype(taeda.float32)
    assert taeda.exp(taeda.arange(3)).dtype is taeda.float32


def test_polygamma_and_prelu():
    x = sample("float64", low=0.3, high=5)
    for n in range(4):
        same(taeda.polygamma(n, ours(x)), torch.polygamma(n, x), 1e-8, 1e-8)
    y = sample("float64", (2, 3, 4))
    w = sample("float64", (3,))
    check_gradients(taeda.prelu, torch.prelu, [y, w], "prelu")
    check_gradients(taeda.prelu, torch.prelu, [y, w[:1]], "prelu")


def test_gelu_tanh():
    x = sample("float64")
    f = functional(taeda, "gelu")
    g = torch.nn.functional.gelu
    check_gradients(
        lambda t: f(t, approximate="tanh"), lambda t: g(t, approximate="tanh"), [x], "gelu"
    )


def test_power_of_zero_by_its_exponent():
    """0^b has the slope 0 from b = 0 on, as a limit from the right."""
    for dtype in (taeda.float64, taeda.complex128):
        b = taeda.tensor([0.0, 1.0, 2.5], dtype=dtype, requires_grad=True)
        (taeda.zeros(3, dtype=dtype) ** b).abs().sum().backward()
        assert b.grad.tolist() == [0, 0, 0]
