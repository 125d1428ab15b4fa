"""Divided parameters, states and checkpoints, among several processes and beside one."""

from __future__ import annotations

import json

import pytest

from .launch import run

SHARDED = """
import functools, sys
import torch, torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import (FullStateDictConfig, FullyShardedDataParallel as FSDP, ShardingStrategy,
                                    StateDictType, fully_shard)
from torch.distributed.fsdp.wrap import ModuleWrapPolicy, size_based_auto_wrap_policy
from torch.distributed.optim import ZeroRedundancyOptimizer

dist.init_process_group("gloo")
rank, size = dist.get_rank(), dist.get_world_size()

def net():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(5, 7), nn.Tanh(), nn.Linear(7, 10), nn.LayerNorm(10), nn.Linear(10, 1))

torch.manual_seed(1)
x = torch.randn(3, 8, 5)
part = slice(rank * 8 // size, (rank + 1) * 8 // size)

def train(model, optimizer, whole, clip=False):
    losses = []
    for step in range(3):
        loss = model(x[step] if whole else x[step, part]).square().mean()
        optimizer.zero_grad()
        loss.backward()
        if clip:
            nn.utils.clip_grad_norm_(model.parameters(), 0.1)
        optimizer.step()
        if not whole:
            dist.all_reduce(loss)
            loss = loss / size
        losses.append(loss.item())
    return torch.tensor(losses)

def adam(model):
    return torch.optim.AdamW(model.parameters(), lr=0.05)

alone = net()
expected = train(alone, adam(alone), True)
clipped = net()
expected_clipped = train(clipped, adam(clipped), True, clip=True)

ddp = nn.parallel.DistributedDataParallel(net())
ddp_losses = train(ddp, adam(ddp), False)

for free in (True, False, None):
    model = net()
    for layer in model:
        if isinstance(layer, nn.Linear):
            fully_shard(layer, reshard_after_forward=free)
    fully_shard(model, reshard_after_forward=free)
    model[0].set_modules_to_forward_prefetch([model[2]])
    model[4].set_modules_to_backward_prefetch([model[2]])
    optimizer = adam(model)
    losses = train(model, optimizer, False)
    assert torch.allclose(losses, expected, rtol=1e-5)
    assert torch.equal(losses, ddp_losses)  # to the last bit
    assert all(torch.equal(p.full_tensor(), q) for p, q in zip(model.parameters(), ddp.parameters()))
    for p, q in zip(model.parameters(), alone.parameters()):
        assert p.shape == q.shape and torch.allclose(p.full_tensor(), q, atol=1e-6)
        assert p.to_local().shape[0] <= -(-q.shape[0] // size)
model = fully_shard(net())
assert torch.allclose(train(model, adam(model), False, clip=True), expected_clipped, rtol=1e-5)

model = fully_shard(net())
model.set_requires_gradient_sync(False)
model(x[0, part]).sum().backward()
model.set_requires_gradient_sync(True)
model(x[1, part]).sum().backward()
one = net(); (one(x[0]).sum() + one(x[1]).sum()).backward()
assert all(torch.allclose(p.grad.full_tensor() * size, q.grad, rtol=1e-4) for p, q in zip(model.parameters(), one.parameters()))

for options in ({}, {"auto_wrap_policy": ModuleWrapPolicy({nn.Linear})}, {"sharding_strategy": ShardingStrategy.SHARD_GRAD_OP},
                {"auto_wrap_policy": functools.partial(size_based_auto_wrap_policy, min_num_params=50)}):
    model = net() if rank == 0 else nn.Sequential(nn.Linear(5, 7), nn.Tanh(), nn.Linear(7, 10), nn.LayerNorm(10), nn.Linear(10, 1))
    model = FSDP(model, sync_module_states=True, use_orig_params=True, **options)
    optimizer = adam(model)
    assert torch.allclose(train(model, optimizer, False), expected, rtol=1e-5), options
    state = model.state_dict()
    assert list(state) == list(alone.state_dict()), list(state)
    assert all(torch.allclose(state[k], v, atol=1e-6) for k, v in alone.state_dict().items())
    with FSDP.summon_full_params(model):
        assert all(torch.allclose(p, q, atol=1e-6) for p, q in zip(model.parameters(), alone.parameters()))
    saved = FSDP.optim_state_dict(model, optimizer)
    assert saved["state"]["0.weight"]["exp_avg"].shape == (7, 5)
    fresh = FSDP(net(), **options); again = adam(fresh)
    fresh.load_state_dict(state)
    again.load_state_dict(FSDP.optim_state_dict_to_load(fresh, again, saved))
    assert torch.allclose(train(model, optimizer, False), train(fresh, again, False), rtol=1e-6)
with FSDP.state_dict_type(model, StateDictType.FULL_STATE_DICT, FullStateDictConfig(rank0_only=True)):
    assert len(model.state_dict()) == (8 if rank == 0 else 0)

model = nn.parallel.DistributedDataParallel(net())
optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.AdamW, lr=0.05)
assert torch.allclose(train(model, optimizer, False), expected, rtol=1e-5)
assert len(optimizer.optim.state) < 8
optimizer.consolidate_state_dict(0)
if rank == 0:
    whole = optimizer.state_dict(); plain = adam(alone); plain.load_state_dict(whole)
    assert len(whole["state"]) == 8 and whole["state"][0]["exp_avg"].shape == (7, 5)
sent = [whole if rank == 0 else None]; dist.broadcast_object_list(sent, 0)
other = ZeroRedundancyOptimizer(model.parameters(), torch.optim.AdamW, lr=1.0)
other.load_state_dict(sent[0]); assert other.param_groups[0]["lr"] == 0.05
print("good")
dist.barrier()
dist.destroy_process_group()
"""


