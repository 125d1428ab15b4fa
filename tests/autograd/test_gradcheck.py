"""gradcheck and gradgradcheck themselves, and autograd.functional."""

import pytest

import taeda
from taeda.autograd import Function, functional, gradcheck, gradgradcheck
from taeda.autograd.gradcheck import GradcheckError


def double(*sizes):
    return taeda.rand(*sizes, dtype=taeda.float64).requires_grad_()


class WrongFirst(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, g):
        return 2.01 * ctx.saved_tensors[0] * g


class WrongSecond(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x * x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 3 * x * x.detach() * g


def test_right_derivatives_pass():
    assert gradcheck(lambda x, y: (x * y, x.sum() + y), (double(2, 3), double(3)))
    assert gradgradcheck(lambda x, y: x.exp() * y, (double(2), double(2)))
    assert gradcheck(taeda.mm, (double(2, 3), double(3, 2)))


def test_wrong_derivatives_are_found():
    with pytest.raises(
        RuntimeError, match="Jacobian mismatch for output 0 with respect to input 0"
    ):
        gradcheck(WrongFirst.apply, double(2))
    assert not gradcheck(WrongFirst.apply, double(2), raise_exception=False)
    assert gradcheck(WrongSecond.apply, double(2))
    with pytest.raises(RuntimeError, match="Jacobian mismatch"):
        gradgradcheck(WrongSecond.apply, double(2))


def test_complex():
    z = taeda.complex(double(2).detach(), double(2).detach()).requires_grad_()
    assert gradcheck(lambda z: z * z, z)
    assert gradcheck(lambda z: z.abs(), z)
    assert gradcheck(lambda z: z.conj() * z.real, z)
    assert gradgradcheck(lambda z: z * z * z, z)


def test_inputs_must_be_of_use():
    with pytest.raises(ValueError, match="at least one input tensor to require gradient"):
        gradcheck(lambda x: x, taeda.ones(2))
    with pytest.warns(UserWarning, match="double precision"):
        gradcheck(lambda x: x, taeda.ones(2, requires_grad=True), atol=1.0)


def test_a_lost_gradient_is_found():
    with pytest.raises(RuntimeError, match="expected to be zero"):
        gradcheck(lambda x: x.detach() * 2, double(2))


class Tripled(Function):
    """Its derivative is wrong, and cannot be batched where `reads` is set."""

    reads = False

    @staticmethod
    def forward(ctx, x):
        return 2 * x

    @staticmethod
    def backward(ctx, g):
        return g * 2 if Tripled.reads and g.sum().item() < 1e9 else g * 3


@pytest.mark.parametrize("dtype", [taeda.float64, taeda.complex128])
def test_one_number_of_each_jacobian(dtype):
    x = taeda.randn(30, 4, dtype=dtype, requires_grad=True)
    w = taeda.randn(4, 5, dtype=dtype, requires_grad=True)
    calls = []

    def function(x, w):
        calls.append(x)
        return (x @ w).sin(), x.sum(0)

    assert gradcheck(function, (x, w), fast_mode=True, check_forward_ad=True)
    assert len(calls) < 15
    assert gradgradcheck(function, (x, w), fast_mode=True)
    before = x.detach().clone()
    with pytest.raises(GradcheckError, match="fast_mode=False"):
        gradcheck(Tripled.apply, x, fast_mode=True)
    assert taeda.equal(x, before)


def test_batches_of_gradients_and_tangents():
    x, w = double(3, 4), double(4, 2)
    options = {"check_batched_grad": True}
    forward = {"check_forward_ad": True, "check_batched_forward_grad": True}
    assert gradcheck(lambda x, w: ((x @ w).exp(), x.sum()), (x, w), **options, **forward)
    assert gradgradcheck(lambda x, w: (x @ w).exp(), (x, w), **options)
    assert gradgradcheck(taeda.sin, x, gen_non_contig_grad_outputs=True)
    try:
        Tripled.reads = True
        assert gradcheck(Tripled.apply, x)
        with pytest.raises(GradcheckError, match="While computing batched gradients"):
            gradcheck(Tripled.apply, x, check_batched_grad=True)
    finally:
        Tripled.reads = False
    with pytest.raises(AssertionError, match="requires check_forward_ad"):
        gradcheck(taeda.sin, x, check_batched_forward_grad=True)
    with pytest.raises(AssertionError, match="requires check_backward_ad"):
        gradcheck(taeda.sin, x, check_backward_ad=False, check_forward_ad=True, **options)


def test_jacobian():
    x, y = taeda.tensor([1.0, 2.0]), taeda.tensor([3.0])
    j = functional.jacobian(lambda x: x * x, x)
    assert j.tolist() == [[2.0, 0.0], [0.0, 4.0]]
    jx, jy = functional.jacobian(lambda x, y: x * y, (x, y))
    assert jx.tolist() == [[3.0, 0.0], [0.0, 3.0]] and jy.tolist() == [[1.0], [2.0]]
    assert not jx.requires_grad
    z = taeda.tensor([1.0, 2.0], requires_grad=True)
    functional.jacobian(lambda x: x**3, z, create_graph=True).sum().backward()
    assert z.grad.tolist() == pytest.approx([6.0, 12.0])
    with pytest.raises(RuntimeError, match="independent"):
        functional.jacobian(lambda x, y: x, (x, y), strict=True)


def test_hessian():
    x = taeda.tensor([1.0, 2.0])
    assert functional.hessian(lambda x: (x**3).sum(), x).tolist() == [[6.0, 0.0], [0.0, 12.0]]
    h = functional.hessian(lambda x, y: (x * y).sum(), (x, x))
    assert h[0][1].tolist() == [[1.0, 0.0], [0.0, 1.0]] and h[0][0].tolist() == [
        [0.0, 0.0],
        [0.0, 0.0],
    ]
    with pytest.raises(RuntimeError, match="single element"):
        functional.hessian(lambda x: x, x)


def test_products():
    torch = pytest.importorskip("torch")

    def run(lib):
        x, v = lib.tensor([[0.5, 1.0], [2.0, -1.0]]), lib.tensor([[1.0, 2.0], [3.0, 4.0]])
        f = lib.autograd.functional
        out = [
            *f.vjp(lambda x: x.exp() @ x, x, v),
            *f.jvp(lambda x: x.exp() @ x, x, v),
            *f.vhp(lambda x: (x.exp() @ x).sum(), x, v),
            *f.hvp(lambda x: (x.exp() @ x).sum(), x, v),
        ]
        return [t.reshape(-1).tolist() for t in out]

    for ours, theirs in zip(run(taeda), run(torch), strict=True):
        assert ours == pytest.approx(theirs, rel=1e-4)
