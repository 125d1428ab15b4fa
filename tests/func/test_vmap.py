"""vmap: arguments, outputs, errors, randomness, nesting, and gradients within and around it."""

import threading
from collections import OrderedDict, namedtuple

import pytest

import taeda
from taeda.func import (
    functional_call,
    grad,
    hessian,
    jacfwd,
    jacrev,
    jvp,
    linearize,
    stack_module_state,
    vjp,
    vmap,
)

Pair = namedtuple("Pair", "a b")


def double(*sizes):
    return taeda.randn(sizes, dtype=taeda.float64)


def close(a, b):
    return a.shape == b.shape and taeda.allclose(a, b, atol=1e-9)


def rows(f, *args):
    return taeda.stack([f(*each) for each in zip(*args, strict=True)])


# ---- arguments and outputs ----


def test_in_dims():
    x, y = double(3, 4), double(4, 3)
    assert close(vmap(taeda.dot, in_dims=(0, 1))(x, y), (x * y.t()).sum(1))
    assert close(vmap(taeda.dot, in_dims=(0, -1))(x, y), (x * y.t()).sum(1))
    assert close(vmap(taeda.dot, in_dims=(0, None))(x, y[:, 0]), x @ y[:, 0])
    assert close(vmap(lambda a, n: a * n, in_dims=(0, None))(x, 3), 3 * x)
    assert close(taeda.vmap(taeda.sin)(x), x.sin())


def test_structures():
    x, y = double(3, 4), double(3)
    f = vmap(lambda d, p: {"s": d["x"].sum() + p[1], "t": [p[0], d["x"]]})
    out = f({"x": x}, (y, y))
    assert close(out["s"], x.sum(1) + y) and close(out["t"][0], y) and close(out["t"][1], x)
    f = vmap(lambda d, z: d["a"] * d["b"] + z, in_dims=({"a": 0, "b": None}, None))
    assert close(f({"a": x, "b": x[0]}, 1), x * x[0] + 1)
    pair = vmap(lambda p: Pair(p.b, p.a))(Pair(x, y))
    assert isinstance(pair, Pair) and close(pair.a, y) and close(pair.b, x)
    ordered = vmap(lambda d: OrderedDict(d))(OrderedDict(k=x))
    assert isinstance(ordered, OrderedDict) and close(ordered["k"], x)


def test_out_dims():
    x = double(3, 4)
    assert close(vmap(taeda.sin, out_dims=1)(x), x.sin().t())
    assert close(vmap(taeda.sin, out_dims=-1)(x), x.sin().t())
    a, b = vmap(lambda r: (r, r.sum()), out_dims=(1, 0))(x)
    assert close(a, x.t()) and close(b, x.sum(1))
    same, text = vmap(lambda r: (taeda.ones(2), "text"), out_dims=None)(x)
    assert tuple(same.shape) == (2,) and text == "text"
    assert tuple(vmap(lambda r: taeda.ones(2))(x).shape) == (3, 2)
    assert tuple(vmap(lambda r: taeda.ones(2), out_dims=1)(x).shape) == (2, 3)


def test_batch_of_zero_and_one():
    assert tuple(vmap(lambda r: (r @ r.t()).sum(0))(double(0, 3, 2)).shape) == (0, 3)
    x = double(1, 3)
    assert close(vmap(lambda r: r.softmax(0))(x), x.softmax(1))


def test_keyword_arguments_are_not_mapped():
    x = double(3, 2)
    assert tuple(vmap(lambda a, b=0: a + b)(x, b=x).shape) == (3, 3, 2)


def test_chunks():
    x = double(5, 3)
    for size in (1, 2, 5, 7):
        assert close(vmap(lambda r: r.cumsum(0), chunk_size=size)(x), x.cumsum(1))
    a, b = vmap(lambda r: (r, 7), out_dims=(1, None), in_dims=1, chunk_size=2)(x)
    assert close(a, x) and b == 7


