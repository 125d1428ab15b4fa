"""GradScaler with optimizers that divide gradients and leave out bad steps themselves."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys

import pytest

import taeda
from taeda.amp import GradScaler

OPTIMIZERS = {
    "SGD": {},
    "SGD with momentum": {"momentum": 0.9, "nesterov": True},
    "Adam": {"weight_decay": 0.1},
    "AdamW": {"amsgrad": True},
    "Adagrad": {"lr_decay": 0.1},
}


def train(library, name, bad, unscaled, dtype="float32"):
    """What each step leaves: the parameters, a gradient and the factor."""
    make = getattr(library.optim, name.split()[0])
    w = library.nn.Parameter(
        library.tensor([[1.0, -2.0], [3.0, 0.5]], dtype=getattr(library, dtype)).t()
    )
    b = library.nn.Parameter(library.tensor([0.5], dtype=getattr(library, dtype)))
    optimizer = make([w, b], lr=0.1, fused=True, **OPTIMIZERS[name])
    scaler = library.amp.GradScaler("cpu", init_scale=1024.0, growth_interval=2)
    seen = []
    for i in range(5):
        optimizer.zero_grad()
        loss = (w * w).sum() * b.sum() * (float("inf") if i == bad else 1)
        scaler.scale(loss).backward()
        if i in unscaled:
            scaler.unscale_(optimizer)
        assert scaler.step(optimizer) is None
        scaler.update()
        assert not hasattr(optimizer, "grad_scale") and not hasattr(optimizer, "found_inf")
        seen.append([w.tolist(), b.tolist(), w.grad.tolist(), scaler.get_scale()])
    return seen


@pytest.mark.parametrize("unscaled", [(), (1, 2)])
@pytest.mark.parametrize("bad", [None, 0, 2])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_steps_are_those_of_pytorch(name, bad, unscaled):
    torch = pytest.importorskip("torch")
    if name == "SGD with momentum" and bad == 0:
        bad = 1  # PyTorch's momentum is never written in a first step that is left out
    got, want = train(taeda, name, bad, unscaled), train(torch, name, bad, unscaled)
    for ours, theirs in zip(got, want, strict=True):
        for a, b in zip(ours, theirs, strict=True):
            torch.testing.assert_close(torch.tensor(a), torch.tensor(b), rtol=1e-5, atol=1e-6)


def test_half_precision_and_a_first_step_that_is_left_out():
    assert train(taeda, "Adam", None, (), "float64")[-1][0][0][0] != 1
    w = taeda.nn.Parameter(taeda.ones(2, dtype=taeda.float16))
    optimizer, scaler = taeda.optim.SGD([w], lr=0.5, fused=True), GradScaler("cpu", init_scale=8.0)
    scaler.scale(w.sum()).backward()
    scaler.step(optimizer)  # which unscale_() refuses
    assert w.tolist() == [0.5, 0.5] and w.grad.tolist() == [1, 1]
    first = train(taeda, "SGD with momentum", 0, ())
    assert first[0][0] == [[1, 3], [-2, 0.5]] and first[1][2] == [[1, 3], [-2, 0.5]]


def test_who_else_may_scale():
    class Own(taeda.optim.SGD):
        _step_supports_amp_scaling = True

        def step(self, closure=None):
            return self.grad_scale, self.found_inf.item()

    p = taeda.nn.Parameter(taeda.ones(1))
    optimizer, scaler = Own([p], lr=0.1), GradScaler("cpu", init_scale=8.0)
    scaler.scale(p.sum()).backward()
    assert scaler.step(optimizer) == (8, 0) and p.grad.tolist() == [8]
    with pytest.raises(RuntimeError, match="step\\(\\) has already been called"):
        scaler.step(optimizer)
    scaler.update()
    p.grad = taeda.full((1,), 8.0)
    scaler.unscale_(optimizer)
    assert scaler.step(optimizer) == (None, 0) and p.grad.tolist() == [1]
    scaler.update()
    optimizer.grad_scale = taeda.tensor(3.0)
    assert scaler.step(optimizer) == (24, 0)

    class Old(taeda.optim.SGD):
        _step_supports_amp_scaling = True

        def step(self, closure=None, grad_scaler=None):
            return grad_scaler

    optimizer, scaler = Old([p], lr=0.1), GradScaler("cpu")
    with pytest.warns(FutureWarning, match="self.grad_scale"):
        assert scaler.step(optimizer) is scaler


def test_which_optimizers_do():
    p = taeda.nn.Parameter(taeda.ones(1))
    for name in OPTIMIZERS:
        make = getattr(taeda.optim, name.split()[0])
        assert not hasattr(make([p], lr=0.1), "_step_supports_amp_scaling")
        fused = make([p], lr=0.1, fused=True)
        for one in (fused, copy.deepcopy(fused), pickle.loads(pickle.dumps(fused))):
            assert one._step_supports_amp_scaling


def test_numbers_of_a_step_by_itself():
    """The op's own arguments, and what it says of others."""
    step = taeda._C.ops._fused_sgd_
    options = {"lr": 1.0, "momentum": 0.0, "dampening": 0.0, "weight_decay": 0.0, "nesterov": False}
    options |= {"maximize": False, "is_first_step": False}
    p, g = taeda.ones(2), taeda.full((2,), 6.0)
    step([p], [g], [], **options, grad_scale=taeda.tensor(3.0), found_inf=taeda.tensor(0.0))
    assert p.tolist() == [-1, -1] and g.tolist() == [2, 2]
    step([p], [g], [], **options, grad_scale=taeda.tensor(3.0), found_inf=taeda.tensor(1.0))
    assert p.tolist() == [-1, -1] and g.tolist() == [2, 2]
    for name, wrong in (
        ("grad_scale", taeda.ones(2)),
        ("found_inf", taeda.tensor(1.0, dtype=taeda.float64)),
    ):
        with pytest.raises(RuntimeError, match=f"{name} must be one float32 on cpu"):
            step([p], [g], [], **options, **{name: wrong})


