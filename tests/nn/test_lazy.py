"""Lazy layers, against the layers that they become."""

import copy
import pickle

import pytest

import taeda
from taeda import nn

CASES = [
    ("Conv1d", (8, 3), {"padding": 1}, (2, 4, 9)),
    ("Conv2d", (8, 3), {"groups": 2}, (2, 4, 6, 5)),
    ("Conv2d", (8, 3), {}, (4, 6, 5)),
    ("Conv3d", (8, 2), {"bias": False}, (2, 4, 3, 4, 5)),
    ("ConvTranspose1d", (8, 3), {"stride": 2}, (2, 4, 9)),
    ("ConvTranspose2d", (8, 3), {"groups": 2}, (2, 4, 6, 5)),
    ("ConvTranspose3d", (8, 2), {"padding": 1}, (2, 4, 3, 4, 5)),
    ("BatchNorm1d", (), {}, (3, 4)),
    ("BatchNorm2d", (), {"affine": False}, (3, 4, 2, 2)),
    ("BatchNorm3d", (), {"bias": False}, (3, 4, 2, 2, 2)),
    ("InstanceNorm1d", (), {"affine": True, "track_running_stats": True}, (4, 5)),
    ("InstanceNorm2d", (), {"affine": True, "track_running_stats": True}, (3, 4, 2, 2)),
    ("InstanceNorm3d", (), {"affine": True, "track_running_stats": False}, (3, 4, 2, 2, 2)),
]


@pytest.mark.parametrize(("name", "args", "kwargs", "shape"), CASES)
def test_becomes_the_layer(name, args, kwargs, shape):
    lazy = getattr(nn, "Lazy" + name)(*args, **kwargs)
    restored = pickle.loads(pickle.dumps(lazy))
    assert lazy.has_uninitialized_params() == any(
        nn.parameter.is_lazy(p) for p in [*lazy.parameters(), *lazy.buffers()]
    )
    x = taeda.rand(shape)
    taeda.manual_seed(3)
    result = lazy(x)
    taeda.manual_seed(3)
    layer = getattr(nn, name)(4, *args, **kwargs)
    assert type(lazy) is type(layer) and repr(lazy) == repr(layer)
    assert taeda.equal(result, layer(x))
    assert list(lazy.state_dict()) == list(layer.state_dict())
    for a, b in zip(lazy.state_dict().values(), layer.state_dict().values(), strict=True):
        assert taeda.equal(a, b)
    # One that was never run takes its shapes from what it loads; so does a copy of it.
    for other in (restored, copy.deepcopy(restored)):
        other.load_state_dict(layer.state_dict())
        assert not other.has_uninitialized_params()
        assert taeda.equal(other.eval()(x), layer.eval()(x))
        layer.train()


def test_state_of_a_lazy_module_stays_lazy():
    lazy = nn.LazyBatchNorm1d()
    assert nn.parameter.is_lazy(lazy.state_dict()["weight"])
    assert nn.parameter.is_lazy(lazy.state_dict()["running_mean"])
    nn.LazyBatchNorm1d().load_state_dict(lazy.state_dict())


def test_what_has_no_shape_cannot_be_used():
    lazy = nn.LazyConv2d(4, 3).to(taeda.float64)
    assert lazy.weight.dtype == taeda.float64
    with pytest.raises(RuntimeError, match="shape"):
        _ = lazy.weight.shape
    with pytest.raises(ValueError, match="mul: an uninitialized parameter"):
        _ = lazy.weight * 2
    with pytest.raises(ValueError, match="uninitialized"):
        nn.LazyBatchNorm2d().running_mean.add_(1)


def test_wrong_inputs_leave_it_lazy():
    lazy = nn.LazyConv2d(4, 3, groups=2)
    for shape in [(5, 5), (1, 2, 5, 5, 5)]:
        with pytest.raises(RuntimeError, match="LazyConv2d: expected 3D"):
            lazy(taeda.zeros(shape))
    with pytest.raises(ValueError, match="divisible"):
        lazy(taeda.zeros(1, 3, 5, 5))
    assert lazy.has_uninitialized_params()
    assert lazy(taeda.zeros(1, 2, 5, 5)).shape == (1, 4, 3, 3)


def test_an_uninitialized_parameter_has_no_number_of_elements():
    layer = nn.LazyLinear(3)
    for name in ("numel", "nelement", "dim", "stride", "is_contiguous", "data_ptr"):
        with pytest.raises(ValueError, match=f"^{name}: an uninitialized"):
            getattr(layer.weight, name)()
    layer(taeda.ones(1, 2))
    assert layer.weight.numel() == 6
