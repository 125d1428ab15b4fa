"""Calls every op with odd arguments, each call made from a seed alone.

`python tests/robustness/fuzz.py KIND COUNT [FIRST [NAME]]` makes COUNT calls for each op (KIND
"random": arguments made up from the op's signature; "spoilt": working arguments of which some are
spoilt; "indexing": reading and writing). An error is fine; a crash, a hang, an exception of a
strange type or one without a message is not. NAME with FIRST and a COUNT of 1 repeats one call.
"""

import faulthandler
import math
import os
import random
import re
import sys
import warnings

import taeda
from tests.robustness.working_calls import working_calls

ops = taeda._C.ops
ARGUMENT = re.compile(r"(\w+)!?: (\w+)\??(\[\d*\])?(\?)?( = .*)?$")
ODD = [2**31, -(2**31), 2**31 - 1, 2**32, 2**62, -(2**62), 2**63 - 1, -(2**63), 2**63, 2**40, 64]
REAL = [0.0, 1.0, -1.0, 0.5, 1e-5, float("nan"), float("inf"), -float("inf"), 1e308, 1e-320]
TEXT = ["mean", "sum", "none", "", "x", "ij,jk->ik", "reflect", "constant", "floor", "prod", "\0"]
STRAY = ["x", 1.5, object(), [], (), {}, True, 2**70, [None], [[1], [2, 3]], b"", slice(None), 1j]
DTYPES = [
    *(taeda.float32, taeda.float64, taeda.float16, taeda.bfloat16, taeda.complex64),
    *(taeda.complex128, taeda.int8, taeda.int16, taeda.int32, taeda.int64, taeda.uint8),
    *(taeda.uint16, taeda.uint32, taeda.uint64, taeda.float8_e4m3fn, taeda.float8_e4m3fnuz),
    *(taeda.float8_e5m2, taeda.float8_e5m2fnuz, taeda.float8_e8m0fnu, taeda.bool),
]
ERRORS = (RuntimeError, TypeError, ValueError, IndexError, MemoryError, OverflowError)
INTERNAL = re.compile(r"std::|vector::|basic_string|bad_\w+|map::at|variant|optional access")
MOST_BYTES = 256 << 20


