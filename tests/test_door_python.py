"""Calling operations from Python: how arguments are matched, what errors say, what results are."""

import sys
import threading

import numpy as np
import pytest

import taeda
from taeda import Tensor


def raises(kind, message):
    return pytest.raises(kind, match=message)


X = taeda.arange(6.0).view(2, 3)


# ---- matching ----


def test_ways_to_give_ints():
    for result in (
        X.view(3, 2), X.view((3, 2)), X.view([3, 2]), X.view(taeda.Size([3, 2])), X.view(-1, 2),
        X.view(taeda.tensor(3), 2), X.view(size=(3, 2)), X.reshape(3, 2),
    ):  # fmt: skip
        assert result.shape == (3, 2)
    assert X.view(6).shape == (6,)
    assert X.permute(1, 0).shape == taeda.permute(X, (1, 0)).shape == (3, 2)
    assert taeda.zeros(2, 3).shape == taeda.zeros((2, 3)).shape == taeda.zeros([2, 3]).shape
    assert taeda.zeros(()).shape == ()
    assert X.sum(0).shape == X.sum((0,)).shape == X.sum([0]).shape == (3,)
    assert X.expand(4, 2, 3).shape == (4, 2, 3)
    assert X.repeat(2, 1).shape == (4, 3)
    assert X.flip(0, 1).tolist() == [[5, 4, 3], [2, 1, 0]]


def test_keywords():
    assert taeda.sum(input=X, dim=1, keepdim=True).shape == (2, 1)
    assert taeda.sum(X, axis=1, keepdims=True).shape == (2, 1)
    assert X.sum(axis=0).shape == (3,)
    assert taeda.add(X, other=X, alpha=2).tolist() == (3 * X).tolist()
    assert X.sum(dtype=taeda.float64).dtype is taeda.float64
    assert X.sum(dtype=float).dtype is taeda.float64
    assert X.sum(dtype=None).item() == 15


def test_numbers_for_tensors():
    assert taeda.add(1, X).tolist() == (X + 1).tolist()
    assert taeda.pow(2, X).tolist() == (2**X).tolist()
    assert taeda.where(X > 2, X, 0.0).tolist() == [[0, 0, 0], [3, 4, 5]]
    assert X.where(X > 2, -1.0).tolist() == [[-1, -1, -1], [3, 4, 5]]
    assert X.clamp(1, 3).tolist() == [[1, 1, 2], [3, 3, 3]]
    assert taeda.clamp(X, max=taeda.tensor(2.0)).max().item() == 2
    assert X.masked_fill(X > 2, 9).tolist() == [[0, 1, 2], [9, 9, 9]]
    assert (taeda.tensor([1]) + 1.5).dtype is taeda.float32
    assert (taeda.tensor([1], dtype=taeda.int8) + 300).dtype is taeda.int8
    with raises(TypeError, r"matmul\(\): argument 'other' \(position 2\) must be Tensor, not int"):
        taeda.matmul(X, 3)
    with raises(TypeError, r"maximum\(\): argument 'other' \(position 2\) must be Tensor, not int"):
        taeda.maximum(X, 3)


def test_zero_dim_tensors_for_numbers():
    n = taeda.tensor(1)
    assert X.sum(n).shape == (2,)
    assert taeda.full((2,), taeda.tensor(2.5)).tolist() == [2.5, 2.5]
    assert X.add(X, alpha=n).tolist() == (2 * X).tolist()
    with raises(TypeError, "must be int, not Tensor"):
        taeda.softmax(X, taeda.tensor(0.0))
    with raises(TypeError, "must be Number, not Tensor"):
        taeda.full((2,), taeda.ones((), requires_grad=True))


def test_lists_of_tensors():
    assert taeda.cat([X, X]).shape == taeda.cat((X, X), 0).shape == (4, 3)
    a, b = taeda.broadcast_tensors(taeda.ones(2, 1), taeda.ones(3))
    assert a.shape == b.shape == (2, 3)
    assert taeda.block_diag(taeda.ones(1), taeda.ones(2)).shape == (2, 3)
    assert len(taeda.meshgrid(taeda.arange(2), taeda.arange(3), indexing="ij")) == 2


