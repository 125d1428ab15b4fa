"""Checkpoints that try to run code: what `load` does about them is watched by an audit hook.

`python -m tests.robustness.escapes COUNT [FIRST]` makes COUNT files from a seed each. Streams name
functions in every way that pickle knows, and try to call them in every way. A file may be refused,
or load as harmless data; an audited event (an import, an opened file, a new process, compiled code,
...), a function in the result or a changed class is an escape.
"""

import collections
import faulthandler
import importlib
import io
import pickle
import random
import struct
import sys
import tarfile
import tempfile
import warnings
import zipfile
from pathlib import Path

import taeda
from taeda.inspect import inspect_file
from taeda.serialization import _rebuild, get_unsafe_globals_in_checkpoint
from taeda.serialization._safe import allowed_objects
from tests.robustness.made_files import Streams
from tests.robustness.sample_files import objects, tar_file, zip_file

ERRORS = (RuntimeError, ValueError, EOFError, pickle.UnpicklingError, NotImplementedError)
ORDINARY = (
    "builtins.id",
    "object.__getattr__",
    "object.__setattr__",
    "sys._getframe",
    "array.__new__",
)
TARGETS = [
    *(
        "os system",
        "posix system",
        "nt system",
        "os popen",
        "os execv",
        "os.path join",
        "os remove",
    ),
    *("builtins eval", "builtins exec", "builtins open", "builtins getattr", "builtins compile"),
    *(
        "builtins __import__",
        "__builtin__ eval",
        "__builtin__ apply",
        "builtins type",
        "builtins map",
    ),
    *("subprocess Popen", "subprocess check_output", "importlib import_module", "runpy _run_code"),
    *("pickle loads", "_pickle loads", "pickle Unpickler", "operator attrgetter", "operator call"),
    *(
        "functools partial",
        "functools reduce",
        "types FunctionType",
        "types CodeType",
        "code interact",
    ),
    *("ctypes CDLL", "pty spawn", "shutil rmtree", "pathlib Path", "timeit timeit", "io FileIO"),
    *(
        "torch load",
        "torch save",
        "torch.hub load",
        "torch.jit load",
        "torch.utils.model_zoo load_url",
    ),
    *("torch.utils.cpp_extension load_inline", "torch.storage _load_from_bytes", "taeda load"),
    *(
        "torch.serialization load",
        "taeda.serialization load",
        "taeda._C ops",
        "taeda sys",
        "torch os",
    ),
    *(
        "torch.UntypedStorage from_file",
        "torch UntypedStorage.from_file",
        "torch from_file",
        "numpy load",
    ),
    *("torch._utils _rebuild_tensor_v2.__globals__", "collections OrderedDict.__init__"),
    *(
        "collections OrderedDict.__class__",
        "collections namedtuple",
        "_codecs decode",
        "codecs open",
    ),
    *("copyreg _reconstructor", "copyreg __newobj__", "copyreg add_extension", "weakref finalize"),
    *(
        "torch._tensor _rebuild_from_type_v2.__globals__",
        "torch.serialization os",
        "torch Size.__new__",
    ),
    *(
        "torch.package PackageImporter",
        "torch._dynamo optimize",
        "torch.fx GraphModule",
        "sys modules",
    ),
    *(
        "sys settrace",
        "atexit register",
        "threading Thread",
        "multiprocessing Process",
        "asyncio run",
    ),
    *(
        "logging config.fileConfig",
        "webbrowser open",
        "site main",
        "ensurepip bootstrap",
        "cgitb enable",
    ),
]
HARMLESS = [
    *("collections OrderedDict", "collections Counter", "builtins set", "builtins bytearray"),
    *("builtins complex", "_codecs encode", "torch Size", "torch device", "torch Tensor"),
    *("torch._utils _rebuild_tensor_v2", "torch._utils _rebuild_parameter", "torch FloatStorage"),
    *("torch._tensor _rebuild_from_type_v2", "torch._utils _rebuild_parameter_with_state"),
    *("torch._utils _rebuild_sparse_tensor", "torch.serialization _get_layout", "torch float32"),
    *("torch._utils _rebuild_meta_tensor_no_storage", "torch.nn.parameter Parameter"),
    *("torch._utils _rebuild_tensor_v3", "torch Generator", "torch.storage TypedStorage"),
]
ARGUMENTS = [
    "touch harmed",
    "__import__('os').system('touch harmed')",
    "harmed",
    "w",
    "rot13",
    "zlib",
]
ATTRIBUTES = [
    *(
        "__class__",
        "__dict__",
        "__reduce__",
        "__setstate__",
        "__init__",
        "__getattribute__",
        "data",
    ),
    *("_backward_hooks", "grad", "__torch_function__", "_load_storage", "requires_grad", "__del__"),
    *(
        "__missing__",
        "__iter__",
        "__len__",
        "grad_fn",
        "_base",
        "shape",
        "__globals__",
        "__wrapped__",
    ),
    *(
        "register_hook",
        "__array__",
        "_values_",
        "_indices_",
        "dtype",
        "names",
        "retain_grad",
        "real",
    ),
]


