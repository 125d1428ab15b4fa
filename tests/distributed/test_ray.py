"""Training by Ray's workers, where Ray is installed."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys

import pytest

PROGRAM = """
import json, os, shutil, signal, sys, tempfile, time
import ray, taeda as torch, taeda.distributed as dist
from ray.train import Checkpoint, FailureConfig, RunConfig, ScalingConfig
from taeda.distributed.ray import RayConfig, RayTrainer
from taeda.nn.parallel import DistributedDataParallel

folder, kills = sys.argv[1], sys.argv[2] == "kill"

def net():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(5, 7), torch.nn.Tanh(), torch.nn.Linear(7, 1))

def train(config):
    distributed = dist.is_initialized()
    rank, size = (dist.get_rank(), dist.get_world_size()) if distributed else (0, 1)
    torch.manual_seed(1)
    x, y = torch.randn(6, 8, 5), torch.randn(6, 8, 1)
    part = slice(rank * 8 // size, (rank + 1) * 8 // size)
    model = net()
    if distributed:
        assert (os.environ["RANK"], os.environ["LOCAL_RANK"], os.environ["WORLD_SIZE"]) == (str(rank), str(rank), "2")
        model = DistributedDataParallel(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.05)
    first, losses = 0, []
    checkpoint = ray.train.get_checkpoint() if distributed else None
    if checkpoint is not None:
        with checkpoint.as_directory() as place:
            state = torch.load(os.path.join(place, "state.pt"))
        model.load_state_dict(state["model"]); optimizer.load_state_dict(state["optimizer"])
        first, losses = state["step"], state["losses"]
    for step in range(first, 6):
        if config["kills"] and step == 3 and rank == 1 and not os.path.exists(folder + "/killed"):
            open(folder + "/killed", "w").close()
            time.sleep(3)  # Ray takes note of reports now and then
            os.kill(os.getpid(), signal.SIGKILL)
        loss = (model(x[step, part]) - y[step, part]).square().mean()
        optimizer.zero_grad(); loss.backward(); optimizer.step()
        mean = loss.detach().clone()
        if not distributed:
            losses.append(mean.item())
            continue
        dist.all_reduce(mean, dist.ReduceOp.AVG)
        losses.append(mean.item())
        with tempfile.TemporaryDirectory() as place:
            torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": step + 1,
                        "losses": losses}, os.path.join(place, "state.pt"))
            ray.train.report({"losses": losses, "first": first},
                             checkpoint=Checkpoint.from_directory(place) if rank == 0 else None)
    return losses

alone = train({"kills": False})
short = tempfile.mkdtemp(dir="/tmp")  # the names of sockets cannot be long
ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, _temp_dir=short)
result = RayTrainer(
    train, train_loop_config={"kills": kills}, config=RayConfig(timeout_s=30),
    scaling_config=ScalingConfig(num_workers=2, resources_per_worker={"CPU": 1}),
    run_config=RunConfig(storage_path=folder, failure_config=FailureConfig(max_failures=1)),
).fit()
ray.shutdown()
shutil.rmtree(short, ignore_errors=True)
print(json.dumps([alone, result.metrics["losses"], result.metrics["first"]]))
"""


@pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="Ray is not installed")
@pytest.mark.parametrize("kill", [False, True])
def test_workers_train_as_one_process(tmp_path, kill):
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    how = "kill" if kill else "live"
    done = subprocess.run(
        [sys.executable, str(path), str(tmp_path), how],
        env={**os.environ, "RAY_AUTH_MODE": "disabled", "RAY_USAGE_STATS_ENABLED": "0"},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-5000:]
    alone, losses, first = json.loads(done.stdout.splitlines()[-1])
    assert len(losses) == 6
    assert losses == pytest.approx(alone, rel=1e-5)
    # The killed worker was noticed, and the second attempt began with a checkpoint.
    assert (tmp_path / "killed").exists() == kill
    assert first in ((1, 2, 3) if kill else (0,))


def test_without_ray(tmp_path):
    """The error says what to install."""
    (tmp_path / "ray.py").write_text("raise ImportError('no ray here')")
    code = "import taeda.distributed as d\ntry: d.ray\nexcept ImportError as e: print(e)"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.stdout.strip() == "taeda.distributed.ray needs Ray Train: pip install 'taeda[ray]'"
