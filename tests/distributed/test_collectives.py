"""What several processes do together, beside PyTorch's with Gloo, and over MPI."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from .launch import environment, run

PROGRAM = """
import os, sys, warnings
warnings.simplefilter("ignore")
import torch, torch.distributed as dist
import torch.distributed.nn as dnn

dist.init_process_group(os.environ.get("BACKEND", "gloo"))
rank, size = dist.get_rank(), dist.get_world_size()
torch.manual_seed(rank)

def show(*values):
    print(*(v.tolist() if isinstance(v, torch.Tensor) else v for v in values), flush=True)

x = torch.arange(6.0).reshape(2, 3) + 10 * rank
for op in ("SUM", "PRODUCT", "MIN", "MAX"):
    y = x.clone(); dist.all_reduce(y, getattr(dist.ReduceOp, op)); show(op, y)
n = torch.tensor([rank + 1, 12], dtype=torch.int32)
for op in ("BAND", "BOR", "BXOR"):
    y = n.clone(); dist.all_reduce(y, getattr(dist.ReduceOp, op)); show(op, y)
for dtype in (torch.float16, torch.bfloat16, torch.float64, torch.int64, torch.uint8):
    y = torch.ones(5, dtype=dtype) * (rank + 1); dist.all_reduce(y); show(dtype, y)
t = torch.zeros(3, 2).t() + rank; dist.all_reduce(t); show("transposed", t, t.is_contiguous())
z = torch.tensor(float(rank)); dist.all_reduce(z); show("scalar", z)
big = torch.ones(100_003) * rank; w = dist.all_reduce(big, async_op=True); w.wait(); show(w.is_completed(), big.sum())
y = x.clone(); dist.broadcast(y, size - 1); show("broadcast", y)
b = torch.full((400_001,), float(rank)); dist.broadcast(b, 1); show(b.mean())
y = x.clone(); dist.reduce(y, 1); show("reduce", y if rank == 1 else None)
l = [torch.zeros(2, 3) for _ in range(size)]; dist.all_gather(l, x); show("all_gather", *l)
o = torch.zeros(2 * size, 3); dist.all_gather_into_tensor(o, x); show("into", o)
g = [torch.zeros(2, 3) for _ in range(size)] if rank == 0 else None; dist.gather(x, g); show("gather", *(g or []))
s = torch.zeros(2); dist.scatter(s, [torch.ones(2) * i for i in range(size)] if rank == 1 else None, src=1); show("scatter", s)
r = torch.zeros(2); dist.reduce_scatter(r, [torch.ones(2) * (i + rank) for i in range(size)]); show("reduce_scatter", r)
r = torch.zeros(2); dist.reduce_scatter_tensor(r, torch.arange(2.0 * size) * (rank + 1)); show("tensor", r)
l = [torch.zeros(1) for _ in range(size)]
if dist.get_backend() != "gloo" or "taeda" in torch.__file__:
    dist.all_to_all(l, [torch.ones(1) * (10 * rank + i) for i in range(size)]); print(*l, file=sys.stderr)
o = torch.zeros(size); dist.all_to_all_single(o, torch.arange(float(size)) + 10 * rank); show("to all", o)
mine, theirs = [i + 1 for i in range(size)], [rank + 1] * size
o = torch.zeros(sum(theirs)); dist.all_to_all_single(o, torch.arange(float(sum(mine))), theirs, mine); show("uneven", o)
k = [None] * size; dist.all_gather_object(k, {"rank": rank, "text": "x" * rank}); show(k)
k = [None] * size if rank == 0 else None; dist.gather_object((rank,), k); show(k)
k = ["a", 1] if rank == 1 else [None, None]; dist.broadcast_object_list(k, 1); show(k)
k = [None]; dist.scatter_object_list(k, [f"to {i}" for i in range(size)] if rank == 0 else None); show(k)
after, before = (rank + 1) % size, (rank - 1) % size
r, big = torch.zeros(3), torch.full((200_000,), float(rank))
got = torch.zeros(200_000)
for work in dist.batch_isend_irecv([
    dist.P2POp(dist.isend, big, after), dist.P2POp(dist.irecv, got, before),
]): work.wait()
show("ring", got.mean())
if rank == 0:
    works = [dist.isend(torch.ones(2) * i, 1, tag=7 + i) for i in range(2)]; [w.wait() for w in works]