class Arguments:
    """Makes the arguments of one call."""

    def __init__(self, seed: str):
        self.pick = random.Random(seed)
        self.shape = self.some_shape()
        self.dtype = self.pick.choice([taeda.float32, taeda.int64, *DTYPES])
        self.alike = self.pick.random() < 0.6  # arguments that go together: more calls succeed
        self.grad = self.pick.random() < 0.4
        self.odd = self.pick.random() < 0.5

    def some_shape(self):
        rank = self.pick.choice([0, 1, 1, 2, 2, 3, 4, 5])
        return [self.pick.choice([0, 1, 1, 2, 3, 5]) for _ in range(rank)]

    def values(self, count, dtype):
        if dtype.is_floating_point or dtype.is_complex:
            odd = self.pick.random() < 0.3
            return [self.pick.choice(REAL) if odd else self.pick.gauss(0, 2) for _ in range(count)]
        extremes = [2**62, -(2**63), 2**63 - 1, -1] if self.pick.random() < 0.2 else [0, 1, 2, -1]
        return [self.pick.choice(extremes) for _ in range(count)]

    def tensor(self, dtype=None):
        pick = self.pick
        if dtype is None:
            dtype = self.dtype if self.alike or pick.random() < 0.3 else pick.choice(DTYPES)
        shape = self.shape if pick.random() < (0.8 if self.alike else 0.3) else self.some_shape()
        if pick.random() < 0.04:
            return taeda.empty(shape, dtype=dtype, device="meta")
        wide = taeda.float64 if dtype.is_floating_point or dtype.is_complex else taeda.int64
        x = taeda.tensor(self.values(math.prod(shape), dtype), dtype=wide).to(dtype).reshape(shape)
        x = self.laid_out(x)
        if self.grad and (dtype.is_floating_point or dtype.is_complex) and pick.random() < 0.7:
            x = x.detach().requires_grad_()
        return x

    def laid_out(self, x):
        way = self.pick.randrange(20)
        if way == 0 and x.dim() > 1:
            return x.transpose(0, -1)
        if way == 1 and x.dim() > 0:
            return x[::2]
        if way == 2 and x.numel() > 0 and x.dim() > 0:
            return x[..., :1].expand(x.shape)
        if way == 3 and x.numel() > 3:
            return x.reshape(-1).as_strided((3, 2), (1, 1))
        if way == 4 and x.dim() == 4:
            return x.contiguous(memory_format=taeda.channels_last)
        return x

    def integer(self, name=""):
        if self.odd and self.pick.random() < 0.3:
            return self.pick.choice(ODD)
        if name.startswith("dim") and self.pick.random() < 0.7:
            return self.pick.randrange(-max(len(self.shape), 1), max(len(self.shape), 1))
        return self.pick.choice([-3, -2, -1, 0, 0, 1, 1, 2, 2, 3, 4])

    def value(self, name, kind, repeated, optional):
        pick = self.pick
        if pick.random() < (0.25 if optional else 0.01):
            return None
        if pick.random() < 0.015:
            return pick.choice(STRAY)
        if repeated:
            if name == "size" and kind == "int" and pick.random() < 0.4:
                return list(self.shape)
            count = int(repeated[1:-1] or 0) or pick.choice([0, 1, 2, 2, 3, 5])
            return [self.value(name, kind, None, False) for _ in range(count)]
        make = {
            "Tensor": lambda: self.tensor(taeda.int64 if "ind" in name else None),
            "int": lambda: self.integer(name),
            "float": lambda: pick.choice(REAL),
            "bool": lambda: pick.random() < 0.5,
            "Scalar": lambda: pick.choice([self.integer(), pick.choice(REAL), True, 1 + 2j]),
            "str": lambda: pick.choice(TEXT),
            "dtype": lambda: pick.choice(DTYPES),
            "device": lambda: pick.choice(["cpu", "meta", "cuda", "bad", ""]),
            "Generator": taeda.Generator,
            "memory_format": lambda: pick.choice([taeda.preserve_format, taeda.channels_last]),
        }
        return make[kind]()

    def for_op(self, op):
        args, named = [], {}
        inside = self.pick.choice(op.overloads).partition("(")[2].rpartition(") ->")[0]
        by_name = False
        for part in re.split(r", (?=\*|\w+!?: )", inside):
            if part == "*" or not part:
                by_name = True
                continue
            name, kind, repeated, optional, default = ARGUMENT.match(part).groups()
            if default and self.pick.random() < 0.4:
                by_name = True
                continue
            value = self.value(name, kind, repeated, optional)
            if by_name:
                named["input" if name == "self" else name] = value
            else:
                args.append(value)
        if self.pick.random() < 0.05:
            named["out"] = self.tensor()
        return args, named


def spoilt(value, pick):
    """`value`, or something like it that does not fit."""
    if isinstance(value, taeda.Tensor):
        ways = [
            lambda: None,
            lambda: value.to(pick.choice(DTYPES)),
            lambda: value.narrow(pick.randrange(value.dim()), 0, 1),
            lambda: value.narrow(pick.randrange(value.dim()), 0, 0),
            lambda: value.unsqueeze(pick.randrange(value.dim() + 1)),
            lambda: value.select(pick.randrange(value.dim()), 0),
            lambda: taeda.empty(value.shape, dtype=value.dtype, device="meta"),
            lambda: value.transpose(0, -1),
            lambda: taeda.cat([value, value], pick.randrange(value.dim())),
            lambda: value + pick.choice([1, 100, -100, 2**40]),
            lambda: value.new_zeros([]),
            lambda: value[:1].expand(value.shape),
            lambda: value.flatten()[1:],
        ]
        try:
            return pick.choice(ways)()
        except (*ERRORS, NotImplementedError):
            return value.new_zeros(0)
    if isinstance(value, list):
        grown = [value[:-1], [], value + value[-1:]]
        if not value or pick.random() < 0.4:
            return pick.choice(grown)
        at = pick.randrange(len(value))
        return [spoilt(v, pick) if i == at else v for i, v in enumerate(value)]
    if isinstance(value, int) and not isinstance(value, bool):
        return pick.choice([0, -1, 1, 2, 3, 5, 7, None, *ODD])
    return pick.choice([*REAL, *TEXT, *STRAY, None, taeda.ones(3)])


