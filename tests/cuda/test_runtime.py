"""The runtime of CUDA on a stub of the driver: what there is, memory, streams, events, errors."""

from __future__ import annotations

import pytest

from tests.cuda.shim import run

START = "import taeda as torch; cuda = torch.cuda; F = torch.nn.functional\n"


def printed(libraries, code: str, **more: str) -> list[str]:
    done = run(libraries, "-c", START + code, **more)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout.splitlines()


def error(libraries, code: str, **more: str) -> str:
    """The last line of the traceback that the code ends with."""
    done = run(libraries, "-c", START + code, **more)
    assert done.returncode == 1, done.stdout + done.stderr
    return done.stderr.splitlines()[-1]


def test_devices(libraries):
    code = """
print(cuda.is_available(), cuda.device_count(), cuda.current_device())
print(cuda.get_device_name(1), cuda.get_device_capability("cuda:0"), cuda.can_device_access_peer(0, 1))
print(cuda.get_device_properties().total_memory == 2**32, cuda.get_device_properties().warp_size)
with cuda.device(1):
    x = torch.ones(2, device="cuda")
    print(x.device, cuda.current_device())
print(torch.ones(2, device="cuda").device, (x + 1).device, x.to("cuda:0").device, (x + 1).tolist())
cuda.set_device("cuda:1")
print(torch.zeros(2).cuda().device, torch.nn.Linear(2, 2).cuda().weight.device)
print(x.is_cuda, x.get_device(), torch.get_device_module("cuda") is cuda)
"""
    assert printed(libraries, code) == [
        "True 2 0",
        "Stub 1 (9, 0) True",
        "True 32",
        "cuda:1 1",
        "cuda:0 cuda:1 cuda:0 [2.0, 2.0]",
        "cuda:1 cuda:1",
        "True 1 True",
    ]


def test_what_it_lacks_is_missing_by_name(libraries):
    code = """
from taeda.cuda import *
print([n for n in ("change_current_allocator", "current_blas_handle", "GreenContext") if hasattr(cuda, n)])
print(is_tf32_supported(), set(cuda.__all__) <= set(vars(cuda)))
"""
    assert printed(libraries, code) == ["[]", "True True"]


def test_memory_is_kept_and_used_again(libraries):
    code = """
def now(): return cuda.memory_allocated() >> 10, cuda.memory_reserved() >> 20
x = torch.empty(1 << 18, device="cuda"); first = x.data_ptr(); print(*now())
y = torch.empty(1 << 22, device="cuda"); print(*now())
z = torch.empty(3 << 22, device="cuda"); print(*now())
del x, y
print(*now(), torch.empty(1 << 17, device="cuda").data_ptr() == first)
cuda.empty_cache(); print(*now())
print(cuda.max_memory_allocated() >> 10, cuda.memory_stats()["segment.all.freed"])
cuda.reset_peak_memory_stats(); print(cuda.max_memory_allocated() >> 10)
segments = cuda.memory_snapshot()
print(len(segments), segments[0]["total_size"] >> 20, segments[0]["blocks"][0]["state"])
print("allocated_bytes" in cuda.memory_summary())
"""
    assert printed(libraries, code) == [
        "1024 2",
        "17408 18",
        "66560 66",
        "49152 66 True",
        "49152 48",
        "66560 2",
        "49152",
        "1 48 active_allocated",
        "True",
    ]


def test_neighbouring_blocks_become_one(libraries):
    code = """
parts = [torch.empty(1 << 20, dtype=torch.uint8, device="cuda") for _ in range(2)]
print(cuda.memory_reserved() >> 20, [len(s["blocks"]) for s in cuda.memory_snapshot()])
del parts[0]; del parts[0]
print([len(s["blocks"]) for s in cuda.memory_snapshot()])
"""
    assert printed(libraries, code) == ["2 [2]", "[1]"]


