"""nn.init.defaults: how modules set up their parameters."""

import copy
import math
import pickle

import pytest

import taeda
from taeda import nn
from taeda.nn import init


@pytest.fixture(autouse=True)
def seed():
    taeda.manual_seed(0)
    yield
    assert init._scheme == "torch"


def test_context_and_process_setting():
    plain = nn.Linear(64, 32)
    with init.defaults("2026"):
        with init.defaults("torch"):
            assert repr(nn.Linear(2, 3)) == "Linear(in_features=2, out_features=3, bias=True)"
        modern = nn.Linear(64, 32)
    assert repr(modern) == "Linear(in_features=64, out_features=32, bias=True, init='2026')"
    assert modern.state_dict()._metadata[""] == {"version": 1, "init": "2026"}
    assert plain.state_dict()._metadata[""] == {"version": 1}
    init.defaults("2026")
    assert "init='2026'" in repr(nn.Conv1d(1, 1, 1))
    init.defaults("torch")
    for other in (copy.deepcopy(modern), pickle.loads(pickle.dumps(modern))):
        assert repr(other) == repr(modern)
    modern.reset_parameters()  # now in the way that is set now
    assert repr(modern) == repr(plain)
    with pytest.raises(ValueError, match="'1999'"):
        init.defaults("1999")


def check(weight, fan_in):
    std = math.sqrt(1 / fan_in)
    assert float(weight.std()) == pytest.approx(std, rel=0.1)
    assert float(weight.abs().max()) <= 2 * std / init._CUT_STD + 1e-6


@pytest.mark.parametrize(
    ("make", "fan_in"),
    [
        (lambda: nn.Linear(64, 50), 64),
        (lambda: nn.Conv2d(8, 20, 3), 72),
        (lambda: nn.Conv2d(8, 40, 3, groups=2), 36),
        (lambda: nn.ConvTranspose2d(16, 10, 4, stride=2), 64),
        (lambda: nn.Bilinear(9, 8, 20), 72),
        (lambda: nn.Embedding(100, 36), 36),
        (lambda: nn.LazyLinear(50), 64),
    ],
)
def test_weights_by_their_fan_in(make, fan_in):
    with init.defaults("2026"):
        layer = make()
        if isinstance(layer, nn.LazyLinear):
            layer(taeda.zeros(1, 64))
    check(layer.weight, fan_in)
    if getattr(layer, "bias", None) is not None:
        assert int(layer.bias.count_nonzero()) == 0


def test_variance_stays_through_layers():
    with init.defaults("2026"):
        model = nn.Sequential(*(nn.Linear(200, 200) for _ in range(4)))
        up = nn.ConvTranspose2d(32, 32, 4, stride=2)
    assert float(model(taeda.randn(100, 200)).var()) == pytest.approx(1, rel=0.3)
    inner = up(taeda.randn(4, 32, 12, 12))[..., 3:-3, 3:-3]
    assert float(inner.var()) == pytest.approx(1, rel=0.3)


@pytest.mark.parametrize("make", [lambda: nn.LSTM(12, 20, 2), lambda: nn.LSTMCell(12, 20)])
def test_recurrent(make):
    with init.defaults("2026"):
        layer = make()
    values = dict(layer.named_parameters())
    suffix = "_l0" if "weight_hh_l0" in values else ""
    for gate in values["weight_hh" + suffix].split(20):
        assert taeda.allclose(gate @ gate.t(), taeda.eye(20), atol=1e-5)
    bias = values["bias_ih" + suffix] + values["bias_hh" + suffix]
    assert bias.reshape(4, 20).tolist() == [[float(i == 1)] * 20 for i in range(4)]
    assert "init='2026'" in repr(layer)


@pytest.mark.parametrize("norm_first", [True, False])
def test_residual_branches_start_at_zero(norm_first):
    with init.defaults("2026"):
        encoder = nn.TransformerEncoderLayer(8, 2, 16, norm_first=norm_first)
        decoder = nn.TransformerDecoderLayer(8, 2, 16, norm_first=norm_first)
        whole = nn.Transformer(8, 2, 1, 1, 16)
    x = taeda.randn(5, 2, 8)
    for output in (encoder(x), decoder(x, x)):
        assert taeda.equal(output, x) == norm_first
    assert int(whole.encoder.layers[0].linear2.weight.count_nonzero()) == 0
    assert "init='2026'" in repr(whole) and "Transformer(\n  (encoder)" in repr(whole)
    assert int(encoder.linear1.weight.count_nonzero()) > 0
    plain = nn.TransformerEncoderLayer(8, 2, 16)
    assert int(plain.linear2.weight.count_nonzero()) > 0


def test_state_can_be_loaded_either_way():
    with init.defaults("2026"):
        modern = nn.Linear(3, 4)
    plain = nn.Linear(3, 4)
    plain.load_state_dict(modern.state_dict())
    assert taeda.equal(plain.weight, modern.weight)


def test_generators():
    def drawn(fill, shape=(6, 5)):
        taeda.manual_seed(1)  # must make no difference
        generator = taeda.Generator().manual_seed(3)
        return fill(taeda.empty(shape), generator=generator)

    for name in ("uniform_", "normal_", "trunc_normal_", "xavier_uniform_", "xavier_normal_",
                 "kaiming_uniform_", "kaiming_normal_", "orthogonal_", "lecun_normal_"):  # fmt: skip
        fill = getattr(init, name)
        first = drawn(fill)
        taeda.manual_seed(7)
        taeda.rand(3)
        assert taeda.equal(first, drawn(fill)), name
    assert taeda.equal(
        drawn(lambda t, generator: init.sparse_(t, 0.3, generator=generator)),
        drawn(lambda t, generator: init.sparse_(t, 0.3, generator=generator)),
    )


@pytest.mark.parametrize("shape", [(5, 3), (3, 5), (4, 4), (4, 3, 2)])
def test_orthogonal_draws_as_pytorch_does(torch, same, shape):
    torch.manual_seed(0)
    same(
        init.orthogonal_(taeda.empty(shape), 2.0),
        torch.nn.init.orthogonal_(torch.empty(shape), 2.0),
        1e-4,
        1e-6,
    )


def test_old_names():
    with pytest.warns(FutureWarning, match="in favor of nn.init.constant_"):
        assert init.constant(taeda.empty(2), 3.0).tolist() == [3.0, 3.0]
    assert init.xavier_uniform.__name__ == "xavier_uniform"
