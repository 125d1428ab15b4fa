"""What programs choose of the caching allocator: ranges of addresses that grow, sizes, pools."""

from __future__ import annotations

import pytest

from tests.cuda.test_runtime import error, printed

EXPANDABLE = {"PYTORCH_ALLOC_CONF": "expandable_segments:True"}
# How much is reserved, and the segments with the sizes of their blocks, in MiB.
SEEN = """
def mib(n): return torch.empty(n << 20, dtype=torch.uint8, device="cuda")
def seen():
    segments = sorted(cuda.memory_snapshot(), key=lambda s: (s["segment_type"], s["address"]))
    return cuda.memory_reserved() >> 20, [[b["size"] >> 20 for b in s["blocks"]] for s in segments]
"""


def test_segments_grow_where_they_are(libraries):
    code = """
a = mib(15); first = a.data_ptr(); print(*seen())
b = mib(30); print(*seen(), b.data_ptr() - first == 15 << 20)
s = cuda.memory_snapshot()[0]
print(s["is_expandable"], s["total_size"] >> 20, s["allocated_size"] >> 20, s["segment_pool_id"], cuda.memory_stats()["segment.all.current"])
a.fill_(1); b.fill_(2); print(a[-1].item(), b[0].item(), b[-1].item())
del a, b
c = mib(58); print(*seen(), c.data_ptr() == first)  # no piece is too small for it
small = torch.ones(3, device="cuda"); print(*seen(), small.tolist())
del c, small
cuda.empty_cache(); print(*seen())
stats = cuda.memory_stats()
print(stats["segment.all.current"], stats["reserved_bytes.all.peak"] >> 20, cuda.mem_get_info()[0] == cuda.mem_get_info()[1])
print(torch.ones(3, device="cuda").tolist())
"""
    assert printed(libraries, SEEN + code, **EXPANDABLE) == [
        "20 [[15, 5]]",
        "60 [[15, 30, 15]] True",
        "True 60 45 (0, 0) 1",
        "1 2 2",
        "60 [[58, 2]] True",
        "62 [[58, 2], [0, 1]] [1.0, 1.0, 1.0]",
        "0 []",
        "0 62 True",
        "[1.0, 1.0, 1.0]",
    ]


def test_holes_are_filled(libraries):
    """What is free in the middle is given back by granules, and its addresses used again."""
    code = """
parts = [mib(n) for n in (15, 50, 15)]; at = [p.data_ptr() for p in parts]; print(*seen())
parts[2].fill_(3)
parts[1] = None
cuda.empty_cache(); print(*seen(), cuda.memory_stats()["segment.all.current"])
d = mib(12); print(*seen(), d.data_ptr() == at[1] + (25 << 20))
e = mib(30); print(*seen(), cuda.memory_stats()["segment.all.current"])
e.fill_(4); print(parts[2][0].item(), parts[2][-1].item(), e[-1].item())
"""
    lines = printed(libraries, SEEN + code, **EXPANDABLE)
    assert lines[0] == "80 [[15, 50, 15]]"
    assert lines[1] == "40 [[15, 5], [5, 15]] 2"
    assert lines[2] == "60 [[15, 12, 13], [5, 15]] False"
    assert lines[3] == "80 [[15, 12, 30, 8, 15]] 1"
    assert lines[4] == "3 3 4"


def test_growth_that_fails_changes_nothing(libraries):
    code = """
a = mib(100).fill_(1); before = seen()
free = cuda.mem_get_info()
def fails(n):
    try: mib(n)
    except cuda.OutOfMemoryError as e: return str(e)
print("tried to allocate 190.00 MiB" in fails(190), seen() == before, cuda.mem_get_info() == free)
print(cuda.memory_stats()["num_ooms"], a[-1].item())
b = mib(110); print(*seen()); del b
cuda.set_per_process_memory_fraction(0.5)
print("this process may take 128.00 MiB" in fails(130), *seen())
"""
    assert printed(libraries, SEEN + code, STUB_MEMORY=str(256 << 20), **EXPANDABLE) == [
        "True True True",
        "1 1",
        "220 [[100, 110, 10]]",
        "True 100 [[100]]",
    ]