class Escapes(Streams):
    """Streams of the grammar for harmless files, with names and calls that are not."""

    def text(self, value):
        data = value.encode()
        return self.pick.choice(
            [
                b"X" + struct.pack("<I", len(data)) + data,
                b"\x8c" + bytes([len(data)]) + data,
                b"\x8d" + struct.pack("<Q", len(data)) + data,
                b"U" + bytes([len(data)]) + data,
                b"T" + struct.pack("<I", len(data)) + data,
                b"S" + repr(value).encode() + b"\n",
                b"V" + data + b"\n",
            ]
        )

    def disguised(self, module, name):
        """Other ways to write a name, that a careless reader may take for it."""
        way = self.pick.randrange(12)
        if way == 0:
            return "", f"{module}.{name}"
        if way == 1:
            return f"{module}.{name}", ""
        if way == 2:
            return "torch", f"{module}.{name}"
        if way == 3:
            return f"torch.{module}", name
        if way == 4:
            return module, f"{name}.__call__"
        if way == 5:
            return f" {module}", f"{name}\r"
        if way == 6:
            return module.upper(), name
        if way == 7:
            return f"taeda.{module}", name
        if way == 8 and "." in module:
            head, _, rest = module.partition(".")
            return head, f"{rest}.{name}"
        return module, name

    def name(self):
        listed = HARMLESS if self.pick.random() < 0.45 else TARGETS
        module, name = self.pick.choice(listed).split(" ", 1)
        if listed is TARGETS:
            module, name = self.disguised(module, name)
        if self.pick.random() < 0.5:
            return b"c" + module.encode() + b"\n" + name.encode() + b"\n"
        return self.text(module) + self.text(name) + b"\x93"

    def argument(self, depth):
        way = self.pick.randrange(5)
        if way == 0:
            return self.text(self.pick.choice(ARGUMENTS))
        if way == 1 and depth < 5:
            return self.escape(depth + 1)
        if way == 2:
            return self.name()
        return self.value(depth + 1)

    def arguments(self, depth):
        return b"".join(
            self.argument(depth) for _ in range(self.pick.choice([0, 1, 1, 2, 2, 3, 6]))
        )

    def state(self, depth):
        pairs = (
            self.text(self.pick.choice(ATTRIBUTES)) + self.argument(depth)
            for _ in range(self.pick.choice([1, 1, 2, 3]))
        )
        made = b"}(" + b"".join(pairs) + b"u"
        return self.pick.choice(
            [made, made, b"N" + made + b"\x86", made + b"N\x86", self.argument(depth)]
        )

    def escape(self, depth=0):
        pick = self.pick
        name, args = self.name(), self.arguments(depth)
        way = pick.randrange(13)
        if way < 3:
            return name + b"(" + args + b"tR"
        if way == 3:
            return name + b"(" + args + b"t\x81"
        if way == 4:
            return name + b"(" + args + b"t}(" + self.text("x") + self.argument(depth) + b"u\x92"
        if way == 5:
            return b"(" + name + args + b"o"
        if way == 6:
            module, target = pick.choice(TARGETS).split(" ", 1)
            return b"(" + args + b"i" + module.encode() + b"\n" + target.encode() + b"\n"
        if way == 7:  # attributes of an object, or of a class
            target = pick.choice([name, name + b")R", name + b")\x81", self.value(depth + 1)])
            return target + self.state(depth) + b"b"
        if way == 8:  # what is called is an argument of a function that may be called
            head = pick.choice(HARMLESS).split(" ", 1)
            call = b"c" + head[0].encode() + b"\n" + head[1].encode() + b"\n("
            return call + name + b"(" + args + b"t" + self.argument(depth) + b"tR"
        if way == 9:  # a storage whose type is a function
            record = self.text("storage") + name + self.text("0") + self.text("cpu") + b"K\4"
            return b"(" + record + b"tQ"
        if way == 10:
            return (
                pick.choice([b"\x82\x01", b"\x83\x01\x00", b"\x84\x01\0\0\0"]) + b"(" + args + b"tR"
            )
        if way == 11:
            return (
                b"ctorch._tensor\n_rebuild_from_type_v2\n("
                + name
                + self.name()
                + b"("
                + args
                + (b"t" + self.state(depth) + b"tR")
            )
        return b"P" + self.text(pick.choice(ARGUMENTS))[1:9] + b"\n"

    def stream(self):
        body = self.escape()
        for _ in range(self.pick.randrange(3)):
            way = self.pick.randrange(4)
            if way == 0:
                body = b"](" + self.value() + body + b"e"
            elif way == 1:
                body = b"}(" + self.text("k") + body + b"u"
            elif way == 2:
                body = b"q\1" + body + b"h\1\x86" if self.pick.random() < 0.2 else body + b"q\1\x85"
            else:
                body = self.escape() + b"0" + body
        whole = bytearray(
            b"\x80" + bytes([self.pick.choice([2, 4, 5])]) + b"Nq\0" + b"0" + body + b"."
        )
        if self.pick.random() < 0.15:
            whole[self.pick.randrange(len(whole))] = self.pick.randrange(256)
        return bytes(whole)


