"""Pinned memory, copies that are not waited for, and memory that several streams use."""

from __future__ import annotations

import pytest

from tests.cuda.test_runtime import error, printed

# The stub of the driver does nothing before somebody waits: what a copy has not brought is old.


def test_pinned_tensors(libraries):
    code = """
x = torch.arange(6.0).reshape(2, 3).t()
y = x.pin_memory()
print(x.is_pinned(), y.is_pinned(), y.pin_memory() is y, y.stride(), y.tolist() == x.tolist())
print(y[1:].is_pinned(), (y + 1).is_pinned(), y.cuda().is_pinned(), y.device, y.untyped_storage().nbytes())
made = [torch.zeros(3, pin_memory=True), torch.empty(2, 2, pin_memory=True), torch.ones_like(x, pin_memory=True),
        torch.tensor([1, 2], pin_memory=True), torch.arange(4, pin_memory=True), torch.randn(2, pin_memory=True), x.new_zeros(2, pin_memory=True)]
print(all(m.is_pinned() for m in made), made[3].tolist(), made[4].tolist(), made[0].tolist())
print(torch.zeros(2, pin_memory=False).is_pinned(), torch.zeros(2).is_pinned())
w = torch.ones(2, requires_grad=True); w.pin_memory().sum().backward(); print(w.grad.tolist())
print(torch.ops.aten._pin_memory.default(x).is_pinned())
packed = torch.nn.utils.rnn.pack_sequence([torch.ones(2), torch.ones(3)], enforce_sorted=False)
pinned = packed.pin_memory()
print(packed.is_pinned(), pinned.is_pinned(), pinned.sorted_indices.is_pinned(), pinned.data.tolist() == packed.data.tolist())
"""
    assert printed(libraries, code) == [
        "False True True (1, 3) True",
        "True False False cpu 24",
        "True [1, 2] [0, 1, 2, 3] [0.0, 0.0, 0.0]",
        "False False",
        "[1.0, 1.0]",
        "True",
        "False True True True",
    ]


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("torch.zeros(2, device='cuda', pin_memory=True)", "only dense CPU tensors can be pinned"),
        ("torch.zeros(2, device='cuda').pin_memory()", "only dense CPU tensors can be pinned"),
        ("torch.zeros(2).pin_memory('mps')", "device must be a cuda device"),
        ("torch.zeros(2).record_stream(cuda.Stream())", "cpu is no cuda device"),
    ],
)
def test_errors(libraries, code, message):
    assert message in error(libraries, code)


def test_no_device_to_pin_for(libraries):
    message = error(libraries, "torch.zeros(2, pin_memory=True)", STUB_DEVICES="0")
    assert "the NVIDIA driver finds no GPU" in message
    code = "print(torch.zeros(2).is_pinned(), cuda.host_memory_stats()['allocations.current'])"
    assert printed(libraries, code, STUB_DEVICES="0") == ["False 0"]


def test_copies_that_are_not_waited_for(libraries):
    code = """
cuda.set_sync_debug_mode("error")
x = torch.arange(4.0).pin_memory()
y = x.to("cuda", non_blocking=True)
x.add_(10)  # too early: the copy reads it afterwards
z = y.to("cpu", non_blocking=True)
print(z.is_pinned(), z.tolist() == [10.0, 11.0, 12.0, 13.0])
half = torch.zeros(4, dtype=torch.float16, pin_memory=True)
half.copy_(y, non_blocking=True)  # converted before it leaves the device
y.copy_(torch.ones(4).pin_memory(), non_blocking=True)
print(half.tolist())
cuda.current_stream().synchronize()
print(z.tolist(), half.tolist())
try: y.copy_(torch.ones(4), non_blocking=True)
except RuntimeError as e: print(e)  # pageable memory is waited for
cuda.set_sync_debug_mode(0)
print(y.tolist(), y.cpu().is_pinned())
model = torch.nn.Linear(2, 2)
print(model.to("cuda", non_blocking=True).weight.device, torch.ones(1).to(torch.float64, non_blocking=True).dtype)
"""
    assert printed(libraries, code) == [
        "True False",
        "[0.0, 0.0, 0.0, 0.0]",
        "[10.0, 11.0, 12.0, 13.0] [10.0, 11.0, 12.0, 13.0]",
        "copy_(): called a synchronizing CUDA operation",
        "[1.0, 1.0, 1.0, 1.0] False",
        "cuda:0 torch.float64".replace("torch", "taeda"),
    ]


