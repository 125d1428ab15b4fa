"""Files that are made or damaged by the structure of their format."""

import io
import json
import re
import struct
import zipfile


def packed(stream):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as out:
        out.writestr("a/data.pkl", stream)
        out.writestr("a/data/0", bytes(16))
    return file.getvalue()


class Streams:
    """Pickle streams from a grammar: most opcodes have what they need on the stack."""

    NAMES = (
        *(b"ctorch._utils\n_rebuild_tensor_v2\n", b"ctorch._utils\n_rebuild_parameter\n"),
        *(b"ctorch._utils\n_rebuild_sparse_tensor\n", b"ctorch\nSize\n", b"ctorch\ndevice\n"),
        *(b"ccollections\nOrderedDict\n", b"ccollections\nCounter\n", b"cbuiltins\nset\n"),
        *(b"ctorch._tensor\n_rebuild_from_type_v2\n", b"c_codecs\nencode\n", b"ctorch\nfloat32\n"),
        *(b"ctorch.serialization\n_get_layout\n", b"cbuiltins\nbytearray\n", b"cos\nsystem\n"),
        *(b"ctorch\nTensor\n", b"ctorch\nFloatStorage\n", b"cbuiltins\ncomplex\n"),
    )

    def __init__(self, pick):
        self.pick, self.stored = pick, 0

    def value(self, depth=0):
        pick = self.pick
        way = pick.randrange(18 if depth < 5 else 8)
        if way < 8:
            return pick.choice(
                [
                    *(
                        b"N",
                        b"\x88",
                        b"\x89",
                        b"K\x01",
                        b"K\x04",
                        b"M\xff\xff",
                        b"J\xff\xff\xff\xff",
                    ),
                    *(b"\x8a\x09" + b"\xff" * 8 + b"\x00", b"G\x7f\xf0" + bytes(6), b"X\1\0\0\0a"),
                    *(b"X\3\0\0\0cpu", b"X\6\0\0\0latin1", b"C\3abc", b")", b"]", b"}", b"\x8f"),
                    *(b"X\x10\0\0\0torch.sparse_coo", b"K\x02\x85", b"K\x01\x85", b"h\0"),
                ]
            )
        if way == 8:
            return b"(" + b"".join(self.value(depth + 1) for _ in range(pick.randrange(5))) + b"t"
        if way == 9:
            return b"](" + b"".join(self.value(depth + 1) for _ in range(pick.randrange(5))) + b"e"
        if way == 10:
            pairs = range(pick.randrange(4))
            return b"}(" + b"".join(self.value(depth + 1) * 2 for _ in pairs) + b"u"
        if way == 11:
            kind = pick.choice([b"FloatStorage", b"LongStorage", b"ByteStorage"])
            count = pick.choice([b"K\x04", b"K\x02", b"K\x08", b"K\x10", b"J\xff\xff\xff\x7f"])
            return (
                b"(X\7\0\0\0storagectorch\n" + kind + b"\nX\1\0\0\0000X\3\0\0\0cpu" + count + b"tQ"
            )
        if way == 12:
            size, stride = (pick.choice([b"K\2\x85", b")", b"K\2K\2\x86"]) for _ in range(2))
            begin = b"ctorch._utils\n_rebuild_tensor_v2\n(" + self.value(depth + 1)
            value = pick.choice([b"\x88", b"\x88", self.value(depth + 1)])
            marks = [b"", b"", b"}X\4\0\0\0conj" + value + b"s", b"}X\3\0\0\0neg" + value + b"s"]
            rest = b"\x89ccollections\nOrderedDict\n)R" + pick.choice(marks) + b"tR"
            return begin + b"K\0" + size + stride + rest
        if way == 13:
            return self.value(depth + 1) + b"q" + bytes([pick.randrange(4)])
        if way == 14:
            return self.value(depth + 1) + self.value(depth + 1) + b"b"
        args = b"(" + b"".join(self.value(depth + 1) for _ in range(pick.randrange(5))) + b"t"
        return pick.choice(self.NAMES) + args + pick.choice([b"R", b"R", b"\x81"])

    def stream(self):
        return b"\x80\x02Nq\0" + b"0" + self.value() + b"."


def damaged_zip(pick, whole):
    """One field of a header or of the directory is another number."""
    data = bytearray(whole)
    magic = pick.choice([b"PK\x03\x04", b"PK\x01\x02", b"PK\x05\x06"])
    places = [m.start() for m in re.finditer(re.escape(magic), data)]
    at = pick.choice(places) + pick.choice(range(4, 30, 2))
    size = pick.choice([2, 4])
    number = pick.choice([0, 1, 8, 12, 14, 99, 2**15, 2**16 - 1, 2**31, 2**32 - 1, len(data)])
    data[at : at + size] = (number % 256**size).to_bytes(size, "little")
    return bytes(data)


def damaged_tar(pick, whole):
    data = bytearray(whole)
    at = 512 * pick.randrange(len(data) // 512)
    way = pick.randrange(4)
    if way == 0:
        data[at + 156] = pick.choice(b"0123456789SLKxgVMA\0")
    elif way == 1:
        data[at + 124 : at + 136] = pick.choice(
            [b"77777777777\0", b"00000000000 ", b"\x80" + bytes(11)]
        )
    else:
        place = at + pick.randrange(120)
        data[place : place + 8] = pick.randbytes(8)
    return bytes(data)


def made_safetensors(pick):
    def number():
        return pick.choice([0, 1, 2, 4, 8, -1, 2**31, 2**63, 2**64, 10**30, 1.5, "4", None, []])

    tensors = {}
    at = 0
    for name in pick.sample(["a", "b", "", "\0", "__metadata__", "x" * 300], pick.randrange(1, 4)):
        shape, size = pick.choice([([2], 8), ([0], 0), ([], 4), ([1, 2], 8)])
        entry = {"dtype": "F32", "shape": shape, "data_offsets": [at, at + size]}
        at += size
        for _ in range(pick.randrange(2)):
            way = pick.randrange(4)
            if way == 0:
                entry["dtype"] = pick.choice(["F64", "X", "", None, 5, "BOOL"])
            elif way == 1:
                entry["shape"] = [number() for _ in range(pick.choice([0, 1, 2, 65]))]
            elif way == 2:
                entry["data_offsets"] = [number() for _ in range(pick.choice([1, 2, 2, 3]))]
            else:
                entry.pop(pick.choice(list(entry)))
        tensors[name] = entry
    text = json.dumps(tensors).encode()
    size = len(text) if pick.random() < 0.9 else pick.choice([0, 2**40 - 1, 2**63])
    return size.to_bytes(8, "little") + text + bytes(at)


def made_npy(pick, whole):
    header = whole[10:128]
    old = pick.choice([b"<f8", b"(3, 4)", b"False", b"'descr'", b"shape"])
    new = pick.choice(
        [b"|O", b"<i9", b"(2**40,)", b"(-1, 4)", b"()", b"(" * 40, b"True", b"None", b"99" * 30]
    )
    changed = header.replace(old, new)
    return whole[:8] + struct.pack("<H", len(changed)) + changed + whole[128:]
