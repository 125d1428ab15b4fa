"""taeda.func's derivatives of functions: values, structures, nesting, and beside PyTorch."""

from collections import OrderedDict, namedtuple

import pytest

import taeda
from taeda.autograd import forward_ad
from taeda.func import grad, grad_and_value, hessian, jacfwd, jacrev, jvp, linearize, vjp

Pair = namedtuple("Pair", "a b")


def double(*sizes):
    return taeda.randn(sizes, dtype=taeda.float64)


def cubes(x):
    return (x**3).sum()


def two(a, b):
    return (a * b * b).sum()


def close(a, b):
    return taeda.allclose(a, b, atol=1e-9)


# ---- grad ----


def test_grad():
    x, y = double(3), double(3)
    assert close(grad(cubes)(x), 3 * x**2)
    assert close(grad(two, 1)(x, y), 2 * x * y)
    assert close(grad(two, -2)(x, y), y * y) and close(grad(two)(x, b=y), y * y)
    by_a, by_b = grad(two, (0, 1))(x, y)
    assert close(by_a, y * y) and close(by_b, 2 * x * y)
    assert not by_a.requires_grad and not x.requires_grad and x.grad is None
    gradient, value = grad_and_value(cubes)(x)
    assert close(gradient, 3 * x**2) and close(value, cubes(x)) and not value.requires_grad
    gradient, (value, aux) = grad_and_value(lambda x: (cubes(x), {"x": x, "n": 3}), has_aux=True)(x)
    assert aux["n"] == 3 and taeda.equal(aux["x"], x) and not aux["x"].requires_grad
    assert bool((grad(lambda x: taeda.ones(()))(x) == 0).all())


def test_structures():
    x, y = double(2), double(2)
    given = {"a": x, "b": [y, Pair(x, y)], "c": OrderedDict(z=y)}

    def f(p):
        return (p["a"] * p["b"][0] * p["b"][1].b).sum() + cubes(p["c"]["z"])

    found = grad(f)(given)
    assert close(found["a"], y * y) and close(found["b"][0], x * y)
    assert type(found["b"][1]) is Pair and bool((found["b"][1].a == 0).all())
    assert type(found["c"]) is OrderedDict and close(found["c"]["z"], 3 * y**2)


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (lambda x: grad(lambda x: x)(x), RuntimeError, "return a scalar Tensor, got tensor with 1"),
        (lambda x: grad(lambda x: 3)(x), RuntimeError, "to return a Tensor, got <class 'int'>"),
        (lambda x: grad(cubes, has_aux=True)(x), RuntimeError, "should be a tuple"),
        (lambda x: grad(two, 2)(x, x), RuntimeError, "Got argnum=2, but only 2"),
        (lambda x: grad(two, (0, 0))(x, x), RuntimeError, "must be unique"),
        (lambda x: grad(two, ())(x, x), RuntimeError, "must be non-empty"),
        (lambda x: grad(two, "a")(x, x), RuntimeError, "must be int or Tuple"),
        (lambda x: grad(two)(3, x), ValueError, "must be Tensor, got <class 'int'>"),
        (lambda x: grad(cubes)(x.long()), RuntimeError, "floating point dtype"),
        (lambda x: vjp(lambda x: 3, x), RuntimeError, "to return only tensors"),
        (lambda x: vjp(lambda x: (x, x), x)[1](x), RuntimeError, "structure of cotangents"),
        (lambda x: vjp(lambda x: x, x)[1](x[:2]), RuntimeError, "Mismatch in shape"),
        (lambda x: vjp(lambda x: x, x)[1](None), RuntimeError, "expected tensors"),
        (lambda x: jvp(cubes, x, x), RuntimeError, "Expected primals to be a tuple"),
        (lambda x: jvp(cubes, (x,), x), RuntimeError, "same python structure"),
        (lambda x: jvp(cubes, (), ()), RuntimeError, "at least one Tensor"),
        (lambda x: jvp(cubes, (3,), (x,)), RuntimeError, "primals to only contain Tensors"),
        (lambda x: jvp(cubes, (x,), (3,)), RuntimeError, "tangents to only contain Tensors"),
        (lambda x: jvp(cubes, (x,), (x[:2],)), RuntimeError, "different size"),
        (lambda x: jvp(lambda x: 3, (x,), (x,)), RuntimeError, "to return only tensors"),
        (lambda x: jvp(lambda x: x[0] * 0 + 1, (x,), (x[:2],)), RuntimeError, "different size"),
        (
            lambda x: jvp(lambda x: taeda.ones(2), (x,), (x,), strict=True),
            RuntimeError,
            "independent of the inputs",
        ),
        (lambda x: jacrev(lambda x: x)(x.to(taeda.complex128)), RuntimeError, "inputs to be real"),
        (lambda x: jacfwd(lambda x: x)(x.to(taeda.complex128)), RuntimeError, "inputs to be real"),
        (lambda x: jacrev(lambda x: x.long())(x), RuntimeError, "floating-point or complex"),
        (lambda x: jacfwd(lambda x: x)(3), ValueError, "must be Tensor"),
        (lambda x: linearize(lambda x: x, x)[1](x[:2]), RuntimeError, "doesn't match the shape"),
        (lambda x: linearize(lambda x: x, x)[1](x, x), RuntimeError, "same argspec"),
    ],
)
def test_errors(call, kind, message):
    with pytest.raises(kind, match=message):
        call(double(3))
    assert not taeda._C._at_dual_level()


