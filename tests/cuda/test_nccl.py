"""Collectives on CUDA tensors, by a stub of NCCL among processes that have a stub of the driver."""

from __future__ import annotations

import pytest

from tests.cuda import shim
from tests.distributed.launch import run, start


@pytest.fixture
def variables(libraries):
    """What processes need to find the stubs."""
    found = shim.environment(libraries)
    return {
        "LD_LIBRARY_PATH": f"{libraries}:{libraries / 'nccl'}",
        "TAEDA_CUDA_LIBRARY": found["TAEDA_CUDA_LIBRARY"],
    }


START = """
import datetime, os, time
import torch, torch.distributed as dist
rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
torch.cuda.set_device(rank)
dist.init_process_group("nccl", timeout=datetime.timedelta(seconds=int(os.environ.get("LIMIT", 60))), device_id=torch.device("cuda", rank))
def cuda(*values, dtype=torch.float32):
    return torch.tensor(values, dtype=dtype).cuda()
def error(f):
    try:
        f()
    except Exception as e:
        return f"{type(e).__name__}: {e}"
    return "no error"
"""

COLLECTIVES = (
    START
    + """
assert dist.is_nccl_available() and dist.get_backend() == "nccl"
for deterministic in (False, True):
    dist.set_deterministic(deterministic)
    ops = dist.ReduceOp
    for op, expected in ((ops.SUM, [3, 5]), (ops.AVG, [1.5, 2.5]), (ops.PRODUCT, [2, 6]), (ops.MIN, [1, 2]), (ops.MAX, [2, 3])):
        x = cuda(rank + 1, rank + 2)
        dist.all_reduce(x, op)
        assert x.tolist() == expected, (op, x)
        out = cuda(0)
        dist.reduce_scatter_tensor(out, cuda(rank + 1, rank + 2), op)
        assert out.tolist() == expected[rank : rank + 1], (op, out)
        x = cuda(rank + 1, rank + 2)
        dist.reduce(x, 1, op)
        assert x.tolist() == (expected if rank == 1 else [1, 2]), (op, x)
    big = torch.arange(100_000, dtype=torch.float64).cuda() * (rank + 1)
    dist.all_reduce(big)
    assert torch.equal(big.cpu(), 3 * torch.arange(100_000, dtype=torch.float64))
    flags = cuda(rank == 0, rank < 2, False, dtype=torch.bool)
    dist.all_reduce(flags)
    assert flags.tolist() == [True, True, False]
    z = (cuda(1, 2) * (rank + 1)).to(torch.complex64) * 1j
    dist.all_reduce(z)
    assert z.tolist() == [3j, 6j]
    outs = [cuda(0), cuda(0)]
    dist.reduce_scatter(outs[0], [cuda(rank + 1), cuda(rank + 5)])
    assert outs[0].tolist() == ([3] if rank == 0 else [11])
    columns = cuda(*range(6)).view(2, 3).t()
    dist.all_reduce(columns)  # not contiguous
    assert columns.tolist() == [[0, 6], [2, 8], [4, 10]]
dist.set_deterministic(False)

x = cuda(rank, rank, dtype=torch.int16)
dist.broadcast(x, 1)
assert x.tolist() == [1, 1]
parts = [cuda(0, 0), cuda(0, 0)]
dist.all_gather(parts, cuda(rank, 7))
assert [p.tolist() for p in parts] == [[0, 7], [1, 7]]
whole = cuda(0, 0, 0, 0)
dist.all_gather_into_tensor(whole, cuda(rank, 8))
assert whole.tolist() == [0, 8, 1, 8]
outs = [cuda(0), cuda(0, 0)] if rank == 0 else [cuda(0), cuda(0, 0)]
dist.all_to_all([outs[0], outs[1]] if rank == 0 else [outs[1], outs[0]],
                [cuda(10), cuda(1, 2)] if rank == 0 else [cuda(3, 4), cuda(5)])
assert [o.tolist() for o in outs] == ([[10], [3, 4]] if rank == 0 else [[5], [1, 2]])
out = cuda(0, 0, 0)
dist.all_to_all_single(out, cuda(1, 2, 3) * (rank + 1), [1, 2] if rank == 0 else [2, 1], [1, 2] if rank == 0 else [2, 1])
assert out.tolist() == ([1, 2, 4] if rank == 0 else [2, 3, 6])
got = cuda(0)
dist.scatter(got, [cuda(5), cuda(6)] if rank == 0 else None, src=0)
assert got.tolist() == [5 + rank]
into = [cuda(0), cuda(0)] if rank == 1 else None
dist.gather(cuda(rank), into, dst=1)
assert rank == 0 or [p.tolist() for p in into] == [[0], [1]]

# Messages, alone and together.
if rank == 0:
    dist.send(cuda(1, 2, 3), 1)
else:
    x = cuda(0, 0, 0).as_strided((3,), (1,))
    assert dist.recv(x, 0) == 0 and x.tolist() == [1, 2, 3]
x, y = cuda(rank), cuda(-1)
for work in dist.batch_isend_irecv([dist.P2POp(dist.isend, x, 1 - rank), dist.P2POp(dist.irecv, y, 1 - rank)]):
    work.wait()
assert y.tolist() == [1 - rank]

# Several at once, also where one is not contiguous.
from torch.distributed.distributed_c10d import _coalescing_manager
for second in (cuda(1, 2, 3, 4), cuda(1, 2, 3, 4).view(2, 2).t()):
    first, parts = cuda(rank), cuda(0, 0)
    with _coalescing_manager(async_ops=True) as manager:
        dist.all_reduce(first)
        dist.all_reduce(second)
        dist.all_gather_into_tensor(parts, cuda(rank))
    manager.wait()
    assert first.item() == 1 and sorted(second.flatten().tolist()) == [2, 4, 6, 8] and parts.tolist() == [0, 1]

# Objects and tensors of the CPU go by sockets.
found = [None, None]
dist.all_gather_object(found, {"rank": rank})
assert found == [{"rank": 0}, {"rank": 1}]
x = torch.ones(2)
dist.all_reduce(x)
assert x.tolist() == [2, 2]

pair = dist.new_group([1, 0], sort_ranks=False)
x = cuda(dist.get_rank(pair))
dist.broadcast(x, group=pair, group_src=0)
assert x.item() == 0
dist.barrier()
dist.barrier(device_ids=[rank])
for wrong in (
    lambda: dist.all_reduce(cuda(1, dtype=torch.int64), dist.ReduceOp.BAND),
    lambda: dist.all_reduce(cuda(1, dtype=torch.int16)),
    lambda: dist.isend(cuda(1), 1 - rank, tag=3),
    lambda: dist.irecv(cuda(1)),
    lambda: dist.all_reduce(torch.ones(1, device=f"cuda:{1 - rank}")),
    lambda: dist.all_reduce(cuda(1)),  # the one before has ended the group
):
    print(error(wrong))
"""
)