def test_factory_arguments():
    x = taeda.zeros(2, dtype=taeda.float64, layout=taeda.strided, requires_grad=True)
    assert x.requires_grad
    assert x.is_leaf
    assert taeda.ones_like(x, requires_grad=True).requires_grad
    assert not taeda.ones_like(x).requires_grad
    assert taeda.empty(2, device="meta").is_meta
    assert taeda.zeros(2, device=taeda.device("cpu"), pin_memory=False).is_cpu
    with raises(RuntimeError, "floating point and complex"):
        taeda.zeros(2, dtype=taeda.int64, requires_grad=True)
    with raises(TypeError, r"zeros\(\): argument 'requires_grad' must be bool, not int"):
        taeda.zeros(2, requires_grad=1)
    with raises(TypeError, r"zeros\(\): argument 'layout' must be taeda.layout, not int"):
        taeda.zeros(2, layout=3)
    with raises(RuntimeError, "pin_memory=True"):
        taeda.zeros(2, pin_memory=True)


# ---- errors ----


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: taeda.softmax(X, "a"), r"softmax\(\): argument 'dim' \(position 2\) must be int, not str"),
        (lambda: X.softmax("a"), r"softmax\(\): argument 'dim' \(position 1\) must be int, not str"),
        (lambda: taeda.softmax(X, True), r"argument 'dim' \(position 2\) must be int, not bool"),
        (lambda: taeda.softmax(X), r'softmax\(\) missing 1 required positional arguments: "dim"'),
        (lambda: taeda.relu(), r'relu\(\) missing 1 required positional arguments: "input"'),
        (lambda: taeda.relu("a"), r"relu\(\): argument 'input' \(position 1\) must be Tensor, not str"),
        (lambda: taeda.relu(X, 3), r"relu\(\) takes 1 positional argument but 2 were given"),
        (lambda: X.cumsum(0, 1), r"cumsum\(\) takes 1 positional argument but 2 were given"),
        (lambda: taeda.cumsum(X, 0, foo=1), r"cumsum\(\) got an unexpected keyword argument 'foo'"),
        (lambda: taeda.cumsum(X, 0, dim=1), r"cumsum\(\) got multiple values for argument 'dim'"),
        (lambda: taeda.cumsum(X, 0, dtype=3), r"argument 'dtype' must be taeda.dtype, not int"),
        (lambda: X.sum(0, keepdim=1), r"sum\(\): argument 'keepdim' must be bool, not int"),
        (lambda: X.view(2, "a"), r"argument 'size' \(position 1\) must be tuple of ints, but found element of type str at pos 1"),
        (lambda: taeda.zeros(2.5), r"zeros\(\): argument 'size' \(position 1\) must be tuple of ints, not float"),
        (lambda: taeda.cat(X), r"cat\(\): argument 'tensors' \(position 1\) must be tuple of Tensors, not Tensor"),
        (lambda: taeda.cat([X, 3]), r"expected Tensor as element 1 in argument 'tensors' of cat\(\), but got int"),
        (lambda: taeda.full((2,), None), r"full\(\): argument 'fill_value' \(position 2\) must be Number, not NoneType"),
        (lambda: taeda.rand(2, generator=3), r"argument 'generator' must be taeda.Generator, not int"),
        (lambda: X.clone(memory_format=3), r"argument 'memory_format' must be taeda.memory_format, not int"),
        (lambda: taeda.add(X, 1, out=3), r"add\(\): argument 'out' must be Tensor, not int"),
        (lambda: taeda.max(X, 0, out=(1, 2)), "expected Tensor as element 0 in argument 'out'"),
        (lambda: Tensor.add(3, 1), "descriptor 'add' for 'taeda.Tensor' objects doesn't apply to a 'int' object"),
        (lambda: Tensor.add(), "needs an argument"),
    ],
)  # fmt: skip
def test_type_errors(call, message):
    with raises(TypeError, message):
        call()


def test_no_overload_fits():
    with raises(TypeError, "received an invalid combination of arguments") as e:
        X.view("a")
    assert str(e.value) == (
        "view() received an invalid combination of arguments - got (str), but expected one of:\n"
        " * (tuple of ints size)\n * (taeda.dtype dtype)\n"
    )


def test_exceptions_of_kernels():
    with raises(RuntimeError, "size"):
        X + taeda.ones(4)
    with raises(IndexError, "Dimension out of range"):
        X.sum(5)
    with raises(OverflowError, "int too big to convert"):
        X + 2**70
    with raises(RuntimeError, "device string"):
        taeda.zeros(2, device="gpu")
    with raises(MemoryError, "[0-9]"):
        taeda.empty(2**55)