elif rank == 1:
    a, b = torch.zeros(2), torch.zeros(2)
    dist.recv(b, 0, tag=8); source = dist.recv(a, tag=7); show("tags", a, b, source)
group = dist.new_group([1, 0]); other = dist.new_group([size - 1])
if rank < 2:
    y = torch.ones(1) * rank; dist.all_reduce(y, group=group)
    show("group", y, dist.get_rank(group), dist.get_process_group_ranks(group), dist.get_group_rank(group, 1))
show(dist.get_rank(group) >= 0, group == dist.GroupMember.NON_GROUP_MEMBER)
mine, groups = dist.new_subgroups(2); y = torch.ones(1) * rank; dist.all_reduce(y, group=mine); show(y, len(groups))
dist.monitored_barrier() if dist.get_backend() == "gloo" else dist.barrier()
x = torch.ones(2, requires_grad=True)
(dnn.functional.all_reduce(x * (rank + 1)) * (rank + 1)).sum().backward(); show("gradient", x.grad)
x.grad = None; (torch.stack(dnn.functional.all_gather(x)) * (rank + 1)).sum().backward(); show(x.grad)
x.grad = None; (dnn.functional.broadcast(x, 1) * (rank + 1)).sum().backward(); show(x.grad)
def error(f):
    try:
        f()
    except Exception as raised:
        show(type(raised).__name__)
