"""Recurrent layers and the Transformer beside PyTorch's."""

import pytest

import taeda
from taeda import nn

RECURRENT = [
    "RNN(3, 4)",
    "RNN(3, 4, nonlinearity='relu', bias=False)",
    "RNN(3, 4, num_layers=2, bidirectional=True)",
    "GRU(3, 4)",
    "GRU(3, 4, 2, batch_first=True, bidirectional=True)",
    "LSTM(3, 4)",
    "LSTM(3, 4, 2, bias=False)",
    "LSTM(3, 4, 2, bidirectional=True, batch_first=True, proj_size=2)",
]
CELLS = ["RNNCell(3, 4)", "RNNCell(3, 4, nonlinearity='relu')", "LSTMCell(3, 4, bias=False)",
         "LSTMCell(3, 4)", "GRUCell(3, 4)"]  # fmt: skip
TRANSFORMERS = [
    "TransformerEncoderLayer(4, 2, 8, dropout=0.0)",
    "TransformerEncoderLayer(4, 2, 8, norm_first=True, activation='gelu', batch_first=True)",
    "TransformerDecoderLayer(4, 2, 8, dropout=0.0)",
    "TransformerDecoderLayer(4, 2, 8, norm_first=True, bias=False)",
    "TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 8), 2, enable_nested_tensor=False)",
    "TransformerDecoder(nn.TransformerDecoderLayer(4, 2, 8), 2, nn.LayerNorm(4))",
    "Transformer(4, 2, 2, 2, 8, batch_first=True)",
]


def pair(torch, call):
    taeda.manual_seed(5)
    ours = eval("nn." + call, {"nn": nn})
    torch.manual_seed(5)
    return ours, eval("nn." + call, {"nn": torch.nn})


@pytest.mark.parametrize("call", RECURRENT + CELLS + TRANSFORMERS)
@pytest.mark.filterwarnings("ignore:enable_nested_tensor is True")
def test_repr_and_first_values(torch, same, call):
    ours, theirs = pair(torch, call)
    assert repr(ours) == repr(theirs)
    assert list(ours.state_dict()) == list(theirs.state_dict())
    for a, b in zip(ours.parameters(), theirs.parameters(), strict=True):
        same(a, b)


def rand(*shape, seed=0):
    taeda.manual_seed(seed)
    return taeda.randn(shape).requires_grad_()


@pytest.mark.filterwarnings("ignore:LSTM with projections")
@pytest.mark.parametrize("call", RECURRENT)
def test_recurrent(torch, compare, same, call):
    ours, theirs = pair(torch, call)
    compare(ours, theirs, (rand(5, 2, 3),))
    for a, b in zip(ours.parameters(), theirs.parameters(), strict=True):
        same(a.grad, b.grad, 1e-3, 1e-5)
    compare(ours, theirs, (rand(5, 3),))
    rows = ours.num_layers * (2 if ours.bidirectional else 1)
    state = rand(rows, 2, ours.proj_size or 4, seed=1)
    if ours.mode == "LSTM":
        state = (state, rand(rows, 2, 4, seed=2))
    x = rand(2, 5, 3) if ours.batch_first else rand(5, 2, 3)
    compare(ours, theirs, (x, state))


@pytest.mark.filterwarnings("ignore:LSTM with projections")
@pytest.mark.parametrize(
    "call",
    [
        "RNN(5, 12)",
        "GRU(5, 12, bidirectional=True)",
        "LSTM(5, 20)",
        "LSTM(5, 20, proj_size=7)",
        "LSTM(5, 400)",  # weights too large for a core's own cache
    ],
)
def test_large_batches_of_any_lengths(torch, same, call):
    ours, theirs = pair(torch, call)
    x, lengths = rand(14, 19, 5), [14] * 3 + [11] * 7 + [9, 8, 8, 7, 6, 5, 3, 2, 1]
    packed = nn.utils.rnn.pack_padded_sequence(x, lengths)
    leaf = torch.tensor(x.tolist(), requires_grad=True)
    pack = torch.nn.utils.rnn.pack_padded_sequence(leaf, lengths)
    a, b = ours(packed), theirs(pack)
    same(a[0].data, b[0].data, 1e-4, 1e-5)
    weights = taeda.randn_like(a[0].data)
    (a[0].data * weights).sum().backward()
    (b[0].data * torch.tensor(weights.tolist())).sum().backward()
    same(x.grad, leaf.grad, 1e-3, 1e-4)
    for p, q in zip(ours.parameters(), theirs.parameters(), strict=True):
        same(p.grad, q.grad, 1e-3, 1e-4)


@pytest.mark.parametrize("call", CELLS)
def test_cells(torch, compare, call):
    ours, theirs = pair(torch, call)
    compare(ours, theirs, (rand(2, 3),))
    compare(ours, theirs, (rand(3),))
    state = rand(2, 4, seed=1)
    compare(ours, theirs, (rand(2, 3), (state, state) if "LSTM" in call else state))


