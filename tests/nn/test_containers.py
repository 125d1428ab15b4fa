"""Sequential, ModuleList, ModuleDict, ParameterList and ParameterDict."""

import copy
import pickle
from collections import OrderedDict

import pytest

import taeda
from taeda import nn

# Each is run with `nn` being ours and PyTorch's; both give the same repr or the same exception.
SEQUENTIAL = [
    "s[0]", "s[-1]", "s[2]", "s['a']", "s[1:]", "s[:1]", "s + s", "s + 3", "s * 2", "2 * s",
    "s * 0",     "s * 2.0", "s.append(nn.ELU())", "s.append(3)", "s.insert(1, nn.ELU())",
    "s.insert(-1, nn.ELU())", "s.insert(5, nn.ELU())", "s.insert(0, 3)", "s.extend([nn.ELU()])",
    "s.pop(0)", "s.pop(7)", "s.__delitem__(0) or s", "s.__delitem__(slice(0, 1)) or s",
    "s.__setitem__(0, nn.ELU()) or s", "s.__setitem__(0, 3)", "s.__iadd__(s[:])", "s.__imul__(3)",
    "s.__iadd__(3)", "len(s)", "list(s)", "nn.Sequential()", "nn.Sequential(nn.ReLU(), 3)",
    "nn.Sequential(OrderedDict(a=nn.ReLU(), b=nn.Tanh()))",
    "nn.Sequential(OrderedDict(a=nn.ReLU(), b=nn.Tanh()))[1:]",
    "nn.Sequential(OrderedDict(a=nn.ReLU()), nn.Tanh())",
    "nn.Sequential({'a': nn.ReLU()})",
]  # fmt: skip
LISTS = [
    "l", "l[0]", "l[-1]", "l[5]", "l['0']", "l[1:]", "l + [nn.ELU()]", "l.append(nn.ELU())",
    "l.append(3)", "l.extend([nn.ELU(), nn.ELU()])", "l.extend(3)", "l.insert(0, nn.ELU()) or l",
    "l.pop(0)", "l.pop(-1)", "l.__delitem__(1) or l", "l.__delitem__(slice(0, 2)) or l",
    "l.__setitem__(1, nn.ELU()) or l", "l.__setitem__(9, nn.ELU())", "l.__iadd__([nn.ELU()])",
    "len(l)", "list(l)", "nn.ModuleList()", "l(3)", "nn.ModuleList([nn.ReLU()] * 3)",
]  # fmt: skip
DICTS = [
    "d", "d['a']", "d['z']", "len(d)", "list(d)", "'a' in d", "list(d.keys())", "list(d.values())",
    "list(d.items())", "d.pop('a')", "d.pop('z')", "d.update({'c': nn.ELU()}) or d",
    "d.clear() or d",
    "d.update([('c', nn.ELU())]) or d", "d.update(3)", "d.update([3])", "d.update([(1, 2, 3)])",
    "d.__setitem__('q', nn.ELU()) or d", "d.__setitem__('q', 3)", "d.__delitem__('a') or d",
    "nn.ModuleDict({'keys': nn.ReLU()})", "nn.ModuleDict(d)", "nn.ModuleDict({'a.b': nn.ReLU()})",
]  # fmt: skip


@pytest.mark.parametrize("code", SEQUENTIAL + LISTS + DICTS)
def test_like_torch(torch, code):
    outcomes = []
    for lib in (taeda.nn, torch.nn):
        env = {
            "nn": lib,
            "OrderedDict": OrderedDict,
            "s": lib.Sequential(lib.ReLU(), lib.Tanh()),
            "l": lib.ModuleList([lib.ReLU(), lib.ReLU(), lib.Sequential(lib.Tanh())]),
            "d": lib.ModuleDict({"b": lib.ReLU(), "a": lib.Tanh()}),
        }
        try:
            outcomes.append(repr(eval(code, env)))
        except Exception as error:
            outcomes.append(type(error))
    assert outcomes[0] == outcomes[1]


def test_sequential_names_follow_positions():
    s = nn.Sequential(nn.Linear(1, 1), nn.ReLU(), nn.Linear(1, 1))
    del s[0]
    assert list(s.state_dict()) == ["1.weight", "1.bias"]
    assert getattr(s, "1") is s[1] and not hasattr(s, "2")


