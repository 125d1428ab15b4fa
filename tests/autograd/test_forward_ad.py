"""Forward mode: levels, tangents of every kind of op, in-place changes, and together with backward."""

import threading
import weakref

import pytest

import taeda
import taeda.nn.functional as F
from taeda.autograd import Function, forward_ad, functional, grad, gradcheck, gradgradcheck
from taeda.autograd.forward_ad import dual_level, make_dual, unpack_dual


def double(*sizes):
    return taeda.randn(sizes, dtype=taeda.float64)


def leaf(*sizes):
    return double(*sizes).requires_grad_()


def tangent(t):
    return unpack_dual(t).tangent


def product(f, x, t):
    """f(x), and the Jacobian times t."""
    with dual_level():
        return unpack_dual(f(make_dual(x, t)))


# ---- levels ----


def test_levels():
    x, t = double(3), double(3)
    with pytest.raises(RuntimeError, match="no level exists"):
        make_dual(x, t)
    with pytest.raises(RuntimeError, match="Dual level must be a positive number"):
        forward_ad.exit_dual_level()
    assert unpack_dual(x) == (x, None)
    with dual_level() as level:
        assert level == 0
        with pytest.raises(RuntimeError, match="Nested forward mode AD is not supported"):
            forward_ad.enter_dual_level()
        with pytest.raises(RuntimeError, match="was not the last one"):
            forward_ad.exit_dual_level(level=1)
        d = make_dual(x, t, level=0)
        assert tangent(d) is t
    assert tangent(d) is None
    with dual_level():
        assert tangent(d) is None and tangent(d * 2) is None
        assert tangent(make_dual(d, t)) is t


def test_a_level_ends_with_an_error():
    with pytest.raises(ValueError, match="here"), dual_level():
        raise ValueError("here")
    with dual_level():
        pass


def test_what_cannot_be_dual():
    x, t = double(3), double(3)
    with dual_level():
        d = make_dual(x, t)
        for first, second, kind, message in (
            (x, double(4), RuntimeError, r"different size .* size \[3\] .* size \[4\]"),
            (d, t, RuntimeError, "already has a forward gradient"),
            (x, d, RuntimeError, "itself has a forward gradient"),
            (taeda.ones(3, dtype=taeda.int32), t, ValueError, "floating point or complex"),
            (x, taeda.ones(3, dtype=taeda.int32), ValueError, "floating point or complex"),
            (x, 3, TypeError, "tangent expected Tensors, but got int"),
            (None, t, TypeError, "tensor expected Tensors, but got NoneType"),
            (x, t.to("meta"), RuntimeError, "another device"),
        ):
            with pytest.raises(kind, match=message):
                make_dual(first, second)
        with pytest.raises(RuntimeError, match="Invalid level"):
            make_dual(x, t, level=1)
        with pytest.raises(RuntimeError, match="no level exists"):
            make_dual(x, t, level=-1)
        assert unpack_dual(d, level=1).tangent is None


def test_tangents_end_with_their_level():
    with dual_level():
        t = double(3)
        gone = weakref.ref(t)
        d = make_dual(double(3), t)
        del t
        assert gone() is not None
    assert gone() is None and d.shape == (3,)


def test_a_level_belongs_to_its_thread():
    seen = []
    with dual_level():
        d = make_dual(double(3), double(3))

        def other():
            seen.append(tangent(d))
            with dual_level():
                seen.append(tangent(d * 2))

        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        assert tangent(d) is not None
    assert seen == [None, None]


def test_primal():
    x = leaf(3)
    with dual_level():
        d = make_dual(x, double(3))
        assert d.requires_grad and not d.is_leaf and type(d) is taeda.Tensor
        primal = unpack_dual(d).primal
        assert tangent(primal) is None and primal.data_ptr() == x.data_ptr()
        (g,) = grad(primal.sum(), x)
    assert bool((g == 1).all())


def test_repr():
    with dual_level():
        d = make_dual(taeda.ones(2), taeda.zeros(2))
        assert repr(d) == "tensor([1., 1.], tangent=tensor([0., 0.]))"