@pytest.mark.parametrize("ranks", [2, 4])
def test_divided_parameters(tmp_path, ranks):
    assert run(SHARDED, ranks, tmp_path) == ["good\n"] * ranks


UNITS = """
import hashlib
import torch, torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import FullyShardedDataParallel, fully_shard
dist.init_process_group("gloo")
rank, size = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)
x, y = torch.randn(4, 24, 10), torch.randn(4, 24, 3)
model = nn.Sequential(nn.Linear(10, 37), nn.GELU(), nn.LayerNorm(37), nn.Linear(37, 3))
if size > 1 and KIND == "wrapper":
    model = FullyShardedDataParallel(model, use_orig_params=True)
    model.set_units(8)
elif size > 1:
    mesh = dist.init_device_mesh("cpu", (2, size // 2) if KIND == "copies" else (size,))
    fully_shard(model[0], mesh=mesh)
    fully_shard(model, mesh=mesh)
    model.set_units(8)
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
losses = []
for step in range(4):
    optimizer.zero_grad()
    for i in range(rank * 8 // size, (rank + 1) * 8 // size):
        part = slice(3 * i, 3 * i + 3)
        each = ((model(x[step, part]) - y[step, part]) ** 2).mean(1)
        (each.mean() * size / 8).backward()
        losses.append(each.detach())
    optimizer.step()
losses = torch.stack(losses).view(4, -1)
everybody = losses.new_empty(size, *losses.shape)
dist.all_gather_into_tensor(everybody, losses)
values = [everybody.transpose(0, 1).contiguous(), *(p.full_tensor() if size > 1 else p for p in model.parameters())]
print(hashlib.sha256(b"".join(v.detach().numpy().tobytes() for v in values)).hexdigest())
if size == 2 and KIND == "fully_shard":
    model.set_requires_gradient_sync(False)
    for wrong in (
        lambda: model.set_units(3), lambda: model.set_units(-2), lambda: model.set_units(True),
        lambda: model(x[0]),
    ):
        try:
            wrong()
        except (TypeError, ValueError, RuntimeError) as e:
            assert "units" in str(e)
        else:
            raise AssertionError("no error")
"""


def test_divided_parameters_have_the_bits_of_one_process(tmp_path):
    kinds = {"fully_shard": (1, 2, 4, 8), "wrapper": (2, 4), "copies": (4, 8)}
    found = {
        line
        for kind, sizes in kinds.items()
        for ranks in sizes
        for line in run(UNITS.replace("KIND", repr(kind)), ranks, tmp_path)
    }
    assert len(found) == 1


