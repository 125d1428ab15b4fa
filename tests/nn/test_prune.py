"""Pruning, fusion, functional calls and memory formats, beside PyTorch's."""

import copy
import importlib
import pickle

import pytest

import taeda
from taeda import nn
from taeda.nn.utils import prune, stateless

METHODS = [
    ("identity", ()),
    ("l1_unstructured", (0.4,)),
    ("l1_unstructured", (3,)),
    ("l1_unstructured", (0,)),
    ("random_unstructured", (0.4,)),
    ("random_structured", (2, 0)),
    ("random_structured", (0.5, 1)),
    ("ln_structured", (1, 2, 0)),
    ("ln_structured", (0.5, 1, -1)),
    ("ln_structured", (1, float("inf"), 1)),
]


def theirs_of(torch):
    assert torch
    return importlib.import_module("torch.nn.utils.prune")


def pair(torch, make="Linear(6, 5)"):
    taeda.manual_seed(0)
    torch.manual_seed(0)
    return eval("nn." + make), eval("torch.nn." + make, {"torch": torch})


def alike(ours, theirs, same):
    assert list(ours.state_dict()) == list(theirs.state_dict())
    same(list(ours.state_dict().values()), list(theirs.state_dict().values()), 0, 0)
    same(ours.weight, theirs.weight, 0, 0)


@pytest.mark.parametrize(("name", "args"), METHODS)
@pytest.mark.parametrize("then", [None, ("l1_unstructured", (4,)), ("ln_structured", (2, 2, 0)),
                                  ("random_unstructured", (0.3,))])  # fmt: skip
def test_methods(torch, same, name, args, then):
    ours, theirs = pair(torch)
    for method, given in [(name, args), *([then] if then else [])]:
        assert getattr(prune, method)(ours, "weight", *given) is ours
        getattr(theirs_of(torch), method)(theirs, "weight", *given)
        alike(ours, theirs, same)
    assert prune.is_pruned(ours) and prune.is_pruned(nn.Sequential(ours))
    ours(taeda.ones(1, 6)).sum().backward()
    theirs(torch.ones(1, 6)).sum().backward()
    same(ours.weight_orig.grad, theirs.weight_orig.grad)
    original = ours.weight_orig
    prune.remove(ours, "weight")
    theirs_of(torch).remove(theirs, "weight")
    alike(ours, theirs, same)
    assert ours.weight is original and not prune.is_pruned(ours)


def test_global_and_custom(torch, same):
    ours, theirs = zip(*(pair(torch, m) for m in ("Linear(6, 5)", "Conv1d(2, 3, 2)")), strict=True)
    prune.custom_from_mask(ours[0], "weight", taeda.arange(30).reshape(5, 6) % 3 != 0)
    mask = torch.arange(30).reshape(5, 6) % 3 != 0
    theirs_of(torch).custom_from_mask(theirs[0], "weight", mask)
    for module, modules in ((prune, ours), (theirs_of(torch), theirs)):
        pairs = [(modules[0], "weight"), (modules[1], "weight"), (modules[1], "bias")]
        scores = {pairs[2]: modules[1].bias.detach() * 2}
        module.global_unstructured(pairs, module.L1Unstructured, scores, amount=0.5)
    for a, b in zip(ours, theirs, strict=True):
        alike(a, b, same)


def test_methods_of_ones_own_and_copies():
    class EveryOther(prune.BasePruningMethod):
        PRUNING_TYPE = "unstructured"

        def compute_mask(self, t, default_mask):
            mask = default_mask.clone()
            mask.view(-1)[::2] = 0
            return mask

    layer = nn.Linear(4, 2)
    EveryOther.apply(layer, "weight")
    assert layer.weight_mask.flatten().tolist() == [0, 1] * 4
    EveryOther.apply(layer, "weight")  # of what is left
    assert layer.weight_mask.flatten().tolist() == [0, 0, 0, 1] * 2
    assert taeda.equal(EveryOther().prune(taeda.ones(4)), taeda.tensor([0.0, 1, 0, 1]))
    plain = prune.l1_unstructured(nn.Linear(4, 2).requires_grad_(False), "weight", 3)
    for other in (copy.deepcopy(plain), pickle.loads(pickle.dumps(plain))):
        assert prune.is_pruned(other)
        assert taeda.equal(other(taeda.ones(1, 4)), plain(taeda.ones(1, 4)))