def test_errors_hold_no_references():
    x = taeda.ones(2)
    before = sys.getrefcount(x)
    for _ in range(50):
        with pytest.raises(TypeError):
            taeda.softmax(x, "a")
        with pytest.raises(IndexError):
            x.sum(7)
    assert sys.getrefcount(x) == before


# ---- results ----


def test_named_results():
    r = X.max(0)
    values, indices = r
    assert r.values is values is r[0]
    assert r.indices.tolist() == [1, 1, 1]
    assert type(r).__name__ == "max"
    assert isinstance(r, tuple)
    assert repr(r).startswith("taeda.return_types.max(\nvalues=tensor([3., 4., 5.]),\nindices=")
    assert type(taeda.max(X, dim=1)) is taeda.return_types.max


def test_lists_come_as_tuples():
    assert isinstance(X.split(1), tuple)
    assert isinstance(X.unbind(1), tuple)


def test_out():
    out = taeda.empty(0)
    assert taeda.add(X, 1, out=out) is out
    assert out.tolist() == (X + 1).tolist()
    values, indices = taeda.empty(0), taeda.empty(0, dtype=taeda.int64)
    r = taeda.max(X, 1, out=(values, indices))
    assert r.values is values
    assert indices.tolist() == [2, 2]
    assert taeda.add(X, 1, out=None).tolist() == (X + 1).tolist()
    with raises(RuntimeError, "can't be cast"):
        taeda.add(X, 0.5, out=taeda.empty(0, dtype=taeda.int64))
    with raises(RuntimeError, "automatic differentiation"):
        taeda.max(X.clone().requires_grad_(), 1, out=(values, indices))


def test_in_place_forms_return_self():
    x = X.clone()
    assert x.add_(1) is x
    assert x.relu_() is x
    assert taeda.relu_(x) is x
    assert not hasattr(taeda, "add_")


def test_functions_do_not_bind_but_methods_do():
    class Layer:
        act = taeda.relu

    assert Layer().act(taeda.tensor([-1.0])).item() == 0
    bound = X.sum
    assert bound(0).tolist() == [3, 5, 7]
    assert Tensor.sum(X, 0).tolist() == [3, 5, 7]
    assert list(map(Tensor.item, taeda.ones(2))) == [1, 1]


def test_private_operations_are_not_public():
    names = set(dir(taeda))
    assert "softmax" in names
    assert not [n for n in names if n.startswith("_to_copy") or n.startswith("_softmax")]
    assert all(hasattr(taeda, n) for n in taeda.__all__ if n not in ("nn", "optim", "utils"))


def test_unknown_attribute():
    with raises(AttributeError, "module 'taeda' has no attribute 'nothing'"):
        taeda.nothing


# ---- overrides ----


class Logged(Tensor):
    calls = []

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        cls.calls.append(func.__name__)
        return super().__torch_function__(func, types, args, kwargs or {})


def test_subclass_sees_calls():
    x = taeda.ones(2).as_subclass(Logged)
    Logged.calls.clear()
    y = taeda.relu(x + 1)
    y[0] = 3
    taeda.cat([taeda.ones(1), y])
    2 - y
    y.add_(1)
    assert Logged.calls == ["add", "relu", "__setitem__", "cat", "sub", "add_"]
    assert type(y) is Logged
    with taeda.overrides.DisableTorchFunctionSubclass():
        assert type(x + 1) is Tensor
    assert Logged.calls[6:] == []


def test_duck_types_take_over():
    class Duck:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return func, types, args, kwargs

    d = Duck()
    assert taeda.softmax(d, dim=1) == (taeda.softmax, (Duck,), (d,), {"dim": 1})
    assert taeda.cat([d])[0] is taeda.cat
    assert (X + d)[0] is taeda.add
    assert taeda.overrides.has_torch_function((X, d))
    assert not taeda.overrides.has_torch_function((X, 3))


