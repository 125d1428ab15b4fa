"""Parametrizations, weight and spectral normalisation, beside PyTorch's."""

import copy
import io
import pickle

import pytest

import taeda
from taeda import nn
from taeda.nn.utils import parametrizations, parametrize


class Symmetric(nn.Module):
    def forward(self, x):
        return x.triu() + x.triu(1).t()

    def right_inverse(self, x):
        return x.triu()


class Product(nn.Module):
    """A parametrization by two tensors."""

    def forward(self, a, b):
        return a * b

    def right_inverse(self, x):
        return x / 2, taeda.full_like(x, 2.0)


class Double(nn.Module):
    def forward(self, x):
        return 2 * x


def test_register_assign_and_remove():
    layer = nn.Linear(3, 3)
    weight = layer.weight
    parametrize.register_parametrization(layer, "weight", Symmetric())
    assert type(layer).__name__ == "ParametrizedLinear" and isinstance(layer, nn.Linear)
    assert parametrize.is_parametrized(layer, "weight")
    assert not parametrize.is_parametrized(layer, "bias")
    assert parametrize.type_before_parametrizations(layer) is nn.Linear
    assert layer.parametrizations.weight.original is weight  # optimizers keep hold of it
    assert list(layer.state_dict()) == ["bias", "parametrizations.weight.original"]
    assert taeda.equal(layer.weight, layer.weight.t())
    layer(taeda.ones(2, 3)).sum().backward()
    assert weight.grad is not None
    value = taeda.ones(3, 3)
    layer.weight = value
    assert taeda.equal(layer.weight, value) and taeda.equal(weight, value.triu())
    assert taeda.equal(value, taeda.ones(3, 3))
    with pytest.raises(KeyError, match="already exists"):
        layer.weight = nn.Parameter(value)
    parametrize.remove_parametrizations(layer, "weight")
    assert type(layer) is nn.Linear and layer.weight is weight
    assert list(layer.state_dict()) == ["bias", "weight"] and "weight" not in vars(nn.Linear)
    assert taeda.equal(weight, value)


def test_several_on_one_and_on_buffers():
    layer = nn.BatchNorm1d(2)
    parametrize.register_parametrization(layer, "running_mean", Double())
    assert "parametrizations.running_mean.original" in layer.state_dict()
    layer = nn.Linear(2, 2)
    first = layer.weight.detach().clone()
    parametrize.register_parametrization(layer, "weight", Product())
    parametrize.register_parametrization(layer, "weight", Double())
    parametrize.register_parametrization(layer, "bias", Double())
    assert taeda.equal(layer.weight, 2 * first)
    assert list(layer.state_dict()) == [
        "parametrizations.weight.original0",
        "parametrizations.weight.original1",
        "parametrizations.bias.original",
    ]
    with pytest.raises(RuntimeError, match="Double does not implement right_inverse"):
        layer.weight = first
    with pytest.raises(ValueError, match="sequence of tensors"):
        parametrize.remove_parametrizations(layer, "weight", leave_parametrized=False)
    parametrize.remove_parametrizations(layer, "weight")
    assert isinstance(layer.weight, nn.Parameter) and taeda.equal(layer.weight, 2 * first)
    bias = layer.parametrizations.bias.original.detach().clone()
    parametrize.remove_parametrizations(layer, "bias", leave_parametrized=False)
    assert taeda.equal(layer.bias, bias) and type(layer) is nn.Linear


def test_copies_pickles_and_files():
    layer = parametrize.register_parametrization(nn.Linear(3, 3), "weight", Symmetric())
    for other in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        assert isinstance(other, nn.Linear) and repr(other) == repr(layer)
        assert taeda.equal(other.weight, layer.weight)
        other.weight = taeda.zeros(3, 3)
        assert not taeda.equal(other.weight, layer.weight)
    file = io.BytesIO()
    taeda.save(layer.state_dict(), file)
    file.seek(0)
    other = parametrize.register_parametrization(nn.Linear(3, 3), "weight", Symmetric())
    other.load_state_dict(taeda.load(file))
    assert taeda.equal(other.weight, layer.weight)


