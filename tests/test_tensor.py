"""The Tensor object: identity, attributes, conversions, copying, storage."""

import copy
import gc
import pickle
import weakref

import pytest

import taeda
from taeda import Tensor


def raises(kind, message):
    return pytest.raises(kind, match=message)


# ---- one object for one tensor ----


def test_gradient_is_one_object():
    x = taeda.ones(3, requires_grad=True)
    (x * 2).sum().backward()
    assert x.grad is x.grad
    x.grad.tag = "kept"
    gc.collect()
    assert x.grad.tag == "kept"


def test_weak_reference_lives_as_long_as_the_tensor():
    x = taeda.ones(3, requires_grad=True)
    (x * 2).sum().backward()
    ref = weakref.ref(x.grad)
    assert ref() is x.grad
    x.grad = None
    assert ref() is None


class Tagged(Tensor):
    pass


def test_subclass_object_survives_while_cpp_holds_it():
    base = Tagged([1.0, 2.0])
    base.tag = 5
    identity, view = id(base), base.view(2)
    del base
    gc.collect()
    assert id(view._base) == identity
    assert view._base.tag == 5
    assert type(view._base) is Tagged


def test_finalizer_sees_a_whole_tensor():
    seen = []

    class Noisy(Tensor):
        def __del__(self):
            seen.append(self.tolist())

    base = Noisy([2.0])
    view = base.as_subclass(Tensor).view(1)
    del base
    assert len(seen) <= 1
    del view
    assert seen == [[2.0]]


def test_finalizer_may_revive():
    kept = []

    class Phoenix(Tensor):
        def __del__(self):
            kept.append(self)

    x = Phoenix([1.0])
    del x
    assert kept[0].tolist() == [1.0]


def test_cycle_is_collected():
    x = Tagged([1.0])
    x.me = x
    ref = weakref.ref(x)
    del x
    gc.collect()
    assert ref() is None


def test_cycle_of_a_held_tensor_is_not_cleared():
    base = Tagged([1.0, 2.0])
    base.me = base
    view = base.view(2)
    del base
    gc.collect()
    assert view._base.me is view._base


def test_many_objects_come_and_go():
    for _ in range(20):
        tensors = [taeda.ones(2) for _ in range(600)]
    assert all(t.tolist() == [1.0, 1.0] for t in tensors)


def test_hash_is_identity():
    a, b = taeda.ones(2), taeda.ones(2)
    assert len({a, b, a}) == 2
    assert hash(a) == hash(a)


def test_attributes_of_ones_own():
    x = taeda.ones(2)
    x.note = "here"
    assert x.note == "here"
    assert "note" in dir(x)
    del x.note
    with raises(AttributeError, "'Tensor' object has no attribute 'note'"):
        x.note


# ---- attributes and questions ----


def test_plain_attributes():
    x = taeda.zeros(2, 3)
    assert x.shape == (2, 3)
    assert isinstance(x.shape, taeda.Size)
    assert x.size() == x.shape
    assert x.size(-1) == x.size(dim=1) == 3
    assert x.stride() == (3, 1)
    assert x.stride(0) == 3
    assert x.dtype is taeda.float32
    assert x.device == taeda.device("cpu")
    assert x.layout is taeda.strided
    assert x.ndim == x.dim() == x.ndimension() == 2
    assert x.numel() == x.nelement() == 6
    assert x.itemsize == x.element_size() == 4
    assert x.nbytes == 24
    assert x.is_cpu
    assert not (x.is_cuda or x.is_meta or x.is_sparse or x.is_quantized)
    assert x[1].storage_offset() == 3
    assert x[1].data_ptr() == x.data_ptr() + 12
    assert x.get_device() == -1
    assert not x.is_shared()


def test_read_only_attributes():
    x = taeda.zeros(2)
    for name in ("shape", "dtype", "device", "ndim", "T", "is_leaf", "grad_fn"):
        with raises(AttributeError, "not writable"):
            setattr(x, name, 1)


def test_size_errors():
    x = taeda.zeros(2, 3)
    with raises(IndexError, r"Dimension out of range \(expected to be in range of \[-2, 1\], but"):
        x.size(2)
    with raises(TypeError, r"size\(\): argument 'dim' \(position 1\) must be int, not str"):
        x.size("a")
    with raises(TypeError, "unexpected keyword argument 'foo'"):
        x.size(foo=1)


