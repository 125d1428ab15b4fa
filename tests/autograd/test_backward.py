"""Leaves, accumulation, graphs that are kept or not, `backward` and `grad`."""

import pytest

import taeda
from taeda.autograd import backward, grad


def leaf(*values, **kwargs):
    return taeda.tensor(values if len(values) != 1 else values[0], requires_grad=True, **kwargs)


def test_leaves_and_results():
    x = taeda.ones(3, requires_grad=True)
    y = x * 2
    assert x.is_leaf and x.grad_fn is None and x.requires_grad
    assert not y.is_leaf and y.requires_grad and y.grad_fn.name() == "MulBackward0"
    plain = taeda.ones(3)
    assert plain.is_leaf and not plain.requires_grad
    assert not (plain * 2).requires_grad
    assert not (y > 1).requires_grad
    assert y.detach().is_leaf and not y.detach().requires_grad


def test_requires_grad_rules():
    with pytest.raises(RuntimeError, match="floating point"):
        taeda.ones(3, dtype=taeda.int64).requires_grad_()
    y = taeda.ones(3, requires_grad=True) * 2
    with pytest.raises(RuntimeError, match="leaf variables"):
        y.requires_grad = False
    with pytest.raises(RuntimeError, match="leaf variables"):
        y.requires_grad_(False)
    y.requires_grad = True
    x = taeda.ones(3)
    assert x.requires_grad_() is x and x.requires_grad
    assert not x.requires_grad_(False).requires_grad


def test_accumulation():
    x = leaf(1.0, 2.0)
    for i in range(1, 4):
        (x * x).sum().backward()
        assert x.grad.tolist() == [2.0 * i, 4.0 * i]
    assert not x.grad.requires_grad
    kept = x.grad
    (x * x).sum().backward()
    assert x.grad is kept  # in place


def test_first_gradient_is_nobody_elses():
    x, y = leaf(1.0, 2.0), leaf(3.0, 4.0)
    (x + y).sum().backward()
    x.grad.mul_(5)
    assert y.grad.tolist() == [1.0, 1.0]
    g = taeda.ones(2)
    z = leaf(1.0, 2.0)
    z.backward(g)
    z.grad.add_(1)
    assert g.tolist() == [1.0, 1.0]


def test_grad_keeps_the_layout_of_the_leaf():
    x = taeda.rand(3, 4).t().detach().requires_grad_()
    (x * 2).sum().backward()
    assert x.grad.stride() == x.stride()


def test_diamonds_and_repeated_use():
    x = leaf(2.0)
    y = x * x
    z = y * y + y * x + x
    z.backward()
    assert x.grad.item() == pytest.approx(4 * 8 + 3 * 4 + 1)


def test_unbalanced_paths():
    x = leaf(1.5)
    deep = x
    for _ in range(10):
        deep = deep * 1.1
    (deep * x + x).backward()
    assert x.grad.item() == pytest.approx(2 * 1.5 * 1.1**10 + 1, rel=1e-5)


def test_second_backward_needs_retain_graph():
    x = leaf(1.0, 2.0)
    y = (x * x).sum()
    y.backward()
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        y.backward()
    y = (x * x).sum()
    y.backward(retain_graph=True)
    y.backward()
    assert x.grad.tolist() == [6.0, 12.0]
    # Where nothing had to be saved, there is nothing to miss.
    z = (x + 1).sum()
    z.backward()
    z.backward()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda x: taeda.ones(1).backward(), "does not require grad and does not have a grad_fn"),
        (lambda x: (x * 2).backward(), "only for scalar outputs"),
        (lambda x: (x * 2).backward(taeda.ones(3)), "Mismatch in shape"),
        (lambda x: (x * 2).sum().backward(inputs=[]), "cannot be empty"),
    ],
)
def test_errors(make, message):
    with pytest.raises(RuntimeError, match=message):
        make(leaf(1.0, 2.0))


def test_gradient_argument():
    x = leaf(1.0, 2.0)
    (x * x).backward(taeda.tensor([1.0, 10.0]))
    assert x.grad.tolist() == [2.0, 40.0]
    x.grad = None
    (x * x).backward(gradient=taeda.ones(2))
    assert x.grad.tolist() == [2.0, 4.0]


def test_several_roots():
    x = leaf(3.0)
    backward([x * 2, x * x], [taeda.tensor(1.0), taeda.tensor(2.0)])
    assert x.grad.item() == 14.0
    with pytest.raises(RuntimeError, match="2 tensors and 1 gradients"):
        backward([x * 2, x * 3], [None])