def test_ranges_of_streams_graphs_and_devices(libraries):
    code = """
s = cuda.Stream()
x = mib(30)
with cuda.stream(s): y = mib(30)
print(*seen(), len({b["stream"] for b in cuda.memory_snapshot()}))
g = cuda.CUDAGraph()
v = torch.ones(4, device="cuda")
with cuda.graph(g): w = (v * 2).expand(1 << 20, 4).contiguous()
v.fill_(3); cuda.empty_cache(); g.replay(); print(w[-1].tolist())
there = torch.arange(4.0, device="cuda:1"); print((there.to("cuda:0") + w[0]).tolist())
big = torch.full((1 << 23,), 5.0, device="cuda:1"); print(big.to("cuda:0")[-1].item())
more = torch.full((1 << 24,), 6.0, device="cuda:1"); print(more.to("cuda:0")[-1].item())
del x, y; cuda.empty_cache()
del w; g.reset(); cuda.empty_cache(); print(*seen())
"""
    lines = printed(libraries, SEEN + code, **EXPANDABLE)
    assert lines[:5] == [
        "80 [[30, 10], [30, 10]] 2",
        "[6.0, 6.0, 6.0, 6.0]",
        "[6.0, 7.0, 8.0, 9.0]",
        "5.0",
        "6.0",
    ]
    assert lines[5].startswith("2 ")


def test_settings_are_changed_while_a_program_runs(libraries):
    code = """
change = cuda.memory._set_allocator_settings
a = mib(15)
change("expandable_segments:True"); b = mib(30)
change("expandable_segments:False"); c = mib(30)
print([(s["total_size"] >> 20, s["is_expandable"]) for s in sorted(cuda.memory_snapshot(), key=lambda s: (s["total_size"], s["is_expandable"]))])
del a, b, c; cuda.empty_cache(); print(*seen())
change("roundup_power2_divisions:4")
x = torch.empty(1100, dtype=torch.uint8, device="cuda"); y = mib(5); z = mib(9)
print(cuda.memory_allocated())
change("roundup_power2_divisions:[2:1,8:2,>:4]")
x = torch.empty(3000000, dtype=torch.uint8, device="cuda"); y = mib(5); z = mib(9)
print(cuda.memory_allocated() - sum(t.numel() for t in (y, z)))
"""
    assert printed(libraries, SEEN + code) == [
        "[(16, False), (30, False), (40, True)]",
        "0 []",
        str(1536 + (15 << 20)),
        str((3 << 20) + (1 << 20) + (1 << 20)),
    ]


def test_large_blocks_are_not_split(libraries):
    code = """
x = mib(50); at = x.data_ptr(); del x
y = mib(15); print(*seen(), y.data_ptr() == at)
z = mib(45); print(*seen(), z.data_ptr() == at)
"""
    settings = {"PYTORCH_CUDA_ALLOC_CONF": "max_split_size_mb:20"}
    assert printed(libraries, SEEN + code, **settings) == [
        "66 [[50], [15, 1]] False",
        "66 [[50], [15, 1]] True",
    ]


