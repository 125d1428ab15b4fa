"""The four compressed layouts against dense tensors and PyTorch's."""

from __future__ import annotations

import copy
import io
import itertools
import pickle
import warnings

import numpy as np
import pytest

import taeda
from tests.sparse.matrices import agree, close

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.filterwarnings("ignore:Sparse")  # what PyTorch says of its own

NAMES = ["sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc"]
BLOCKED = NAMES[2:]
SHAPES = [(4, 6), (2, 2), (0, 4), (4, 0), (0, 0), (6, 2), (2, 4, 6), (3, 2, 2, 4), (2, 0, 4)]  # fmt: skip


def dense(lib, shape, dtype="float64", seed=0):
    """Half zeros, in every matrix of a batch as many of each row and column and block."""
    rng = np.random.default_rng(seed)
    matrix = rng.integers(1, 9, shape[-2:]) * (
        np.arange(np.prod(shape[-2:])).reshape(shape[-2:]) % 3 == 0
    )
    both = np.broadcast_to(matrix, shape) * (1 + np.arange(np.prod(shape[:-2], dtype=int))).reshape(
        *shape[:-2], 1, 1
    )
    return lib.tensor(both.tolist(), dtype=getattr(lib, dtype)).reshape(shape)


def options(lib, name, block=(2, 2)):
    return {"layout": getattr(lib, name), **({"blocksize": block} if name in BLOCKED else {})}


def parts(x):
    """Layout, size, indices and values in terms of Python."""
    layout = str(x.layout).rsplit(".", 1)[-1]
    if layout == "sparse_coo":
        tensors = [x._indices(), x._values()]
    elif layout in ("sparse_csr", "sparse_bsr"):
        tensors = [x.crow_indices(), x.col_indices(), x.values()]
    else:
        tensors = [x.ccol_indices(), x.row_indices(), x.values()]
    described = [(tuple(t.shape), str(t.dtype).rsplit(".", 1)[-1], t.tolist()) for t in tensors]
    return layout, tuple(x.shape), x._nnz(), x.sparse_dim(), x.dense_dim(), described