def test_cached():
    layer = parametrize.register_parametrization(nn.Linear(3, 3), "weight", Symmetric())
    assert layer.weight is not layer.weight
    with parametrize.cached():
        first = layer.weight
        with parametrize.cached():
            assert layer.weight is first
        assert layer.weight is first
        layer.weight = taeda.zeros(3, 3)
        assert taeda.equal(layer.weight, taeda.zeros(3, 3))
    assert not parametrize._cache


def test_transfer():
    source = parametrizations.weight_norm(nn.Linear(3, 4))
    target = nn.Linear(3, 4)
    parametrize.transfer_parametrizations_and_params(source, target)
    assert taeda.equal(source.weight, target.weight)
    assert target.parametrizations.weight.original0 is not source.parametrizations.weight.original0


def test_refusals():
    class First(nn.Module):
        def forward(self, x):
            return x[0]

    class ToDouble(nn.Module):
        def forward(self, x):
            return x.double()

    class BadInverse(Double):
        def right_inverse(self, x):
            return 3

    class Shifted(First):
        def right_inverse(self, x):
            return x + 1

    for module, match in [
        (First(), "may not change the shape"),
        (Shifted(), "may not change the shape"),
        (ToDouble(), "may not change the dtype"),
        (BadInverse(), "'right_inverse' must return a Tensor"),
    ]:
        layer = nn.Linear(2, 2)
        before = layer.weight.detach().clone()
        with pytest.raises(ValueError, match=match):
            parametrize.register_parametrization(layer, "weight", module)
        assert taeda.equal(layer.weight, before)
        assert type(layer) is nn.Linear and list(layer.state_dict()) == ["weight", "bias"]
    with pytest.raises(ValueError, match="with name 'nothing'"):
        parametrize.register_parametrization(nn.Linear(2, 2), "nothing", Double())
    with pytest.raises(ValueError, match="does not have a parametrization"):
        parametrize.remove_parametrizations(nn.Linear(2, 2), "weight")
    parametrize.register_parametrization(nn.Linear(2, 2), "weight", First(), unsafe=True)


CASES = [
    ("Linear(3, 4)", (2, 3), {}),
    ("Linear(3, 4)", (2, 3), {"dim": 1}),
    ("Conv2d(3, 4, 2)", (2, 3, 5, 5), {}),
    ("ConvTranspose2d(3, 4, 2)", (2, 3, 5, 5), {}),
]


def trained(module, x, target, namespace):
    """Some steps of descent on a module; the outputs along the way."""
    outputs = []
    for _ in range(3):
        module.zero_grad()
        output = module(x)
        ((output - target) ** 2).mean().backward()
        with namespace.no_grad():
            for p in module.parameters():
                p -= 0.1 * p.grad
        outputs.append(output.detach())
    module.eval()
    return [*outputs, module(x).detach(), module(x).detach()]


@pytest.mark.parametrize(("make", "shape", "kwargs"), CASES)
@pytest.mark.parametrize("where", ["parametrizations.weight_norm", "parametrizations.spectral_norm",
                                   "weight_norm", "spectral_norm"])  # fmt: skip
