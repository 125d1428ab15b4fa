"""Selective checkpoints save what the policy says, and change no results."""

from __future__ import annotations

import functools

import pytest

import taeda
from taeda.utils.checkpoint import (
    CheckpointPolicy,
    SelectiveCheckpointContext,
    checkpoint,
    create_selective_checkpoint_contexts,
)

torch = pytest.importorskip("torch")
aten = taeda.ops.aten


def block(lib, x, w):
    return lib.relu(lib.sigmoid(x @ w) * 2)


def run(lib, policy, function=block, **options):
    """The results, and what a policy was asked, forward and backward."""
    from torch.utils.checkpoint import checkpoint as theirs
    from torch.utils.checkpoint import create_selective_checkpoint_contexts as their_contexts

    use, make = (checkpoint, create_selective_checkpoint_contexts) if lib is taeda else (theirs, their_contexts)  # fmt: skip
    x = lib.arange(12.0).reshape(3, 4).div(12).requires_grad_()
    w = lib.arange(16.0).reshape(4, 4).div(16).requires_grad_()
    out = use(
        functools.partial(function, lib), x, w, use_reentrant=False,
        context_fn=functools.partial(make, policy, **options),
    )  # fmt: skip
    out.sum().backward()
    return [out.tolist(), x.grad.tolist(), w.grad.tolist()]


def asked(lib, decide):
    if lib is taeda:
        policies = CheckpointPolicy
    else:
        from torch.utils.checkpoint import CheckpointPolicy as policies
    log = []

    def policy(ctx, op, *args, **kwargs):
        log.append((ctx.is_recompute, str(op), list(ctx.op_output.shape)))
        return decide(policies, str(op))

    return run(lib, policy), log


@pytest.mark.parametrize("name", list(CheckpointPolicy.__members__))
def test_policies_as_in_pytorch(name):
    def decide(policies, op):
        return policies[name] if op == "aten.mm.default" else policies.PREFER_RECOMPUTE

    (ours, our_log), (theirs, their_log) = asked(taeda, decide), asked(torch, decide)
    assert our_log == their_log
    for a, b in zip(ours, theirs, strict=True):
        taeda.testing.assert_close(taeda.tensor(a), taeda.tensor(b))


def test_saved_results_are_not_computed_again():
    from taeda.utils._python_dispatch import TorchDispatchMode

    computed = []

    class Count(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            computed.append(func)
            return func(*args, **(kwargs or {}))

    def forwards(context_fn):
        computed.clear()
        x = taeda.ones(2, 2, requires_grad=True)
        with Count():
            y = checkpoint(
                lambda x: (x @ x).exp().sin(), x, use_reentrant=False, context_fn=context_fn
            )
            y.sum().backward()
        return computed.count(aten.mm.default), computed.count(aten.exp.default)

    def saving(ops):
        return functools.partial(create_selective_checkpoint_contexts, ops)

    products, exponentials = forwards(saving([]))
    assert forwards(saving([aten.mm.default])) == (products - 1, exponentials)
    assert forwards(saving([aten.exp.default])) == (products, exponentials - 1)


def test_layers():
    taeda.manual_seed(0)
    net = taeda.nn.Sequential(taeda.nn.Linear(4, 8), taeda.nn.Tanh(), taeda.nn.Linear(8, 4))
    x = taeda.rand(3, 4, requires_grad=True)
    expected = taeda.autograd.grad(net(x).square().sum(), [x, *net.parameters()])
    save = [aten.linear.default, aten.tanh.default]
    for ops in (save, save[:1], []):
        contexts = functools.partial(create_selective_checkpoint_contexts, ops)
        y = checkpoint(net, x, use_reentrant=False, context_fn=contexts)
        found = taeda.autograd.grad(y.square().sum(), [x, *net.parameters()])
        taeda.testing.assert_close(found, expected)


def test_random_results_that_are_saved():
    def function(lib, x, w):
        return taeda.nn.functional.dropout(x @ w, 0.5).sin()

    def policy(ctx, op, *args, **kwargs):
        return "dropout" in str(op)

    taeda.manual_seed(0)
    out, x, w = run(taeda, policy, function)
    taeda.manual_seed(0)
    a = taeda.arange(12.0).reshape(3, 4).div(12).requires_grad_()
    b = taeda.arange(16.0).reshape(4, 4).div(16).requires_grad_()
    y = function(taeda, a, b)
    y.sum().backward()
    assert [y.tolist(), a.grad.tolist(), b.grad.tolist()] == [out, x, w]


@pytest.mark.parametrize("lib", [taeda, torch])
def test_twice_backward(lib):
    make, use = contexts_of(lib)
    x = lib.ones(2, 2, requires_grad=True)
    save = functools.partial(make, [lib.ops.aten.mm.default])
    y = use(lambda x: (x @ x).sin(), x, use_reentrant=False, context_fn=save).sum()
    y.backward(retain_graph=True)
    with pytest.raises(RuntimeError, match="Trying to backward an extra time"):
        y.backward()


def contexts_of(lib):
    if lib is taeda:
        return create_selective_checkpoint_contexts, checkpoint
    from torch.utils import checkpoint as theirs

    return theirs.create_selective_checkpoint_contexts, theirs.checkpoint


@pytest.mark.parametrize("lib", [taeda, torch])
def test_changes_of_saved_results(lib):
    def function(lib, x, w):
        return (x @ w).add_(1).sin()

    save = [lib.ops.aten.mm.default]
    with pytest.raises(RuntimeError, match="has been mutated"):
        run(lib, save, function)
    assert run(lib, save, function, allow_cache_entry_mutation=True)


@pytest.mark.parametrize("lib", [taeda, torch])
def test_wrong_policies(lib):
    make, _ = contexts_of(lib)
    name = lib.ops.aten.mm
    for wrong in ((name.default,), {name.default}, "mm", None):
        with pytest.raises(TypeError, match="must be either a function or a list of ops"):
            make(wrong)
    for item in (name, lib.mm, "mm"):
        with pytest.raises(ValueError, match="Expected op in `op_list` to be an OpOverload"):
            make([item])


def test_operations_that_differ():
    calls = []

    def function(lib, x, w):
        calls.append(0)
        return (x @ w).sin() if len(calls) == 1 else (x @ w).exp()

    with pytest.raises(RuntimeError, match="not found in storage"):
        run(taeda, [aten.mm.default, aten.exp.default], function)


def test_contexts_say_which_time_it_is():
    context = SelectiveCheckpointContext(is_recompute=True)
    assert context.is_recompute and context.op_output is None