def test_metadata():
    seen = {}

    def f(x):
        seen.update(shape=x.shape, dim=x.dim(), size=x.size(1), stride=x.stride(), n=x.numel())
        seen.update(length=len(x), dtype=x.dtype, text=repr(x), contiguous=x.is_contiguous())
        return x

    vmap(f, in_dims=1)(double(3, 5, 4))
    assert seen["shape"] == (3, 4) and seen["dim"] == 2 and seen["size"] == 4 and seen["n"] == 12
    assert seen["length"] == 3 and seen["dtype"] == taeda.float64
    assert seen["text"].startswith("BatchedTensor(lvl=1, bdim=0, value=")


# ---- errors ----


@pytest.mark.parametrize(
    ("f", "error", "text"),
    [
        (lambda x: vmap(taeda.sin, in_dims=5)(x), ValueError, "Got in_dim=5 for some input"),
        (lambda x: vmap(taeda.sin, in_dims=None)(x), ValueError, "expected `in_dims` to be int"),
        (lambda x: vmap(taeda.sin, in_dims=(None,))(x), ValueError, "at least one Tensor"),
        (lambda x: vmap(taeda.sin, in_dims=(0, 0))(x), ValueError, "not compatible"),
        (lambda x: vmap(taeda.sin, in_dims=("x",))(x), ValueError, "in_dim must be either"),
        (lambda x: vmap(lambda a, b: a)(x, 2), ValueError, "input is of type"),
        (lambda x: vmap(lambda a, b: a)(x, x[0]), ValueError, "same size in the mapped dimension"),
        (lambda x: vmap(lambda: x)(), ValueError, "got no inputs"),
        (lambda x: vmap(taeda.sin, randomness="x")(x), RuntimeError, "Only allowed values"),
        (lambda x: vmap(taeda.sin, chunk_size=0)(x), ValueError, "chunk_size"),
        (lambda x: vmap(taeda.sin, out_dims=5)(x), IndexError, "out of range"),
        (lambda x: vmap(taeda.sin, out_dims=None)(x), ValueError, "can not return a BatchedTensor"),
        (lambda x: vmap(taeda.sin, out_dims=(0, 0))(x), ValueError, "not compatible"),
        (lambda x: vmap(taeda.sin, out_dims=1.0)(x), ValueError, "must be an int, None"),
        (lambda x: vmap(lambda a: (a, 1))(x), ValueError, "must only return Tensors"),
        (lambda x: vmap(lambda a: None)(x), ValueError, "must only return Tensors"),
        (lambda x: vmap(lambda a: a.sum().item())(x), RuntimeError, r"calling .item\(\)"),
        (lambda x: vmap(lambda a: float(a.sum()))(x), RuntimeError, r"calling .item\(\)"),
        (lambda x: vmap(lambda a: a if a.sum() > 0 else -a)(x), RuntimeError, "data-dependent"),
        (lambda x: vmap(lambda i: taeda.arange(i))(x[0].long()), RuntimeError, r".item\(\)"),
        (lambda x: vmap(lambda a: a.tolist())(x), RuntimeError, "Cannot access data pointer"),
        (lambda x: vmap(lambda a: a.numpy())(x), RuntimeError, "Cannot access data pointer"),
        (lambda x: vmap(lambda a: a[a > 0])(x), RuntimeError, "dynamic shape"),
        (lambda x: vmap(taeda.nonzero)(x), RuntimeError, "dynamic shape"),
        (lambda x: vmap(lambda a: taeda.equal(a, a))(x), RuntimeError, "rule not implemented"),
        (lambda x: vmap(lambda a: taeda.sin(a, out=a))(x), RuntimeError, "out="),
        (lambda x: vmap(lambda a: taeda.zeros(2).add_(a))(x), RuntimeError, "inplace"),
        (lambda x: vmap(lambda a: taeda.zeros(2).copy_(a))(x), RuntimeError, "inplace"),
        (lambda x: vmap(lambda a: a.requires_grad_())(x), RuntimeError, "requires_grad_"),
        (lambda x: vmap(lambda a: a.sum().backward())(x), RuntimeError, r"backward\(\)"),
        (lambda x: vmap(lambda a: a.sum(5))(x), IndexError, "out of range"),
        (lambda x: vmap(lambda a: a @ taeda.ones(7))(x), RuntimeError, "dot"),
    ],
)
def test_errors(f, error, text):
    with pytest.raises(error, match=text):
        f(taeda.ones(3, 2))