def test_transposes():
    x = taeda.arange(6).view(2, 3)
    assert x.T.tolist() == x.mT.tolist() == x.H.tolist() == [[0, 3], [1, 4], [2, 5]]
    assert taeda.zeros(2, 3, 4).T.shape == (4, 3, 2)
    assert taeda.zeros(2, 3, 4).mT.shape == (2, 4, 3)
    assert taeda.tensor([[1 + 2j]]).H.tolist() == [[1 - 2j]]
    with raises(RuntimeError, "only supported on matrices or batches of matrices. Got 1-D tensor"):
        taeda.zeros(3).mT


def test_real_and_imag():
    x = taeda.tensor([1 + 2j, 3 - 4j])
    assert x.real.tolist() == [1.0, 3.0]
    assert x.imag.tolist() == [2.0, -4.0]
    x.real = taeda.tensor([5.0, 6.0])
    assert x.tolist() == [5 + 2j, 6 - 4j]
    y = taeda.ones(2)
    assert y.real is y
    with raises(RuntimeError, "imag is not implemented for tensors with non-complex dtypes"):
        y.imag


def test_is_contiguous():
    x = taeda.zeros(2, 3, 4, 5)
    assert x.is_contiguous()
    assert not x.permute(0, 2, 3, 1).is_contiguous()
    assert x.permute(0, 3, 1, 2).is_contiguous(memory_format=taeda.channels_last)
    with raises(TypeError, "'memory_format' must be taeda.memory_format, not int"):
        x.is_contiguous(memory_format=3)


def test_data_shares_values_but_not_history():
    x = taeda.ones(2, requires_grad=True)
    x.data[0] = 7
    assert x.tolist() == [7.0, 1.0]
    assert not x.data.requires_grad
    assert x._version == 0
    x.data = taeda.zeros(3)
    assert x.shape == (3,)
    assert x.requires_grad
    with raises(TypeError, "data has to be a tensor, but got int"):
        x.data = 3
    with raises(RuntimeError, "must be floating point or complex"):
        x.data = taeda.tensor([1])


def test_version_counts_in_place_changes():
    x = taeda.zeros(2)
    view = x[0]
    x.add_(1)
    view.mul_(2)
    assert x._version == view._version == 2
    assert view._base is x


# ---- Python's conversions ----


def test_numbers():
    assert int(taeda.tensor(3.7)) == 3
    assert float(taeda.tensor([2])) == 2.0
    assert complex(taeda.tensor(1 + 2j)) == 1 + 2j
    assert bool(taeda.tensor([[0.5]])) is True
    assert [10, 20, 30][taeda.tensor(1)] == 20
    assert taeda.tensor(True).item() is True
    assert isinstance(taeda.tensor(3).item(), int)
    for convert in (int, float, complex):
        with raises(ValueError, "only one element tensors can be converted to Python scalars"):
            convert(taeda.zeros(2))
    with raises(RuntimeError, "a Tensor with 2 elements cannot be converted to Scalar"):
        taeda.zeros(2).item()
    with raises(TypeError, "only integer tensors of a single element can be converted to an index"):
        [1, 2][taeda.tensor(1.0)]
    with raises(RuntimeError, "Boolean value of Tensor with more than one value is ambiguous"):
        bool(taeda.zeros(2))
    with raises(RuntimeError, "Boolean value of Tensor with no values is ambiguous"):
        bool(taeda.zeros(0))
    with raises(OverflowError, "infinity"):
        int(taeda.tensor(float("inf")))


def test_sequence_protocol():
    x = taeda.arange(6).view(3, 2)
    assert len(x) == 3
    assert [row.tolist() for row in x] == [[0, 1], [2, 3], [4, 5]]
    assert 4 in x
    assert taeda.tensor(9) not in x
    assert list(reversed(x))[0].tolist() == [4, 5]
    with raises(TypeError, "len\\(\\) of a 0-d tensor"):
        len(taeda.tensor(1))
    with raises(TypeError, "iteration over a 0-d tensor"):
        iter(taeda.tensor(1))
    with raises(RuntimeError, "only supports Tensor or scalar, but you passed in a <class 'str'>"):
        "a" in x


