"""Files with mutated bytes: one clear error or valid tensors, never a crash or a huge allocation.

21,600 of them, of every format: those of PyTorch (zip archives, and what it wrote before 1.6),
safetensors, npy and npz. Each sample is one test, so that workers share them.
"""

import io
import pickle
import random
import re
import resource
import tempfile
import zipfile
import zlib
from pathlib import Path

import pytest

import taeda
from tests.robustness import sample_files

EACH = 1200  # mutations of each sample, times --campaign
# What load may raise for a damaged file. A MemoryError is not among them.
ERRORS = (RuntimeError, ValueError, EOFError, TypeError, KeyError, pickle.UnpicklingError)
OPCODES = b"(.0123NFGIJKLMPQRSTUVXabcdeghijloprstuq}]\x80\x85\x86\x87\x88\x89\x8a\x8c\x93\x94"
EXTREMES = [0, 1, 2**31 - 1, 2**31, 2**32 - 1, 2**40, 2**63 - 1, 2**63, 2**64 - 1]
NUMBERS = [b"0", b"-1", b"999999999999999999999", b"1e400", b"4611686018427387904", b"null", b"[]"]

with tempfile.TemporaryDirectory() as folder:
    SAMPLES = sample_files.samples(Path(folder))


def mutated(data, pick):
    data = bytearray(data)
    for _ in range(pick.choice([1, 1, 2, 4])):
        at = pick.randrange(len(data) or 1)
        way = pick.randrange(9)
        if way == 0:
            data[at : at + 1] = bytes([pick.randrange(256)])
        elif way == 1:
            del data[at : at + pick.choice([1, 2, 10, 100])]
        elif way == 2:
            data[at:at] = pick.randbytes(pick.choice([1, 2, 8]))
        elif way == 3:
            del data[at:]
        elif way == 4:
            size = pick.choice([4, 8])
            extreme = pick.choice(EXTREMES) % 256**size
            data[at : at + size] = extreme.to_bytes(size, "little")
        elif way == 5:
            data[at : at + 1] = bytes([pick.choice(OPCODES)])
        elif way == 6:
            other = pick.randrange(len(data) or 1)
            data[at : at + 4] = data[other : other + 4]
        elif way == 7:
            data[at : at + 1] = bytes([data[at] ^ 1 << pick.randrange(8)]) if data else b""
        else:  # a number in text, as headers have them
            found = [m.span() for m in re.finditer(rb"\d+", data[:400])]
            if found:
                begin, end = pick.choice(found)
                data[begin:end] = pick.choice(NUMBERS)
    return bytes(data)


def with_a_damaged_entry(data, pick):
    """The zip archive is whole again, with checksums that fit: what is in it is damaged."""
    archive = zipfile.ZipFile(io.BytesIO(data))
    names = archive.namelist()
    victim = pick.choice([n for n in names if n.endswith("data.pkl")] * 4 + names)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as out:
        for name in names:
            entry = archive.read(name)
            out.writestr(name, mutated(entry, pick) if name == victim else entry)
    return buffer.getvalue()


def with_a_damaged_header(data, pick):
    """For formats whose values take most of the file: the damage is where it can be seen."""
    return mutated(data[:160], pick) + data[160:]


def damage_of(name, data, pick):
    if name.startswith(("zip", "npz")) and pick.random() < 0.5:
        return with_a_damaged_entry(data, pick)
    if name.startswith(("safetensors", "npy")) and pick.random() < 0.8:
        return with_a_damaged_header(data, pick)
    return mutated(data, pick)


