"""The launcher: what processes get, restarts, killed processes, and going on with fewer of them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from .launch import environment, free_port

# Learns from each sample once, kills itself now and then, and goes on from its checkpoint.
TRAINING = Path(__file__).with_name("elastic_training.py")


def launch(*arguments, **options):
    return subprocess.run(
        [sys.executable, "-m", "taeda.distributed.run", *map(str, arguments)],
        capture_output=True, text=True, timeout=120, env=environment(**options),
    )  # fmt: skip


def trained(folder, kills, processes):
    folder.mkdir()
    done = launch(
        "--nproc-per-node", processes, "--max-restarts", kills, "--log-dir", folder / "logs",
        "--redirects", 3, "-m", "taeda.torch", TRAINING, folder, kills,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads((folder / "result.json").read_text()), done.stderr


def test_killed_processes_lose_nothing(tmp_path):
    result, said = trained(tmp_path / "killed", 2, "1:3")
    assert Counter(result["seen"]) == Counter([e * 1000 + i for e in range(2) for i in range(240)])
    assert said.count("was killed by SIGKILL") == 2 and result["size"] == 1
    smooth, _ = trained(tmp_path / "smooth", 0, "2")
    assert (smooth["size"], smooth["attempt"], result["attempt"]) == (2, 0, 2)
    assert smooth["seen"] == result["seen"]


def test_variables_and_logs(tmp_path):
    path = tmp_path / "program.py"
    path.write_text(
        "import os, sys\n"
        "names = 'RANK LOCAL_RANK WORLD_SIZE LOCAL_WORLD_SIZE GROUP_RANK ROLE_RANK MASTER_ADDR'\n"
        "print([os.environ[n] for n in names.split()], sys.argv[1:])\n"
        "sys.stderr.write('to stderr')\n"
    )
    done = launch(
        "--standalone", "--nproc_per_node=2", "--tee", "1", "--redirects", "2", "--rdzv-id", "job",
        "--log-dir", tmp_path / "logs", path, "--flag",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "[default1]:['1', '1', '2', '2', '0', '1', '127.0.0.1'] ['--flag']" in done.stdout
    folder = tmp_path / "logs" / "job" / "attempt_0" / "0"
    assert (folder / "stdout.log").read_text().startswith("['0'")
    assert (folder / "stderr.log").read_text() == "to stderr"


def test_who_failed_and_why(tmp_path):
    path = tmp_path / "program.py"
    path.write_text(
        "import os, time\n"
        "from taeda.distributed.elastic.multiprocessing.errors import record\n"
        "@record\n"
        "def main():\n"
        "    if os.environ['RANK'] == '1':\n"
        "        raise ValueError('no luck')\n"
        "    time.sleep(60)\n"
        "main()\n"
    )
    begin = time.monotonic()
    done = launch("--nproc-per-node", 2, "--redirects", 3, "--log-dir", tmp_path / "logs", path)
    assert done.returncode == 1 and time.monotonic() - begin < 20
    assert "ended with exit code 1: ValueError: no luck" in done.stderr
    assert "rank 1 (local rank 1" in done.stderr


def test_a_machine_that_is_gone(tmp_path):
    """Two agents stand for two machines; one is killed with its processes."""
    path = tmp_path / "program.py"
    path.write_text(
        "import os, time, taeda, taeda.distributed as dist\n"
        "dist.init_process_group('gloo')\n"
        "if os.environ['TORCHELASTIC_RESTART_COUNT'] == '0':\n"
        "    open(os.environ['SIGN'] + os.environ['RANK'], 'w').close()\n"
        "    dist.barrier(); time.sleep(60)\n"
        "x = taeda.ones(1)\n"
        "dist.all_reduce(x)\n"
        "os.write(1, f'size {dist.get_world_size()} {x.item()}\\n'.encode())\n"
        "dist.barrier()\n"
    )
    port = free_port()
    command = [
        sys.executable, "-m", "taeda.distributed.run", "--nnodes", "1:2", "--nproc-per-node", "2",
        "--rdzv-backend", "c10d", "--rdzv-endpoint", f"127.0.0.1:{port}", "--max-restarts", "1",
        "--rdzv-conf", "last_call_timeout=5", str(path),
    ]  # fmt: skip
    agents = []
    for i in range(2):
        agents.append(
            subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                env=environment(SIGN=tmp_path / "sign"),
            )
        )  # fmt: skip
        while i == 0 and agents[0].poll() is None:
            time.sleep(0.1)
            import socket

            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
    until = time.monotonic() + 30
    while time.monotonic() < until and not all((tmp_path / f"sign{r}").exists() for r in range(4)):
        time.sleep(0.1)
    os.kill(agents[1].pid, signal.SIGKILL)
    agents[1].communicate()
    output, errors = agents[0].communicate(timeout=240)
    assert agents[0].returncode == 0, errors
    # The other agent is silent, unless its processes were missed before.
    assert "the machine 1 has been silent" in errors or "has ended or closed" in errors
    assert "attempt 0" in errors
    assert output.count("size 2 2.0") == 2


def test_parts_of_batches():
    from taeda.distributed.elastic import ElasticBatchSampler

    data = range(50)
    for sizes in ([4, 2, 3], [1], [8]):
        seen: list[int] = []
        state = None
        for size in sizes:
            samplers = [
                ElasticBatchSampler(data, 12, num_replicas=size, rank=r, seed=1)
                for r in range(size)
            ]
            for sampler in samplers:
                if state is not None:
                    sampler.load_state_dict(state)
            for _, parts in zip(
                range(2 if size != sizes[-1] else 9), zip(*samplers, strict=True), strict=False
            ):
                seen += [i for part in parts for i in part]
                for sampler in samplers:
                    sampler.advance()
            state = samplers[0].state_dict()
        assert Counter(seen) == Counter(data), sizes
    with pytest.raises(ValueError, match="rank 3 of 3"):
        ElasticBatchSampler(data, 4, num_replicas=3, rank=3)