def test_pruning_refuses():
    layer = nn.Linear(3, 4)
    for amount, error in [(20, ValueError), (1.5, ValueError), (-1, ValueError), ("a", TypeError)]:
        with pytest.raises(error, match="amount"):
            prune.l1_unstructured(layer, "weight", amount)
    with pytest.raises(IndexError, match="Invalid index 5"):
        prune.ln_structured(layer, "weight", 0.5, 2, 5)
    with pytest.raises(ValueError, match="multidimensional"):
        prune.ln_structured(layer, "bias", 0.5, 2, 0)
    with pytest.raises(ValueError, match="has to be pruned before"):
        prune.remove(layer, "weight")
    with pytest.raises(TypeError, match="unstructured"):
        prune.global_unstructured([(layer, "weight")], prune.LnStructured, amount=1, n=2)
    assert list(layer.state_dict()) == ["weight", "bias"]


@pytest.mark.parametrize("make", ["Conv2d(3, 4, 2)", "Conv2d(3, 4, 2, bias=False)",
                                  "ConvTranspose1d(3, 4, 2)"])  # fmt: skip
@pytest.mark.parametrize("affine", [True, False])
def test_fused_convolution(make, affine):
    conv = eval("nn." + make)
    rank = conv.weight.dim() - 2
    norm = (nn.BatchNorm1d if rank == 1 else nn.BatchNorm2d)(4, affine=affine)
    model = nn.Sequential(conv, norm)
    x = taeda.randn(5, 3, *[6] * rank)
    model(x)
    model.eval()
    fused = nn.utils.fuse_conv_bn_eval(conv, norm, transpose=conv.transposed)
    assert taeda.allclose(fused(x), model(x), atol=1e-5)
    assert isinstance(fused.bias, nn.Parameter) and fused is not conv


def test_fused_linear():
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))
    model(taeda.randn(5, 3))
    with pytest.raises(AssertionError, match="evaluation mode"):
        nn.utils.fuse_linear_bn_eval(*model)
    model.eval()
    x = taeda.randn(5, 3)
    assert taeda.allclose(nn.utils.fuse_linear_bn_eval(*model)(x), model(x), atol=1e-6)


def test_weight_memory_format():
    model = nn.Sequential(nn.Conv2d(3, 4, 2), nn.Conv1d(3, 4, 2))
    weight, values = model[0].weight, model[0].weight.detach().clone()
    nn.utils.convert_conv2d_weight_memory_format(model, taeda.channels_last)
    assert weight.is_contiguous(memory_format=taeda.channels_last) and taeda.equal(weight, values)
    assert model[0].weight is weight


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(2, 2, bias=False), nn.Linear(2, 2, bias=False)
        self.b.weight = self.a.weight
        self.register_buffer("count", taeda.zeros(1))

    def forward(self, x, fail=False):
        self.count = self.count + 1
        if fail:
            raise RuntimeError("on purpose")
        return self.b(self.a(x))


def test_functional_call():
    model, x = Tied(), taeda.ones(1, 2)
    ones, weight, count = taeda.ones(2, 2, requires_grad=True), model.a.weight, model.count
    for key in ("a.weight", "b.weight"):
        assert stateless.functional_call(model, {key: ones}, x).tolist() == [[4.0, 4.0]]
    assert model.a.weight is weight and model.b.weight is weight
    stateless.functional_call(model, {"a.weight": ones}, (x,)).sum().backward()
    assert ones.grad is not None and weight.grad is None
    assert stateless.functional_call(model, {"a.weight": ones}, x, tie_weights=False).tolist() != [
        [4.0, 4.0]
    ]
    given = {"count": taeda.ones(1)}
    count = model.count
    stateless.functional_call(model, given, x)
    assert given["count"].tolist() == [2.0] and model.count is count
    with pytest.raises(RuntimeError, match="on purpose"):
        stateless.functional_call(model, {"a.weight": ones}, x, {"fail": True})
    assert model.a.weight is weight


def test_functional_call_refuses():
    model, x, ones = Tied(), taeda.ones(1, 2), taeda.ones(2, 2)
    with pytest.raises(ValueError, match="which are tied"):
        stateless.functional_call(model, {"a.weight": ones, "b.weight": ones + 1}, x)
    with pytest.raises(RuntimeError, match=r"Unexpected key\(s\): 'foo'.*\n.*'count'"):
        stateless.functional_call(model, {"b.weight": ones, "foo": ones}, x, strict=True)
    with pytest.raises(TypeError, match="instance of Tensor"):
        stateless.functional_call(model, {"a.weight": 3}, x)
