"""Subscripts, read and written, against NumPy and by their error messages."""

import random

import numpy as np
import pytest

import taeda


def raises(kind, message):
    return pytest.raises(kind, match=message)


def cube():
    return taeda.arange(24.0).view(2, 3, 4)


def array():
    return np.arange(24, dtype=np.float32).reshape(2, 3, 4)


MASK = np.array([[True, False, True], [False, True, False]])

INDICES = [
    0, -1, np.int64(1), slice(None), slice(1, None), slice(-1, None), slice(0, 2, 2), slice(5, 9),
    slice(1, 0), None, ..., (), (0, 1), (0, 1, 2), (0, ..., 1), (..., 1), (None, 0, None, ..., None),
    (slice(None), slice(1, 3), slice(None, None, 3)), True, False, (True, 0), [0, 1], [1, 1, 0], [],
    [True, False], ([0, 1], [1, 2]), ([0, 1], slice(None), [0, 3]), (slice(None), [0, 2]),
    (slice(None), [[0, 1], [2, 0]]), (slice(None), 0, [0, 1]),
    ([0], 0, slice(None)), ([[0], [1]], [0, 2]), MASK, (MASK, 0), (MASK, slice(0, 2)),
    (MASK, [0, 1, 2]), (slice(None), np.array([True, False, True])), (..., np.array([1, 3])),
    (0, MASK[0]), (None, MASK), np.array([0, 1]), np.array(1), (np.array([-1]), slice(None), None),
    (slice(None), None, [0, 1], None), range(2),
]  # fmt: skip


def as_tensors(index):
    """Arrays in an index as taeda's tensors."""
    if isinstance(index, tuple):
        return tuple(as_tensors(item) for item in index)
    return taeda.tensor(index) if isinstance(index, np.ndarray) else index


@pytest.mark.parametrize("index", INDICES, ids=repr)
def test_read(index):
    # NumPy takes a range for an array of indices, as a tensor does.
    expected = array()[list(index) if isinstance(index, range) else index]
    if isinstance(index, list) and not index:
        expected = array()[:0]
    for form in (index, as_tensors(index)):
        result = cube()[form]
        assert result.shape == expected.shape
        assert result.tolist() == expected.tolist()


@pytest.mark.parametrize("index", INDICES, ids=repr)
@pytest.mark.parametrize("value", ["number", "scalar", "row", "full"])
def test_write(index, value):
    plain = index
    if isinstance(index, (list, range)):
        plain = np.array(index, dtype=bool if index == [True, False] else int)
    expected, result = array(), cube()
    shape = expected[plain].shape
    generator = np.random.default_rng(0)
    if value == "number":
        new = 7.5
    else:
        sizes = {"scalar": (), "row": shape[-1:], "full": shape}[value]
        new = np.asarray(generator.random(sizes), dtype=np.float32)
    # Where an element is written twice, which one wins is nobody's promise.
    if isinstance(index, list) and index == [1, 1, 0] and value == "full":
        new[1] = new[0]
    expected[plain] = new
    result[as_tensors(index)] = new if value == "number" else taeda.tensor(new)
    assert result.tolist() == expected.tolist()


