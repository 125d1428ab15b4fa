"""`ops.aten`: taeda's operations by PyTorch's names, and what packages call with an underscore."""

from __future__ import annotations

import copy

import pytest

import taeda


def test_operations_by_name():
    aten = taeda.ops.aten
    x = taeda.arange(6.0).view(2, 3)
    assert taeda.equal(aten.add(x, 1, alpha=2), x + 2)
    assert taeda.equal(aten.add.Tensor(x, x), 2 * x)
    assert aten.select.int(x, 1, 0).tolist() == [0.0, 3.0]
    assert taeda.equal(aten.cat.default([x, x], 0), taeda.cat([x, x]))
    y = x.clone()
    assert aten.add_.Tensor(y, 1) is y and taeda.equal(y, x + 1)
    assert aten.clone is aten.clone and aten.clone.default is aten.clone.default
    assert len({aten.clone.default, aten.clone, aten.add.Tensor, aten.add.default}) == 4
    assert aten.add.Tensor.overloadpacket is aten.add and aten.add.Tensor.namespace == "aten"
    assert str(aten.add.Tensor) == "aten.add.Tensor" and str(aten.add) == "aten.add"
    assert aten.add.Tensor.name() == "aten::add.Tensor" and aten.add.default.name() == "aten::add"
    assert repr(aten.add) == "<OpOverloadPacket(op='aten.add')>"
    assert aten.add.__name__ == "add" and aten.add.Tensor.op is aten.add.op


def test_operations_that_are_missing():
    with pytest.raises(AttributeError, match="no_such_thing"):
        _ = taeda.ops.aten.no_such_thing
    with pytest.raises(AttributeError, match="'aten.add' has no overload name 'such'"):
        _ = taeda.ops.aten.add.such
    assert not hasattr(taeda.ops.aten, "__wrapped__")
    with pytest.raises(RuntimeError, match="pinned memory .* needs a CUDA device"):
        taeda.ops.aten._pin_memory.default(taeda.ones(1))


def test_gradients_flow():
    x = taeda.ones(3, requires_grad=True)
    taeda.ops.aten.mul.Tensor(x, 3).sum().backward()
    assert x.grad.tolist() == [3.0] * 3


def test_products_with_sparse_matrices():
    m = taeda.eye(2).to_sparse()
    out = taeda.ops.aten._sparse_addmm(taeda.ones(2, 2), m, 3 * taeda.ones(2, 2), beta=2)
    assert out.tolist() == [[5.0, 5.0], [5.0, 5.0]]


def test_rows_from_starts_and_back():
    rows, columns = taeda.tensor([0, 0, 2]), taeda.tensor([4, 5, 6])
    starts = taeda._convert_indices_from_coo_to_csr(rows, 4)
    assert starts.tolist() == [0, 2, 2, 3, 3]
    assert taeda._convert_indices_from_coo_to_csr(rows, 4, out_int32=True).dtype == taeda.int32
    assert taeda._convert_indices_from_coo_to_csr(rows[:0], 2).tolist() == [0, 0, 0]
    back = taeda._convert_indices_from_csr_to_coo
    assert back(starts, columns).tolist() == [[0, 0, 2], [4, 5, 6]]
    assert back(starts.int(), columns.int(), transpose=True).tolist() == [[4, 5, 6], [0, 0, 2]]
    assert back(starts, columns, out_int32=True).dtype == taeda.int32
    with pytest.raises(RuntimeError, match=r"rows must be in \[0, 2\)"):
        taeda._convert_indices_from_coo_to_csr(rows, 2)
    with pytest.raises(RuntimeError, match="1 dimension"):
        taeda._convert_indices_from_coo_to_csr(rows[None], 4)
    with pytest.raises(NotImplementedError, match="int32 or int64"):
        taeda._convert_indices_from_coo_to_csr(rows.float(), 4)
    with pytest.raises(RuntimeError, match="ascend from 0 to 2"):
        back(starts, columns[:2])


def test_rows_as_in_pytorch():
    torch = pytest.importorskip("torch")
    rows = [0, 0, 1, 4, 4, 4]
    for out_int32 in (False, True):
        ours = taeda._convert_indices_from_coo_to_csr(taeda.tensor(rows), 6, out_int32=out_int32)
        theirs = torch._convert_indices_from_coo_to_csr(torch.tensor(rows), 6, out_int32=out_int32)
        assert ours.tolist() == theirs.tolist() and str(ours.dtype)[6:] == str(theirs.dtype)[6:]


def test_names_with_an_underscore():
    x = taeda.tensor([1.0, 2.0, 3.0])
    sums = taeda._segment_reduce(x, "sum", offsets=taeda.tensor([0, 1, 3]))
    assert sums.tolist() == [1.0, 5.0]
    taeda.manual_seed(0)
    drawn = taeda._standard_gamma(x)
    taeda.manual_seed(0)
    assert taeda.equal(drawn, taeda.distributions.Gamma(x, taeda.ones(3)).sample())


def test_layouts():
    assert len({taeda.sparse_csc, taeda.sparse_bsr, taeda.sparse_bsc, taeda.sparse_csr}) == 4
    assert taeda.eye(2).to_sparse_csr().layout != taeda.sparse_csc
    assert taeda.eye(2).to_sparse(layout=taeda.sparse_csc).layout is taeda.sparse_csc
    with pytest.raises((NotImplementedError, RuntimeError, TypeError)):
        taeda.zeros(2, 2, layout=taeda.sparse_bsr)


def test_ops_copy_as_themselves():
    for op in (taeda.ops.aten.add, taeda.ops.aten.add.Tensor):
        assert copy.deepcopy(op) is op
