"""What once ended the process, each in a process of its own: an error now, or a result."""

import ctypes
import os
import subprocess
import sys

import pytest

import taeda


def run(code, memory=4 << 30):
    head = "import gc, resource, taeda\nimport taeda.nn.functional as F\n"
    limit = f"resource.setrlimit(resource.RLIMIT_AS, ({memory},) * 2)\n"
    if "san.so" in os.environ.get("LD_PRELOAD", ""):  # which reserves terabytes
        limit = ""
    command = [sys.executable, "-X", "faulthandler", "-c", head + limit + code]
    done = subprocess.run(
        command, capture_output=True, text=True, errors="replace", timeout=120, check=False
    )
    return done.returncode, done.stdout.strip(), done.stderr.strip()


# ---- saved tensors ------------------------------------------------------------------------------


@pytest.mark.parametrize("f", ["x * x", "x**3", "F.gelu(x)", "x.sin()", "F.softmax(x, 0)"])
@pytest.mark.parametrize("devices", [("cpu", "meta"), ("meta", "cpu")])
def test_data_stays_on_its_device(f, devices):
    x = taeda.ones(4, device=devices[0], requires_grad=True)
    y = eval(f, {"x": x, "F": taeda.nn.functional})
    with pytest.raises(RuntimeError, match="incompatible tensor type"):
        x.data = taeda.ones(4, device=devices[1])
    y.sum().backward()
    assert x.grad.device.type == devices[0]


PLACEHOLDERS = {
    "sparse": lambda: taeda.ones(4).to_sparse(),
    "sparse csr": lambda: taeda.ones(4, 4).to_sparse_csr(),
    "nested": lambda: taeda.nested.nested_tensor([taeda.ones(2), taeda.ones(3)]),
    "jagged": lambda: taeda.nested.nested_tensor(
        [taeda.ones(2), taeda.ones(3)], layout=taeda.jagged
    ),
}


@pytest.mark.parametrize("name", PLACEHOLDERS)
def test_data_is_not_a_placeholder(name):
    """The values of sparse and nested tensors are elsewhere; gradients were zeros."""
    x = taeda.ones(4, requires_grad=True)
    y = x * x
    with pytest.raises(
        RuntimeError, match=r"variable.set_data\(tensor\).*incompatible tensor type"
    ):
        x.data = PLACEHOLDERS[name]()
    y.sum().backward()
    assert x.grad.tolist() == [2.0] * 4


def test_data_is_not_a_tensor_of_vmap():
    x = taeda.ones(4)

    def f(row):
        x.data = row
        return row

    with pytest.raises(RuntimeError, match="incompatible tensor type"):
        taeda.func.vmap(f)(taeda.ones(3, 4))
    assert x.shape == (4,)


def test_a_parameter_exchanged_with_a_sparse_tensor():
    x, sparse = taeda.nn.Parameter(taeda.ones(4)), taeda.arange(4.0).to_sparse()
    y = x * x
    taeda.utils.swap_tensors(x, sparse)
    assert x.is_sparse and (x * 2).to_dense().tolist() == [0.0, 2.0, 4.0, 6.0]
    assert type(sparse) is taeda.nn.Parameter and (sparse + 1).tolist() == [2.0] * 4
    with pytest.raises(RuntimeError, match="other memory"):
        y.sum().backward()


def test_set_stays_on_its_device():
    for source in (taeda.ones(4, device="meta"), taeda.ones(4, device="meta").untyped_storage()):
        with pytest.raises(RuntimeError, match="the devices must match"):
            taeda.ones(4).set_(source)


def test_exchanged_data_is_no_longer_what_was_saved():
    x, other = taeda.ones(4, requires_grad=True), taeda.ones(4, device="meta")
    y = x * x
    x._exchange_data(other)
    assert x.is_meta and not other.is_meta
    with pytest.raises(RuntimeError, match="other memory"):
        y.sum().backward()