def test_inputs_of_backward():
    x, y = leaf(2.0), leaf(3.0)
    m = x * y
    (m * m).backward(inputs=[x])
    assert x.grad.item() == 36.0 and y.grad is None
    m = x * y
    (m * m).backward(inputs=[m])
    assert m.grad.item() == 12.0 and y.grad is None and x.grad.item() == 36.0


def test_grad_returns_and_accumulates_nothing():
    x, y = leaf(2.0), leaf(3.0)
    gx, gy = grad(x * x * y, (x, y))
    assert (gx.item(), gy.item()) == (12.0, 4.0)
    assert x.grad is None and y.grad is None


def test_grad_of_results():
    x = leaf(2.0)
    y = x * x
    z = y * y
    gy, gx = grad(z, [y, x])
    assert (gy.item(), gx.item()) == (8.0, 32.0)
    (same,) = grad(x * 1, x, grad_outputs=taeda.tensor(5.0))
    assert same.item() == 5.0
    y = x * 3
    assert grad(y, y)[0].item() == 1.0


def test_grad_unused():
    x, other = leaf(2.0), leaf(3.0)
    with pytest.raises(RuntimeError, match="index 1 appears to not have been used"):
        grad(x * 2, [x, other])
    assert grad(x * 2, [x, other], allow_unused=True)[1] is None
    assert grad(x * 2, [x, other], materialize_grads=True)[1].item() == 0.0
    with pytest.raises(RuntimeError, match="does not require grad"):
        grad(x * 2, taeda.tensor(1.0))
    with pytest.raises(ValueError, match="allow_unused"):
        grad(x * 2, x, allow_unused=False, materialize_grads=True)


def test_grad_leaves_the_rest_of_the_graph_alone():
    x, w = leaf(2.0), leaf(5.0)
    seen = []
    branch = w * w
    branch.register_hook(seen.append)
    grad(x * 3 + branch, x)
    assert seen == []


def test_create_graph():
    x = leaf(2.0)
    (first,) = grad(x**4, x, create_graph=True)
    (second,) = grad(first, x, create_graph=True)
    (third,) = grad(second, x)
    assert [first.item(), second.item(), third.item()] == pytest.approx([32.0, 48.0, 48.0])
    assert not third.requires_grad


def test_backward_with_create_graph():
    x = leaf(2.0)
    (x**3).backward(create_graph=True)
    assert x.grad.requires_grad
    penalty = x.grad * x.grad
    assert grad(penalty, x)[0].item() == pytest.approx(2 * 12 * 12)
    x.grad = None


def test_gradient_penalty_matches_torch():
    torch = pytest.importorskip("torch")
    values = [[0.3, -0.7], [1.2, 0.4]]

    def run(lib):
        w = lib.tensor(values, requires_grad=True)
        x = lib.tensor([0.5, -1.0], requires_grad=True)
        y = (w @ x).tanh().sum()
        (g,) = lib.autograd.grad(y, x, create_graph=True)
        (g * g).sum().backward()
        return w.grad.tolist()

    for ours, theirs in zip(run(taeda), run(torch), strict=True):
        assert ours == pytest.approx(theirs, rel=1e-5)


def test_setting_grad():
    x = leaf(1.0, 2.0)
    x.grad = taeda.ones(2)
    x.sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]
    x.grad = None
    assert x.grad is None
    with pytest.raises(TypeError, match="expected to be a Tensor or None"):
        x.grad = 3
    with pytest.raises(RuntimeError, match="size"):
        x.grad = taeda.ones(3)
    with pytest.raises(RuntimeError, match="dtype"):
        x.grad = taeda.ones(2, dtype=taeda.float64)
    with pytest.raises(RuntimeError, match="own grad"):
        x.grad = x


def test_broadcast_gradients_are_summed():
    x, b = taeda.ones(3, 2, requires_grad=True), taeda.ones(2, requires_grad=True)
    (x * b).sum().backward()
    assert b.grad.tolist() == [3.0, 3.0]


def test_mixed_dtypes():
    x = taeda.ones(2, requires_grad=True)
    y = taeda.ones(2, dtype=taeda.float64, requires_grad=True)
    (x * y).sum().backward()
    assert x.grad.dtype == taeda.float32 and y.grad.dtype == taeda.float64


