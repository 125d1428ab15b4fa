"""Classes made from Tensor."""

import pytest

import taeda
from taeda import Tensor


def raises(kind, message):
    return pytest.raises(kind, match=message)


class Tagged(Tensor):
    pass


def test_results_are_of_the_subclass():
    x = Tagged([1.0, 2.0])
    for result in (x + 1, 1 - x, x[0], x.sum(), taeda.cat([x, taeda.ones(1)]), x.T, x.data):
        assert type(result) is Tagged
    assert type(x.max(0).values) is Tagged
    assert all(type(part) is Tagged for part in x.split(1))
    assert x.max(0).__class__ is taeda.return_types.max
    assert type(x.shape) is taeda.Size
    assert type(x.tolist()) is list


def test_parameters_give_plain_tensors():
    p = taeda.nn.Parameter(taeda.ones(2))
    assert type(p * 2) is Tensor
    assert type(p.detach()) is Tensor


def test_as_subclass_and_make_subclass():
    x = taeda.ones(2, requires_grad=True)
    y = x.as_subclass(Tagged)
    assert type(y) is Tagged
    assert y.grad_fn is not None
    z = Tensor._make_subclass(Tagged, x)
    assert z.is_leaf
    assert not z.requires_grad
    assert z.data_ptr() == x.data_ptr()
    with raises(TypeError, "must be a subclass of Tensor"):
        x.as_subclass(int)
    with raises(RuntimeError, "floating point and complex"):
        Tensor._make_subclass(Tagged, taeda.tensor([1]), True)


def test_gradient_flows_through_subclasses():
    x = taeda.ones(2, requires_grad=True)
    (x.as_subclass(Tagged) * 3).sum().backward()
    assert x.grad.tolist() == [3, 3]


def test_class_may_be_changed():
    class A(Tensor):
        pass

    class B(Tensor):
        pass

    x = A([1.0])
    x.__class__ = B
    assert type(x) is B


def test_subclass_of_a_subclass():
    class Deeper(Tagged):
        def __init__(self, *args):
            self.made = True

    for _ in range(3):
        x = Deeper([1.0])
        assert x.made
        view = x.view(1)
        del x
        assert view._base.made


def test_mixed_in_init_subclass_is_called():
    seen = []

    class Mixin:
        def __init_subclass__(cls, **kwargs):
            seen.append((cls.__name__, kwargs))

    class C(Tensor, Mixin, key=1):
        pass

    assert seen == [("C", {"key": 1})]
