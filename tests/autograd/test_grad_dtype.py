"""grad_dtype: the dtype that the gradient of a leaf has, beside PyTorch's."""

from __future__ import annotations

import copy

import pytest

import taeda

torch = pytest.importorskip("torch")


class Double:
    """y = 2 x with a gradient in float64, whatever x is."""

    def __new__(cls, library):
        class Function(library.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x * 2

            @staticmethod
            def backward(ctx, gradient):
                return gradient.double() * 2

        return Function.apply


def leaf(library, dtype="float32", **attributes):
    x = library.ones(2, dtype=getattr(library, dtype), requires_grad=True)
    for name, value in attributes.items():
        setattr(x, name, value)
    return x


def described(value):
    if hasattr(value, "tolist"):
        return str(value.dtype).split(".")[1], value.tolist()
    if isinstance(value, tuple):
        return tuple(map(described, value))
    return str(value).split(".")[-1]


def other_dtype(library):
    x = leaf(library, grad_dtype=library.bfloat16)
    (x * 3).sum().backward()
    (x * 4).sum().backward()
    return x.grad_dtype, x.grad


def set_between_forward_and_backward(library):
    x = leaf(library)
    y = (x * 3).sum()
    x.grad_dtype = library.float64
    y.backward()
    return x.grad


def hooks_and_grad_see_it(library):
    seen = []
    x = leaf(library, grad_dtype=library.float64)
    x.register_hook(lambda g: seen.append(g.dtype))
    (x * 3).sum().backward()
    return x.grad, seen[0], library.autograd.grad((x * 2).sum(), x)


def any_dtype(library):
    x = leaf(library, grad_dtype=None)
    Double(library)(x).sum().backward()
    (x * 2).sum().backward()
    assert x.grad_dtype is None
    return x.grad


def own_dtype_of_a_function(library):
    x = leaf(library)
    Double(library)(x).sum().backward()
    return x.grad


def complex_to_real(library):
    x = leaf(library, "complex64", grad_dtype=library.float32)
    (x * x.conj()).real.sum().backward()
    return x.grad


def assigned(library):
    x = leaf(library, grad_dtype=library.float64)
    x.grad = library.ones(2, dtype=library.float64)
    y = leaf(library, grad_dtype=None)
    y.grad = library.ones(2, dtype=library.float16)
    return x.grad, y.grad


def copies_have_their_own(library):
    p = library.nn.Parameter(library.ones(2))
    p.grad_dtype = library.float64
    return p.detach().grad_dtype, copy.deepcopy(p).grad_dtype, library.ones(2).grad_dtype


def create_graph(library):
    x = leaf(library, grad_dtype=library.float64)
    (x * x * x).sum().backward(create_graph=True)
    gradient, x.grad = x.grad, None
    gradient.sum().backward()
    return gradient.detach(), x.grad


@pytest.mark.parametrize(
    "program",
    [
        other_dtype,
        set_between_forward_and_backward,
        hooks_and_grad_see_it,
        any_dtype,
        own_dtype_of_a_function,
        complex_to_real,
        assigned,
        copies_have_their_own,
        create_graph,
    ],
)
def test_as_in_pytorch(program):
    assert described(program(taeda)) == described(program(torch))


def test_what_is_refused():
    result = leaf(taeda) * 2
    with pytest.raises(RuntimeError, match="only be accessed on leaf"):
        result.grad_dtype
    with pytest.raises(RuntimeError, match="only be set on leaf"):
        result.grad_dtype = taeda.float64
    for wrong in ("float64", 3):
        with pytest.raises(RuntimeError, match="must be a dtype or None, but got"):
            leaf(taeda).grad_dtype = wrong
    with pytest.raises(RuntimeError, match="floating point or complex, not int64"):
        leaf(taeda).grad_dtype = taeda.int64
    with pytest.raises(RuntimeError, match="got nothing"):
        del leaf(taeda).grad_dtype
    x = leaf(taeda, grad=taeda.ones(2))
    with pytest.raises(RuntimeError, match="already a gradient with dtype 'float32'"):
        x.grad_dtype = taeda.float64
    x.grad_dtype = taeda.float32
    x.grad = None
    x.grad_dtype = taeda.float64
    with pytest.raises(RuntimeError, match="tensor with grad_dtype 'float64'"):
        x.grad = taeda.ones(2)


def test_steps_of_optimizers():
    """They compute in the parameter's dtype, and say so of gradients of another."""
    x = leaf(taeda, grad_dtype=taeda.float64)
    (x * 2).sum().backward()
    for kind in (taeda.optim.SGD, taeda.optim.Adam):
        with pytest.raises(RuntimeError, match=r"is taeda.float32 on \S+, but its gradient is"):
            kind([x], lr=0.1).step()
