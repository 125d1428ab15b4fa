"""state_dict and load_state_dict: contents, messages, hooks, extra state."""

from collections import OrderedDict

import pytest

import taeda
from taeda import nn


def build(lib):
    lib.manual_seed(0)
    return lib.nn.Sequential(
        OrderedDict(
            stem=lib.nn.Conv2d(1, 2, 3),
            norm=lib.nn.BatchNorm2d(2),
            head=lib.nn.Sequential(lib.nn.Flatten(), lib.nn.Linear(2, 3, bias=False)),
        )
    )


class Extra(nn.Module):
    def __init__(self):
        super().__init__()
        self.state = {"steps": 3}

    def get_extra_state(self):
        return self.state

    def set_extra_state(self, state):
        self.state = state


def test_contents_like_torch(torch, same):
    ours, theirs = build(taeda).state_dict(prefix="p."), build(torch).state_dict(prefix="p.")
    assert list(ours) == list(theirs) and ours._metadata == theirs._metadata
    for key in ours:
        same(ours[key], theirs[key])


def test_state_shares_memory_and_is_detached():
    m = nn.Linear(2, 3)
    state = m.state_dict()
    assert not state["weight"].requires_grad
    assert type(state["weight"]) is taeda.Tensor
    assert state["weight"].data_ptr() == m.weight.data_ptr()
    assert m.state_dict(keep_vars=True)["weight"] is m.weight
    into = OrderedDict()
    assert m.state_dict(destination=into, prefix="x.") is into and list(into) == [
        "x.weight",
        "x.bias",
    ]
    with pytest.warns(FutureWarning):
        assert list(m.state_dict(OrderedDict(), "y.")) == ["y.weight", "y.bias"]


def test_non_persistent_buffers_are_left_out():
    m = nn.Module()
    m.register_buffer("kept", taeda.ones(1))
    m.register_buffer("left", taeda.ones(1), persistent=False)
    m.register_buffer("none", None)
    m.declared = nn.Buffer(taeda.ones(1), persistent=False)
    assert list(m.state_dict()) == ["kept"]
    m.register_buffer("left", taeda.ones(1))
    assert list(m.state_dict()) == ["kept", "left"]


def test_round_trip(same):
    a, b = build(taeda), build(taeda)
    with taeda.no_grad():
        for p in a.parameters():
            p.add_(1)
    kept = b.stem.weight
    report = b.load_state_dict(a.state_dict())
    assert repr(report) == "<All keys matched successfully>"
    assert b.stem.weight is kept
    for key, value in a.state_dict().items():
        same(b.state_dict()[key], value)
    missing, unexpected = report
    assert missing == [] and unexpected == []


