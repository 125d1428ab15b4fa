"""Every layer: its repr, its first values, its state and what it computes, beside PyTorch's."""

import pickle

import pytest

import taeda
from taeda import nn

N = None  # stands where a layer takes no input in these tests

# (constructor call, input shapes); evaluated with `nn` being ours and then PyTorch's
LAYERS = [
    ("Identity()", [(2, 3)]),
    ("Identity(3, foo=4)", [(2, 3)]),
    ("Linear(4, 3)", [(2, 4)]),
    ("Linear(4, 3, bias=False)", [(5, 2, 4)]),
    ("Bilinear(3, 4, 2)", [(5, 3), (5, 4)]),
    ("Bilinear(3, 4, 2, bias=False)", [(2, 5, 3), (2, 5, 4)]),
    ("Conv1d(4, 6, 3)", [(2, 4, 9)]),
    ("Conv1d(4, 6, 3, padding='same', dilation=2)", [(2, 4, 9)]),
    ("Conv1d(4, 6, 4, padding='same')", [(2, 4, 9)]),
    ("Conv1d(4, 6, 3, padding=2, padding_mode='circular')", [(2, 4, 9)]),
    ("Conv2d(4, 6, 3)", [(2, 4, 7, 8)]),
    ("Conv2d(4, 6, 3)", [(4, 7, 8)]),
    ("Conv2d(4, 6, 3, stride=2, padding=1, dilation=2, groups=2, bias=False)", [(2, 4, 9, 8)]),
    ("Conv2d(4, 6, (3, 2), padding='valid')", [(2, 4, 7, 8)]),
    ("Conv2d(4, 6, (3, 2), padding='same')", [(2, 4, 7, 8)]),
    ("Conv2d(4, 6, (3, 4), padding='same', padding_mode='reflect')", [(2, 4, 7, 8)]),
    ("Conv2d(4, 6, 3, padding=(1, 2), padding_mode='replicate')", [(2, 4, 7, 8)]),
    ("Conv3d(2, 4, 3, stride=(1, 2, 1), padding=1)", [(1, 2, 4, 5, 6)]),
    ("ConvTranspose1d(4, 6, 3, dilation=3)", [(2, 4, 5)]),
    ("ConvTranspose2d(4, 6, 3, output_padding=1, stride=2, padding=1)", [(2, 4, 5, 4)]),
    ("ConvTranspose2d(4, 6, 3, groups=2, bias=False)", [(2, 4, 5, 4)]),
    ("ConvTranspose3d(2, 3, 2)", [(1, 2, 3, 3, 2)]),
    ("MaxPool1d(3, 2, 1)", [(2, 3, 9)]),
    ("MaxPool1d(2, return_indices=True)", [(2, 3, 9)]),
    ("MaxPool2d(2)", [(2, 3, 7, 8)]),
    ("MaxPool2d((2, 3), return_indices=True)", [(2, 3, 7, 8)]),
    ("MaxPool2d(3, 2, 1, 2, ceil_mode=True)", [(2, 3, 7, 8)]),
    ("MaxPool3d(2)", [(1, 2, 4, 5, 6)]),
    ("MaxPool3d(2, return_indices=True)", [(1, 2, 4, 5, 6)]),
    ("MaxUnpool1d(2)", N),
    ("MaxUnpool2d(2)", N),
    ("MaxUnpool3d((2, 1, 2), stride=2, padding=0)", N),
    ("AvgPool1d(2)", [(2, 3, 9)]),
    ("AvgPool1d(3, 2, 1, ceil_mode=True, count_include_pad=False)", [(2, 3, 9)]),
    ("AvgPool2d(2)", [(2, 3, 7, 8)]),
    ("AvgPool2d(3, 2, 1, count_include_pad=False)", [(2, 3, 7, 8)]),
    ("AvgPool2d((2, 3), divisor_override=5)", [(2, 3, 7, 8)]),
    ("AvgPool3d(2)", [(1, 2, 4, 5, 6)]),
    ("LPPool1d(2, 3)", [(2, 3, 9)]),
    ("LPPool2d(2, 3, stride=2, ceil_mode=True)", [(2, 3, 7, 8)]),
    ("LPPool3d(2, 2)", [(1, 2, 4, 5, 6)]),
    ("AdaptiveAvgPool1d(4)", [(2, 3, 9)]),
    ("AdaptiveAvgPool2d((None, 3))", [(2, 3, 7, 8)]),
    ("AdaptiveAvgPool2d(1)", [(3, 7, 8)]),
    ("AdaptiveAvgPool3d((2, None, 3))", [(2, 3, 5, 4, 6)]),
    ("AdaptiveAvgPool3d(2)", [(3, 5, 4, 6)]),
    ("AdaptiveMaxPool1d(4)", [(2, 3, 9)]),
    ("AdaptiveMaxPool2d((None, 3), return_indices=True)", [(2, 3, 7, 8)]),
    ("AdaptiveMaxPool3d((2, 3, 4), return_indices=True)", [(2, 3, 5, 4, 6)]),
    ("BatchNorm1d(3)", [(4, 3)]),
    ("BatchNorm1d(3, affine=False, track_running_stats=False, momentum=None)", [(4, 3, 5)]),
    ("BatchNorm2d(3, momentum=None)", [(4, 3, 2, 2)]),
    ("BatchNorm2d(3, bias=False, eps=0.1)", [(4, 3, 2, 2)]),
    ("BatchNorm3d(3)", [(2, 3, 2, 2, 2)]),
    ("InstanceNorm1d(3)", [(2, 3, 5)]),
    ("InstanceNorm1d(3, affine=True, track_running_stats=True)", [(2, 3, 5)]),
    ("InstanceNorm2d(3, affine=True, bias=False)", [(3, 4, 5)]),
    ("InstanceNorm3d(3)", [(2, 3, 2, 2, 2)]),
    ("LayerNorm(5)", [(2, 3, 5)]),
    ("LayerNorm((3, 5), elementwise_affine=False)", [(2, 3, 5)]),
    ("LayerNorm(5, bias=False, eps=0.1)", [(2, 3, 5)]),
    ("GroupNorm(2, 4)", [(2, 4, 3)]),
    ("GroupNorm(2, 4, bias=False)", [(2, 4, 3, 2)]),
    ("GroupNorm(1, 4, affine=False)", [(2, 4)]),
    ("RMSNorm(5)", [(2, 3, 5)]),
    ("RMSNorm((3, 5), eps=0.1, elementwise_affine=False)", [(2, 3, 5)]),
    ("LocalResponseNorm(3)", [(2, 5, 4)]),
    ("LocalResponseNorm(2, alpha=0.1, beta=0.5, k=2.0)", [(2, 5, 4, 3, 2)]),
    ("Dropout(0.3)", [(20, 5)]),
    ("Dropout(0.0)", [(20, 5)]),
    ("Dropout1d()", [(20, 5, 3)]),
    ("Dropout2d(0.4)", [(20, 5, 2, 2)]),
    ("Dropout3d(0.4)", [(5, 5, 2, 2, 2)]),
    ("AlphaDropout(0.4)", [(20, 5)]),
    ("FeatureAlphaDropout(0.4)", [(20, 5, 2)]),
    ("Flatten()", [(2, 3, 4)]),
    ("Flatten(0, 1)", [(2, 3, 4)]),
    ("Unflatten(1, (2, -1))", [(2, 6)]),
    ("PixelShuffle(2)", [(2, 8, 3, 2)]),
    ("PixelUnshuffle(2)", [(2, 2, 6, 4)]),
    ("ChannelShuffle(2)", [(2, 6, 3)]),
    ("Upsample(scale_factor=2)", [(2, 3, 4)]),
    ("Upsample(size=(5, 3), mode='bilinear')", [(2, 3, 4, 4)]),
    ("Upsample(scale_factor=1.7, mode='bilinear', align_corners=True)", [(2, 3, 4, 4)]),
    ("UpsamplingNearest2d(3)", [(2, 3, 4, 4)]),
    ("UpsamplingBilinear2d(scale_factor=2)", [(2, 3, 4, 4)]),
    ("Unfold((2, 3), padding=1, stride=2)", [(2, 3, 6, 7)]),
    ("Fold((4, 5), 2)", [(2, 8, 12)]),
    ("Fold((6, 6), (3, 2), dilation=2, padding=1, stride=2)", [(2, 12, 6)]),
    ("CosineSimilarity()", [(4, 3), (4, 3)]),
    ("PairwiseDistance()", [(4, 3), (4, 3)]),
    ("PairwiseDistance(1, 1e-3, True)", [(4, 3), (4, 3)]),
    ("ReLU()", [(4, 3)]),
    ("ReLU(True)", N),
    ("LeakyReLU()", [(4, 3)]),
    ("LeakyReLU(0.2, True)", N),
    ("PReLU()", [(4, 3)]),
    ("PReLU(3)", [(4, 3, 2)]),
    ("RReLU()", [(40, 3)]),
    ("RReLU(0.1, 0.2, inplace=True)", N),
    ("ELU(0.7)", [(4, 3)]),
    ("ELU(inplace=True)", N),
    ("CELU(0.7)", [(4, 3)]),
    ("SELU()", [(4, 3)]),
    ("SELU(True)", N),
    ("GELU()", [(4, 3)]),
    ("GELU('tanh')", [(4, 3)]),
    ("SiLU()", [(4, 3)]),
    ("Mish()", [(4, 3)]),
    ("Sigmoid()", [(4, 3)]),
    ("LogSigmoid()", [(4, 3)]),
    ("Tanh()", [(4, 3)]),
    ("Tanhshrink()", [(4, 3)]),
    ("Hardtanh(-0.5, 0.5)", [(4, 3)]),
    ("Hardtanh(-2, 2, True)", N),
    ("ReLU6()", [(4, 3)]),
    ("ReLU6(True)", N),
    ("Hardsigmoid()", [(4, 3)]),
    ("Hardswish(True)", N),
    ("Hardshrink()", [(4, 3)]),
    ("Softshrink(0.3)", [(4, 3)]),
    ("Softplus(2.0, 1.0)", [(4, 3)]),
    ("Softsign()", [(4, 3)]),
    ("Threshold(0.1, 20)", [(4, 3)]),
    ("GLU()", [(4, 6)]),
    ("Softmax(1)", [(4, 3)]),
    ("LogSoftmax(-1)", [(4, 3)]),
    ("Softmin(0)", [(4, 3)]),
    ("Softmax2d()", [(2, 4, 3, 2)]),
    ("ConstantPad1d(2, 3.5)", [(2, 3)]),
    ("ConstantPad2d((1, 0, 2, 1), 0.5)", [(2, 3, 4)]),
    ("ConstantPad3d(1, -1.0)", [(1, 2, 3, 4)]),
    ("ZeroPad1d(1)", [(2, 3)]),
    ("ZeroPad2d((1, 2, 0, 1))", [(2, 3, 4)]),
    ("ZeroPad3d(1)", [(1, 2, 3, 4)]),
    ("ReflectionPad1d(2)", [(2, 3, 4)]),
    ("ReflectionPad2d((1, 2, 0, 1))", [(2, 3, 4, 5)]),
    ("ReflectionPad3d(1)", [(1, 2, 3, 4, 5)]),
    ("ReplicationPad1d(2)", [(2, 3, 4)]),
    ("ReplicationPad2d((1, 2, 0, 1))", [(2, 3, 4, 5)]),
    ("ReplicationPad3d(1)", [(1, 2, 3, 4, 5)]),
    ("CircularPad1d(2)", [(2, 3, 4)]),
    ("CircularPad2d((1, 2, 0, 1))", [(2, 3, 4, 5)]),
    ("CircularPad3d(1)", [(1, 2, 3, 4, 5)]),
    ("Embedding(7, 3)", N),
    ("Embedding(7, 3, padding_idx=-1, max_norm=1.0, norm_type=1.0)", N),
    ("EmbeddingBag(7, 3, padding_idx=1)", N),
    ("MultiheadAttention(6, 2)", [(4, 2, 6), (5, 2, 6), (5, 2, 6)]),
    ("MultiheadAttention(6, 3, batch_first=True, bias=False)", [(2, 4, 6), (2, 5, 6), (2, 5, 6)]),
    (
        "MultiheadAttention(6, 2, kdim=3, vdim=4, add_bias_kv=True, add_zero_attn=True)",
        [(4, 2, 6), (5, 2, 3), (5, 2, 4)],
    ),
    ("MultiheadAttention(6, 2, dropout=0.5)", [(4, 6), (5, 6), (5, 6)]),
    ("Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))", [(5, 3)]),
    ("ModuleList([nn.Linear(3, 4), nn.Linear(3, 4), nn.ReLU()])", N),
    ("ModuleDict({'b': nn.Linear(3, 4), 'a': nn.ReLU()})", N),
    ("CrossEntropyLoss()", N),
    ("MSELoss(reduction='sum')", [(3, 2), (3, 2)]),
    ("L1Loss()", [(3, 2), (3, 2)]),
    ("SmoothL1Loss(beta=0.5)", [(3, 2), (3, 2)]),
    ("HuberLoss(delta=0.5)", [(3, 2), (3, 2)]),
    ("TripletMarginLoss(swap=True)", [(3, 2), (3, 2), (3, 2)]),
    ("TripletMarginWithDistanceLoss()", [(3, 2), (3, 2), (3, 2)]),
    ("GaussianNLLLoss()", N),
]
IDS = [call for call, _ in LAYERS]


