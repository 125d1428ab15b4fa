"""The same program on both libraries: gradients, refusals and aliasing that programs rely on."""

from __future__ import annotations

import warnings

import pytest

torch = pytest.importorskip("torch", reason="compares with PyTorch")

import taeda  # noqa: E402

BOTH = (taeda, torch)


def plain(value):
    """Tensors as lists, in any nesting."""
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, (tuple, list)):
        return [plain(v) for v in value]
    return value


def assert_agree(program, rel=1e-4):
    ours, theirs = (plain(program(lib)) for lib in BOTH)
    assert _near(ours, theirs, rel), (ours, theirs)


def _near(a, b, rel):
    if isinstance(b, list):
        return (
            isinstance(a, list)
            and len(a) == len(b)
            and all(_near(x, y, rel) for x, y in zip(a, b, strict=True))
        )
    if isinstance(b, float) and b != b:
        return a != a
    if isinstance(b, complex):
        return abs(a - b) <= rel * max(1, abs(b))
    return a == pytest.approx(b, rel=rel, abs=rel) if isinstance(b, float) else a == b


@pytest.mark.parametrize("reduce", ["mean", "prod", "amin", "amax"])
def test_index_reduce_in_place_has_gradients(reduce):
    def program(lib):
        x = lib.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], requires_grad=True)
        source = lib.tensor([[2.0, 7.0], [0.5, 3.0], [3.0, 1.0]], requires_grad=True)
        y = x * 1
        y.index_reduce_(0, lib.tensor([0, 2, 0]), source, reduce)
        (y * lib.arange(6.0).view(3, 2)).sum().backward()
        return y, x.grad, source.grad

    if reduce == "mean":
        with warnings.catch_warnings():  # PyTorch gives it once
            warnings.filterwarnings("ignore", "index_reduce.* is in beta")
            torch.ones(1).index_reduce_(0, torch.tensor([0]), torch.ones(1), "mean")
    assert_agree(program)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [("float_power_", (3,)), ("renorm_", (2, 0, 2.0)), ("ldexp_", (2.0,)), ("mvlgamma_", (2,))],
)
def test_composite_operations_in_place_have_gradients(name, arguments):
    def program(lib):
        x = lib.tensor([[1.5, 2.0], [3.0, 4.0]], dtype=lib.float64, requires_grad=True)
        y = x * 1
        given = [lib.tensor(a, dtype=lib.float64) if name == "ldexp_" else a for a in arguments]
        z = getattr(y, name)(*given)
        (z * lib.arange(4.0).view(2, 2)).sum().backward()
        return y, x.grad, z is y

    assert_agree(program)


def test_negative_base_to_a_complex_exponent():
    def program(lib):
        base = lib.tensor([-2.0, -0.5, 3.0], requires_grad=True)
        exponent = lib.tensor([1 + 2j, 1 + 1j, 2 - 1j], requires_grad=True)
        number = lib.pow(-2.0, exponent)
        (lib.pow(base, exponent).abs().sum() + number.abs().sum()).backward()
        return base.grad, exponent.grad, number.detach()

    assert_agree(program)


@pytest.mark.parametrize("options", [{}, {"spacing": 2.0}, {"edge_order": 2}])
def test_gradient_beside_infinity(options):
    assert_agree(
        lambda lib: lib.gradient(lib.tensor([1.0, float("inf"), 3.0, 4.0, 6.0]), **options)
    )


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("addmm", ("a", "a", "a")),
        ("addmv", ("v", "a", "v")),
        ("addr", ("a", "v", "v")),
        ("addbmm", ("a", "b", "b")),
        ("baddbmm", ("b", "b", "b")),
        ("addcmul", ("a", "a", "a")),
        ("addcdiv", ("a", "a", "a")),
        ("add", ("a", "a")),
        ("rsub", ("a", "a")),
        ("threshold", ("v", 0, 1j)),
        ("celu", ("v", 1j)),
        ("index_add", ("v", 0, "i", "v")),
        ("arange", (1j,)),
        ("histc", ("v", 3, 1j)),
    ],
)
def test_imaginary_parts_do_not_get_lost(name, arguments):
    for lib in BOTH:
        tensors = {"a": lib.ones(2, 2), "v": lib.ones(2), "b": lib.ones(1, 2, 2)}
        tensors["i"] = lib.tensor([0, 1])
        given = [tensors.get(a, a) if isinstance(a, str) else a for a in arguments]
        numbers = any(isinstance(a, complex) for a in arguments)
        word = "value" if name.startswith("addc") else "alpha"
        with pytest.raises(RuntimeError):
            getattr(lib, name)(*given, **({} if numbers else {word: 1j}))