def test_out_of_memory_says_what_there_is(libraries):
    code = """
x = torch.ones(1 << 20, device="cuda")
torch.empty(1 << 25, device="cuda")
try: torch.empty(1 << 30, device="cuda")
except cuda.OutOfMemoryError as e: print(e)
print(cuda.memory_stats()["num_ooms"], x.sum().item())
cuda.set_per_process_memory_fraction(0.5)
try: torch.empty(1 << 27, device="cuda")
except RuntimeError as e: print(e)
"""
    lines = printed(libraries, code, STUB_MEMORY=str(256 << 20))
    assert (
        "tried to allocate 4.00 GiB on cuda:0, of whose 256.00 MiB 236.00 MiB are free" in lines[0]
    )
    assert "Tensors take 4.00 MiB, and 16.00 MiB are cached" in lines[0]
    assert lines[1] == "1 1048576.0"
    assert "(this process may take 128.00 MiB)" in lines[2]


def test_cached_memory_is_given_back_before_it_is_out(libraries):
    code = """
for n in (100, 150, 200):
    torch.empty(n << 20, dtype=torch.uint8, device="cuda")
print(cuda.memory_reserved() >> 20, cuda.memory_stats()["num_alloc_retries"])
"""
    assert printed(libraries, code, STUB_MEMORY=str(256 << 20)) == ["200 1"]


def test_streams_and_events(libraries):
    code = """
s, other = cuda.Stream(), cuda.Stream("cuda:1", priority=-1)
start, end = cuda.Event(enable_timing=True), cuda.Event(enable_timing=True)
print(cuda.current_stream() == cuda.default_stream(), s == cuda.Stream(), len({s, s}))
with cuda.stream(s):
    start.record()
    x = torch.ones(1000, device="cuda") * 2
    end.record()
    print(cuda.current_stream() == s)
print(end.query(), s.query())
with cuda.stream(other):
    print(torch.ones(1, device="cuda").device)
print(cuda.current_device(), cuda.current_stream() == cuda.default_stream())
cuda.current_stream().wait_stream(s)
print(x.sum().item(), s.query(), end.query(), start.elapsed_time(end))
"""
    assert printed(libraries, code) == [
        "True False 1",
        "True",
        "False False",
        "cuda:1",
        "0 True",
        "2000.0 True True 0.5",
    ]


def test_threads_have_streams_of_their_own(libraries):
    code = """
import threading
s = cuda.Stream()
cuda.set_stream(s)
there = []
thread = threading.Thread(target=lambda: there.append(cuda.current_stream()))
thread.start(); thread.join()
print(cuda.current_stream() == s, there[0] == cuda.default_stream())
"""
    assert printed(libraries, code) == ["True True"]


def test_streams_of_other_libraries(libraries):
    code = """
s = cuda.Stream()
e = cuda.ExternalStream(s.cuda_stream)
print(e == s, isinstance(e, cuda.Stream), cuda.get_stream_from_external(s.cuda_stream, "cuda:0") == s)
with cuda.stream(e): x = torch.ones(2, device="cuda") + 1; print(cuda.current_stream() == s)
e.synchronize(); print(x.tolist())
"""
    assert printed(libraries, code) == ["True True True", "True", "[2.0, 2.0]"]


def test_training_waits_for_nothing(libraries):
    """A step of a model with embeddings, attention, convolution, pooling, norms and dropout."""
    code = """
nn = torch.nn
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.norm = nn.Embedding(20, 16), nn.LayerNorm(16)
        self.qkv, self.conv = nn.Linear(16, 48), nn.Conv1d(16, 8, 3, padding=1)
        self.batch, self.drop, self.out = nn.BatchNorm1d(8), nn.Dropout(0.1), nn.Linear(8, 5)
    def forward(self, x):
        h = self.norm(self.words(x))
        q, k, v = self.qkv(h).view(x.shape[0], x.shape[1], 3, 2, 8).permute(2, 0, 3, 1, 4)
        h = h + F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2)
        h = F.max_pool1d(self.batch(self.conv(h.transpose(1, 2))).relu(), 2)
        return self.out(self.drop(F.gelu(h)).mean(2))
model = Model().to("cuda")
o = torch.optim.AdamW(model.parameters(), lr=0.01)
x, y = torch.arange(40).reshape(4, 10).remainder(20).to("cuda"), torch.tensor([0, 1, 2, 3]).to("cuda")
def step():
    o.zero_grad()
    loss = F.cross_entropy(model(x), y)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    o.step()
    return loss
step()
cuda.set_sync_debug_mode("error")
loss = step()
try: loss.item()
except RuntimeError as e: print(e)
print(cuda.get_sync_debug_mode())
cuda.set_sync_debug_mode("warn")
import warnings
with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always")
    loss.item(), x.cpu()
print(len(seen), seen[0].message)
cuda.set_sync_debug_mode(0)
loss.item()
try: cuda.set_sync_debug_mode("loud")
except RuntimeError as e: print(e)
"""
    lines = printed(libraries, code)
    assert lines[:2] == ["called a synchronizing CUDA operation", "2"]
    assert lines[2] == "2 called a synchronizing CUDA operation"
    assert "got 'loud'" in lines[3]


