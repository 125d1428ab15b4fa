"""Switches and small functions that programs ask for, beside PyTorch's."""

from __future__ import annotations

import importlib
from collections import OrderedDict

import pytest

import taeda
from taeda import sparse


def test_switches_keep_what_they_are_set_to():
    deterministic = importlib.import_module("taeda.utils.deterministic")
    assert deterministic.fill_uninitialized_memory is True
    before = taeda.get_num_interop_threads()
    taeda.set_num_interop_threads(3)
    assert taeda.get_num_interop_threads() == 3
    taeda.set_num_interop_threads(before)
    with pytest.raises(RuntimeError, match="positive"):
        taeda.set_num_interop_threads(0)
    with taeda.autograd.set_multithreading_enabled(False):
        pass
    mkldnn = taeda.backends.mkldnn
    with mkldnn.flags(enabled=False):
        assert mkldnn.enabled is False
    assert mkldnn.enabled is True
    check = sparse.check_sparse_tensor_invariants
    with check():
        assert check.is_enabled()
        with check(False):
            assert not check.is_enabled()
    assert not check.is_enabled() and check()(lambda: check.is_enabled())()
    check.enable()
    assert check.is_enabled()
    check.disable()


def test_prefixes_of_state_dicts():
    torch = pytest.importorskip("torch")
    results = []
    for lib in (taeda, torch):
        model = lib.nn.Module()
        model.module = lib.nn.Sequential(lib.nn.Linear(1, 1), lib.nn.BatchNorm1d(1))
        state = model.state_dict()
        state["other"] = 3
        lib.nn.modules.utils.consume_prefix_in_state_dict_if_present(state, "module.")
        results.append((list(state), list(state._metadata)))
        plain = OrderedDict(a=1)
        lib.nn.modules.utils.consume_prefix_in_state_dict_if_present(plain, "module.")
        assert plain == {"a": 1}
    assert results[0] == results[1]


@pytest.mark.parametrize("shape", [(3, 3), (2, 4), (5, 2), (4, 6)])
@pytest.mark.parametrize("offsets", [[0, -1, 1], [1, 0, -1]])
def test_matrices_of_diagonals(shape, offsets):
    torch = pytest.importorskip("torch")
    ours, theirs = (
        lib.sparse.spdiags(
            lib.arange(1.0, 3 * shape[1] + 1).view(3, -1), lib.tensor(offsets), shape
        ).to_dense()
        for lib in (taeda, torch)
    )
    assert ours.tolist() == theirs.tolist()


def test_diagonals_are_checked():
    one = taeda.ones(3)
    csr = sparse.spdiags(one, taeda.tensor(1), (3, 3), layout=taeda.sparse_csr)
    assert csr.layout is taeda.sparse_csr and csr.to_dense().tolist()[0] == [0.0, 1.0, 0.0]
    with pytest.raises(RuntimeError, match="duplicate"):
        sparse.spdiags(taeda.ones(2, 3), taeda.tensor([1, 1]), (3, 3))
    with pytest.raises(RuntimeError, match="one offset for each"):
        sparse.spdiags(one, taeda.tensor([1, 2]), (3, 3))
    with pytest.raises(RuntimeError, match="layout"):
        sparse.spdiags(one, taeda.tensor(1), (3, 3), layout=taeda.strided)
