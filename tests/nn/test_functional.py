"""The functions of nn.functional that no layer wraps, or whose arguments layers do not reach."""

import pytest

import taeda
from taeda.nn import functional as F


def rand(*shape, seed=0, low=-1.0, high=1.0, grad=True):
    taeda.manual_seed(seed)
    return (taeda.rand(shape) * (high - low) + low).requires_grad_(grad)


CLASSES = taeda.tensor([1, 0, 2, 1])

# (name, positional arguments, keyword arguments)
CALLS = [
    ("relu6", (rand(4, 3, low=-10.0, high=10.0),), {}),
    ("hardtanh", (rand(4, 3),), {"min_val": -0.2, "max_val": 0.3}),
    ("prelu", (rand(4, 3), rand(3)), {}),
    ("prelu", (rand(4), rand(1)), {}),
    ("rrelu", (rand(20, 3),), {"training": True}),
    ("threshold", (rand(4, 3), 0.1, 5.0), {}),
    ("hardshrink", (rand(4, 3),), {"lambd": 0.2}),
    ("softshrink", (rand(4, 3),), {"lambd": 0.2}),
    ("softsign", (rand(4, 3),), {}),
    ("softmin", (rand(4, 3),), {"dim": 1}),
    ("softmax", (rand(4, 3), 1), {"dtype": "float64"}),
    ("log_softmax", (rand(4, 3), 0), {"dtype": "float64"}),
    ("gumbel_softmax", (rand(4, 3),), {"tau": 0.5}),
    ("gumbel_softmax", (rand(4, 3),), {"hard": True}),
    ("dropout", (rand(40, 3), 0.3), {}),
    ("dropout", (rand(40, 3), 1.0), {}),
    ("alpha_dropout", (rand(40, 3), 0.3), {"training": True}),
    ("alpha_dropout", (rand(40, 3), 1.0), {"training": True}),
    ("feature_alpha_dropout", (rand(40, 3, 2), 0.3), {"training": True}),
    ("dropout3d", (rand(3, 2, 2, 2), 0.3), {}),
    ("normalize", (rand(4, 3),), {}),
    ("normalize", (rand(4, 3),), {"p": 1.0, "dim": 0}),
    ("pairwise_distance", (rand(4, 3), rand(4, 3, seed=1)), {"p": 3.0}),
    ("pdist", (rand(5, 3),), {}),
    ("cosine_similarity", (rand(4, 3), rand(4, 3, seed=1)), {"dim": 0}),
    ("one_hot", (CLASSES,), {}),
    ("one_hot", (CLASSES, 5), {}),
    ("pad", (rand(2, 3, 4), (1, 2)), {}),
    ("pad", (rand(2, 3, 4), (1, -2, -1, 0)), {"value": 2.5}),
    ("pad", (rand(2, 3, 4), (1, 2)), {"mode": "reflect"}),
    ("pad", (rand(2, 3, 4), (1, 2)), {"mode": "circular"}),
    ("affine_grid", (rand(2, 2, 3), (2, 3, 4, 5)), {"align_corners": False}),
    ("affine_grid", (rand(2, 2, 3), (2, 3, 4, 5)), {"align_corners": True}),
    ("affine_grid", (rand(2, 3, 4), (2, 3, 4, 5, 1)), {"align_corners": False}),
    ("conv2d", (rand(1, 2, 5, 5), rand(3, 2, 3, 3)), {"stride": 2, "padding": (1, 0)}),
    ("conv2d", (rand(1, 2, 5, 5), rand(3, 2, 2, 3)), {"padding": "same", "dilation": 2}),
    ("conv1d", (rand(2, 5), rand(3, 2, 3), rand(3)), {"padding": "valid"}),
    ("layer_norm", (rand(2, 3, 4), (3, 4)), {}),
    ("rms_norm", (rand(2, 3, 4), (4,), rand(4)), {"eps": 0.01}),
    ("group_norm", (rand(2, 4, 3), 2, rand(4), rand(4)), {}),
    ("batch_norm", (rand(4, 3), None, None, rand(3), rand(3)), {"training": True}),
    ("instance_norm", (rand(2, 3, 4),), {}),
    ("local_response_norm", (rand(2, 3, 4), 2), {}),
    ("interpolate", (rand(1, 2, 5),), {"scale_factor": 1.5}),
    ("interpolate", (rand(1, 2, 5),), {"size": 3, "mode": "nearest-exact"}),
    ("interpolate", (rand(1, 2, 5),), {"size": 8, "mode": "linear"}),
    ("interpolate", (rand(1, 2, 5),), {"scale_factor": 1.3, "mode": "linear"}),
    ("interpolate", (rand(1, 2, 5, 4),), {"size": (3, 7), "mode": "bicubic"}),
    ("interpolate", (rand(1, 2, 5, 4),), {"size": 9, "mode": "bicubic", "align_corners": True}),
    ("interpolate", (rand(1, 2, 3, 4, 2),), {"size": (5, 2, 4), "mode": "trilinear"}),
    ("interpolate", (rand(1, 2, 9, 8),), {"size": (3, 5), "mode": "bilinear", "antialias": True}),
    ("interpolate", (rand(1, 2, 9, 8),), {"size": (4, 12), "mode": "bicubic", "antialias": True}),
    ("interpolate", (rand(1, 2, 9, 8),), {"size": (3, 5), "mode": "area"}),
    (
        "interpolate",
        (rand(1, 2, 5),),
        {"scale_factor": 1.3, "mode": "linear", "recompute_scale_factor": True},
    ),
    ("scaled_dot_product_attention", (rand(2, 3, 4), rand(2, 5, 4), rand(2, 5, 6)), {}),
    (
        "scaled_dot_product_attention",
        (rand(2, 3, 5, 4), rand(2, 3, 5, 4, seed=1), rand(2, 3, 5, 4, seed=2)),
        {"is_causal": True, "scale": 0.3},
    ),
    (
        "scaled_dot_product_attention",
        (rand(2, 5, 4), rand(2, 5, 4, seed=1), rand(2, 5, 4, seed=2)),
        {"attn_mask": rand(5, 5, seed=3, grad=False)},
    ),
    (
        "scaled_dot_product_attention",
        (rand(2, 5, 4), rand(2, 5, 4, seed=1), rand(2, 5, 4, seed=2)),
        {"attn_mask": taeda.ones(5, 5, dtype=taeda.bool).tril()},
    ),
    (
        "scaled_dot_product_attention",
        (rand(2, 6, 5, 4), rand(2, 3, 5, 4, seed=1), rand(2, 3, 5, 4, seed=2)),
        {"enable_gqa": True},
    ),
    ("fold", (rand(8, 12), (4, 5), 2), {}),
    ("unfold", (rand(3, 6, 7), 2), {"stride": 2}),
    ("multi_margin_loss", (rand(4, 3), CLASSES), {"p": 2, "margin": 0.5}),
]