@pytest.mark.parametrize(
    "wrong",
    [
        taeda.ones(4, device="meta"),
        taeda.ones(4, dtype=taeda.float64),
        taeda.ones(4, dtype=taeda.int8),
        taeda.ones(1),
        taeda.ones(4, 1),
    ],
)
def test_an_unpack_hook_returns_what_was_packed(wrong):
    x = taeda.ones(4, requires_grad=True)
    with taeda.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: wrong):
        y = x * x
    with pytest.raises(RuntimeError, match="unpack hook of a saved tensor returned"):
        y.sum().backward()


def under_no_grad(change):
    with taeda.no_grad():
        change()


RESHAPES = {
    "data transposed": lambda z: setattr(z, "data", z.data.T),
    "smaller data": lambda z: setattr(z, "data", taeda.ones(1)),
    "larger data": lambda z: setattr(z, "data", taeda.ones(9, 9)),
    "t_": lambda z: under_no_grad(z.t_),
    "unsqueeze_": lambda z: under_no_grad(lambda: z.unsqueeze_(0)),
    "set_": lambda z: under_no_grad(lambda: z.set_(taeda.ones(50))),
}
RESULTS = {
    "mul": lambda x: x * x.detach().exp(),
    "rows": lambda x: x[[0, 1, 2]] * 1.0,
    "indexed": lambda x: x.exp()[[0, 1, 2]],
    "softmax": lambda x: taeda.nn.functional.softmax(x, 1),
    "cumsum": lambda x: x.cumsum(0),
    "norm": lambda x: taeda.nn.functional.layer_norm(x, (4,)),
    "matmul": lambda x: x @ taeda.ones(4, 5),
    "sorted": lambda x: x.sort(0)[0],
    "pooled": lambda x: taeda.nn.functional.max_pool1d(x, 2),
}


@pytest.mark.parametrize("how", RESHAPES)
@pytest.mark.parametrize("name", RESULTS)
def test_a_result_that_got_another_shape(name, how):
    """The node read the gradient of the new shape as one of the old: past its end."""
    x = taeda.randn(3, 4, requires_grad=True)
    z = RESULTS[name](x)
    z.sum().backward()
    gradient, x.grad = x.grad, None
    z = RESULTS[name](x)
    RESHAPES[how](z)
    with pytest.raises(RuntimeError, match=r"invalid gradient at index 0 .* another shape"):
        z.sum().backward()
    # Back in its shape, it is as before.
    z = RESULTS[name](x).clone()
    with taeda.no_grad():
        z.t_().t_()
    z.sum().backward()
    assert taeda.equal(x.grad, gradient)


# ---- chains -------------------------------------------------------------------------------------

CHAINS = {
    "gradients": "b = taeda.ones(1); b.grad = a",
    "gradients with attributes": "b = taeda.ones(1); b.grad = a; b.note = 1",
    "parameters": "b = taeda.nn.Parameter(taeda.ones(1)); b.grad = a",
    "attributes": "b = taeda.ones(1); b.other = a",
    "results": "b = a * 1.0",
    "views": "b = a.view(1)",
}


@pytest.mark.parametrize("name", CHAINS)
def test_a_long_chain_is_freed(name):
    code = f"""
a = taeda.ones(1, requires_grad={name == "results"})
for _ in range(200_000):
    {CHAINS[name]}
    a = b
del a, b
gc.collect()
print("freed")
"""
    assert run(code) == (0, "freed", "")


def test_a_chain_from_a_file_is_freed(tmp_path):
    count = 200_000
    stream = b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\nq\0ccollections\nOrderedDict\n)Rq\1"
    stream += b"(X\7\0\0\0storagectorch\nFloatStorage\nX\1\0\0\0000X\3\0\0\0cpuK\1tQq\2"
    stream += b"K\1\x85q\3" + b"0" * 4 + b"N"
    stream += b"q\4h\0(h\2K\0h\3h\3\x89h\1tR}X\4\0\0\0gradh\4sb" * count + b"q\4"
    # What is below on the stack goes one by one into a tuple, of which the last is kept.
    path = tmp_path / "x.pt"
    import zipfile

    with zipfile.ZipFile(path, "w") as out:
        out.writestr("a/data.pkl", stream.replace(b"\x80\x02", b"\x80\x02(", 1) + b"t.")
        out.writestr("a/data/0", bytes(4))
    code = f"x = taeda.load({str(path)!r}); print(len(x)); del x; print('freed')"
    assert run(code) == (0, f"{count + 1}\nfreed", "")


