"""Sparse tensors against dense ones and, where it is installed, PyTorch's."""

from __future__ import annotations

import copy
import io
import pickle
import warnings

import numpy as np
import pytest

import taeda
from taeda import sparse
from taeda.sparse._tensor import answers
from tests.sparse.matrices import COO, CSR, LAYOUTS, SHAPES, agree, close, dense_of, random_matrix

pytestmark = pytest.mark.filterwarnings("ignore:Sparse")  # what PyTorch says of its own

# ---- making and converting ----------------------------------------------------------------------


@pytest.mark.parametrize("shape", SHAPES)
def test_conversions(shape):
    x = random_matrix(*shape)
    expected = dense_of(x)
    close(x.to_dense(), expected)
    ordered = x.coalesce()
    assert ordered.is_coalesced() and ordered.coalesce() is ordered
    agree(ordered, expected)
    flat = ordered.indices()[0] * max(shape[1], 1) + ordered.indices()[1]
    assert bool((flat[1:] > flat[:-1]).all())
    rows = x.to_sparse_csr()
    assert rows.layout is CSR and rows.crow_indices().tolist()[-1] == rows._nnz()
    agree(rows, expected)
    close(rows.to_dense(), expected)
    back = rows.to_sparse_coo()
    assert back.is_coalesced() and back.layout is COO
    agree(back, expected)
    agree(expected.to_sparse(), expected)
    agree(expected.to_sparse(layout=CSR), expected)
    assert expected.to_sparse()._nnz() == int((expected != 0).sum())


def test_dense_dimensions():
    x = taeda.arange(12.0).reshape(3, 2, 2)
    y = x.to_sparse(1)
    assert (y.sparse_dim(), y.dense_dim(), y._nnz()) == (1, 2, 3)
    agree(y, x)
    z = taeda.sparse_coo_tensor([[2, 0, 2]], taeda.ones(3, 2), (4, 2))
    assert z.coalesce().values().tolist() == [[1.0, 1.0], [2.0, 2.0]]
    assert taeda.tensor(5.0).to_sparse().to_dense().item() == 5.0
    assert taeda.tensor(0.0).to_sparse()._nnz() == 0


def test_attributes():
    x = taeda.sparse_coo_tensor([[0, 1, 1], [2, 0, 0]], [3.0, 4.0, 5.0], (2, 3))
    assert (x.layout, x.is_sparse, x.is_sparse_csr) == (COO, True, False)
    assert (tuple(x.shape), x.dim(), x.numel(), len(x), x._nnz()) == ((2, 3), 2, 6, 2, 3)
    assert (x.to_sparse_csr().is_sparse, x.to_sparse_csr().is_sparse_csr) == (False, True)
    dense = taeda.ones(2)
    assert (dense.layout, dense.is_sparse, dense.is_sparse_csr, dense.sparse_dim()) == (
        taeda.strided,
        False,
        False,
        0,
    )
    assert dense.to_dense() is dense and dense.to_dense(taeda.float64).dtype == taeda.float64
    large = taeda.sparse_coo_tensor([[5], [7]], [1.0], (10**9, 10**9))
    assert (large * 2)[5, 7].item() == 2.0
    assert taeda.sparse_coo_tensor((2, 3)).to_dense().tolist() == [[0.0] * 3] * 2
    assert x.double().dtype == x.to(taeda.float64).dtype == taeda.float64 and x.float() is x
    assert (
        taeda.sparse_csr_tensor(
            taeda.tensor([0, 1, 2], dtype=taeda.int32),
            taeda.tensor([0, 1], dtype=taeda.int32),
            [1.0, 2.0],
        )
        .to_sparse_csc()
        .row_indices()
        .dtype
        == taeda.int32
    )