def test_numbers_without_an_imaginary_part_are_real():
    assert_agree(lambda lib: lib.addmv(lib.ones(2), lib.ones(2, 2), lib.ones(2), alpha=2 + 0j))


@pytest.mark.parametrize("which", ["input", "batch"])
@pytest.mark.parametrize("name", ["addmm", "addmv", "addbmm", "baddbmm"])
def test_sums_of_products_take_one_dtype(name, which):
    for lib in BOTH:
        a = lib.ones(2, 2)
        given = {
            "addmm": [a, a, a],
            "addmv": [a[0], a, a[0]],
            "addbmm": [a, a[None], a[None]],
            "baddbmm": [a[None], a[None], a[None]],
        }[name]
        given[0 if which == "input" else 1] = given[0 if which == "input" else 1].double()
        with pytest.raises(RuntimeError, match="dtype|type"):
            getattr(lib, name)(*given)


@pytest.mark.parametrize("name", ["vstack", "hstack", "dstack", "column_stack", "row_stack"])
def test_lists_of_tensors_are_lists(name):
    for lib in BOTH:
        with pytest.raises(TypeError):
            getattr(lib, name)(lib.ones(2, 2))
        with pytest.raises(TypeError):
            getattr(lib, name)(lib.ones(2, 2), lib.ones(2, 2))
    assert_agree(lambda lib: getattr(lib, name)([lib.ones(2, 2), lib.zeros(2, 2)]))


@pytest.mark.parametrize("mode", ["reflect", "replicate", "circular"])
@pytest.mark.parametrize("shape", [(2, 0, 5), (0, 5), (0, 2, 5), (2, 0, 4, 4)])
def test_padding_of_nothing(mode, shape):
    def program(lib):
        try:
            pad = [1, 1] if shape[-1] == 5 else [1, 1, 1, 1]
            return list(lib.nn.functional.pad(lib.ones(shape), pad, mode).shape)
        except RuntimeError:
            return "refused"

    assert_agree(program)


@pytest.mark.parametrize("name", ["AdaptiveAvgPool1d", "AdaptiveAvgPool2d", "AdaptiveAvgPool3d"])
@pytest.mark.parametrize("lead", [(0, 2), (2, 0)])
def test_adaptive_pools_of_nothing(name, lead):
    def program(lib):
        x = lib.ones(*lead, *[5] * int(name[-2]), requires_grad=True)
        try:
            y = getattr(lib.nn, name)(3)(x)
        except RuntimeError:
            return "refused"
        if lead[0] == 0:
            y.sum().backward()
            return [list(y.shape), list(x.grad.shape)]
        return list(y.shape)

    assert_agree(program)


def test_shuffles_are_never_views():
    def program(lib):
        F, found = lib.nn.functional, []
        for shape, factor in (((1, 4, 2, 2), 1), ((1, 4, 2, 2), 2), ((1, 4, 1, 1), 2)):
            x = lib.ones(shape)
            found.append(F.pixel_shuffle(x, factor).data_ptr() == x.data_ptr())
            found.append(F.channel_shuffle(x, factor).data_ptr() == x.data_ptr())
            if shape[-1] % factor == 0:
                found.append(F.pixel_unshuffle(x, factor).data_ptr() == x.data_ptr())
        return found

    assert_agree(program)


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
@pytest.mark.parametrize("offsets", [[0, 2, 4], [0, 2, 2, 4]])
def test_embedding_bag_with_the_last_offset(mode, offsets):
    def program(lib):
        weight = lib.arange(15.0, dtype=lib.float64).view(5, 3).requires_grad_()
        bags = lib.nn.functional.embedding_bag(
            lib.tensor([0, 1, 2, 3]),
            weight,
            lib.tensor(offsets),
            mode=mode,
            include_last_offset=True,
        )
        bags.sum().backward()
        return bags, weight.grad

    assert_agree(program)