def test_unused_segments_are_given_back_above_a_threshold(libraries):
    code = """
for n in (50, 60): mib(n)
x = mib(70); print(cuda.memory_reserved() >> 20)
y = mib(70); print(cuda.memory_reserved() >> 20, cuda.memory_stats()["num_alloc_retries"])
"""
    settings = {"PYTORCH_ALLOC_CONF": " garbage_collection_threshold: 0.8 ,"}
    assert printed(libraries, SEEN + code, STUB_MEMORY=str(256 << 20), **settings) == [
        "180",
        "200 0",
    ]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ("expandable_segments:true", "expandable_segments must be True or False, got 'true'"),
        ("max_split_size_mb:10", "max_split_size_mb too small, must be >= 20"),
        ("garbage_collection_threshold:1.5", "set it in (0.0, 1.0), got '1.5'"),
        ("roundup_power2_divisions:3", "divisions must be powers of 2, got 3"),
        ("roundup_power2_divisions:[300:1]", "sizes must be powers of 2, got 300"),
        ("roundup_power2_divisions:[8:1,4:2]", "sizes must ascend"),
        ("backend:cudaMallocAsync", "backend must be native, got 'cudaMallocAsync'"),
        ("pinned_reserve_segment_size_mb:4", "unrecognized key 'pinned_reserve_segment_size_mb'"),
        ("expandable_segments", "must be key:value,..., got 'expandable_segments'"),
    ],
)
def test_what_settings_are_refused(libraries, settings, message):
    for code in (
        f"cuda.memory._set_allocator_settings({settings!r})",
        f"import os; os.environ['PYTORCH_ALLOC_CONF'] = {settings!r}; torch.ones(2, device='cuda')",
    ):
        last = error(libraries, code)
        assert last.startswith("ValueError") and message in last


POOLS = """
def pools(): return sorted((s["segment_pool_id"][1], s["total_size"] >> 20) for s in cuda.memory_snapshot())
"""


def test_memory_of_a_pool_is_kept_apart(libraries):
    code = """
pool = cuda.MemPool(); n = pool.id[1]
print(pool.id[0], pool.use_count(), pool.allocator)
with cuda.use_mem_pool(pool):
    x = torch.ones(1 << 20, device="cuda"); print(pool.use_count())
    made = []
    import threading; t = threading.Thread(target=lambda: made.append(torch.ones(2, device="cuda"))); t.start(); t.join()
y = torch.ones(1 << 20, device="cuda")
print(pool.use_count(), [(p - n, size) for p, size in pools()], len(pool.snapshot()), x.sum().item())
at = x.data_ptr(); del x
cuda.empty_cache()
z = torch.ones(1 << 20, device="cuda"); print(z.data_ptr() == at, len(pool.snapshot()))
with cuda.use_mem_pool(pool): a = torch.ones(1 << 20, device="cuda"); print(a.data_ptr() == at)
other = cuda.MemPool()
with cuda.use_mem_pool(pool):
    with cuda.use_mem_pool(other, "cuda:0"): b = torch.ones(3, device="cuda")
    c = torch.ones(3, device="cuda")
print(len(other.snapshot()), len(pool.snapshot()), cuda.current_stream() == cuda.default_stream())
reserved = cuda.memory_reserved(); del a, b, c, pool; import gc; gc.collect()
print(reserved - cuda.memory_reserved() >> 20)
"""
    assert printed(libraries, POOLS + code) == [
        "0 1 None",
        "2",
        "1 [(-1, 2), (-1, 20), (0, 20)] 1 4194304.0".replace("4194304", "1048576"),
        "False 1",
        "True",
        "1 2 True",
        "22",
    ]


def test_tensors_outlive_their_pool(libraries):
    code = """
pool = cuda.MemPool()
with cuda.use_mem_pool(pool): x = torch.full((1 << 20,), 2.0, device="cuda")
del pool
y = torch.full((1 << 20,), 3.0, device="cuda"); print(x.sum().item(), cuda.memory_reserved() >> 20)
del x; cuda.empty_cache(); print(cuda.memory_reserved() >> 20)
"""
    assert printed(libraries, code) == ["2097152.0 42", "20"]


def test_graphs_take_memory_from_a_pool(libraries):
    code = """
pool, g, h = cuda.MemPool(), cuda.CUDAGraph(), cuda.CUDAGraph()
x = torch.ones(4, device="cuda")
with cuda.graph(g, pool=pool.id): y = x + 1; del y
with cuda.graph(h, pool=pool.id): z = x + 2
print(pool.use_count(), len(pool.snapshot()), g.pool() == pool.id)
h.replay(); print(z.tolist())
g.reset(), h.reset(); print(pool.use_count())
"""
    assert printed(libraries, code) == ["3 1 True", "[3.0, 3.0, 3.0, 3.0]", "1"]


