"""Coverage-guided fuzzing of what reads files and texts, with Atheris (`pip install atheris`).

    python -m tests.robustness.fuzzers                                # the names of the targets
    python -m tests.robustness.fuzzers zip                            # until it is stopped
    python -m tests.robustness.fuzzers zip -max_total_time=600 FOLDER # options of libFuzzer

FOLDER keeps the inputs that reached something new. An input that ends the process, takes more than
20 seconds or 2 GB, or raises what is not documented is written to `crash-...`; the name of that file
as the argument tries it again. Python's lines and branches are what guides the search; those of C++
too where `_C` was built by the preset `fuzz` (see coverage.cpp).
"""

import ctypes
import importlib
import io
import re
import sys
import tempfile
import warnings
from pathlib import Path
from types import FunctionType

import atheris

import taeda
import taeda.inspect
import taeda.library
import taeda.serialization
from tests.robustness import sample_files
from tests.robustness.made_files import packed
from tests.robustness.test_damaged_files import ERRORS, use

INTERNAL = re.compile(r"std::|vector::|basic_string|bad_\w+|map::at|variant")
SAMPLES = {}
TENSORS = [taeda.ones(2), taeda.ones(2, 3), taeda.ones(3, 3), taeda.ones(1, 2, 3)]


def samples(kind):
    if not SAMPLES:
        with tempfile.TemporaryDirectory() as folder:
            SAMPLES.update(sample_files.samples(Path(folder)))
    return [data for name, data in SAMPLES.items() if name.split()[0] == kind]


def streams():
    """The pickle streams of checkpoints, and some that use rarer opcodes."""
    import zipfile

    for data in samples("zip"):
        archive = zipfile.ZipFile(io.BytesIO(data))
        yield next(archive.read(n) for n in archive.namelist() if n.endswith("data.pkl"))
    yield b"\x80\x04(K\x01K\x02\x91\x8f(K\x01\x90\x86."


def load(data):
    use(taeda.load(io.BytesIO(data)))


def text_of(data):
    return data.decode("utf-8", "surrogateescape")


def schema(data):
    library = taeda.library.Library("fuzzed", "FRAGMENT")
    try:
        library.define(text_of(data))
    finally:
        library._remove()


def core_schema(data):
    """What a schema of taeda.library becomes, for the parser in C++."""
    taeda._C._define_op(
        text_of(data).encode("utf-8", "replace").decode().replace("\0", ""), "", load
    )


def einsum(data):
    if data:
        text = text_of(data[1:])
        count = max(1, min(4, text.partition("->")[0].count(",") + (data[0] >> 6 != 1)))
        taeda.einsum(text, *(TENSORS[data[0] >> 2 * i & 3] for i in range(count)))


def device(data):
    taeda.ones(1, device=taeda.device(text_of(data)))


def kind(data):
    taeda.ones(1).type(text_of(data))


def header(data):
    """A safetensors file with this header."""
    load(len(data).to_bytes(8, "little") + data + bytes(64))


SCHEMAS = [
    b"f(Tensor x, int[2] size=[1, 2], *, float? a=1e-3, str s='a') -> (Tensor a, Tensor b)",
    b"f.out(Tensor(a!) x, Scalar v=True, int[] d=[]) -> Tensor(a!)",
    b"f(Tensor? x=None, Tensor[] xs, ScalarType? dtype=None) -> Tensor[]",
]
CORE_SCHEMAS = [
    b"fuzzed_a(x: Tensor, size: int[2] = [1, 2], *, a: float? = 1e-3) -> (a: Tensor, b: Tensor)",
    b"fuzzed_b(x!: Tensor, s: str = 'a', v: Scalar = True, d: int[] = [], p: bool = False) -> Tensor",
    b"fuzzed_c(x: Tensor?, xs: Tensor?[], dtype: dtype? = None, f: float[] = []) -> Tensor[]",
]
# name: (what is called with the bytes, the first inputs)
TARGETS = {
    "zip": (load, lambda: samples("zip")),
    "legacy": (load, lambda: samples("legacy")),
    "pickle": (lambda data: load(packed(data)), lambda: list(streams())),
    "tar": (load, lambda: samples("tar")),
    "safetensors": (load, lambda: samples("safetensors")),
    "safetensors-header": (
        header,
        lambda: [d[8 : d.rindex(b"}") + 1] for d in samples("safetensors")],
    ),
    "npy": (load, lambda: samples("npy")),
    "npz": (load, lambda: samples("npz")),
    "schema": (schema, lambda: SCHEMAS),
    "core-schema": (core_schema, lambda: CORE_SCHEMAS),
    "einsum": (
        einsum,
        lambda: [b"\x05ij,jk->ik", b"\xc0a,b...,...c->abc", b"\x01ii", b"\x82...i,i"],
    ),
    "device": (device, lambda: [b"cpu:0", b"meta", b"cuda:12", b"cpu:-1", b"privateuseone"]),
    "type": (kind, lambda: [b"torch.FloatTensor", b"torch.sparse.LongTensor", b"Double"]),
}


def attempt(call, data):
    try:
        call(data)
    except (*ERRORS, NotImplementedError, AssertionError) as error:
        # As PyTorch says that a build has no such device.
        if isinstance(error, AssertionError) and "this build of taeda has no" not in str(error):
            raise
        if len(str(error)) < 8 or INTERNAL.search(str(error)):
            raise


def instrument():
    """Counters in the readers' Python code, and there alone."""
    begins = ("taeda.serialization", "taeda.inspect", "taeda.library")
    for name, module in list(sys.modules.items()):
        if name.startswith(begins):
            for value in list(vars(module).values()):
                members = vars(value).values() if isinstance(value, type) else [value]
                for f in members:
                    f = getattr(f, "__func__", f)  # of static and class methods
                    if isinstance(f, FunctionType) and f.__module__ == name:
                        atheris.instrument_func(f)


def guide_by_native_code():
    """Let libFuzzer see the counters of a `_C` that has some; returns whether it does."""
    library = ctypes.CDLL(taeda._C.__file__)
    if not hasattr(library, "taeda_count_for"):
        return False
    core = importlib.import_module("atheris.core_with_libfuzzer").__file__
    return library.taeda_count_for(core.encode()) == 0


def main():
    if len(sys.argv) < 2:
        sys.exit("targets: " + " ".join(TARGETS))
    name, *options = sys.argv[1:]
    call, seeds = TARGETS[name]
    warnings.simplefilter("ignore")
    for data in seeds():  # imports what is imported at first use
        attempt(call, data)
    taeda.set_num_threads(1)
    taeda._C.cpu_set_memory_limit(1 << 30)
    with tempfile.TemporaryDirectory() as first:
        for i, data in enumerate(seeds()):
            Path(first, str(i)).write_bytes(data)
        limits = ["-timeout=20", "-rss_limit_mb=2000", "-max_len=20000"]
        folders = [o for o in options if not o.startswith("-")]
        if not any(Path(f).is_file() for f in folders):
            if not folders:
                folders = [tempfile.mkdtemp(prefix=f"fuzz-{name}-", dir=first)]
            folders.append(first)
        options = [o for o in options if o.startswith("-")]
        atheris.Setup([sys.argv[0], *limits, *options, *folders], lambda data: attempt(call, data))
        instrument()
        print("guided by C++ too:", guide_by_native_code(), file=sys.stderr)
        atheris.Fuzz()


if __name__ == "__main__":
    main()