GRIDS = """
import torch, torch.distributed as dist, torch.distributed.checkpoint as dcp
from torch import nn
from torch.distributed.fsdp import FullyShardedDataParallel, ShardingStrategy, fully_shard
from torch.distributed.tensor import Replicate, Shard
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

dist.init_process_group("gloo")
rank, size = dist.get_rank(), dist.get_world_size()

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.n, self.a, self.b, self.h = nn.LayerNorm(6), nn.Linear(6, 10), nn.Linear(10, 6), nn.Linear(6, 3)
    def forward(self, x):
        return self.h(x + self.b(nn.functional.gelu(self.a(self.n(x)))))

torch.manual_seed(1)
x, y = torch.randn(4, 8, 6), torch.randn(4, 8, 3)

def train(model, group=None, clip=None):
    count, place = (1, 0) if group is None else (group.size(), group.rank())
    part = slice(place * 8 // count, (place + 1) * 8 // count)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.05)
    losses = []
    for step in range(4):
        loss = (model(x[step, part]) - y[step, part]).square().mean()
        optimizer.zero_grad()
        loss.backward()
        if clip:
            clip(model)
        optimizer.step()
        mean = loss.detach().clone()
        if group is not None:
            dist.all_reduce(mean, dist.ReduceOp.AVG, group=group)
        losses.append(mean)
    return torch.stack(losses)

def whole(p):
    return p.full_tensor() if hasattr(p, "full_tensor") else p

def check(model, losses, name):
    assert torch.allclose(losses, expected, rtol=1e-5), (name, losses, expected)
    for (key, p), q in zip(model.named_parameters(), alone.parameters()):
        assert torch.allclose(whole(p), q, atol=1e-5), (name, key)

alone = Net()
expected = train(alone)

# Rows of the grid divide parameters, and the rows have copies.
grid = dist.init_device_mesh("cpu", (2, size // 2), mesh_dim_names=("copies", "parts"))
model = Net()
for layer in (model.a, model.b):
    fully_shard(layer, mesh=grid)
fully_shard(model, mesh=grid)
assert model.a.weight.placements == (Replicate(), Shard(0))
assert model.a.weight.to_local().shape == (10 * 2 // size, 6)
check(model, train(model, dist.group.WORLD), "hybrid")
state = {"model": model}
dcp.save(state, checkpoint_id="FOLDER/grid")
model = FullyShardedDataParallel(Net(), sharding_strategy=ShardingStrategy.HYBRID_SHARD, device_mesh=grid, use_orig_params=True)
check(model, train(model, dist.group.WORLD), "wrapper")

model = fully_shard(Net(), mesh=grid)
model.set_requires_all_reduce(False)
model(x[0]).sum().backward()
assert model.a.weight.grad is None
model.set_requires_all_reduce(True)
model(x[1]).sum().backward()
one = Net(); (one(x[0]).sum() + one(x[1]).sum()).backward()
assert torch.allclose(whole(model.a.weight.grad), one.a.weight.grad, rtol=1e-4)

# Layers are divided among the processes of a row, their parts among those of a column.
grid = dist.init_device_mesh("cpu", (size // 2, 2), mesh_dim_names=("dp", "tp"))
plan = {"a": ColwiseParallel(), "b": RowwiseParallel(), "h": ColwiseParallel(output_layouts=Replicate())}
for kind in ("data", "fsdp"):
    model = Net()
    model.h = nn.Linear(6, 4); theirs = Net().h  # 3 outputs cannot be divided by 2
    with torch.no_grad():
        model.h.weight.zero_(); model.h.bias.zero_()
        model.h.weight[:3], model.h.bias[:3] = theirs.weight, theirs.bias
    model = parallelize_module(model, grid["tp"], plan)
    inner, model.forward = model.forward, lambda x, inner=model.forward: inner(x)[..., :3]
    if kind == "data":
        for p in model.parameters():
            p.register_post_accumulate_grad_hook(lambda p: dist.all_reduce(
                p.grad.to_local() if hasattr(p.grad, "to_local") else p.grad, dist.ReduceOp.AVG, grid.get_group("dp")))
    else:
        for layer in (model.a, model.b):
            fully_shard(layer, mesh=grid["dp"])
        fully_shard(model, mesh=grid["dp"])
        if size == 2: continue  # alone in its row
        assert [str(p) for p in model.b.weight.placements] == ["S(0)", "S(1)"]
        assert model.a.weight.shape == (10, 6) and model.a.weight.device_mesh == grid
        assert whole(model.a.weight).equal(Net().a.weight) and whole(model.b.weight).equal(Net().b.weight)
    losses = train(model, grid.get_group("dp"))
    model.h = nn.Identity(); del model.h  # its fourth output is nobody's
    check(model, losses, kind)

try:
    fully_shard(parallelize_module(Net(), grid["tp"], {"a": ColwiseParallel()}), mesh=dist.init_device_mesh("cpu", (size,)))
except ValueError as error:
    print("parts of one mesh" in str(error))
if size > 2:
    saved = fully_shard(parallelize_module(Net(), grid["tp"], {"a": ColwiseParallel(), "b": RowwiseParallel()}), mesh=grid["dp"])
    dcp.save({"model": saved}, checkpoint_id="FOLDER/tp")
    fresh = Net()
    with torch.no_grad():
        for p in fresh.parameters(): p.zero_()
    dcp.load({"model": fresh}, checkpoint_id="FOLDER/tp")
    assert all(torch.equal(p, q) for p, q in zip(fresh.parameters(), Net().parameters()))
    again = fully_shard(parallelize_module(Net(), grid["tp"], {"a": RowwiseParallel()}), mesh=grid["dp"])
    with torch.no_grad():
        for p in again.parameters(): p.mul_(0)
    dcp.load({"model": again}, checkpoint_id="FOLDER/tp")
    assert all(torch.equal(whole(p), q) for p, q in zip(again.parameters(), Net().parameters()))
    # Norms over parameters on different meshes.
    model = fully_shard(parallelize_module(Net(), grid["tp"], {"a": ColwiseParallel(), "b": RowwiseParallel()}), mesh=grid["dp"])
    model(x[0]).sum().backward(); one = Net(); one(x[0]).sum().backward()
    norm = nn.utils.clip_grad_norm_(model.parameters(), 0.1)
    assert torch.allclose(whole(norm), nn.utils.clip_grad_norm_(one.parameters(), 0.1), rtol=1e-5)
    assert all(torch.allclose(whole(p.grad), q.grad, atol=1e-7) for p, q in zip(model.parameters(), one.parameters()))
print("good")
dist.barrier()
"""


