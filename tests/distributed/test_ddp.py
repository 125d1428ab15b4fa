"""`DistributedDataParallel` among several processes, beside one process and beside PyTorch's."""

from __future__ import annotations

import subprocess
import sys

import pytest

from .launch import environment, free_port, run

TRAINING = """
import os
import torch, torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

dist.init_process_group("gloo")
rank, size = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)
data = TensorDataset(torch.randn(64, 8), torch.randn(64, 1))

def train(model, ddp, **options):
    # Gradients of one process with the whole batch are those of several with its parts.
    model = DDP(model, **options) if ddp else model
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    sampler = DistributedSampler(data, size if ddp else 1, rank if ddp else 0, seed=3)
    loader = DataLoader(data, batch_size=16 // (size if ddp else 1), sampler=sampler)
    losses = []
    for epoch in range(2):
        sampler.set_epoch(epoch)
        for x, y in loader:
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(x), y)
            loss.backward()
            optimizer.step()
            if ddp:
                dist.all_reduce(loss)
                loss /= size
            losses.append(loss.item())
    return losses, [p.detach().clone() for p in model.parameters()]

def net():
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(8, 300), nn.ReLU(), nn.Linear(300, 300), nn.Tanh(), nn.Linear(300, 1))

alone = train(net(), False)
for options in ({}, {"bucket_cap_mb": 0.05}, {"gradient_as_bucket_view": True, "bucket_cap_mb": 0.05},
                {"static_graph": True}, {"find_unused_parameters": True}):
    losses, weights = train(net(), True, **options)
    assert torch.allclose(torch.tensor(losses), torch.tensor(alone[0]), rtol=1e-4), (losses, alone[0])
    assert all(torch.allclose(a, b, atol=1e-5) for a, b in zip(weights, alone[1]))
print(" ".join(f"{loss:.3f}" for loss in losses))

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(rank)  # parameters become those of rank 0
        self.a, self.b, self.c = nn.Linear(2, 2), nn.Linear(2, 2), nn.Linear(2, 2)
        self.register_buffer("count", torch.tensor([float(rank)]))
    def forward(self, x, which):
        return getattr(self, which)(self.a(x))

def show(*values):
    print(*([round(n, 4) for n in v.reshape(-1).tolist()] if isinstance(v, torch.Tensor) else v for v in values), flush=True)

model = DDP(Net(), find_unused_parameters=True)
show(model.module.a.weight, model.module.count)
x = torch.ones(1, 2) * (rank + 1)
model(x, "b" if rank == 0 else "c").sum().backward()
show("both", model.module.b.weight.grad, model.module.c.weight.grad, model.module.a.weight.grad)
model.zero_grad()
model(x, "b").sum().backward()
show("one", model.module.b.weight.grad, model.module.c.weight.grad)
model.zero_grad()
with model.no_sync():
    model(x, "b").sum().backward()
show("no_sync", model.module.b.bias.grad, model.module.a.weight.grad)
model(x, "b").sum().backward()
show("summed", model.module.b.bias.grad, model.module.a.weight.grad)
model.module.count.fill_(rank + 5); model(x, "b"); show("buffers", model.module.count)
show(list(model.state_dict())[:2], model.device_ids, model.dim)

strict = DDP(Net())
strict(x, "b").sum().backward()
try:
    strict(x, "b").sum().backward()
except RuntimeError as error:
    show("Expected to have finished reduction" in str(error))

net = DDP(nn.Linear(1, 1, bias=False)); net.module.weight.data.fill_(1)
with net.join():
    for i in range(rank + 1):
        net.zero_grad(); net(torch.ones(1, 1) * (i + 1)).sum().backward(); show("joined", net.module.weight.grad)
        net.module.weight.data -= 0.1 * net.module.weight.grad
show("end", net.module.weight)
net = DDP(nn.Linear(1, 1, bias=False)); net.module.weight.data.fill_(1)
with net.join(divide_by_initial_world_size=False):
    for i in range(rank + 1):
        net.zero_grad(); net(torch.ones(1, 1) * (i + 1)).sum().backward(); show(net.module.weight.grad)
try:
    with net.join(throw_on_early_termination=True):
        for i in range(rank + 1):
            net(torch.ones(1, 1)).sum().backward()
except RuntimeError as error:
    show("exhausted" in str(error))

from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, post_localSGD_hook as local, powerSGD_hook as power
mine = dist.new_subgroups(1)[0]
for state, hook in ((None, default_hooks.allreduce_hook), (None, default_hooks.bf16_compress_hook if "taeda" in torch.__file__ else default_hooks.fp16_compress_hook),
                    (None, default_hooks.fp16_compress_wrapper(default_hooks.allreduce_hook)),
                    (power.PowerSGDState(None, 1, start_powerSGD_iter=2), power.powerSGD_hook),
                    (local.PostLocalSGDState(None, mine, 9), local.post_localSGD_hook),
                    (local.PostLocalSGDState(None, mine, 3), local.post_localSGD_hook),
                    (local.PostLocalSGDState(None, mine, 3, False), local.post_localSGD_hook)):
    torch.manual_seed(0)
    net = DDP(nn.Linear(64, 32, bias=False)); net.register_comm_hook(state, hook)
    for i in range(5):
        # Of rank 1 after the average, so that PowerSGD finds all of it.
        net.zero_grad(); net(torch.ones(2, 64) * (rank + 1.5 + i)).sum().backward()
    if "local" in hook.__name__:
        show(state.iter)
    show(hook.__name__ if state or hook is default_hooks.allreduce_hook else "half", net.module.weight.grad[:1, :3], net.module.weight.grad.std() < 1e-3)
checked = torch.utils.checkpoint.checkpoint
shared = nn.Linear(4, 4)
net = DDP(shared, static_graph=True)
for i in range(3):
    net.zero_grad(); y = net(torch.ones(2, 4)); checked(shared, y, use_reentrant=False).sum().backward()
    show("twice", shared.bias.grad)
data = net._get_ddp_logging_data()  # Lightning asks for it, and for the map
names = "world_size rank module_name num_parameter_tensors total_parameter_size_bytes broadcast_buffers static_graph"
show([data[n] for n in names.split()], [dist.Backend.default_device_backend_map[d] for d in ("cpu", "cuda")])
dist.barrier()
dist.destroy_process_group()
"""