@pytest.mark.parametrize(("call", "shapes"), LAYERS, ids=IDS)
def test_repr(torch, call, shapes):
    theirs = repr(eval("nn." + call, {"nn": torch.nn}))
    assert repr(eval("nn." + call, {"nn": nn})) == theirs


@pytest.mark.parametrize(("call", "shapes"), LAYERS, ids=IDS)
def test_first_values_and_state_dict(torch, same, call, shapes):
    taeda.manual_seed(5)
    ours = eval("nn." + call, {"nn": nn}).state_dict()
    next_draw = taeda.rand(3)
    torch.manual_seed(5)
    theirs = eval("nn." + call, {"nn": torch.nn}).state_dict()
    assert list(ours) == list(theirs)
    assert ours._metadata == theirs._metadata
    for key in ours:
        same(ours[key], theirs[key])
    same(next_draw, torch.rand(3))


def pair(torch, call):
    taeda.manual_seed(5)
    ours = eval("nn." + call, {"nn": nn})
    torch.manual_seed(5)
    return ours, eval("nn." + call, {"nn": torch.nn})


@pytest.mark.filterwarnings("ignore:Using padding='same' with even kernel lengths")
@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize(
    ("call", "shapes"), [row for row in LAYERS if row[1]], ids=[c for c, s in LAYERS if s]
)
def test_forward_and_backward(torch, compare, same, call, shapes, training):
    ours, theirs = pair(torch, call)
    ours.train(training), theirs.train(training)
    inputs = []
    for number, shape in enumerate(shapes):
        taeda.manual_seed(number)
        inputs.append((taeda.rand(shape) * 2 - 0.7).requires_grad_())
    compare(ours, theirs, tuple(inputs))
    for a, e in zip(ours.parameters(), theirs.parameters(), strict=True):
        if e.grad is not None:
            same(a.grad, e.grad, rtol=1e-3, atol=1e-4)
    for a, e in zip(ours.buffers(), theirs.buffers(), strict=True):
        same(a, e)


