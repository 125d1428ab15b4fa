"""Memory of a device shared with other libraries: DLPack and __cuda_array_interface__."""

from __future__ import annotations

import pytest

from tests.cuda.test_runtime import printed

# Another library: what it gives away lives on its own stream, and what it takes it uses there.
THEIRS = """
class Theirs:
    def __init__(self, tensor, stream, old=False):
        self.tensor, self.stream, self.old, self.given = tensor, stream, old, None
    def __dlpack_device__(self):
        return self.tensor.__dlpack_device__()
    def __dlpack__(self, *, stream=None, **more):
        self.given = stream
        if self.old and more: raise TypeError("unknown keyword")
        with cuda.stream(self.stream): return self.tensor.__dlpack__(stream=stream, **more)
s = cuda.Stream()
"""


def test_dlpack(libraries):
    code = """
x = torch.arange(6.0, device="cuda:1").reshape(2, 3)
print(x.__dlpack_device__(), torch.ones(2).__dlpack_device__(), torch.ones(2).pin_memory().__dlpack_device__())
for old in (False, True):
    with cuda.stream(s): t = torch.full((3,), 4.0, device="cuda") * 2
    theirs = Theirs(t, s, old)
    ours = torch.from_dlpack(theirs)
    print(theirs.given, ours.data_ptr() == t.data_ptr(), (ours + 1).tolist())  # what s did came before
with cuda.stream(s): print(torch.from_dlpack(theirs).device, theirs.given == s.cuda_stream)
y = torch.from_dlpack(torch.utils.dlpack.to_dlpack(x.t()))
print(y.device, y.stride(), y.data_ptr() == x.data_ptr(), y.tolist())
print(torch.from_dlpack(x, device="cpu").tolist(), torch.from_dlpack(x, copy=True).data_ptr() == x.data_ptr())
print(torch.from_dlpack(x, device="cuda:0").device)
pinned = torch.ones(2).pin_memory()
print(torch.from_dlpack(pinned).data_ptr() == pinned.data_ptr())
capsule = x.__dlpack__(dl_device=(1, 0))
print(torch.from_dlpack(capsule).device)
def fails(f):
    try: f()
    except Exception as e: return type(e).__name__ + " " + str(e)
print(fails(lambda: x.__dlpack__(stream=0)))
print(fails(lambda: x.__dlpack__(stream="x")))
print(fails(lambda: x.__dlpack__(dl_device=(1, 0), copy=False)))
print(fails(lambda: x.__dlpack__(dl_device=(7, 0))))
x.__dlpack__(stream=-1), x.__dlpack__(stream=1)
before = cuda.memory_allocated(1)
z = torch.from_dlpack(torch.ones(1 << 20, device="cuda:1"))
print(cuda.memory_allocated(1) - before >> 20); del z; print(cuda.memory_allocated(1) - before)
"""
    assert printed(libraries, THEIRS + code) == [
        "(2, 1) (1, 0) (3, 0)",
        "1 True [9.0, 9.0, 9.0]",
        "1 True [9.0, 9.0, 9.0]",
        "cuda:0 True",
        "cuda:1 (1, 3) True [[0.0, 3.0], [1.0, 4.0], [2.0, 5.0]]",
        "[[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]] False",
        "cuda:0",
        "True",
        "cpu",
        "BufferError stream 0 is not supported: it must be 1, for the default stream, or the address of one",
        "TypeError a stream must be an int or None, got str",
        "BufferError __dlpack__(): copy=False, but the tensor is on device cuda:1, and cpu is asked for",
        "BufferError __dlpack__(): there are no tensors on DLPack device 7",
        "4",
        "0",
    ]


def test_consumers_wait(libraries):
    """What was computed on our stream comes before what theirs does with it."""
    code = """
a = torch.cuda.Stream()
with cuda.stream(a): x = torch.ones(4, device="cuda") + 1
with cuda.stream(a): capsule = x.__dlpack__(stream=s.cuda_stream)
y = torch.from_dlpack(capsule)
with cuda.stream(s): z = y * 10
s.synchronize()
print(z.tolist())
"""
    assert printed(libraries, THEIRS + code) == ["[20.0, 20.0, 20.0, 20.0]"]