@pytest.fixture
def little_memory():
    """Far more than the files hold, far less than what damaged sizes may ask for."""
    before = taeda._C.cpu_memory_stats()
    taeda._C.cpu_set_memory_limit(before["reserved"] + (64 << 20))
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limits = resource.getrlimit(resource.RLIMIT_AS)
    most = pages * resource.getpagesize() + (512 << 20)
    resource.setrlimit(resource.RLIMIT_AS, (most, limits[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, limits)
    taeda._C.cpu_set_memory_limit(before["limit"])


def use(value):
    """Read all of what was loaded: every element of every tensor."""
    if isinstance(value, taeda.Tensor):
        if value.device.type == "cpu":
            assert value.isnan().sum().item() <= value.numel() if value.numel() < 1000 else True
        return repr(value.shape)
    if isinstance(value, dict):
        return [(use(k), use(v)) for k, v in value.items()]
    if isinstance(value, (list, tuple, set)):
        return [use(item) for item in value]
    return repr(value)


def attempt(load):
    """Whether it loaded; what it raised instead must be clear."""
    try:
        use(load())
    except ERRORS as e:
        assert len(str(e)) > 10, type(e)
        assert not re.search(r"std::|vector::", str(e)), e
        return False
    return True


@pytest.mark.filterwarnings("ignore:invalid escape sequence:DeprecationWarning")
@pytest.mark.filterwarnings("ignore:Reading `.npy` or `.npz` file required additional header")
@pytest.mark.parametrize("name", SAMPLES)
def test_damaged_files(name, little_memory, tmp_path, campaign):
    original, pick = SAMPLES[name], random.Random(zlib.crc32(name.encode()))
    count = EACH * campaign
    assert attempt(lambda: taeda.load(io.BytesIO(original)))
    loaded = 0
    for _ in range(count):
        data = damage_of(name, original, pick)
        loaded += attempt(lambda: taeda.load(io.BytesIO(data)))
    # Damage in the middle of values cannot be seen in formats without checksums.
    assert loaded < 0.8 * count
    # The other ways to read a file.
    path = tmp_path / "file"
    for _ in range(count // 20):
        path.write_bytes(damage_of(name, original, pick))
        attempt(lambda: taeda.load(path, mmap=True))
        attempt(lambda: taeda.load(path, map_location="meta"))


def test_warnings_about_a_header_may_be_errors():
    """NumPy warns of the letter `a` in dtypes; where warnings are errors, the file is damaged."""
    data = SAMPLES["npy"].replace(b"'<f8'", b"'<a8'")
    with pytest.raises(RuntimeError, match="header cannot be read"):
        taeda.load(io.BytesIO(data))


def test_enough_files_are_damaged():
    assert len(SAMPLES) * EACH >= 20_000
    formats = {name.split()[0] for name in SAMPLES}
    assert formats == {"zip", "legacy", "tar", "safetensors", "npy", "npz"}


# ---- files made to do harm ----------------------------------------------------------------------


def archive_of(entries, compression=zipfile.ZIP_DEFLATED):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as out:
        for name, data in entries.items():
            out.writestr(name, data)
    return io.BytesIO(buffer.getvalue())


def test_zip_bombs_are_refused(little_memory):
    nothing = b"\x80\x02" + b"N0" * 40_000_000 + b"N."
    with pytest.raises(RuntimeError, match="refused: its .* would unpack to"):
        taeda.load(archive_of({"a/data.pkl": nothing}))
    entries = {f"a/{i}": bytes(20_000_000) for i in range(5)}
    with pytest.raises(RuntimeError, match="refused: its .* would unpack to"):
        taeda.load(archive_of({"a/data.pkl": b"\x80\x02N.", **entries}))
    with pytest.raises(RuntimeError, match="zip bomb"):
        taeda.load(archive_of({"x.npy": bytes(100_000_000)}))
    # What is compressed within reason is read.
    assert taeda.load(archive_of({"a/data.pkl": b"\x80\x02" + b"N0" * 10_000 + b"N."})) is None


def test_pickle_bombs_are_refused(little_memory):
    def doubled(end):  # each tuple holds the one before it twice
        steps = [b"h%ch%c\x86q%c0" % (i, i, i + 1) for i in range(40)]
        return b"\x80\x02)q\0" + b"0" + b"".join(steps) + end

    for end in (
        b"}h\x28Ns.",
        b"\x8f(h\x28\x90.",
        b"(h\x28\x91.",
        b"(h\x28Nd.",
        b"cbuiltins\nset\n]h\x28a\x85R.",
    ):
        with pytest.raises(pickle.UnpicklingError, match="too large"):
            taeda.load(archive_of({"a/data.pkl": doubled(end)}))
    endless = b"\x80\x02(" * 100_000 + b"N."
    with pytest.raises(pickle.UnpicklingError):
        taeda.load(archive_of({"a/data.pkl": endless}, zipfile.ZIP_STORED))
    for size in (b"\x8a\xff\xff\xff\x7f", b"B\xff\xff\xff\x7f", b"\x96" + b"\xff" * 7 + b"\x7f"):
        with pytest.raises(pickle.UnpicklingError, match="too soon"):
            taeda.load(archive_of({"a/data.pkl": b"\x80\x02" + size + b"N."}))


def test_names_in_archives_are_never_paths(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("../outside", "/tmp/outside", "..\\outside", "a/../../outside"):
        file = archive_of({"a/data.pkl": b"\x80\x02N.", name: b"x"})
        attempt(lambda: taeda.load(file))
        with pytest.raises(RuntimeError):
            taeda.load(archive_of({name: b"x"}))
    assert not any(tmp_path.iterdir()) and not (tmp_path.parent / "outside").exists()


@pytest.mark.parametrize(
    "call", [b"cos\nsystem\n", b"cbuiltins\neval\n", b"ctorch.hub\nload\n", b"cos.path\njoin\n"]
)
def test_no_function_of_a_file_is_called(call, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    stream = b"\x80\x02" + call + b"X\x0c\0\0\0touch harmed\x85R."
    for file in (archive_of({"a/data.pkl": stream}), io.BytesIO(zip_free(stream))):
        with pytest.raises(pickle.UnpicklingError, match="not among the names"):
            taeda.load(file)
    assert not any(tmp_path.iterdir())


def zip_free(stream):
    """The stream as a file of PyTorch before 1.6."""
    head = [
        pickle.dumps(part, 2) for part in (0x1950A86A20F9469CFC6C, 1001, {"little_endian": True})
    ]
    return b"".join(head) + stream + pickle.dumps([], 2)