@pytest.mark.parametrize(
    "f",
    [
        taeda.tril,
        taeda.linalg.inv,
        lambda a: taeda.nn.functional.avg_pool1d(a, 1),
        lambda a: taeda.nn.functional.layer_norm(a, (3, 2)),
        lambda a: taeda.nn.functional.linear(a.sum(), taeda.ones(4, 3)),
        lambda a: taeda.nn.functional.pad(a, (1, 1, 1, 1)),
        lambda a: taeda.view_as_complex(a[0]),
        lambda a: a.sum().view(taeda.float64),
        lambda a: a.view(5),
        lambda a: a.expand(()),
        lambda a: a.permute(0, 1),
        lambda a: a.t().t().repeat(()),
        lambda a: taeda.multinomial(a.sum(), 1),
        lambda a: taeda.bmm(a[None], a[None]),
    ],
)
def test_shapes_that_would_do_for_the_value(f):
    """An element's shape that is an error stays one, though the value has a dimension more."""
    x = taeda.ones(3, 2)
    with pytest.raises((RuntimeError, IndexError, ValueError)) as eager:
        f(x[0])
    with pytest.raises(type(eager.value)):
        vmap(f, randomness="different")(x)


def test_escaped():
    kept = []
    vmap(lambda a: kept.append(a) or a)(taeda.ones(3))
    with pytest.raises(RuntimeError, match="escaped"):
        kept[0] + 1


def test_an_error_leaves_no_level_behind():
    def fail(x):
        raise KeyError("mine")

    with pytest.raises(KeyError):
        vmap(fail)(taeda.ones(3))
    taeda.rand(2)  # no randomness to complain about
    assert close(vmap(lambda x: x + 1)(taeda.ones(3)), taeda.full((3,), 2.0))


# ---- in place ----


def test_in_place():
    x = double(3, 4)
    before = x.clone()
    vmap(lambda a: a.mul_(2))(x)
    assert close(x, 2 * before)
    vmap(lambda a: a.mul_(2), in_dims=1)(x)
    assert close(x, 4 * before)

    def fill(a, v):
        out = a.new_zeros(4)
        out[1] = v
        out[2:] = a[2:]
        return out

    out = vmap(fill)(x, x[:, 0])
    assert close(out[:, 1], x[:, 0]) and close(out[:, 2:], x[:, 2:]) and not out[:, 0].any()
    flipped = vmap(lambda a: a.clone().unsqueeze_(0).t_().squeeze_(1))(x)
    assert close(flipped, x)


# ---- indices ----


def test_indices():
    x, i = double(3, 4, 5), taeda.tensor([[0, 1], [3, 2], [2, 2]])
    j = taeda.tensor([2, 0, 1])
    assert close(vmap(lambda a, k: a[k])(x, i), rows(lambda a, k: a[k], x, i))
    assert close(vmap(lambda a, k: a[:, k])(x, i), rows(lambda a, k: a[:, k], x, i))
    assert close(vmap(lambda a, k: a[k, :, None])(x, j), rows(lambda a, k: a[k, :, None], x, j))
    unbatched = vmap(lambda k: x[0][k, 1:])(i)
    assert close(unbatched, rows(lambda k: x[0][k, 1:], i))
    z = double(3, 4, 5, 4)
    apart = vmap(lambda a, k: a[k, :, k])(z, i)
    assert close(apart, rows(lambda a, k: a[k, :, k], z, i))
    apart = vmap(lambda a: a[i[0], :, i[1]])(z)
    assert close(apart, rows(lambda a: a[i[0], :, i[1]], z))
    taken = vmap(lambda a, k, v: a.index_put((k,), v, accumulate=True))(x, i, double(3, 5))
    assert tuple(taken.shape) == (3, 4, 5)