@pytest.mark.filterwarnings("ignore:Using padding='same' with even kernel lengths")
@pytest.mark.parametrize(("name", "args", "kwargs"), CALLS, ids=[c[0] for c in CALLS])
def test_like_torch(torch, compare, name, args, kwargs):
    ours, theirs = getattr(F, name), getattr(torch.nn.functional, name)
    if "dtype" in kwargs:
        a = ours(*args, dtype=getattr(taeda, kwargs["dtype"]))
        assert a.dtype == getattr(taeda, kwargs["dtype"])
        return
    compare(ours, theirs, args, kwargs)


@pytest.mark.parametrize("mode", ["reflect", "replicate", "circular"])
@pytest.mark.parametrize(
    ("shape", "amounts"),
    [((2, 3, 4), (3, 2)), ((3, 4), (-1, 2)), ((2, 3, 5, 4), (1, 0, 2, 3)),
     ((2, 3, 5, 4), (-1, -2, 1, 1)), ((1, 2, 3, 4, 5), (1, 2, 0, 0, 2, 1)), ((0, 2, 3), (1, 1))],
)  # fmt: skip
def test_pad_by_own_elements(torch, compare, mode, shape, amounts):
    compare(F.pad, torch.nn.functional.pad, (rand(*shape), amounts, mode), {})
    x = rand(*shape).transpose(-1, -2).contiguous().transpose(-1, -2).detach().double()
    if 0 in shape:
        return
    x.requires_grad_()
    call = lambda t: F.pad(t, amounts, mode)  # noqa: E731
    assert taeda.autograd.gradcheck(call, (x,)) and taeda.autograd.gradgradcheck(call, (x,))
    many = taeda.stack([x.detach(), x.detach() * 2], 1)
    expected = taeda.stack([call(x.detach()), call(x.detach() * 2)])
    assert taeda.equal(taeda.vmap(call, 1)(many), expected)
    slopes = taeda.vmap(taeda.func.grad(lambda t: (call(t) ** 2).sum()), 1)(many)
    assert taeda.equal(slopes[1], slopes[0] * 2)


