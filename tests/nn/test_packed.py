"""Padded and packed sequences beside PyTorch's, and recurrent layers over them."""

import copy
import pickle

import pytest

import taeda
from taeda import nn
from taeda.nn.utils import rnn

LENGTHS = [2, 5, 1, 5, 3]


def sequences(seed=0, dtype=taeda.float32):
    taeda.manual_seed(seed)
    return [taeda.randn(n, 3, dtype=dtype) for n in LENGTHS]


@pytest.fixture
def theirs(torch):
    return torch.nn.utils.rnn


@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize("side", ["left", "right"])
def test_pad_and_unpad(theirs, same, to_torch, batch_first, side):
    ours = rnn.pad_sequence(sequences(), batch_first, -1.0, side)
    same(ours, theirs.pad_sequence(to_torch(sequences()), batch_first, -1.0, side), 0, 0)
    if side == "right":
        back = rnn.unpad_sequence(ours, taeda.tensor(LENGTHS), batch_first)
        same(back, to_torch(sequences()), 0, 0)


@pytest.mark.parametrize("batch_first", [False, True])
def test_pack_and_pad(theirs, same, to_torch, batch_first):
    padded = rnn.pad_sequence(sequences(), batch_first).requires_grad_()
    ours = rnn.pack_padded_sequence(padded, LENGTHS, batch_first, enforce_sorted=False)
    other = to_torch(padded)
    expected = theirs.pack_padded_sequence(other, LENGTHS, batch_first, enforce_sorted=False)
    same(tuple(ours), tuple(expected), 0, 0)
    assert list(ours._fields) == list(expected._fields)
    for total in (None, 7):
        same(
            rnn.pad_packed_sequence(ours, batch_first, 9.0, total),
            theirs.pad_packed_sequence(expected, batch_first, 9.0, total),
            0, 0,
        )  # fmt: skip
    rnn.pad_packed_sequence(ours)[0].square().sum().backward()
    theirs.pad_packed_sequence(expected)[0].square().sum().backward()
    same(padded.grad, other.grad)
    same(rnn.unpack_sequence(rnn.pack_sequence(sequences(), False)), to_torch(sequences()), 0, 0)


def test_packed_sequence_object():
    packed = rnn.pack_sequence(sequences(), enforce_sorted=False)
    assert packed.to(taeda.float32) is packed and packed.cpu() is packed
    assert packed.double().data.dtype == taeda.float64 and not packed.is_cuda
    for other in (pickle.loads(pickle.dumps(packed)), copy.deepcopy(packed)):
        assert isinstance(other, rnn.PackedSequence)
        assert all(taeda.equal(a, b) for a, b in zip(other, packed, strict=True))
    ordered = taeda.tensor([1, 0])
    made = rnn.PackedSequence(taeda.zeros(3), taeda.tensor([2, 1]), ordered)
    assert taeda.equal(made.unsorted_indices, ordered)


def test_refusals():
    x = taeda.zeros(4, 3)
    for lengths, match in [
        ([1, 2, 4], "sorted in decreasing order"),
        ([4, 2], "batch_size=3"),
        ([4, 2, 0], "greater than 0"),
        ([5, 2, 1], "more than the 4 steps"),
    ]:
        with pytest.raises(RuntimeError, match=match):
            rnn.pack_padded_sequence(x, lengths)
    with pytest.raises(RuntimeError, match="Cannot pack empty"):
        rnn.pack_padded_sequence(taeda.zeros(4, 0), [])
    with pytest.raises(RuntimeError, match="empty list"):
        rnn.pad_sequence([])
    with pytest.raises(ValueError, match="total_length"):
        rnn.pad_packed_sequence(rnn.pack_sequence([taeda.zeros(3)]), total_length=2)


LAYERS = [
    ("RNN", {"num_layers": 2, "bidirectional": True}),
    ("RNN", {"nonlinearity": "relu", "bias": False}),
    ("GRU", {"num_layers": 2, "bidirectional": True, "dropout": 0.3}),
    ("LSTM", {"num_layers": 2, "bidirectional": True, "dropout": 0.3}),
    ("LSTM", {"num_layers": 2, "bidirectional": True, "proj_size": 2}),
]