def test_random_indices():
    choose = random.Random(3)
    for _ in range(500):
        shape = tuple(choose.randint(1, 4) for _ in range(choose.randint(0, 4)))
        data = np.arange(int(np.prod(shape)), dtype=np.float32).reshape(shape)
        index, dim = [], 0
        while dim < len(shape) and choose.random() < 0.85:
            n = shape[dim]
            kind = choose.choice(["int", "slice", "none", "array", "matrix", "mask", "bool"])
            dim += kind not in ("none", "bool")
            if kind == "int":
                index.append(choose.randint(-n, n - 1))
            elif kind == "slice":
                ends = [choose.choice([None, choose.randint(-n - 1, n + 1)]) for _ in range(2)]
                index.append(slice(*ends, choose.choice([None, 1, 2, 3])))
            elif kind == "none":
                index.append(None)
            elif kind == "array":
                index.append(np.array([choose.randint(-n, n - 1) for _ in range(2)]))
            elif kind == "matrix":
                index.append(np.array([[choose.randint(-n, n - 1) for _ in range(2)]] * 3))
            elif kind == "mask":
                index.append(np.array([choose.random() < 0.5 for _ in range(n)]))
            else:
                index.append(choose.random() < 0.7)
        index = tuple(index)
        # NumPy counts a number beside an array as an array; a tensor selects with it first.
        arrays = any(isinstance(i, (np.ndarray, bool)) for i in index)
        if arrays and any(isinstance(i, int) and not isinstance(i, bool) for i in index):
            continue
        try:
            expected = data[index]
        except IndexError:
            with pytest.raises(IndexError):
                taeda.tensor(data)[as_tensors(index)]
            continue
        result = taeda.tensor(data)[as_tensors(index)]
        assert result.shape == expected.shape, (shape, index)
        assert result.tolist() == expected.tolist(), (shape, index)


def test_basic_indexing_gives_views():
    x = cube()
    for index in (0, slice(1), None, ..., (), (0, ..., 1)):
        assert x[index]._base is x._base
        assert x[index] is not x
    x[0][1] = 0
    assert x[0, 1].sum().item() == 0
    assert x[[0]].untyped_storage() != x.untyped_storage()


def test_numbers_select_before_arrays_gather():
    x = cube()
    assert x[0, :, [0, 1]].tolist() == x[0][:, [0, 1]].tolist()
    assert x[0, None, :1, [1, 2]].tolist() == [[[1.0, 2.0]]]
    x[0, :, [0, 1]] = 0
    assert x[0, :, :2].abs().sum().item() == 0


def test_number_tensors_select():
    x = cube()
    assert x[taeda.tensor(1)].shape == (3, 4)
    assert x[taeda.tensor(True)].shape == (1, 2, 3, 4)
    assert x[1 : taeda.tensor(2)].shape == (1, 3, 4)
    assert x[taeda.tensor([0], dtype=taeda.int32)].shape == (1, 3, 4)


def test_old_spellings_warn():
    x = cube()
    with pytest.warns(UserWarning, match="non-tuple sequence"):
        assert x[[0, slice(None)]].shape == (3, 4)
    with pytest.warns(UserWarning, match="non-tuple sequence"):
        assert x[[[0, 1], [1, 2]]].shape == (2, 4)
    with pytest.warns(UserWarning, match="uint8 is now deprecated"):
        assert x[taeda.tensor([1, 0], dtype=taeda.uint8)].shape == (1, 3, 4)


def test_zero_dim():
    x = taeda.tensor(3.0)
    assert x[...].item() == x[()].item() == 3
    assert x[None].shape == (1,)
    assert x[True].tolist() == [3]
    assert x[taeda.tensor(False)].shape == (0,)
    x[()] = 4
    x[...] += 1
    assert x.item() == 5
    with raises(IndexError, "invalid index of a 0-dim tensor. Use `tensor.item\\(\\)`"):
        x[0]
    with raises(IndexError, r"slice\(\) cannot be applied to a 0-dim tensor"):
        x[:]
    with raises(IndexError, "too many indices for tensor of dimension 0"):
        x[[0]]