def test_embedding_bag_with_a_last_offset_of_its_own():
    """PyTorch reads past the input here, and may crash."""
    weight, rows = taeda.arange(15.0).view(5, 3), taeda.tensor([0, 1, 2, 3])
    bags = taeda.nn.functional.embedding_bag
    short = bags(rows, weight, taeda.tensor([0, 1, 3]), mode="sum", include_last_offset=True)
    assert short.tolist() == [[0.0, 1.0, 2.0], [18.0, 21.0, 24.0]]  # to the end of the input
    assert bags(rows, weight, taeda.tensor([0]), include_last_offset=True).shape == (0, 3)
    with pytest.raises(RuntimeError, match="at least one entry"):
        bags(rows, weight, rows[:0], include_last_offset=True)


def test_dropout_in_place_returns_its_input():
    def program(lib):
        found = []
        for rank in (1, 2, 3):
            x = lib.ones(2, *[3] * rank)
            y = getattr(lib.nn.functional, f"dropout{rank}d")
            if rank != 2:  # a warning is given of three dimensions there
                found.append(y(x, 0.5, True, inplace=True) is x)
            batch = x[None].clone()
            found.append(y(batch, 0.5, True, inplace=True) is batch)
        return found

    assert_agree(program)


def test_attention_over_an_empty_batch():
    def program(lib):
        shapes = []
        layer = lib.nn.TransformerDecoderLayer(4, 2, 8, batch_first=True)
        shapes.append(list(layer(lib.ones(0, 3, 4), lib.ones(0, 5, 4)).shape))
        encoder = lib.nn.TransformerEncoderLayer(4, 2, 8)
        shapes.append(list(encoder(lib.ones(3, 0, 4)).shape))
        attention = lib.nn.MultiheadAttention(4, 2, batch_first=True)
        x = lib.ones(0, 3, 4)
        shapes += [list(y.shape) for y in attention(x, x, x)]
        return shapes

    assert_agree(program)


@pytest.mark.parametrize(
    "program",
    [
        lambda lib, x: x.new(size=(2, 3)).shape,
        lambda lib, x: x.new(2, 3).shape,
        lambda lib, x: lib.zeros(1).resize_as_(x[None, None], memory_format=lib.channels_last),
        lambda lib, x: lib.zeros(1).resize_(1, 2, 2, 2, memory_format=lib.channels_last),
        lambda lib, x: lib.zeros(1).resize_((1, 2, 2, 2), memory_format=lib.contiguous_format),
        lambda lib, x: lib.zeros(1).resize_(size=(2, 2)),
        lambda lib, x: lib.histogramdd(x, (2, 2), None, None, False),
    ],
)
def test_arguments_of_methods_that_are_no_operations(program):
    def shapes(lib):
        found = program(lib, lib.ones(2, 2))
        if hasattr(found, "stride"):
            return [list(found.shape), list(found.stride())]
        return list(found) if isinstance(found, lib.Size) else plain(found)

    assert_agree(shapes)


def test_einsum_names_the_subscript_and_the_operands():
    x = taeda.ones(2, 3)
    with pytest.raises(RuntimeError, match="subscript 'j' has size 3 for operand 0 but size 2 for"):
        taeda.einsum("ij,jk->ik", x, x)
    with pytest.raises(RuntimeError, match="subscript '...' has size 2 for operand 0 but size 4"):
        taeda.einsum("...a,...b->...ab", x, taeda.ones(4, 3))
    assert taeda.einsum("ij,jk->ik", x, taeda.ones(1, 4)).tolist() == [[3.0] * 4] * 2