def archive(pick, stream):
    """A zip file with the stream where one is read, or where none should be."""
    file = io.BytesIO()
    names = {"a/data.pkl": stream, "a/data/0": bytes(16)}
    if pick.random() < 0.15:
        names = {"a/data.pkl": b"\x80\x02N.", "a/data/0": bytes(16)}
        names[pick.choice(["a/constants.pkl", "a/code/x.py", "data.pkl", "x.npy"])] = stream
    with zipfile.ZipFile(file, "w") as out:
        for name, data in names.items():
            out.writestr(name, data)
    return file.getvalue()


def old_file(pick, stream):
    parts = [0x1950A86A20F9469CFC6C, 1001, {"little_endian": True}]
    head = [pickle.dumps(part, 2) for part in parts]
    at = pick.choice([2, 3, 3, 3, 4])
    tail = [pickle.dumps(None, 2), pickle.dumps([], 2)]
    whole = [*head, *tail]
    whole[at] = stream
    return b"".join(whole)


TAR = tar_file()


def tar(pick, stream):
    parts, made = {}, io.BytesIO()
    with tarfile.open(fileobj=io.BytesIO(TAR)) as whole:
        for name in whole.getnames():
            parts[name] = whole.extractfile(name).read()
    victim = pick.choice(["pickle", "pickle", "storages", "tensors", "sys_info"])
    parts[victim] = stream + (parts[victim] if pick.random() < 0.3 else b"")
    with tarfile.open(fileobj=made, mode="w") as out:
        for name, part in parts.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(part)
            out.addfile(entry, io.BytesIO(part))
    return made.getvalue()