def test_a_slice_shares_its_modules():
    s = nn.Sequential(nn.Linear(1, 1), nn.ReLU())
    assert s[:1][0] is s[0]


def test_parameter_list(torch):
    p = nn.ParameterList([nn.Parameter(taeda.ones(2)), taeda.ones(3), 5])
    assert len(p) == 3 and isinstance(p[1], nn.Parameter) and p[2] == 5 and p[-1] == 5
    assert [name for name, _ in p.named_parameters()] == ["0", "1"]
    p.append(taeda.zeros(1))
    p += [taeda.zeros(4)]
    assert [tuple(t.shape) for t in p.parameters()] == [(2,), (3,), (1,), (4,)]
    p[0] = taeda.zeros(7)
    assert tuple(p[0].shape) == (7,) and isinstance(p[0], nn.Parameter)
    assert len(p[1:3]) == 2
    assert p.pop(2) == 5 and len(p) == 4 and len(list(p)) == 4
    with pytest.raises(IndexError):
        p[9]
    with pytest.raises(TypeError):
        p.extend(3)
    with pytest.raises(RuntimeError):
        p(3)
    assert repr(nn.ParameterList()) == repr(torch.nn.ParameterList())
    assert repr(nn.ParameterList([taeda.zeros(2, 3), 3])).replace("taeda.", "torch.") == repr(
        torch.nn.ParameterList([torch.zeros(2, 3), 3])
    )


def test_parameter_dict(torch):
    d = nn.ParameterDict({"b": taeda.ones(2), "a": nn.Parameter(taeda.ones(3))})
    assert list(d) == ["a", "b"] and isinstance(d["b"], nn.Parameter) and len(d) == 2
    assert list(nn.ParameterDict(OrderedDict(b=1, a=2))) == ["b", "a"]
    assert [name for name, _ in d.named_parameters()] == ["a", "b"]
    d["c"] = 5
    assert "c" in d and d.get("z") is None and d.get("c") == 5
    assert list(d.keys()) == ["a", "b", "c"] and list(d.values())[2] == 5
    assert d.setdefault("d", 1) == 1 and d.setdefault("d", 2) == 1
    assert d.popitem() == ("d", 1) and d.pop("c") == 5
    assert list(d.copy()) == ["a", "b"] and list(reversed(d)) == ["b", "a"]
    assert list(d | {"q": 1}) == ["a", "b", "q"]
    assert list(d.fromkeys(["x", "y"], 3).values()) == [3, 3]
    del d["a"]
    assert list(d.state_dict()) == ["b"]
    d.clear()
    assert len(d) == 0
    with pytest.raises(KeyError):
        d["a"]
    with pytest.raises(TypeError):
        nn.ParameterDict({3: 1})
    with pytest.raises(KeyError):
        nn.ParameterDict({"a.b": taeda.ones(1)})
    assert repr(nn.ParameterDict()) == repr(torch.nn.ParameterDict())
    assert "(a): Object of type: int" in repr(nn.ParameterDict({"a": 1}))


def test_parameter_dict_refuses_the_names_of_its_methods():
    with pytest.raises(KeyError, match="already exists"):
        nn.ParameterDict({"keys": taeda.ones(1)})


@pytest.mark.parametrize(
    "make",
    [
        lambda: nn.Sequential(nn.Linear(1, 1)),
        lambda: nn.ModuleList([nn.Linear(1, 1)]),
        lambda: nn.ModuleDict({"a": nn.Linear(1, 1)}),
        lambda: nn.ParameterList([taeda.ones(1), 3]),
        lambda: nn.ParameterDict({"a": taeda.ones(1), "b": 3}),
    ],
)
def test_copies(make):
    m = make()
    for other in (copy.deepcopy(m), pickle.loads(pickle.dumps(m))):
        assert len(other) == len(m)
        assert list(other.state_dict()) == list(m.state_dict())


def test_data_parallel_without_a_gpu():
    inner = nn.Linear(3, 2)
    model = nn.DataParallel(inner)
    x = taeda.randn(4, 3)
    assert (model(x) == inner(x)).all()
    assert (nn.parallel.data_parallel(inner, (x,)) == inner(x)).all()
    assert list(model.state_dict()) == ["module.weight", "module.bias"]
    if not taeda.cuda.is_available():
        with pytest.raises(RuntimeError, match=r"DataParallel: device_ids names \[0, 1\]"):
            nn.DataParallel(inner, device_ids=[0, 1])
