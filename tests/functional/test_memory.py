"""Functional steps reuse memory: they need that of the ordinary loop."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

import taeda
from taeda import functional, nn

PROGRAM = """
import json, sys
import taeda
from benchmarks.peak import peak_bytes
from taeda import functional, nn

WIDTH = 1580
mse = nn.functional.mse_loss
functional.factory, functional.optimizer  # code is no part of the comparison
taeda.set_num_threads(1)

def make():
    layers = [nn.Linear(WIDTH, WIDTH) for _ in range(4)]
    return nn.Sequential(layers[0], *(m for layer in layers[1:] for m in (nn.ReLU(), layer)))

x, y = taeda.randn(8, WIDTH), taeda.randn(8, WIDTH)
before = peak_bytes()
taeda.manual_seed(0)
if sys.argv[1] == "objects":
    model = make()
    optimizer = taeda.optim.Adam(model.parameters())
    for _ in range(3):
        optimizer.zero_grad()
        loss = mse(model(x), y)
        loss.backward()
        optimizer.step()
else:
    factory = functional.factory(make)
    optimizer = functional.optimizer(taeda.optim.Adam)
    parameters = factory.init(0)
    state = optimizer.init(parameters)
    for _ in range(3):
        model = factory(parameters)
        loss = mse(model(x), y)
        gradient = model.backward(loss)
        parameters, state = optimizer.step(parameters, gradient, state)
print(json.dumps([peak_bytes() - before, loss.item()]))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads the peak from /proc")
def test_peak_of_a_model_of_ten_million_parameters():
    def run(kind):
        command = [sys.executable, "-c", PROGRAM, kind]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    objects, loss = run("objects")
    functions, same = run("functions")
    gradient = 4 * 4 * (1580 * 1580 + 1580)
    # The allocator gives large blocks whole pages of 2 MB.
    assert functions <= objects + 0.07 * gradient
    assert loss == same


@pytest.mark.parametrize("donate", [True, False])
def test_a_gradient_can_be_read_until_the_new_parameters_are_used(donate):
    factory = functional.factory(nn.Linear(3, 2))
    sgd = functional.optimizer(taeda.optim.SGD, lr=0.1, momentum=0.9, donate=donate)
    parameters, x = factory.init(0), taeda.randn(4, 3)
    state = sgd.init(parameters)
    for _ in range(3):
        model = factory(parameters)
        gradient = model.backward(model(x).square().mean())
        clipped = gradient.clip_norm(0.1)
        weight = clipped["weight"]
        kept, value = clipped.clone(), weight.clone()
        parameters, state = sgd.step(parameters, clipped, state)
        factory(parameters)  # a model that does not run needs no memory
        assert clipped == kept and clipped.norm() <= 0.1001
        factory(parameters)(x)
        assert taeda.equal(weight, value)  # what was read from it before is its reader's
        assert gradient.norm() > 0.1  # no step was given this one
        if donate:
            with pytest.raises(RuntimeError, match=r"donated to SGD\.step\(\).*donate=False"):
                clipped.norm()
        else:
            assert clipped == kept


@pytest.mark.unsanitized("no memory is kept for the next tensor there")
def test_the_memory_of_a_gradient_is_that_of_the_last_one():
    factory = functional.factory(nn.Linear(300, 300, bias=False))
    sgd = functional.optimizer(taeda.optim.SGD, lr=0.1)
    parameters, x = factory.init(0), taeda.randn(4, 300)
    state, places = sgd.init(parameters), set()
    for _ in range(6):
        model = factory(parameters)
        gradient = model.backward(model(x).square().mean())
        places.add(gradient._tensors["weight"].data_ptr())
        parameters, state = sgd.step(parameters, gradient, state)
    assert len(places) == 1