@pytest.mark.parametrize(("call", "shapes"), LAYERS, ids=IDS)
def test_pickles(call, shapes):
    module = eval("nn." + call, {"nn": nn})
    again = pickle.loads(pickle.dumps(module))
    assert repr(again) == repr(module)
    assert list(again.state_dict()) == list(module.state_dict())


@pytest.mark.parametrize(
    "call",
    [
        "Linear(4, 3, dtype=taeda.float64)",
        "Bilinear(3, 4, 2, dtype=taeda.float64)",
        "Conv2d(2, 3, 3, dtype=taeda.float64)",
        "ConvTranspose1d(2, 3, 3, dtype=taeda.float64)",
        "BatchNorm2d(3, dtype=taeda.float64)",
        "LayerNorm(3, dtype=taeda.float64)",
        "GroupNorm(1, 3, dtype=taeda.float64)",
        "RMSNorm(3, dtype=taeda.float64)",
        "PReLU(dtype=taeda.float64)",
        "Embedding(3, 2, dtype=taeda.float64)",
        "MultiheadAttention(4, 2, dtype=taeda.float64)",
    ],
)
def test_dtype_and_device(call):
    for parameter in eval("nn." + call, {"nn": nn, "taeda": taeda}).parameters():
        assert parameter.dtype == taeda.float64
    meta = eval("nn." + call.replace("dtype=taeda.float64", "device='meta'"), {"nn": nn})
    assert all(parameter.is_meta for parameter in meta.parameters())


