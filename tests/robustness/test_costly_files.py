"""Small files that ask for much: refused soon, with little memory, whatever their format."""

import io
import json
import pickle
import resource
import struct
import sys
import tarfile
import time
import zipfile
from pathlib import Path

import numpy as np
import pytest

import taeda
from taeda.inspect import inspect_file
from taeda.serialization._limits import brief
from taeda.serialization._records import PyTorchFileReader
from tests.robustness.sample_files import tar_file

pytestmark = pytest.mark.unsanitized("measures address space and processor time")
MEGABYTE = 1 << 20
MOST_SECONDS = 20.0
ERRORS = (RuntimeError, ValueError, EOFError, pickle.UnpicklingError)


@pytest.fixture(autouse=True)
def little():
    """300 MB more than there are now, and `MOST_SECONDS` of processor time."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limits = resource.getrlimit(resource.RLIMIT_AS)
    most = pages * resource.getpagesize() + (300 << 20)
    resource.setrlimit(resource.RLIMIT_AS, (most, limits[1]))
    start = time.process_time()
    yield
    resource.setrlimit(resource.RLIMIT_AS, limits)
    assert time.process_time() - start < MOST_SECONDS


def archive(entries, method=zipfile.ZIP_STORED):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as out:
        for name, data in entries.items():
            out.writestr(name, data)
    return file.getvalue()


def checkpoint(stream, **entries):
    return archive({"a/data.pkl": stream, **{f"a/data/{k}": v for k, v in entries.items()}})


def refused(data, match="."):
    with pytest.raises(ERRORS, match=match) as caught:
        taeda.load(io.BytesIO(data))
    assert 10 < len(str(caught.value)) < 2000
    return str(caught.value)


# ---- memory -------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA, zipfile.ZIP_DEFLATED])
@pytest.mark.parametrize("name", ["x.npy", "a/data.pkl"])
def test_members_that_unpack_to_much(method, name):
    file = io.BytesIO()
    header = io.BytesIO()
    count = (300 if method == zipfile.ZIP_DEFLATED else 8) * MEGABYTE
    np.lib.format.write_array_header_1_0(
        header, {"shape": (count,), "fortran_order": False, "descr": "|u1"}
    )
    with zipfile.ZipFile(file, "w", method) as out, out.open(name, "w") as part:
        part.write(header.getvalue() if name == "x.npy" else b"\x80\x02N.")
        for _ in range(count // MEGABYTE):
            part.write(bytes(MEGABYTE))
    refused(file.getvalue(), "stored in a way|zip bomb")


def shared_entries(count, size):
    """Entries of a checkpoint that all lie over the same bytes."""
    name = [f"a/data/{i:04}".encode() for i in range(count)]
    stream = b"\x80\x02]("
    for i in range(count):
        key = b"X\x04\0\0\0%04d" % i
        stream += b"(X\x07\0\0\0storagectorch\nByteStorage\n" + key
        stream += b"X\x03\0\0\0cpuJ" + struct.pack("<i", size) + b"tQ"
    stream += b"e."
    whole = archive({"a/data.pkl": stream, "a/data/0000": bytes(size)})
    end = whole.rindex(b"PK\x05\x06")
    directory = whole.index(b"PK\x01\x02")
    second = whole.index(b"PK\x01\x02", directory + 1)
    entries = [whole[directory:second]]
    entries += [whole[second:end].replace(name[0], n) for n in name]
    packed = b"".join(entries)
    tail = struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, *[count + 1] * 2, len(packed), directory, 0)
    return whole[:directory] + packed + tail


def test_entries_that_share_bytes():
    refused(shared_entries(40, 16 * MEGABYTE), "shares bytes")


def sparse_tar(size):
    """The member `storages` is of GNU's sparse type: a hole."""
    data = bytearray(tar_file())
    data[156:157] = b"S"
    data[483:495] = b"%011o\0" % size
    data[148:156] = b" " * 8
    data[148:156] = b"%06o\0 " % sum(data[:512])
    return bytes(data)


def test_a_tar_with_holes():
    refused(sparse_tar(20 << 30), "stored in a way")


def test_a_tar_with_links():
    data = bytearray(tar_file())
    data[156:157] = b"2"
    refused(bytes(data), "stored in a way")


def test_records_are_bounded():
    bomb = archive({"a/x": bytes(100 * MEGABYTE)}, zipfile.ZIP_DEFLATED)
    with pytest.raises(RuntimeError, match="zip bomb"):
        PyTorchFileReader(io.BytesIO(bomb)).get_record("x")
    with pytest.raises(RuntimeError, match="shares bytes"):
        PyTorchFileReader(io.BytesIO(shared_entries(40, 1000)))
    whole = PyTorchFileReader(io.BytesIO(archive({"a/x": bytes(MEGABYTE)})))
    for _ in range(1000):  # whoever reads records again and again keeps none of them
        assert len(whole.get_record("x")) == MEGABYTE
    with pytest.raises(RuntimeError, match="-1 elements"):
        whole.get_storage_from_record("x", -1, taeda.float32)


