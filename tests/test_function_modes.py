"""TorchFunctionMode and the helpers around `__torch_function__`."""

from __future__ import annotations

import copy
import inspect
import pickle
import threading

import pytest

import taeda
from taeda import overrides
from taeda.overrides import TorchFunctionMode


class Log(TorchFunctionMode):
    def __init__(self, names, tag=""):
        self.names, self.tag = names, tag

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.names.append(self.tag + func.__name__)
        return func(*args, **(kwargs or {}))


def test_every_call_is_seen():
    names, x = [], taeda.arange(4.0)
    with Log(names) as mode:
        assert isinstance(mode, Log)
        y = taeda.zeros(2, 2)
        z = x.sin() + 1
        z += x
        w = x[1:3]
        x[0] = 5.0
        taeda.tensor([1, 2])
        taeda.as_tensor([1.0])
        taeda.nn.functional.relu(x)
        y @ y
        _ = x < 1
    assert names == [
        "zeros", "sin", "add", "add_", "__getitem__", "__setitem__", "tensor", "as_tensor",
        "relu", "matmul", "lt",
    ]  # fmt: skip
    assert w.tolist() == [1.0, 2.0] and x[0].item() == 5.0 and names[-1] == "lt"
    x.sin()
    assert len(names) == 11  # nothing more, once it has been left


def test_functions_in_python_are_seen_as_themselves():
    functional, names, x = taeda.nn.functional, [], taeda.ones(2, 3)
    with Log(names):
        functional.dropout(x, p=0.5)
        functional.cross_entropy(x, target=taeda.zeros(2, 3))
        taeda.einsum("ij,kj->ik", x, x)
        taeda.where(x > 0, x, 0.0)
        taeda.pairwise_distance(x, x)
        x.double()
    assert names == [
        "dropout", "zeros", "cross_entropy", "einsum", "gt", "where", "pairwise_distance", "double",
    ]  # fmt: skip