# ---- randomness ----


def test_randomness():
    x = taeda.ones(4, 6)
    with pytest.raises(RuntimeError, match="randomness error mode"):
        vmap(lambda a: taeda.rand(2))(x)
    with pytest.raises(RuntimeError, match="randomness error mode"):
        vmap(lambda a: taeda.nn.functional.dropout(a))(x)
    assert close(vmap(lambda a: taeda.nn.functional.dropout(a, training=False))(x), x)
    for f in (
        lambda a: taeda.rand(5),
        lambda a: taeda.randint(0, 10**6, (5,)).float(),
        lambda a: taeda.randperm(50).float(),
        lambda a: taeda.rand_like(a),
        lambda a: taeda.nn.functional.dropout(a, 0.5),
        lambda a: taeda.bernoulli(a * 0.5),
        lambda a: a.clone().normal_(),
        lambda a: taeda.normal(a, 1.0),
        lambda a: taeda.nn.functional.dropout1d(taeda.ones(20, 2), 0.5),
    ):
        same = vmap(f, randomness="same")(x)
        assert all(taeda.equal(same[0], row) for row in same)
        different = vmap(f, randomness="different")(x)
        assert not all(taeda.equal(different[0], row) for row in different)
        assert different.shape == same.shape
    with pytest.raises(RuntimeError, match="inplace randomness"):
        vmap(lambda a: taeda.ones(2).normal_(), randomness="different")(x)
    assert tuple(vmap(lambda a: taeda.ones(2).normal_(), randomness="same")(x).shape) == (4, 2)


def test_randomness_of_levels():
    x = taeda.ones(3, 4)
    inner = vmap(lambda a: taeda.rand(()), randomness="different")
    out = vmap(inner, randomness="same")(x)
    assert taeda.equal(out[0], out[1]) and not taeda.equal(out[:, 0], out[:, 1])
    inner = vmap(lambda a: taeda.rand(()), randomness="same")
    out = vmap(inner, randomness="different")(x)
    assert taeda.equal(out[:, 0], out[:, 1]) and not taeda.equal(out[0], out[1])
    taeda.rand(2)


def test_multinomial_and_generators():
    weights = taeda.rand(3, 50)
    out = vmap(lambda w: taeda.multinomial(w, 4), randomness="different")(weights)
    assert tuple(out.shape) == (3, 4)
    same = vmap(lambda w: taeda.multinomial(w, 4), randomness="same")(weights[:1].expand(3, 50))
    assert taeda.equal(same[0], same[2])
    generator = taeda.Generator().manual_seed(3)
    first = vmap(lambda w: taeda.rand(2, generator=generator), randomness="different")(weights)
    assert taeda.equal(first, taeda.rand(3, 2, generator=taeda.Generator().manual_seed(3)))


# ---- nesting, gradients ----


def test_nested_levels():
    x, y = double(3, 5), double(4, 5)
    table = vmap(vmap(taeda.dot, in_dims=(None, 0)), in_dims=(0, None))(x, y)
    assert close(table, x @ y.t())
    table = vmap(lambda a: vmap(lambda b: (a * b).softmax(0) + x[0])(y))(x)
    assert close(table, (x[:, None] * y).softmax(2) + x[0])
    assert close(vmap(lambda a: vmap(lambda b: b)(y) * a, out_dims=1)(x), y[:, None] * x)


def f(z):
    return z.sin() * z.sum()