def test_conv_transpose_output_size(torch, compare):
    ours, theirs = pair(torch, "ConvTranspose2d(2, 3, 3, stride=2, padding=1)")
    x = taeda.rand(1, 2, 4, 5).requires_grad_()
    compare(ours, theirs, (x,), {"output_size": [8, 10]})
    compare(ours, theirs, (x,), {"output_size": [1, 3, 7, 9]})
    with pytest.raises(ValueError, match="valid sizes range"):
        ours(x, output_size=[20, 20])


def test_max_unpool(torch, compare):
    for rank, shape in ((1, (2, 3, 8)), (2, (2, 3, 6, 8)), (3, (1, 2, 4, 6, 4))):
        x = taeda.rand(shape)
        values, indices = getattr(nn, f"MaxPool{rank}d")(2, return_indices=True)(x)
        unpool = f"MaxUnpool{rank}d"
        values = values.detach().requires_grad_()
        compare(getattr(nn, unpool)(2), getattr(torch.nn, unpool)(2), (values, indices))


def test_embedding(torch, same):
    for call in (
        "Embedding(7, 3)",
        "Embedding(7, 3, padding_idx=-1)",
        "Embedding(7, 3, max_norm=1.0)",
        "Embedding(7, 3, scale_grad_by_freq=True)",
    ):
        ours, theirs = pair(torch, call)
        index = taeda.tensor([[1, 2, 6], [2, 2, 0]])
        out, expected = ours(index), theirs(torch.tensor([[1, 2, 6], [2, 2, 0]]))
        same(out, expected)
        out.sum().backward()
        expected.sum().backward()
        same(ours.weight.grad, theirs.weight.grad)
        same(ours.weight, theirs.weight)
    table = nn.Embedding.from_pretrained(taeda.ones(4, 2))
    assert not table.weight.requires_grad
    with pytest.raises(AssertionError):
        nn.Embedding(3, 2, padding_idx=3)


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
@pytest.mark.parametrize("padding_idx", [None, 2])
def test_embedding_bag(torch, same, mode, padding_idx):
    ours, theirs = pair(torch, f"EmbeddingBag(7, 3, mode={mode!r}, padding_idx={padding_idx})")
    for index, offsets in (
        ([1, 2, 4, 2, 6], [0, 2, 2]),
        ([[1, 2, 4], [2, 6, 0]], None),
    ):
        ours.zero_grad(), theirs.zero_grad()
        args = [taeda.tensor(index)] + ([] if offsets is None else [taeda.tensor(offsets)])
        others = [torch.tensor(index)] + ([] if offsets is None else [torch.tensor(offsets)])
        out, expected = ours(*args), theirs(*others)
        same(out, expected)
        out.sum().backward()
        expected.sum().backward()
        same(ours.weight.grad, theirs.weight.grad)


