"""nn.init beside PyTorch: the same numbers for the same seed."""

import pytest

import taeda
from taeda.nn import init

# (name, shape, positional arguments, keyword arguments)
CASES = [
    ("uniform_", (3, 4), (), {}),
    ("uniform_", (40,), (-2.0, 3.0), {}),
    ("normal_", (3, 4), (), {}),
    ("normal_", (40,), (1.0, 0.1), {}),
    ("trunc_normal_", (200,), (), {}),
    ("trunc_normal_", (5, 7), (), {"std": 0.02, "a": -0.03, "b": 0.04}),
    ("trunc_normal_", (100,), (0.0, 1.0, 0.5, 1.0), {}),
    ("trunc_normal_", (100,), (0.0, 1.0, 1.2, 3.0), {}),
    ("trunc_normal_", (100,), (3.0, 2.0, -1.0, 0.5), {}),
    ("constant_", (3,), (2.5,), {}),
    ("ones_", (3,), (), {}),
    ("zeros_", (3,), (), {}),
    ("eye_", (3, 4), (), {}),
    ("dirac_", (4, 2, 3), (), {}),
    ("dirac_", (4, 2, 3, 3), (2,), {}),
    ("dirac_", (2, 4, 3, 3, 2), (), {}),
    ("xavier_uniform_", (3, 4, 2), (), {}),
    ("xavier_uniform_", (3, 4), (2.0,), {}),
    ("xavier_normal_", (30, 4), (), {}),
    ("kaiming_uniform_", (3, 4), (), {}),
    ("kaiming_uniform_", (3, 4, 5), (), {"a": 0.3, "mode": "fan_out"}),
    ("kaiming_normal_", (3, 4), (), {"nonlinearity": "relu"}),
    ("kaiming_normal_", (3, 4), (), {"mode": "FAN_OUT", "nonlinearity": "selu"}),
    ("orthogonal_", (3, 5), (), {}),
    ("orthogonal_", (5, 3), (), {"gain": 2.0}),
    ("orthogonal_", (4, 2, 3), (), {}),
    ("sparse_", (10, 4), (0.3,), {}),
    ("sparse_", (10, 4), (0.5,), {"std": 1.0}),
]


@pytest.mark.parametrize(("name", "shape", "args", "kwargs"), CASES)
def test_like_torch(torch, same, name, shape, args, kwargs):
    ours, theirs = taeda.empty(shape), torch.empty(shape)
    taeda.manual_seed(3)
    assert getattr(init, name)(ours, *args, **kwargs) is ours
    after = taeda.rand(2)
    torch.manual_seed(3)
    getattr(torch.nn.init, name)(theirs, *args, **kwargs)
    same(ours, theirs)
    same(after, torch.rand(2))


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("uniform_", ()),
        ("normal_", ()),
        ("trunc_normal_", ()),
        ("xavier_uniform_", ()),
        ("xavier_normal_", ()),
        ("kaiming_uniform_", ()),
        ("kaiming_normal_", ()),
        ("orthogonal_", ()),
        ("sparse_", (0.3,)),
    ],
)
def test_generator(same, name, args):
    taeda.manual_seed(1)
    before = taeda.get_rng_state()
    results = [
        getattr(init, name)(taeda.empty(6, 4), *args, generator=taeda.Generator().manual_seed(7))
        for _ in range(2)
    ]
    same(*results)
    assert taeda.get_rng_state().tolist() == before.tolist()


def test_no_gradients_are_recorded():
    w = taeda.empty(3, 4, requires_grad=True)
    for name in ("uniform_", "normal_", "trunc_normal_", "zeros_", "ones_", "eye_", "orthogonal_"):
        assert getattr(init, name)(w).grad_fn is None and w.requires_grad


def test_calculate_gain(torch):
    for name in ("linear", "conv2d", "sigmoid", "tanh", "relu", "leaky_relu", "selu"):
        assert init.calculate_gain(name) == pytest.approx(torch.nn.init.calculate_gain(name))
    assert init.calculate_gain("leaky_relu", 0.5) == pytest.approx((2 / 1.25) ** 0.5)


@pytest.mark.parametrize(
    "call",
    [
        "calculate_gain('foo')",
        "calculate_gain('leaky_relu', True)",
        "xavier_uniform_(t(3))",
        "kaiming_uniform_(t(3, 3), mode='foo')",
        "kaiming_normal_(t(3))",
        "eye_(t(3))",
        "dirac_(t(3))",
        "dirac_(t(3, 3, 3), groups=2)",
        "orthogonal_(t(3))",
        "sparse_(t(3, 3, 3), 0.1)",
    ],
)
def test_refusals_like_torch(torch, call):
    def of(module, lib):
        try:
            eval("module." + call, {"module": module, "t": lib.empty})
        except Exception as error:
            return type(error), str(error)

    (kind, message), (theirs, part) = of(init, taeda), of(torch.nn.init, torch)
    assert kind is theirs
    assert part in message  # which also names the function, or what was given


def test_warnings():
    with pytest.warns(UserWarning, match="zero-element"):
        init.kaiming_uniform_(taeda.empty(0, 3))
    with pytest.warns(UserWarning, match="more than 2 std"):
        init.trunc_normal_(taeda.empty(3), mean=5.0)