@pytest.mark.parametrize("ranks", [2])
def test_as_one_process_and_as_pytorch(tmp_path, ranks):
    ours = run(TRAINING, ranks, tmp_path)
    pytest.importorskip("torch")
    theirs = run(TRAINING, ranks, tmp_path, "torch")
    for rank, (our, their) in enumerate(zip(ours, theirs, strict=True)):
        assert our.splitlines() == their.splitlines(), rank


# A program as tutorials of torchrun have it: a Trainer with snapshots.
PUBLIC = """
import os, sys
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.distributed import destroy_process_group, init_process_group
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset
from torch.utils.data.distributed import DistributedSampler

class Points(Dataset):
    def __init__(self, size):
        generator = torch.Generator().manual_seed(0)
        self.x = torch.randn(size, 20, generator=generator)
        self.y = self.x[:, :1] * 2 - 1
    def __len__(self):
        return len(self.x)
    def __getitem__(self, index):
        return self.x[index], self.y[index]

class Trainer:
    def __init__(self, model, data, optimizer, every, snapshot):
        self.local_rank, self.global_rank = int(os.environ["LOCAL_RANK"]), int(os.environ["RANK"])
        self.data, self.optimizer, self.every, self.snapshot = data, optimizer, every, snapshot
        self.first = 0
        if os.path.exists(snapshot):
            saved = torch.load(snapshot)
            model.load_state_dict(saved["model"])
            self.first = saved["epoch"] + 1
        self.model = DDP(model)

    def epoch(self, number):
        self.data.sampler.set_epoch(number)
        total = torch.zeros(1)
        for x, y in self.data:
            self.optimizer.zero_grad()
            loss = F.mse_loss(self.model(x), y)
            loss.backward()
            self.optimizer.step()
            total += loss.detach()
        dist.all_reduce(total, op=dist.ReduceOp.SUM)
        if self.global_rank == 0:
            print(f"epoch {number} loss {total.item() / dist.get_world_size() / len(self.data):.3f}", flush=True)

    def train(self, epochs):
        for number in range(self.first, epochs):
            self.epoch(number)
            if self.local_rank == 0 and number % self.every == 0:
                torch.save({"model": self.model.module.state_dict(), "epoch": number}, self.snapshot)
            dist.barrier()

def main(epochs, snapshot):
    init_process_group(backend="gloo")
    torch.manual_seed(1)
    data = Points(256)
    model = torch.nn.Sequential(torch.nn.Linear(20, 32), torch.nn.ReLU(), torch.nn.Linear(32, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
    loader = DataLoader(data, batch_size=16, shuffle=False, sampler=DistributedSampler(data))
    Trainer(model, loader, optimizer, 1, snapshot).train(epochs)
    destroy_process_group()

if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
"""


