"""Views and shape ops against PyTorch: values, strides, gradients, errors, in-place, meta."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="compares with PyTorch")

import taeda  # noqa: E402
from tests.conformance.bridge import to_taeda  # noqa: E402
from tests.ops.compare import compare, compare_error, leaf, tensors  # noqa: E402

VIEWS: list[tuple[str, tuple, tuple]] = [
    ("Tensor.view", (2, 3, 4), (6, -1)),
    ("Tensor.view", (2, 3, 4), ((4, 6),)),
    ("permute", (2, 3, 4), ((2, 0, -2),)),
    ("transpose", (2, 3, 4), (0, -1)),
    ("t", (3, 4), ()),
    ("t", (3,), ()),
    ("t", (), ()),
    ("swapaxes", (2, 3), (0, 1)),
    ("movedim", (2, 3, 4, 5), ((0, 1), (2, 0))),
    ("movedim", (2, 3, 4), (0, -1)),
    ("moveaxis", (2, 3, 4), (1, 0)),
    ("Tensor.expand", (3, 1), (2, -1, 4)),
    ("Tensor.expand", (), (2, 3)),
    ("Tensor.expand", (1, 0), (3, 0)),
    ("squeeze", (1, 3, 1, 2), ()),
    ("squeeze", (1, 3, 1, 2), (0,)),
    ("squeeze", (1, 3, 1, 2), (1,)),
    ("squeeze", (1, 3, 1, 2), ((0, -2),)),
    ("unsqueeze", (2, 3), (1,)),
    ("unsqueeze", (2, 3), (-1,)),
    ("unsqueeze", (), (0,)),
    ("narrow", (5, 3), (0, 1, 3)),
    ("narrow", (5, 3), (0, -2, 2)),
    ("select", (5, 3), (1, -1)),
    ("split", (7, 3), (2,)),
    ("split", (7, 3), ((2, 4, 1),)),
    ("split", (7, 3), (10, 1)),
    ("split_with_sizes", (7, 3), ((2, 0, 5),)),
    ("chunk", (7, 3), (3,)),
    ("chunk", (0, 3), (3,)),
    ("tensor_split", (7, 3), (3,)),
    ("tensor_split", (7, 3), ((2, 2, 9),)),
    ("hsplit", (4, 6), (3,)),
    ("vsplit", (4, 6), ((1, 3),)),
    ("dsplit", (2, 3, 4), (2,)),
    ("unbind", (3, 4), (1,)),
    ("diagonal", (4, 3), ()),
    ("diagonal", (2, 4, 3), (1, 0, 2)),
    ("diagonal", (4, 3), (-2,)),
    ("diagonal", (4, 3), (7,)),
    ("Tensor.unfold", (7, 3), (0, 3, 2)),
    ("Tensor.unfold", (7, 3), (1, 3, 1)),
    ("as_strided", (4, 4), ((3, 2), (4, 1), 2)),
    ("as_strided", (12,), ((4, 3), (2, 1))),
    ("as_strided", (5,), ((3, 5), (0, 1))),
    ("Tensor.unflatten", (6, 2), (0, (2, -1))),
    ("broadcast_to", (3, 1), ((2, 3, 4),)),
]
COPIES: list[tuple[str, tuple, tuple]] = [
    ("reshape", (2, 3, 4), ((4, -1),)),
    ("flatten", (2, 3, 4), ()),
    ("flatten", (2, 3, 4), (1, 2)),
    ("flatten", (), ()),
    ("ravel", (2, 3), ()),
    ("roll", (3, 4), (2,)),
    ("roll", (3, 4), ((1, -5), (0, 1))),
    ("roll", (0, 4), (2, 0)),
    ("flip", (3, 4), ((0, -1),)),
    ("flip", (3, 4), ((),)),
    ("fliplr", (3, 4), ()),
    ("flipud", (3,), ()),
    ("rot90", (3, 4), ()),
    ("rot90", (3, 4, 2), (-1, (1, 2))),
    ("rot90", (3, 4), (2,)),
    ("Tensor.repeat", (2, 3), (2, 1, 3)),
    ("Tensor.repeat", (2, 3), (0, 2)),
    ("Tensor.repeat", (), (3,)),
    ("tile", (2, 3), ((2,),)),
    ("repeat_interleave", (2, 3), (2,)),
    ("repeat_interleave", (2, 3), (3, 1)),
    ("diag", (3,), (1,)),
    ("diag", (3, 4), (-1,)),
    ("diag_embed", (2, 3), ()),
    ("diag_embed", (2, 3), (1, 0, 2)),
    ("diagflat", (2, 2), ()),
    ("atleast_1d", (), ()),
    ("atleast_2d", (3,), ()),
    ("atleast_3d", (2, 3), ()),
]


def ident(v: Any) -> str | None:
    return str(v).replace(" ", "") if isinstance(v, (str, tuple)) else None


@pytest.mark.parametrize(("name", "shape", "args"), VIEWS, ids=ident)
def test_views(name: str, shape: tuple, args: tuple) -> None:
    x = leaf(*shape)
    ours = compare(name, x, *args)
    theirs = tensors(compare_name(name, x, *args))
    for a, b in zip(tensors(ours), theirs, strict=True):
        assert a.storage_offset() == b.storage_offset() or a.numel() == 0
        sizes = zip(a.stride(), b.stride(), b.shape, strict=True)
        assert a.numel() == 0 or all(s == t for s, t, n in sizes if n > 1)


def compare_name(name: str, x: Any, *args: Any) -> Any:
    f: Any = torch
    for part in name.split("."):
        f = getattr(f, part)
    return f(x, *args)


@pytest.mark.parametrize(("name", "shape", "args"), COPIES, ids=ident)
def test_copies(name: str, shape: tuple, args: tuple) -> None:
    compare(name, leaf(*shape), *args)
    if len(shape) == 2:
        wide = torch.randn(shape[1], shape[0] * 2, dtype=torch.float64)
        compare(name, wide.t()[::2].detach().requires_grad_(), *args)


@pytest.mark.parametrize(
    "name", ["bool", "int8", "int16", "int32", "int64", "float16", "complex128"]
)
def test_moves_take_every_dtype(name: str) -> None:
    x = torch.randint(0, 2, (3, 4)).to(getattr(torch, name))
    for op, args in [("flip", ((0,),)), ("roll", (1, 1)), ("Tensor.repeat", (2, 2)), ("diag", ())]:
        compare(op, x, *args)
    compare("repeat_interleave", x, torch.tensor([0, 2, 1]), 0)


def test_expanded_and_transposed_inputs() -> None:
    x = torch.randn(3, 1, dtype=torch.float64).expand(3, 4)
    for op, args in [("reshape", ((4, 3),)), ("flip", ((1,),)), ("roll", (1,)), ("flatten", ())]:
        compare(op, x, *args)
    y = torch.randn(4, 3, 2).permute(2, 0, 1)
    for op, args in [("reshape", ((6, 4),)), ("ravel", ()), ("Tensor.repeat", (1, 2, 1))]:
        compare(op, y, *args)


def test_view_as_dtype() -> None:
    x = torch.randn(3, 4)
    for dtype in (torch.int32, torch.int16, torch.float64, torch.uint8, torch.complex64):
        compare("Tensor.view", x, dtype)
    compare_error("Tensor.view", torch.randn(3, 3), torch.float64)
    compare_error("Tensor.view", x.t(), torch.int16)
    compare_error("Tensor.view", torch.tensor(1.0), torch.int16)
    ours = taeda.zeros(4)
    ours.view(taeda.int32)[0] = 0x3F800000
    assert ours.tolist() == [1.0, 0.0, 0.0, 0.0]


@pytest.mark.parametrize(
    ("name", "shape", "args"),
    [
        ("squeeze_", (1, 3, 1), ()),
        ("squeeze_", (1, 3, 1), (0,)),
        ("squeeze_", (1, 3, 1), ((0, 2),)),
        ("unsqueeze_", (2, 3), (1,)),
        ("transpose_", (2, 3), (0, 1)),
        ("t_", (2, 3), ()),
    ],
    ids=ident,
)
def test_geometry_changes_in_place(name: str, shape: tuple, args: tuple) -> None:
    x = leaf(*shape)
    ours_x = to_taeda(x)
    theirs, ours = x * 1, ours_x * 1
    assert getattr(ours, name)(*args) is ours
    getattr(theirs, name)(*args)
    assert list(ours.shape) == list(theirs.shape)
    (ours * ours).sum().backward()
    (theirs * theirs).sum().backward()
    assert ours_x.grad.tolist() == x.grad.tolist()


def test_lists_of_tensors() -> None:
    a, b = leaf(3, 1), leaf(2, seed=1)
    compare("broadcast_tensors", a, b)
    compare("meshgrid", leaf(3), leaf(4, seed=1), indexing="ij")
    compare("meshgrid", leaf(3), leaf(4, seed=1), indexing="xy")
    compare("atleast_2d", a, b)
    compare("repeat_interleave", torch.tensor([2, 0, 1]))


def test_scatters_of_views() -> None:
    x = leaf(4, 5)
    compare("slice_scatter", x, leaf(4, 2, seed=1), 1, 1, 4, 2)
    compare("select_scatter", x, leaf(4, seed=1), 1, -1)
    compare("diagonal_scatter", x, leaf(4, seed=1), 1)


def test_errors() -> None:
    x = torch.randn(3, 4)
    for name, args in [
        ("narrow", (0, 1, -1)),
        ("narrow", (0, 4, 1)),
        ("narrow", (0, 2, 4)),
        ("select", (0, 5)),
        ("permute", ((0, 0),)),
        ("permute", ((0,),)),
        ("transpose", (0, 3)),
        ("Tensor.expand", (2,)),
        ("Tensor.expand", (5, 4)),
        ("Tensor.expand", (-1, 3, 4)),
        ("unsqueeze", (4,)),
        ("squeeze", ((0, 0),)),
        ("Tensor.view", (5,)),
        ("Tensor.view", (-1, -1)),
        ("flatten", (1, 0)),
        ("Tensor.unflatten", (0, (2, 2))),
        ("split", (-1,)),
        ("split", (0,)),
        ("split", ([1, 1],)),
        ("chunk", (0,)),
        ("tensor_split", (0,)),
        ("diagonal", (0, 0, 0)),
        ("as_strided", ((3,), (1,), 20)),
        ("as_strided", ((3,), (1, 1))),
        ("Tensor.unfold", (0, 5, 1)),
        ("Tensor.unfold", (0, 2, 0)),
        ("roll", (1, (0, 1))),
        ("flip", ((0, 0),)),
        ("rot90", (1, (0, 0))),
        ("Tensor.repeat", (2,)),
        ("repeat_interleave", (torch.tensor([1, 2]), 0)),
        ("movedim", ((0, 1), (0, 0))),
    ]:
        compare_error(name, x, *args)
    with pytest.raises(RuntimeError, match=r"view size .* is not compatible"):
        taeda.ones(3, 4).t().view(12)


@pytest.mark.parametrize(("name", "shape", "args"), VIEWS + COPIES, ids=ident)
def test_meta(name: str, shape: tuple, args: tuple) -> None:
    f: Any = taeda
    for part in name.split("."):
        f = getattr(f, part)
    real = tensors(f(taeda.ones(shape), *args))
    meta = tensors(f(taeda.empty(shape, device="meta"), *args))
    assert [list(t.shape) for t in meta] == [list(t.shape) for t in real]
    assert all(t.device.type == "meta" for t in meta)


def test_split_takes_the_name_of_the_method():
    x = taeda.arange(6)
    assert [t.tolist() for t in x.split(split_size=4)] == [[0, 1, 2, 3], [4, 5]]
    assert [t.tolist() for t in x.split(split_size=[2, 4])] == [[0, 1], [2, 3, 4, 5]]
    assert [t.numel() for t in taeda.split(x, split_size_or_sections=3)] == [3, 3]


def test_the_most_dimensions():
    x = taeda.arange(3.0).reshape([1, 3] + [1] * 62)
    assert x.sum(63).shape == (1, 3, *[1] * 61)
    assert x.squeeze().shape == (3,)
    assert x.permute(*range(63, -1, -1)).shape == (*[1] * 62, 3, 1)
    for refused in (
        lambda: x.unsqueeze(0),
        lambda: x.reshape([3] + [1] * 64),
        lambda: x.expand(2, *x.shape),
        lambda: taeda.stack([x, x]),
        lambda: taeda.ones(*[1] * 65),
    ):
        with pytest.raises(RuntimeError, match="at most 64 dimensions"):
            refused()