# ---- ops ----

FUNCTIONS = {
    "elementwise": lambda x: x.sin() * x.exp() / (x * x + 1),
    "broadcast": lambda x: x * x[0] + x.sum(1, keepdim=True),
    "scalar": lambda x: 2 - x**3,
    "reduction": lambda x: (x.prod(), x.std(0), x.logsumexp(1)),
    "matmul": lambda x: x @ x.mT + x.t().matmul(x[:, 0])[0],
    "softmax": lambda x: F.log_softmax(x, 1),
    "norm": lambda x: F.layer_norm(x, (4,)),
    "views": lambda x: (x.t().reshape(-1)[2:9:2], *x.unbind(1), x.unfold(0, 2, 1)),
    "gather": lambda x: x[taeda.tensor([0, 2, 2])].cumsum(0),
    "sort": lambda x: (x.sort(1).values, x.max(0).values, x.topk(2).values),
    "cat": lambda x: taeda.cat([x, x * x, taeda.ones(1, 4, dtype=x.dtype)]),
    "where": lambda x: taeda.where(x > 0, x * x, x),
    "linalg": lambda x: taeda.linalg.inv(x[:, :3] @ x[:, :3].mT + 3 * taeda.eye(3).double()),
    "complex": lambda x: taeda.fft.fft(x).abs(),
    "conv": lambda x: F.conv1d(x[None], x[None, :, :2]),
    "in place": lambda x: x.clone().mul_(x).add_(1).sub_(x).exp_(),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradcheck(name):
    assert gradcheck(FUNCTIONS[name], leaf(3, 4), check_forward_ad=True)
    assert gradgradcheck(FUNCTIONS[name], leaf(3, 4), check_fwd_over_rev=True)


def test_wrong_tangents_are_found():
    class Wrong(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 2

        @staticmethod
        def jvp(ctx, t):
            return t * 3

    assert gradcheck(Wrong.apply, leaf(2))
    with pytest.raises(RuntimeError, match="forward mode mismatch"):
        gradcheck(Wrong.apply, leaf(2), check_forward_ad=True)
    with pytest.raises(AssertionError, match="at least one"):
        gradcheck(Wrong.apply, leaf(2), check_backward_ad=False)


@pytest.mark.parametrize("sizes", [(0, 3), (1,), ()])
def test_odd_sizes(sizes):
    assert gradcheck(lambda x: (x * x).sum() + x.exp(), leaf(*sizes), check_forward_ad=True)


def test_layouts():
    for x in (double(4, 3).t(), double(3, 8)[:, ::2], double(3, 1).expand(3, 4)):
        t = double(3, 4)
        value, found = product(lambda v: v.reshape(-1)[1:] ** 2, x, t)
        assert taeda.allclose(found, (2 * x * t).reshape(-1)[1:]) and value.shape == found.shape


def test_results_without_a_tangent():
    with dual_level():
        d = make_dual(double(3), double(3))
        for t in (d > 0, d.argmax(), d.detach(), d.data, taeda.zeros_like(d), d.to(taeda.int64)):
            assert tangent(t) is None
        assert bool((tangent(d.floor()) == 0).all())


def test_unsupported():
    with dual_level():
        d = make_dual(double(3), double(3))
        with pytest.raises(NotImplementedError, match="forward AD with heaviside"):
            taeda.heaviside(d, d)
        for out in (d, double(3)):
            with pytest.raises(NotImplementedError, match="because it is an out= function"):
                taeda.add(d, 1, out=out)
        with pytest.raises(NotImplementedError, match="because it is an out= function"):
            taeda.max(d[None], 1, out=(double(1), taeda.zeros(1, dtype=taeda.int64)))


def test_other_data():
    with dual_level():
        d = make_dual(double(3), double(3))
        with pytest.raises(RuntimeError, match="cannot resize variables that has a forward grad"):
            d.resize_(5)
        with pytest.raises(NotImplementedError, match="with a tangent cannot be exchanged"):
            d.set_(double(5))
        assert tangent(d) is not None and d.shape == (3,)
        d.data = double(5)
        assert tangent(d) is None and tangent(d * 2) is None


def test_results_share_no_memory_with_tangents():
    t = double(3)
    kept = t.clone()
    with dual_level():
        d = make_dual(double(3), t)
        d.clone().mul_(2)
        (d + 0).mul_(2)
        d.reshape(3, 1).clone().zero_()
    assert bool((t == kept).all())


# ---- in-place changes and views ----


def test_in_place_changes_the_tangent():
    x, t = double(3), double(3)
    expected = t * 2
    with dual_level():
        d = make_dual(x, t)
        assert d.mul_(2) is d and tangent(d) is t
        assert taeda.equal(t, expected)
        d.zero_()
        assert bool((t == 0).all())


def test_a_view_shares_its_tangent():
    with dual_level():
        d = make_dual(double(3, 4), taeda.ones(3, 4, dtype=taeda.float64))
        d.t()[1].mul_(5)
        assert tangent(d)[:, 1].tolist() == [5.0] * 3 and tangent(d)[:, 0].tolist() == [1.0] * 3


def test_writing_into_a_plain_tensor():
    x, t = double(4), double(4)
    with dual_level():
        d = make_dual(x, t)
        out = double(2, 4)
        earlier = out[1]
        out[0] = d
        assert taeda.equal(tangent(out), taeda.stack([t, t * 0]))
        assert taeda.equal(tangent(earlier), t * 0)
        whole = double(4)
        part = whole[1:3]
        whole.copy_(d * 2)
        assert taeda.equal(tangent(part), 2 * t[1:3])
        pairs = taeda.view_as_complex(whole.reshape(2, 2))
        pairs.mul_(1j)
        assert taeda.allclose(tangent(whole)[::2], -2 * t[1::2])


def test_reshaping_in_place():
    with dual_level():
        d = make_dual(double(2, 3), double(2, 3))
        before = tangent(d).clone()
        d.t_()
        assert taeda.equal(tangent(d), before.t())


def test_in_place_form_of_a_composite():
    x, t = double(3), double(3)
    _, expected = product(lambda v: v.ldexp(v), x, t)
    _, found = product(lambda v: v.clone().ldexp_(v), x, t)
    assert taeda.allclose(found, expected)


def test_a_tangent_that_is_a_leaf_is_not_changed():
    x = double(3)
    kept = x.clone()
    with dual_level():
        d = make_dual(x, leaf(3))
        with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
            d.mul_(2)
    assert taeda.equal(x, kept)


# ---- together with other modes ----


def cubic(x):
    return (x.sin() * x**2).sum() + (x[0] * x).tanh().sum() + x.clone().exp_().prod()


def test_hessian_vector_products():
    x, v = leaf(4), double(4)
    _, expected = functional.hvp(cubic, x, v)
    with dual_level():  # forward over backward
        (g,) = grad(cubic(make_dual(x, v)), x)
        found = tangent(g)
    assert taeda.allclose(found, expected)
    with dual_level():  # the same, recorded
        (g,) = grad(cubic(make_dual(x, v)), x, create_graph=True)
        (third,) = grad(tangent(g).sum(), x)
    (expected_third,) = grad(functional.hvp(cubic, x, v, create_graph=True)[1].sum(), x)
    assert taeda.allclose(third, expected_third)
    with dual_level():  # backward over forward
        (backward,) = grad(tangent(cubic(make_dual(x, v))), x)
    assert taeda.allclose(backward, expected)


def test_hessian_vector_product_of_a_model():
    model = taeda.nn.Sequential(
        taeda.nn.Linear(3, 5), taeda.nn.LayerNorm(5), taeda.nn.Tanh(), taeda.nn.Linear(5, 1)
    ).double()
    weight, data = model[0].weight, double(7, 3)

    def loss(w):
        return taeda.func.functional_call(model, {"0.weight": w}, (data,)).square().mean()

    v = double(5, 3)
    _, expected = functional.hvp(loss, weight, v)
    with dual_level():
        (g,) = grad(loss(make_dual(weight, v)), weight)
        assert taeda.allclose(tangent(g), expected)


def test_tangents_are_differentiable():
    x, t = leaf(3), leaf(3)
    _, found = product(lambda v: v**3, x, t)
    by_x, by_t = grad(found.sum(), (x, t))
    assert taeda.allclose(by_x, 6 * x * t) and taeda.allclose(by_t, 3 * x**2)


def test_nothing_is_recorded_without_need():
    for f in (taeda.exp, lambda x: x @ x, lambda x: x.softmax(0), lambda x: taeda.frexp(x)[0]):
        assert not product(f, double(3), double(3)).tangent.requires_grad
    with taeda.no_grad():
        assert not product(taeda.exp, leaf(3), leaf(3)).tangent.requires_grad
        assert not product(lambda x: x @ x, leaf(3), leaf(3)).tangent.requires_grad


def test_modes():
    with dual_level():
        d = make_dual(double(3), double(3))
        with taeda.no_grad():
            assert taeda.equal(tangent(d * 2), 2 * tangent(d))
        with taeda.inference_mode():
            assert tangent(d * 2) is None
        with taeda.autocast("cpu", dtype=taeda.bfloat16):
            a = make_dual(taeda.ones(2, 2), taeda.ones(2, 2))
            assert (a @ a).dtype is taeda.bfloat16
            assert tangent(a @ a).tolist() == [[4.0, 4.0], [4.0, 4.0]]
        m = make_dual(taeda.ones(2, device="meta"), taeda.ones(2, device="meta"))
        assert tangent(m.exp().sum()).is_meta


# ---- Function ----


class Product(Function):
    @staticmethod
    def forward(x, y, power):
        return x * y, x.argmax()

    @staticmethod
    def setup_context(ctx, inputs, output):
        x, y, ctx.power = inputs
        ctx.save_for_forward(x, y)
        ctx.save_for_backward(x, y)

    @staticmethod
    def backward(ctx, g, _):
        x, y = ctx.saved_tensors
        return g * y, g * x, None

    @staticmethod
    def jvp(ctx, tx, ty, power):
        assert power is None
        x, y = ctx.saved_for_forward
        return tx * y + x * ty, None


def test_function():
    x, y = leaf(3), leaf(3)
    assert gradcheck(lambda x, y: Product.apply(x, y, 2)[0], (x, y), check_forward_ad=True)
    with dual_level():
        result, place = Product.apply(make_dual(x, double(3)), y, 2)
        assert result.requires_grad and tangent(place) is None


def test_function_without_jvp():
    class Double(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

    with dual_level():
        d = make_dual(double(3), double(3))
        with pytest.raises(NotImplementedError, match="You must implement the jvp function"):
            Double.apply(d)
        assert Double.apply(double(3)).shape == (3,)


def with_jvp(rule, run=lambda ctx, x: x * 2):
    return type("Custom", (Function,), {"forward": staticmethod(run), "jvp": staticmethod(rule)})


def test_function_with_a_wrong_jvp():
    def change(ctx, x):
        ctx.mark_dirty(x)
        return x.mul_(2)

    for function, message in (
        (with_jvp(lambda ctx, t: (t, t)), "expected 1 but got 2"),
        (with_jvp(lambda ctx, t: 3), r"expected Variable or None \(got int\)"),
        (with_jvp(lambda ctx, t: t[:2]), "different size"),
        (with_jvp(lambda ctx, t: t * 2, change), "modify the gradient inplace"),
        (with_jvp(lambda ctx, t: t * 2, lambda ctx, x: x[:]), "the jvp is not returning a view"),
    ):
        with dual_level(), pytest.raises(RuntimeError, match=message):
            function.apply(make_dual(double(3), double(3)))
    with dual_level():
        d = make_dual(double(3), double(3))
        before = tangent(d).clone()
        with_jvp(lambda ctx, t: t.mul_(2), change).apply(d)
        assert taeda.equal(tangent(d), 2 * before)
