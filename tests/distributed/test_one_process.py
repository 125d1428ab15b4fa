"""Groups of one process, beside PyTorch's with Gloo."""

from __future__ import annotations

import subprocess
import sys

import pytest

import taeda
import taeda.distributed as dist
from taeda import nn

START = """
import os, re, sys, warnings
warnings.simplefilter("ignore")
os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="0", RANK="0", WORLD_SIZE="1", LOCAL_RANK="0")
import LIBRARY as torch, LIBRARY.distributed as dist
import LIBRARY.distributed.nn, LIBRARY.distributed.checkpoint.state_dict, LIBRARY.distributed.fsdp
import LIBRARY.distributed.tensor, LIBRARY.distributed.optim, LIBRARY.distributed.algorithms.join
S = dist.checkpoint.state_dict
"""
SHOW = """
for line in LINES.strip().splitlines():
    try:
        *statements, last = line.split("; ")
        for statement in statements:
            exec(statement)
        result = repr(eval(last))
    except Exception as error:
        result = type(error).__name__
    result = re.sub(r"<[\\w.]+\\.(\\w+) object at 0x\\w+>", r"<\\1>", result)
    print(" ".join(result.replace("torch", "taeda").split()), flush=True)
"""
BEFORE = """
dist.is_available(), dist.is_initialized(), dist.is_gloo_available(), dist.is_nccl_available()
dist.get_rank()
dist.all_reduce(torch.ones(1))
dist.barrier()
dist.new_group([0])
dist.destroy_process_group()
dist.get_node_local_rank(), dist.get_pg_count()
torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(1, 1))
torch.utils.data.DistributedSampler(range(3))
dist.init_process_group("foo")
dist.init_process_group("nccl")
dist.init_process_group("gloo", store=dist.HashStore())
dist.init_process_group("gloo", init_method="env://", store=dist.HashStore())
os.environ.pop("RANK"); dist.init_process_group("gloo")
dist.init_process_group("gloo", rank=0, world_size=1, store=dist.HashStore())
dist.init_process_group("gloo", rank=0, world_size=1, store=dist.HashStore())
"""
WITHIN = """
dist.get_rank(), dist.get_world_size(), dist.get_backend(), dist.get_backend_config(), dist.is_initialized()
dist.group.WORLD is dist.GroupMember.WORLD, dist.get_process_group_ranks(dist.group.WORLD)
dist.group.WORLD.rank(), dist.group.WORLD.size(), dist.group.WORLD.name(), dist.group.WORLD.group_desc
x, o, l = torch.arange(3.0), torch.zeros(3), [torch.zeros(3)]; dist.all_reduce(x), x
dist.all_reduce(x, op=dist.ReduceOp.AVG), dist.all_reduce(x, op=dist.ReduceOp.MAX), x
dist.all_reduce(x, async_op=True)
w = dist.all_reduce(x, async_op=True); w.wait(), w.is_completed()
dist.all_reduce([x])
dist.all_reduce(x, op=dist.ReduceOp.BAND)
dist.all_reduce(torch.ones(2, dtype=torch.complex64), op=dist.ReduceOp.MAX)
dist.broadcast(x, 0), dist.reduce(x, 0), x
dist.broadcast(x, 1)
dist.reduce(x, 1)
dist.all_gather(l, x), l
dist.all_gather([torch.zeros(2)], x)
dist.all_gather([], x)
dist.all_gather([torch.zeros(3).double()], x)
dist.all_gather_into_tensor(o, x + 7), o
dist.all_gather_into_tensor(torch.zeros(2), x)
dist.gather(x + 1, l, dst=0), l
dist.gather(x)
dist.gather(x, [torch.zeros(3)] * 2)
dist.scatter(o, [x + 1]), o
dist.scatter(o)
dist.scatter(o, [x, x])
dist.reduce_scatter(o, [x * 2]), o
dist.reduce_scatter_tensor(o, x * 3), o
dist.all_to_all(l, [x * 4]), l
dist.all_to_all_single(o, x * 5), o
dist.all_to_all_single(o, x * 5, [2], [3]), o
dist.barrier(), dist.monitored_barrier()
dist.send(x, 0)
k = [None]; dist.all_gather_object(k, {"a": x}), k
k = [None]; dist.gather_object(5, k), k
dist.gather_object(5)
k = [{"a": 1}]; dist.broadcast_object_list(k, 0), k
k = [None]; dist.scatter_object_list(k, [7]), k
dist.new_group([0]), dist.new_group(), dist.get_world_size(dist.new_group([0]))
dist.new_group([1])
dist.get_rank(dist.GroupMember.NON_GROUP_MEMBER), dist.all_reduce(x, group=dist.GroupMember.NON_GROUP_MEMBER)
dist.get_global_rank(dist.group.WORLD, 0), dist.get_group_rank(dist.group.WORLD, 0)
dist.new_subgroups(1), dist.new_subgroups_by_enumeration([[0]])
dist.new_subgroups(2)
dist.get_debug_level(), dist.get_default_backend_for_device("cpu"), dist.default_pg_timeout
dist.batch_isend_irecv([])
[dist.supports_complex(op) for op in (dist.ReduceOp.MAX, dist.ReduceOp.SUM, dist.ReduceOp.AVG)]
dist.ReduceOp.SUM, dist.ReduceOp.RedOpType.MAX, isinstance(dist.ReduceOp.SUM, dist.ReduceOp), dist.ReduceOp(dist.ReduceOp.SUM) == dist.ReduceOp.SUM, dist.all_reduce(torch.ones(1), dist.ReduceOp(dist.ReduceOp.MIN))
dist.BackendConfig(dist.Backend("gloo")), dist.Backend("GLOO"), dist.Backend.GLOO, dist.Backend.backend_list
dist.Backend(3)
dist.all_reduce_coalesced([x, x]), dist.all_gather_coalesced([l], [x + 9]), l
m = dist.init_device_mesh("cpu", (1, 1), mesh_dim_names=("a", "b")); m["a"].size(), m.shape, m.ndim, m.get_coordinate(), m.mesh, m.get_local_rank("b"), m.get_rank(), m["b"].mesh_dim_names
m["c"]
m.get_group()
dist.init_device_mesh("cpu", (2,))
dist.init_device_mesh("cpu", (1, 1), mesh_dim_names=("a", "a"))
s = dist.HashStore(); s.set("a", "x"), s.get("a"), s.add("n", 2), s.add("n", 3), s.get("n"), s.check(["n", "q"]), s.delete_key("a"), s.delete_key("a"), s.num_keys()
s.compare_set("z", "", "q"), s.compare_set("z", "q", "r"), s.compare_set("z", "bad", "r2"), s.compare_set("y", "want", "r2")
s.queue_push("k", "v"), s.queue_len("k"), s.queue_pop("k"), s.queue_len("k"), s.append("q", "1"), s.append("q", "2"), s.get("q")
p = dist.PrefixStore("p", s); p.set("a", "b"), s.get("p/a"), p.get("a"), p.add("c", 2), p.delete_key("a"), s.check(["p/a"])
s.set_timeout(dist.default_pg_timeout / 1e5); s.get("none")
n = dist.nn; x.requires_grad_(); n.all_reduce(x).detach(), n.all_gather(x)[0].detach(), n.reduce_scatter(o, [x]).detach(), n.all_to_all_single(o, x).detach()
torch.autograd.grad(n.all_reduce(x * 3).sum() + n.broadcast(x, 0).sum() + n.all_to_all_single(o, x * 5).sum(), x)
torch.manual_seed(0); D = torch.nn.parallel.DistributedDataParallel; net = D(torch.nn.Linear(2, 1)); net, list(net.state_dict())
loss = net(torch.ones(1, 2)).sum(); loss.backward(), net.module.weight.grad, net.device_ids, net.dim, net.broadcast_buffers
with_no = net.no_sync(); with_no.__enter__(), net.require_backward_grad_sync, with_no.__exit__(None, None, None), net.require_backward_grad_sync
D(torch.nn.ReLU())
D(torch.nn.Linear(1, 1), device_ids=[0])
j = dist.algorithms.join.Join([net]); j.__enter__(), j.__exit__(None, None, None)
dist.algorithms.join.Join([])
list(torch.utils.data.DistributedSampler(range(3), shuffle=False))
adam = torch.optim.Adam(net.parameters(), lr=0.1); adam.step(); S.get_model_state_dict(net)
S.get_optimizer_state_dict(net, adam)["state"]
S.get_optimizer_state_dict(net, adam, options=S.StateDictOptions(flatten_optimizer_state_dict=True))["state.weight.exp_avg"]
S.get_optimizer_state_dict(net, adam)["param_groups"][0]["params"], S.get_optimizer_state_dict(net, adam)["param_groups"][0]["lr"]
states = S.get_state_dict(net, adam); S.set_state_dict(net, adam, model_state_dict=states[0], optim_state_dict=states[1]), adam.state[net.module.weight]["exp_avg"]
S.set_model_state_dict(net, {"weight": torch.ones(1, 2)})
S.set_model_state_dict(net, {"weight": torch.ones(1, 2)}, options=S.StateDictOptions(strict=False)).missing_keys, net.module.weight
z = dist.optim.ZeroRedundancyOptimizer(net.parameters(), torch.optim.Adam, lr=0.1); z.step(), net.module.weight, z.consolidate_state_dict(), sorted(z.state_dict()["state"]), z.param_groups[0]["lr"]
F = dist.fsdp.FullyShardedDataParallel; torch.manual_seed(0); f = F(torch.nn.Linear(2, 3), use_orig_params=True, device_id=torch.device("cpu")); f, list(f.state_dict()), [n for n, _ in f.named_parameters()]
f(torch.ones(1, 2)).sum().backward(), f.clip_grad_norm_(1.0)
g = torch.optim.SGD(f.parameters(), lr=0.1, momentum=0.9); g.step(); F.optim_state_dict(f, g)["state"].keys() == {"weight", "bias"}, f.load_state_dict(f.state_dict())
t = torch.nn.Sequential(torch.nn.Linear(2, 3)); r = dist.fsdp.fully_shard(t); r is t, isinstance(t, dist.fsdp.FSDPModule), type(t).__name__, list(t.state_dict())
dist.fsdp.fully_shard(torch.nn.ModuleList([torch.nn.Linear(1, 1)]))
dist.fsdp.ShardingStrategy.FULL_SHARD, dist.fsdp.CPUOffload(), dist.fsdp.FullStateDictConfig(), dist.fsdp.OffloadPolicy(), dist.fsdp.BackwardPrefetch.BACKWARD_POST
T = dist.tensor; m = dist.init_device_mesh("cpu", (1,)); d = T.distribute_tensor(torch.arange(6.0).reshape(2, 3), m, [T.Shard(0)]); d.placements, d.shape, d.requires_grad, d.to_local(), d.full_tensor(), d.device_mesh is m, isinstance(d, T.DTensor)
(d + 1).placements, (2 * d + d).to_local(), d.redistribute(m, [T.Replicate()]).placements, type(d * d).__name__
d + torch.ones(2, 3)
T.distribute_tensor(torch.ones(2), m, [T.Shard(0), T.Shard(0)])
T.distribute_tensor(torch.ones(2, requires_grad=True) * 2, m)
p = T.distribute_tensor(torch.ones(2, requires_grad=True), m, [T.Shard(0)]); (p * 3).sum().backward(), p.requires_grad, p.is_leaf, p.grad.shape
T.zeros(2, 3, device_mesh=m).placements, T.full((2,), 3.0, device_mesh=m, placements=[T.Shard(0)]).to_local(), T.DTensor.from_local(torch.ones(2), m, [T.Replicate()]).to_local()
T.Shard(1), T.Replicate(), T.Partial(), str(T.Shard(0)), str(T.Replicate()), T.Shard(0) == T.Shard(0), T.Shard(1).is_shard(), T.Shard(1).is_shard(0), T.Replicate().is_replicate(), T.Partial().is_partial()
dist.destroy_process_group(), dist.is_initialized(), dist.group.WORLD
dist.init_process_group("gloo", rank=0, world_size=1, init_method=f"file://{sys.argv[1]}"), dist.get_rank()
"""