@pytest.mark.parametrize("mode", ["sum", "mean"])
@pytest.mark.parametrize("width", [1, 31, 32, 100])
def test_embedding_bag_of_one_size(torch, same, mode, width):
    for shape in ((5, 7), (1, 1), (0, 3)):
        table = torch.randn(11, width, dtype=torch.float64)
        index = torch.randint(0, 11, shape)
        ours = taeda.tensor(table.numpy(), requires_grad=True)
        theirs = table.clone().requires_grad_()
        places = taeda.tensor(index.numpy())
        out = nn.functional.embedding_bag(places, ours, mode=mode)
        expected = torch.nn.functional.embedding_bag(index, theirs, mode=mode)
        same(out, expected)
        (out * out).sum().backward()
        (expected * expected).sum().backward()
        same(ours.grad, theirs.grad)
    empty = nn.functional.embedding_bag(taeda.zeros(3, 0, dtype=taeda.int64), ours, mode=mode)
    same(empty, torch.zeros(3, width, dtype=torch.float64))
    ours = ours.detach()[:, :2].clone().requires_grad_()
    places = taeda.tensor([[0, 3, 3], [10, 2, 1]])
    call = lambda w: nn.functional.embedding_bag(places, w, mode=mode)  # noqa: E731
    assert taeda.autograd.gradcheck(call, (ours,)) and taeda.autograd.gradgradcheck(call, (ours,))
    tables = taeda.stack([ours.detach(), ours.detach() * 2])
    same(taeda.vmap(call)(tables), taeda.stack([call(t) for t in tables]))
    by_index = lambda i: nn.functional.embedding_bag(i, ours.detach(), mode=mode)  # noqa: E731
    many = taeda.stack([places, places.flip(0)])
    same(taeda.vmap(by_index)(many), taeda.stack([by_index(i) for i in many]))
    with pytest.raises(RuntimeError, match="index out of range"):
        nn.functional.embedding_bag(places + 9, ours, mode=mode)