def test_out_argument():
    x = leaf(1.0, 2.0)
    with pytest.raises(RuntimeError, match="out="):
        taeda.add(x, 1, out=taeda.ones(2))
    with pytest.raises(RuntimeError, match="out="):
        taeda.add(taeda.ones(2), 1, out=x)
    with taeda.no_grad():
        taeda.add(taeda.ones(2), 1, out=x)
    assert x.tolist() == [2.0, 2.0]


def test_grad_fn_objects():
    x = taeda.ones(2, requires_grad=True)
    y = x * 2 + 1
    fn = y.grad_fn
    assert fn is y.grad_fn
    assert repr(fn).startswith("<AddBackward0 object at 0x")
    assert type(fn).__name__ == fn.name() == "AddBackward0"
    mul, nr = fn.next_functions[0]
    assert (mul.name(), nr) == ("MulBackward0", 0)
    accumulate = mul.next_functions[0][0]
    assert accumulate.name() == "AccumulateGrad" and accumulate.variable is x
    fn.metadata["note"] = 3
    assert y.grad_fn.metadata == {"note": 3}
    assert isinstance(fn, taeda.autograd.graph.Node)


def test_a_failing_backward_leaves_things_usable():
    x = leaf(1.0, 2.0)
    y = x * 2
    z = (y * y).sum()

    def fail(grad):
        raise ValueError("from the hook")

    handle = y.register_hook(fail)
    with pytest.raises(ValueError, match="from the hook"):
        z.backward(retain_graph=True)
    handle.remove()
    z.backward()
    assert x.grad.tolist() == [8.0, 16.0]


def test_no_derivative():
    x = leaf(1.0, 2.0)
    y = x.view(taeda.int32)
    assert not y.requires_grad


def test_variable():
    v = taeda.autograd.Variable(taeda.ones(2), requires_grad=True)
    assert v.requires_grad and isinstance(v, taeda.autograd.Variable)
    assert not isinstance(3, taeda.autograd.Variable)


def test_only_inputs_is_deprecated():
    x = taeda.tensor(3.0, requires_grad=True)
    (value,) = taeda.autograd.grad(x**2, x, None, True, False, True, True)
    assert value.item() == 6
    (value,) = taeda.autograd.grad(x**2, x, only_inputs=True)
    assert value.item() == 6
    with pytest.warns(FutureWarning, match="only_inputs"):
        taeda.autograd.grad(x**2, x, only_inputs=False)


def test_edges_as_outputs():
    x = taeda.ones(3, requires_grad=True)
    y = x * 2
    z = (y * 3).sum()
    edge, end = (
        taeda.autograd.graph.get_gradient_edge,
        taeda.autograd.graph.GradientEdge(z.grad_fn, 0),
    )
    by_y, by_x = taeda.autograd.grad(edge(z), (edge(y), x), retain_graph=True)
    assert by_y.tolist() == [3.0] * 3 and by_x.tolist() == [6.0] * 3
    assert taeda.autograd.grad(end, x, retain_graph=True)[0].tolist() == [6.0] * 3
    ones = taeda.ones(3)
    assert taeda.autograd.grad(edge(y), x, ones, retain_graph=True)[0].tolist() == [2.0] * 3
    assert taeda.autograd.grad(edge(x), x, ones)[0].tolist() == [1.0] * 3
    taeda.autograd.backward((edge(z), y), (None, ones), inputs=[x])
    assert x.grad.tolist() == [8.0] * 3


def test_edges_as_outputs_are_checked():
    x = taeda.ones(3, requires_grad=True)
    y = x * 2
    edge = taeda.autograd.graph.get_gradient_edge(y)
    with pytest.raises(RuntimeError, match="only for scalar outputs"):
        taeda.autograd.grad(edge, x)
    with pytest.raises(RuntimeError, match="Mismatch in shape"):
        taeda.autograd.grad(edge, x, taeda.ones(2))
    with pytest.raises(TypeError, match="expected Tensors"):
        taeda.autograd.grad((3, 4), x)
    inner = taeda.autograd.graph.GradientEdge((y * 2).sum().grad_fn.next_functions[0][0], 0)
    with pytest.raises(RuntimeError, match="give its gradient"):
        taeda.autograd.grad(inner, x)
    assert taeda.autograd.grad(inner, x, taeda.ones(3))[0].tolist() == [4.0] * 3
