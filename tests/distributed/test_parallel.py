"""Tensor and pipeline parallelism and SyncBatchNorm, beside one process."""

from __future__ import annotations

from .launch import run

TENSORS = """
import torch, torch.distributed as dist
from torch import nn
from torch.distributed.tensor import Replicate, Shard
from torch.distributed.tensor.parallel import (ColwiseParallel, PrepareModuleInput, PrepareModuleOutput,
                                               RowwiseParallel, SequenceParallel, parallelize_module)
dist.init_process_group("gloo")
rank, size = dist.get_rank(), dist.get_world_size()
mesh = dist.init_device_mesh("cpu", (size,))

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(rank)  # all get the parameters of rank 0
        self.e, self.n, self.a = nn.Embedding(16, 8), nn.LayerNorm(8), nn.Linear(8, 16)
        self.b, self.h = nn.Linear(16, 8), nn.Linear(8, 4)
    def forward(self, i):
        return self.h(self.b(nn.functional.gelu(self.a(self.n(self.e(i))))))

i = torch.arange(32).reshape(4, 8) % 16
plans = [
    {"e": RowwiseParallel(), "a": ColwiseParallel(), "b": RowwiseParallel(), "h": ColwiseParallel(output_layouts=Replicate())},
    {"e": ColwiseParallel(output_layouts=Replicate()), "a": ColwiseParallel(), "b": RowwiseParallel()},
    {"e": RowwiseParallel(output_layouts=Shard(1)), "n": SequenceParallel(), "a": ColwiseParallel(input_layouts=Shard(1)),
     "b": RowwiseParallel(output_layouts=Shard(1)), "h": ColwiseParallel(input_layouts=Shard(1), output_layouts=Replicate())},
    {"n": PrepareModuleOutput(output_layouts=Replicate(), desired_output_layouts=Shard(1)),
     "a": ColwiseParallel(input_layouts=Shard(1)), "b": RowwiseParallel()},
]
for plan in plans:
    torch.manual_seed(0); one = Net()
    for p in one.parameters(): dist.broadcast(p.detach(), 0)
    many = parallelize_module(Net(), mesh, plan)
    for p, q in zip(many.parameters(), one.parameters()):
        if not hasattr(p, "full_tensor"): p.data.copy_(q)
    first, second = (torch.optim.AdamW(m.parameters(), lr=0.01) for m in (one, many))
    for step in range(3):
        loss = one(i).square().mean(); first.zero_grad(); loss.backward(); first.step()
        part = many(i).square().mean(); second.zero_grad(); part.backward(); second.step()
        assert abs(loss - part) < 1e-6, (step, loss, part)
    for (name, p), q in zip(one.named_parameters(), many.parameters()):
        assert torch.allclose(p, q.full_tensor() if hasattr(q, "full_tensor") else q, atol=1e-5), name
assert many.a.weight.to_local().shape == (16 // size, 8)
for bad in (nn.ReLU(), nn.Linear(3, 5)):
    try:
        parallelize_module(bad, mesh, ColwiseParallel())
    except (NotImplementedError, ValueError):
        print("refused")
dist.barrier()
"""


def test_tensor_parallel(tmp_path):
    assert run(TENSORS, 2, tmp_path) == ["refused\n" * 2] * 2


UNITS = """
import copy, hashlib
import torch, torch.distributed as dist
from torch import nn
from torch.distributed.tensor import Replicate, Shard
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, SequenceParallel, parallelize_module
dist.init_process_group("gloo")
rank, size = dist.get_rank(), dist.get_world_size()
mesh = dist.init_device_mesh("cpu", (size,))

class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.n, self.q, self.k, self.v, self.o = nn.LayerNorm(40), *(nn.Linear(40, 40) for _ in range(4))
        self.a, self.b = nn.Linear(40, 104), nn.Linear(104, 40)
    def forward(self, x):
        y = self.n(x)
        q, k, v = (f(y).unflatten(-1, (-1, 5)).transpose(1, 2) for f in (self.q, self.k, self.v))
        x = x + self.o(nn.functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))
        return x + self.b(nn.functional.gelu(self.a(self.n(x))))

torch.manual_seed(0)
model = nn.Sequential(nn.Embedding(48, 40), Block(), Block(), nn.Linear(40, 48))
column, row = ColwiseParallel(), RowwiseParallel()
plan = {"0": RowwiseParallel(), "3": ColwiseParallel(output_layouts=Replicate()), "*.o": row, "*.b": row}
plan |= {f"*.{name}": column for name in "qkva"}
alone = copy.deepcopy(model)
model = parallelize_module(model, mesh, plan, units=8)
tokens = torch.randint(0, 48, (4, 3, 7))

def train(model):
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    for x in tokens:
        loss = nn.functional.cross_entropy(model(x).flatten(0, 1), x.roll(1, 1).flatten())
        optimizer.zero_grad(); loss.backward(); optimizer.step()
        yield loss.detach()

losses = torch.stack(list(train(model)))
digest = hashlib.sha256(losses.numpy().tobytes())
for p in model.parameters():
    digest.update(getattr(p, "full_tensor", lambda: p)().detach().numpy().tobytes())
print(digest.hexdigest(), torch.allclose(losses, torch.stack(list(train(alone))), atol=1e-4))
for units, style, error in ((3, row, ValueError), (-8, row, ValueError), (8.0, row, TypeError),
                            (8, SequenceParallel(), NotImplementedError)):
    try:
        parallelize_module(nn.Linear(20, 20), mesh, style, units=units)
    except error:
        print("refused")
dist.barrier()
"""


