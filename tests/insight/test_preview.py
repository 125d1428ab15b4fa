"""A preview is what the step then does, bit for bit, and it changes nothing."""

from __future__ import annotations

import pytest

import taeda
from taeda import nn, optim

CASES = {
    "ASGD": {},
    "Adadelta": {},
    "Adafactor": {},
    "Adagrad": {},
    "Adam": {"amsgrad": True},
    "AdamW": {},
    "Adamax": {},
    "LBFGS": {"max_iter": 3, "line_search_fn": "strong_wolfe"},
    "Muon": {"lr": 0.1},
    "NAdam": {},
    "RAdam": {},
    "RMSprop": {"momentum": 0.9, "centered": True},
    "Rprop": {},
    "SGD": {"lr": 0.1, "momentum": 0.9, "nesterov": True},
    "SparseAdam": {},
}


def everything(optimizer, parameters):
    """The parameters, gradients and state: the objects, and their versions and values."""
    found = [(p, p.grad) for p in parameters]
    state = [(key, name, v) for key, s in optimizer.state.items() for name, v in s.items()]
    objects = [x for row in (*found, *state) for x in row]
    tensors = [x for x in objects if isinstance(x, taeda.Tensor)]
    versions = [x._version for x in tensors if not x.is_sparse]
    values = [x.detach().to_dense().clone() for x in tensors]
    return objects, versions, [*values, taeda.get_rng_state()]


def equal(a, b):
    same = all(x is y or x == y for x, y in zip(a[0], b[0], strict=True))
    return same and a[1] == b[1] and all(map(taeda.equal, a[2], b[2]))


def test_every_optimizer_is_tested():
    kinds = [name for name in optim.__all__ if isinstance(getattr(optim, name), type)]
    assert {*CASES, "Optimizer"} == set(kinds)


@pytest.mark.parametrize("kind", CASES)
@pytest.mark.parametrize("extra", [{}, {"maximize": True}, {"weight_decay": 0.01}])
def test_preview_is_the_next_step(kind, extra):
    taeda.manual_seed(0)
    if kind == "SparseAdam":
        model: nn.Module = nn.Embedding(5, 3, sparse=True)
        x = taeda.tensor([1, 3])
    else:
        model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))
        x = taeda.randn(5, 4)
    parameters = list(model.parameters())
    if kind == "Muon":
        parameters = [p for p in parameters if p.dim() == 2]
    try:
        optimizer = getattr(optim, kind)(parameters, **CASES[kind], **extra)
    except TypeError:
        pytest.skip("no such option")

    def closure():
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        return loss

    given = (closure,) if kind == "LBFGS" else ()
    for _ in range(4):
        closure()
        before = everything(optimizer, parameters)
        planned = optimizer.preview(*given)
        assert equal(before, everything(optimizer, parameters))
        optimizer.step(*given)
        assert len(planned) == len(parameters)
        for p in parameters:
            assert taeda.equal(planned.of(p).after, p.detach())


def test_options_of_groups_and_schedules():
    a, b = (nn.Parameter(taeda.ones(2)) for _ in range(2))
    groups = [{"params": [("a", a)], "lr": 1.0}, {"params": [("b", b)], "lr": 0.5}]
    optimizer = optim.SGD(groups, lr=0.1)
    schedule = optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
    (a.sum() + b.sum()).backward()
    assert [u.change.tolist() for u in optimizer.preview().values()] == [[-1, -1], [-0.5, -0.5]]
    optimizer.step()
    schedule.step()
    planned = optimizer.preview()
    assert list(planned) == ["a", "b"] and planned["a"].change.tolist() == [-0.5, -0.5]
    assert planned["b"].norm == pytest.approx(0.25 * 2**0.5)
    assert planned["b"].ratio == pytest.approx(0.25 / 0.5)
    assert planned["a"].ratio == float("inf")  # it is zero now


def test_the_graph_can_still_be_run():
    layer = nn.Linear(3, 1)
    optimizer = optim.SGD(layer.parameters(), lr=0.1)
    loss = layer(taeda.ones(1, 3)).square().sum()
    layer.weight.grad = taeda.ones(1, 3)
    optimizer.preview()
    optimizer.preview(lambda: None)
    loss.backward()  # what it saved has not been changed


def test_hooks_do_not_run_and_printing():
    w = nn.Parameter(taeda.tensor([3.0, 4.0]))
    optimizer = optim.SGD([w], lr=0.1)
    optimizer.register_step_pre_hook(lambda *_: pytest.fail("a hook ran"))
    assert "No parameter has a gradient" in repr(optimizer.preview())
    w.grad = taeda.tensor([3.0, 4.0])
    planned = optimizer.preview()
    assert repr(planned).splitlines()[-1].split() == [
        "group", "0,", "number", "0", "(2,)", "5", "0.5", "10%",
    ]  # fmt: skip
    assert "<table" in planned._repr_html_()


def test_what_the_step_refuses_the_preview_refuses():
    w = nn.Parameter(taeda.ones(2))
    optimizer = optim.LBFGS([w])
    with pytest.raises(TypeError):
        optimizer.preview()
