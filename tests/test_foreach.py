"""`_foreach_*`: one operation on each tensor of a list."""

from __future__ import annotations

import pytest

import taeda
from taeda._functional.foreach import FUNCTIONS


def tensors(seed=0):
    taeda.manual_seed(seed)
    return [taeda.rand(3) + 0.1, taeda.rand(2, 2) + 0.1, taeda.rand(())]


def same(got, want):
    assert type(got) in (tuple, list) and len(got) == len(want)
    assert all(a.shape == b.shape for a, b in zip(got, want, strict=True))
    assert all(taeda.allclose(a, b) for a, b in zip(got, want, strict=True))


def test_each_tensor_is_operated_on():
    xs, ys = tensors(), tensors(1)
    same(taeda._foreach_sqrt(xs), [x.sqrt() for x in xs])
    same(taeda._foreach_add(xs, 2), [x + 2 for x in xs])
    same(taeda._foreach_add(xs, ys, alpha=3), [x + 3 * y for x, y in zip(xs, ys, strict=True)])
    same(taeda._foreach_mul(xs, [1, 2, 3]), [x * i for i, x in enumerate(xs, 1)])
    same(taeda._foreach_div(xs, taeda.tensor(2.0)), [x / 2 for x in xs])
    same(taeda._foreach_pow(2.0, xs), [2.0**x for x in xs])
    same(taeda._foreach_maximum(xs, 0.5), [x.clamp_min(0.5) for x in xs])
    same(taeda._foreach_minimum(xs, ys), [x.minimum(y) for x, y in zip(xs, ys, strict=True)])
    same(taeda._foreach_lerp(xs, ys, 0.5), [x.lerp(y, 0.5) for x, y in zip(xs, ys, strict=True)])
    want = [x.addcdiv(y, x, value=2) for x, y in zip(xs, ys, strict=True)]
    same(taeda._foreach_addcdiv(xs, ys, xs, 2), want)
    same(taeda._foreach_addcdiv(xs, ys, xs, taeda.tensor([2.0, 2.0, 2.0])), want)
    same(taeda._foreach_norm(xs, 1), [x.norm(1) for x in xs])
    same(taeda._foreach_powsum(xs, 3), [(x**3).sum() for x in xs])


def test_in_place():
    xs = tensors()
    before = [x.clone() for x in xs]
    assert taeda._foreach_mul_(xs, 2) is xs
    same(xs, [x * 2 for x in before])
    taeda._foreach_addcmul_(xs, before, before, value=-1)
    same(xs, [x * 2 - x * x for x in before])
    taeda._foreach_maximum_(xs, before)
    same(xs, [(x * 2 - x * x).maximum(x) for x in before])
    taeda._foreach_pow_(xs, before)
    taeda._foreach_copy_(xs, before)
    same(xs, before)
    taeda._foreach_zero_(xs)
    assert all(not x.any() for x in xs)
    with pytest.raises(RuntimeError, match="can't be cast"):
        taeda._foreach_add_([taeda.ones(1, dtype=taeda.int32)], 1.5)


def test_gradients_flow():
    x = taeda.ones(2, requires_grad=True)
    y = taeda.ones(1, requires_grad=True)
    sum(z.sum() for z in taeda._foreach_mul([x, y], [2, 3])).backward()
    assert x.grad.tolist() == [2, 2] and y.grad.tolist() == [3]


def test_bad_input():
    xs = tensors()
    for call, error, message in [
        (lambda: taeda._foreach_sqrt([]), RuntimeError, "at least one tensor"),
        (lambda: taeda._foreach_sqrt(xs[0]), TypeError, "list or tuple of Tensors"),
        (lambda: taeda._foreach_sqrt([1]), TypeError, "expected Tensor as element 0"),
        (lambda: taeda._foreach_add(xs, xs[:2]), RuntimeError, "got 3 and 2"),
        (lambda: taeda._foreach_add(xs, [1, 2]), RuntimeError, "scalar list"),
        (lambda: taeda._foreach_add(xs, xs[0]), RuntimeError, "0 dim"),
        (lambda: taeda._foreach_add(xs, "a"), TypeError, "must be a number"),
        (lambda: taeda._foreach_add(xs, 1, alpha=2), TypeError, "alpha"),
        (lambda: taeda._foreach_mul(xs, xs, alpha=2), TypeError, "alpha"),
        (lambda: taeda._foreach_add(xs), TypeError, "just one of"),
        (lambda: taeda._foreach_addcmul(xs, xs, xs[:1]), RuntimeError, "got 3 and 1"),
    ]:
        with pytest.raises(error, match=message):
            call()
    with pytest.raises(AttributeError, match="_foreach_nothing"):
        _ = taeda._foreach_nothing


def test_names_and_values_are_pytorchs():
    torch = pytest.importorskip("torch")
    names = {name for name in dir(torch) if name.startswith("_foreach_")}
    assert names == set(FUNCTIONS)
    xs = tensors()
    theirs = [torch.from_numpy(x.numpy().copy()) for x in xs]
    for name in sorted(names):
        if name.endswith("_") or name in ("_foreach_mm", "_foreach_lerp"):
            continue
        args = [] if _takes_one(name) else [2]
        if "addc" in name:
            args = [1]
        ours = getattr(taeda, name)(xs, *([xs, xs] if "addc" in name else []), *args)
        want = getattr(torch, name)(theirs, *([theirs, theirs] if "addc" in name else []), *args)
        for a, b in zip(ours, want, strict=True):
            assert a.numpy() == pytest.approx(b.numpy(), rel=1e-5, abs=1e-6), name


def _takes_one(name):
    from taeda._functional.foreach import _takes_two

    op = name.removeprefix("_foreach_")
    return op not in taeda._C._op_traits("foreach") or not _takes_two(op)