def test_graphs(libraries):
    """What is recorded is done by each replay, on what its inputs are then."""
    code = """
model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 2)).to("cuda")
twin = copy.deepcopy(model)
optimizers = [torch.optim.SGD(m.parameters(), lr=0.1, momentum=0.9) for m in (model, twin)]
x = torch.randn(5, 3, device="cpu").to("cuda")
def step(which, x):
    m, o = ((model, optimizers[0]), (twin, optimizers[1]))[which]
    o.zero_grad(set_to_none=False)
    loss = (m(x) ** 2).mean()
    loss.backward()
    o.step()
    return loss
for _ in range(2): step(0, x); step(1, x)
g = cuda.CUDAGraph()
with cuda.graph(g):
    loss = step(0, x)
    print(cuda.is_current_stream_capturing())
print(cuda.is_current_stream_capturing(), cuda.current_stream() == cuda.default_stream())
for i in range(3):
    x.copy_(torch.randn(5, 3, device="cpu"))
    cuda.empty_cache()  # the graph's memory stays
    g.replay()
    expected = step(1, x)
    torch.testing.assert_close(loss, expected)
for p, q in zip(model.parameters(), twin.parameters()): torch.testing.assert_close(p, q)
before = cuda.memory_reserved()
del loss
g.reset(); cuda.empty_cache()
print(cuda.memory_reserved() < before)
def fails(f):
    try: f()
    except RuntimeError as e: return str(e)
print(fails(g.replay))
print(fails(g.capture_begin))
def count():
    p = torch.ones(2, device="cuda").requires_grad_()
    p.grad = torch.ones_like(p)
    o = torch.optim.Adam([p])
    o.step()
    with cuda.graph(g): o.step()
print(fails(count))
def wait():
    with cuda.graph(cuda.CUDAGraph()): x.sum().item()
print("waiting" in fails(wait), cuda.current_stream() == cuda.default_stream())
print((x * 0 + 1).sum().item())
"""
    lines = printed(libraries, "import copy" + code)
    assert lines[:3] == ["True", "False True", "True"]
    assert lines[3] == "cuda.CUDAGraph.replay: nothing has been recorded"
    assert "the default stream cannot be recorded" in lines[4]
    assert "Adam.step: a graph cannot record steps that are counted" in lines[5]
    assert lines[6:] == ["True True", "15.0"]


INDEXING = """
x, rows = torch.arange(12.0, device="cuda").reshape(4, 3), torch.tensor([0, 9], device="cuda")
calls = {
    "nll_loss": lambda: F.nll_loss(x[:2], rows),
    "index": lambda: x[rows],
    "take": lambda: x.take(100 * rows),
    "index_select": lambda: x.index_select(0, rows),
    "index_add": lambda: x.index_add(0, rows, x[:2]),
    "index_copy": lambda: x.index_copy(0, rows, x[:2]),
    "index_fill": lambda: x.index_fill(0, rows, 1.0),
    "index_put": lambda: x.clone().index_put_((rows,), x[:2]),
    "gather": lambda: x.gather(0, rows[:, None]),
    "scatter": lambda: x.scatter(0, rows[:, None], x),
    "embedding": lambda: F.embedding(rows, x),
    "embedding_bag": lambda: F.embedding_bag(rows[None], x, mode="sum"),
    "max_unpool": lambda: F.max_unpool1d(x[None, :2, :1], rows[None, :, None], 2),
}
for name, call in calls.items():
    try:
        call()
        print(name, "called")
        cuda.synchronize()
    except (IndexError, RuntimeError) as e: print(name, type(e).__name__, e)
print(x.sum().item())
"""