def test_gradients_within():
    x, v = double(4, 3), double(4, 3)
    w = double(3)
    assert close(vmap(grad(lambda a: f(a).sum()))(x), rows(grad(lambda a: f(a).sum()), x))
    each = vmap(grad(lambda p, a: (p * a).exp().sum()), in_dims=(None, 0))(w, x)
    assert close(each, (w * x).exp() * x)
    assert close(
        vmap(lambda a, b: vjp(f, a)[1](b)[0])(x, v), rows(lambda a, b: vjp(f, a)[1](b)[0], x, v)
    )
    assert close(
        vmap(lambda a, b: jvp(f, (a,), (b,))[1])(x, v),
        rows(lambda a, b: jvp(f, (a,), (b,))[1], x, v),
    )
    assert close(vmap(lambda b: jvp(f, (w,), (b,))[1])(v), v @ jacrev(f)(w).t())
    assert close(vmap(linearize(f, w)[1])(v), v @ jacrev(f)(w).t())
    for transform in (jacrev, jacfwd):
        assert close(vmap(transform(f))(x), rows(transform(f), x))
    total = lambda a: f(a).sum()  # noqa: E731
    assert close(vmap(hessian(total))(x), rows(hessian(total), x))
    twice = grad(lambda a: grad(lambda b: (b**3).sum())(a).sin().sum())
    assert close(vmap(twice)(x), rows(twice, x))
    nested = vmap(lambda a: jvp(lambda b: jvp(taeda.sin, (b,), (b,))[1], (a,), (a,))[1])
    assert close(nested(x), x * x.cos() - x * x * x.sin())


def test_gradients_around():
    x, w = double(4, 3), double(3)
    loss = lambda p: vmap(lambda a: (p * a).sin().sum())(x).sum()  # noqa: E731
    assert close(grad(loss)(w), ((w * x).cos() * x).sum(0))
    assert close(jacrev(vmap(f))(x), jacfwd(vmap(f))(x))
    primal, tangent = jvp(vmap(f), (x,), (x,))
    assert close(primal, rows(f, x)) and close(tangent, rows(lambda a: jvp(f, (a,), (a,))[1], x))
    mixed = grad(lambda p: vmap(grad(lambda a: (p * a**2).sin().sum()))(x).sum())
    assert close(mixed(w), jacfwd(lambda p: (2 * p * x * (p * x**2).cos()).sum())(w))
    a, b = x.clone().requires_grad_(), w.clone().requires_grad_()
    vmap(lambda r: (r * b).sin().sum())(a).sum().backward()
    assert close(a.grad, (x * w).cos() * w) and close(b.grad, ((x * w).cos() * x).sum(0))


@pytest.mark.parametrize("create_graph", [False, True])
def test_batched_gradients_of_one_graph(create_graph):
    x = double(3).requires_grad_()
    y = f(x)
    eye = taeda.eye(3, dtype=taeda.float64)

    def row(v):
        return taeda.autograd.grad(y, x, v, retain_graph=True, create_graph=create_graph)[0]

    jacobian = vmap(row)(eye)
    assert close(jacobian, jacrev(f)(x.detach())) and jacobian.requires_grad is create_graph


def test_per_sample_gradients_of_modules():
    taeda.manual_seed(1)
    nn = taeda.nn
    model = nn.Sequential(
        nn.Conv2d(1, 3, 3), nn.GroupNorm(3, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
        nn.Linear(27, 8), nn.LayerNorm(8), nn.GELU(), nn.Linear(8, 3),
    ).double()  # fmt: skip
    x, y = double(4, 1, 8, 8), taeda.tensor([0, 2, 1, 1])
    parameters = {k: p.detach() for k, p in model.named_parameters()}

    def loss(p, a, b):
        out = functional_call(model, p, (a.unsqueeze(0),))
        return nn.functional.cross_entropy(out, b.unsqueeze(0))

    each = vmap(grad(loss), in_dims=(None, 0, 0))(parameters, x, y)
    for i in range(4):
        model.zero_grad()
        nn.functional.cross_entropy(model(x[i : i + 1]), y[i : i + 1]).backward()
        for name, p in model.named_parameters():
            assert close(each[name][i], p.grad), name


def test_ensembles():
    nn = taeda.nn
    models = [
        nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Tanh(), nn.Linear(4, 2)).double()
        for _ in range(3)
    ]
    for m in models:
        m(double(9, 3))
        m.eval()
    state = stack_module_state(models)
    x = double(5, 3)
    call = lambda p, b, a: functional_call(models[0], (p, b), (a,))  # noqa: E731
    assert close(vmap(call, in_dims=(0, 0, None))(*state, x), taeda.stack([m(x) for m in models]))
    xs = double(3, 5, 3)
    expected = taeda.stack([m(a) for m, a in zip(models, xs, strict=True)])
    assert close(vmap(call)(*state, xs), expected)