OBJECTS = {
    "sets": b"\x8f" * MEGABYTE,
    "dicts": b"}" * MEGABYTE,
    "marks": b"(" * MEGABYTE,
    "copies of bytes": b"cbuiltins\nbytearray\nq\0B" + struct.pack("<I", MEGABYTE // 2)
    + bytes(MEGABYTE // 2) + b"\x85q\x01" + b"h\0h\x01R" * 100_000,
    "encoded texts": b"c_codecs\nencode\nq\0X" + struct.pack("<I", MEGABYTE // 2)
    + b"x" * (MEGABYTE // 2) + b"X\6\0\0\0latin1\x86q\x01" + b"h\0h\x01R" * 100_000,
    "sets of a list": b"cbuiltins\nset\nq\0](" + b"N" * (MEGABYTE // 2) + b"e\x85q\x01"
    + b"h\0h\x01R" * 100_000,
    "dicts of a list": b"ccollections\nOrderedDict\nq\0](" + b"NN\x86" * (MEGABYTE // 4)
    + b"e\x85q\x01" + b"h\0h\x01R" * 100_000,
}  # fmt: skip


@pytest.mark.parametrize("name", OBJECTS)
def test_objects_by_the_million(name):
    stream = b"\x80\x02" + OBJECTS[name] + b"."
    refused(archive({"a/data.pkl": stream}, zipfile.ZIP_STORED), "zip bomb|steps|not valid")


def test_max_memory_allows_more():
    data = archive({"a/data.pkl": b"\x80\x02]" + bytes(0) + b"N0" * 50_000_000 + b"."},
                   zipfile.ZIP_DEFLATED)  # fmt: skip
    refused(data, "max_memory=... allows more")
    small = archive({"x.npy": npy(np.zeros(1000))})
    with pytest.raises(RuntimeError, match="zip bomb"):
        taeda.load(io.BytesIO(small), max_memory=1000)
    assert taeda.load(io.BytesIO(small), max_memory=1 << 20)["x"].shape == (1000,)
    for wrong, error in ((0, ValueError), (-1, ValueError), ("1", TypeError), (1.5, TypeError)):
        with pytest.raises(error, match="max_memory"):
            taeda.load(io.BytesIO(small), max_memory=wrong)


def npy(array):
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def legacy(stream, keys, storages=b""):
    head = [
        pickle.dumps(part, 2) for part in (0x1950A86A20F9469CFC6C, 1001, {"little_endian": True})
    ]
    return b"".join(head) + stream + pickle.dumps(keys, 2) + storages


def test_storages_of_old_files_do_not_exceed_them():
    stream = b"\x80\x02]("
    for i in range(2000):
        stream += b"(X\x07\0\0\0storagectorch\nByteStorage\nX\x04\0\0\0%04d" % i
        stream += b"X\x03\0\0\0cpuJ" + struct.pack("<i", MEGABYTE) + b"NtQ"
    refused(legacy(stream + b"e.", [], bytes(2 * MEGABYTE)), "do not fit into it")


# ---- steps --------------------------------------------------------------------------------------


def shared(levels, kind=list):
    x = kind([1])
    for _ in range(levels):
        x = kind([x, x])
    return x


def doubled(levels):
    """A stream that makes a tuple of a tuple ..., each with the one below twice."""
    return b")q\0" + b"".join(b"0h%ch%c\x86q%c" % (i, i, i + 1) for i in range(levels))


# Numbers whose hashes are all 0.
COLLIDING = [pickle.dumps((2**61 - 1) * i, 2)[2:-1] for i in range(40_000)]
STEPS = {
    "tuples as keys": doubled(60) + b"}h\x3cNs.",
    "tuples as items": doubled(60) + b"\x8f(h\x3c\x90.",
    "keys with the same hash": b"}(" + b"".join(n + b"N" for n in COLLIDING) + b"u.",
    "items with the same hash": b"\x8f(" + b"".join(COLLIDING) + b"\x90.",
    "a frozenset with the same hash": b"(" + b"".join(COLLIDING) + b"\x91.",
    "a list with the same hash": b"cbuiltins\nset\n](" + b"".join(COLLIDING) + b"e\x85R.",
    "a large tuple again and again": b"(" + b"N" * 9000 + b"tq\0}" + b"h\0Ns" * 200_000 + b".",
}


@pytest.mark.parametrize("name", STEPS)
def test_keys_that_take_long_to_compare(name):
    refused(checkpoint(b"\x80\x04" + STEPS[name]), "too large|steps")


def test_frozensets_as_items():
    # Each level twice, from separate parts, so that they are equal but not the same.
    stream = b"\x80\x04"
    for half in (0, 1):
        stream += b"(K\x01\x91" + bytes([0x71, half])
        for _ in range(60):
            stream += bytes([0x30]) + b"(" + b"h%c" % half + b"h%c" % half + b"\x86\x91q%c" % half
        stream += b"0"
    stream += b"\x8f(h\x00h\x01\x90."
    refused(checkpoint(stream), "too large")


SHARED = b"\x80\x02]q\0" + b"".join(
    b"0](h%ch%ceq%c" % (i, i, i + 1) for i in range(60)
)  # a list of a list ... twice each
MESSAGES = {
    "called": SHARED + b")R.",
    "made": SHARED + b")\x81.",
    "a storage": SHARED + b"Q.",
    "a storage's key": SHARED + b"0(X\x07\0\0\0storageh\x3ch\x3ch\x3cNtQ.",
    "a layout": b"\x80\x02ctorch.serialization\n_get_layout\n" + SHARED[2:] + b"\x85R.",
    "a builder": b"\x80\x02ctorch._tensor\n_rebuild_from_type_v2\n(" + SHARED[2:]
    + b"h\x3c)}tR.",
}  # fmt: skip


@pytest.mark.parametrize("name", MESSAGES)
def test_messages_are_short(name):
    assert len(refused(checkpoint(MESSAGES[name]))) < 1000


def test_brief():
    assert brief([1, "x", None]) == "[1, 'x', None]" and brief((1,)) == "(1,)"
    assert brief({}) == "{}" and brief({"a": (1, 2)}) == "{'a': (1, 2)}"
    long = ["x" * 10**6, b"x" * 10**6, list(range(10**6)), 7**9999]
    for value in (shared(60), shared(60, tuple), *long):
        assert len(brief(value)) <= 200
    own = []
    own.append(own)
    assert brief(own) == "[[[...]]]"


def test_inspect_lists_shared_structure(tmp_path):
    path = tmp_path / "x.pt"
    path.write_bytes(checkpoint(SHARED + b"."))
    report = inspect_file(path)
    assert 0 < len(report.others) <= 100_001 and all(len(t) < 200 for _, t in report.others)
    deep = b"\x80\x02" + b"](" * 50_000 + b"K\x01" + b"e" * 50_000 + b"."
    path.write_bytes(checkpoint(deep))
    assert len(inspect_file(path).others) == 1


def test_sizes_by_the_million():
    header = {"x": {"dtype": "F32", "shape": [3] * 300_000, "data_offsets": [0, 4]}}
    text = json.dumps(header).encode()
    refused(len(text).to_bytes(8, "little") + text + bytes(4), "describe 'x' rightly")
    sizes = b"(" + b"K\x01" * 100_000 + b"tq\1"
    stream = b"\x80\x02ctorch._utils\n_rebuild_meta_tensor_no_storage\nq\0ctorch\nfloat32\nq\2"
    stream += sizes + b"0" + b"h\0(h\2h\1h\1\x89tR0" * 20_000
    refused(checkpoint(stream + b"."), "sizes or strides")


def test_keys_of_a_tar_are_numbers():
    nested = b"\x80\x02" + doubled(60)
    for views in (b"]((h\x3cK\x4dK\x02K\x03te.", b"]((K\x4eh\x3cK\x02K\x03te."):
        parts, made = {}, io.BytesIO()
        with tarfile.open(fileobj=io.BytesIO(tar_file())) as archive:
            for name in archive.getnames():
                parts[name] = archive.extractfile(name).read()
        whole = pickle.dumps([(78, 77, 2, 3)], 2)
        changed = nested + b"0" + views
        parts["storages"] = parts["storages"].replace(whole, changed)
        with tarfile.open(fileobj=made, mode="w") as archive:
            for name, part in parts.items():
                entry = tarfile.TarInfo(name)
                entry.size = len(part)
                archive.addfile(entry, io.BytesIO(part))
        refused(made.getvalue(), "is no key|is no storage")


def test_old_lists_of_storages_are_checked_before_they_are_sorted():
    keys = [shared(60, tuple), shared(60, tuple)]
    refused(legacy(b"\x80\x02N.", keys), "its list of storages")


def test_names_twice_in_a_header():
    text = b'{"x":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"x":1}'
    refused(len(text).to_bytes(8, "little") + text + b"\0", "twice")


def test_names_of_classes_by_the_hundred_thousand():
    names = b"".join(b"cm\nn%d\n0" % i for i in range(100_000))
    file = io.BytesIO(checkpoint(b"\x80\x02" + names + b"N."))
    with pytest.raises(RuntimeError, match="zip bomb"):
        taeda.serialization.get_unsafe_globals_in_checkpoint(file)


def test_attributes_again_and_again():
    state = pickle.dumps({f"k{i}": 0 for i in range(60_000)}, 2)[2:-1]
    stream = b"\x80\x02ccollections\nOrderedDict\n)R" + state + b"r\xff\xff\xff\x7fb"
    stream += b"j\xff\xff\xff\x7fb" * 40_000 + b"."
    refused(checkpoint(stream), "steps")


def test_ints_are_no_longer_than_sizes():
    long = b"\x8b" + struct.pack("<I", MEGABYTE // 2) + b"\x7f" * (MEGABYTE // 2)
    record = b"(X\x07\0\0\0storagectorch\nFloatStorage\nX\1\0\0\0000X\3\0\0\0cpu" + long + b"tQ."
    refused(checkpoint(b"\x80\x02" + record, **{"0": bytes(4)}), "describes a storage")


if __name__ == "__main__":
    sys.exit(pytest.main([__file__]))