@pytest.mark.parametrize("ranks", [2, 4])
def test_grids_of_two_dimensions(tmp_path, ranks):
    printed = run(GRIDS.replace("FOLDER", str(tmp_path)), ranks, tmp_path)
    assert printed == ["True\ngood\n"] * ranks


SPREAD = """
import torch, torch.distributed as dist
from torch import nn
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor, zeros
dist.init_process_group("gloo")
rank, size = dist.get_rank(), dist.get_world_size()

def show(*values):
    print(*(v.tolist() if isinstance(v, torch.Tensor) else v for v in values), flush=True)

mesh = dist.init_device_mesh("cpu", (size,))
x = torch.arange(35.0).reshape(7, 5)
d = distribute_tensor(x, mesh, [Shard(0)])
show(d.shape, d.size(0), d.numel(), d.to_local(), d.placements)
show((2 * d + d).placements, (2 * d + d).to_local().sum(), (d * 2).shape)
show((d @ distribute_tensor(torch.ones(5, 2), mesh)).full_tensor())
show(d.sum().full_tensor(), d.redistribute(placements=[Shard(1)]).to_local())
show(DTensor.from_local(torch.ones(2) * rank, mesh, [Partial()]).full_tensor())
show(DTensor.from_local(torch.ones(2, 1) * rank, mesh, [Shard(0)]).full_tensor())
p = nn.Parameter(distribute_tensor(x, mesh, [Shard(1)]))
(p * p).full_tensor().sum().backward()
show(type(p.grad).__name__, p.grad.full_tensor(), p.grad.placements)
show(nn.utils.clip_grad_norm_([p], 1.0).full_tensor().round(decimals=3))
torch.optim.SGD([p], lr=1.0).step(); show((p.full_tensor() - x).norm().round(decimals=4))
show(zeros(3, 2, device_mesh=mesh, placements=[Shard(0)]).to_local().shape)
grid = dist.init_device_mesh("cpu", (2, size // 2), mesh_dim_names=("a", "b"))
d = distribute_tensor(x, grid, [Shard(0), Shard(1)])
show(d.to_local(), d.redistribute(placements=[Replicate(), Shard(0)]).to_local())
show(torch.equal(d.full_tensor(), x), torch.equal(distribute_tensor(x, grid, [Shard(0), Shard(0)]).full_tensor(), x))
try:
    d + x
except RuntimeError as error:
    show("mixed" in str(error))
dist.barrier()
dist.destroy_process_group()
"""