def test_tolist_keeps_kinds():
    assert taeda.tensor([[1, 2], [3, 4]]).t().tolist() == [[1, 3], [2, 4]]
    assert taeda.tensor([True]).tolist() == [True]
    assert taeda.tensor(2.5, dtype=taeda.bfloat16).tolist() == 2.5
    assert taeda.zeros(2, 0).tolist() == [[], []]


def test_format():
    assert f"{taeda.tensor(3.14159):.2f}" == "3.14"
    assert f"{taeda.tensor([1])}" == "tensor([1])"
    with raises(TypeError, "unsupported format string"):
        f"{taeda.tensor([1.0]):.2f}"


# ---- operators ----


def test_operators():
    x = taeda.tensor([1.0, 2.0, 4.0])
    assert (x + 1).tolist() == (1 + x).tolist() == [2, 3, 5]
    assert (1 - x).tolist() == [0, -1, -3]
    assert (2 / x).tolist() == [2, 1, 0.5]
    assert (x // 3).tolist() == [0, 0, 1]
    assert (7 // x).tolist() == [7, 3, 1]
    assert (x % 3).tolist() == [1, 2, 1]
    assert (2**x).tolist() == [2, 4, 16]
    assert (x**2).tolist() == [1, 4, 16]
    assert (-x).tolist() == [-1, -2, -4]
    assert abs(-x).tolist() == (+x).tolist() == [1, 2, 4]
    assert (x @ x).item() == 21
    n = taeda.tensor([5, 6])
    assert (n & 4).tolist() == [4, 4]
    assert (n | 8).tolist() == [13, 14]
    assert (1 ^ n).tolist() == [4, 7]
    assert (n << 1).tolist() == [10, 12]
    assert (n >> 1).tolist() == [2, 3]
    assert (~n).tolist() == [-6, -7]
    assert (x > 1).tolist() == (x > 1).tolist() == [False, True, True]
    assert (x == taeda.tensor([1.0, 0, 4])).tolist() == [True, False, True]


def test_in_place_operators_keep_the_object():
    x = y = taeda.tensor([1.0, 2.0])
    x += 1
    x *= 3
    x -= 1
    x /= 2
    x **= 2
    assert x is y
    assert x.tolist() == [6.25, 16.0]
    with raises(TypeError, "unsupported operand"):
        x += "a"


@pytest.mark.parametrize("other", ["a", None, [1], object()])
def test_foreign_operands(other):
    x = taeda.ones(1)
    with raises(TypeError, r"unsupported operand type\(s\) for \+: 'Tensor' and"):
        x + other
    with raises(TypeError, "'<' not supported between instances of 'Tensor'"):
        x < other
    assert (x == other) is False
    assert (x != other) is True


def test_other_type_may_answer():
    class Other:
        def __radd__(self, x):
            return "radd"

        def __rmatmul__(self, x):
            return "rmatmul"

    assert taeda.ones(1) + Other() == "radd"
    assert taeda.ones(1) @ Other() == "rmatmul"


# ---- conversions of dtype ----


def test_dtype_conversions():
    x = taeda.tensor([1.6, -2.0])
    assert x.float() is x
    assert x.long().tolist() == [1, -2]
    for name, dtype in {
        "double": taeda.float64, "half": taeda.float16, "bfloat16": taeda.bfloat16,
        "int": taeda.int32, "short": taeda.int16, "char": taeda.int8, "bool": taeda.bool,
        "cfloat": taeda.complex64, "cdouble": taeda.complex128,
    }.items():  # fmt: skip
        assert getattr(x, name)().dtype is dtype
    assert x.type() == "taeda.FloatTensor"
    assert x.type(taeda.LongTensor).dtype is taeda.int64
    assert x.type("taeda.DoubleTensor").dtype is taeda.float64
    assert x.to(taeda.int8).dtype is taeda.int8
    assert x.to("cpu") is x
    assert x.to("cpu", taeda.float64).dtype is taeda.float64
    assert x.to(taeda.zeros(1, dtype=taeda.int64)).dtype is taeda.int64
    assert x.to("meta").is_meta
    assert x.type_as(taeda.tensor(1)).dtype is taeda.int64


def test_cuda_says_what_is_missing():
    with raises(AssertionError, "no CUDA support"):  # PyTorch's kind of error
        taeda.ones(1).cuda()
    with raises(AssertionError, "no CUDA support"):
        taeda.zeros(1, device="cuda")
    with raises(AssertionError, "no CUDA support"):
        taeda.nn.Linear(1, 1).to("cuda")


def test_legacy_types():
    assert isinstance(taeda.ones(1), taeda.FloatTensor)
    assert not isinstance(taeda.ones(1), taeda.LongTensor)
    assert taeda.LongTensor([1.5]).tolist() == [1]
    assert taeda.DoubleTensor(2, 3).shape == (2, 3)
    assert Tensor([1, 2]).dtype is taeda.float32
    assert Tensor(2, 3).shape == (2, 3)
    assert Tensor().shape == (0,)
    assert Tensor(taeda.Size([2])).shape == (2,)
    with raises(TypeError, r"data must be a sequence \(got float\)"):
        Tensor(2.5)


# ---- copying ----


def test_deepcopy():
    x = taeda.rand(3, requires_grad=True)
    (x * 2).sum().backward()
    x.note = ["a"]
    y = copy.deepcopy(x)
    assert y.tolist() == x.tolist()
    assert y.requires_grad
    assert y.grad.tolist() == [2, 2, 2]
    assert y.note == ["a"]
    assert y.note is not x.note
    assert y.data_ptr() != x.data_ptr()
    with raises(RuntimeError, "graph leaves"):
        copy.deepcopy(x * 2)


def test_deepcopy_keeps_views_together():
    x = taeda.zeros(4)
    a, b = copy.deepcopy([x, x[1:]])
    a[1] = 5
    assert b[0].item() == 5
    assert x[1].item() == 0


def test_copy_shares_memory():
    x = taeda.zeros(2, requires_grad=True)
    y = copy.copy(x)
    assert y is not x
    assert y.data_ptr() == x.data_ptr()
    assert y.requires_grad


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_pickle(protocol):
    def through(o):
        return pickle.loads(pickle.dumps(o, protocol))

    x = taeda.rand(3, 4)[1:, ::2]
    y = through(x)
    assert y.tolist() == x.tolist()
    y.add_(1)
    assert through(taeda.zeros(0, 3)).shape == (0, 3)
    assert through(taeda.ones(2, requires_grad=True)).requires_grad
    assert through(taeda.zeros(2, device="meta")).is_meta
    assert through(taeda.tensor([1 + 1j])).tolist() == [1 + 1j]
    for o in (taeda.float32, taeda.strided, taeda.channels_last, taeda.relu, Tensor.relu):
        assert through(o) is o
    assert through(taeda.device("cuda:1")) == taeda.device("cuda", 1)
    assert through(taeda.Size([2])) == (2,)
    assert isinstance(through(taeda.Size([2])), taeda.Size)
    assert through(x.max(0)).indices.tolist() == x.max(0).indices.tolist()
    g = taeda.Generator().manual_seed(5)
    assert through(g).get_state().tolist() == g.get_state().tolist()


def test_copies_of_a_result_have_no_history():
    x = taeda.ones(2, requires_grad=True) * 2
    for copied in (copy.copy(x), pickle.loads(pickle.dumps(x))):
        assert copied.is_leaf and copied.requires_grad and copied.tolist() == [2, 2]
    assert copy.copy(x).data_ptr() == x.data_ptr()


# ---- storage ----


def test_untyped_storage():
    x = taeda.tensor([1, 2], dtype=taeda.int16)
    s = x.untyped_storage()
    assert s.nbytes() == len(s) == 4
    assert s.tolist() == [1, 0, 2, 0]
    assert s == x[1:].untyped_storage()
    s[0] = 7
    assert x[0].item() == 7
    memoryview(s)[2] = 9
    assert x[1].item() == 9
    with raises(IndexError, "out of range"):
        s[4]
    with raises(RuntimeError, "buffer"), memoryview(s):
        s.resize_(100)


def test_set():
    x, y = taeda.zeros(2), taeda.arange(6.0)
    x.set_(y.untyped_storage(), 1, (2, 2), (2, 1))
    assert x.tolist() == [[1, 2], [3, 4]]
    assert x.set_(y).is_set_to(y)
    assert x.set_().shape == (0,)
    with raises(RuntimeError, "out of bounds for storage"):
        x.set_(y.untyped_storage(), 5, (2,))


def test_resize():
    x = taeda.arange(4)
    assert x.resize_(2).tolist() == [0, 1]
    assert x.resize_((2, 3)).shape == (2, 3)
    with raises(RuntimeError, "require grad"):
        taeda.ones(2, requires_grad=True).resize_(3)