def test_collectives(tmp_path, variables):
    log = tmp_path / "log"
    found = run(COLLECTIVES, 2, tmp_path, **variables, STUB_NCCL_LOG=log)
    expected = [
        "ValueError: nccl: tensors cannot be combined by",
        "TypeError: nccl: tensors of torch.int16 cannot be combined",
        "ValueError: messages by nccl need the other process, and have no tags: got tag 3",
        "ValueError: messages by nccl need the other process, and have no tags: got no source",
        "one device in a group",
        "cannot be used any more",
    ]
    for printed in found:
        for line, part in zip(printed.splitlines(), expected, strict=True):
            assert part in line.replace("taeda.", "torch."), line
    lines = (tmp_path / "log0").read_text().splitlines()
    assert not any("default stream" in line for line in lines)
    # The contiguous tensors of the coalescing block began together, as did what all_to_all sends.
    together = lines.index("  ncclAllReduce 4")
    assert lines[together - 1] == "  ncclAllReduce 1" and "  ncclAllGather 4" in lines
    assert "ncclAllReduce 4" in lines and "  ncclSend 8" in lines
    assert lines.count("ncclCommInitRank 2") == 3  # all, the pair that sends, and the second group


STREAMS = (
    START
    + """
# The group's stream waits for what has been computed before, and the current stream for the result.
x = cuda(*range(1000))
x.mul_(rank + 1)
work = dist.all_reduce(x, async_op=True)
assert not work.is_completed()  # the stub's streams work when somebody waits
y = torch.zeros(1000, device="cuda")  # must not get memory that is being sent
work.wait()
assert not work.is_completed()  # the host has not waited
x.add_(1)
assert x.tolist() == [3.0 * i + 1 for i in range(1000)]
assert work.is_completed() and work.is_success() and work.exception() is None
assert work.result()[0] is x

side = torch.cuda.Stream()
with torch.cuda.stream(side):
    z = cuda(rank + 1.0).mul_(2)
    dist.all_reduce(z)
    z.add_(1)
side.synchronize()
assert z.item() == 7

# Results that the group's stream goes on with.
x = cuda(rank, 4)
future = dist.all_reduce(x, async_op=True).get_future().then(lambda f: f.value()[0].mul(2)).then(lambda f: f.wait() + 1)
assert future.wait().tolist() == [3, 17]

# Memory of tensors that nobody has any more stays until the operation is over.
work = dist.all_reduce(torch.full((4096,), rank + 1.0, device="cuda"), async_op=True)
again = torch.full((4096,), 9.0, device="cuda")
works = [dist.all_reduce(torch.full((4096,), i + rank + 0.0, device="cuda"), async_op=True) for i in range(5)]
torch.cuda.synchronize()
assert all(w.is_completed() for w in [work, *works])
assert work.result()[0][0].item() == 3 and [w.result()[0][-1].item() for w in works] == [1, 3, 5, 7, 9]
os.environ["TORCH_NCCL_BLOCKING_WAIT"] = "1"
work = dist.all_reduce(x, async_op=True)
assert work.wait() and work.is_completed()
dist.barrier()
dist.destroy_process_group()
print("good")
"""
)