def test_subclass_is_asked_before_its_base():
    order = []

    class A(Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            order.append(cls.__name__)
            return NotImplemented

    class B(A):
        pass

    with raises(TypeError, "no implementation found for"):
        taeda.ones(1).as_subclass(A) + taeda.ones(1).as_subclass(B)
    assert order == ["B", "A"]


def test_disabled_override():
    class Plain(Tensor):
        __torch_function__ = taeda._C._disabled_torch_function_impl

    assert type(Plain([1.0]) + 1) is Tensor


# ---- threads ----


def test_large_calls_run_beside_python():
    x = taeda.rand(1500, 1500)
    expected, results = (x @ x).sum().item(), []

    def work():
        for _ in range(3):
            results.append((x @ x).sum().item())

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert results == [expected] * 12


def test_tensors_die_on_other_threads():
    class Tagged(Tensor):
        pass

    def work():
        for _ in range(200):
            base = Tagged([1.0, 2.0])
            base.tag = 1
            views = [base.view(2) for _ in range(3)]
            del base
            assert views[0]._base.tag == 1

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()


def test_number_of_threads():
    before = taeda.get_num_threads()
    taeda.set_num_threads(1)
    assert taeda.get_num_threads() == 1
    taeda.set_num_threads(before)
    with raises(RuntimeError, "positive integer"):
        taeda.set_num_threads(0)


# ---- functions written in Python ----


def test_broadcast_shapes():
    assert taeda.broadcast_shapes((2, 1), (3,), 1) == (2, 3)
    assert taeda.broadcast_shapes() == ()
    with raises(RuntimeError, "Shape mismatch"):
        taeda.broadcast_shapes((2,), (3,))
    with raises(RuntimeError, "negative"):
        taeda.broadcast_shapes((-1,))


def test_einsum():
    a, b = np.random.default_rng(0).random((2, 3)), np.random.default_rng(1).random((3, 4))
    expected = a @ b
    for result in (
        taeda.einsum("ij,jk->ik", taeda.tensor(a), taeda.tensor(b)),
        taeda.einsum("ij,jk", [taeda.tensor(a), taeda.tensor(b)]),
        taeda.einsum(taeda.tensor(a), [0, 1], taeda.tensor(b), [1, 2], [0, 2]),
        taeda.tensordot(taeda.tensor(a), taeda.tensor(b), 1),
        taeda.tensordot(taeda.tensor(a), taeda.tensor(b), dims=([1], [0])),
        taeda.chain_matmul(taeda.tensor(a), taeda.tensor(b)),
    ):
        assert np.allclose(result.numpy(), expected)
    with raises(ValueError, "equation"):
        taeda.einsum("ij")


def test_nonzero_and_where():
    x = taeda.tensor([[0, 1], [2, 0]])
    assert taeda.nonzero(x).tolist() == x.nonzero().tolist() == [[0, 1], [1, 0]]
    rows, columns = x.nonzero(as_tuple=True)
    assert (rows.tolist(), columns.tolist()) == ([0, 1], [1, 0])
    assert len(taeda.where(x > 0)) == 2


def test_questions():
    assert taeda.is_tensor(X)
    assert not taeda.is_tensor([1])
    assert taeda.is_floating_point(X)
    assert not taeda.is_complex(X)
    assert taeda.numel(X) == 6
    assert taeda.is_nonzero(taeda.tensor([2]))
    assert taeda.typename(X) == "taeda.FloatTensor"
    assert taeda.result_type(X, 1) is taeda.float32
    assert taeda.can_cast(taeda.int32, taeda.float16)
    assert taeda.promote_types(taeda.uint8, taeda.int8) is taeda.int16
    with raises(TypeError, r"numel\(\): argument 'input' \(position 1\) must be Tensor, not int"):
        taeda.numel(3)


def test_small_methods():
    assert taeda.tensor([2]).is_nonzero()
    assert taeda.zeros(2).resize_as_(X).shape == X.shape
    assert taeda.ones(4, 2, 3).sum_to_size(2, 1).tolist() == [[12], [12]]
    assert X.sum_to_size((2, 3)) is X
    with raises(RuntimeError, r"size \[4\] is not expandable to size \[2, 3\]"):
        X.sum_to_size(4)
    assert taeda.is_signed(X)
    assert taeda.is_same_size(X, X)
    assert taeda.is_storage(X.untyped_storage())


def test_cartesian_prod():
    assert taeda.cartesian_prod(taeda.tensor([1, 2]), taeda.tensor([3])).tolist() == [
        [1, 3],
        [2, 3],
    ]


def test_apply():
    assert taeda.tensor([[1.0, 2.0]]).t().apply_(lambda v: v * 10).tolist() == [[10], [20]]