def test_what_pools_allow(libraries):
    code = """
spare, whole = cuda.MemPool(use_on_oom=True), cuda.MemPool(no_split=True)
with cuda.use_mem_pool(whole): a = mib(5); b = mib(5)
print([len(s["blocks"]) for s in whole.snapshot()])
with cuda.use_mem_pool(spare): c = mib(150)
at = c.data_ptr(); del c
d = mib(120); print(d.data_ptr() == at)
try: mib(120)
except cuda.OutOfMemoryError: print("full")
del d; print([b["state"] for b in spare.snapshot()[0]["blocks"]])
"""
    lines = printed(libraries, SEEN + code, STUB_MEMORY=str(256 << 20))
    assert lines == ["[1, 1]", "True", "full", "['inactive']"]


@pytest.mark.parametrize("code", ["cuda.MemPool(3)", "cuda.use_mem_pool((0, 1)).__enter__()"])
def test_what_is_no_pool(libraries, code):
    assert error(libraries, code).startswith("TypeError: cuda.")


def test_old_names_and_trees_of_numbers(libraries):
    code = """
import warnings
x = torch.ones(1 << 20, device="cuda")
print(cuda.memory_snapshot()[0]["blocks"][0]["frames"])
print(cuda.memory_stats_as_nested_dict()["allocated_bytes"]["all"]["current"] == cuda.memory_allocated())
print(len(cuda.memory_summary(abbreviated=True).splitlines()[0].split()), len(cuda.memory_summary().splitlines()[0].split()))
print(cuda.get_allocator_backend(), cuda.get_per_process_memory_fraction(1))
cuda.set_per_process_memory_fraction(0.5, 1); print(cuda.get_per_process_memory_fraction("cuda:1"))
with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always")
    print(cuda.memory_cached() == cuda.memory_reserved(), cuda.max_memory_cached() >> 20)
    cuda.reset_max_memory_allocated(), cuda.reset_max_memory_cached(0)
print(len(seen), seen[0].category.__name__, seen[0].message)
from taeda.cuda import graphs, memory, random, streams
print(memory.memory_cached is cuda.memory_cached, random.seed is cuda.seed, graphs.graph is cuda.graph)
print(streams.Stream is cuda.Stream, streams.ExternalStream is cuda.ExternalStream, isinstance(streams.Event(), cuda.Event))
"""
    assert printed(libraries, code) == [
        "[]",
        "True",
        "4 6",
        "native 1.0",
        "0.5",
        "True 20",
        "4 FutureWarning cuda.memory_cached is deprecated; use cuda.memory_reserved",
        "True True True",
        "True True True",
    ]


def test_memory_without_a_tensor(libraries):
    code = """
s = cuda.Stream()
p = cuda.caching_allocator_alloc(1000); q = cuda.caching_allocator_alloc(5000, "cuda:1", s)
print(cuda.memory_allocated(0), cuda.memory_allocated(1))
cuda.caching_allocator_delete(p); cuda.caching_allocator_delete(q)
print(cuda.memory_allocated(0), cuda.memory_allocated(1))
try: cuda.caching_allocator_delete(p)
except RuntimeError as e: print("there is no such memory" in str(e))
for arguments in ({"size": 3, "stream": "s"}, {"size": "3"}, {"size": -1}):
    try: cuda.caching_allocator_alloc(**arguments)
    except (TypeError, ValueError) as e: print(e)
try: cuda.caching_allocator_delete("p")
except RuntimeError as e: print(e)
try: cuda.memory._record_memory_history(max_entries=-1)
except ValueError as e: print(e)
"""
    assert printed(libraries, code) == [
        "1024 5120",
        "0 0",
        "True",
        "cuda.caching_allocator_alloc: stream must be a Stream or an int, got str",
        "cuda.caching_allocator_alloc: size must be an int, got str",
        "cuda.caching_allocator_alloc: size must not be negative, got -1",
        "cuda.caching_allocator_delete: there is no such memory at 'p'",
        "cuda.memory._record_memory_history: max_entries must not be negative, got -1",
    ]


