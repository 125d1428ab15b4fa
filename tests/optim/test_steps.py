"""What a step checks, what layouts it takes, and that it allocates nothing."""

from __future__ import annotations

import copy
import pickle

import pytest

import taeda
from taeda import optim


def parameter(*values):
    p = taeda.nn.Parameter(taeda.tensor(list(values)))
    p.grad = taeda.ones_like(p)
    return p


def flat(values):
    return [x for v in values for x in flat(v)] if isinstance(values, list) else [values]


ALL = [
    "SGD",
    "Adam",
    "AdamW",
    "Adamax",
    "NAdam",
    "RAdam",
    "Adagrad",
    "Adadelta",
    "RMSprop",
    "Rprop",
]
ALL += ["ASGD", "Adafactor", "Muon"]


@pytest.mark.parametrize("name", ALL)
def test_a_wrong_gradient_is_reported_by_the_parameters_name(name):
    layer = taeda.nn.Sequential(
        taeda.nn.Linear(3, 2, bias=False), taeda.nn.Linear(2, 2, bias=False)
    )
    optimizer = getattr(optim, name)(layer.named_parameters())
    for p in layer.parameters():
        p.grad = taeda.ones_like(p)
    optimizer.step()
    for make in (lambda: taeda.ones(5, 2), lambda: taeda.ones(2, 2, dtype=taeda.float64)):
        layer[0].weight.grad = taeda.ones(2, 3)
        weight = layer[1].weight
        weight.grad = None
        values, kept = layer[0].weight.tolist(), weight.data
        weight.data = make()
        weight.grad = make()
        weight.data = kept
        with pytest.raises(RuntimeError, match=r"'1\.weight'.*gradient"):
            optimizer.step()
        assert layer[0].weight.tolist() == values


@pytest.mark.parametrize("name", ALL)
def test_a_gradient_of_an_earlier_step_is_reported(name):
    layer = taeda.nn.Linear(3, 2, bias=False)
    layer.head = taeda.nn.Linear(2, 2, bias=False)
    optimizer = getattr(optim, name)(layer.named_parameters())
    for p in layer.parameters():
        p.grad = taeda.ones_like(p)
    optimizer.step()
    layer.weight.grad.add_(1)
    with pytest.warns(UserWarning, match=r"last step, for parameter 'head\.weight':") as caught:
        optimizer.step()
    assert caught[0].filename == __file__
    optimizer.step()  # said once
    optimizer.check_gradients()
    optimizer.step()
    before = layer.weight.tolist()
    with pytest.raises(RuntimeError, match=r"'weight', 'head\.weight'"):
        optimizer.step()
    assert layer.weight.tolist() == before
    optimizer.zero_grad()
    optimizer.step()
    layer.weight.grad = taeda.ones(2, 3)
    optimizer.step()
    optimizer.zero_grad(set_to_none=False)
    optimizer.step()


def test_copies_report_stale_gradients_too():
    p = parameter(1.0)
    for optimizer in (
        copy.deepcopy(optim.Adam([("p", p)])),
        pickle.loads(pickle.dumps(optim.Adam([("p", p)]))),
    ):
        (own,) = optimizer.param_groups[0]["params"]
        own.grad = taeda.ones(1)
        optimizer.step()
        with pytest.warns(UserWarning, match="last step, for parameter 'p'"):
            optimizer.step()


def test_fresh_gradients_are_not_stale():
    layer = taeda.nn.Linear(3, 2)
    optimizer = optim.SGD(layer.named_parameters(), lr=0.1)
    optimizer.check_gradients()
    for _ in range(3):  # gradients that add up, as zero_grad() is left out
        layer(taeda.ones(3)).sum().backward()
        optimizer.step()
    with pytest.raises(ValueError, match="stale must be"):
        optimizer.check_gradients(stale=True)


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("bad", [float("nan"), float("-inf")])
def test_gradients_that_are_not_finite_are_reported_on_request(name, bad):
    params = [taeda.nn.Parameter(taeda.ones(2, 2)) for _ in range(3)]
    for p in params:
        p.grad = taeda.full_like(p, 3e38)
    params[1].grad[1, 0] = bad
    optimizer = getattr(optim, name)(params)
    optimizer.check_gradients(stale="ignore")
    with pytest.raises(RuntimeError, match="not finite, of parameter number 1; nothing"):
        optimizer.step()
    assert all((p == 1).all() for p in params)
    optimizer.check_gradients(finite=False)
    optimizer.step()


@pytest.mark.parametrize("name", sorted(set(ALL) - {"SGD", "Adagrad", "Adafactor", "Muon"}))
def test_capturable_is_for_parameters_on_a_gpu(name):
    optimizer = getattr(optim, name)([parameter(1.0)], capturable=True)
    with pytest.raises(AssertionError, match="capturable"):
        optimizer.step()


