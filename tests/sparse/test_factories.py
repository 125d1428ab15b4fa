"""Factories of sparse layouts, and sparse tensors of another size, beside PyTorch's."""

from __future__ import annotations

from typing import Any

import pytest

import taeda

FACTORIES = [
    "lib.zeros((2, 3), layout=L)", "lib.zeros(2, 3, layout=L)", "lib.empty((2, 3), layout=L)",
    "lib.zeros((2, 3, 4), layout=L)", "lib.zeros((0, 2), layout=L, dtype=lib.int64)",
    "lib.zeros_like(x, layout=L)", "lib.zeros_like(x, layout=L, dtype=lib.complex64)",
    "x.new_zeros((3, 2), layout=L)", "x.new_zeros((3, 2), layout=L, dtype=lib.int32)",
    "lib.zeros((2, 3), layout=L, requires_grad=True)", "lib.zeros_like(x.to_sparse(layout=L))",
    "lib.zeros_like(x.to_sparse(layout=L), dtype=lib.float32)",
]  # fmt: skip


def parts_of(x: Any) -> Any:
    """All that tells a tensor of either library from another."""
    kind = str(x.dtype).rpartition(".")[2], str(x.layout).rpartition(".")[2], tuple(x.shape)
    if "strided" in kind[1]:
        return kind, x.tolist()
    if "coo" in kind[1]:
        found = x._indices(), x._values()
    elif "csr" in kind[1]:
        found = x.crow_indices(), x.col_indices(), x.values()
    else:
        found = x.ccol_indices(), x.row_indices(), x.values()
    return kind, x.requires_grad, [(tuple(t.shape), t.tolist()) for t in found]


@pytest.mark.parametrize("layout", ["sparse_coo", "sparse_csr", "sparse_csc"])
@pytest.mark.parametrize("text", FACTORIES)
@pytest.mark.filterwarnings("ignore:Sparse")
def test_tensors_without_elements(text: str, layout: str) -> None:
    torch = pytest.importorskip("torch")

    def outcome(lib: Any) -> Any:
        x = lib.ones(2, 3, dtype=lib.float64)
        return parts_of(eval(text, {"lib": lib, "L": getattr(lib, layout), "x": x}))

    ours = outcome(taeda)
    if text.startswith("lib.empty") and layout != "sparse_coo":
        assert ours[2][0][1][-1] == 0  # PyTorch's row pointers are what memory holds
    else:
        assert ours == outcome(torch)


def test_zeros_like_with_another_layout() -> None:
    x = taeda.ones(2, 3).to_sparse()
    assert taeda.zeros_like(x, layout=taeda.strided).tolist() == [[0] * 3] * 2
    assert taeda.zeros_like(x, layout=taeda.sparse_csr).layout is taeda.sparse_csr
    assert taeda.zeros_like(x, requires_grad=True).requires_grad


def test_they_are_added_to() -> None:
    x = taeda.zeros((2, 3), layout=taeda.sparse_coo)
    x.add_(taeda.eye(2, 3).to_sparse())
    assert x.to_dense().tolist() == taeda.eye(2, 3).tolist()


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("taeda.ones((2, 3), layout=taeda.sparse_coo)", NotImplementedError, "strided"),
        ("taeda.rand((2, 3), layout=taeda.sparse_csr)", NotImplementedError, "strided"),
        ("taeda.zeros((2, 4), layout=taeda.sparse_bsr)", RuntimeError, "without blocks"),
        ("taeda.zeros((2,), layout=taeda.sparse_csr)", RuntimeError, "2 dimensions"),
        ("taeda.zeros((2, -3), layout=taeda.sparse_coo)", RuntimeError, "negative"),
        ("taeda.zeros((2, 3), layout='x')", TypeError, "layout"),
        (
            "taeda.zeros((2, 3), layout=taeda.sparse_coo, device='meta')",
            NotImplementedError,
            "meta",
        ),
        (
            "taeda.zeros((2, 3), layout=taeda.sparse_coo, out=taeda.empty(2, 3))",
            RuntimeError,
            "strided",
        ),
    ],
)
def test_what_has_no_sparse_layout(text: str, error: type, message: str) -> None:
    with pytest.raises(error, match=message):
        eval(text, {"taeda": taeda})


RESIZES = [
    ((3, 2, 2), 2, 1), ((4, 5, 2), 2, 1), ((2, 2, 2), 2, 1), ((3, 2, 1), 2, 1),
    ((3, 2), 2, 0), ((3, 2, 2, 2), 3, 1), ((3, 2, 2, 2), 2, 2), ((3, 2), 2, 1), ((3, 2, 2), 1, 2),
    ((0, 2, 2), 2, 1), ((6,), 1, 0), ((), 0, 0), ((4, 5), 0, 2),
]  # fmt: skip


@pytest.mark.parametrize("name", ["sparse_resize_", "sparse_resize_and_clear_"])
@pytest.mark.parametrize("arguments", RESIZES)
@pytest.mark.parametrize("filled", [True, False])
@pytest.mark.filterwarnings("ignore:Sparse")
def test_resizing(name: str, arguments: Any, filled: bool) -> None:
    torch = pytest.importorskip("torch")

    def outcome(lib: Any) -> Any:
        indices = [[0, 2], [1, 0]] if filled else lib.zeros((2, 0), dtype=lib.int64)
        values = lib.tensor([[1.0, 2.0], [3.0, 4.0]])[: None if filled else 0]
        x = lib.sparse_coo_tensor(indices, values, (3, 2, 2))
        same = x
        try:
            x = getattr(x, name)(*arguments)
        except RuntimeError:
            return "an error", tuple(x.shape), x._nnz()
        return x is same, parts_of(x), x.sparse_dim(), x.dense_dim()

    assert outcome(taeda) == outcome(torch)


def test_new_dense_elements_are_zeros() -> None:
    """PyTorch leaves them as memory was."""
    x = taeda.sparse_coo_tensor([[0, 2], [1, 0]], [[1.0, 2.0], [3.0, 4.0]], (3, 2, 2))
    x.sparse_resize_((4, 5, 3), 2, 1)
    assert x._values().tolist() == [[1, 2, 3], [4, 0, 0]] and x.shape == (4, 5, 3)


def test_resizing_of_others() -> None:
    with pytest.raises(RuntimeError, match="negative"):
        taeda.sparse_coo_tensor([[0]], [1.0], (2,)).sparse_resize_((-1,), 1, 0)
    with pytest.raises(NotImplementedError, match="sparse_coo"):
        taeda.ones(2).sparse_resize_((2,), 1, 0)
    with pytest.raises(NotImplementedError, match="sparse_coo"):
        taeda.eye(2).to_sparse_csr().sparse_resize_((2, 2), 2, 0)
    x = taeda.sparse_coo_tensor([[0]], [1.0], (2,)).requires_grad_()
    with pytest.raises(RuntimeError, match="leaf"):
        x.sparse_resize_((3,), 1, 0)
    assert x.shape == (2,)
    with taeda.no_grad():
        assert x.sparse_resize_((3,), 1, 0).requires_grad