def states(kind, kwargs, dtype=taeda.float32):
    rows = kwargs.get("num_layers", 1) * (2 if kwargs.get("bidirectional") else 1)
    taeda.manual_seed(4)
    h = taeda.randn(rows, len(LENGTHS), kwargs.get("proj_size", 4), dtype=dtype)
    c = taeda.randn(rows, len(LENGTHS), 4, dtype=dtype)
    h.requires_grad_(), c.requires_grad_()
    return (h, c) if kind == "LSTM" else h


@pytest.mark.filterwarnings("ignore:LSTM with projections")
@pytest.mark.parametrize(("kind", "kwargs"), LAYERS)
@pytest.mark.parametrize("ordered", [False, True])
def test_packed_layers(torch, theirs, same, to_torch, kind, kwargs, ordered):
    given = sequences()
    if ordered:
        given.sort(key=len, reverse=True)
    taeda.manual_seed(2)
    torch.manual_seed(2)
    ours, other = getattr(nn, kind)(3, 4, **kwargs), getattr(torch.nn, kind)(3, 4, **kwargs)
    first = states(kind, kwargs)
    their_first = to_torch(first)
    taeda.manual_seed(6)
    torch.manual_seed(6)
    output, last = ours(rnn.pack_sequence(given, ordered), first)
    expected, their_last = other(theirs.pack_sequence(to_torch(given), ordered), their_first)
    same(tuple(output), tuple(expected))
    same(last, their_last)
    for result in (output.data, *(last if kind == "LSTM" else [last])):
        result.sum().backward(retain_graph=True)
    for result in (expected.data, *(their_last if kind == "LSTM" else [their_last])):
        result.sum().backward(retain_graph=True)
    for a, b in zip(ours.parameters(), other.parameters(), strict=True):
        same(a.grad, b.grad, 1e-4, 1e-5)
    pairs = zip(first, their_first, strict=True) if kind == "LSTM" else [(first, their_first)]
    for a, b in pairs:
        same(a.grad, b.grad, 1e-4, 1e-5)


@pytest.mark.parametrize(
    ("kind", "kwargs"),
    [
        ("RNN", {}),
        ("RNN", {"nonlinearity": "relu", "bias": False}),
        ("GRU", {"bidirectional": True}),
        ("LSTM", {"bidirectional": True}),
        ("LSTM", {"bias": False, "proj_size": 2}),
    ],
)
@pytest.mark.parametrize("packed", [False, True])
def test_derivatives(kind, kwargs, packed):
    taeda.manual_seed(1)
    layer = getattr(nn, kind)(2, 3, **kwargs).double()
    x = taeda.randn(3, 2, 2, dtype=taeda.float64, requires_grad=True)
    rows = 2 if kwargs.get("bidirectional") else 1
    h = taeda.randn(rows, 2, kwargs.get("proj_size", 3), dtype=taeda.float64, requires_grad=True)
    c = taeda.randn(rows, 2, 3, dtype=taeda.float64, requires_grad=True)
    names = [name for name, _ in layer.named_parameters()]

    def run(x, h, c, *weights):
        given = rnn.pack_padded_sequence(x, [3, 2]) if packed else x
        state = (h, c) if kind == "LSTM" else h
        for name, value in zip(names, weights, strict=True):
            layer._parameters[name] = value
        output, last = layer(given, state)
        output = output.data if packed else output
        return (output, *last) if kind == "LSTM" else (output, last)

    leaves = [p.detach().requires_grad_() for p in layer.parameters()]
    inputs = (x, h, c, *leaves) if kind == "LSTM" else (x, h, c.detach(), *leaves)
    assert taeda.autograd.gradcheck(run, inputs)
    assert taeda.autograd.gradgradcheck(run, inputs)


@pytest.mark.parametrize("kind", ["RNN", "GRU", "LSTM"])
def test_sizes_at_the_edge(torch, same, to_torch, kind):
    taeda.manual_seed(2)
    torch.manual_seed(2)
    ours, theirs = getattr(nn, kind)(3, 4), getattr(torch.nn, kind)(3, 4)
    for shape in [(2, 0, 3), (1, 1, 3), (1, 3)]:
        x = taeda.randn(shape)
        same(ours(x), theirs(to_torch(x)))
    with pytest.raises(RuntimeError, match="larger than 0"):
        ours(taeda.zeros(0, 2, 3))
    bad = taeda.full((2, 1, 3), float("nan"))
    assert bool(ours(bad)[0].isnan().all())
    half, single = ours.half()(taeda.ones(4, 2, 3, dtype=taeda.float16))[0], ours.float()(
        taeda.ones(4, 2, 3)
    )[0]  # fmt: skip
    assert half.dtype == taeda.float16
    assert taeda.allclose(half.float(), single, atol=2e-3)


