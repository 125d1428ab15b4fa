"""Layers over channels and classes that PyTorch's module database does not have."""

import pytest

import taeda
from taeda import nn


def test_adaptive_log_softmax(torch, same, to_torch):
    taeda.manual_seed(0)
    torch.manual_seed(0)
    ours = nn.AdaptiveLogSoftmaxWithLoss(16, 20, [3, 10], head_bias=True)
    theirs = torch.nn.AdaptiveLogSoftmaxWithLoss(16, 20, [3, 10], head_bias=True)
    same(list(ours.parameters()), list(theirs.parameters()), rtol=0, atol=0)
    assert list(ours.state_dict()) == list(theirs.state_dict())
    x, target = taeda.randn(9, 16), taeda.tensor([0, 2, 3, 9, 10, 19, 1, 4, 12])
    actual, expected = ours(x, target), theirs(to_torch(x), to_torch(target))
    same(actual.output, expected.output)
    actual.loss.backward()
    expected.loss.backward()
    for a, e in zip(ours.parameters(), theirs.parameters(), strict=True):
        same(a.grad, e.grad)
    same(ours.log_prob(x), theirs.log_prob(to_torch(x)))
    same(ours.predict(x), theirs.predict(to_torch(x)))
    same(ours(x[0], target[0]), theirs(to_torch(x)[0], to_torch(target)[0]))


@pytest.mark.parametrize("cutoffs", [[], [3, 3], [0, 3], [20], [3, 2], [1.5]])
def test_adaptive_log_softmax_cutoffs(cutoffs):
    with pytest.raises(ValueError, match="cutoffs should be"):
        nn.AdaptiveLogSoftmaxWithLoss(8, 20, cutoffs)


def test_adaptive_log_softmax_bad_input():
    layer = nn.AdaptiveLogSoftmaxWithLoss(16, 20, [3, 10])
    with pytest.raises(RuntimeError, match="same size in the batch"):
        layer(taeda.zeros(4, 16), taeda.zeros(3, dtype=taeda.int64))
    with pytest.raises(RuntimeError, match=r"in \[0, 19\], but values in range \[0, 20\]"):
        layer(taeda.zeros(2, 16), taeda.tensor([0, 20]))


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5])
def test_cross_map_lrn(torch, same, to_torch, size):
    x = taeda.randn(2, 6, 3, 4)
    x[:, 0] = 0  # PyTorch's never lets go of the first channel
    ours = nn.CrossMapLRN2d(size, 0.5, 0.7, 2.0)
    theirs = torch.nn.CrossMapLRN2d(size, 0.5, 0.7, 2.0)
    same(ours(x), theirs(to_torch(x)))
    assert repr(ours) == repr(theirs)
    with pytest.raises(ValueError, match="4D"):
        ours(x[0])


def test_sync_batch_norm():
    model = nn.Sequential(nn.BatchNorm1d(3), nn.Sequential(nn.BatchNorm1d(3, affine=False)))
    synced = nn.SyncBatchNorm.convert_sync_batchnorm(model)
    assert type(synced[0]) is nn.SyncBatchNorm and type(synced[1][0]) is nn.SyncBatchNorm
    assert synced[0].weight is model[0].weight
    x = taeda.randn(5, 3)
    plain = nn.BatchNorm1d(3)
    assert taeda.equal(nn.SyncBatchNorm(3)(x), plain(x))
    with pytest.raises(ValueError, match="at least 2D"):
        synced[0](taeda.zeros(3))