@pytest.mark.parametrize("name", ALL[:11])
def test_foreach_refuses_autograd_but_in_sgd(name):
    optimizer = getattr(optim, name)([parameter(1.0).clone()], foreach=True, differentiable=True)
    (p,) = optimizer.param_groups[0]["params"]
    p.grad = taeda.ones(1, requires_grad=True)
    if name == "SGD":
        optimizer.step()
        assert p.grad_fn is not None
    else:
        with pytest.raises(AssertionError, match="foreach=True does not support autograd"):
            optimizer.step()


@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW", "Adagrad"])
def test_fused_is_for_real_parameters(name):
    with pytest.raises(RuntimeError, match="cannot be `True` together"):
        getattr(optim, name)([parameter(1.0)], fused=True, foreach=True)
    p = taeda.nn.Parameter(taeda.tensor([1j]))
    p.grad = taeda.ones_like(p)
    optimizer = getattr(optim, name)([p], fused=True)
    with pytest.raises(RuntimeError, match="real floating-point"):
        optimizer.step()


@pytest.mark.parametrize("name", ALL[:11])
def test_large_strided_and_mixed_parameters(name):
    """Several chunks of work, gradients laid out otherwise, empty and broadcast ones."""
    torch = pytest.importorskip("torch")
    results = []
    for library in (torch, taeda):
        base = library.arange(70000.0).reshape(350, 200) / 7e4 - 0.5
        params = [base.t(), base[:, ::2], base[0].clone(), library.zeros(0)]
        params = [library.nn.Parameter(p) for p in params]
        optimizer = getattr(library.optim, name)(params, lr=0.01)
        for _ in range(3):
            params[0].grad = library.cos(library.arange(70000.0)).reshape(200, 350)
            params[2].grad = library.ones(1).expand(200)
            params[3].grad = library.zeros(0)
            optimizer.step()
        results.append(flat([p.detach().tolist() for p in params]))
    assert results[0] == pytest.approx(results[1], rel=1e-5, abs=1e-5)


@pytest.mark.parametrize("name", ALL[:11])
@pytest.mark.parametrize("dtype", [taeda.float32, taeda.bfloat16])
def test_later_steps_allocate_nothing(name, dtype):
    params = [taeda.nn.Parameter(taeda.ones(100, 7, dtype=dtype)) for _ in range(3)]
    for p in params:
        p.grad = taeda.ones_like(p)
    optimizer = getattr(optim, name)(params, **({"momentum": 0.9} if name == "SGD" else {}))
    optimizer.step()
    before = taeda._C.cpu_memory_stats()
    optimizer.step()
    after = taeda._C.cpu_memory_stats()
    assert after["allocations"] == before["allocations"]
    assert after["allocated"] == before["allocated"]


@pytest.mark.parametrize("name", ["SGD", "Adam"])
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_many_parameters_are_stepped_together_as_each_is_alone(name, threads):
    sizes = [0, 1, 40_000, 7, 0, 33_000, 100, 70_001]
    taeda.manual_seed(0)
    alone = [taeda.randn(n).requires_grad_() for n in sizes]
    together = [p.detach().clone().requires_grad_() for p in alone]
    for p, q in zip(alone, together, strict=True):
        p.grad = taeda.randn(len(p))
        q.grad = p.grad.clone()
    before = taeda.get_num_threads()
    taeda.set_num_threads(threads)
    try:
        singles = [getattr(optim, name)([p], lr=0.1) for p in alone]
        joined = getattr(optim, name)(together, lr=0.1)
        for _ in range(2):
            for single in singles:
                single.step()
            joined.step()
    finally:
        taeda.set_num_threads(before)
    for p, q in zip(alone, together, strict=True):
        assert taeda.equal(p, q)


@pytest.mark.parametrize("threads", [1, 2])
def test_parameters_that_share_memory_are_stepped_one_after_the_other(threads):
    memory = taeda.zeros(300_000)
    first, second = memory[:200_000], memory[100_000:]
    for p in (first, second):
        p.requires_grad_()
    first.grad, second.grad = taeda.ones(200_000), taeda.full((200_000,), 2.0)
    optimizer = optim.SGD([first, second], lr=0.5, weight_decay=1.0)
    before = taeda.get_num_threads()
    taeda.set_num_threads(threads)
    try:
        optimizer.step()
    finally:
        taeda.set_num_threads(before)
    parts = (memory[:100_000], memory[100_000:200_000], memory[200_000:])
    # p - 0.5 (g + p), once or twice
    assert [sorted(set(part.tolist())) for part in parts] == [[-0.5], [-1.25], [-1.0]]