BAD = {
    "missing": lambda s, lib: s.pop("stem.bias"),
    "unexpected": lambda s, lib: s.update({"more": lib.zeros(1), "head.2.weight": lib.zeros(1)}),
    "unexpected below a parameter": lambda s, lib: s.update({"stem.bias.x": lib.zeros(1)}),
    "size": lambda s, lib: s.update({"stem.weight": lib.zeros(3, 2)}),
    "all": lambda s, lib: (
        s.pop("norm.running_mean"),
        s.update({"a": lib.zeros(1), "head.1.weight": lib.zeros(1, 1)}),
    ),
    "no prefix": lambda s, lib: (
        values := dict(s), s.clear(), s.update({f"module.{k}": v for k, v in values.items()})
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_messages_like_torch(torch, name):
    messages = []
    for lib in (taeda, torch):
        m = build(lib)
        state = m.state_dict()
        BAD[name](state, lib)
        with pytest.raises(RuntimeError) as info:
            m.load_state_dict(state)
        messages.append(str(info.value).replace("torch.Size", "Size").replace("taeda.Size", "Size"))
        if "size" not in name and name != "all":
            report = m.load_state_dict(state, strict=False)
            messages.append((sorted(report.missing_keys), sorted(report.unexpected_keys)))
    half = len(messages) // 2
    assert messages[:half] == messages[half:]


def test_wrong_values_are_named():
    m = nn.Linear(2, 3)
    with pytest.raises(RuntimeError, match='named "weight", expected a Tensor .*int'):
        m.load_state_dict({"weight": 3, "bias": taeda.zeros(3)})
    with pytest.raises(TypeError, match="dict-like"):
        m.load_state_dict([1])
    with pytest.raises(RuntimeError, match="an exception occurred"):
        m.load_state_dict(nn.Linear(2, 3, device="meta").state_dict())


def test_report_hints():
    m = build(taeda)
    state = {f"module.{k}": v for k, v in m.state_dict().items()}
    report = m.load_state_dict(state, strict=False)
    assert '7 unexpected keys have "module." before the expected name' in repr(report)
    report = nn.Sequential(OrderedDict(model=m)).load_state_dict(m.state_dict(), strict=False)
    assert ' missing keys have "model." before the given name' in repr(report)
    report = nn.Linear(2, 2).load_state_dict(
        {"weigth": taeda.zeros(2, 2), "bias": taeda.zeros(2)}, strict=False
    )
    assert '"weigth" is near "weight"' in repr(report)
    assert report.missing_keys == ["weight"] and report.unexpected_keys == ["weigth"]
    with pytest.raises(RuntimeError) as info:
        m.load_state_dict(state)
    if hasattr(info.value, "add_note"):
        assert "module." in info.value.__notes__[0]


def test_assign():
    m = nn.Linear(2, 3, device="meta")
    given = nn.Linear(2, 3, dtype=taeda.float64).requires_grad_(False).state_dict()
    m.load_state_dict(given, assign=True)
    assert m.weight.dtype == taeda.float64 and m.weight.requires_grad
    assert isinstance(m.weight, nn.Parameter)
    assert m.weight.data_ptr() == given["weight"].data_ptr()


def test_copying_to_meta_warns():
    m = nn.Linear(2, 3, device="meta")
    with pytest.warns(UserWarning, match="assign=True"):
        m.load_state_dict(nn.Linear(2, 3).state_dict())


def test_scalars_saved_as_vectors():
    m = nn.Module()
    m.w = nn.Parameter(taeda.tensor(1.0))
    m.load_state_dict({"w": taeda.tensor([3.0])})
    assert float(m.w.detach()) == 3.0


def test_other_dtypes_are_converted():
    m = nn.Linear(2, 3)
    m.load_state_dict(nn.Linear(2, 3).double().state_dict())
    assert m.weight.dtype == taeda.float32


def test_extra_state():
    m = nn.Sequential(Extra())
    state = m.state_dict()
    assert state["0._extra_state"] == {"steps": 3}
    other = nn.Sequential(Extra())
    other.load_state_dict({"0._extra_state": {"steps": 5}})
    assert other[0].state == {"steps": 5}
    with pytest.raises(RuntimeError, match='Missing key.*"0._extra_state"'):
        other.load_state_dict({})
    with pytest.raises(RuntimeError, match='Unexpected key.*"_extra_state"'):
        nn.Module().load_state_dict({"_extra_state": 3})


def test_version_reaches_loading():
    seen = []

    class Old(nn.Module):
        _version = 3

        def _load_from_state_dict(self, state_dict, prefix, local_metadata, *rest):
            seen.append(local_metadata.get("version"))
            super()._load_from_state_dict(state_dict, prefix, local_metadata, *rest)

    m = nn.Sequential(Old())
    m.load_state_dict(m.state_dict())
    m.load_state_dict({})
    assert seen == [3, None]


def test_saving_hooks():
    m = nn.Sequential(nn.Linear(2, 2))
    log = []
    first = m[0].register_state_dict_pre_hook(lambda mod, prefix, keep: log.append((prefix, keep)))

    def rename(module, state, prefix, metadata):
        state[prefix + "kernel"] = state.pop(prefix + "weight")
        log.append(metadata)

    second = m[0].register_state_dict_post_hook(rename)
    assert list(m.state_dict()) == ["0.bias", "0.kernel"]
    assert log == [("0.", False), {"version": 1}]
    first.remove(), second.remove()
    assert list(m.state_dict()) == ["0.weight", "0.bias"]
    m.register_state_dict_post_hook(lambda *args: 3)
    with pytest.raises(RuntimeError, match="must return None"):
        m.state_dict()
    other = nn.Linear(2, 2)
    other._register_state_dict_hook(lambda mod, state, prefix, metadata: {"replaced": 1})
    assert other.state_dict() == {"replaced": 1}


def test_loading_hooks():
    m = nn.Sequential(nn.Linear(2, 2))
    log = []

    def rename(module, state, prefix, *rest):
        log.append(module)
        state[prefix + "weight"] = state.pop(prefix + "kernel")

    m[0].register_load_state_dict_pre_hook(rename)
    m[0]._register_load_state_dict_pre_hook(lambda state, prefix, *rest: log.append(prefix))
    m.load_state_dict({"0.kernel": taeda.ones(2, 2), "0.bias": taeda.zeros(2)})
    assert log == [m[0], "0."] and float(m[0].weight[0, 0].detach()) == 1.0
    other = nn.Linear(2, 2)
    other.register_load_state_dict_post_hook(lambda mod, report: report.missing_keys.clear())
    assert other.load_state_dict({"weight": taeda.ones(2, 2)}).missing_keys == []
    other.register_load_state_dict_post_hook(lambda mod, report: 3)
    with pytest.raises(AssertionError):
        other.load_state_dict(other.state_dict())


def test_state_hooks_do_not_slow_calls():
    m = nn.Linear(2, 2)
    m.register_state_dict_pre_hook(lambda *args: None)
    assert m._call_hooks is None