def test_batch_norm_without_running_statistics():
    model = taeda.nn.Sequential(taeda.nn.Linear(3, 4), taeda.nn.BatchNorm1d(4)).double()
    x = double(2, 5, 3)
    with pytest.raises(RuntimeError, match="not batched"):
        vmap(model)(x)
    assert taeda.func.replace_all_batch_norm_modules_(model) is model
    assert close(vmap(model)(x), rows(model, x)) and not list(model.buffers())


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("weighted", [False, True])
def test_jacobians_of_classification(reduction, weighted):
    loss = taeda.nn.functional
    weight = taeda.rand(3, dtype=taeda.float64) if weighted else None
    x, y = double(4, 3), taeda.tensor([0, 2, -100, 1])

    def both(a):
        first = loss.cross_entropy(a, y, weight, reduction=reduction)
        second = loss.nll_loss(a.unsqueeze(2), y.unsqueeze(1), weight, reduction=reduction)
        return taeda.stack([first, second.reshape(first.shape), first])

    assert close(jacrev(both)(x), jacrev(both, chunk_size=1)(x))


# ---- what has no rule ----


def test_fallback_warns_once(monkeypatch):
    monkeypatch.setattr("taeda._batching.dispatch._warned", set())
    x = double(3, 20)
    with pytest.warns(UserWarning, match="performance drop"):
        out = vmap(lambda a: taeda.histc(a, 4))(x)
    assert close(out, rows(lambda a: taeda.histc(a, 4), x))
    vmap(lambda a: taeda.histc(a, 4))(x)  # not again


def test_threads_have_their_own_levels():
    def f(x):
        done = []
        thread = threading.Thread(target=lambda: done.append(taeda.rand(2)))
        thread.start()
        thread.join()
        assert len(done) == 1
        return x

    vmap(f)(taeda.ones(2))


def test_type_promotion_counts_logical_dimensions():
    x, n = taeda.ones(3, dtype=taeda.float64), taeda.ones(2, dtype=taeda.float32)
    assert vmap(lambda a: a * n)(x).dtype == taeda.float32
    assert vmap(lambda a: a * taeda.ones((), dtype=taeda.float64))(n).dtype == taeda.float64
    assert vmap(lambda a: a * 2)(n).dtype == taeda.float32


def test_rules_are_for_operations_without_another():
    """A rule's operation, or its in-place form, is of a kind that leaves it without one."""
    from taeda._batching import table

    def composite(name):
        found = [getattr(taeda._C.ops, n, None) for n in (name, name + "_")]
        return {form["kind"] == "composite" for op in found if op for form in op._forms}

    for name in table.RULES:
        assert False in composite(name), f"{name}: its parts have rules"
    for name in table.WHOLE:
        assert True in composite(name), f"{name} is not composed of other operations"


def test_a_rule_must_name_an_operation_without_one():
    from taeda._batching.dispatch import rule

    for name, message in [
        ("no_such_operation", "no operation 'no_such_operation'"),
        ("cumsum", "has a rule already"),  # its row says `along`
        ("gather", "has a rule already"),
    ]:
        with pytest.raises(ValueError, match=message):
            rule(name)(lambda op, level, args: NotImplemented)


def test_every_form_of_a_row_has_a_rule():
    from taeda._batching import table

    forms = {form for form, *_ in taeda._C._op_traits("vmap").values()}
    assert forms == {*table.FORMS, *table.RANKED, "random"}
