"""What calling a module hands on, and the notes that name the module that raised."""

import inspect
import pickle

import pytest

import taeda
from taeda import nn
from tests.nn.trees import Leaf


def test_signature_of_a_module_is_its_forwards():
    assert str(inspect.signature(Leaf())) == "(x, scale=1)"
    assert "in_features" in inspect.signature(nn.Linear).parameters


def test_calls_hand_on_every_kind_of_argument():
    class Show(nn.Module):
        def forward(self, *args, **kwargs):
            return args, kwargs

    m = Show()
    for args, kwargs in (
        ((), {}),
        ((1,), {}),
        ((1, 2), {}),
        ((), {"input": 1}),
        ((1,), {"self_": 2}),
    ):
        assert m(*args, **kwargs) == (args, kwargs)
    handle = m.register_forward_hook(lambda m, a, o: None)
    for args, kwargs in (
        ((), {}),
        ((1,), {}),
        ((1, 2), {}),
        ((), {"input": 1}),
        ((1,), {"args": 2}),
    ):
        assert m(*args, **kwargs) == (args, kwargs)
    handle.remove()


class Fails(nn.Module):
    def forward(self, x):
        raise ValueError("no")


@pytest.mark.skipif(not hasattr(Exception(), "add_note"), reason="notes came with Python 3.11")
class TestNotes:
    def notes(self, m, error=ValueError):
        with pytest.raises(error) as info:
            m(taeda.ones(1))
        return info.value.__notes__

    def test_path(self):
        model = nn.Sequential(nn.Identity(), nn.ModuleDict({"x": nn.Sequential(Fails())})["x"])
        assert self.notes(model) == ["in 1.0 (Fails)"]
        assert self.notes(Fails()) == ["in Fails"]

    def test_path_through_containers_that_are_not_called(self):
        class Outer(nn.Module):
            def __init__(self):
                super().__init__()
                self.layers = nn.ModuleList([nn.ModuleDict({"a": Fails()})])

            def forward(self, x):
                return self.layers[0]["a"](x)

        assert self.notes(nn.Sequential(Outer())) == ["in 0.layers.0.a (Fails)"]

    def test_unregistered_child(self):
        class Outer(nn.Module):
            def __init__(self):
                super().__init__()
                self.hidden = [Fails()]

            def forward(self, x):
                return self.hidden[0](x)

        assert self.notes(nn.Sequential(Outer())) == ["in Fails", "in 0 (Outer)"]

    def test_with_hooks(self):
        model = nn.Sequential(nn.Sequential(Fails()))
        model[0].register_forward_pre_hook(lambda m, a: None)
        assert self.notes(model) == ["in 0.0 (Fails)"]

    def test_error_raised_again(self):
        error = ValueError("once")

        class Again(nn.Module):
            def forward(self, x):
                raise error

        model = nn.Sequential(Again())
        self.notes(model)
        assert len(self.notes(model)) <= 2

    def test_shape_errors(self):
        model = nn.Sequential(nn.Linear(2, 3), nn.Linear(4, 5))
        with pytest.raises(RuntimeError) as info:
            model(taeda.ones(1, 2))
        assert info.value.__notes__ == ["in 1 (Linear)"]

    def test_caught_inside(self):
        class Catch(nn.Module):
            def __init__(self):
                super().__init__()
                self.inner = Fails()

            def forward(self, x):
                try:
                    return self.inner(x)
                except ValueError:
                    return x

        assert Catch()(3) == 3

    def test_pickled_errors_do_not_drag_modules_along(self):
        with pytest.raises(ValueError) as info:
            nn.Sequential(Fails())(1)
        assert len(pickle.dumps(info.value)) < 400
