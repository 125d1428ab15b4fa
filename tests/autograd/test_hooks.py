"""Hooks on tensors, leaves and nodes; retain_grad; saved tensors."""

import pytest

import taeda
from taeda.autograd import graph


def test_tensor_hooks_see_and_replace():
    x = taeda.tensor([1.0, 2.0], requires_grad=True)
    y = x * 3
    seen = []
    y.register_hook(lambda g: seen.append(g.tolist()))
    handle = y.register_hook(lambda g: g * 10)
    y.register_hook(lambda g: seen.append(g.tolist()))
    y.sum().backward(retain_graph=True)
    assert seen == [[1.0, 1.0], [10.0, 10.0]] and x.grad.tolist() == [30.0, 30.0]
    handle.remove()
    y.sum().backward()
    assert x.grad.tolist() == [33.0, 33.0]


def test_leaf_hooks_run_once_per_backward():
    x = taeda.tensor(2.0, requires_grad=True)
    seen = []
    x.register_hook(lambda g: seen.append(g.item()))
    handle = x.register_hook(lambda g: g / 2)
    (x * x + x).backward()
    assert seen == [5.0] and x.grad.item() == 2.5
    handle.remove()
    assert taeda.autograd.grad(x * 3, x)[0].item() == 3.0
    assert seen == [5.0, 3.0]


def test_hook_errors():
    with pytest.raises(RuntimeError, match="doesn't require gradient"):
        taeda.ones(2).register_hook(print)
    x = taeda.ones(3, requires_grad=True)
    with x.register_hook(lambda g: 3), pytest.raises(TypeError, match="'int'"):
        x.sum().backward()
    with x.register_hook(lambda g: g[:2]), pytest.raises(RuntimeError, match="changed the size"):
        x.sum().backward()


def test_hook_stays_with_the_value_it_was_put_on():
    x = taeda.ones(2, requires_grad=True)
    y = x * 2
    seen = []
    y.register_hook(lambda g: seen.append(("before", g.tolist())))
    y.mul_(3)
    y.register_hook(lambda g: seen.append(("after", g.tolist())))
    y.sum().backward()
    assert seen == [("after", [1.0, 1.0]), ("before", [3.0, 3.0])]


def test_post_accumulate_grad_hook():
    x = taeda.ones(2, requires_grad=True)
    seen = []

    def hook(p):
        seen.append(p.grad.tolist())
        p.grad = None

    handle = x.register_post_accumulate_grad_hook(hook)
    (x * 2).sum().backward()
    assert seen == [[2.0, 2.0]] and x.grad is None
    handle.remove()
    (x * 2).sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]
    with pytest.raises(RuntimeError, match="non-leaf"):
        (x * 2).register_post_accumulate_grad_hook(hook)


def test_post_accumulate_grad_hooks_do_not_wait_for_what_an_older_graph_is_older_than():
    """They run as soon as a gradient is complete, also where the leaf was used in a kept graph."""
    twice, once, unused = (taeda.full((2,), float(i), requires_grad=True) for i in (2, 3, 5))
    x = taeda.ones(2, requires_grad=True)
    seen = []
    for name, leaf in {"twice": twice, "once": once, "unused": unused}.items():
        leaf.register_post_accumulate_grad_hook(
            lambda p, name=name: seen.append((name, p.grad[0].item()))
        )

    def graph():
        a = x * twice
        a.register_hook(lambda g: seen.append("first product"))
        b = a * once
        b.register_hook(lambda g: seen.append("second product"))
        return (b * twice).sum()

    older = graph()
    expected = ["second product", ("once", 4.0), "first product", ("twice", 12.0)]
    for _ in range(2):
        loss = graph()
        for leaf in (x, twice, once):
            leaf.grad = None
        seen.clear()
        loss.backward(retain_graph=True)
        assert seen == expected
    taeda.autograd.backward([older, loss, twice], [None, None, taeda.ones(2)])
    assert twice.grad.tolist() == [12.0 * 3 + 1] * 2 and once.grad.tolist() == [12.0] * 2
    assert seen[-1] == ("twice", 37.0) and len(seen) == 10  # each hook once more, for both graphs
    seen.clear()
    stop = x.register_hook(lambda g: taeda.ones(7))
    with stop, pytest.raises(RuntimeError, match="changed the size"):
        graph().backward()
    twice.grad = None
    graph().backward()
    assert twice.grad.tolist() == [12.0, 12.0]


