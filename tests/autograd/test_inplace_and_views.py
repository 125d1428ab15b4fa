"""In-place changes, views, and both together; compared with PyTorch where it is installed."""

import pytest

import taeda


def test_leaf_may_not_be_changed():
    x = taeda.ones(3, requires_grad=True)
    for change in (lambda t: t.mul_(2), lambda t: t.zero_(), lambda t: t.add_(1)):
        with pytest.raises(RuntimeError, match="a leaf Variable that requires grad is being used"):
            change(x)
        with pytest.raises(RuntimeError, match="a view of a leaf Variable"):
            change(x[:2])
    with taeda.no_grad():
        x.mul_(2)
    assert x.tolist() == [2.0, 2.0, 2.0]


def test_in_place_on_a_result():
    x = taeda.ones(3, requires_grad=True)
    y = x * 2
    before = y.grad_fn
    y.add_(1)
    assert y.grad_fn is not before and y.grad_fn.name() == "AddBackward0"
    y.mul_(y.detach().clone())
    y.sum().backward()
    assert x.grad.tolist() == [6.0, 6.0, 6.0]


def test_in_place_makes_a_tensor_require_grad():
    x = taeda.ones(3, requires_grad=True)
    y = taeda.zeros(3)
    y.add_(x)
    assert y.requires_grad and not y.is_leaf
    (y * y).sum().backward()
    assert x.grad.tolist() == [2.0, 2.0, 2.0]


def test_derivative_that_needs_the_old_value():
    x = taeda.tensor([1.0, 2.0], requires_grad=True)
    w = taeda.tensor([3.0, 4.0], requires_grad=True)
    y = x * 1
    y.mul_(w)
    y.sum().backward()
    assert w.grad.tolist() == [1.0, 2.0] and x.grad.tolist() == [3.0, 4.0]


def test_derivative_that_needs_the_result():
    x = taeda.tensor([1.0, 2.0], requires_grad=True)
    y = x * 1
    y.exp_()
    y.sum().backward()
    assert x.grad.tolist() == pytest.approx([2.7182817, 7.389056])


def test_versions():
    x = taeda.ones(3)
    assert x._version == 0
    x.add_(1)
    x[:2].mul_(2)
    assert x._version == 2 and x[0]._version == 2
    x.data.add_(1)
    assert x._version == 2


def test_changed_input_is_found():
    x = taeda.ones(3, requires_grad=True)
    y = x * 2
    z = y * y
    y.add_(1)
    with pytest.raises(
        RuntimeError, match=r"modified by an inplace operation: \[FloatTensor \[3\]\]"
    ) as e:
        z.sum().backward()
    message = str(e.value)
    assert "version 1; expected version 0" in message
    assert "saved by MulBackward0" in message and "add_()" in message


def test_changed_result_is_found():
    x = taeda.ones(3, requires_grad=True)
    y = x.exp()
    y.add_(1)
    with pytest.raises(RuntimeError, match="output 0 of ExpBackward0"):
        y.sum().backward()


def test_changed_leaf_is_found():
    w = taeda.ones(3, requires_grad=True)
    z = (w * 2) * w
    with taeda.no_grad():
        w.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.sum().backward()


def test_data_changes_are_not_counted():
    w = taeda.ones(3, requires_grad=True)
    z = w * w
    w.data.add_(1)
    z.sum().backward()
    assert w.grad.tolist() == [4.0, 4.0, 4.0]


def test_no_grad_views():
    x = taeda.ones(4, requires_grad=True)
    y = x * 1
    with taeda.no_grad():
        v = y[:2]
    with pytest.raises(RuntimeError, match="created in no_grad mode"):
        v.mul_(2)


def test_one_of_several_views():
    y = taeda.ones(4, requires_grad=True) * 1
    for views in (y.unbind(0), y.split(2), y.chunk(2)):
        with pytest.raises(RuntimeError, match="returns multiple views"):
            views[0].mul_(2)