error(lambda: dist.broadcast(torch.ones(1), size))
error(lambda: dist.all_gather([torch.ones(1)], torch.ones(1)))
error(lambda: dist.send(torch.ones(1), rank))
error(lambda: dist.new_group([size]))
from torch.distributed.device_mesh import init_device_mesh
mesh = init_device_mesh("cpu", (2, size // 2), mesh_dim_names=("dp", "tp"))
y = torch.ones(1) * rank; dist.all_reduce(y, group=mesh["tp"].get_group()); show("mesh", y, mesh.get_coordinate(), mesh.mesh, mesh.get_local_rank("dp"))
y = torch.ones(1) * rank; dist.all_reduce(y, group=mesh.get_group("dp")); show(y, mesh["dp"].mesh, mesh["dp"].size(), mesh.shape)
dist.barrier()
dist.destroy_process_group()
"""


def shown(text: str) -> list[str]:
    return text.replace("torch", "taeda").splitlines()


def test_as_with_gloo(tmp_path):
    pytest.importorskip("torch")
    ours = run(PROGRAM, 4, tmp_path)
    theirs = run(PROGRAM, 4, tmp_path, "torch")
    for rank, (our, their) in enumerate(zip(ours, theirs, strict=True)):
        assert shown(our) == shown(their), rank


@pytest.mark.unsanitized(
    "MPI's library reads memory of other processes, which ends ThreadSanitizer"
)
def test_over_mpi(tmp_path):
    pytest.importorskip("mpi4py")
    mpiexec = Path(sysconfig.get_path("scripts")) / "mpiexec"
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    done = subprocess.run(
        [mpiexec, "-n", "4", "-outfile-pattern", str(tmp_path / "out%r"), sys.executable, "-W",
         "ignore", "-m", "taeda.torch", str(path)],
        env=environment(BACKEND="mpi"), capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    by_sockets = run(PROGRAM, 4, tmp_path)
    for rank in range(4):
        assert (tmp_path / f"out{rank}").read_text().splitlines() == by_sockets[rank].splitlines()


@pytest.mark.parametrize("shared", [0, 1])
def test_sums_of_many_processes(tmp_path, shared):
    """Trees, rings and the order of ranks, among more processes than exchange all with all."""
    program = """
import os
import torch, torch.distributed as dist
from torch.distributed import _algorithms
_algorithms.DIRECT, _algorithms.BLOCK = 2, 1 << 16
dist.init_process_group("gloo")
rank, size = dist.get_rank(), dist.get_world_size()
for n in (1, 3, 5000, 100_001):
    x = torch.arange(float(n)) + rank
    expected = size * torch.arange(float(n)) + sum(range(size))
    for f in (dist.all_reduce, lambda t: dist.reduce(t, 2)):
        y = x.clone(); f(y)
        assert torch.equal(y, expected) or (f is not dist.all_reduce and rank != 2)
    y = torch.full((n,), float(rank)); dist.broadcast(y, 3); assert (y == 3).all()
    l = [torch.zeros(n) for _ in range(size)]; dist.all_gather(l, x)
    assert all(torch.equal(t, x - rank + i) for i, t in enumerate(l))
    r = torch.zeros(n); dist.reduce_scatter(r, [x + i for i in range(size)])
    assert torch.equal(r, expected + size * rank)
    dist.set_deterministic(True)
    torch.manual_seed(rank); mine = torch.randn(n); l = [torch.zeros(n) for _ in range(size)]
    dist.all_gather(l, mine); y = mine.clone(); dist.all_reduce(y)
    inorder = l[0].clone()
    for t in l[1:]: inorder += t
    assert torch.equal(y, inorder)
    dist.set_deterministic(False)
print("good")
"""
    assert run(program, 5, tmp_path, TAEDA_SHARED_MEMORY=shared) == ["good\n"] * 5


def test_several_as_one_operation(tmp_path):
    program = """
import torch, torch.distributed as dist
from torch.distributed import flight_recorder
from torch.distributed.distributed_c10d import _coalescing_manager
dist.init_process_group("gloo")
rank = dist.get_rank()
a, b, parts = torch.full((3,), rank + 1.0), torch.arange(6.0).view(2, 3).t(), torch.zeros(2)
with _coalescing_manager(async_ops=True) as manager:
    assert dist.all_reduce(a) is None
    dist.all_reduce(b)
    dist.all_gather_into_tensor(parts, torch.tensor([float(rank)]))
    try:
        with _coalescing_manager(): pass
    except ValueError as error:
        print(error)
manager.wait()
assert a.tolist() == [3, 3, 3] and b.flatten().tolist() == [0, 6, 2, 8, 4, 10] and parts.tolist() == [0, 1]
print(flight_recorder.records()[-1]["name"])
with _coalescing_manager():
    dist.broadcast(a, 0)
try:
    with _coalescing_manager():
        dist.all_reduce(a)
        raise KeyError("the block is left")
except KeyError:
    dist.all_reduce(a)
print(a.tolist())
"""
    said = "_coalescing_manager: there is one already for the group"
    expected = [said, "all_gather_into_tensor_all_reduce_coalesced", "[6.0, 6.0, 6.0]"]
    assert [text.splitlines() for text in run(program, 2, tmp_path)] == [expected] * 2


FAILING = """
import datetime, os, sys, time
import torch, torch.distributed as dist
dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=2))
rank = dist.get_rank()
x = torch.ones(100_000)
dist.all_reduce(x)
if rank == 2:
    if sys.argv[1] == "kill": os.kill(os.getpid(), 9)
    if sys.argv[1] == "late": time.sleep(6)
    if sys.argv[1] == "size": x = torch.ones(7)
start = time.monotonic()
for again in range(2):
    try:
        dist.all_reduce(x); print("no error")
    except dist.DistBackendError as error:
        print(error, flush=True)
    except RuntimeError as error:
        print(error, flush=True)