class Watch:
    """Notes audited events while it is on."""

    def __init__(self, path):
        self.on, self.seen, self.path = False, [], path  # the one file that may be opened
        sys.addaudithook(self.event)

    def event(self, name, args):
        if name == "open" and args[0] == self.path and args[1] in ("r", "rb", None):
            return
        if self.on and name not in ORDINARY:
            self.seen.append((name, repr(args)[:200]))


def functions_in(value, known, depth=0):
    """Functions and classes in a result that a file may not name."""
    if depth > 20:
        return
    if isinstance(value, dict):
        for pair in value.items():
            yield from functions_in(list(pair), known, depth + 1)
    elif isinstance(value, (list, tuple, set, frozenset)):
        for part in value:
            yield from functions_in(part, known, depth + 1)
    elif isinstance(value, taeda.Tensor):
        yield from functions_in(dict(vars(value)), known, depth + 1)
    elif callable(value) and id(value) not in known and not _rebuild.is_callable_by_files(value):
        yield value


def state_of_classes():
    classes = [c for c in allowed_objects().values() if isinstance(c, type)]
    classes += [taeda.Tensor, taeda.nn.Parameter, collections.OrderedDict, collections.Counter]
    return {c: dict(vars(c)) for c in classes}


def warm_up():
    """What is imported at first use is imported now."""
    for thing in objects().values():
        taeda.load(io.BytesIO(zip_file(thing)))
    taeda.load(io.BytesIO(TAR))
    for module in ("pickletools", "taeda.serialization._opaque"):
        importlib.import_module(module)
    for codec in ("latin1", "utf-8", "ascii", "raw_unicode_escape"):
        "x".encode(codec)


READERS = {
    "load": lambda data, path: taeda.load(io.BytesIO(data)),
    "load meta": lambda data, path: taeda.load(io.BytesIO(data), map_location="meta"),
    "inspect": lambda data, path: inspect_file(path),
    "unsafe names": lambda data, path: get_unsafe_globals_in_checkpoint(io.BytesIO(data)),
}


def main(count, first=0):
    with tempfile.TemporaryDirectory() as folder:
        return make(count, first, f"{folder}/x.pt")


def make(count, first, path):
    faulthandler.enable()
    warnings.simplefilter("ignore")
    warm_up()
    watch, wrong, loaded = Watch(path), 0, 0
    known, before = {id(v) for v in allowed_objects().values()}, state_of_classes()
    makers = [archive, archive, archive, old_file, tar]
    for seed in range(first, first + count):
        pick = random.Random(f"escape {seed}")
        data = pick.choice(makers)(pick, Escapes(pick).stream())
        (reader,) = pick.choices(list(READERS), [7, 1, 1, 1])
        if reader == "inspect":
            Path(path).write_bytes(data)
        result = unknown = None
        faulthandler.dump_traceback_later(60, exit=True)
        watch.seen, watch.on = [], True
        try:
            result = READERS[reader](data, path)
            loaded += 1
        except ERRORS:
            pass
        except Exception as error:
            unknown = error
        watch.on = False
        found = [*watch.seen, *functions_in(result, known)]
        if unknown is not None:
            found.append(f"{type(unknown).__name__}: {unknown}")
        if seed % 100 == 0 and state_of_classes() != before:
            found.append("a class has changed")
            before = state_of_classes()
        if found:
            wrong += 1
            print(f"escape {seed} ({reader}): {found[:3]}", flush=True)
    faulthandler.cancel_dump_traceback_later()
    print(f"escape streams (tried, loaded, wrong): {count} {loaded} {wrong}")
    return wrong


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])) > 0)
