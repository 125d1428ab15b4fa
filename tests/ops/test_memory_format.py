"""Ops keep the memory format channels_last, of results and of gradients."""

import math

import pytest

import taeda
from taeda import nn
from taeda.nn import functional as F

LAST, LAST_3D = taeda.channels_last, taeda.channels_last_3d


def call(nn, function):
    """A module that calls the function."""
    return type("Call", (nn.Module,), {"forward": lambda self, x: function(x)})()


LAYERS_2D = {
    "conv": lambda nn: nn.Conv2d(6, 8, 3, padding=1),
    "conv 1x1": lambda nn: nn.Conv2d(6, 8, 1),
    "conv strided": lambda nn: nn.Conv2d(6, 8, 3, stride=2),
    "conv dilated": lambda nn: nn.Conv2d(6, 8, 3, dilation=2),
    "conv grouped": lambda nn: nn.Conv2d(6, 4, 3, groups=2),
    "conv depthwise": lambda nn: nn.Conv2d(6, 6, 3, groups=6),
    "conv transposed": lambda nn: nn.ConvTranspose2d(6, 4, 3, stride=2),
    "batch norm": lambda nn: nn.BatchNorm2d(6),
    "batch norm, eval": lambda nn: nn.BatchNorm2d(6).eval(),
    "group norm": lambda nn: nn.GroupNorm(2, 6),
    "max pool": lambda nn: nn.MaxPool2d(2),
    "average pool": lambda nn: nn.AvgPool2d(2),
    "adaptive average pool": lambda nn: nn.AdaptiveAvgPool2d(3),
    "adaptive max pool": lambda nn: nn.AdaptiveMaxPool2d(3),
    "zero pad": lambda nn: nn.ZeroPad2d(1),
    "reflection pad": lambda nn: nn.ReflectionPad2d(1),
    "replication pad": lambda nn: nn.ReplicationPad2d(1),
    "pixel shuffle": lambda nn: nn.Sequential(nn.Conv2d(6, 8, 1), nn.PixelShuffle(2)),
    "pixel unshuffle": lambda nn: nn.PixelUnshuffle(2),
    "channel shuffle": lambda nn: nn.ChannelShuffle(2),
    "dropout": lambda nn: nn.Dropout(0.5),
    "resize, nearest": lambda nn: nn.Upsample(scale_factor=2),
    "resize, bilinear": lambda nn: nn.Upsample(scale_factor=2, mode="bilinear"),
    "GELU": lambda nn: nn.GELU(),
    "roll": lambda nn: call(nn, lambda x: x.roll(1, 2)),
    "mixed pointwise": lambda nn: call(
        nn, lambda x: x * x.detach().contiguous() + x.detach()[:, :1]
    ),
    "sort": lambda nn: call(nn, lambda x: x.sort(1).values),
}
LAYERS_3D = {
    "conv": lambda nn: nn.Conv3d(6, 8, 3),
    "conv transposed": lambda nn: nn.ConvTranspose3d(6, 4, 3),
    "batch norm": lambda nn: nn.BatchNorm3d(6),
    "max pool": lambda nn: nn.MaxPool3d(2),
    "replication pad": lambda nn: nn.ReplicationPad3d(1),
    "resize, trilinear": lambda nn: nn.Upsample(scale_factor=2, mode="trilinear"),
}
# Their gradients come from views of the plain one.
PLAIN_GRADIENT = {"pixel unshuffle", "channel shuffle", "sort"}


def run(layer, x, format):
    """The result, and the gradients of the input and the parameters, for a given layout."""
    taeda.manual_seed(0)
    module = layer(nn)
    if format is not None:
        module, x = module.to(memory_format=format), x.to(memory_format=format)
    x = x.clone().requires_grad_()
    seen = []
    between = x * 1
    between.register_hook(seen.append)
    y = module(between)
    g = taeda.linspace(-1, 1, y.numel()).reshape(y.shape)
    y.backward(g if format is None else g.to(memory_format=format))
    return [y.detach(), seen[0], *(p.grad for p in module.parameters())]


def check(name, layer, shape, format):
    x = taeda.randn(*shape, generator=taeda.Generator().manual_seed(1))
    plain, last = run(layer, x, None), run(layer, x, format)
    if name != "dropout":  # which draws in the order of memory
        for a, b in zip(plain, last, strict=True):
            taeda.testing.assert_close(b, a, atol=1e-5, rtol=1e-4)
    assert last[0].is_contiguous(memory_format=format)
    assert not last[0].is_contiguous()
    if name not in PLAIN_GRADIENT:
        assert last[1].is_contiguous(memory_format=format)
    for p in last[2:]:
        assert p.dim() < 4 or p.is_contiguous(memory_format=format)


@pytest.mark.parametrize("name", LAYERS_2D)
def test_channels_last_stays(name):
    check(name, LAYERS_2D[name], (2, 6, 8, 10), LAST)


@pytest.mark.parametrize("name", LAYERS_3D)
def test_channels_last_3d_stays(name):
    check(name, LAYERS_3D[name], (2, 6, 5, 6, 7), LAST_3D)