def test_detach_in_place():
    y = taeda.ones(2, requires_grad=True) * 2
    assert y.detach_() is y
    assert y.is_leaf and not y.requires_grad
    with pytest.raises(RuntimeError, match="Can't detach views"):
        (taeda.ones(2, requires_grad=True) * 2)[:1].detach_()


def test_names_after_an_in_place_change_of_a_view():
    x = taeda.ones(3, requires_grad=True)
    base = x * 1
    view, other = base[:2], base[1:]
    view.mul_(2)
    assert base.grad_fn.name() == "CopySlices"
    assert view.grad_fn.name() == other.grad_fn.name() == "AsStridedBackward0"


def _slices(lib, x):
    y = x * 1
    y[0].mul_(2)
    y[:, 1] = y[:, 0] + 3
    return y * y


def _view_of_view(lib, x):
    y = x * 1
    v = y.view(6)[1:5]
    v.mul_(x.view(6)[1:5])
    w = v.view(2, 2).t()
    w[0].exp_()
    return y.sum(0) + v.sum() + w.sum()


def _base_changed(lib, x):
    y = x * 1
    v = y[1]
    y.mul_(2)
    return v * x[0]


def _plain_base(lib, x):
    y = lib.zeros(2, 3)
    v = y[0]
    v.copy_(x[1])
    w = y[:, 1]
    w.add_(x[:, 2])
    return y * y * x


def _copy_in_loop(lib, x):
    y = lib.zeros(4, 3)
    for i in range(4):
        y[i] = x[i % 2] * (i + 1)
    return y * y


def _transposed(lib, x):
    y = (x * 1).t()
    y[1:].sigmoid_()
    return y * y


def _index_put(lib, x):
    y = x * 1
    y[lib.tensor([1, 0]), lib.tensor([2, 2])] = x[0, :2] * 5
    return y * y


def _mask(lib, x):
    y = x * 1
    y[y.detach() > 0] = 0.5
    return y * x


def _relu_in_place(lib, x):
    y = x * 2
    y[:, :2].relu_()
    return y * y


def _zero_part(lib, x):
    y = x * x
    y[0].zero_()
    return y * x


def _unsqueezed_in_place(lib, x):
    y = x * x
    y.unsqueeze_(0)
    y.mul_(2)
    return y * x


def _stride(lib, x):
    y = x * x
    y.view(-1)[::2].mul_(x.view(-1)[::2])
    return y


CASES = [
    _slices,
    _view_of_view,
    _base_changed,
    _plain_base,
    _copy_in_loop,
    _transposed,
    _index_put,
    _mask,
    _relu_in_place,
    _zero_part,
    _unsqueezed_in_place,
    _stride,
]


@pytest.mark.parametrize("case", CASES, ids=lambda f: f.__name__.strip("_"))
def test_matches_torch(case):
    torch = pytest.importorskip("torch")
    values = [[0.3, -0.7, 1.1], [-0.2, 0.8, 0.5]]

    def run(lib):
        x = lib.tensor(values, requires_grad=True)
        out = case(lib, x)
        out.sum().backward()
        return out.detach().reshape(-1).tolist(), x.grad.reshape(-1).tolist()

    ours, theirs = run(taeda), run(torch)
    assert ours[0] == pytest.approx(theirs[0], rel=1e-5, abs=1e-6)
    assert ours[1] == pytest.approx(theirs[1], rel=1e-5, abs=1e-6)


@pytest.mark.parametrize(
    "case",
    [_slices, _plain_base, _base_changed, _transposed, _stride],
    ids=lambda f: f.__name__.strip("_"),
)
def test_second_derivatives_match_torch(case):
    torch = pytest.importorskip("torch")
    values = [[0.3, -0.7, 1.1], [-0.2, 0.8, 0.5]]

    def run(lib):
        x = lib.tensor(values, requires_grad=True)
        (g,) = lib.autograd.grad((case(lib, x) ** 2).sum(), x, create_graph=True)
        (g * g).sum().backward()
        return x.grad.reshape(-1).tolist()

    assert run(taeda) == pytest.approx(run(torch), rel=1e-4, abs=1e-5)