def test_a_device_whose_kernels_do_not_scale(tmp_path):
    """What the kernel does not read is read on the host."""
    from tests.guard.plugin import ROOT, compiled

    source = ROOT / "docs/examples/device_package/taeda_example_device/device.cpp"
    code = f"""
import taeda
taeda.register_device("scaling", {str(compiled(source, tmp_path / "it.so"))!r})
taeda.set_fallback("cpu")
options = dict(lr=1.0, momentum=0.0, dampening=0.0, weight_decay=0.0, nesterov=False, maximize=False, is_first_step=False)
p, g = taeda.ones(2, device="scaling"), taeda.full((2,), 6.0, device="scaling")
for found in (1.0, 0.0):
    numbers = dict(grad_scale=taeda.tensor(3.0, device="scaling"), found_inf=taeda.tensor(found, device="scaling"))
    taeda._C.ops._fused_sgd_([p], [g], [], **options, **numbers)
    print(p.cpu().tolist(), g.cpu().tolist())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.splitlines() == ["[1.0, 1.0] [6.0, 6.0]", "[-1.0, -1.0] [2.0, 2.0]"], (
        done.stderr
    )


def test_a_step_whose_parameters_are_a_subclass():
    class Seen(taeda.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return super().__torch_function__(func, types, args, kwargs or {})

    p = taeda.nn.Parameter(taeda.ones(2).as_subclass(Seen))
    optimizer, scaler = taeda.optim.SGD([p], lr=0.5, fused=True), GradScaler("cpu", init_scale=4.0)
    scaler.scale(p.sum()).backward()
    scaler.step(optimizer)
    assert p.tolist() == [0.5, 0.5] and p.grad.tolist() == [1, 1]