def test_index_out_of_range_is_found_by_who_waits(libraries):
    lines = printed(libraries, INDEXING)
    called, told = lines[:-1:2], lines[1:-1:2]
    assert all(line.endswith(" called") for line in called) and len(called) == 13
    for line in told:
        assert " IndexError cuda: an operation before this one was given the index 9" in line
    assert lines[-1] == "66.0"


def test_index_out_of_range_is_named_with_its_op_where_kernels_are_waited_for(libraries):
    lines = printed(libraries, INDEXING, CUDA_LAUNCH_BLOCKING="1")
    assert len(lines) == 14 and not any(line.endswith(" called") for line in lines)
    assert sum("cuda: an operation before" in line for line in lines) == 1  # nll_loss
    assert lines[-1] == "66.0"


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"STUB_DEVICES": "0"}, "the NVIDIA driver finds no GPU"),
        ({"STUB_INIT": "999"}, "the NVIDIA driver cannot be started: an error of the stub (999)"),
        ({"STUB_VERSION": "12040"}, "is for CUDA 12.4, but 13.0 or newer is needed: please update"),
        ({"LD_LIBRARY_PATH": "/nonexistent"}, "there is no NVIDIA driver (libcuda.so.1:"),
    ],
)
def test_why_there_is_no_device(libraries, settings, why):
    code = "print(cuda.is_available(), cuda.device_count(), cuda.memory_allocated())"
    assert printed(libraries, code, **settings) == ["False 0 0"]
    for use in ("torch.ones(2, device='cuda')", "cuda.current_device()", "torch.ones(2).cuda()"):
        message = error(libraries, use, **settings)
        assert message.startswith("RuntimeError") and why in message


def test_after_fork(libraries):
    code = """
import os, sys
x = torch.ones(2, device="cuda")
sys.stdout.flush()
if os.fork() == 0:
    print(cuda.is_available())
    try: x + 1
    except RuntimeError as e: print(e)
    sys.stdout.flush()
    os._exit(0)
os.wait()
print((x + 1).tolist())
"""
    lines = printed(libraries, code)
    assert lines[0] == "False" and "forked from one that had used CUDA" in lines[1]
    assert "'spawn'" in lines[1] and lines[2] == "[2.0, 2.0]"


def test_mixed_devices(libraries):
    message = error(libraries, "torch.ones(2, device='cuda:0') + torch.ones(2, device='cuda:1')")
    assert "cuda:0" in message and "cuda:1" in message
    message = error(libraries, "torch.ones(2, device='cuda:2')")
    assert "there are 2 devices of its kind" in message


def test_a_missing_kernel_is_named(libraries):
    code = "x = torch.linalg.lstsq(torch.eye(1, device='cuda'), torch.ones(1, 1, device='cuda'), driver='gelsd')"
    message = error(libraries, code)
    assert "linalg_lstsq(): device 'cuda' has no kernel for it" in message
    code = f"torch.set_fallback('cpu'); {code}; print(x.solution.tolist(), x.solution.device)"
    assert printed(libraries, code) == ["[[1.0]] cuda:0"]


def test_what_the_cpu_does(libraries):
    code = """
import warnings; warnings.simplefilter("error")
a = torch.tensor([[2., 1], [0, 3]], device="cuda", requires_grad=True)
values, vectors = torch.linalg.eig(a)
print(values.device, vectors.device, sorted(values.real.tolist()))
torch.linalg.eigvals(a).real.sum().backward(); print(a.grad.device, a.grad.cpu().round(decimals=4).tolist())
s = torch.tensor([[2., 1], [1, -3]], device="cuda")
x = torch.linalg.ldl_solve(*torch.linalg.ldl_factor(s), s); print(x.device, x.cpu().allclose(torch.eye(2), atol=1e-6))
"""
    assert printed(libraries, code) == [
        "cuda:0 cuda:0 [2.0, 3.0]",
        "cuda:0 [[1.0, 0.0], [0.0, 1.0]]",
        "cuda:0 True",
    ]