# ---- dimensions and sizes -----------------------------------------------------------------------


def test_a_tensor_has_64_dimensions():
    x, ones = taeda.ones([1] * 64), [1] * 65
    assert x.dim() == 64 and taeda.tensor(x.tolist()).dim() == 64 and repr(x)
    calls = [
        *(lambda: taeda.ones(ones), lambda: taeda.empty(ones, device="meta")),
        *(lambda: x.unsqueeze(0), lambda: x[None], lambda: x.view(ones), lambda: x.expand(ones)),
        *(lambda: x.as_strided(ones, ones), lambda: taeda.empty_strided(ones, ones)),
        *(lambda: x.clone().resize_(ones), lambda: taeda.stack([x]), lambda: x.reshape(ones)),
        *(lambda: x.clone().set_(x.untyped_storage(), 0, ones, ones), lambda: taeda.zeros(*ones)),
    ]
    for call in calls:
        with pytest.raises(RuntimeError, match="at most 64 dimensions, got 65"):
            call()
    with pytest.raises(RuntimeError, match="at most 64 dimensions, got 100000"):
        taeda.ones([1] * 100_000)


def test_sizes_that_do_not_fit():
    for value in (2**64, -(2**70)):
        with pytest.raises(ValueError, match="Overflow when unpacking long long"):
            taeda.Size((value,))
        with pytest.raises(ValueError, match="Overflow when unpacking long long"):
            taeda.Size([1]) + (value,)
    with pytest.raises(RuntimeError, match="overflow"):
        taeda.Size((2**62, 4)).numel()
    assert taeda.Size((2**62, 2**62, 0)).numel() == 0 and taeda.Size(()).numel() == 1
    assert taeda.Size((2**62, -2)).numel() == -(2**63)


# ---- objects that do as they please -------------------------------------------------------------


class Clearing:
    """Empties a list when it is asked for its value."""

    def __init__(self, victim):
        self.victim = victim

    def __index__(self):
        self.victim.clear()
        return 1

    __int__ = __index__

    def __float__(self):
        return float(self.__index__())


def test_lists_that_change_while_they_are_read():
    uses = [
        *(taeda.ones, taeda.tensor, taeda.Size, taeda.ones(24).view, taeda.ones(24).reshape),
        *(taeda.ones(1).expand, lambda v: taeda.ones(5)[v], lambda v: taeda.full(v, 1.0)),
        *(lambda v: taeda.ones(3).repeat(v), lambda v: taeda.empty_strided((2, 3), v)),
        lambda v: taeda.nn.functional.interpolate(taeda.ones(1, 1, 2, 2), scale_factor=v),
        lambda v: taeda.ones(3).index_put_((taeda.tensor([0]),), v),
    ]
    for use in uses:
        for at in (0, 1):
            victim = [2, 3] + [4] * 500
            victim.insert(at, Clearing(victim))
            try:
                use(victim)
            except (RuntimeError, TypeError, ValueError, IndexError) as error:
                assert str(error)


def test_lists_that_hold_themselves():
    z = [0]
    z += [z]
    own = []
    own.append(own)
    wide = [1]
    for _ in range(60):
        wide = [wide, wide]
    for value in (z, own, wide, [own, own], (own,)):
        with pytest.raises((TypeError, ValueError, MemoryError, RuntimeError), match="."):
            taeda.tensor(value)


class Hostile:
    """A sequence whose methods fail, or lie."""

    def __init__(self, length, item):
        self.length, self.item = length, item

    def __len__(self):
        return self.length()

    def __getitem__(self, i):
        return self.item(i)


def test_sequences_that_fail_or_lie():
    def fails(*args):
        raise KeyError("no")

    cases = [(fails, fails), (lambda: -1, fails), (lambda: 3, fails), (lambda: "x", fails)]
    cases += [(lambda: 2, lambda i: "x"), (lambda: 2, lambda i: fails)]
    for length, item in cases:
        with pytest.raises((KeyError, ValueError, TypeError, RuntimeError)):
            taeda.tensor(Hostile(length, item))


class Iterated(Hostile):
    """One whose items are those of `item()`, whatever its length."""

    def __iter__(self):
        return iter(self.item())


