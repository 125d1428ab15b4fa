"""Functional steps reuse memory: they need that of the ordinary loop, and one gradient."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

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
    assert functions <= objects + 1.07 * gradient
    assert functions < objects + 45e6 and loss == same