def test_classes_answer_for_functions_in_python():
    class Answers(taeda.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return func, types, args, kwargs

    functional, x, plain = taeda.nn.functional, Answers([1.0]), taeda.ones(1)
    result = functional.mse_loss(plain, x, reduction="sum")
    assert result == (functional.mse_loss, (Answers,), (plain, x), {"reduction": "sum"})
    assert taeda.meshgrid([plain, x])[0] is taeda.meshgrid
    assert functional.normalize(input=x)[3] == {"input": x}
    assert x.float()[0] is taeda.Tensor.float
    with overrides.DisableTorchFunctionSubclass():
        assert type(functional.relu6(x)) is taeda.Tensor

    class Declines(taeda.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return NotImplemented

    with pytest.raises(TypeError, match="no implementation found"):
        functional.dropout(Declines([1.0]))


def test_subclasses_go_through_functions_in_python():
    class Kept(taeda.Tensor):
        pass

    functional, x = taeda.nn.functional, Kept([[1.0, 2.0]])
    assert type(functional.softmax(x, -1)) is Kept
    assert type(functional.dropout(x)) is Kept
    assert type(taeda.cartesian_prod(x[0], x[0])) is Kept
    assert type(x.half()) is Kept
    assert functional.dropout in overrides.get_overridable_functions()[functional]
    assert taeda.einsum in overrides.get_testing_overrides()
    assert taeda.is_tensor not in overrides.get_testing_overrides()


def test_functions_stay_what_they_were():
    for function in (taeda.nn.functional.dropout, taeda.einsum, taeda.Tensor.resize_as_):
        assert inspect.isfunction(function) and inspect.isroutine(function)
        assert function.__doc__ and inspect.getdoc(function)
        assert function.__module__.startswith("taeda.") and function.__code__.co_argcount >= 0
        assert pickle.loads(pickle.dumps(function)) is function
        assert copy.deepcopy(function) is function
    functional = taeda.nn.functional
    assert list(inspect.signature(functional.dropout).parameters)[:2] == ["input", "p"]
    assert "p" in functional.dropout.__annotations__
    assert list(inspect.signature(taeda.ones(1).float).parameters) == ["memory_format"]
    with pytest.raises(TypeError, match=r"dropout\(\).*unexpected keyword argument 'q'"):
        functional.dropout(taeda.ones(1), q=1)


def test_sparse_tensors_compute_functions_by_their_parts():
    x = taeda.tensor([[0.0, 2.0]]).to_sparse()
    assert x.double().dtype == taeda.float64
    names = []
    with Log(names):
        assert taeda.is_nonzero(x[0, 1])
    assert "is_nonzero" in names


def test_results_may_be_replaced():
    class Ones(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            if func is taeda.zeros:
                return taeda.ones(*args, **(kwargs or {}))
            return func(*args, **(kwargs or {}))

    with Ones():
        assert taeda.zeros(2).tolist() == [1, 1]
    assert taeda.zeros(2).tolist() == [0, 0]


def test_the_innermost_is_asked_first():
    names = []
    with Log(names, "outer "), Log(names, "inner "):
        taeda.ones(1)
    assert names == ["inner ones", "outer ones"]


def test_an_error_leaves_the_modes_as_they_were():
    class Fails(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            raise KeyError("mine")

    names = []
    with Log(names):
        with Fails():
            for _ in range(2):
                with pytest.raises(KeyError, match="mine"):
                    taeda.ones(1)
        taeda.ones(1)
    assert names == ["ones"]
    with TorchFunctionMode(), pytest.raises(NotImplementedError, match="__torch_function__"):
        taeda.ones(1)
    with pytest.raises(ZeroDivisionError), Log(names):
        1 / 0
    taeda.ones(1)
    assert names == ["ones"]


def test_modes_come_before_classes():
    asked = []

    class Mine(taeda.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            asked.append("class")
            return super().__torch_function__(func, types, args, kwargs)

    class Mode(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            asked.append(types)
            return func(*args, **(kwargs or {}))

    x = taeda.ones(2).as_subclass(Mine)
    with Mode():
        y = x + 1
    assert asked == [(Mine,), "class"] and type(y) is Mine

    class Declines(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            return NotImplemented

    asked.clear()
    with Declines():
        with pytest.raises(TypeError):  # asked, the class calls the operation, and so the mode
            x + 1
        assert asked == ["class"]
        with pytest.raises(TypeError, match="no implementation found"):
            taeda.ones(1)


def test_other_threads_are_not_in_the_mode():
    names, results = [], []
    with Log(names):
        thread = threading.Thread(target=lambda: results.append(taeda.ones(2)))
        thread.start()
        thread.join()
    assert names == [] and results[0].tolist() == [1, 1]


def test_gradients_within_a_mode():
    x = taeda.ones(2, requires_grad=True)
    with overrides.BaseTorchFunctionMode():
        (x * 3).sum().backward()
    assert x.grad.tolist() == [3, 3]


def test_python_functions_can_take_part():
    @overrides.wrap_torch_function(lambda a, b=None: (a, b))
    def double(a, b=None):
        """Twice the first."""
        return a * 2

    class Answers:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return func.__name__, types, len(args), kwargs

    assert double(3) == 6 and double.__doc__ == "Twice the first."
    assert double(1, b=Answers())[0] == "double"
    assert double(Answers()) == ("double", (Answers,), 1, {})
    names = []
    assert not overrides.has_torch_function((1,))
    with Log(names):
        assert overrides.has_torch_function((1,)) and overrides.has_torch_function_unary(1)
        assert double(3) == 6
    assert names == ["double"]
    assert overrides.has_torch_function_variadic(1, Answers())


def test_names():
    assert overrides.resolve_name(taeda.Tensor.add) == "taeda.Tensor.add"
    assert overrides.resolve_name(taeda.nn.functional.linear).startswith("taeda.")
    assert overrides.resolve_name(3) is None
    assert overrides.is_tensor_method_or_property(taeda.Tensor.add)
    assert not overrides.is_tensor_method_or_property(taeda.ones)