@pytest.mark.parametrize(
    "arguments",
    [(2,), ((3, 2, 1), (1, 2, 3)), (3, 2, 1), (2, 1, 0, 2), (3, 2, 1, 1, True)],
    ids=str,
)
@pytest.mark.parametrize("dtype", [taeda.float32, taeda.float16, taeda.int64], ids=str)
@pytest.mark.parametrize("channels", [1, 6])
def test_max_pool3d_without_gradients(arguments, dtype, channels):
    x = (taeda.randn(2, channels, 5, 6, 7) * 9).to(dtype)
    if dtype.is_floating_point:
        x[0, 0, 1, 2, 3] = math.nan
    pooled = F.max_pool3d(x.to(memory_format=LAST_3D), *arguments)
    assert pooled.is_contiguous(memory_format=LAST_3D)
    assert taeda.equal(pooled.nan_to_num(99), F.max_pool3d(x, *arguments).nan_to_num(99))


@pytest.mark.parametrize("name", LAYERS_2D)
def test_strides_are_pytorchs(name):
    torch = pytest.importorskip("torch")
    strides = []
    for library in (taeda, torch):
        format = library.channels_last
        module = LAYERS_2D[name](library.nn).to(memory_format=format)
        x = library.ones(2, 6, 8, 10).to(memory_format=format).requires_grad_()
        y = module(x)
        y.sum().backward()
        parameters = [(p.stride(), p.grad.stride()) for p in module.parameters()]
        strides.append((y.stride(), x.grad.stride(), parameters))
    assert strides[0] == strides[1]


def test_sizes_of_one():
    x = taeda.ones(2, 1, 3, 3)
    assert x.contiguous(memory_format=LAST).stride() == (9, 9, 3, 1)  # both formats already
    assert x.to(memory_format=LAST).stride() == (9, 1, 3, 1)
    pooled = F.adaptive_avg_pool2d(taeda.ones(2, 6, 8, 8).to(memory_format=LAST), 1)
    assert pooled.stride() == (6, 1, 6, 6)


def test_training_in_channels_last():
    """A network trains to the weights that it reaches in the usual format."""
    weights = []
    for format in (taeda.contiguous_format, LAST):
        taeda.manual_seed(0)
        model = nn.Sequential(
            nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(8, 8, 3, groups=8), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 4),
        ).to(memory_format=format)  # fmt: skip
        optimizer = taeda.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        x, y = taeda.randn(8, 3, 12, 12).to(memory_format=format), taeda.arange(8) % 4
        for _ in range(5):
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            optimizer.step()
        weights.append([p.detach() for p in model.parameters()])
        assert model[0].weight.is_contiguous(memory_format=format)
    for a, b in zip(*weights, strict=True):
        taeda.testing.assert_close(b, a, atol=1e-4, rtol=1e-3)


@pytest.mark.parametrize("mode", ["bilinear", "bicubic", "nearest"])
def test_bytes_are_resized_in_their_format(mode):
    x = (taeda.arange(2 * 3 * 6 * 8) % 251).to(taeda.uint8).reshape(2, 3, 6, 8)
    want = F.interpolate(x, size=(5, 7), mode=mode)
    got = F.interpolate(x.contiguous(memory_format=LAST), size=(5, 7), mode=mode)
    assert want.is_contiguous() and got.is_contiguous(memory_format=LAST)
    assert taeda.equal(got, want)


def test_unpooling_keeps_the_format():
    x = taeda.rand(2, 3, 6, 8).contiguous(memory_format=LAST).requires_grad_()
    y = F.max_unpool2d(*F.max_pool2d(x, 2, return_indices=True), 2)
    y.square().sum().backward()
    assert y.is_contiguous(memory_format=LAST) and x.grad.is_contiguous(memory_format=LAST)
    plain = F.max_unpool2d(*F.max_pool2d(x.detach().contiguous(), 2, return_indices=True), 2)
    assert plain.is_contiguous() and taeda.equal(plain, y)


POOLS = {
    "max": lambda x: F.max_pool2d(x, 3, 2, 1, return_indices=True),
    "max, dilated": lambda x: F.max_pool2d(x, 2, 1, 1, 2, ceil_mode=True, return_indices=True),
    "adaptive max": lambda x: F.adaptive_max_pool2d(x, (3, 2), return_indices=True),
    "average": lambda x: F.avg_pool2d(x, 3, 2, 1, count_include_pad=False),
    "average, ceil": lambda x: F.avg_pool2d(x, (2, 3), ceil_mode=True),
    "adaptive average": lambda x: F.adaptive_avg_pool2d(x, (3, 2)),
    "adaptive average, strided": lambda x: F.adaptive_avg_pool2d(x, (3, 7)),
    "average of all": lambda x: F.adaptive_avg_pool2d(x, 1),
}


@pytest.mark.parametrize("channels", [1, 2, 4, 5, 8, 19])
@pytest.mark.parametrize("name", POOLS)
def test_pools_of_planes_whose_channels_are_neighbours(name, channels):
    taeda.manual_seed(0)
    x = taeda.randn(3, channels, 9, 7, dtype=taeda.float64)
    x[0, channels - 1, 4, 3] = float("nan")
    found = []
    for given in (x, x.to(memory_format=LAST), x.to(memory_format=LAST)[:, :, ::2]):
        leaf = given.detach().requires_grad_()
        made = POOLS[name](leaf)
        made, *indices = made if isinstance(made, tuple) else (made,)
        made.nan_to_num().cos().sum().backward()
        found.append((made.detach(), *indices, leaf.grad))
    for plain, last in zip(*found[:2], strict=True):
        taeda.testing.assert_close(last, plain, equal_nan=True)
    again = POOLS[name](x[:, :, ::2].contiguous())  # of memory that is not dense
    again = again if isinstance(again, tuple) else (again,)
    for plain, last in zip(again, found[2], strict=False):
        taeda.testing.assert_close(last, plain, equal_nan=True)