def test_sequences_are_as_long_as_they_say():
    for length in (1, 3):
        with pytest.raises(ValueError, match=rf"length {length} at dim 0 \(got 2\)"):
            taeda.tensor(Iterated(lambda length=length: length, lambda: [1.0, 2.0]))
    with pytest.raises(ValueError, match="length 3 at dim 1"):
        taeda.tensor([Iterated(lambda: 3, list), [1, 2, 3]])
    assert taeda.tensor(Iterated(lambda: 0, lambda: [1.0])).shape == (0,)

    def fails():
        raise KeyError("no")

    with pytest.raises(KeyError, match="no"):
        taeda.tensor(Iterated(lambda: 2, fails))


# ---- DLPack -------------------------------------------------------------------------------------


class DLTensor(ctypes.Structure):
    _fields_ = (
        *(("data", ctypes.c_void_p), ("device_type", ctypes.c_int32)),
        *(("device_id", ctypes.c_int32), ("ndim", ctypes.c_int32)),
        *(("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)),
        *(("shape", ctypes.c_void_p), ("strides", ctypes.c_void_p)),
        ("byte_offset", ctypes.c_uint64),
    )


class Managed(ctypes.Structure):
    _fields_ = (
        ("tensor", DLTensor),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
    )


def capsule_of(shape=(2,), strides=None, **fields):
    data, sizes = (ctypes.c_float * 4)(1, 2, 3, 4), (ctypes.c_int64 * 64)(*shape)
    managed = Managed()
    t = managed.tensor
    t.data, t.device_type, t.ndim, t.code, t.bits, t.lanes = ctypes.addressof(data), 1, 1, 2, 32, 1
    t.shape = ctypes.addressof(sizes)
    keep = [data, sizes, managed]
    if strides is not None:
        keep.append((ctypes.c_int64 * 64)(*strides))
        t.strides = ctypes.addressof(keep[-1])
    for name, value in fields.items():
        setattr(t, name, value)
    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = (
        ctypes.py_object,
        [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p],
    )
    return new(ctypes.addressof(managed), b"dltensor", None), keep


def test_addresses_are_of_devices():
    """What only CUDA's arrays need cannot make a tensor of any memory of the process."""
    with pytest.raises(ValueError, match="an address on cpu cannot be shared"):
        taeda._C._share_address(object(), 4096, taeda.float32, [4], [1], taeda.device("cpu"))


WRONG_CAPSULES = {
    "no data": {"data": None},
    "no shape": {"shape": None},
    "negative ndim": {"ndim": -1},
    "many dimensions": {"ndim": 2**31 - 1},
    "sizes that overflow": {"shape": (2**62, 2**62), "ndim": 2},
    "strides that overflow": {"shape": (4,), "strides": (2**62,)},
    "a negative size": {"shape": (-3,)},
    "a negative stride": {"shape": (2,), "strides": (-1,)},
    "an offset past everything": {"byte_offset": 2**64 - 1},
    "a dtype of no bits": {"bits": 0},
    "many lanes": {"lanes": 4},
    "another device": {"device_type": 8},
}


@pytest.mark.parametrize("name", WRONG_CAPSULES)
def test_wrong_capsules(name):
    fields = dict(WRONG_CAPSULES[name])
    shape = fields.pop("shape", (2,))
    capsule, keep = capsule_of(shape or (2,), fields.pop("strides", None), **fields)
    if shape is None:
        keep[2].tensor.shape = None
    with pytest.raises((RuntimeError, ValueError, TypeError), match="."):
        taeda.from_dlpack(capsule)
    assert keep


def test_right_capsules():
    capsule, keep = capsule_of((2,))
    assert taeda.from_dlpack(capsule).tolist() == [1.0, 2.0] and keep
    capsule, keep = capsule_of((0,), data=None)
    assert taeda.from_dlpack(capsule).tolist() == [] and keep


# ---- private entry points -----------------------------------------------------------------------


def test_private_functions_check_their_arguments():
    code = """
import ctypes, itertools, os, random, warnings
warnings.simplefilter("ignore")
pick = random.Random(7)
devnull = os.open(os.devnull, os.O_RDONLY)
x = taeda.ones(3, requires_grad=True)
class Bare(taeda.Tensor):
    __torch_function__ = taeda._C._disabled_torch_function_impl
    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        return pick.choice([None, 1, taeda.ones(2), args[0] if args else (), NotImplemented])
make = taeda.Tensor._make_wrapper_subclass
def values():
    return [None, 0, -1, 2**31, 2**63 - 1, -2**63, 2**64, 2**200, 1.5, "", "x", "\\0", b"", b"x" * 99,
            bytearray(8), (), (1, 2), [], [x], {}, {1: 2}, x, x * 2, taeda.empty(0), object(), int,
            taeda.empty(3, device="meta"), (x * x).grad_fn, len, lambda *a: a, taeda.float32,
            taeda.UntypedStorage(8), taeda.Size([2]), taeda.Generator(), ..., slice(None), True,
            make(Bare, (3,)), make(Bare, (), dtype=taeda.uint64), make(Bare, (2, 2), requires_grad=True)]
skip = ("_push", "_pop")  # they change what later calls do
tried = 0
for name in sorted(vars(taeda._C)):
    f = getattr(taeda._C, name)
    if not callable(f) or isinstance(f, type) or name.startswith(skip) or "thread" in name or "limit" in name:
        continue
    for _ in range(60):
        args = [pick.choice(values()) for _ in range(pick.choice([0, 1, 1, 2, 2, 3, 4, 6]))]
        tried += 1
        try:
            f(*args)
        except SystemError as error:
            print("SystemError", name, error)
        except Exception:
            pass
print("tried", tried > 1000, flush=True)
os._exit(0)
"""
    status, out, err = run(code)
    assert (status, out.splitlines()[-1:]) == (0, ["tried True"]), (status, out, err[-2000:])
    assert "SystemError" not in out


def test_keywords_of_a_torch_function_are_a_dict():
    code = """
for call in (taeda.Tensor.__torch_function__, taeda._C._disabled_torch_function_impl):
    for kwargs in ((2,), "x", 3):
        try:
            call(taeda.add, (), (1, 2), kwargs)
        except TypeError as error:
            print(error)
    print(call(taeda.add, (), (taeda.ones(1), 2), {"alpha": 3}).item())
"""
    names = ("tuple", "str", "int")
    messages = [f"__torch_function__(): argument 'kwargs' must be a dict, not {n}" for n in names]
    assert run(code) == (0, "\n".join([*messages, "7.0"] * 2), "")


# ---- threads at the end -------------------------------------------------------------------------

AT_THE_END = {
    "products": "x = taeda.ones(400, 400)\ndef f():\n  while True: x @ x",
    "gradients": "x = taeda.ones(300, 300, requires_grad=True)\ndef f():\n"
    "  while True: (x @ x).sum().backward()",
    "hooks": "x = taeda.ones(99, 99, requires_grad=True)\ndef f():\n  while True:\n"
    "    y = x @ x; y.register_hook(lambda g: g * 2); y.sum().backward()",
    "errors": "x = taeda.ones(400, 400)\ndef f():\n  while True:\n"
    "    try: x @ taeda.ones(3, 3)\n    except RuntimeError: pass",
    "arrays": "import numpy\nx = numpy.ones((500, 500))\ndef f():\n"
    "  while True: taeda.from_numpy(x).sum().item()",
}


@pytest.mark.unsanitized("a forced unwind has no object: UBSan sees a reference to none")
@pytest.mark.parametrize("name", AT_THE_END)
def test_daemon_threads_end_quietly(name):
    for k in range(4):
        code = f"{AT_THE_END[name]}\nimport threading, time\n"
        code += f"for k in range({1 + k % 3}): threading.Thread(target=f, daemon=True).start()\n"
        code += f"time.sleep({0.05 + 0.03 * k})\n"
        assert run(code) == (0, "", "")


def test_a_message_may_hold_any_bytes(tmp_path):
    path = os.fsdecode(os.fsencode(tmp_path) + b"/\xff\xfe")
    with pytest.raises(RuntimeError, match=r"unable to open file <.*xff"):
        taeda.UntypedStorage.from_file(path, False, 4)