HISTORY = """
memory = cuda.memory
def made_here(): return torch.empty(1 << 20, device="cuda")
def names(frames): return [f["name"] for f in frames]
"""


def test_what_is_noted_of_memory(libraries, tmp_path):
    code = f"""
import pickle
early = made_here()
memory._record_memory_history()
x = made_here()
taken = memory._snapshot()
blocks = [b for s in taken["segments"] for b in s["blocks"] if b["state"] == "active_allocated"]
print([names(b["frames"])[:1] for b in sorted(blocks, key=lambda b: len(b["frames"]))])
frame = blocks[-1]["frames"] or blocks[0]["frames"]; print(frame[0]["filename"], type(frame[0]["line"]).__name__, "early" in taken)
del x, early; cuda.empty_cache()
trace = memory._snapshot()["device_traces"][0]
print([e["action"] for e in trace], names(trace[0]["frames"]), trace[1]["size"] >> 20, trace[0]["time_us"] > 1.7e15)
memory._record_memory_history(max_entries=1, context="alloc"); x = made_here(); del x
print([(e["action"], e["frames"]) for e in memory._snapshot()["device_traces"][0]])
memory._record_memory_history("state", clear_history=True); x = made_here()
memory._dump_snapshot({str(tmp_path / "s.pickle")!r})
read = pickle.load(open({str(tmp_path / "s.pickle")!r}, "rb"))
print(read["device_traces"], names(read["segments"][0]["blocks"][0]["frames"]), read["allocator_settings"]["max_split_size"])
memory._record_memory_history(None); y = made_here()
print(sorted(names(b["frames"]) for s in memory._snapshot()["segments"] for b in s["blocks"]))
for wrong in (dict(enabled="x"), dict(context="x"), dict(stacks="all")):
    try: memory._record_memory_history(**wrong)
    except ValueError as e: print(str(e).partition(" must")[0])
memory._record_memory_history()  # still on when the program ends
z = made_here()
"""
    lines = printed(libraries, HISTORY + code)
    assert lines[0] == "[[], ['made_here']]"
    assert lines[1] == "<string> int False"
    freed = ["free_requested", "free_completed"] * 2
    assert lines[2] == f"{['alloc', *freed, 'segment_free']} ['made_here', '<module>'] 4 True"
    assert lines[3] == "[('free_completed', [])]"
    assert lines[4] == "[[], []] ['made_here', '<module>'] -1"
    assert lines[5] == "[[], [], ['made_here', '<module>']]"
    assert lines[6:] == [
        f"cuda.memory._record_memory_history: {name}" for name in ("enabled", "context", "stacks")
    ]


def test_what_is_noted_of_ranges_and_of_failures(libraries):
    code = """
memory._record_memory_history(context=None)
x = made_here(); del x; cuda.empty_cache()
try: torch.empty(1 << 40, device="cuda")
except cuda.OutOfMemoryError: pass
print([(e["action"], e["frames"]) for e in memory._snapshot()["device_traces"][0] if e["action"] not in ("alloc", "free_requested")])
"""
    actions = ["segment_map", "free_completed", "segment_unmap", "oom"]
    assert printed(libraries, HISTORY + code, **EXPANDABLE) == [str([(a, []) for a in actions])]


def test_history_of_threads(libraries):
    """Backward passes and other threads ask for memory, too."""
    code = """
import threading
memory._record_memory_history()
def work():
    for _ in range(20):
        w = torch.ones(64, 64, device="cuda", requires_grad=True)
        (w @ w).sum().backward()
threads = [threading.Thread(target=work) for _ in range(4)]
for t in threads: t.start()
for t in threads: t.join()
trace = memory._snapshot()["device_traces"][0]
print(len(trace) > 100, any("work" in names(e["frames"]) for e in trace))
"""
    assert printed(libraries, HISTORY + code) == ["True True"]


def test_without_a_library(libraries):
    for name in ("_snapshot", "_record_memory_history"):
        last = error(libraries, f"cuda.memory.{name}()", TAEDA_CUDA_LIBRARY="")
        assert last.startswith(f"AssertionError: cuda.memory.{name}")