def test_dropout_between_layers(torch, compare):
    compare(*pair(torch, "GRU(3, 4, 3, dropout=0.5)"), (rand(5, 2, 3),))
    with pytest.warns(UserWarning, match="all but last"):
        nn.GRU(3, 4, dropout=0.5)


def test_recurrent_refusals(torch):
    for call in ("LSTM(3, 0)", "LSTM(3, 4, 0)", "LSTM(3, 4, proj_size=4)", "LSTM(3, 4, dropout=2)",
                 "RNN(3, 4, nonlinearity='foo')", "LSTM(3, 4.0)"):  # fmt: skip
        with pytest.raises(Exception) as theirs:
            eval("nn." + call, {"nn": torch.nn})
        with pytest.raises(theirs.type):
            eval("nn." + call, {"nn": nn})
    with pytest.raises(RuntimeError, match="input_size"):
        nn.LSTM(3, 4)(taeda.zeros(5, 2, 7))
    with pytest.raises(RuntimeError, match="Expected hidden size"):
        nn.GRU(3, 4)(taeda.zeros(5, 2, 3), taeda.zeros(1, 3, 4))
    nn.LSTM(3, 4).flatten_parameters()
    assert [len(w) for w in nn.LSTM(3, 4, 2).all_weights] == [4, 4]


@pytest.mark.filterwarnings("ignore:enable_nested_tensor is True")
@pytest.mark.filterwarnings("ignore:Support for mismatched")
@pytest.mark.parametrize("call", TRANSFORMERS)
def test_transformers(torch, compare, call):
    ours, theirs = pair(torch, call)
    ours.eval(), theirs.eval()
    first = "batch_first" in call
    src, tgt = ((2, 5, 4), (2, 3, 4)) if first else ((5, 2, 4), (3, 2, 4))
    causal = nn.Transformer.generate_square_subsequent_mask
    if "Encoder" in call:
        compare(ours, theirs, (rand(*src),))
        compare(ours, theirs, (rand(*src), causal(5)))
        padding = taeda.tensor([[False] * 4 + [True], [False] * 5])
        ours.train(), theirs.train()
        for m in (*ours.modules(), *theirs.modules()):
            if type(m).__name__ in ("Dropout", "MultiheadAttention"):
                m.p = m.dropout = 0.0
        compare(ours, theirs, (rand(*src),), {"src_key_padding_mask": padding})
    elif "Decoder" in call:
        compare(ours, theirs, (rand(*tgt), rand(*src, seed=1)))
        compare(ours, theirs, (rand(*tgt), rand(*src, seed=1)), {"tgt_mask": causal(3)})
    else:
        compare(ours, theirs, (rand(*src), rand(*tgt, seed=1)), {"tgt_mask": causal(3)})
        with pytest.raises(RuntimeError):
            ours(taeda.zeros(2, 5, 4), taeda.zeros(3, 5, 4))


def test_training_with_dropout_draws_the_same_numbers(torch, compare):
    ours, theirs = pair(torch, "TransformerEncoderLayer(4, 2, 8, dropout=0.3)")
    compare(ours, theirs, (rand(5, 2, 4),))


@pytest.mark.parametrize("kind", [nn.RNN, nn.GRU, nn.LSTM])
def test_weights_that_other_code_replaces(kind):
    """weight_norm, prune and hand-made weight drop put a tensor in a parameter's place."""
    x = taeda.randn(3, 2, 4)
    for wrap in (
        lambda m: nn.utils.parametrizations.weight_norm(m, "weight_hh_l0"),
        lambda m: nn.utils.parametrizations.spectral_norm(m, "weight_hh_l0"),
        lambda m: nn.utils.prune.l1_unstructured(m, "weight_hh_l0", 0.5),
    ):
        layer = wrap(kind(4, 5))
        layer.flatten_parameters()
        output, _ = layer(x)
        output.sum().backward()
        assert all(p.grad is not None for p in layer.parameters())
    layer = kind(4, 5)
    raw = layer.weight_hh_l0
    expected, _ = layer(x)
    del layer._parameters["weight_hh_l0"]
    layer.register_parameter("weight_hh_l0_raw", raw)
    layer.weight_hh_l0 = raw * 1.0
    layer.flatten_parameters()
    assert taeda.equal(layer(x)[0], expected)
    layer.weight_hh_l0 = raw * 0.0
    assert not taeda.equal(layer(x)[0], expected)


def test_flat_weights():
    layer = nn.LSTM(3, 4, num_layers=2, bidirectional=True)
    names = layer._flat_weights_names
    assert names == [name for name, _ in layer.named_parameters()]
    weights = layer._flat_weights
    assert all(w is getattr(layer, n) for w, n in zip(weights, names, strict=True))
    layer._flat_weights = [nn.Parameter(w.detach() * 2) for w in weights]
    assert layer.weight_hh_l0 is not weights[1] and len(layer.all_weights) == 4