def test_attention_masks(torch, compare):
    ours, theirs = pair(torch, "MultiheadAttention(6, 2, batch_first=True)")
    x = taeda.rand(2, 4, 6).requires_grad_()
    causal = taeda.ones(4, 4, dtype=taeda.bool).triu(1)
    padding = taeda.tensor([[False, False, False, True], [False, False, True, True]])
    compare(ours, theirs, (x, x, x), {"attn_mask": causal})
    compare(ours, theirs, (x, x, x), {"key_padding_mask": padding})
    compare(ours, theirs, (x, x, x), {"average_attn_weights": False})
    compare(ours, theirs, (x, x, x), {"need_weights": False, "attn_mask": causal})


def test_batch_norm_loads_version_1(torch):
    layer = nn.BatchNorm1d(2)
    state = layer.state_dict()
    del state["num_batches_tracked"]
    state._metadata[""]["version"] = 1
    layer.load_state_dict(state)
    assert int(layer.num_batches_tracked) == 0


def test_lazy_linear():
    layer = nn.LazyLinear(3)
    assert layer.has_uninitialized_params()
    assert repr(layer.weight) == "<UninitializedParameter>"
    assert tuple(layer(taeda.zeros(2, 5)).shape) == (2, 3)
    assert type(layer) is nn.Linear and type(layer.weight) is nn.Parameter
    assert tuple(layer.weight.shape) == (3, 5) and layer.in_features == 5
    assert not layer._forward_pre_hooks
    other = nn.LazyLinear(3)
    other.load_state_dict(layer.state_dict())
    assert tuple(other.weight.shape) == (3, 5)


@pytest.mark.parametrize(
    "call",
    [
        "Conv2d(3, 4, 3, groups=2)",
        "Conv2d(4, 3, 3, groups=2)",
        "Conv2d(4, 4, 3, groups=0)",
        "Conv2d(4, 4, 3, padding='foo')",
        "Conv2d(4, 4, 3, padding='same', stride=2)",
        "Conv2d(4, 4, 3, padding_mode='foo')",
        "ConvTranspose2d(4, 4, 3, padding_mode='circular')",
        "Dropout(1.5)",
        "GroupNorm(2, 3)",
        "Bilinear(0, 3, 2)",
        "Hardtanh(1, -1)",
        "MultiheadAttention(5, 2)",
        "MultiheadAttention(0, 2)",
        "MultiMarginLoss(p=3)",
        "TripletMarginLoss(margin=0)",
        "Unflatten(1, 3)",
        "Unflatten(1, (2, 'a'))",
    ],
)
def test_constructors_refuse(torch, call):
    with pytest.raises(Exception) as theirs:
        eval("nn." + call, {"nn": torch.nn})
    with pytest.raises(theirs.type):
        eval("nn." + call, {"nn": nn})


def test_wrong_inputs_are_refused(torch):
    for call, shape in (
        ("BatchNorm2d(3)", (2, 3)),
        ("BatchNorm1d(3)", (1, 3)),
        ("InstanceNorm2d(3, affine=True)", (2, 4, 5, 5)),
        ("InstanceNorm1d(3)", (2, 3, 1)),
        ("GLU()", (2, 3)),
        ("PixelShuffle(2)", (1, 3, 2, 2)),
        ("Softmax2d()", (2, 3)),
    ):
        with pytest.raises(Exception) as theirs:
            eval("nn." + call, {"nn": torch.nn})(torch.zeros(shape))
        with pytest.raises(theirs.type):
            eval("nn." + call, {"nn": nn})(taeda.zeros(shape))