def test_files_remember_the_device(libraries, tmp_path):
    code = f"""
path = {str(tmp_path / "x.pt")!r}
torch.save(torch.arange(3.0, device="cuda:1"), path)
print(torch.load(path).device, torch.load(path, map_location="cpu"), torch.load(path, map_location={{"cuda:1": "cuda:0"}}).device)
import copy, pickle
print(pickle.loads(pickle.dumps(torch.ones(2, device="cuda"))).device, copy.deepcopy(torch.ones(2, device="cuda:1")).device)
"""
    assert printed(libraries, code) == ["cuda:1 tensor([0., 1., 2.]) cuda:0", "cuda:0 cuda:1"]


def test_a_module_trains(libraries):
    code = """
torch.manual_seed(0)
x, t = torch.randn(32, 10), torch.randint(0, 3, (32,))
def train(device):
    torch.manual_seed(1)
    net = torch.nn.Sequential(torch.nn.Linear(10, 20), torch.nn.ReLU(), torch.nn.LayerNorm(20), torch.nn.Linear(20, 3)).to(device)
    o = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    for _ in range(5):
        loss = F.cross_entropy(net(x.to(device)), t.to(device))
        o.zero_grad(); loss.backward(); o.step()
    return loss.item()
a, b = train("cpu"), train("cuda")
print(abs(a - b) < 1e-5, b < 1)
"""
    assert printed(libraries, code) == ["True True"]


def test_other_devices_may_be_registered_beside_it(libraries, tmp_path):
    from tests.guard.plugin import ROOT, compiled

    source = ROOT / "docs/examples/device_package/taeda_example_device/device.cpp"
    guard = compiled(source, tmp_path / "mine.so")
    code = f"torch.register_device('mine', {str(guard)!r}); print((torch.ones(2, device='cuda') + 1).to('mine').device)"
    assert printed(libraries, code) == ["mine:0"]


def test_types_of_tensors(libraries):
    code = """
x = cuda.FloatTensor(2, 3)
print(x.device, x.dtype, tuple(x.shape), x.type(), cuda.LongTensor([1, 2]).tolist())
print(isinstance(x, cuda.FloatTensor), isinstance(x, torch.FloatTensor), isinstance(x.cpu(), torch.FloatTensor), isinstance(x, cuda.HalfTensor))
print(x.type("torch.cuda.HalfTensor").type(), x.type(torch.FloatTensor).device, torch.ones(2).type(cuda.IntTensor).type(), x.type(torch.float64).type())
y = torch.ones(2, device="cuda:1")
print(y.type(cuda.DoubleTensor).device)
torch.set_default_tensor_type(cuda.DoubleTensor)
print(torch.zeros(2).type())
torch.set_default_tensor_type(torch.FloatTensor)
print(torch.zeros(2).type())
"""
    assert printed(libraries, code) == [
        "cuda:0 taeda.float32 (2, 3) taeda.cuda.FloatTensor [1, 2]",
        "True False True False",
        "taeda.cuda.HalfTensor cpu taeda.cuda.IntTensor taeda.cuda.DoubleTensor",
        "cuda:1",
        "taeda.cuda.DoubleTensor",
        "taeda.FloatTensor",
    ]


def test_the_accelerator_is_cuda(libraries):
    code = """
a = torch.accelerator
print(a.is_available(), a.device_count(), a.current_accelerator(), a.current_device_index())
with a.device_index(1): print(a.current_device_index(), torch.ones(1, device="cuda").device)
a.set_device_index("cuda:1"); a.synchronize(); print(a.current_device_idx(), a.current_stream() == cuda.current_stream())
x = torch.ones(1 << 20, device="cuda")
print(a.memory_allocated() == cuda.memory_allocated() > 0, a.get_memory_info() == cuda.mem_get_info(), a.memory_stats(0)["num_ooms"])
a.empty_cache(), a.empty_host_cache(); print(torch.bfloat16 in a.get_device_capability()["supported_dtypes"])
"""
    assert printed(libraries, code) == [
        "True 2 cuda 0",
        "1 cuda:1",
        "1 True",
        "True True 0",
        "True",
    ]
    code = "a = torch.accelerator; print(a.is_available(), a.device_count(), a.current_accelerator(True))"
    assert printed(libraries, code, STUB_DEVICES="0") == ["False 0 None"]