@pytest.mark.filterwarnings("ignore")
def test_norms(torch, same, to_torch, make, shape, kwargs, where):
    ours, theirs = eval("nn." + make), eval("torch.nn." + make, {"torch": torch})
    theirs.load_state_dict(to_torch(dict(ours.state_dict())))
    taeda.manual_seed(1)
    torch.manual_seed(1)
    ours = eval("nn.utils." + where)(ours, **kwargs)
    theirs = eval("torch.nn.utils." + where, {"torch": torch})(theirs, **kwargs)
    assert list(ours.state_dict()) == list(theirs.state_dict())
    assert dict(ours.state_dict()._metadata) == dict(theirs.state_dict()._metadata)
    same(list(ours.state_dict().values()), list(theirs.state_dict().values()))
    x = taeda.randn(shape)
    target = taeda.randn(ours(x).shape)
    theirs(to_torch(x))
    same(
        trained(ours, x, target, taeda),
        trained(theirs, to_torch(x), to_torch(target), torch),
        1e-4, 1e-5,
    )  # fmt: skip
    before = ours(x)
    if where.startswith("param"):
        parametrize.remove_parametrizations(ours, "weight")
    else:
        getattr(nn.utils, "remove_" + where)(ours)
    assert sorted(n for n, _ in ours.named_parameters()) == ["bias", "weight"]
    assert taeda.allclose(before, ours(x), atol=1e-6) and not ours._forward_pre_hooks


@pytest.mark.filterwarnings("ignore")
def test_state_of_the_older_weight_norm():
    old = nn.utils.weight_norm(nn.Linear(3, 4))
    new = parametrizations.weight_norm(nn.Linear(3, 4))
    new.load_state_dict(old.state_dict())
    assert taeda.equal(new(taeda.ones(1, 3)), old(taeda.ones(1, 3)))
    with pytest.raises(RuntimeError, match="Cannot register two"):
        nn.utils.weight_norm(old)
    with pytest.raises(ValueError, match="weight_norm of 'weight' not found"):
        nn.utils.remove_weight_norm(new)
    with pytest.raises(ValueError, match="n_power_iterations=0"):
        parametrizations.spectral_norm(nn.Linear(2, 2), n_power_iterations=0)
    with pytest.raises(IndexError, match="out of range"):
        parametrizations.spectral_norm(nn.Linear(2, 2), dim=5)


@pytest.mark.parametrize("shape", [(3, 3), (3, 5), (5, 3)])
@pytest.mark.parametrize("kind", ["matrix_exp", "cayley", "householder"])
@pytest.mark.parametrize("based", [True, False])
def test_orthogonal(torch, same, to_torch, shape, kind, based):
    taeda.manual_seed(0)
    torch.manual_seed(0)
    ours = parametrizations.orthogonal(nn.Linear(*shape), "weight", kind, use_trivialization=based)
    theirs = torch.nn.utils.parametrizations.orthogonal(
        torch.nn.Linear(*shape), "weight", kind, use_trivialization=based
    )
    assert list(ours.state_dict()) == list(theirs.state_dict())
    for a, b in zip(ours.state_dict().values(), theirs.state_dict().values(), strict=True):
        same(a, b, 1e-4, 1e-5)
    same(ours.weight, theirs.weight, 1e-4, 1e-5)
    x, target = taeda.randn(4, shape[0]), taeda.randn(4, shape[1])
    same(
        trained(ours, x, target, taeda),
        trained(theirs, to_torch(x), to_torch(target), torch),
        1e-3, 1e-5,
    )  # fmt: skip
    small = min(shape)
    product = ours.weight @ ours.weight.mT if shape[1] <= shape[0] else ours.weight.mT @ ours.weight
    assert taeda.allclose(product, taeda.eye(small), atol=1e-5)
    value = taeda.eye(shape[1], shape[0]).flip(0)
    if based or kind == "householder":
        ours.weight = value
        assert taeda.allclose(ours.weight, value, atol=1e-6)
    else:
        with pytest.raises(NotImplementedError, match="use_trivialization=False"):
            ours.weight = value


def test_orthogonal_refuses():
    with pytest.raises(ValueError, match="1 dimensions"):
        parametrizations.orthogonal(nn.Linear(3, 3), "bias")
    with pytest.raises(ValueError, match="Got: qr"):
        parametrizations.orthogonal(nn.Linear(3, 3), orthogonal_map="qr")
    with pytest.raises(ValueError, match="of shape"):
        parametrizations.orthogonal(nn.Linear(3, 3)).weight = taeda.zeros(2, 2)
