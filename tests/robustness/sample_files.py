"""Small whole files of every format that load reads, as bytes, to be damaged."""

import io
import pickle
import struct
import sys
import tarfile
from collections import OrderedDict

import numpy as np

import taeda
from taeda import nn
from taeda.serialization._pickler import CheckpointPickler, storage_bytes
from taeda.serialization._rebuild import lookup


def objects():
    model = nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3))
    optimizer = taeda.optim.Adam(model.parameters())
    model(taeda.randn(5, 4)).sum().backward()
    optimizer.step()
    base = taeda.arange(20.0)
    return {
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "complex": taeda.randn(3, 4, dtype=taeda.complex64),
        "mixed": {
            "views": (base[2:], base[::2], base.view(4, 5).T),
            "rest": [1, 2.5, None, True, "x", b"y", {3}, 2**70, taeda.Size([2]), taeda.float16],
        },
        "parameter": nn.Parameter(taeda.ones(3)),
        "storages": (base.storage(), taeda.ones(3).untyped_storage(), taeda.device("cpu")),
        "empty": [taeda.empty(0, 3), taeda.empty(2, device="meta"), taeda.tensor(True)],
    }


def zip_file(thing, protocol=2):
    file = io.BytesIO()
    taeda.save(thing, file, pickle_protocol=protocol)
    return file.getvalue()


class LegacyPickler(CheckpointPickler):
    """Describes storages as PyTorch did before 1.6: with what they are a view of."""

    def persistent_id(self, obj):
        record = super().persistent_id(obj)
        return record and (*record, None)


def legacy_file(thing):
    sizes = {"short": 2, "int": 4, "long": 8}
    info = {"protocol_version": 1001, "little_endian": sys.byteorder == "little"}
    file = io.BytesIO()
    for part in (0x1950A86A20F9469CFC6C, 1001, {**info, "type_sizes": sizes}):
        pickle.dump(part, file, 2)
    pickler = LegacyPickler(2)
    pickler.dump(thing)
    file.write(pickler.stream.getvalue())
    pickle.dump([str(i) for i in range(len(pickler.storages))], file, 2)
    for source in pickler.storages:
        file.write(struct.pack("<q", source.untyped_storage().nbytes() // source.itemsize))
        file.write(storage_bytes(source))
    return file.getvalue()


class _Reference:
    def __init__(self, key):
        self.key = key


class _Referring(pickle.Pickler):
    def persistent_id(self, obj):
        return obj.key if isinstance(obj, _Reference) else None


def _named(record):
    pickler = CheckpointPickler(2)
    pickler.dump(record)
    return pickler.stream.getvalue()


def tar_file():
    """As PyTorch 0.1.9 wrote it: two tensors, one over a view of the other's storage."""
    kind, tensor = lookup("torch.FloatStorage"), taeda.FloatTensor
    storages = pickle.dumps(1, 2) + _named((77, "cpu", kind)) + struct.pack("<q6f", 6, *range(6))
    storages += pickle.dumps([(78, 77, 2, 3)], 2)
    tensors = pickle.dumps(2, 2)
    tensors += _named((5, 77, tensor)) + struct.pack("<i4x5q", 2, 2, 3, 3, 1, 0)
    tensors += _named((6, 78, tensor)) + struct.pack("<i4x3q", 1, 2, 1, 1)
    described = io.BytesIO()
    _Referring(described, 2).dump(OrderedDict(a=_Reference(5), b=[_Reference(6)]))
    sizes = {"short": 2, "int": 4, "long": 8}
    info = {"protocol_version": 1000, "little_endian": True, "type_sizes": sizes}
    parts = {
        "storages": storages,
        "tensors": tensors,
        "pickle": described.getvalue(),
        "sys_info": pickle.dumps(info, 2),
    }
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as archive:
        for name, part in parts.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(part)
            archive.addfile(entry, io.BytesIO(part))
    return file.getvalue()


def safetensors_file(folder):
    path = folder / "file.safetensors"
    tensors = {"x": taeda.arange(12.0).view(3, 4), "half": taeda.ones(2, dtype=taeda.bfloat16)}
    taeda.save({**tensors, "none": taeda.empty(0, 2)}, path)
    return path.read_bytes()


def npy_file(array):
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def npz_file(compressed):
    file = io.BytesIO()
    arrays = {
        "x": np.arange(12.0).reshape(3, 4),
        "flags": np.array([True, False]),
        "n": np.int64(3),
    }
    (np.savez_compressed if compressed else np.savez)(file, **arrays)
    return file.getvalue()


def samples(folder):
    """Files by a name whose first word is their format."""
    things = objects()
    files = {f"zip {name}": zip_file(thing) for name, thing in things.items()}
    files["zip protocol 4"] = zip_file(things["optimizer"], 4)
    files["zip protocol 5"] = zip_file(things["mixed"], 5)
    for name in ("model", "optimizer", "mixed"):
        files[f"legacy {name}"] = legacy_file(things[name])
    files["tar"] = tar_file()
    files["safetensors"] = safetensors_file(folder)
    files["npy"] = npy_file(np.arange(12.0).reshape(3, 4))
    files["npy fortran"] = npy_file(np.asfortranarray(np.arange(6).reshape(2, 3)))
    files["npz"] = npz_file(compressed=False)
    files["npz compressed"] = npz_file(compressed=True)
    return files
