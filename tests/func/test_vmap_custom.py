"""vmap over operations from outside: autograd.Function and what taeda.library defines."""

import numpy as np
import pytest

import taeda
from taeda.autograd import Function
from taeda.func import grad, jacrev, jvp, vmap


def close(a, b):
    return a.shape == b.shape and taeda.allclose(a, b, atol=1e-9)


def double(*sizes):
    return taeda.randn(sizes, dtype=taeda.float64)


class Scaled(Function):
    """x**3 * w, and x."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x, w, power):
        return x**power * w, x.clone()

    @staticmethod
    def setup_context(ctx, inputs, output):
        x, w, ctx.power = inputs
        ctx.save_for_backward(x, w, output[0])
        ctx.save_for_forward(x, w)

    @staticmethod
    def backward(ctx, g, h):
        x, w, _ = ctx.saved_tensors
        return (
            g * ctx.power * x ** (ctx.power - 1) * w + h,
            (g * x**ctx.power).sum_to_size(w.shape),
            None,
        )

    @staticmethod
    def jvp(ctx, x_t, w_t, _):
        x, w = ctx.saved_for_forward
        return ctx.power * x ** (ctx.power - 1) * w * x_t + x**ctx.power * w_t, x_t.clone()


def plain(x, w):
    return x**3 * w


def test_generated_rule():
    x, w = double(4, 3), double(3)
    y, copy = vmap(Scaled.apply, in_dims=(0, None, None))(x, w, 3)
    assert close(y, plain(x, w)) and close(copy, x)
    for dims in ((0, None), (0, 0), (None, 0)):
        args = tuple(
            a if d == 0 else b for a, b, d in zip((x, double(4, 3)), (w, w), dims, strict=True)
        )
        for argnums in ((0, 1), 0):
            ours = vmap(grad(lambda a, b: Scaled.apply(a, b, 3)[0].sum(), argnums), dims)(*args)
            theirs = vmap(grad(lambda a, b: plain(a, b).sum(), argnums), dims)(*args)
            for a, b in zip(ours, theirs, strict=True):
                assert close(a, b)
    outer = grad(lambda a, b: vmap(lambda r: Scaled.apply(r, b, 3)[0].sum())(a).sum(), (0, 1))
    for a, b in zip(outer(x, w), grad(lambda a, b: plain(a, b).sum(), (0, 1))(x, w), strict=True):
        assert close(a, b)
    twice = vmap(jacrev(grad(lambda a: Scaled.apply(a, w, 3)[0].sum())))(x)
    assert close(twice, taeda.diag_embed(6 * x * w))
    tangent = vmap(lambda a: jvp(lambda r: Scaled.apply(r, w, 3)[0], (a,), (a,))[1])(x)
    assert close(tangent, 3 * plain(x, w))
    nested = vmap(vmap(lambda a: Scaled.apply(a, w[0], 3)[0]))(x)
    assert close(nested, plain(x, w[0]))


class Sorted(Function):
    """Sorting by NumPy, with a rule of its own."""

    @staticmethod
    def forward(x, dim):
        order = np.argsort(x.detach().numpy(), axis=dim)
        index = taeda.from_numpy(order)
        return x.gather(dim, index), index

    @staticmethod
    def setup_context(ctx, inputs, output):
        _, ctx.dim = inputs
        ctx.mark_non_differentiable(output[1])
        ctx.save_for_backward(output[1])

    @staticmethod
    def backward(ctx, grad, _):
        (index,) = ctx.saved_tensors
        return taeda.zeros_like(grad).scatter(ctx.dim, index, grad), None

    @staticmethod
    def vmap(info, in_dims, x, dim):
        assert info.batch_size == x.size(in_dims[0]) and info.randomness == "same"
        assert in_dims[1] is None
        x = x.movedim(in_dims[0], 0)
        return Sorted.apply(x, dim + 1 if dim >= 0 else dim), 0


def test_rule_of_its_own():
    x, weights = double(4, 5), double(5)
    values, index = vmap(lambda a: Sorted.apply(a, 0), randomness="same")(x)
    assert close(values, x.sort(1).values) and taeda.equal(index, x.argsort(1))
    by_rows = vmap(grad(lambda a: (Sorted.apply(a, 0)[0] * weights).sum()), randomness="same")(x)
    expected = vmap(grad(lambda a: (a.sort(0).values * weights).sum()))(x)
    assert close(by_rows, expected)


def test_errors():
    class Neither(Function):
        @staticmethod
        def forward(x):
            return x.clone()

        @staticmethod
        def setup_context(ctx, inputs, output):
            pass

    class Both(Neither):
        generate_vmap_rule = True

        @staticmethod
        def vmap(info, in_dims, x):
            return x, 0

    class OneResult(Neither):
        @staticmethod
        def vmap(info, in_dims, x):
            return x

    class WrongDims(Neither):
        @staticmethod
        def vmap(info, in_dims, x):
            return x, (0, 0)

    class Together(Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

    x = taeda.ones(3)
    for cls, text in (
        (Neither, "does not have vmap support"),
        (Both, "has both"),
        (OneResult, "two returns"),
        (WrongDims, "incompatible"),
        (Together, "setup_context"),
    ):
        with pytest.raises(RuntimeError, match=text):
            vmap(cls.apply)(x)
    assert close(vmap(lambda a: a + Together.apply(taeda.ones(())))(x), x + 1)


def test_library():
    @taeda.library.custom_op("vmaptest::cube", mutates_args=())
    def cube(x: taeda.Tensor, by: float) -> taeda.Tensor:
        return taeda.from_numpy(x.numpy() ** 3 * by)

    cube.register_autograd(
        lambda ctx, g: (3 * ctx.saved_tensors[0] ** 2 * g, None),
        setup_context=lambda ctx, inputs, output: ctx.save_for_backward(inputs[0]),
    )
    x = double(4, 3)
    with pytest.warns(UserWarning, match="performance drop"):
        assert close(vmap(lambda a: cube(a, 1.0))(x), x**3)
    assert close(vmap(grad(lambda a: cube(a, 1.0).sum()))(x), 3 * x**2)
    seen = []

    @cube.register_vmap
    def rule(info, in_dims, x, by):
        seen.append((info.batch_size, in_dims))
        return cube(x, by), in_dims[0]

    assert close(vmap(lambda a: cube(a, 1.0))(x), x**3) and seen == [(4, (0, None))]
    assert close(vmap(grad(lambda a: cube(a, 1.0).sum()))(x), 3 * x**2)

    library = taeda.library.Library("vmaptest_parts", "DEF")
    library.define("shift(Tensor x, float by) -> Tensor")
    library.impl("shift", lambda x, by: x + by, "CompositeImplicitAutograd")
    assert close(vmap(lambda a: taeda.ops.vmaptest_parts.shift(a, 2.0))(x), x + 2)