def test_streams_wait_for_each_other(tmp_path, variables):
    log = tmp_path / "log"
    assert run(STREAMS, 2, tmp_path, **variables, STUB_NCCL_LOG=log) == ["good\n"] * 2
    assert (tmp_path / "log1").read_text().splitlines()[-1] == "ncclCommDestroy"


DDP = (
    START
    + """
from torch import nn
from torch.nn.parallel import DistributedDataParallel
torch.manual_seed(0)
x, y = torch.randn(4, 8, 5), torch.randn(4, 8, 3)
def net():
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(5, 16), nn.GELU(), nn.LayerNorm(16), nn.Linear(16, 3))
def train(model, part, device):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for step in range(4):
        loss = (model(x[step, part].to(device)) - y[step, part].to(device)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        loss = loss.detach()
        if device != "cpu":
            dist.all_reduce(loss, dist.ReduceOp.AVG)
        yield loss.item()
expected = torch.tensor(list(train(net(), slice(0, 8), "cpu")))
for options in ({}, {"device_ids": [rank], "bucket_cap_mb": 1e-4}, {"gradient_as_bucket_view": True}, {"units": 4},
                {"find_unused_parameters": True}):
    model = DistributedDataParallel(net().cuda(), **options)
    losses = torch.tensor(list(train(model, slice(4 * rank, 4 * rank + 4), "cuda")))
    assert torch.allclose(losses, expected, rtol=1e-4), (options, losses, expected)
model = DistributedDataParallel(net().cuda())
model.register_comm_hook(None, lambda state, bucket: dist.all_reduce(bucket.buffer(), async_op=True).get_future().then(
    lambda f: f.value()[0].div_(2)))
assert torch.allclose(torch.tensor(list(train(model, slice(4 * rank, 4 * rank + 4), "cuda"))), expected, rtol=1e-4)
print(error(lambda: DistributedDataParallel(net().cuda(), device_ids=[1 - rank])))

from torch.distributed.fsdp import fully_shard
model = net().cuda()
mesh = dist.init_device_mesh("cuda", (size,))
fully_shard(model[0], mesh=mesh); fully_shard(model, mesh=mesh)
losses = torch.tensor(list(train(model, slice(4 * rank, 4 * rank + 4), "cuda")))
assert torch.allclose(losses, expected, rtol=1e-4), (losses, expected)
dist.barrier()
"""
)