def test_spread_tensors_as_in_pytorch(tmp_path):
    ours = run(SPREAD, 2, tmp_path)
    pytest.importorskip("torch")
    theirs = run(SPREAD, 2, tmp_path, "torch")
    for our, their in zip(ours, theirs, strict=True):
        assert [line.strip() for line in our.splitlines()] == [
            line.strip().replace("torch", "taeda") for line in their.splitlines()
        ]


SAVING = """
import sys
import torch, torch.distributed as dist, torch.distributed.checkpoint as dcp
from torch import nn
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict, get_model_state_dict, StateDictOptions
from torch.distributed.fsdp import fully_shard
dist.init_process_group("gloo")
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(5, 7), nn.BatchNorm1d(7), nn.Linear(7, 3))
fully_shard(model[0]); fully_shard(model)
optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
x = torch.ones(4, 5).cumsum(0)

def step():
    optimizer.zero_grad(); model(x).square().sum().backward(); optimizer.step()

def whole():
    return [v.full_tensor() if hasattr(v, "full_tensor") else v for v in model.state_dict().values()]

if sys.argv[1] == "save":
    step()
    states = get_state_dict(model, optimizer)
    dcp.save({"model": states[0], "optimizer": states[1], "epoch": 3, "names": ["a", "b"]}, checkpoint_id=sys.argv[2])
    full = get_model_state_dict(model, options=StateDictOptions(full_state_dict=True))
    if dist.get_rank() == 0:
        torch.save(list(full.values()), sys.argv[2] + ".at")
    step()
    after = whole()
    if dist.get_rank() == 0:
        torch.save(after, sys.argv[2] + ".after")
else:
    states = get_state_dict(model, optimizer)
    state = {"model": states[0], "optimizer": states[1], "epoch": 0, "names": []}
    dcp.load(state, checkpoint_id=sys.argv[2])
    set_state_dict(model, optimizer, model_state_dict=state["model"], optim_state_dict=state["optimizer"])
    assert state["epoch"] == 3 and state["names"] == ["a", "b"]
    assert all(torch.equal(a, b) for a, b in zip(whole(), torch.load(sys.argv[2] + ".at")))
    step()
    assert all(torch.allclose(a, b, rtol=1e-5) for a, b in zip(whole(), torch.load(sys.argv[2] + ".after")))
dist.barrier()
dist.destroy_process_group()
"""


def test_saved_on_some_loaded_on_others(tmp_path):
    from .launch import start

    path = tmp_path / "program.py"
    path.write_text(SAVING)

    def go(what, folder, ranks):
        processes = start(path, ranks, arguments=[what, folder])
        errors = [process.communicate(timeout=60)[1] for process in processes]
        assert [process.returncode for process in processes] == [0] * ranks, errors[0]

    go("save", tmp_path / "four", 4)
    for ranks in (1, 2, 3):
        go("load", tmp_path / "four", ranks)
    go("save", tmp_path / "one", 1)
    go("load", tmp_path / "one", 3)


def test_a_checkpoint_is_whole_or_not_there(tmp_path, monkeypatch):
    import taeda
    from taeda.distributed import checkpoint as dcp
    from taeda.distributed.checkpoint import _folders

    folder = tmp_path / "checkpoint"
    dcp.save({"w": taeda.ones(2)}, checkpoint_id=folder)

    def fail(*args):
        raise OSError("no space")

    for name in ("_write_parts", "_finish"):
        with monkeypatch.context() as patch:
            patch.setattr(_folders.FileSystemWriter, name, fail)
            with pytest.raises(dcp.CheckpointException, match="no space"):
                dcp.save({"w": taeda.zeros(2)}, checkpoint_id=folder)
        state = {"w": taeda.zeros(2)}
        dcp.load(state, checkpoint_id=folder)
        assert state["w"].tolist() == [1, 1]
    dcp.save({"w": taeda.full((2,), 2.0)}, checkpoint_id=folder)
    dcp.load(state, checkpoint_id=folder)
    assert state["w"].tolist() == [2, 2]
    assert len(list(folder.iterdir())) == 2 and json.loads((folder / "metadata.json").read_text())
    with pytest.raises(dcp.CheckpointException, match="Missing key"):
        dcp.load({"v": taeda.ones(2)}, checkpoint_id=folder)
    with pytest.raises(dcp.CheckpointException, match="Size mismatch"):
        dcp.load({"w": taeda.ones(3)}, checkpoint_id=folder)
