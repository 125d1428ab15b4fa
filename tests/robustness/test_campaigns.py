"""Attempts with fixed seeds: files by their structure, graphs, processes that are killed, training
that is interrupted.

`--campaign N` makes N times as many. Each prints how many it made (`pytest -s`).
"""

import io
import pickle
import random
import re
import subprocess
import sys
import time
from pathlib import Path

import taeda
import taeda.nn.functional as F
from tests.robustness.made_files import (
    Streams,
    damaged_tar,
    damaged_zip,
    made_npy,
    made_safetensors,
    packed,
)
from tests.robustness.sample_files import npy_file, objects, tar_file, zip_file

ERRORS = (RuntimeError, ValueError, EOFError, pickle.UnpicklingError, NotImplementedError)
ROOT = Path(__file__).parents[2]
INTERNAL = re.compile(r"std::|vector::|basic_string|bad_\w+")


def outcome(load):
    """Whether it loads; it may raise only what is documented, with a message."""
    start = time.process_time()
    try:
        load()
        loaded = True
    except ERRORS as error:
        assert 8 < len(str(error)) < 3000 and not INTERNAL.search(str(error)), error
        loaded = False
    assert time.process_time() - start < 20
    return loaded


# ---- files --------------------------------------------------------------------------------------


def test_files_by_structure(campaign):
    pick = random.Random(1)
    whole = [zip_file(thing) for thing in objects().values()]
    tar, array = tar_file(), npy_file(taeda.ones(3, 4).double().numpy())
    makers = {
        "streams": lambda: packed(Streams(pick).stream()),
        "zip": lambda: damaged_zip(pick, pick.choice(whole)),
        "tar": lambda: damaged_tar(pick, tar),
        "safetensors": lambda: made_safetensors(pick),
        "npy": lambda: made_npy(pick, array),
    }
    tried = {name: [0, 0] for name in makers}
    for name, make in makers.items():
        for _ in range(1500 * campaign):
            data = make()
            loaded = outcome(lambda data=data: taeda.load(io.BytesIO(data)))
            tried[name][0] += 1
            tried[name][1] += loaded
    print("files (tried, loaded):", tried)
    assert all(0 < loaded < count for count, loaded in tried.values()), tried


# ---- graphs -------------------------------------------------------------------------------------

FUNCTIONS = [
    *(lambda x, y: x * y, lambda x, y: x @ y.T, lambda x, y: F.softmax(x, 1) * y),
    *(lambda x, y: F.gelu(x) + y**3, lambda x, y: taeda.cat([x, y]).sin()),
    *(lambda x, y: F.layer_norm(x, x.shape[-1:]) * y, lambda x, y: x.cumsum(0) / (y + 3)),
    *(lambda x, y: x.sort(1)[0] * y, lambda x, y: taeda.where(x > 0, x * y, y.exp())),
    *(
        lambda x, y: x.max(1)[0] * y.sum(1),
        lambda x, y: F.conv1d(x[None], y[:, None, :2], groups=1),
    ),
    *(lambda x, y: taeda.linalg.inv(x @ x.T + 9 * taeda.eye(x.shape[0])) @ y,),
    *(lambda x, y: x.logsumexp(1) + y.prod(1), lambda x, y: x[[0, 1, 0]] * y[:3].tanh()),
]


def changed(x, pick):
    """Something done to a tensor that a graph has saved."""
    d = x.detach()
    ways = [
        *(lambda: x.data.mul_(2), lambda: d.mul_(2), lambda: d.resize_(0), lambda: d.zero_()),
        *(lambda: setattr(x, "data", taeda.ones(1)), lambda: x.untyped_storage().resize_(0)),
        *(lambda: setattr(x, "data", taeda.ones(x.shape, device="meta")), lambda: d.t_()),
        *(lambda: setattr(x, "data", x.data.double()), lambda: setattr(x, "data", x.data.T)),
        *(lambda: d.set_(taeda.ones(2)), lambda: d.set_(), lambda: x.data.unsqueeze_(0)),
        *(lambda: x._exchange_data(taeda.ones(7)), lambda: d.resize_(50, 50)),
        lambda: x._exchange_data(taeda.ones(x.shape, device="meta")),
        lambda: setattr(x, "data", taeda.ones(x.shape).to_sparse()),
        lambda: x.requires_grad_(False),
    ]
    pick.choice(ways)()


def test_graphs_whose_saved_tensors_change(campaign):
    pick = random.Random(2)
    tried = wrong = 0
    kinds = [
        taeda.ones(1),
        taeda.ones(4, 4).double(),
        taeda.ones(0),
        taeda.ones(4, 4, device="meta"),
    ]
    for _ in range(2500 * campaign):
        x, y = (taeda.randn(4, 4, requires_grad=True) for _ in range(2))
        f = pick.choice(FUNCTIONS)
        a, b = (x * 1, y * 1) if pick.random() < 0.5 else (x, y)
        tried += 1
        try:
            if pick.random() < 0.3:
                other = pick.choice(kinds)
                hooks = taeda.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t, o=other: o)
                with hooks:
                    z = f(a, b)
            else:
                z = f(a, b)
                for _ in range(pick.choice([1, 1, 2])):
                    changed(pick.choice([a, b, x, y, z]), pick)
            again = pick.random() < 0.3
            grads = taeda.autograd.grad(z.sum(), [x, y], create_graph=again, allow_unused=True)
            if again and grads[0] is not None and grads[0].requires_grad:
                taeda.autograd.grad(grads[0].sum(), [x, y], allow_unused=True)
        except (*ERRORS, TypeError, IndexError) as error:
            assert str(error) and not INTERNAL.search(str(error)), error
            wrong += 1
    print("graphs (tried, refused):", tried, wrong)
    assert 0 < wrong < tried


# ---- in processes of their own -------------------------------------------------------------------


def campaign_of(module, *arguments):
    """Runs a module of this folder; returns what it printed."""
    command = [sys.executable, "-m", f"tests.robustness.{module}", *map(str, arguments)]
    done = subprocess.run(
        command, capture_output=True, text=True, errors="replace", cwd=ROOT, check=False
    )
    assert done.returncode == 0, f"{done.returncode}: {done.stdout}\n{done.stderr[-3000:]}"
    print(done.stdout)
    return done.stdout


def test_files_that_try_to_run_code(campaign):
    assert campaign_of("escapes", 1300 * campaign).endswith(" 0\n")


def test_saves_that_are_killed(tmp_path, campaign):
    campaign_of("killed", "saves", 110 * campaign, tmp_path)


def test_workers_that_are_killed(campaign):
    campaign_of("killed", "workers", 70 * campaign)


def test_training_that_is_interrupted(campaign):
    campaign_of("interrupted", 70_000 * campaign)


def test_a_new_file_gets_its_name_in_one_step(tmp_path, monkeypatch):
    """No temporary name in between, whatever happens."""
    import os

    monkeypatch.setattr(os, "replace", None)
    taeda.save(taeda.ones(2), tmp_path / "x.pt")
    assert taeda.load(tmp_path / "x.pt").tolist() == [1.0, 1.0]
    assert [p.name for p in Path(tmp_path).iterdir()] == ["x.pt"]
