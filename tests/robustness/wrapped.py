"""Calls every op with tensors without memory, of a class whose __torch_dispatch__ is absent-minded.

`python -m tests.robustness.wrapped COUNT [FIRST [NAME]]`. The class raises, gives nothing, numbers,
strings, its arguments, tensors of other shapes or dtypes, or what is right; it may answer backward
alone. Errors are fine; a crash, a hang, or an exception of a strange type is not.
"""

import faulthandler
import os
import random
import sys
import warnings
from contextlib import nullcontext

import taeda
from taeda.utils._pytree import tree_map
from tests.robustness.fuzz import (
    ERRORS,
    INTERNAL,
    MOST_BYTES,
    Arguments,
    derive,
    ops,
    spoilt,
    tensors_in,
)
from tests.robustness.working_calls import working_calls

# Where a tensor is used in ways that are no operations.
OUTSIDE = [
    *("item", "tolist", "numpy", "data_ptr", "untyped_storage", "storage", "share_memory_"),
    *("__float__", "__int__", "__bool__", "__index__", "__complex__", "__len__", "__repr__"),
    *("__dlpack__", "__array__", "is_shared", "detach_", "requires_grad_", "retain_grad"),
    *("pin_memory", "is_contiguous", "element_size", "__hash__", "cpu", "double", "clone"),
    *("as_subclass", "resize_", "set_", "copy_", "index", "__getitem__", "new_tensor"),
]


class Absent(taeda.Tensor):
    """Keeps plain tensors, and answers as its thread's `pick` and `ways` have it."""

    __torch_function__ = taeda._C._disabled_torch_function_impl
    pick: random.Random
    ways: list

    @staticmethod
    def __new__(cls, inner):
        self = taeda.Tensor._make_wrapper_subclass(
            cls,
            inner.shape,
            strides=inner.stride(),
            dtype=inner.dtype,
            device=inner.device,
            requires_grad=inner.requires_grad,
        )
        self.inner = inner.detach()
        return self

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        return cls.pick.choice(cls.ways)(func, args, kwargs or {})


class Other(Absent):
    """A subclass of it: its handler is asked first."""


def unwrapped(x):
    return x.inner if isinstance(x, Absent) else x


def rightly(func, args, kwargs):
    result = func(*tree_map(unwrapped, args), **tree_map(unwrapped, kwargs))
    return tree_map(lambda x: Absent(x) if isinstance(x, taeda.Tensor) else x, result)


def fail(func, args, kwargs):
    raise Absent.pick.choice([RuntimeError, KeyError, TypeError, ValueError])("mine")


def smaller(func, args, kwargs):
    result = func(*tree_map(unwrapped, args), **tree_map(unwrapped, kwargs))
    pick = Absent.pick

    def other(x):
        if not isinstance(x, taeda.Tensor):
            return x
        x = pick.choice([lambda: x[..., :1] if x.dim() else x[None], lambda: x.int(), lambda: x])()
        return pick.choice([Absent, Other, lambda x: x])(x)

    return tree_map(other, result)


def arguments(func, args, kwargs):
    found = [t for a in args for t in tensors_in(a)]
    return Absent.pick.choice([found, tuple(found), found[:1], found[0] if found else None])


def constants(func, args, kwargs):
    some = [None, 1, "x", (), [], (1, 2), [None, None], NotImplemented, taeda.ones(2), Ellipsis]
    return Absent.pick.choice([*some, Absent(taeda.ones(3)), Absent(taeda.ones(2, 2)), 2**70])


def disabled(func, args, kwargs):
    from taeda.utils._python_dispatch import no_dispatch

    with no_dispatch():
        return func(*args, **kwargs)


CHARACTERS = [
    [rightly],
    [rightly, rightly, rightly, smaller, arguments, constants, fail],
    [smaller],
    [arguments],
    [constants],
    [disabled],
    [fail],
]


def wrapped(value, pick, chance):
    def one(x):
        if not isinstance(x, taeda.Tensor) or x.is_meta or pick.random() > chance:
            return x
        return pick.choice([Absent, Absent, Other])(x)

    return tree_map(one, value)


def arguments_of(name, made):
    pick = made.pick
    if name in WORKING and pick.random() < 0.8:
        args, named = working_calls()[name], {}
        if pick.random() < 0.3:
            at = pick.randrange(len(args))
            args[at] = spoilt(args[at], pick)
        for a in args:
            for t in tensors_in(a):
                if t.is_floating_point() and t.is_leaf and pick.random() < 0.5:
                    t.requires_grad_()
        return args, named
    return made.for_op(getattr(ops, name))


def one(name, seed):
    made = Arguments(f"wrapped {name} {seed}")
    pick = Absent.pick = made.pick
    Absent.ways = [rightly]
    args, named = wrapped(arguments_of(name, made), pick, pick.choice([1, 1, 0.5]))
    Absent.ways = pick.choice(CHARACTERS)
    dual = taeda.autograd.forward_ad.dual_level() if pick.random() < 0.1 else nullcontext()
    with dual as level:
        if level is not None:
            args = [with_tangent(a, pick) for a in args]
        result = getattr(ops, name)(*args, **named)
    results = list(tensors_in(result))
    Absent.ways = pick.choice([Absent.ways, *CHARACTERS])  # backward may be another's
    for t in [*results[:2], *tensors_in(list(args))][:3]:
        use = pick.choice(OUTSIDE)
        try:
            getattr(t, use)(*(pick.choice([(), (), (0,), (t,), (taeda.Tensor,)])))
        except (*ERRORS, AttributeError, AssertionError, BufferError, KeyError):
            pass
    derive(results, [t for a in args for t in tensors_in(a)], pick)


def with_tangent(x, pick):
    if not isinstance(x, taeda.Tensor) or not x.is_floating_point():
        return x
    tangent = taeda.ones(x.shape, dtype=x.dtype)
    tangent = pick.choice([Absent, Other, lambda t: t])(tangent)
    return taeda.autograd.forward_ad.make_dual(x, tangent)


NAMES = [n for n in sorted(vars(ops)) if isinstance(getattr(ops, n), taeda._C.Op)]
WORKING = set(working_calls())


def main(count, first=0, only=None):
    """Makes the calls; prints what went wrong and returns how often something did."""
    taeda._C.cpu_set_memory_limit(MOST_BYTES)
    taeda.set_num_threads(1)
    warnings.simplefilter("ignore")
    faulthandler.enable()
    wrong = done = 0
    for name in [only] if only else NAMES:
        for seed in range(first, first + count):
            os.write(2, f"{name} {seed}\n".encode())  # the last one, after a crash
            taeda.manual_seed(seed)
            faulthandler.dump_traceback_later(120, exit=True)
            message = None
            try:
                one(name, seed)
                done += 1
            except (*ERRORS, KeyError, RecursionError, AssertionError, AttributeError) as e:
                if not str(e) or INTERNAL.search(str(e)):
                    message = f"{type(e).__name__}: {e}"
            except Exception as e:
                message = f"{type(e).__name__}: {e}"
            if message:
                wrong += 1
                print(f"1 {seed} {name}: {message}", flush=True)
    faulthandler.cancel_dump_traceback_later()
    print(f"wrapped calls (tried, succeeded, wrong): {count * len(NAMES)} {done} {wrong}")
    return wrong


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), *map(int, sys.argv[2:3]), *sys.argv[3:]) > 0)