def test_pinned_memory_is_not_reused_before_it_is_read(libraries):
    code = """
s = cuda.Stream()
def send(value):
    x = torch.full((1024,), value).pin_memory()
    with cuda.stream(s): return x.data_ptr(), x.to("cuda", non_blocking=True)
a, first = send(1.0)
b, second = send(2.0)
s.synchronize()
c, third = send(3.0)
print(a != b, c in (a, b), [t[0].item() for t in (first, second)])
s.synchronize()
print(third[5].item())
stats = cuda.host_memory_stats()
print(stats["allocations.current"], stats["allocations.allocated"], stats["segments.current"])
print(cuda.host_memory_stats_as_nested_dict()["allocated_bytes"]["peak"])
torch.accelerator.empty_host_cache(); print(cuda.host_memory_stats()["segments.current"])
cuda.reset_peak_host_memory_stats(); print(cuda.host_memory_stats()["allocated_bytes.peak"])
"""
    assert printed(libraries, code) == ["True True [1.0, 2.0]", "3.0", "0 3 2", "4096", "0", "0"]


def test_copies_between_devices_wait_for_nothing(libraries):
    code = """
cuda.set_sync_debug_mode("error")
x = torch.arange(3.0, device="cuda:0") + 1  # made in pinned memory
y = x.to("cuda:1") * 2
z = y.to("cuda:0") + x
w = torch.zeros(3, device="cuda:1"); w.copy_(z)
print(z.device)
cuda.set_sync_debug_mode(0)
print(y.tolist(), z.tolist(), w.tolist())
"""
    assert printed(libraries, code) == [
        "cuda:0",
        "[2.0, 4.0, 6.0] [3.0, 6.0, 9.0] [3.0, 6.0, 9.0]",
    ]


def test_memory_waits_for_the_streams_that_use_it(libraries):
    code = """
s = cuda.Stream()
def use(record):
    x = torch.full((1 << 16,), 3.0, device="cuda")
    s.wait_stream(cuda.current_stream())
    with cuda.stream(s): y = x[:4] * 2
    if record: x.record_stream(s)
    at = x.data_ptr()
    del x
    fresh = torch.full((1 << 16,), 7.0, device="cuda")
    cuda.current_stream().synchronize()
    s.synchronize()
    return fresh.data_ptr() == at, y.tolist()
print(*use(True), *use(False))
torch.empty(0, device="cuda").record_stream(s)
pending = torch.ones(1 << 20, device="cuda:1"); pending.record_stream(s); del pending
cuda.empty_cache()
print(cuda.memory_reserved(1))
"""
    assert printed(libraries, code) == [
        "False [6.0, 6.0, 6.0, 6.0] True [14.0, 14.0, 14.0, 14.0]",
        "0",
    ]


def test_graphs_copy_from_pinned_memory(libraries):
    """Memory that waits for streams does not disturb a recording, and a graph's stays."""
    code = """
s, g = cuda.Stream(), cuda.CUDAGraph()
x, y = torch.zeros(4, pin_memory=True), torch.zeros(4, device="cuda")
waiting = torch.ones(1 << 20, device="cuda"); waiting.record_stream(s)
at = x.data_ptr()
with cuda.graph(g):
    y.copy_(x, non_blocking=True)
    y.mul_(2)
    del waiting
    more = torch.ones(1 << 20, device="cuda")
    pinned = torch.ones(1 << 20, pin_memory=True)
for i in range(2):
    x.fill_(i + 1.0)
    g.replay()
    print(y.tolist())
del x
print(torch.zeros(4, pin_memory=True).data_ptr() != at)
"""
    assert printed(libraries, code) == [
        "[2.0, 2.0, 2.0, 2.0]",
        "[4.0, 4.0, 4.0, 4.0]",
        "True",
    ]


def test_batches_of_a_loader(libraries):
    code = """
data = torch.utils.data.TensorDataset(torch.arange(6.0), torch.arange(6))
for workers in (0, 2):
    got = []
    for x, y in torch.utils.data.DataLoader(data, batch_size=2, pin_memory=True, num_workers=workers):
        assert x.is_pinned() and y.is_pinned()
        got += x.to("cuda", non_blocking=True).tolist()
    print(got)
"""
    assert printed(libraries, code) == ["[0.0, 1.0, 2.0, 3.0, 4.0, 5.0]"] * 2


LOADER = """
import threading, gc
data = torch.utils.data.TensorDataset(torch.arange(60.0), torch.arange(60))
Loader = torch.utils.data.DataLoader
def threads(): return sum(t.name == "taeda-pin-memory" for t in threading.enumerate())
"""