print(round(time.monotonic() - start, 2))
time.sleep(0.5)  # rank 0 keeps the store
"""


@pytest.mark.parametrize(
    ("how", "said", "seconds"),
    [
        ("kill", "rank 2 has ended or closed its connection", 2),
        ("late", "rank 2 did not come to all_reduce (operation 2 of group 0) within 2 s", 4),
        ("size", "tensors of processes must have the same sizes", 2),
    ],
)
def test_who_is_missing(tmp_path, how, said, seconds):
    from .launch import start

    path = tmp_path / "program.py"
    path.write_text(FAILING)
    processes = start(path, 4, arguments=[how], TAEDA_FLIGHT_RECORDER=tmp_path / "records")
    outputs = [process.communicate(timeout=30)[0].splitlines() for process in processes]
    for rank in (0, 1, 3):
        first, second, took = outputs[rank]
        assert said in first and "cannot be used any more" in second, outputs[rank]
        assert float(took) < seconds
    assert '"failed"' in (tmp_path / "records" / "rank0.json").read_text()


def test_stores_over_the_network():
    import taeda.distributed as dist

    first = dist.TCPStore("127.0.0.1", 0, is_master=True)
    second = dist.TCPStore("127.0.0.1", first.port)
    second.set("a", b"\x00\xff")
    assert first.get("a") == b"\x00\xff" and second.check(["a"]) and not second.check(["b"])
    assert second.add("n", 2) == 2 and first.add("n", 3) == 5 and first.get("n") == b"5"
    assert second.compare_set("z", "", "q") == b"q" and first.compare_set("z", "x", "y") == b"q"
    second.queue_push("k", "v")
    assert first.queue_len("k") == 1 and first.queue_pop("k") == b"v"
    with pytest.raises(dist.QueueEmptyError):
        first.queue_pop("k", block=False)
    assert second.delete_key("a") and not second.delete_key("a")
    second.multi_set(["p", "q"], ["1", "2"])
    assert first.multi_get(["p", "q"]) == [b"1", b"2"]
    second.append("p", "23")
    assert first.get("p") == b"123" and "p" in first.list_keys()
    prefixed = dist.PrefixStore("w", second)
    prefixed.set("a", "b")
    assert first.get("w/a") == b"b" and prefixed.list_keys() == ["a"]
    with pytest.raises(dist.DistStoreError, match="Wait timeout"):
        first.wait(["never"], dist.default_pg_timeout / 1e5)
    with pytest.raises(dist.DistNetworkError, match="cannot listen"):
        dist.TCPStore("127.0.0.1", first.port, is_master=True)


def test_who_does_not_come():
    from datetime import timedelta

    import taeda.distributed as dist

    with pytest.raises(dist.DistStoreError, match="2 of 3 processes did not come: rank 0, 2"):
        dist.init_process_group(
            "gloo", store=dist.HashStore(), rank=1, world_size=3, timeout=timedelta(seconds=0.2)
        )
    assert not dist.is_initialized()


@pytest.mark.parametrize(
    ("backend", "said"),
    [("nccl", "the backend 'nccl' needs"), ("ucc", "doesn't have UCC built in")],
)
def test_backends_that_are_missing(backend, said):
    import taeda.distributed as dist

    assert not dist.is_backend_available(backend)
    with pytest.raises(RuntimeError, match=said):
        dist.init_process_group(backend, store=dist.HashStore(), rank=0, world_size=1)


def test_variables_of_launchers(monkeypatch):
    from taeda.distributed import _rendezvous

    for name in [*os.environ]:
        if name.startswith(("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER", "SLURM", "PMI", "OMPI")):
            monkeypatch.delenv(name)
    variables = {
        "SLURM_PROCID": 3, "SLURM_NTASKS": 8, "SLURM_LOCALID": 1, "SLURM_JOB_ID": 40007,
        "SLURM_JOB_NODELIST": "gpu[07-09,12],login",
    }  # fmt: skip
    for name, value in variables.items():
        monkeypatch.setenv(name, str(value))
    assert [_rendezvous.from_launcher(n) for n in ("RANK", "WORLD_SIZE", "LOCAL_RANK")] == list(
        "381"
    )
    assert _rendezvous._master() == ("gpu07", 20007)
    monkeypatch.setenv("RANK", "5")
    assert _rendezvous.from_launcher("RANK") == "5"