@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
@pytest.mark.parametrize("padding_mode", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("align_corners", [True, False])
def test_grid_sample(torch, compare, mode, padding_mode, align_corners):
    options = {"mode": mode, "padding_mode": padding_mode, "align_corners": align_corners}
    image = rand(2, 3, 4, 5)
    grid = rand(2, 3, 3, 2, seed=1, low=-1.6, high=1.6, grad=mode != "nearest")
    theirs, close = torch.nn.functional.grid_sample, {"rtol": 1e-3, "atol": 1e-4}
    compare(F.grid_sample, theirs, (image, grid), options, **close)
    if mode != "bicubic":
        volume = rand(1, 2, 3, 4, 5)
        grid = rand(1, 2, 3, 3, 3, seed=1, low=-1.6, high=1.6, grad=mode != "nearest")
        compare(F.grid_sample, theirs, (volume, grid), options, **close)


@pytest.mark.parametrize(
    "name",
    ["relu", "relu6", "leaky_relu", "elu", "celu", "selu", "silu", "mish", "hardtanh", "rrelu",
     "hardsigmoid", "hardswish"],
)  # fmt: skip
def test_inplace_forms(same, name):
    x = rand(4, 3, grad=False)
    expected = getattr(F, name)(x.clone())
    overwritten = x.clone()
    result = getattr(F, name)(overwritten, inplace=True)
    assert result is overwritten
    same(result, expected)
    if hasattr(F, name + "_"):
        same(getattr(F, name + "_")(x.clone()), expected)
    with taeda.enable_grad():
        leaf = x.clone().requires_grad_()
        getattr(F, name)(leaf * 1, inplace=True).sum().backward()
        other = x.clone().requires_grad_()
        getattr(F, name)(other).sum().backward()
        same(leaf.grad, other.grad)


def test_inplace_dropout(same):
    for name, shape in (
        ("dropout", (30,)),
        ("alpha_dropout", (30,)),
        ("dropout1d", (3, 4, 2)),
        ("dropout2d", (3, 4, 2, 2)),
        ("feature_alpha_dropout", (5, 4, 2)),
    ):
        x = taeda.ones(shape)
        taeda.manual_seed(3)
        expected = getattr(F, name)(x, 0.5, True)
        taeda.manual_seed(3)
        assert getattr(F, name)(x, 0.5, True, inplace=True) is x or name == "dropout1d"
        same(x, expected)


def test_dropout_takes_a_generator(same):
    x = taeda.ones(50)
    one = F.dropout(x, 0.5, generator=taeda.Generator().manual_seed(3))
    taeda.manual_seed(4)
    taeda.rand(1)
    same(one, F.dropout(x, 0.5, generator=taeda.Generator().manual_seed(3)))


def test_softmax_guesses_its_dimension_with_a_warning(same):
    x = rand(4, 3)
    with pytest.warns(UserWarning, match="Implicit dimension choice for softmax"):
        same(F.softmax(x), F.softmax(x, 1))
    with pytest.warns(UserWarning, match="Implicit dimension"):
        same(F.log_softmax(rand(2, 3, 4)), F.log_softmax(rand(2, 3, 4), 0))


def test_normalize_into_out(same):
    x, out = rand(4, 3, grad=False), taeda.empty(4, 3)
    assert F.normalize(x, out=out) is out
    same(out, F.normalize(x))


def test_attention_row_that_sees_nothing(torch, same):
    q = rand(1, 2, 4)
    mask = taeda.tensor([[True, True], [False, False]])
    out = F.scaled_dot_product_attention(q, q, q, attn_mask=mask)
    assert out[0, 1].tolist() == [0.0] * 4
    out.sum().backward()
    assert bool(taeda.isfinite(q.grad).all())


def test_upsample_is_deprecated(same):
    x = rand(1, 1, 3, grad=False)
    with pytest.warns(UserWarning, match="deprecated"):
        same(F.upsample(x, size=6), F.interpolate(x, size=6))


REFUSED = [
    ("dropout", "(x, 1.5)"),
    ("dropout1d", "(x[0, 0], 0.5)"),
    ("hardtanh", "(x, 1.0, -1.0)"),
    ("softshrink", "(x, -1.0)"),
    ("prelu", "(x, x[0, 0])"),
    ("glu", "(x[..., :3])"),
    ("interpolate", "(x)"),
    ("interpolate", "(x, size=3, scale_factor=2)"),
    ("interpolate", "(x, size=3, mode='foo')"),
    ("interpolate", "(x, size=3, mode='bilinear')"),
    ("interpolate", "(x, size=3, align_corners=True)"),
    ("interpolate", "(x, size=(3, 2))"),
    ("interpolate", "(x, size=3, mode='linear', antialias=True)"),
    ("local_response_norm", "(x[0], 2)"),
    ("group_norm", "(x[0, 0], 2)"),
    ("instance_norm", "(x[:, :, :1])"),
    ("batch_norm", "(x[:1, :, 0], None, None, training=True)"),
    ("grid_sample", "(x, x, mode='foo')"),
    ("mse_loss", "(x, x, reduction='foo')"),
    ("huber_loss", "(x, x, delta=0)"),
    ("smooth_l1_loss", "(x, x, beta=-1.0)"),
    ("binary_cross_entropy", "(x, x[:, :1])"),
    ("binary_cross_entropy_with_logits", "(x, x[:, :1])"),
    ("gaussian_nll_loss", "(x, x, -1.0)"),
    ("gaussian_nll_loss", "(x, x, x[0, 0])"),
    ("margin_ranking_loss", "(x, x[0], x)"),
    ("cosine_embedding_loss", "(x, x, x)"),
    ("triplet_margin_loss", "(x, x, x[0])"),
    ("triplet_margin_loss", "(x, x, x, margin=-1)"),
    ("mse_loss", "(x, x, weight=x[0])"),
]


@pytest.mark.parametrize(("name", "call"), REFUSED, ids=[a + b for a, b in REFUSED])
def test_refuses_what_torch_refuses(torch, name, call):
    with pytest.raises(Exception) as theirs:
        eval("f" + call, {"f": getattr(torch.nn.functional, name), "x": torch.ones(2, 3, 4)})
    with pytest.raises(theirs.type):
        eval("f" + call, {"f": getattr(F, name), "x": taeda.ones(2, 3, 4)})


def test_convolution_over_time(torch, compare):
    x, weight, bias = rand(5, 2, 3), rand(3, 3, 4, seed=1), rand(4, seed=2)
    for pad in (0, 2):
        compare(F.conv_tbc, torch.nn.functional.conv_tbc, (x, weight, bias, pad))
    with pytest.raises(RuntimeError, match=r"conv_tbc: .* got shapes \[5, 2\]"):
        F.conv_tbc(x[..., 0], weight, bias)