def test_complex_views():
    torch = pytest.importorskip("torch")

    def run(lib):
        x = lib.tensor([0.5, -1.5], requires_grad=True)
        z = lib.complex(x, x * 2) * 1
        lib.view_as_real(z)[:, 0].mul_(3)
        return lib.autograd.grad((z * z.conj()).real.sum(), x)[0].tolist()

    assert run(taeda) == pytest.approx(run(torch))


def test_gradcheck_of_in_place_views():
    def f(x, y):
        z = x.clone()
        z[1:].mul_(y)
        z.view(-1)[0] = y.sum()
        return z * z

    x = taeda.rand(3, 2, dtype=taeda.float64, requires_grad=True)
    y = taeda.rand(2, dtype=taeda.float64, requires_grad=True)
    assert taeda.autograd.gradcheck(f, (x, y))
    assert taeda.autograd.gradgradcheck(f, (x, y))


def test_result_returned_as_it_is_does_not_touch_the_argument():
    x = taeda.ones(2, requires_grad=True)
    y = x.contiguous()
    (y * 2).sum().backward()
    assert x.is_leaf and x.grad.tolist() == [2.0, 2.0]


# What reads a saved tensor takes its sizes from the graph, so other sizes would be read past the end.
RESHAPES = {
    "data": lambda x: setattr(x, "data", taeda.zeros(2)),
    "data of another dtype": lambda x: setattr(x, "data", taeda.zeros(64, 64, dtype=taeda.int8)),
    "set_": lambda x: x.set_(taeda.zeros(2)),
    "resize_": lambda x: x.resize_(2),
    "resize_ of data": lambda x: x.data.resize_(2),
}
READERS = {
    "mul": lambda w, x: w * x,
    "matmul": lambda w, x: w @ x,
    "linear": lambda w, x: taeda.nn.functional.linear(w, x),
    "cross_entropy": lambda w, x: taeda.nn.functional.cross_entropy(w, x.softmax(1)),
    "where": lambda w, x: taeda.where(x > 0, w, x),
    "conv": lambda w, x: taeda.nn.functional.conv2d(w[None, None], x[None, None, :3, :3]),
}


@pytest.mark.parametrize("change", RESHAPES)
@pytest.mark.parametrize("reader", READERS)
def test_saved_tensors_of_another_shape_are_not_read(change, reader):
    w, x = taeda.ones(64, 64, requires_grad=True), taeda.full((64, 64), 2.0)
    expected = taeda.autograd.grad(READERS[reader](w, x).sum(), w)[0]
    y = READERS[reader](w, x).sum()
    RESHAPES[change](x)
    try:  # either what was saved is a tensor of its own, or it is refused
        assert taeda.equal(taeda.autograd.grad(y, w)[0], expected)
    except RuntimeError as error:
        assert "modified by an inplace operation" in str(error)


def test_a_leaf_may_get_new_data_of_its_shape_before_backward():
    w = taeda.ones(3, requires_grad=True)
    y = (w * w).sum()
    w.data = taeda.full((3,), 5.0)
    y.backward()
    assert w.grad.tolist() == [10.0] * 3


def test_dropout_in_place_that_drops_nothing_changes_nothing():
    functional = taeda.nn.functional
    for drop in (functional.dropout, functional.dropout1d, functional.alpha_dropout):
        for p, training in ((0.0, True), (0.5, False)):
            x = taeda.rand(2, 3, 4, requires_grad=True)
            y = x.softmax(0)
            z = drop(y, p, training, inplace=True)
            assert z is y and y._version == 0
            z.sum().backward()  # softmax has saved y
        y = taeda.rand(2, 3, 4)
        assert drop(y, 0.5, True, inplace=True) is y and y._version == 1