def test_training(tmp_path, variables):
    for printed in run(DDP, 2, tmp_path, seconds=120, **variables):
        assert "module's device" in printed


MISSING = (
    START
    + """
x = cuda(1, 2)
WHAT
try:
    WAIT
    for _ in range(2):  # what was sent before the other one gave up may make do for one
        dist.barrier()
except RuntimeError as e:
    print(type(e).__name__, e, flush=True)
time.sleep(4 * (1 - rank))  # the first one keeps the store
"""
)


@pytest.mark.parametrize(
    ("what", "wait", "said"),
    [
        # Before there is a communicator, and afterwards.
        ("", "time.sleep(3.5 * rank)", "rank 1 did not come to barrier (operation 1"),
        (
            "dist.all_reduce(x); x.tolist()",
            "(time.sleep(3.5) if rank else dist.barrier())",
            "rank 1 did not come to barrier (operation 2",
        ),
    ],
)
def test_who_is_missing(tmp_path, variables, what, wait, said):
    program = MISSING.replace("WHAT", what).replace("WAIT", wait)
    log = tmp_path / "log"
    first, second = run(program, 2, tmp_path, **variables, STUB_NCCL_LOG=log, LIMIT=2)
    assert said in first and "within 2 s" in first
    assert "rank 1 did not come" in second
    if what:
        assert (tmp_path / "log0").read_text().splitlines()[-1] == "ncclCommAbort"


def test_a_process_that_is_killed(tmp_path, variables):
    path = tmp_path / "program.py"
    path.write_text(
        START
        + """
x = cuda(1)
dist.all_reduce(x)
print("there", x.item(), flush=True)
if rank == 1:
    time.sleep(60)
print(error(dist.barrier))
"""
    )
    first, second = start(path, 2, **variables, LIMIT=3)
    try:
        assert second.stdout.readline() == "there 2.0\n"
        second.kill()
        second.wait()
        printed, _ = first.communicate(timeout=30)
        assert "DistBackendError: rank 1 did not come to barrier" in printed
    finally:
        for process in (first, second):
            process.kill()
            process.communicate()


@pytest.mark.parametrize(
    ("function", "program", "said"),
    [
        ("ncclCommInitRank", "dist.all_reduce(cuda(1))", "making a communicator failed"),
        ("ncclAllReduce", "dist.all_reduce(cuda(1))", "nccl: all_reduce failed"),
    ],
)
def test_errors_of_the_library(tmp_path, variables, function, program, said):
    program = START + f"print(error(lambda: {program}))"
    for printed in run(program, 2, tmp_path, **variables, STUB_NCCL_FAIL=function):
        assert said in printed
        assert f"internal error: {function} was told to fail" in printed


def test_tensors_of_other_sizes(tmp_path, variables):
    program = (
        START
        + """
x = torch.ones(1 + rank).cuda()
dist.all_reduce(x)
print(error(dist.barrier))
"""
    )
    found = run(program, 2, tmp_path, **variables)
    assert any("invalid usage" in printed for printed in found)


def test_what_is_missing(tmp_path, variables):
    program = """
import torch.distributed as dist
try:
    dist.init_process_group("nccl", rank=0, world_size=1, store=dist.HashStore())
except RuntimeError as e:
    print(dist.is_nccl_available(), e)
"""
    folder = variables["LD_LIBRARY_PATH"].split(":")[0]
    (printed,) = run(program, 1, tmp_path, **{**variables, "LD_LIBRARY_PATH": folder})
    assert "False" in printed and "pip install nvidia-nccl-cu13" in printed
    (printed,) = run(program, 1, tmp_path, **variables, STUB_DEVICES=0)
    assert "needs a CUDA device" in printed
    (printed,) = run(program, 1, tmp_path, TAEDA_CUDA_LIBRARY="")
    assert "needs taeda's CUDA library" in printed