def test_cuda_array_interface(libraries):
    code = """
x = torch.arange(6.0, device="cuda:1").reshape(2, 3)
print({k: v for k, v in x.__cuda_array_interface__.items() if k != "data"}, x.__cuda_array_interface__["data"] == (x.data_ptr(), False))
print(x.t().__cuda_array_interface__["strides"], x[:0].__cuda_array_interface__["data"])
class Theirs:
    def __init__(self, **more): self.__dict__.update(more)
    @property
    def __cuda_array_interface__(self): return self.interface
with cuda.device(1), cuda.stream(cuda.Stream()):
    y = x.t() * 2
    theirs = Theirs(interface=y.__cuda_array_interface__, kept=y)
for make in (torch.as_tensor, torch.asarray, torch.tensor):
    z = make(theirs)
    print(z.device, z.dtype, z.stride(), z.data_ptr() == y.data_ptr(), z.tolist())
print(torch.as_tensor(theirs, device="cpu").tolist(), torch.tensor(theirs, dtype=torch.int32, device="cuda:0").device)
for name in ("bool", "uint8", "int16", "float16", "int64", "float64", "complex64", "uint32"):
    t = torch.ones(2, device="cuda").to(getattr(torch, name))
    back = torch.as_tensor(Theirs(interface=t.__cuda_array_interface__, kept=t))
    assert back.dtype is t.dtype and back.data_ptr() == t.data_ptr(), name
print(torch.as_tensor(Theirs(interface=x[:0].__cuda_array_interface__)).shape)
import gc, weakref
gone = weakref.ref(theirs); z = torch.as_tensor(theirs); del theirs, y
print(gone() is None); del z; gc.collect(); print(gone() is None)
def fails(f):
    try: f()
    except Exception as e: return type(e).__name__ + " " + str(e)
print(hasattr(torch.ones(2), "__cuda_array_interface__"), hasattr(x, "__cuda_array_interface__"))
print(fails(lambda: torch.ones(2, device="cuda", requires_grad=True).__cuda_array_interface__))
print(fails(lambda: x.bfloat16().__cuda_array_interface__))
bad = dict(x.__cuda_array_interface__)
print(fails(lambda: torch.as_tensor(Theirs(interface={**bad, "strides": (5, 4)}))))
print(fails(lambda: torch.as_tensor(Theirs(interface={**bad, "strides": (-12, 4)}))))
print(fails(lambda: torch.as_tensor(Theirs(interface={**bad, "typestr": ">f4"}))))
print("no memory of a device" in fails(lambda: torch.as_tensor(Theirs(interface={**bad, "data": (4096, False)}))))
"""
    lines = printed(libraries, code)
    assert lines[0] == (
        "{'typestr': '<f4', 'shape': (2, 3), 'strides': None, 'stream': 1, 'version': 3} True"
    )
    assert lines[1] == "(4, 12) (0, False)"
    values = "[[0.0, 6.0], [2.0, 8.0], [4.0, 10.0]]"
    assert lines[2:5] == [
        f"cuda:1 taeda.float32 (1, 3) True {values}",
        f"cuda:1 taeda.float32 (1, 3) True {values}",
        f"cuda:1 taeda.float32 (1, 3) False {values}",
    ]
    assert lines[5] == f"{values} cuda:0"
    assert lines[6:10] == ["taeda.Size([0, 3])", "False", "True", "False True"]
    assert "use tensor.detach()" in lines[10]
    assert lines[11].startswith("TypeError __cuda_array_interface__ has no code for")
    assert "are not of whole elements" in lines[12]
    assert "negative strides" in lines[13]
    assert "no dtype for '>f4'" in lines[14]
    assert lines[15] == "True"


@pytest.mark.parametrize("interface", ["__dlpack__", "__cuda_array_interface__"])
def test_without_a_device(libraries, interface):
    code = (
        f"print(hasattr(torch.ones(2), {interface!r}), torch.from_dlpack(torch.ones(2)).tolist())"
    )
    has = interface == "__dlpack__"
    assert printed(libraries, code, STUB_DEVICES="0") == [f"{has} [1.0, 1.0]"]
