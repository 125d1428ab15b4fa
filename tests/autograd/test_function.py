"""Operations with a derivative written in Python."""

import gc
import weakref

import pytest

import taeda
from taeda.autograd import Function, grad
from taeda.autograd.function import once_differentiable


class Square(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 2 * x * g


class Exp(Function):
    @staticmethod
    def forward(x):
        return x.exp()

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(output)

    @staticmethod
    def vjp(ctx, g):
        (y,) = ctx.saved_tensors
        return y * g


def test_first_and_second_derivatives():
    x = taeda.tensor(3.0, requires_grad=True)
    y = Square.apply(x)
    assert y.grad_fn.name() == "SquareBackward" and type(y.grad_fn).__name__ == "SquareBackward"
    (first,) = grad(y, x, create_graph=True)
    assert first.item() == 6.0 and grad(first, x)[0].item() == 2.0


def test_separate_context_and_vjp():
    x = taeda.rand(3, dtype=taeda.float64, requires_grad=True)
    assert taeda.autograd.gradcheck(Exp.apply, x)
    assert taeda.autograd.gradgradcheck(Exp.apply, x)
    assert taeda.autograd.gradgradcheck(Square.apply, x)


def test_arguments_that_are_no_tensors():
    class Scale(Function):
        @staticmethod
        def forward(ctx, x, factor, flag, other=None):
            ctx.factor = factor
            ctx.needs = ctx.needs_input_grad
            return x * factor

        @staticmethod
        def backward(ctx, g):
            assert ctx.needs == (True, False, False)
            return g * ctx.factor, None, None

    x = taeda.ones(2, requires_grad=True)
    Scale.apply(x, 3, True).sum().backward()
    assert x.grad.tolist() == [3.0, 3.0]


def test_defaults_and_keywords_with_setup_context():
    class Power(Function):
        @staticmethod
        def forward(x, n=2):
            return x**n

        @staticmethod
        def setup_context(ctx, inputs, output):
            x, ctx.n = inputs
            ctx.save_for_backward(x)

        @staticmethod
        def backward(ctx, g):
            return ctx.n * ctx.saved_tensors[0] ** (ctx.n - 1) * g, None

    x = taeda.tensor(3.0, requires_grad=True)
    assert grad(Power.apply(x), x)[0].item() == 6.0
    assert grad(Power.apply(x, n=3), x)[0].item() == pytest.approx(27.0)


def test_several_results():
    class Split(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.set_materialize_grads(ctx_materialize)
            return x * 2, x * 3

        @staticmethod
        def backward(ctx, a, b):
            seen.append((a is None, b is None))
            return (0 if a is None else 2 * a) + (0 if b is None else 3 * b)

    for ctx_materialize in (True, False):
        seen = []
        x = taeda.ones(2, requires_grad=True)
        y, z = Split.apply(x)
        assert (y.output_nr, z.output_nr) == (0, 1) and y.grad_fn is z.grad_fn
        z.sum().backward()
        assert x.grad.tolist() == [3.0, 3.0]
        assert seen == [(not ctx_materialize, False)]


def test_non_differentiable_results():
    class Sort(Function):
        @staticmethod
        def forward(ctx, x):
            values, index = x.sort()
            sign = x.sign()
            ctx.mark_non_differentiable(index, sign)
            ctx.save_for_backward(index)
            return values, index, sign

        @staticmethod
        def backward(ctx, g, _, __):
            (index,) = ctx.saved_tensors
            return taeda.zeros_like(g).scatter(0, index, g)

    x = taeda.tensor([3.0, 1.0, 2.0], requires_grad=True)
    values, index, sign = Sort.apply(x)
    assert values.requires_grad and not index.requires_grad and not sign.requires_grad
    (values * taeda.tensor([1.0, 2.0, 3.0])).sum().backward()
    assert x.grad.tolist() == [3.0, 1.0, 2.0]


def test_dirty_inputs():
    class Double(Function):
        @staticmethod
        def forward(ctx, x):
            x.mul_(2)
            ctx.mark_dirty(x)
            return x

        @staticmethod
        def backward(ctx, g):
            return g * 2

    x = taeda.ones(2, requires_grad=True)
    y = x * 1
    z = Double.apply(y)
    assert z is y and y.grad_fn.name() == "DoubleBackward"
    z.sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]
    with pytest.raises(RuntimeError, match="leaf Variable"):
        Double.apply(taeda.ones(2, requires_grad=True))


def test_input_returned_as_it_is():
    class Identity(Function):
        @staticmethod
        def forward(ctx, x):
            return x

        @staticmethod
        def backward(ctx, g):
            return g * 7

    x = taeda.ones(2, requires_grad=True)
    y = Identity.apply(x)
    assert y is not x and x.is_leaf
    y.sum().backward()
    assert x.grad.tolist() == [7.0, 7.0]
    with pytest.raises(RuntimeError, match="custom Function"):
        Identity.apply(x * 1).mul_(2)


@pytest.mark.parametrize(
    ("gradients", "error", "message"),
    [
        (lambda g: (g, g), RuntimeError, r"incorrect number of gradients \(expected 1, got 2\)"),
        (lambda g: (3,), TypeError, "got int"),
        (lambda g: g[:1], RuntimeError, "invalid gradient at index 0"),
    ],
)
def test_wrong_gradients(gradients, error, message):
    class Wrong(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return gradients(g)

    with pytest.raises(error, match=message):
        Wrong.apply(taeda.ones(2, requires_grad=True)).sum().backward()


def test_gradient_for_something_that_is_no_tensor():
    class Wrong(Function):
        @staticmethod
        def forward(ctx, x, n):
            return x * n

        @staticmethod
        def backward(ctx, g):
            return g, g

    with pytest.raises(RuntimeError, match="different from None at position 2"):
        Wrong.apply(taeda.ones(2, requires_grad=True), 3).sum().backward()


def test_missing_parts():
    class Nothing(Function):
        pass

    with pytest.raises(NotImplementedError, match="forward"):
        Nothing.apply(taeda.ones(1))
    with pytest.raises(RuntimeError, match="should not be instantiated"):
        Nothing()

    class NoBackward(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

    with pytest.raises(NotImplementedError, match="backward or vjp"):
        NoBackward.apply(taeda.ones(1, requires_grad=True)).backward()


def test_saved_values_are_guarded_and_released():
    x = taeda.ones(2, requires_grad=True)
    y = x * 1
    z = Square.apply(y)
    y.add_(1)
    with pytest.raises(RuntimeError, match="SquareBackward"):
        z.sum().backward()
    z = Square.apply(x)
    z.sum().backward()
    with pytest.raises(RuntimeError, match="second time"):
        z.sum().backward()
    with pytest.raises(RuntimeError, match="second time"):
        _ = z.grad_fn.saved_tensors


def test_save_for_backward_takes_tensors_only():
    class Bad(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x, 3)
            return x

    with pytest.raises(TypeError, match="argument 1 is of type int"):
        Bad.apply(taeda.ones(1, requires_grad=True))


def test_once_differentiable():
    class Once(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        @once_differentiable
        def backward(ctx, g):
            assert not taeda.is_grad_enabled()
            return 2 * ctx.saved_tensors[0] * g

    x = taeda.tensor(3.0, requires_grad=True)
    assert grad(Once.apply(x), x)[0].item() == 6.0
    weight = taeda.tensor(1.0, requires_grad=True)
    (first,) = grad(Once.apply(x) * weight, x, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        first.backward()


def test_backward_inside_backward():
    class Inner(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x.detach() ** 3

        @staticmethod
        def backward(ctx, g):
            with taeda.enable_grad():
                x = ctx.saved_tensors[0].detach().requires_grad_()
                (inner,) = grad(x**3, x)
            return inner * g

    x = taeda.tensor(2.0, requires_grad=True)
    y = Inner.apply(Inner.apply(x) * 1)
    y.backward()
    assert x.grad.item() == pytest.approx(9 * 2.0**8)


def test_nothing_is_recorded_without_need():
    y = Square.apply(taeda.ones(2))
    assert not y.requires_grad
    with taeda.no_grad():
        assert not Square.apply(taeda.ones(2, requires_grad=True)).requires_grad


def test_context_dies_with_the_graph():
    class Keep(Function):
        @staticmethod
        def forward(ctx, x):
            y = x * 2
            ctx.save_for_backward(x, y)
            contexts.append(weakref.ref(ctx))
            return y

        @staticmethod
        def backward(ctx, g):
            return g * 2

    contexts = []
    gc.disable()
    try:
        y = Keep.apply(taeda.ones(2, requires_grad=True))
        assert contexts[0]() is not None
        del y
        assert contexts[0]() is None
    finally:
        gc.enable()


def test_no_result_from_forward():
    class Bad(Function):
        @staticmethod
        def forward(ctx, x):
            return 3

    with pytest.raises(TypeError, match="got int"):
        Bad.apply(taeda.ones(1, requires_grad=True))


class _ExpWithTangent(Exp):
    generate_vmap_rule = True

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(output)
        ctx.save_for_forward(*inputs, output)

    @staticmethod
    def jvp(ctx, tangent):
        x, y = ctx.saved_tensors
        return tangent * y + 0 * x


def test_tensors_saved_for_forward():
    x = taeda.tensor([1.0, 2.0])
    expected = x.exp().tolist()
    value, tangent = taeda.func.jvp(_ExpWithTangent.apply, (x,), (taeda.ones(2),))
    assert value.tolist() == tangent.tolist() == expected
    jacobian = taeda.func.jacfwd(_ExpWithTangent.apply)(x)
    assert jacobian.diagonal().tolist() == pytest.approx(expected)
    hessian = taeda.func.hessian(lambda x: _ExpWithTangent.apply(x).sum())(x)
    assert hessian.diagonal().tolist() == pytest.approx(expected)
    leaf = x.clone().requires_grad_()
    with taeda.autograd.forward_ad.dual_level():
        dual = taeda.autograd.forward_ad.make_dual(leaf, taeda.ones(2))
        y = _ExpWithTangent.apply(dual)
        assert taeda.autograd.forward_ad.unpack_dual(y).tangent.tolist() == expected
    y.sum().backward()
    assert leaf.grad.tolist() == expected


@pytest.mark.parametrize("dirty", [False, True])
def test_one_tensor_returned_twice(dirty):
    torch = pytest.importorskip("torch", reason="compares with PyTorch")

    def program(lib):
        class Twice(lib.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                if dirty:
                    ctx.mark_dirty(x)
                y = x.mul_(2) if dirty else x * 2
                return y, y

            @staticmethod
            def backward(ctx, first, second):
                return first * 2 + second * 2

        x = lib.ones(2, requires_grad=True)
        a, b = Twice.apply(x * 1)
        (a + 3 * b).sum().backward()
        return x.grad.tolist(), a is b, a.output_nr, b.output_nr, a.tolist()

    assert program(taeda) == program(torch)
