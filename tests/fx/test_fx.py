"""What graphs refuse, and what tracing leaves behind."""

from __future__ import annotations

import math
import traceback

import pytest

import taeda
from taeda import fx, nn
from taeda.fx.proxy import TraceError


@fx.wrap
def doubled(x, *, by=2):
    return x * by if bool(x.sum() > 0) else x


fx.wrap("len")


def test_wrapped_functions_are_single_steps():
    traced = fx.symbolic_trace(lambda x: doubled(x, by=3) + len(x))
    assert [n.name for n in traced.graph.nodes] == ["x", "doubled", "len_1", "add", "output"]
    assert traced(taeda.ones(2)).tolist() == [5.0, 5.0]
    assert doubled(taeda.ones(1)).item() == 2.0 and len([1]) == 1 and math.sqrt(4) == 2
    with pytest.raises(NotImplementedError, match="top level"):
        fx.wrap("abs")
    with pytest.raises(RuntimeError, match="expected a function or the name of one, got int"):
        fx.wrap(3)


def test_what_depends_on_values_is_refused():
    programs = [
        lambda x: x if x.sum() > 0 else -x,
        lambda x: [row for row in x],
        lambda x: taeda.stack([*x]),
    ]
    for program in programs:
        with pytest.raises(TraceError):
            fx.symbolic_trace(program)
    with pytest.raises(RuntimeError, match="'len' is not supported"):
        fx.symbolic_trace(lambda x: x.__len__() if False else type(x).__len__(x))
    with pytest.raises(TypeError, match="no arguments y"):
        fx.symbolic_trace(lambda x: x, concrete_args={"y": 1})
    # Nothing of the tracing remains after an error.
    assert "__call__" not in vars(nn.Module)
    assert math.sqrt(4.0) == 2.0


def test_tracing_within_tracing_and_leaves():
    class Inner(nn.Module):
        def forward(self, x):
            return fx.symbolic_trace(nn.Sequential(nn.ReLU()))(x) + 1

    class AllLeaves(fx.Tracer):
        def is_leaf_module(self, m, module_qualified_name):
            return True

    model = nn.Sequential(Inner(), nn.Linear(2, 2))
    with pytest.raises(NameError, match="not installed as a submodule"):
        fx.symbolic_trace(model)
    assert "__call__" not in vars(nn.Module)
    graph = AllLeaves().trace(model)
    assert [n.op for n in graph.nodes][1:-1] == ["call_module"] * 2
    x = taeda.ones(1, 2)
    assert taeda.equal(fx.GraphModule(model, graph)(x), model(x))


def test_nodes():
    graph = fx.Graph()
    x = graph.placeholder("x")
    y = graph.call_function(taeda.add, (x, [1, {"k": x}]))
    assert y.all_input_nodes == [x] and list(x.users) == [y] and y.prev is x and x.next is y
    with pytest.raises(NotImplementedError, match="does not support mutation"):
        y.args[1].append(2)
    with pytest.raises(NotImplementedError, match="does not support mutation"):
        y.args[1][1]["k"] = 2
    with pytest.raises(RuntimeError, match="still had 1 users"):
        graph.erase_node(x)
    with pytest.raises(RuntimeError, match="does not belong to this Graph"):
        fx.Graph().call_function(taeda.add, (x,))
    with pytest.raises(ValueError, match="a Callable is expected"):
        graph.call_function("add", (x,))
    with pytest.raises(TypeError, match="not iterable"):
        a, b = y
    graph.output(y)
    y.append(x)
    with pytest.raises(RuntimeError, match="before it has been defined"):
        graph.lint()
    y.prepend(x)
    graph.lint()
    y.args = (1, 2)
    assert not x.users
    graph = fx.Graph(nn.Sequential(nn.ReLU()))
    graph.output(graph.call_module("1", (graph.placeholder("x"),)))
    with pytest.raises(RuntimeError, match="nonexistent attribute 1"):
        graph.lint()


def test_side_effects_stay():
    seen = []

    @fx.has_side_effect
    def log(x):
        seen.append(x)

    graph = fx.Graph()
    x = graph.placeholder("x")
    graph.call_function(log, (x,))
    graph.call_method("add_", (x, 1))
    graph.call_function(taeda.sin, (x,))
    graph.call_function(taeda.bernoulli, (x,))
    graph.call_function(taeda.nn.functional.dropout, (x,))
    graph.output(x)
    assert graph.eliminate_dead_code() and not graph.eliminate_dead_code()
    names = ["x", "log", "add_", "bernoulli", "dropout", "output"]
    assert [n.name for n in graph.nodes] == names
    assert graph.eliminate_dead_code(lambda n: n.is_impure(impure_random=False))
    assert [n.name for n in graph.nodes] == [*names[:3], "output"]
    assert fx.GraphModule({}, graph)(taeda.zeros(1)).item() == 1 and len(seen) == 1


def test_errors_show_the_code():
    traced = fx.symbolic_trace(lambda x: x.relu().no_such_method())
    with pytest.raises(AttributeError) as caught:
        traced(taeda.ones(1))
    assert "no_such_method = relu.no_such_method()" in "".join(
        traceback.format_exception(caught.value)
    )
    with pytest.raises(AttributeError) as caught:
        fx.Interpreter(traced).run(taeda.ones(1))
    assert "While executing %no_such_method" in "".join(traceback.format_exception(caught.value))


def test_modules_of_a_graph():
    model = nn.Sequential(nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 2))
    traced = fx.symbolic_trace(model)
    assert traced.add_submodule("more.act", nn.Tanh()) and not traced.delete_submodule("more.no")
    call = traced.graph.find_nodes(op="call_module")[1]
    call.target = "more.act"
    traced.recompile()
    traced.delete_all_unused_submodules()
    assert [name for name, _ in traced.named_children()] == ["0", "2", "more"]
    x = taeda.randn(3, 2)
    assert taeda.equal(traced(x), model[2](model[0](x).tanh()))
    assert "class Sequential" in traced.print_readable(print_output=False)
    with pytest.raises(RuntimeError, match="has no 'q'"):
        graph = fx.Graph()
        graph.output(graph.get_attr("q"))
        fx.GraphModule(model, graph)
    with pytest.raises(RuntimeError, match="not in the given dict"):
        fx.GraphModule({}, graph)


def test_values_in_code():
    def program(x):
        values = (math.inf, -math.inf, 1j, "text", b"b", None, True, range(2), taeda.int64, [1])
        return x, {"v": values, "t": taeda.Size([1, 2]), "d": taeda.device("cpu")}

    traced = fx.symbolic_trace(program)
    x = taeda.ones(1)
    assert traced(x)[1] == program(x)[1]
    for node in traced.graph.nodes:
        assert node.format_node()
    assert str(traced.graph).startswith("graph(%x):")