def test_a_public_script_by_both_launchers(tmp_path):
    """On taeda by its own launcher and by torchrun, and on PyTorch."""
    aborted = "terminate called without an active exception"  # how PyTorch's processes end at times
    path = tmp_path / "program.py"
    path.write_text(PUBLIC)

    def printed(launcher, epochs, snapshot, *how):
        for attempt in range(1 if how else 5):
            done = subprocess.run(
                [sys.executable, "-W", "ignore", "-m", launcher, "--nproc-per-node", "2",
                 "--master-port", str(free_port()), *how, str(path), str(epochs),
                 str(tmp_path / f"{snapshot}{attempt}")],
                env=environment(), capture_output=True, text=True, timeout=100,
            )  # fmt: skip
            if aborted not in done.stderr:
                break
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()

    ours = printed("taeda.distributed.run", 1, "ours", "-m", "taeda.torch")
    ours += printed("taeda.distributed.run", 3, "ours", "-m", "taeda.torch")
    assert [line.split()[1] for line in ours] == ["0", "1", "2"]
    pytest.importorskip("torch")
    assert printed("torch.distributed.run", 3, "again", "-m", "taeda.torch") == ours
    assert printed("torch.distributed.run", 3, "theirs") == ours


UNITS = """
import hashlib, sys
import torch, torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

dist.init_process_group("gloo")
rank, size = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)
x, y = torch.randn(5, 24, 10), torch.randn(5, 24, 3)
model = DDP(nn.Sequential(nn.Linear(10, 37), nn.GELU(), nn.LayerNorm(37), nn.Linear(37, 3)), units=8)
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
for step in range(5):
    part = slice(rank * 24 // size, (rank + 1) * 24 // size)
    each = ((model(x[step, part]) - y[step, part]) ** 2).mean(1)
    optimizer.zero_grad()
    each.mean().backward()
    optimizer.step()
    losses = torch.zeros(24)
    dist.all_gather_into_tensor(losses, each.detach())
bits = [losses.numpy().tobytes(), *(p.detach().numpy().tobytes() for p in model.parameters())]
print(hashlib.sha256(b"".join(bits)).hexdigest())
"""


def test_same_bits_for_any_number_of_processes(tmp_path):
    found = {line for ranks in (1, 2, 4, 8) for line in run(UNITS, ranks, tmp_path)}
    assert len(found) == 1


def test_different_models_are_refused(tmp_path):
    program = """
import torch, torch.distributed as dist
dist.init_process_group("gloo")
try:
    torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 2 + dist.get_rank()))
except RuntimeError as error:
    print("same model" in str(error))
dist.barrier()
"""
    assert run(program, 2, tmp_path) == ["True\n"] * 2


def test_gradients_are_sent_during_backward(tmp_path):
    program = """
import torch, torch.distributed as dist
from torch import nn
from torch.distributed import flight_recorder
dist.init_process_group("gloo")
layers = [nn.Linear(256, 256) for _ in range(6)]
model = nn.parallel.DistributedDataParallel(nn.Sequential(*layers), bucket_cap_mb=0.2)
for step in range(3):  # the loss keeps the graph of the step before
    before = len(flight_recorder.records())
    loss = model(torch.ones(4, 256)).sum()
    loss.backward()
names = [(r["name"], r["begun"]) for r in flight_recorder.records()[before:]]
wait = next(begun for name, begun in names if name == "wait for gradients")
print(sum(name == "all_reduce" and begun < wait for name, begun in names) >= 5)
flight_recorder.chrome_trace(f"{FOLDER}/trace{dist.get_rank()}.json", dist.get_rank())
dist.barrier()
"""
    assert run(program.replace("{FOLDER}", str(tmp_path)), 2, tmp_path) == ["True\n"] * 2
    import json

    events = json.loads((tmp_path / "trace1.json").read_text())["traceEvents"]
    assert {"all_reduce", "wait for gradients"} <= {event["name"] for event in events}
