"""Graphs of programs beside those that PyTorch records, and what they compute."""

from __future__ import annotations

import copy
import math
import operator
import pickle

import pytest

import taeda

torch = pytest.importorskip("torch")


def shown(graph):
    """A graph's nodes: kind, name, what it calls, and what it is called with."""
    found = []
    for node in graph.nodes:
        target = node.target if isinstance(node.target, str) else node.target.__name__
        given = str((node.args, dict(node.kwargs))).replace("torch.", "").replace("taeda.", "")
        found.append((node.op, node.name, target.strip("_"), given, len(node.users)))
    return found


def module_of(library):
    nn = library.nn

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
            self.scale = nn.Parameter(library.full((4,), 2.0))
            self.register_buffer("shift", library.ones(4))

        def forward(self, x):
            return self.inner(x) * self.scale + self.shift

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.blocks = nn.ModuleList([Block(), Block()])
            self.head = nn.Linear(4, 3, bias=False)

        def forward(self, x, twice=False):
            for block in self.blocks:
                x = x + block(x)
            weight = self.head.weight * self.blocks[0].scale
            if self.head.out_features == 3 and len(self.blocks) == 2:
                x = library.nn.functional.linear(x, weight)
            return {"logits": x, "best": x.argmax(-1)}

    library.manual_seed(0)
    return Model()


def functions(library):
    F = library.nn.functional

    def arithmetic(x, y=2.0):
        z = -(((x + y) * 3 - x / y) ** 2) % 5 // 1
        return abs(z) + (2 - x) + (z == x) + (x > 0) + library.ones(3) @ x

    def indices(x):
        a, b = x.split(2)
        return x[1:, None], x[..., 0], a[0], b

    def calls(x):
        y = library.cat([x, x.relu()], dim=0)
        y = F.relu(y, inplace=False) + library.einsum("i,i->", y, y)
        return y.view(-1, 2).size(0), y.shape[0], y.to(library.float64)

    def constants(x):
        return x + math.sqrt(2), math.sqrt(x.size(0)), x * math.inf

    def starred(x, *rest, key=1, **more):
        return x + rest[0] * key + more["z"]

    def loop(x):
        for i in range(3):
            x = x * i if i % 2 else x + i
        return [x, (x, {"k": x})]

    def slices(x, n):
        return x[n : n + 2], x[:, slice(0, None, 2)]

    return [arithmetic, indices, calls, constants, starred, loop, slices]


@pytest.mark.parametrize("number", range(7))
def test_functions(number):
    ours = taeda.fx.symbolic_trace(functions(taeda)[number])
    theirs = torch.fx.symbolic_trace(functions(torch)[number])
    expected = shown(theirs.graph)
    if number == 0:  # tensor @ proxy: PyTorch's tensors pass on a method
        expected[-3:-2] = [("call_function", "matmul", "matmul", *expected[-3][3:])]
    assert shown(ours.graph) == expected


def test_a_module():
    ours, theirs = module_of(taeda), module_of(torch)
    traced = taeda.fx.symbolic_trace(ours, concrete_args={"twice": False})
    expected = torch.fx.symbolic_trace(theirs, concrete_args={"twice": False})
    assert [n.op for n in traced.graph.nodes] == [n.op for n in expected.graph.nodes]
    for op in ("get_attr", "call_module"):
        names, others = ([n.name for n in m.graph.nodes if n.op == op] for m in (traced, expected))
        assert names == others
    x = taeda.randn(2, 4)
    result, want = traced(x), ours(x)
    assert all(taeda.equal(result[key], want[key]) for key in want)
    result["logits"].sum().backward()
    gradients = [p.grad.clone() for p in ours.parameters()]
    assert all(g is not None and g.abs().sum() > 0 for g in gradients)
    assert dict(traced.named_parameters()).keys() == dict(expected.named_parameters()).keys()
    assert type(ours.blocks[0].scale) is taeda.nn.Parameter  # as it was before
    with pytest.raises(AssertionError, match="specialized to have value False"):
        traced(x, True)
    for other in (copy.deepcopy(traced), pickle.loads(pickle.dumps(traced)), copy.copy(traced)):
        assert taeda.equal(other(x)["logits"], want["logits"]) and other.code == traced.code
        assert type(other).__name__ == "Model" and isinstance(other, taeda.fx.GraphModule)
    assert not any(
        a is b for a, b in zip(copy.deepcopy(traced).parameters(), ours.parameters(), strict=True)
    )