def test_tensor_parallel_has_the_bits_of_one_process(tmp_path):
    found = {text for ranks in (1, 2, 4, 8) for text in run(UNITS, ranks, tmp_path)}
    assert len(found) == 1
    assert found.pop().split()[1:] == ["True", *["refused"] * 4]


PIPELINE = """
import torch, torch.distributed as dist
from torch import nn
from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleGPipe
dist.init_process_group("gloo")
rank, size = dist.get_rank(), dist.get_world_size()

def layers():
    torch.manual_seed(0)
    return [nn.Sequential(nn.Linear(6, 6), nn.Tanh()) for _ in range(size)]

torch.manual_seed(1)
x, y = torch.randn(8, 6), torch.randn(8, 6)
one = nn.Sequential(*layers())
loss = nn.functional.mse_loss(one(x), y)
loss.backward()
for kind in (ScheduleGPipe, Schedule1F1B):
    stage = PipelineStage(layers()[rank], rank, size, torch.device("cpu"))
    schedule = kind(stage, 4, loss_fn=nn.functional.mse_loss)
    for again in range(2):
        stage.submod.zero_grad()
        losses = []
        if rank == 0:
            schedule.step(x)
        elif rank == size - 1:
            out = schedule.step(target=y, losses=losses)
            assert abs(sum(losses) / 4 - loss) < 1e-6 and torch.allclose(out, one(x), atol=1e-6)
        else:
            schedule.step()
    for p, q in zip(stage.submod.parameters(), one[rank].parameters()):
        assert torch.allclose(p.grad, q.grad, atol=1e-6)
print("good")
dist.barrier()
"""


def test_pipelines(tmp_path):
    assert run(PIPELINE, 3, tmp_path) == ["good\n"] * 3


NORMS = """
import torch, torch.distributed as dist
from torch import nn
dist.init_process_group("gloo")
rank, size = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)
x = torch.randn(9, 3, 4)
parts = [slice(0, 4), slice(4, 9)]
one, many = nn.BatchNorm1d(3), nn.SyncBatchNorm.convert_sync_batchnorm(nn.BatchNorm1d(3))
a, b = x.clone().requires_grad_(), x[parts[rank]].clone().requires_grad_()
weight = torch.randn(9, 3, 4)
for again in range(2):
    y, z = one(a), many(b)
    (y * weight).sum().backward()
    (z * weight[parts[rank]]).sum().backward()
assert torch.allclose(y[parts[rank]], z, atol=1e-5)
assert torch.allclose(a.grad[parts[rank]], b.grad, atol=1e-4)
dist.all_reduce(many.weight.grad); dist.all_reduce(many.bias.grad)
assert torch.allclose(one.weight.grad, many.weight.grad, atol=1e-4)
assert torch.allclose(one.bias.grad, many.bias.grad, atol=1e-4)
assert torch.allclose(one.running_var, many.running_var) and torch.allclose(one.running_mean, many.running_mean)
assert one.num_batches_tracked == many.num_batches_tracked
many.eval(); one.eval(); assert torch.allclose(one(x), many(x), atol=1e-5)
from torch.distributed.fsdp.sharded_grad_scaler import ShardedGradScaler
p = nn.Parameter(torch.ones(1)); sgd = torch.optim.SGD([p], lr=1.0); scaler = ShardedGradScaler("cpu")
scaler.scale((p * (float("inf") if rank == 1 else 1.0)).sum()).backward(); scaler.step(sgd); scaler.update()
assert p.item() == 1.0 and scaler.get_scale() == 32768.0
print("good")
dist.barrier()
"""


def test_norms_of_all_batches(tmp_path):
    assert run(NORMS, 2, tmp_path) == ["good\n"] * 2