def run(library, lines, path):
    # A process of its own: groups are a state of the process, as is the environment.
    program = START.replace("LIBRARY", library) + f"LINES = {lines!r}" + SHOW
    done = subprocess.run(
        [sys.executable, "-c", program, str(path)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_as_in_pytorch(tmp_path):
    pytest.importorskip("torch")
    lines = BEFORE.strip() + WITHIN
    ours, theirs = (run(name, lines, tmp_path / name) for name in ("taeda", "torch"))
    given = lines.strip().splitlines()
    assert len(ours) == len(theirs) == len(given)
    differ = [(g, o, t) for g, o, t in zip(given, ours, theirs, strict=True) if o != t]
    assert differ == []


@pytest.fixture
def world():
    dist.init_process_group("gloo", rank=0, world_size=1, store=dist.HashStore())
    yield dist.group.WORLD
    if dist.is_initialized():
        dist.destroy_process_group()


def test_other_dtypes_of_shards_are_refused(world):
    half = dist.fsdp.MixedPrecision(param_dtype=taeda.float16)
    with pytest.raises(NotImplementedError, match="autocast"):
        dist.fsdp.FullyShardedDataParallel(nn.Linear(1, 1), mixed_precision=half)
    with pytest.raises(NotImplementedError, match="autocast"):
        dist.fsdp.fully_shard(
            nn.Linear(1, 1), mp_policy=dist.fsdp.MixedPrecisionPolicy(output_dtype=taeda.float16)
        )


def test_shards_from_the_meta_device(world):
    with taeda.device("meta"):
        model = nn.Linear(2, 3)
    wrapped = dist.fsdp.FullyShardedDataParallel(model)
    assert not any(p.is_meta for p in wrapped.parameters())
    full = dist.fsdp.FullyShardedDataParallel
    with full.state_dict_type(wrapped, dist.fsdp.StateDictType.SHARDED_STATE_DICT):
        kind = full.get_state_dict_type(wrapped).state_dict_type
        assert kind is dist.fsdp.StateDictType.SHARDED_STATE_DICT
    assert (
        full.get_state_dict_type(wrapped).state_dict_type is dist.fsdp.StateDictType.FULL_STATE_DICT
    )
    with full.summon_full_params(wrapped, writeback=False), taeda.no_grad():
        before = model.weight.clone()
        model.weight.fill_(3)
    assert taeda.equal(model.weight, before)
    optimizer = taeda.optim.Adam(wrapped.parameters())
    wrapped(taeda.ones(1, 2)).sum().backward()
    optimizer.step()
    named = full.optim_state_dict(wrapped, optimizer)
    fresh = taeda.optim.Adam(wrapped.parameters())
    fresh.load_state_dict(full.optim_state_dict_to_load(wrapped, fresh, named))
    assert taeda.equal(
        fresh.state[model.weight]["exp_avg"], optimizer.state[model.weight]["exp_avg"]
    )


def test_arguments_of_the_wrong_kind(world):
    layer = nn.Linear(2, 2)
    with pytest.raises(TypeError, match=r"all_reduce: op must be a ReduceOp .* not 'sum'"):
        dist.all_reduce(taeda.ones(2), op="sum")
    with pytest.raises(TypeError, match="fully_shard: module must be a Module, not int"):
        dist.fsdp.fully_shard(3)
    with pytest.raises(TypeError, match="DistributedDataParallel: module must be a Module"):
        nn.parallel.DistributedDataParallel(3)
    with pytest.raises(ValueError, match="bucket_cap_mb must not be negative, got -1"):
        nn.parallel.DistributedDataParallel(layer, bucket_cap_mb=-1)
    with pytest.raises(TypeError, match="set_deterministic: mode must be a bool"):
        dist.set_deterministic("yes")
    with pytest.raises(ValueError, match="ScheduleGPipe: n_microbatches must be at least 1, not 0"):
        dist.pipelining.ScheduleGPipe(None, 0)


def test_stores_in_files(tmp_path):
    first, second = (dist.FileStore(str(tmp_path / "store"), 1) for _ in range(2))
    first.set("key", b"\x00\xff")
    assert second.get("key") == b"\x00\xff" and second.add("n", 2) == 2 and first.add("n", 1) == 3
    second.queue_push("q", "a")
    assert first.queue_pop("q") == b"a" and second.num_keys() == 3
    with pytest.raises(dist.QueueEmptyError):
        first.queue_pop("q", block=False)
    assert second.delete_key("key") and not first.check(["key"])


def test_handlers_of_addresses():
    def handler(url):
        yield dist.HashStore(), 0, 1

    dist.register_rendezvous_handler("mine", handler)
    with pytest.raises(RuntimeError, match="already registered"):
        dist.register_rendezvous_handler("mine", handler)
    dist.init_process_group("gloo", init_method="mine://here")
    assert dist.get_world_size() == 1
    dist.destroy_process_group()
    with pytest.raises(RuntimeError, match="No rendezvous handler"):
        dist.init_process_group("gloo", init_method="other://here")


def test_hooks_of_join(world):
    from taeda.distributed.algorithms.join import Join, Joinable, JoinHook

    ends = []

    class Hook(JoinHook):
        def post_hook(self, is_last_joiner):
            ends.append(is_last_joiner)

    class Mine(Joinable):
        join_device = taeda.device("cpu")
        join_process_group = world

        def join_hook(self, **kwargs):
            assert kwargs == {"a": 1}
            return Hook()

    with Join([Mine()], a=1):
        assert Join.notify_join_context(Mine()) is None
    assert ends == [True]
    with Join([Mine()], enable=False, a=1):
        pass
    assert ends == [True]


def test_synchronised_batch_norm(world):
    x = taeda.rand(4, 3)
    assert taeda.equal(nn.SyncBatchNorm(3, process_group=world)(x), nn.BatchNorm1d(3)(x))


def test_a_program_for_a_launcher(tmp_path):
    program = """
import os
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

dist.init_process_group("gloo")
rank, size = dist.get_rank(), dist.get_world_size()
torch.manual_seed(rank)
data = TensorDataset(torch.rand(32, 4), torch.rand(32, 1))
sampler = DistributedSampler(data, seed=1)
loader = DataLoader(data, batch_size=8, sampler=sampler)
model = DDP(torch.nn.Linear(4, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(2):
    sampler.set_epoch(epoch)
    for x, y in loader:
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
    dist.all_reduce(loss)
    if rank == 0:
        print(f"{loss.item() / size:.4f}")
dist.barrier()
dist.destroy_process_group()
"""
    path = tmp_path / "program.py"
    path.write_text(program)
    environment = {"RANK": "0", "WORLD_SIZE": "1", "LOCAL_RANK": "0", "MASTER_ADDR": "127.0.0.1"}

    def printed(*command):
        done = subprocess.run(
            [sys.executable, *command, str(path)],
            capture_output=True, text=True, env={**__import__("os").environ, **environment, "MASTER_PORT": "0"},
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout

    ours = printed("-m", "taeda.torch")
    assert len(ours.splitlines()) == 2
    pytest.importorskip("torch")
    assert ours == printed()


def test_checkpoints_of_the_hub(tmp_path):
    from taeda.distributed import checkpoint as dcp

    state = {"a": taeda.arange(6.0).reshape(2, 3), "b": taeda.ones(2, dtype=taeda.int64)}
    writer = dcp.HuggingFaceStorageWriter(tmp_path / "ours", {"a": 1, "b": 2})
    dcp.save(state, storage_writer=writer)

    def loaded(folder):
        fresh = {"a": taeda.zeros(2, 3), "b": taeda.zeros(2, dtype=taeda.int64)}
        dcp.load(fresh, storage_reader=dcp.HuggingFaceStorageReader(folder))
        return all(taeda.equal(fresh[name], state[name]) for name in state)

    assert loaded(tmp_path / "ours")
    dcp.save(state, checkpoint_id=tmp_path / "other", storage_writer=writer)
    assert loaded(tmp_path / "other")
    reader = dcp.HuggingFaceStorageReader(tmp_path / "ours")
    for bad, why in ({"c": taeda.ones(1)}, "Missing key"), ({"a": taeda.ones(1)}, "Size mismatch"):
        with pytest.raises(dcp.CheckpointException, match=why):
            dcp.load(bad, storage_reader=reader)
    with pytest.raises(dcp.CheckpointException, match="tensors alone"):
        dcp.save({"a": 3}, storage_writer=dcp.HuggingFaceStorageWriter(tmp_path / "bad"))
    torch = pytest.importorskip("torch")
    pytest.importorskip("safetensors")
    # In a process of its own: PyTorch's functions ask for a group.
    program = f"""
import torch, torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.hf_storage import HuggingFaceStorageReader, HuggingFaceStorageWriter
state = {{"a": torch.arange(6.0).reshape(2, 3), "b": torch.ones(2, dtype=torch.int64)}}
dcp.save(state, storage_writer=HuggingFaceStorageWriter({str(tmp_path / "theirs")!r}), no_dist=True)
fresh = {{"a": torch.zeros(2, 3), "b": torch.zeros(2, dtype=torch.int64)}}
dcp.load(fresh, storage_reader=HuggingFaceStorageReader({str(tmp_path / "ours")!r}), no_dist=True)
print(all(torch.equal(fresh[name], state[name]) for name in state))
"""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program], capture_output=True, text=True
    )
    assert done.stdout.strip().endswith("True"), done.stderr
    assert torch is not None and loaded(tmp_path / "theirs")


def test_modules_that_packages_import(tmp_path):
    program = """
import torch, torch.distributed as dist
from torch.distributed._composable.fsdp import fully_shard
from torch.distributed._functional_collectives import all_to_all_single_autograd, wait_tensor
from torch.distributed._tensor import DTensor
from torch.distributed.constants import default_pg_timeout
from torch.distributed.fsdp.fully_sharded_data_parallel import StateDictType, FullyShardedDataParallel
from torch.distributed.fsdp.sharded_grad_scaler import ShardedGradScaler
from torch.distributed.tensor._utils import compute_local_shape_and_global_offset
from torch.distributed.tensor.placement_types import _StridedShard

dist.init_process_group("gloo", rank=0, world_size=1, store=dist.HashStore())
mesh = dist.init_device_mesh("cpu", (1,))
x = torch.ones(2, requires_grad=True)
print(wait_tensor(all_to_all_single_autograd(x, None, None, mesh.get_group())).tolist())
print(compute_local_shape_and_global_offset((3, 2), mesh, [_StridedShard(0)]), default_pg_timeout)
print(ShardedGradScaler("cpu").get_scale(), DTensor.__name__, StateDictType.FULL_STATE_DICT)
"""
    path = tmp_path / "program.py"
    path.write_text(program)
    done = subprocess.run(
        [sys.executable, "-m", "taeda.torch", str(path)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "[1.0, 1.0]",
        "((3, 2), (0, 0)) 0:30:00",
        "65536.0 DTensor StateDictType.FULL_STATE_DICT",
    ]