def rewritten(library):
    """A graph after each kind of change."""
    fx = library.fx
    traced = fx.symbolic_trace(lambda x, y: (library.add(x, y).relu(), library.add(y, x) * 2))
    graph = traced.graph
    for node in graph.nodes:
        if node.op == "call_method":
            with graph.inserting_after(node):
                new = graph.call_function(library.neg, (node,))
            node.replace_all_uses_with(new, lambda user, new=new: user is not new)
        if node.target is library.add:
            node.target = library.sub
            node.update_arg(1, 3)
            node.update_kwarg("alpha", 2)
    with graph.inserting_before(graph.find_nodes(op="call_method", target="relu")[0]):
        unused = graph.call_function(library.sin, (graph.find_nodes(op="placeholder")[0],))
        graph.call_method("cos", (unused,))
    assert graph.eliminate_dead_code()
    graph.lint()
    traced.recompile()
    copied = copy.deepcopy(graph)
    assert shown(copied) == shown(graph)
    return shown(graph), [v.tolist() for v in traced(library.ones(2), library.ones(2) * 4)]


def test_changes():
    assert rewritten(taeda) == rewritten(torch)


def patterns(library):
    def pattern(a, b):
        return library.relu(library.add(a, b))

    def replacement(a, b):
        return library.mul(a, b).sigmoid()

    def program(x, y):
        first = library.relu(library.add(x, y))
        kept = library.add(first, y)
        return library.relu(library.add(first, 1)), library.relu(kept) + kept

    traced = library.fx.symbolic_trace(program)
    matches = library.fx.replace_pattern(traced, pattern, replacement)
    traced.graph.lint()
    x = library.tensor([1.0, -2.0])
    return len(matches), [v.tolist() for v in traced(x, x + 1)]


def test_patterns():
    ours, theirs = patterns(taeda), patterns(torch)
    assert ours[0] == theirs[0]
    for mine, other in zip(ours[1], theirs[1], strict=True):
        assert mine == pytest.approx(other)


def interpreted(library):
    class Times(library.fx.Interpreter):
        def call_function(self, target, args, kwargs):
            result = super().call_function(target, args, kwargs)
            return result * 2 if target is library.add else result

    class Swap(library.fx.Transformer):
        def call_function(self, target, args, kwargs):
            swapped = library.mul if target is library.add else target
            return super().call_function(swapped, args, kwargs)

    traced = library.fx.symbolic_trace(lambda x, y=3: [library.add(x, y).relu(), {"k": x[0]}])
    x = library.tensor([1.0, 2.0])
    values = Times(traced).run(x), Times(traced).run(x, 1), Swap(traced).transform()(x)
    return [(a.tolist(), b["k"].item()) for a, b in values]


def test_interpreters():
    assert interpreted(taeda) == interpreted(torch)


def built(library):
    graph = library.fx.Graph()
    tracer = library.fx.proxy.GraphAppendingTracer(graph)
    x = library.fx.Proxy(graph.placeholder("x", library.Tensor), tracer)
    weight = library.fx.Proxy(graph.get_attr("layer.weight"), tracer)
    y = x.new_zeros(x.shape + (2,)).sum() + operator.matmul(x, weight)
    out = library.fx.Proxy(graph.call_module("act", (y.node,)), tracer)
    graph.output(out.node, library.Tensor)
    root = {"layer.weight": library.eye(2) * 3, "act": library.nn.ReLU()}
    module = library.fx.GraphModule(root, graph, "Built")
    x = library.tensor([[1.0, -2.0]])
    return shown(graph), type(module).__name__, module(x).tolist(), sorted(module.state_dict())


def test_built_by_hand():
    assert built(taeda) == built(torch)