def test_retain_grad():
    x = taeda.ones(2, requires_grad=True)
    y = x * 2
    with pytest.warns(UserWarning, match="not a leaf"):
        assert y.grad is None
    y.retain_grad()
    assert y.retains_grad
    y.register_hook(lambda g: g * 4)  # runs before the gradient is kept
    (y * 3).sum().backward()
    assert y.grad.tolist() == [12.0, 12.0]
    x.retain_grad()
    with pytest.raises(RuntimeError, match="can't retain_grad"):
        taeda.ones(2).retain_grad()


def test_retain_grad_follows_in_place_changes():
    x = taeda.ones(2, requires_grad=True)
    y = x * 2
    y.retain_grad()
    y.mul_(5)
    (y * 3).sum().backward()
    assert y.grad.tolist() == [3.0, 3.0]


def test_retained_tensor_may_die_before_backward():
    x = taeda.ones(2, requires_grad=True)
    y = x * 2
    y.retain_grad()
    z = (y * 3).sum()
    del y
    z.backward()
    assert x.grad.tolist() == [6.0, 6.0]


def test_node_hooks():
    x = taeda.ones(2, requires_grad=True)
    y = x * 3
    seen = []
    y.grad_fn.register_prehook(lambda outs: seen.append(("pre", outs[0].tolist())))
    y.grad_fn.register_prehook(lambda outs: (outs[0] * 2,))
    handle = y.grad_fn.register_hook(
        lambda ins, outs: seen.append(("post", ins[0].tolist(), outs[0].tolist()))
    )
    y.sum().backward(retain_graph=True)
    assert seen == [("pre", [1.0, 1.0]), ("post", [6.0, 6.0], [2.0, 2.0])]
    handle.remove()
    y.grad_fn.register_hook(lambda ins, outs: tuple(i and None for i in [None] * len(ins)))
    x.grad = None
    y.sum().backward()
    assert x.grad is None


def test_multi_grad_hook():
    x = taeda.ones(2, requires_grad=True)
    y, z, unused = x * 2, x * 3, x * 4
    seen = []
    handle = graph.register_multi_grad_hook([y, z], lambda g: seen.append([t.tolist() for t in g]))
    other = graph.register_multi_grad_hook([y, unused], lambda g: seen.append(g[1]))
    first = graph.register_multi_grad_hook([y, z], lambda g: seen.append("any"), mode="any")
    (y * z).sum().backward()
    assert "any" in seen and [[3.0, 3.0], [2.0, 2.0]] in seen and None in seen and len(seen) == 3
    for h in (handle, other, first):
        h.remove()
    (x * 2 * 3).sum().backward()
    assert len(seen) == 3


@pytest.mark.parametrize("mode", ["all", "any"])
def test_multi_grad_hook_after_a_backward_that_failed(mode):
    a, b = (taeda.ones(2, requires_grad=True) for _ in range(2))
    seen, fails = [], [True]

    def hook(grads):
        seen.append(grads)
        if fails and fails.pop():
            raise KeyError("x")

    graph.register_multi_grad_hook([a, b], hook, mode=mode)
    with pytest.raises(KeyError):
        (a * b).sum().backward()
    (a * b).sum().backward()
    assert len(seen) == 2
    # A failure between the two gradients: the first one is of no later backward.
    seen.clear()
    handle = a.register_hook(lambda g: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        (a + (b * 2).exp()).sum().backward()
    handle.remove()
    (a * 2).sum().backward()
    if mode == "all":
        assert [g is None for g in seen[-1]] == [False, True]


def test_saved_tensors_hooks():
    packed = []

    def pack(t):
        packed.append(t.tolist())
        return t.numpy().copy()

    def unpack(array):
        return taeda.from_numpy(array)

    x = taeda.tensor([1.0, 2.0], requires_grad=True)
    with graph.saved_tensors_hooks(pack, unpack):
        y = (x * x).exp()
    assert [1.0, 2.0] in packed
    y.sum().backward()
    assert x.grad.tolist() == pytest.approx([2 * 2.7182817, 4 * 54.59815])


def test_gradient_edges():
    x = taeda.ones(2, requires_grad=True)
    y = x * 3
    edge = graph.get_gradient_edge(y)
    assert edge.node is y.grad_fn and edge.output_nr == 0
    assert taeda.autograd.grad((y * 2).sum(), edge)[0].tolist() == [2.0, 2.0]
    assert graph.get_gradient_edge(x).node.name() == "AccumulateGrad"


def test_pack_hooks_must_not_change_what_they_are_given():
    x = taeda.tensor([1.0, 2.0], requires_grad=True)
    for change in (lambda t: t.mul_(2), lambda t: t.detach().mul_(2)):
        a = x * 1
        with (
            graph.saved_tensors_hooks(change, lambda t: t),
            pytest.raises(RuntimeError, match="pack hook is modifying its input in place"),
        ):
            a.exp()