def test_a_thread_pins_what_workers_load(libraries):
    code = """
class Own:
    def __init__(self, x): self.x = x
    def pin_memory(self): self.thread = threading.current_thread().name; self.device = cuda.current_device(); return self
class Order:
    def __iter__(self): assert threading.current_thread() is threading.main_thread(); return iter(range(8))
def own(samples): return Own(len(samples))
cuda.set_device(1)
loader = Loader(data, batch_size=2, pin_memory=True, num_workers=1, collate_fn=own, sampler=Order())
print(*{(b.x, b.thread, b.device) for b in loader})
loader = Loader(data, batch_size=2, pin_memory=True, num_workers=1, collate_fn=own, pin_memory_device="cuda:0")
print(next(iter(loader)).device, Loader(data, pin_memory=True, collate_fn=own, pin_memory_device="cuda:0").__iter__().__next__().device, cuda.current_device())
del loader; gc.collect(); print(threads())
it = iter(Loader(data, batch_size=4, pin_memory=True, num_workers=2)); next(it); print(threads())
print(sum(1 for _ in it), threads())  # ends with the pass
it = iter(Loader(data, batch_size=4, pin_memory=True, num_workers=2)); next(it); del it; gc.collect(); print(threads())
for batch in Loader(data, batch_size=4, pin_memory=True, num_workers=2, in_order=False): break
del batch; gc.collect(); print(threads())
loader = Loader(data, batch_size=4, pin_memory=True, num_workers=2, persistent_workers=True)
first = iter(loader); next(first); second = iter(loader); print(threads(), [x.tolist() for x, y in second] == torch.arange(60.0).reshape(15, 4).tolist())
try: next(first)
except RuntimeError as e: print(e)
print(threads(), len(list(loader)), threads())
third = iter(loader); next(third); del third; gc.collect(); print(threads())
print(all(x.is_pinned() for x, y in loader))
one = iter(Loader(data, batch_size=4, pin_memory=True, num_workers=1)); next(one)
two = iter(Loader(data, batch_size=4, pin_memory=True, num_workers=1)); next(two)  # forked beside a thread
del one; gc.collect(); print(threads(), len(list(two)), threads())
third = iter(loader); next(third)  # still at work when the program ends
try: Loader(data, pin_memory_device="cpu")
except ValueError as e: print(e)
"""
    assert printed(libraries, LOADER + code) == [
        "(2, 'taeda-pin-memory', 1)",
        "0 0 1",
        "0",
        "1",
        "14 0",
        "0",
        "0",
        "1 True",
        "DataLoader: another pass has begun with the same persistent workers",
        "0 15 0",
        "0",
        "True",
        "1 14 0",
        "DataLoader: pin_memory_device must be a cuda device, got 'cpu'",
    ]


def test_what_fails_while_a_thread_pins(libraries):
    code = """
import os, time
class Bad:
    def pin_memory(self): raise KeyError("no room")
def bad(samples): return Bad() if samples[0][1] == 4 else [s[0] for s in samples]
it = iter(Loader(data, batch_size=4, pin_memory=True, num_workers=2, collate_fn=bad))
def fails(f):
    try: return f()
    except Exception as e: return type(e).__name__, str(e).partition("\\n")[0]
print(len(next(it)), fails(lambda: next(it)), len(next(it)), len(list(it)), threads())
def broken(samples): raise ZeroDivisionError("here")
print(fails(lambda: next(iter(Loader(data, pin_memory=True, num_workers=1, collate_fn=broken)))))
def dies(samples): os._exit(3)
it = iter(Loader(data, pin_memory=True, num_workers=1, collate_fn=dies))
kind, text = fails(lambda: next(it)); print(kind, "exited unexpectedly, with exit code 3" in text, threads(), fails(lambda: next(it))[0])
def sleeps(samples): time.sleep(60)
it = iter(Loader(data, pin_memory=True, num_workers=1, collate_fn=sleeps, timeout=0.2))
print(fails(lambda: next(it)), threads())
"""
    assert printed(libraries, LOADER + code) == [
        "4 ('KeyError', 'Caught KeyError in the thread that pins memory.') 4 12 0",
        "('ZeroDivisionError', 'Caught ZeroDivisionError in DataLoader worker process 0.')",
        "RuntimeError True 0 StopIteration",
        "('RuntimeError', 'DataLoader timed out after 0.2 seconds') 0",
    ]


def test_saved_tensors_in_pinned_memory(libraries):
    code = """
x = torch.full((3,), 2.0, device="cuda", requires_grad=True)
with torch.autograd.graph.save_on_cpu(pin_memory=True): y = (x.exp() * x).sum()
y.backward()
torch.testing.assert_close(x.grad, 3 * x.detach().exp())
print(torch.nested.nested_tensor([torch.ones(2), torch.ones(3)], layout=torch.jagged, pin_memory=True).is_pinned())
"""
    assert printed(libraries, code) == ["True"]