@pytest.mark.parametrize(
    ("index", "kind", "message"),
    [
        (2, IndexError, "index 2 is out of bounds for dimension 0 with size 2"),
        (-3, IndexError, "index -3 is out of bounds for dimension 0 with size 2"),
        ((0, 5), IndexError, "index 5 is out of bounds for dimension 1 with size 3"),
        (
            (slice(None), None, 7),
            IndexError,
            "index 7 is out of bounds for dimension 2 with size 3",
        ),
        ([5], IndexError, "index 5 is out of bounds for dimension 0 with size 2"),
        (([0], [7]), IndexError, "index 7 is out of bounds for dimension . with size 3"),
        ((0, 0, 0, 0), IndexError, "too many indices for tensor of dimension 3"),
        (
            ([0, 1], [0, 1, 2]),
            IndexError,
            r"could not be broadcast together with shapes \[2\], \[3\]",
        ),
        (1.0, IndexError, r"only integers, slices .* \(got float\)"),
        ({}, IndexError, r"\(got dict\)"),
        ("a", TypeError, "invalid data type 'str'"),
        ([0.5], IndexError, "tensors used as indices must be long, int, byte or bool tensors"),
        (slice(None, None, -1), ValueError, "step must be greater than zero"),
        (slice(None, None, 0), ValueError, "slice step cannot be zero"),
        (slice(0, 1.5), TypeError, "slice indices must be integers or None"),
        (2**70, ValueError, "Overflow when unpacking long long"),
    ],
    ids=repr,
)
def test_errors(index, kind, message):
    with raises(kind, message):
        cube()[index]
    with raises(kind, message):
        cube()[index] = 1.0


def test_mask_errors():
    x = cube()
    with raises(
        IndexError, r"The shape of the mask \[3, 3\] at index 0 does not match the shape of the"
    ):
        x[taeda.zeros(3, 3, dtype=taeda.bool)]
    with raises(IndexError, "too many indices"):
        x[taeda.zeros(2, 3, 4, 5, dtype=taeda.bool)]
    with raises(IndexError, "must be long, int, byte or bool"):
        x[taeda.tensor([0], dtype=taeda.int8)]


def test_values_that_cannot_be_written():
    x = cube()
    for value in ([1, 2, 3, 4], "a", None, np.ones(4)):
        with raises(TypeError, f"can't assign a {type(value).__module__}".replace("builtins", "")):
            x[0] = value
    with raises(RuntimeError, "value cannot be converted to type float32 without overflow"):
        x[0] = 1j
    with raises(RuntimeError, "value cannot be converted to type uint8 without overflow"):
        x.byte()[0] = 300
    with raises(RuntimeError, "at non-singleton dimension 0"):
        x[0] = taeda.ones(2, 4)
    with raises(
        RuntimeError, r"value tensor of shape \[2, 4\] cannot be broadcast to indexing result"
    ):
        x[taeda.tensor(MASK)] = taeda.ones(2, 4)
    with raises(TypeError, "does not support deleting"):
        del x[0]


def test_values_are_converted():
    x = taeda.zeros(3, dtype=taeda.int32)
    x[0] = 2.7
    x[1:] = taeda.tensor([3.9, 4.2])
    assert x.tolist() == [2, 3, 4]
    y = taeda.zeros(2)
    y[0] = True
    y[1] = np.float64(3)
    assert y.tolist() == [1, 3]
    y[taeda.tensor([True, False])] = taeda.tensor(7)
    assert y.tolist() == [7, 3]


def test_leading_ones_of_a_value():
    x = taeda.zeros(2, 3)
    x[0] = taeda.ones(1, 1, 3)
    x[taeda.tensor([1])] = taeda.full((1, 1, 1, 3), 2.0)
    assert x.tolist() == [[1, 1, 1], [2, 2, 2]]


def test_gradients_of_reading():
    x = taeda.zeros(3, 4, requires_grad=True)
    (x[1, 1:] * 2 + x[[0, 0], [1, 1]].sum() + x[x == 0].sum()).sum().backward()
    expected = np.full((3, 4), 3.0)
    expected[1, 1:] += 2
    expected[0, 1] += 6
    assert x.grad.tolist() == expected.tolist()


def test_gradients_of_writing():
    x = taeda.ones(4, requires_grad=True)
    v = taeda.tensor([5.0, 6.0], requires_grad=True)
    y = x * 2
    y[1:3] = v
    y[[0]] = 0.0
    (y * taeda.arange(4.0)).sum().backward()
    assert x.grad.tolist() == [0, 0, 0, 6]
    assert v.grad.tolist() == [1, 2]
    with raises(RuntimeError, "leaf"):
        x[0] = 1