def index_of(made, x):
    pick = made.pick
    some = [None, made.integer(), made.integer()]
    items = [
        lambda: slice(pick.choice(some), pick.choice(some), pick.choice([None, 1, 2, -1, 2**62])),
        lambda: pick.choice([None, Ellipsis, True, False, *STRAY]),
        made.integer,
        lambda: taeda.tensor([pick.randrange(-3, 3) for _ in range(pick.choice([0, 1, 2, 5]))]),
        lambda: taeda.rand(x.shape[:1]) < 0.5,
        lambda: taeda.zeros(x.shape, dtype=taeda.bool),
        lambda: [pick.choice([0, 1, -1, True, 10, None, "s", 2**62]) for _ in range(2)],
        made.tensor,
    ]
    return tuple(pick.choice(items)() for _ in range(pick.choice([0, 1, 1, 2, 2, 3, 6])))


def derive(results, inputs, pick):
    """First and second gradients of whatever has some, or of one of several results."""
    results = [r for r in results if r.requires_grad and r.numel() < 100_000]
    if len(results) > 1 and pick.random() < 0.5:
        results = [pick.choice(results)]
    inputs = [i for i in inputs if isinstance(i, taeda.Tensor) and i.requires_grad]
    for again in (pick.random() < 0.4, False):
        if not results or not inputs:
            return
        ones = [taeda.ones_like(r) for r in results]
        grads = taeda.autograd.grad(results, inputs, ones, allow_unused=True, create_graph=again)
        results = [g for g in grads if g is not None and g.requires_grad]


def tensors_in(value):
    for v in value if isinstance(value, (list, tuple)) else [value]:
        if isinstance(v, taeda.Tensor):
            yield v


def run(call, args, named, pick):
    result = call(*args, **named)
    results = list(tensors_in(result))
    for r in results[:3]:
        if not r.is_meta and r.numel() < 1000 and pick.random() < 0.2:
            repr(r)
    derive(results, [t for a in args for t in tensors_in(a)], pick)


def one_random(name, seed):
    made = Arguments(f"random {name} {seed}")
    op = getattr(ops, name)
    args, named = made.for_op(op)
    run(op, args, named, made.pick)


def one_spoilt(name, seed):
    pick = random.Random(f"spoilt {name} {seed}")
    args = working_calls()[name]
    for _ in range(pick.choice([1, 1, 2, 3]) if seed else 0):
        at = pick.randrange(len(args))
        args[at] = spoilt(args[at], pick)
    if seed and pick.random() < 0.4:
        for a in args:
            for t in tensors_in(a):
                if t.is_floating_point() and t.is_leaf:
                    t.requires_grad_()
    run(getattr(ops, name), args, {}, pick)


def one_indexing(name, seed):
    made = Arguments(f"{name} {seed}")
    x = made.tensor()
    where = index_of(made, x)
    if name == "read":
        run(lambda x: x[where], [x], {}, made.pick)
    else:
        y = x.clone()
        y[where] = made.pick.choice([1, 1.5, 2j, x, made.tensor(), [1, 2], None, "x", 2**63])


KINDS = {
    "random": (
        one_random,
        [n for n in sorted(vars(ops)) if isinstance(getattr(ops, n), taeda._C.Op)],
    ),
    "spoilt": (one_spoilt, sorted(working_calls())),
    "indexing": (one_indexing, ["read", "write"]),
}


def main(kind, count, first=0, only=None):
    """Makes the calls; prints what went wrong and returns how often something did."""
    one, names = KINDS[kind]
    taeda._C.cpu_set_memory_limit(MOST_BYTES)
    taeda.set_num_threads(1)
    warnings.simplefilter("ignore")
    faulthandler.enable()
    wrong = 0
    for name in [only] if only else names:
        os.write(2, f"{name}\n".encode())  # the last one, after a crash
        for seed in range(first, first + count):
            taeda.manual_seed(seed)
            faulthandler.dump_traceback_later(120, exit=True)
            message = None
            try:
                one(name, seed)
            except ERRORS as e:
                if not str(e) or INTERNAL.search(str(e)):
                    message = f"{type(e).__name__}: {e}"
                if kind == "spoilt" and seed == 0:
                    message = f"the working call fails: {e}"
            except Exception as e:
                # As PyTorch says that a build has no such device.
                if not isinstance(e, AssertionError) or "this build of taeda has no" not in str(e):
                    message = f"{type(e).__name__}: {e}"
            if message:
                wrong += 1
                print(f"{kind} 1 {seed} {name}: {message}", flush=True)
    faulthandler.cancel_dump_traceback_later()
    print(f"{kind} calls (tried, wrong): {count * len([only] if only else names)} {wrong}")
    return wrong


if __name__ == "__main__":
    kind, count, *rest = sys.argv[1:]
    sys.exit(main(kind, int(count), *map(int, rest[:1]), *rest[1:]) > 0)
