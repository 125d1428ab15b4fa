"""docs/examples/device_package: installed by pip, it trains a network as the CPU does."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import taeda
from taeda.utils import cpp_extension

EXAMPLE = Path(__file__).resolve().parents[2] / "docs" / "examples" / "device_package"

TRAINING = """
import taeda, taeda_example_device
nn = taeda.nn

def train(device):
    taeda.manual_seed(0)
    x = taeda.randn(64, 8)
    target = (x[:, :3].sum(1) > 0).long()
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2)).to(device)
    x, target = x.to(device), target.to(device)
    optimizer = taeda.optim.SGD(model.parameters(), lr=0.5, momentum=0.9)
    losses = []
    for _ in range(30):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), target)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert all(p.device.type == device for p in model.parameters())
    return losses, [p.detach().cpu() for p in model.parameters()]

losses, parameters = train("example")
expected_losses, expected = train("cpu")
assert losses[-1] < losses[0] / 5, losses
taeda.testing.assert_close(losses, expected_losses, rtol=1e-4, atol=1e-5)
taeda.testing.assert_close(parameters, expected, rtol=1e-3, atol=1e-4)
print(taeda_example_device.__file__)
"""


def run(*command, **environment) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, *map(str, command)],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """The folder that the package has been installed into, with nothing from the network."""
    work = tmp_path_factory.mktemp("device_package")
    source = shutil.copytree(EXAMPLE, work / "source")
    options = ["--no-index", "--no-build-isolation", "--no-deps", "--no-cache-dir", "--target"]
    package = str(Path(taeda.__file__).parents[1])
    done = run("-m", "pip", "install", *options, work / "site", source, PYTHONPATH=package)
    assert done.returncode == 0, done.stdout + done.stderr
    return work / "site"


def test_trains_as_on_the_cpu(installed, tmp_path):
    path = os.pathsep.join([str(installed), str(Path(taeda.__file__).parents[1])])
    done = run("-c", TRAINING, PYTHONPATH=path)
    assert done.returncode == 0, done.stderr
    fallen_back = re.findall(r"(\w+)\(\): device 'example' has no kernel for it", done.stderr)
    assert fallen_back and len(set(fallen_back)) == len(fallen_back)  # one warning each
    assert Path(done.stdout.strip()).is_relative_to(installed)


def test_headers_need_no_others(tmp_path):
    """Every header that is shipped compiles with those that are shipped, and links to nothing."""
    [folder] = map(Path, cpp_extension.device_include_paths())
    headers = sorted(str(path.relative_to(folder)) for path in folder.glob("kernels/*.h"))
    assert len(headers) > 30
    alone = tmp_path / "include"
    for part in ("base", "kernels", "tensor"):
        shutil.copytree(folder / part, alone / part, ignore=shutil.ignore_patterns("cpu", "*.cpp"))
    source = tmp_path / "all.cpp"
    source.write_text("".join(f'#include "{header}"\n' for header in headers))
    compiler = os.environ.get("CXX", "c++")
    flags = ["-std=c++20", "-O0", "-shared", "-fPIC", "-Wl,-z,defs", "-Wall", "-Werror"]
    subprocess.run([compiler, *flags, f"-I{alone}", source, "-o", tmp_path / "all.so"], check=True)