def compare(function, *args):
    """One function on both libraries: the same parts, or the same type of error."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = parts(function(torch, *args))
    assert parts(function(taeda, *args)) == expected


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", NAMES)
def test_from_dense_and_back(name, shape):
    compare(lambda lib: dense(lib, shape).to_sparse(**options(lib, name)))
    if shape[-1] and shape[-2]:
        compare(lambda lib: dense(lib, shape).to_sparse(**options(lib, name)).to_sparse())
    for empty in (shape, (0, *shape)):  # PyTorch has no batch of none
        x = dense(taeda, empty)
        close(x.to_sparse(**options(taeda, name)).to_dense(), x)
    assert x.to_sparse(**options(taeda, name)).to_sparse(layout=taeda.strided).equal(x)


@pytest.mark.parametrize("shape", [(4, 6), (2, 2), (2, 4, 6), (0, 4), (4, 0)])
@pytest.mark.parametrize(("one", "other"), [*itertools.product([*NAMES, "sparse_coo"], NAMES)])
def test_conversions(one, other, shape):
    def convert(lib):
        x = dense(lib, shape).to_sparse(**options(lib, one))
        return x.to_sparse(**options(lib, other))

    if one == "sparse_coo" and len(shape) > 2:
        with pytest.raises(RuntimeError, match="sparse_dim"):
            convert(taeda)
    elif (one in BLOCKED) != (other in BLOCKED) and (one in BLOCKED or len(shape) > 2):  # only here
        agree(convert(taeda).to_sparse_coo(), dense(taeda, shape))
    else:
        compare(convert)
    if len(shape) == 2:
        close(convert(taeda).to_dense(), dense(taeda, shape))


def test_methods_and_blocks():
    for name, block in itertools.product(BLOCKED, [(1, 2), (2, 3), (4, 6), (4, 1)]):
        compare(lambda lib: dense(lib, (4, 6)).to_sparse(**options(lib, name, block)))
        compare(
            lambda lib: dense(lib, (4, 6)).to_sparse_csc().to_sparse(**options(lib, name, block))
        )
        compare(lambda lib: dense(lib, (4, 6)).to_sparse().to_sparse(**options(lib, name, block)))
    compare(lambda lib: dense(lib, (4, 6)).to_sparse_bsr(2))
    compare(lambda lib: dense(lib, (4, 6)).to_sparse_bsc((2, 3)))
    compare(lambda lib: dense(lib, (4, 6)).to_sparse_csc().t())
    compare(lambda lib: dense(lib, (4, 6)).to_sparse_csr().int().to_sparse_csc())
    x = dense(taeda, (4, 6)).to_sparse_bsr((2, 2))
    assert x.to_sparse_bsr(2) is x
    close(x.to_sparse_bsr((1, 3)).to_dense(), x.to_dense())
    for lib in (taeda, torch):
        hybrid = lib.zeros(4, 6, 2)
        hybrid[0, 1, 0], hybrid[3, 5] = 1, lib.tensor([2.0, 3.0])
        for name in NAMES:
            y = hybrid.to_sparse(**options(lib, name), dense_dim=1)
            assert (y.sparse_dim(), y.dense_dim(), y._nnz()) == (2, 1, 2)
            assert y.to_dense().tolist() == hybrid.tolist()
    compare(lambda lib: dense(lib, (4, 6)).to_sparse(dense_dim=1))


def test_int32_indices_stay():
    def make(lib):
        starts, places = (lib.tensor(x, dtype=lib.int32) for x in ([0, 1, 2], [1, 0]))
        return lib.sparse_csr_tensor(starts, places, lib.tensor([1.0, 2.0]))

    compare(make)
    compare(lambda lib: make(lib).to_sparse_csc())
    compare(lambda lib: make(lib).t())
    compare(lambda lib: make(lib).to_sparse_bsr((1, 1)))
    compare(lambda lib: make(lib).to_sparse())


@pytest.mark.parametrize(
    "dtype", ["float32", "float16", "bfloat16", "complex64", "int64", "int8", "bool"]
)
@pytest.mark.parametrize("name", NAMES)
def test_dtypes(name, dtype):
    compare(lambda lib: dense(lib, (4, 6), dtype).to_sparse(**options(lib, name)))
    compare(lambda lib: dense(lib, (4, 6)).to_sparse(**options(lib, name)).to(getattr(lib, dtype)))
    if dtype != "bool":
        x = dense(taeda, (4, 6), dtype)
        close(x.to_sparse(**options(taeda, name)) @ x.t(), x @ x.t())


MADE = {
    "csr": lambda L: L.sparse_csr_tensor([0, 1, 2], [1, 4], [1.0, 2.0]),
    "csc": lambda L: L.sparse_csc_tensor([0, 1, 2], [1, 4], [1.0, 2.0]),
    "bsr": lambda L: L.sparse_bsr_tensor([0, 1, 2], [1, 0], L.arange(12.0).reshape(2, 2, 3)),
    "bsc": lambda L: L.sparse_bsc_tensor([0, 1, 2], [1, 0], L.arange(12.0).reshape(2, 2, 3)),
    "compressed": lambda L: L.sparse_compressed_tensor([0, 1, 2], [1, 0], [1, 2], (3, 2), layout=L.sparse_csc, dtype=L.float64),
    "batch": lambda L: L.sparse_csr_tensor([[0, 1], [0, 1]], [[0], [1]], [[1.0], [2.0]]),
    "dense dimension": lambda L: L.sparse_csc_tensor([0, 1, 2], [0, 1], L.ones(2, 3)),
    "no blocks": lambda L: L.sparse_bsr_tensor([0], L.tensor([], dtype=L.int64), L.ones(0, 2, 2), (0, 4)),
    "zeros": lambda L: L.zeros_like(L.eye(4).to_sparse_bsr((2, 2))),
    "chosen": lambda L: dense(L, (2, 4, 6)).to_sparse_csc()[1],
    "row": lambda L: dense(L, (4, 6)).to_sparse_csr()[0],
    "permuted": lambda L: dense(L, (3, 2, 4)).to_sparse_csr().transpose(1, 2),
    "spdiags": lambda L: L.sparse.spdiags(L.ones(1, 3), L.tensor([0]), (3, 3), layout=L.sparse_csc),
}  # fmt: skip


@pytest.mark.parametrize("case", MADE)
def test_made_alike(case):
    compare(MADE[case])


BAD = {
    "no layout": lambda L: L.sparse_compressed_tensor([0, 1], [0], [1.0]),
    "coo": lambda L: L.sparse_compressed_tensor([0, 1], [0], [1.0], layout=L.sparse_coo),
    "rows": lambda L: L.sparse_csc_tensor([0, 1, 2], [0, 3], [1.0, 2.0], (2, 2), check_invariants=True),
    "columns": lambda L: L.sparse_csc_tensor([0, 1], [0], [1.0], (4, 2), check_invariants=True),
    "falls": lambda L: L.sparse_csc_tensor([0, 2, 1], [0, 1], [1.0, 2.0], (2, 2), check_invariants=True),
    "blocks": lambda L: L.sparse_bsr_tensor([0, 1, 2], [0, 1], L.ones(2, 2, 3), (4, 7), check_invariants=True),
    "vector of blocks": lambda L: L.sparse_bsc_tensor([0, 1, 2], [0, 1], L.ones(2), (4, 6), check_invariants=True),
    "unsorted": lambda L: L.sparse_csr_tensor([0, 2, 2], [1, 0], [1.0, 2.0], (2, 2), check_invariants=True),
    "twice": lambda L: L.sparse_csc_tensor([0, 2, 2], [0, 0], [1.0, 2.0], (2, 2), check_invariants=True),
    "batch": lambda L: L.sparse_csr_tensor([[0, 1], [0, 1]], [[0]], [[1.0]], (2, 1, 1), check_invariants=True),
    "blocksize missing": lambda L: L.ones(4, 4).to_sparse(layout=L.sparse_bsr),
    "blocksize given": lambda L: L.ones(4, 4).to_sparse(layout=L.sparse_csc, blocksize=(2, 2)),
    "coo blocksize": lambda L: L.ones(4, 4).to_sparse(blocksize=(2, 2)),
    "not divided": lambda L: L.ones(4, 4).to_sparse_bsr((3, 2)),
    "blocksize 0": lambda L: L.ones(4, 4).to_sparse_bsc((0, 2)),
    "vector": lambda L: L.ones(4).to_sparse_csc(),
    "uneven": lambda L: L.stack([L.eye(2), L.ones(2, 2)]).to_sparse_csr(),
    "sparse_dim": lambda L: L.ones(2, 2, 2).to_sparse().to_sparse_csc(),
    "to_sparse(1)": lambda L: L.eye(2).to_sparse_csc().to_sparse(1),
    "dense_dim": lambda L: L.eye(2).to_sparse_csr().to_sparse_csr(dense_dim=1),
    "both": lambda L: L.eye(2).to_sparse(1, layout=L.sparse_csr),
    "csr rows": lambda L: L.eye(2).to_sparse_csr().row_indices(),
    "csc columns": lambda L: L.eye(2).to_sparse_csc().col_indices(),
    "dense rows": lambda L: L.eye(2).ccol_indices(),
    "bsc coalesce": lambda L: L.eye(2).to_sparse_bsc(1).coalesce(),
    "batch and rows": lambda L: dense(L, (2, 2, 4)).to_sparse_csr().transpose(0, 1),
    "equal": lambda L: L.eye(2).to_sparse_csc() == L.eye(2).to_sparse_csc(),
    "numpy": lambda L: L.eye(2).to_sparse_bsr(1).numpy(),
    "spdiags": lambda L: L.sparse.spdiags(L.ones(1, 3), L.tensor([0]), (3, 3), layout=L.sparse_bsr),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_bad_input(case):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(Exception) as expected:
            BAD[case](torch)
    with pytest.raises((RuntimeError, IndexError, TypeError)) as raised:
        BAD[case](taeda)
    assert raised.type is expected.type or raised.type is NotImplementedError, raised.value


def test_the_order_of_indices_is_checked_where_wanted():
    unsorted = [0, 2, 2], [1, 0], [1.0, 2.0], (2, 2)
    assert taeda.sparse_csr_tensor(*unsorted).to_dense().tolist() == [[2.0, 1.0], [0.0, 0.0]]
    with taeda.sparse.check_sparse_tensor_invariants():
        with pytest.raises(RuntimeError, match="col_indices must be sorted and distinct"):
            taeda.sparse_csr_tensor(*unsorted)
        taeda.sparse_csr_tensor(*unsorted, check_invariants=False)
        for name, shape in itertools.product(NAMES, SHAPES):
            x = dense(taeda, shape).to_sparse(**options(taeda, name))
            pickle.loads(pickle.dumps(x))


@pytest.mark.parametrize("name", NAMES)
def test_printing(name):
    for shape in [(4, 6), (2, 4, 6), (2, 0)]:
        for dtype in ("float32", "float64"):
            ours, theirs = (
                dense(lib, shape, dtype).to_sparse(**options(lib, name)) for lib in (taeda, torch)
            )
            assert repr(ours) == repr(theirs).replace("torch.", "taeda.")
    assert repr(ours.requires_grad_()).endswith("requires_grad=True)")


@pytest.mark.parametrize("shape", [(4, 6), (2, 4, 6), (0, 4)])
@pytest.mark.parametrize("name", NAMES)
def test_copies_and_files(name, shape):
    x = dense(taeda, shape).to_sparse(**options(taeda, name))
    expected = parts(x)
    for y in (copy.deepcopy(x), copy.copy(x), pickle.loads(pickle.dumps(x)), x.clone(), x.detach()):
        assert parts(y) == expected
    stream = io.BytesIO()
    taeda.save({"x": x}, stream)
    for lib in (taeda, torch):
        stream.seek(0)
        assert parts(lib.load(stream)["x"]) == expected
    stream = io.BytesIO()
    torch.save(dense(torch, shape).to_sparse(**options(torch, name)), stream)
    stream.seek(0)
    assert parts(taeda.load(stream)) == expected
    assert x.clone().mul_(2).to_dense().equal(2 * dense(taeda, shape))


@pytest.mark.parametrize("shape", [(4, 6), (2, 2), (0, 4), (4, 0)])
@pytest.mark.parametrize("name", NAMES)
def test_arithmetic(name, shape):
    a, b = dense(taeda, shape), dense(taeda, shape, seed=1).flip(0)
    x, y = (t.to_sparse(**options(taeda, name)) for t in (a, b))
    same = [(x + y, a + b), (x - y, a - b), (2 * x, 2 * a), (x / 4, a / 4), (-x, -a), (x * y, a * b), (x * b, a * b),
            (x.sin(), a.sin()), (b.sparse_mask(x) * x, a * b), (x.clone().add_(y), a + b), (x.clone().copy_(y), b),
            (taeda.zeros_like(x), 0 * a), (x.clone().zero_(), 0 * a)]  # fmt: skip
    for i, (actual, expected) in enumerate(same):
        assert actual.layout == getattr(taeda, name), i
        close(actual.to_dense(), expected)
    for transposed in (x.t(), x.mT, x.transpose(0, 1), x.permute(1, 0)):
        close(transposed.to_dense(), a.t())
        assert parts(transposed.t()) == parts(x)
    for actual, expected in [
        (b + x, a + b),
        (b.clone().add_(x), a + b),
        (x.sum(), a.sum()),
        (x.norm(), a.norm()),
    ]:
        close(actual, expected)
    if shape[0] and shape[1]:
        agree(x[-1], a[-1])
        agree(x.index_select(1, taeda.tensor([1, 0])), a.index_select(1, taeda.tensor([1, 0])))


@pytest.mark.parametrize("shape", [(4, 6), (2, 2), (0, 4), (4, 0), (40, 30)])
@pytest.mark.parametrize("name", NAMES)
def test_products(name, shape):
    a = dense(taeda, shape)
    x = a.to_sparse(**options(taeda, name))
    right, left = (taeda.randn(n, 3, dtype=taeda.float64) for n in (shape[1], shape[0]))
    for _ in range(2):  # the second finds what the first kept
        close(x @ right, a @ right)
        close(left.t() @ x, left.t() @ a)
    close(x @ right[:, 0], a @ right[:, 0])
    close(left[:, 0] @ x, left[:, 0] @ a)
    close(taeda.addmm(left, x, right, alpha=2), taeda.addmm(left, a, right, alpha=2))
    close(taeda.nn.functional.linear(right.t(), x), right.t() @ a.t())
    for other in NAMES:
        product = x @ a.t().to_sparse(**options(taeda, other))
        assert product.layout is taeda.sparse_csr
        close(product.to_dense(), a @ a.t())
    changed = x.values()
    with taeda.no_grad():
        changed.mul_(3)
    close(x @ right, 3 * a @ right)


@pytest.mark.parametrize("name", NAMES)
def test_gradients(name):
    a = dense(taeda, (4, 6)).requires_grad_()
    right = taeda.randn(6, 3, dtype=taeda.float64, requires_grad=True)

    def through(function):
        return lambda a: function(a.to_sparse(**options(taeda, name)))

    mask = a.detach().to_sparse(**options(taeda, name))
    pattern = (taeda.ones(4, 6).sparse_mask(mask)).to_dense()
    for function in (lambda s: s.to_dense(), lambda s: s.t().to_dense(), lambda s: s @ right, lambda s: s.values(),
                     lambda s: s.to_sparse(**options(taeda, "sparse_bsc")).to_dense(),
                     lambda s: (s * s + s).to_dense(), lambda s: s.sin().to_sparse_csc() @ right):  # fmt: skip
        result = through(function)(a)
        weights = taeda.randn(result.shape, dtype=taeda.float64)
        (grad,) = taeda.autograd.grad((result * weights).sum(), a)
        x = a.detach().to_sparse(**options(taeda, name)).requires_grad_()
        (function(x) * weights).sum().backward()
        assert x.grad.layout == x.layout
        close(x.grad.to_dense(), grad)
        assert not (grad * (1 - pattern)).any()
    assert taeda.autograd.gradcheck(lambda r: mask @ r, (right,))
    for masked in (True, False):
        x = a.detach().to_sparse(**options(taeda, name)).requires_grad_()
        assert taeda.autograd.gradcheck(lambda s: (s @ right.detach()).sin(), (x,), masked=masked)
    for lib in (taeda, torch):
        base = dense(lib, (4, 6)).requires_grad_()
        base.to_sparse(**options(lib, name)).values().sum().backward()
        assert base.grad.tolist() == pattern.tolist()


def test_copies_of_parts():
    compare_parts = [
        (name, layout)
        for names, layouts in ((("crow", "col"), ("csr", "bsr")), (("ccol", "row"), ("csc", "bsc")))
        for name in names
        for layout in layouts
    ]
    for name, layout in compare_parts:
        x = dense(taeda, (4, 6)).to_sparse(**options(taeda, f"sparse_{layout}"))
        copied = getattr(taeda, f"{name}_indices_copy")(x)
        assert copied.equal(getattr(x, f"{name}_indices")())
        assert copied.data_ptr() != getattr(x, f"{name}_indices")().data_ptr()


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
def test_products_of_every_width(dtype):
    """Registers of columns, and the last of them, which may overlap those before."""
    rng = np.random.default_rng(0)
    starts = taeda.tensor(np.concatenate([[0], np.cumsum([0, 1, 2, 3, 4, 5, 7, 8, 13])]))
    columns = taeda.tensor(rng.integers(0, 11, 43))
    ones = taeda.ones(43, dtype=getattr(taeda, dtype))
    for width in [*range(1, 40), 63, 64, 65, 127, 129, 200]:
        x = taeda.tensor(rng.integers(-9, 9, (11, width))).to(ones.dtype)
        rows = [x[columns[a:b]].sum(0) for a, b in itertools.pairwise(starts.tolist())]
        assert taeda._C.ops._csr_mm(starts, columns, ones, x).equal(taeda.stack(rows))
        assert taeda._C.ops._csr_mm(starts, columns, None, x).equal(taeda.stack(rows))
        bags = columns[:42].reshape(6, 7)
        sums = taeda.nn.functional.embedding_bag(bags, x.double(), mode="sum")
        assert sums.equal(x.double()[bags].sum(1))


def test_gradients_of_bags_without_weights():
    table = taeda.randn(7, 5, dtype=taeda.float64, requires_grad=True)
    indices, offsets = taeda.tensor([0, 3, 3, 6, 1]), taeda.tensor([0, 2, 2])
    for mode in ("sum", "mean"):
        assert taeda.autograd.gradcheck(
            lambda w, mode=mode: taeda.nn.functional.embedding_bag(indices, w, offsets, mode=mode),
            (table,),
        )
