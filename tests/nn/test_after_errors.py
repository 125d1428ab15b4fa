"""What raises leaves a module as it was: its tensors, their identity, its submodules and hooks."""

import pytest

import taeda
from taeda import nn
from taeda.nn.utils import parametrizations, parametrize, prune

z = taeda.zeros


def model():
    return nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3), nn.Linear(3, 2))


def parametrized():
    made = model()
    parametrize.register_parametrization(made[0], "weight", nn.Identity())
    return made


def pruned():
    made = model()
    prune.l1_unstructured(made[0], "weight", 1)
    return made


def state(module):
    """All that could be half-changed, to be compared."""
    tensors = [*module.named_parameters(), *module.named_buffers()]
    modules = dict(module.named_modules())
    return (
        {name: (id(t), t.dtype, t.requires_grad, t.tolist()) for name, t in tensors},
        {name: (id(m), type(m).__name__, m.training) for name, m in modules.items()},
        {name: list(m._forward_pre_hooks) for name, m in modules.items()},
    )


def other():
    """Values for every entry of `model()`, other than those it has."""
    return {name: tensor + 1 for name, tensor in model().state_dict().items()}


class Raises(nn.Module):
    def forward(self, x):
        raise ValueError("raised")


class RaisesBackwards(nn.Identity):
    def right_inverse(self, x):
        raise ValueError("raised")


class FirstRow(nn.Module):
    def forward(self, x):
        return x[0]


def register(parametrization):
    return lambda m: parametrize.register_parametrization(m[0], "weight", parametrization)


LOADING = {
    "a shape": lambda m: m.load_state_dict({**other(), "2.bias": z(9)}),
    "a shape, not strict": lambda m: m.load_state_dict({**other(), "2.bias": z(9)}, strict=False),
    "a shape, assigned": lambda m: m.load_state_dict({**other(), "2.bias": z(9)}, assign=True),
    "a missing key": lambda m: m.load_state_dict({"0.weight": taeda.ones(3, 2)}),
    "an unknown key": lambda m: m.load_state_dict({**other(), "foo": z(1)}),
    "no tensor": lambda m: m.load_state_dict({**other(), "2.bias": 3}),
    "a key that is no string": lambda m: m.load_state_dict({**other(), 3: z(1)}),
}
CASES = [
    *((model, f"load_state_dict: {name}", load) for name, load in LOADING.items()),
    (model, "to an integer dtype", lambda m: m.to(taeda.int64)),
    (model, "to an unknown device", lambda m: m.to("foo")),
    (model, "to a dtype that is none", lambda m: m.to(dtype="foo")),
    (model, "type", lambda m: m.type("foo")),
    (model, "type of integers", lambda m: m.type(taeda.int64)),
    (lambda: model()[1:2], "batch norm: channels", lambda m: m(z(4, 4))),
    (lambda: model()[1:2], "batch norm: dtype", lambda m: m(z(4, 3, dtype=taeda.int64))),
    (lambda: model()[1:2], "batch norm: one value", lambda m: m(z(1, 3))),
    (model, "train", lambda m: m.train("yes")),
    (model, "apply", lambda m: m.apply(3)),
    (model, "an attribute", lambda m: setattr(m[0], "weight", 3)),
    (model, "set_submodule", lambda m: m.set_submodule("1.foo.bar", nn.ReLU())),
    (model, "insert", lambda m: m.insert(9, nn.ReLU())),
    (model, "Sequential.extend", lambda m: m.extend([nn.ReLU(), 3])),
    (lambda: nn.ModuleList([nn.ReLU()]), "extend", lambda m: m.extend([nn.ReLU(), 3])),
    (
        lambda: nn.ModuleDict({"a": nn.ReLU()}),
        "update",
        lambda m: m.update({"b": Raises(), "c": 3}),
    ),
    (
        lambda: nn.ParameterDict({"a": z(1)}),
        "ParameterDict.update",
        lambda m: m.update([("b", z(1)), ("c",)]),
    ),
    (
        lambda: nn.ParameterDict({"a": z(1)}),
        "ParameterDict.update: a key",
        lambda m: m.update([("b", z(1)), ("training", z(1))]),
    ),
    (model, "vector_to_parameters", lambda m: nn.utils.vector_to_parameters(z(3), m.parameters())),
    *(
        (make, f"register_parametrization {kind.__name__} {make.__name__}", register(kind()))
        for kind in (Raises, RaisesBackwards, FirstRow)
        for make in (model, parametrized)
    ),
    (model, "register_parametrization: shapes", register(nn.Linear(5, 5))),
    (parametrized, "remove", lambda m: parametrize.remove_parametrizations(m[0], "bias")),
    (model, "weight_norm", lambda m: parametrizations.weight_norm(m[0], dim=7)),
    (model, "spectral_norm", lambda m: parametrizations.spectral_norm(m[0], dim=7)),
    (model, "orthogonal", lambda m: parametrizations.orthogonal(m[0], orthogonal_map="foo")),
    (model, "the older weight_norm", lambda m: nn.utils.weight_norm(m[0], dim=7)),
    (model, "the older spectral_norm", lambda m: nn.utils.spectral_norm(m[0], dim=7)),
    *(
        (make, f"{name} of {make.__name__}", function)
        for make in (model, pruned)
        for name, function in (
            ("l1_unstructured", lambda m: prune.l1_unstructured(m[0], "weight", 99)),
            ("a mask", lambda m: prune.custom_from_mask(m[0], "weight", z(7))),
            ("ln_structured", lambda m: prune.ln_structured(m[0], "weight", 1, 2, 9)),
            ("prune.remove", lambda m: prune.remove(m[0], "bias")),
        )
    ),
    (
        model,
        "global_unstructured",
        lambda m: prune.global_unstructured(
            [(m[0], "weight"), (m[2], "foo")], prune.L1Unstructured, amount=1
        ),
    ),
]


@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.parametrize(
    ("make", "change"), [(c[0], c[2]) for c in CASES], ids=[c[1] for c in CASES]
)
def test_module_is_as_before(make, change):
    module = make()
    before = state(module)
    with pytest.raises(Exception):  # noqa: B017
        change(module)
    assert state(module) == before


def test_hooks_may_still_mend_what_is_loaded():
    m = nn.Linear(2, 2)
    m.register_load_state_dict_pre_hook(
        lambda module, state, prefix, *rest: state.update(bias=state.pop("old"))
    )
    m.load_state_dict({"weight": taeda.ones(2, 2), "old": taeda.ones(2)})
    assert m.weight.tolist() == [[1, 1], [1, 1]] and m.bias.tolist() == [1, 1]
    before = state(m)
    with pytest.raises(RuntimeError, match="size mismatch"):
        m.load_state_dict({"weight": z(2, 2), "old": z(3)})
    assert state(m) == before


def test_a_hook_that_raises_leaves_nothing_loaded():
    m = model()
    m[2].register_load_state_dict_post_hook(lambda module, keys: 1 / 0)
    before = state(m)
    with pytest.raises(ZeroDivisionError):
        m.load_state_dict(other())
    assert state(m) == before


def test_containers_go_on_working_after_a_refused_update():
    m = nn.ModuleDict({"a": nn.ReLU()})
    with pytest.raises(TypeError):
        m.update({"a": nn.Tanh(), "b": nn.ReLU(), "c": 3})
    assert list(m) == ["a"] and isinstance(m.a, nn.ReLU) and not hasattr(m, "b")
    m.update({"b": nn.Tanh()})
    assert list(m) == ["a", "b"] and isinstance(m.b, nn.Tanh)