# ---- what is recorded ----


def test_captured_tensors():
    w, x = double(3).requires_grad_(), double(3)
    g = grad(lambda x: (w * x * x).sum())(x)
    assert g.requires_grad
    (by_w,) = taeda.autograd.grad(g.sum(), w)
    assert close(by_w, 2 * x)
    assert not grad(lambda x: (w.detach() * x).sum())(x).requires_grad
    with taeda.no_grad():
        assert not grad(lambda x: (w * x).sum())(x).requires_grad
    y = double(3).requires_grad_()
    g, value = grad_and_value(cubes)(y)
    assert g.requires_grad and value.requires_grad and y.grad is None
    g.sum().backward()
    assert close(y.grad, 6 * y)


# ---- vjp, jvp, linearize ----


def test_products():
    x, y = double(3), double(3)
    output, vjp_fn = vjp(lambda x: {"a": (x**2, x.sum())}, x)
    (found,) = vjp_fn({"a": (y, taeda.tensor(2.0).double())})
    assert close(found, 2 * x * y + 2) and not output["a"][0].requires_grad
    assert close(vjp_fn({"a": (y, taeda.tensor(2.0).double())})[0], found)
    assert vjp(lambda x: (x, "aux"), x, has_aux=True)[2] == "aux"
    output, product = jvp(lambda a, b: (a * b, [a.sum()]), (x, y), (y, x))
    assert close(product[0], x * x + y * y) and close(product[1][0], y.sum())
    assert jvp(lambda x: (x, {"n": x, "m": 1}), (x,), (y,), has_aux=True)[2]["m"] == 1
    output, jvp_fn = linearize(lambda x: (x.sin(), {"a": taeda.ones(2)}), x)
    for t in (x, y):
        first, rest = jvp_fn(t)
        assert close(first, x.cos() * t) and bool((rest["a"] == 0).all())
    assert close(jvp(lambda x: x.sin(), (x,), (y,))[1], x.cos() * y)
    assert jvp(lambda x: x > 0, (x,), (y,))[1].dtype is taeda.bool


# ---- Jacobians ----


@pytest.mark.parametrize("jacobian", [jacrev, jacfwd])
def test_jacobians(jacobian):
    x, y = double(2, 2), double(3)
    found = jacobian(lambda a, b: {"p": a.exp(), "s": b.sum() * a}, (0, 1))(x, y)
    assert [found[k][i].shape for k in "ps" for i in (0, 1)] == [
        (2, 2, 2, 2),
        (2, 2, 3),
        (2, 2, 2, 2),
        (2, 2, 3),
    ]
    assert close(found["p"][0].reshape(4, 4), taeda.diag(x.exp().reshape(-1)))
    assert close(found["s"][1], x[:, :, None].expand(2, 2, 3))
    value, aux = jacobian(lambda x: (x.sum(), "aux"), has_aux=True)(y)
    assert aux == "aux" and value.tolist() == [1.0, 1.0, 1.0]
    assert jacobian(lambda x: x)(double(0)).shape == (0, 0)
    assert jacobian(lambda x: x.sum())(double(0, 2)).shape == (0, 2)
    assert jacobian(lambda x: x[:0])(double(2)).shape == (0, 2)
    assert bool((jacobian(lambda x: taeda.ones(2))(double(3)) == 0).all())


def test_hessian():
    x, y = double(3), double(3)
    assert close(hessian(cubes)(x), taeda.diag(6 * x))
    found = hessian(two, (0, 1))(x, y)
    assert close(found[0][1], taeda.diag(2 * y)) and close(found[1][1], taeda.diag(2 * x))


# ---- nesting ----