@pytest.mark.parametrize("kind", ["RNN", "GRU", "LSTM"])
def test_a_layer_refuses(kind):
    layer = getattr(nn, kind)(3, 4)
    with pytest.raises(ValueError, match=rf"{kind}: RNN input dtype \(taeda.float64\)"):
        layer(taeda.zeros(2, 1, 3, dtype=taeda.float64))
    with pytest.raises(RuntimeError, match=f"{kind}: input.size"):
        layer(taeda.zeros(2, 1, 5))
    h = taeda.zeros(1, 3, 4)
    with pytest.raises(RuntimeError, match=f"{kind}: Expected hidden"):
        layer(taeda.zeros(2, 2, 3), (h, h) if kind == "LSTM" else h)
    with pytest.raises(RuntimeError, match="unbatched 2-D input"):
        layer(taeda.zeros(2, 3), (h, h) if kind == "LSTM" else h)


def test_the_op_refuses():
    ops = taeda._C.ops
    x, h, w = taeda.zeros(3, 4), taeda.zeros(2, 4), taeda.zeros(4, 4)
    for sizes, match in [([2, 2], "4 rows in all"), ([1, 2], "step 1 has 2"), ([3], "step 0")]:
        with pytest.raises((RuntimeError, ValueError), match=match):
            ops._rnn_sequence(x, h, None, w, None, None, sizes, 0, False)
    with pytest.raises(RuntimeError, match="do not fit"):
        ops._rnn_sequence(x, h, None, taeda.zeros(5, 4), None, None, [2, 1], 0, False)
    with pytest.raises(RuntimeError, match="c0"):
        ops._rnn_sequence(x, h, h, w, None, None, [2, 1], 0, False)
    with pytest.raises(ValueError, match="cell must be"):
        ops._rnn_sequence(x, h, None, w, None, None, [2, 1], 7, False)


@pytest.mark.parametrize("kind", ["RNN", "GRU", "LSTM"])
def test_under_autocast(kind):
    layer, x = getattr(nn, kind)(3, 4, 2), taeda.randn(5, 2, 3)
    with taeda.autocast("cpu", taeda.bfloat16):
        output, last = layer(x)
    # The state of a GRU, which it adds to, stays as it is.
    assert output.dtype == (taeda.float32 if kind == "GRU" else taeda.bfloat16)
    assert taeda.allclose(output.float(), layer(x)[0], atol=3e-2)
    output.float().sum().backward()
    assert all(p.grad.dtype == taeda.float32 for p in layer.parameters())


def test_what_subclasses_call(torch):
    for kind in ("GRU", "LSTM"):
        ours = getattr(nn, kind)(3, 4, 2, bidirectional=True)
        theirs = getattr(torch.nn, kind)(3, 4, 2, bidirectional=True)
        for m, library in ((ours, taeda), (theirs, torch)):
            x = library.zeros(5, 2, 3)
            shape = m.get_expected_hidden_size(x, None)
            assert shape == (4, 2, 4)
            assert m.get_expected_hidden_size(x[0], library.tensor([6, 2])) == (4, 6, 4)
            state = library.arange(32.0).reshape(4, 2, 4)
            state = (state, state) if kind == "LSTM" else state
            m.check_forward_args(x, state, None)
            assert m.permute_hidden(state, None) is not None
            moved = m.permute_hidden(state, library.tensor([1, 0]))
            moved = moved[1] if kind == "LSTM" else moved
            assert moved[0, 0].tolist() == [4.0, 5.0, 6.0, 7.0]
            with pytest.raises(RuntimeError, match=r"size \(4, 2, 4\), got \[4, 2, 3\]"):
                bad = library.zeros(4, 2, 3)
                m.check_forward_args(x, (bad, bad) if kind == "LSTM" else bad, None)