BAD = {
    "negative": (lambda t: t.sparse_coo_tensor([[0, -1]], [1.0, 2.0], (3,)), "found negative index -1 for dim 0"),
    "too large": (lambda t: t.sparse_coo_tensor([[0, 3]], [1.0, 2.0], (3,)), "for dim 0, size is 3 but found index 3"),
    "vector": (lambda t: t.sparse_coo_tensor([0, 1], [1.0, 2.0], (3,)), "sparse_dim x nnz"),
    "nnz": (lambda t: t.sparse_coo_tensor([[0, 1]], [1.0, 2.0, 3.0], (3,)), "must have same nnz"),
    "size": (lambda t: t.sparse_coo_tensor([[0, 1]], [1.0, 2.0], (3, 4)), "sparse_dim"),
    "dense size": (lambda t: t.sparse_coo_tensor([[0, 1]], t.ones(2, 4), (3, 5)), "expected \\[2, 5\\], got \\[2, 4\\]"),
    "negative size": (lambda t: t.sparse_coo_tensor((-1, 2)), "must not be negative"),
    "order": (lambda t: t.sparse_coo_tensor([[1, 0]], [1.0, 2.0], (2,), is_coalesced=True, check_invariants=True), "cannot set is_coalesced"),
    "rows": (lambda t: t.sparse_csr_tensor([0, 2, 1], [0, 1], [1.0, 2.0], (2, 3), check_invariants=True), "must rise from 0 to nnz"),
    "last row": (lambda t: t.sparse_csr_tensor([0, 1, 3], [0, 1], [1.0, 2.0], (2, 3), check_invariants=True), "must rise"),
    "columns": (lambda t: t.sparse_csr_tensor([0, 1, 2], [0, 5], [1.0, 2.0], (2, 3), check_invariants=True), "below 3"),
    "row count": (lambda t: t.sparse_csr_tensor([0, 1], [0], [1.0], (2, 3), check_invariants=True), "2 \\+ 1 elements"),
    "uncoalesced": (lambda t: t.sparse_coo_tensor([[0, 0]], [1.0, 2.0]).indices(), "uncoalesced tensor"),
    "uncoalesced values": (lambda t: t.sparse_coo_tensor([[0, 0]], [1.0, 2.0]).values(), "uncoalesced tensor"),
    "dense indices": (lambda t: t.ones(2).indices(), "indices expected sparse coordinate tensor layout but got Strided"),
    "dense coalesce": (lambda t: t.ones(2).coalesce(), "coalesce expected sparse coordinate"),
    "dense rows": (lambda t: t.ones(2).crow_indices(), "sparse row compressed tensor layout but got Strided"),
    "coo rows": (lambda t: t.ones(2, 2).to_sparse().crow_indices(), "sparse row compressed tensor layout but got Sparse"),
    "csr coalesce": (lambda t: t.ones(2, 2).to_sparse_csr().coalesce(), "got SparseCsr"),
    "sparse_dim": (lambda t: t.ones(2, 2).to_sparse(3), "sparse_dim argument must be in"),
    "shapes": (lambda t: t.ones(2, 3).to_sparse() @ t.ones(4, 2), "cannot be multiplied"),
    "dtypes": (lambda t: t.ones(2, 3).to_sparse() @ t.ones(3, 2).double(), "expected scalar type"),
    "vector size": (lambda t: t.ones(2, 3).to_sparse().mv(t.ones(2)), "expected self.size\\(-1\\) == vec.size\\(-1\\)"),
    "plus dense": (lambda t: t.ones(2, 3).to_sparse() + t.ones(2, 3), "Use add\\(dense, sparse\\)"),
    "plus one": (lambda t: t.ones(2, 3).to_sparse() + 1, "Use add\\(dense, sparse\\)"),
    "plus shape": (lambda t: t.ones(3, 3) + t.ones(2, 3).to_sparse(), "size"),
    "sum of dense": (lambda t: t.sparse.sum(t.ones(2)), "sparse"),
    "item": (lambda t: t.ones(2, 3).to_sparse().item(), "6 elements cannot be converted to Scalar"),
    "bool": (lambda t: bool(t.ones(2, 3).to_sparse()), "ambiguous"),
    "exp": (lambda t: t.ones(2, 3).to_sparse().exp(), "exp"),
    "view": (lambda t: t.ones(2, 3).to_sparse().view(6), "view"),
    "eq": (lambda t: t.ones(2, 3).to_sparse() == 1, "eq"),
    "storage": (lambda t: t.ones(2, 3).to_sparse().untyped_storage(), "no memory"),
    "cat": (lambda t: t.cat([t.ones(2, 3).to_sparse(), t.ones(2, 3)]), "a dense tensor was found at position 1"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_bad_input(case):
    function, message = BAD[case]
    with pytest.raises(RuntimeError, match=message) as raised:
        function(taeda)
    torch = pytest.importorskip("torch")
    with (
        warnings.catch_warnings(),
        torch.sparse.check_sparse_tensor_invariants(True),
        pytest.raises(RuntimeError) as expected,
    ):
        warnings.simplefilter("ignore")
        function(torch)
    assert issubclass(expected.type, raised.type) or raised.type is NotImplementedError


def test_index_errors():
    x = taeda.ones(2, 3).to_sparse()
    for function in (
        lambda: x[2],
        lambda: x.select(2, 0),
        lambda: x.index_select(0, taeda.tensor([2])),
        lambda: sparse.sum(x, 2),
    ):
        with pytest.raises(IndexError):
            function()
    with pytest.raises(TypeError, match="to_dense"):
        x.numpy()
    with pytest.raises(TypeError, match="to_dense"):
        np.asarray(x)


def test_nothing_reads_elements_that_are_not_there():
    x = taeda.eye(3).to_sparse()
    calls = [
        lambda: taeda.nn.functional.softplus(x), lambda: taeda.where(taeda.ones(3, 3) > 0, x, x),
        lambda: taeda.ones(3, 3).copy_(x), lambda: taeda.ones(3, 3, layout=COO), lambda: list(x.flatten()),
        lambda: x.tolist(), lambda: x.as_strided((1,), (1,)), lambda: x.data_ptr(), lambda: taeda.ones(3, 3).mul_(x),
        lambda: x.sort(), lambda: taeda.from_dlpack(x), lambda: 1.0 in x, lambda: x.fill_(1), lambda: taeda.exp(taeda.ones(3, 3), out=x),
        lambda: taeda.add(x, x, out=taeda.ones(3, 3)), lambda: x[0:1], lambda: x.__setitem__(0, 1), lambda: x.max(),
        lambda: x.backward(), lambda: x.share_memory_(), lambda: taeda.bmm(x.unsqueeze(0), x), lambda: x.mean(),
    ]  # fmt: skip
    for call in calls:
        with pytest.raises((NotImplementedError, RuntimeError, TypeError)):
            call()
    with pytest.warns(UserWarning, match="copy construct"):
        copied = taeda.tensor(x, dtype=taeda.float64)
    assert copied.to_dense().tolist() == np.eye(3).tolist()
    assert taeda.as_tensor(x) is x


def test_indices_changed_after_the_check_do_no_harm():
    x = taeda.sparse_csr_tensor([0, 1, 2], [0, 1], [1.0, 2.0])
    x.col_indices()[0] = 10**12
    with pytest.raises(IndexError, match="out of bounds"):
        x @ taeda.ones(2, 3)
    x.col_indices()[0] = -1
    with pytest.raises(IndexError, match="out of bounds"):
        x.t() @ taeda.ones(2, 1)
    x.crow_indices()[1] = -5
    for call in (lambda: x @ taeda.ones(2, 3), lambda: x.to_dense()):
        with pytest.raises(IndexError, match="out of"):
            call()
    y = taeda.sparse_coo_tensor([[0], [1]], [1.0], (2, 2))
    assert (y @ taeda.eye(2)).tolist() == [[0.0, 1.0], [0.0, 0.0]]
    y._indices()[0, 0] = 1
    assert (y @ taeda.eye(2)).tolist() == [[0.0, 0.0], [0.0, 1.0]]
    y._indices()[0, 0] = 9
    with pytest.raises(IndexError):
        y @ taeda.eye(2)


def test_printing():
    x = taeda.sparse_coo_tensor([[0, 1], [2, 0]], [3.0, 4.0], (2, 3), dtype=taeda.float64)
    text = """tensor(indices=tensor([[0, 1],
                       [2, 0]]),
       values=tensor([3., 4.]),
       size=(2, 3), nnz=2, dtype=taeda.float64, layout=taeda.sparse_coo)"""
    assert repr(x) == text
    assert repr(x.float().requires_grad_()).endswith(
        "nnz=2, layout=taeda.sparse_coo, requires_grad=True)"
    )
    assert (
        repr(x.to_sparse_csr())
        == """tensor(crow_indices=tensor([0, 1, 2]),
       col_indices=tensor([2, 0]),
       values=tensor([3., 4.]), size=(2, 3), nnz=2, dtype=taeda.float64,
       layout=taeda.sparse_csr)"""
    )
    assert "values=tensor([], size=(0,))" in repr(taeda.sparse_coo_tensor((2,)))


# ---- files and copies ---------------------------------------------------------------------------


@pytest.mark.parametrize("layout", LAYOUTS)
def test_copies_and_files(layout):
    x = random_matrix(4, 5, 6).to_sparse(layout=layout).requires_grad_()
    stream = io.BytesIO()
    taeda.save({"x": x}, stream)
    loaded = taeda.load(io.BytesIO(stream.getvalue()))["x"]
    for y in (
        copy.deepcopy(x),
        pickle.loads(pickle.dumps(x)),
        loaded,
        copy.copy(x),
        x.clone(),
        x.detach(),
    ):
        assert y.layout is layout and tuple(y.shape) == (4, 5)
        agree(y.detach(), dense_of(x.detach()))
    assert copy.deepcopy(x).requires_grad and not x.detach().requires_grad
    torch = pytest.importorskip("torch")
    theirs = torch.load(io.BytesIO(stream.getvalue()))["x"]
    np.testing.assert_array_equal(theirs.to_dense().detach().numpy(), dense_of(x.detach()).numpy())
    stream = io.BytesIO()
    torch.save(theirs.detach(), stream)
    agree(taeda.load(io.BytesIO(stream.getvalue())), dense_of(x.detach()))


def test_a_damaged_file_is_refused():
    from taeda.serialization import _rebuild

    parts = (taeda.tensor([[0, 9]]), taeda.ones(2), taeda.Size((3,)), False)
    with pytest.raises(pickle.UnpicklingError, match="badly made"):
        _rebuild.rebuild_sparse_tensor(taeda.sparse_coo, parts)
    with pytest.raises(pickle.UnpicklingError):
        _rebuild.rebuild_sparse_tensor(taeda.strided, parts)


@pytest.mark.parametrize("dtype", [taeda.float32, taeda.float64])
@pytest.mark.parametrize("wrong", [-1, 5, 10**12, -(2**63)])
def test_products_with_vectors_check_every_index(dtype, wrong):
    """A row of 11 elements is two times four, a pair and one."""
    start = [0, 0, 11, 14]
    v = taeda.arange(5, dtype=dtype)
    for at in range(14):
        columns = taeda.arange(14) % 5
        x = taeda.sparse_csr_tensor(start, columns, taeda.ones(14, dtype=dtype), (3, 5))
        want = v[columns]
        assert (x @ v).tolist() == [0, want[:11].sum().item(), want[11:].sum().item()]
        x.col_indices()[at] = wrong
        with pytest.raises(IndexError, match="out of bounds"):
            x @ v
    for at, to in ((1, -1), (1, 12), (2, 15), (2, 10**15), (1, -(2**63))):
        x = taeda.sparse_csr_tensor(
            start, taeda.arange(14) % 5, taeda.ones(14, dtype=dtype), (3, 5)
        )
        x.crow_indices()[at] = to
        with pytest.raises(IndexError, match="out of"):
            x @ v


def test_in_a_module():
    module = taeda.nn.Module()
    module.register_buffer("adjacency", taeda.eye(3).to_sparse())
    module.double()
    assert module.adjacency.dtype == taeda.float64 and module.state_dict()["adjacency"].is_sparse


# ---- products -----------------------------------------------------------------------------------

DTYPES = [
    taeda.float32,
    taeda.float64,
    taeda.complex64,
    taeda.complex128,
    taeda.float16,
    taeda.bfloat16,
    taeda.int64,
    taeda.int32,
]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("width", [0, 1, 3, 16, 70])
def test_products(shape, width, layout):
    x = random_matrix(*shape)
    expected = dense_of(x)
    x = x if layout is COO else x.to_sparse_csr()
    right, left = (
        taeda.randn(shape[1], width, dtype=taeda.float64),
        taeda.randn(width, shape[0], dtype=taeda.float64),
    )
    for product in (
        x @ right,
        sparse.mm(x, right),
        taeda.mm(x, right),
        x.matmul(right),
        x.mm(right.t().contiguous().t()),
    ):
        close(product, expected @ right)
    close(left @ x, left @ expected)
    close(x.mv(right.sum(1)), expected.mv(right.sum(1)))
    close(left.sum(0) @ x, left.sum(0) @ expected)
    start = taeda.randn(shape[0], width, dtype=taeda.float64)
    close(sparse.addmm(start, x, right, beta=2.0, alpha=0.5), 2 * start + 0.5 * (expected @ right))
    close(taeda.addmm(start, x, right), start + expected @ right)
    agree(x @ x.t().to_sparse(layout=layout), expected @ expected.t())


@pytest.mark.parametrize("dtype", DTYPES)
def test_dtypes(dtype):
    x = random_matrix(6, 5, 12, dtype, duplicates=False)
    right = taeda.randn(5, 37).mul(3).to(dtype)
    wide = taeda.float32 if dtype in (taeda.float16, taeda.bfloat16) else dtype
    expected = (dense_of(x).to(wide) @ right.to(wide)).to(dtype)
    assert sparse.mm(x, right).dtype == dtype
    close(sparse.mm(x, right), expected)
    assert sparse.mm(x.coalesce(), right).tolist() == sparse.mm(x.to_sparse_csr(), right).tolist()
    agree(x + x, 2 * dense_of(x))


def test_bools_add_up_to_bools():
    x = taeda.sparse_coo_tensor([[0, 0]], [True, True], (2,))
    assert x.coalesce().values().tolist() == [True] and x.to_dense().tolist() == [True, False]


def test_the_result_does_not_depend_on_threads():
    x = random_matrix(500, 400, 20000, taeda.float32)
    right = taeda.randn(400, 33)
    before = taeda.get_num_threads()
    results = []
    try:
        for threads in (1, 2, 3):
            taeda.set_num_threads(threads)
            v = right.clone().requires_grad_()
            product = sparse.mm(x, v)
            product.square().sum().backward()
            results.append((product.detach(), v.grad))
    finally:
        taeda.set_num_threads(before)
    for product, grad in results[1:]:
        assert taeda.equal(product, results[0][0]) and taeda.equal(grad, results[0][1])


def test_infinities_and_nans_pass():
    x = taeda.sparse_coo_tensor([[0, 1], [0, 1]], [float("inf"), 1.0], (2, 2))
    product = x @ taeda.tensor([[1.0, 0.0], [float("nan"), 2.0]])
    assert product[0].isinf().tolist() == [True, False] and product.isnan().tolist() == [
        [False, True],
        [True, False],
    ]


# ---- everything else ----------------------------------------------------------------------------


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("shape", SHAPES)
def test_arithmetic(shape, layout):
    x, y = (random_matrix(*shape, seed=s) for s in (1, 2))
    a, b = dense_of(x), dense_of(y)
    if layout is CSR:
        x, y = x.to_sparse_csr(), y.to_sparse_csr()
    pairs = [
        (x + y, a + b), (x - y, a - b), (x.add(y, alpha=3), a + 3 * b), (2 * x, 2 * a), (x / 4, a / 4), (-x, -a),
        (x * taeda.tensor(2.0), 2 * a), (x * y, a * b), (x * b, a * b), (b * x, a * b), (x**2, a**2), (x.abs(), a.abs()),
        (x.relu(), a.relu()), (x.sin(), a.sin()), (b + x, a + b), (b.clone().add_(x, alpha=2), b + 2 * a), (x // 2, a // 2),
        (b - x, b - a), (x.t(), a.t()), (x.T, a.t()), (x.mT, a.t()), (x.transpose(0, 1), a.t()), (b.sparse_mask(y.coalesce() if layout is COO else y), b),
        (x.clone().mul_(3), 3 * a), (x.clone().add_(y), a + b), (x.clone().sub_(y), a - b), (x.clone().copy_(y), b), (x.clone().neg_(), -a),
        (x.sum(), a.sum()), (x.norm(), a.norm()),
    ]  # fmt: skip
    for i, (actual, expected) in enumerate(pairs):
        transposed = layout is CSR and 18 <= i < 22
        expects = taeda.sparse_csc if transposed else layout
        assert not isinstance(actual, sparse.SparseTensor) or actual.layout is expects, i
        agree(actual, expected)
    agree(x.clone().zero_(), taeda.zeros_like(a))
    agree(taeda.zeros_like(x), taeda.zeros_like(a))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_sums_and_slices(layout):
    x = random_matrix(5, 4, 9)
    a = dense_of(x)
    x = x if layout is COO else x.to_sparse_csr()
    agree(sparse.sum(x), a.sum())
    for dim in (0, 1, -1):
        agree(sparse.sum(x, dim), a.sum(dim))
    agree(sparse.sum(x, (0, 1)), a.sum())
    assert sparse.sum(x, 0, dtype=taeda.float32).dtype == taeda.float32
    index = taeda.tensor([3, 0, 3, 1])
    for dim in (0, 1):
        agree(x.index_select(dim, index), a.index_select(dim, index))
        agree(taeda.cat([x, x], dim), taeda.cat([a, a], dim))
    agree(x[2], a[2])
    agree(x[-1, 2], a[-1, 2])
    assert [dense_of(row).tolist() for row in x] == a.tolist()
    z = taeda.sparse_coo_tensor([[2, 0, 2]], taeda.arange(6.0).reshape(3, 2), (4, 2))
    b = dense_of(z)
    agree(sparse.sum(z, 0), b.sum(0))
    agree(sparse.sum(z, 1), b.sum(1))
    agree(z.index_select(1, taeda.tensor([1, 0, 1])), b.index_select(1, taeda.tensor([1, 0, 1])))
    agree(z.select(1, 1), b.select(1, 1))
    agree(z[2], b[2])


@pytest.mark.parametrize("dim", [0, 1, 2])
def test_softmax(dim):
    x = taeda.zeros(3, 4, 2, dtype=taeda.float64)
    x[0, 1:3], x[2, 2, 1], x[1, 2, 1], x[0, 0, 0] = 1.5, -2.0, 700.0, 3.0
    for sparse_dim in (3, 2):
        s = x.to_sparse(sparse_dim)
        there = taeda.zeros_like(x, dtype=taeda.bool)
        for place in s.indices().t().tolist():
            there[tuple(place)] = True
        filled = taeda.where(there, x, -float("inf"))
        expected = taeda.where(there, filled.softmax(dim), 0.0)
        agree(sparse.softmax(s, dim), expected)
        agree(sparse.log_softmax(s, dim), taeda.where(there, filled.log_softmax(dim), 0.0))
    assert sparse.softmax(x.to_sparse(), 0, dtype=taeda.float32).dtype == taeda.float32
    assert sparse.softmax(taeda.sparse_coo_tensor((2, 3)), 1)._nnz() == 0


def test_types_by_their_old_names():
    indices, values = taeda.tensor([[0, 1], [2, 0]]), taeda.tensor([3.0, 4.0])
    make = taeda.sparse.FloatTensor
    m = make(indices, values, taeda.Size([2, 3]))
    assert isinstance(m, make) and m.type() == "taeda.sparse.FloatTensor"
    assert m.to_dense().tolist() == [[0.0, 0.0, 3.0], [4.0, 0.0, 0.0]]
    assert make(indices, values).shape == (2, 3) and make(2, 3).shape == (2, 3)
    assert make((2, 3))._nnz() == 0 and make().shape == (0,)
    assert taeda.sparse.DoubleTensor(indices, values.double()).dtype == taeda.float64
    assert (make.dtype, make.layout, make.is_sparse) == (taeda.float32, taeda.sparse_coo, True)
    assert not isinstance(m, taeda.FloatTensor) and not isinstance(values, make)
    assert not isinstance(m, taeda.sparse.DoubleTensor)
    with pytest.raises(TypeError, match=r"sparse.FloatTensor: .* got \(list, list\)"):
        make([[0], [0]], [1.0])


def test_telling_that_a_tensor_is_coalesced():
    m = taeda.sparse_coo_tensor([[0, 1], [1, 0]], [1.0, 2.0], (2, 2))
    assert not m.is_coalesced() and m._coalesced_(True) is m and m.is_coalesced()
    assert m.values().tolist() == [1.0, 2.0]
    assert not m._coalesced_(False).is_coalesced()
    assert (m @ taeda.ones(2, 1)).tolist() == [[1.0], [2.0]]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_functions_that_keep_zero(layout):
    """Each op whose row says that 0 gives 0, and other names of it."""
    dense = taeda.tensor([[0.0, 0.5, 0.0], [-0.25, 0.0, 0.75]])
    x = dense.to_sparse(layout=layout)
    names = [name for name in taeda._C._op_traits("keeps_zero") if not name.endswith("_")]
    assert {"sin", "arcsin", "isnan", "round"} <= set(names)
    for name in names:
        op = getattr(taeda._C.ops, name)
        assert float(op(taeda.zeros(()))) == 0, name
        close(op(x).to_dense(), op(dense))


def test_answers_are_to_ops():
    with pytest.raises(ValueError, match="no operation 'no_such_operation'"):
        answers("no_such_operation")(lambda x: x)