NESTED = {
    "grad of grad": lambda f, x, v: grad(lambda x: (grad(f)(x) * v).sum())(x),
    "jvp of grad": lambda f, x, v: jvp(grad(f), (x,), (v,))[1],
    "grad of jvp": lambda f, x, v: grad(lambda x: jvp(f, (x,), (v,))[1])(x),
    "vjp of grad": lambda f, x, v: vjp(grad(f), x)[1](v)[0],
    "grad of vjp": lambda f, x, v: grad(
        lambda x: (vjp(f, x)[1](taeda.ones(()).double())[0] * v).sum()
    )(x),
    "linearize of grad": lambda f, x, v: linearize(grad(f), x)[1](v),
    "grad of linearize": lambda f, x, v: grad(lambda x: linearize(f, x)[1](v))(x),
    "jacfwd of grad": lambda f, x, v: jacfwd(grad(f))(x) @ v,
    "jacrev of grad": lambda f, x, v: jacrev(grad(f))(x) @ v,
    "jacrev of jacfwd": lambda f, x, v: jacrev(jacfwd(f))(x) @ v,
    "jacfwd of jacfwd": lambda f, x, v: jacfwd(jacfwd(f))(x) @ v,
    "jacrev of jacrev": lambda f, x, v: jacrev(jacrev(f))(x) @ v,
    "jvp of jacrev": lambda f, x, v: jvp(jacrev(f), (x,), (v,))[1],
}


def curved(x):
    return (x.sin() * x.exp()).sum() * x[0] + x.prod()


@pytest.mark.parametrize("name", NESTED)
def test_nesting(name):
    x, v = double(3), double(3)
    expected = taeda.autograd.functional.hvp(curved, x, v)[1]
    found = NESTED[name](curved, x, v)
    assert close(found, expected) and not found.requires_grad
    with taeda.no_grad():
        assert close(NESTED[name](curved, x, v), expected)


def test_jvp_of_jvp():
    x, u, v = double(3), double(3), double(3)
    inner = lambda x: jvp(curved, (x,), (u,))  # noqa: E731
    (value, by_u), (by_v, second) = jvp(inner, (x,), (v,))
    gradient = grad(curved)(x)
    assert close(value, curved(x)) and close(by_u, gradient @ u) and close(by_v, gradient @ v)
    expected = (taeda.autograd.functional.hvp(curved, x, v)[1] * u).sum()
    assert close(second, expected)
    third = grad(lambda x: jvp(inner, (x,), (v,))[1][1])(x)
    h = 1e-5 * taeda.ones(3).double()
    ends = [(taeda.autograd.functional.hvp(curved, x + s * h, v)[1] * u).sum() for s in (1, -1)]
    assert abs(float(third.sum() - (ends[0] - ends[1]) / 2e-5)) < 1e-5


def test_at_a_level_of_forward_mode():
    x, v = double(3), double(3)
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(x, v)
        gradient, (value, aux) = grad_and_value(lambda x: (curved(x), x * 2), has_aux=True)(dual)
        expected = taeda.autograd.functional.hvp(curved, x, v)[1]
        assert close(forward_ad.unpack_dual(gradient).tangent, expected)
        assert close(forward_ad.unpack_dual(aux).tangent, 2 * v)
        assert forward_ad.unpack_dual(value).tangent is not None


def test_a_model():
    model = taeda.nn.Sequential(taeda.nn.Linear(3, 4), taeda.nn.Tanh(), taeda.nn.Linear(4, 1))
    model = model.double()
    parameters = {k: p.detach() for k, p in model.named_parameters()}
    data = double(5, 3)

    def loss(parameters):
        return taeda.func.functional_call(model, parameters, (data,)).square().mean()

    found = grad(loss)(parameters)
    loss(dict(model.named_parameters())).backward()
    for name, p in model.named_parameters():
        assert close(found[name], p.grad)


@pytest.mark.filterwarnings("ignore")
def test_beside_pytorch():
    torch = pytest.importorskip("torch")
    values = [0.5, -1.0, 2.0]
    for f in (
        lambda lib, t: lib.func.jacrev(lambda x: x.softmax(0).log())(t),
        lambda lib, t: lib.func.jacfwd(lambda x: x.cumsum(0) ** 2)(t),
        lambda lib, t: lib.func.hessian(lambda x: x.logsumexp(0) + x.prod())(t),
        lambda lib, t: lib.func.vjp(lambda x: x.sort().values * x, t)[1](t * t)[0],
        lambda lib, t: lib.func.jvp(lambda x: x.sort().values * x, (t,), (t * t,))[1],
        lambda lib, t: lib.func.linearize(lambda x: x.tanh() * x, t)[1](t),
    ):
        ours = f(taeda, taeda.tensor(values, dtype=taeda.float64))
        theirs = f(torch, torch.tensor(values, dtype=torch.float64))
        assert close(ours, taeda.tensor(theirs.tolist(), dtype=taeda.float64))
