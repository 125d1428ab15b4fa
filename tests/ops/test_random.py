"""A seed gives PyTorch's numbers, bit for bit, and the generator's state is PyTorch's state."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="compares with PyTorch")

import taeda  # noqa: E402
from tests.conformance.bridge import to_taeda, to_torch  # noqa: E402

SIZES = (1, 3, 15, 16, 17, 100, 2500)
FLOATS = ("float32", "float64", "float16", "bfloat16")
INTS = ("uint8", "int8", "int16", "int32", "int64")


def both(make, seed: int = 5) -> None:
    """`make(module, generator)` gives the same tensor in both and leaves the same state behind."""
    generators = [m.Generator().manual_seed(seed) for m in (torch, taeda)]
    theirs, ours = (make(m, g) for m, g in zip((torch, taeda), generators, strict=True))
    ours = to_torch(ours)
    assert ours.dtype == theirs.dtype
    assert ours.shape == theirs.shape
    same = (ours == theirs) | (ours.isnan() & theirs.isnan())
    assert bool(same.all()), f"{int((~same).sum())} of {same.numel()} differ"
    after = [g.get_state() for g in generators]
    draws = [m.rand(3, generator=g) for m, g in zip((torch, taeda), generators, strict=True)]
    assert after[0].shape == to_torch(after[1]).shape
    assert torch.equal(draws[0], to_torch(draws[1])), "another number of draws was used"


FILLS = {
    "uniform_": (),
    "uniform_ between": (-1.3, 2.9),
    "normal_": (),
    "normal_ shifted": (0.3, 0.1),
    "exponential_": (1.5,),
    "cauchy_": (0.3, 1.7),
    "log_normal_": (-0.7, 0.3),
    "geometric_": (0.3,),
    "bernoulli_": (0.3,),
    "random_": (),
    "random_ up to": (90,),
    "random_ between": (3, 90),
}


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("fill", FILLS)
def test_fills(fill: str, dtype: str) -> None:
    name, args = fill.split()[0], FILLS[fill]
    for n in SIZES:
        both(
            lambda m, g, n=n: getattr(m.empty(n, dtype=getattr(m, dtype)), name)(*args, generator=g)
        )


@pytest.mark.parametrize("dtype", (*INTS, "bool"))
@pytest.mark.parametrize("fill", ["bernoulli_", "random_", "random_ between", "geometric_"])
def test_integer_fills(fill: str, dtype: str) -> None:
    if dtype == "bool" and fill in ("random_ between", "geometric_"):
        pytest.skip("not a distribution of bools")
    name, args = fill.split()[0], FILLS[fill]
    for n in SIZES:
        both(
            lambda m, g, n=n: getattr(m.empty(n, dtype=getattr(m, dtype)), name)(*args, generator=g)
        )


MANY = 3 * 16384 + 11  # more than one thread takes at a time


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("fill", FILLS)
def test_large_fills(fill: str, threads: int) -> None:
    name, args = fill.split()[0], FILLS[fill]
    before = taeda.get_num_threads()
    taeda.set_num_threads(threads)
    try:
        for dtype in ("float32", "int64"):
            if dtype == "int64" and not name.startswith(("random_", "geometric_", "bernoulli_")):
                continue
            both(
                lambda m, g, d=dtype: getattr(m.empty(MANY, dtype=getattr(m, d)), name)(
                    *args, generator=g
                )
            )
    finally:
        taeda.set_num_threads(before)


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("n", [0, 1, 63, 64, 65, MANY, MANY + 1])
def test_normal_numbers_come_in_pairs(n: int, threads: int) -> None:
    def some(m, g, kept: int):  # with and without one that is left of the pair before
        first = m.empty(kept).log_normal_(generator=g)
        second = m.empty(n, 2)[:, 0].normal_(0.5, 2.0, generator=g)
        third = m.empty(n, dtype=m.float64).log_normal_(generator=g)
        return m.cat([first, second, third])

    before = taeda.get_num_threads()
    taeda.set_num_threads(threads)
    try:
        for kept in (0, 1, 2, 3):
            both(lambda m, g, kept=kept: some(m, g, kept))
    finally:
        taeda.set_num_threads(before)


@pytest.mark.parametrize("high", [1, 2, 3, 1000, 2**20, 2**28 - 1])
def test_every_remainder(high: int) -> None:
    both(lambda m, g: m.randint(high, (MANY,), generator=g))


@pytest.mark.parametrize("n", SIZES)
def test_factories(n: int) -> None:
    both(lambda m, g: m.rand(n, generator=g))
    both(lambda m, g: m.randn(n, 2, generator=g))
    both(lambda m, g: m.rand(n, generator=g, dtype=m.float64))
    both(lambda m, g: m.randn(n, generator=g, dtype=m.float64))
    both(lambda m, g: m.randn(n, generator=g, dtype=m.complex64))
    both(lambda m, g: m.randperm(n, generator=g))
    for high in (10, 2**27, 2**28 - 1, 2**28, 2**32, 2**40):
        both(lambda m, g, high=high: m.randint(high, (n,), generator=g))
    both(lambda m, g: m.randint(-7, 11, (n,), generator=g, dtype=m.float32))
    both(lambda m, g: m.normal(1.0, 2.0, (n,), generator=g))
    both(lambda m, g: m.empty(n, dtype=m.complex64).normal_(1.0, 2.0, generator=g))


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
def test_bernoulli_of_probabilities(dtype: str) -> None:
    p = torch.rand(1000, generator=torch.Generator().manual_seed(0)).to(getattr(torch, dtype))
    of = {torch: p, taeda: to_taeda(p)}
    both(lambda m, g: m.bernoulli(of[m], generator=g))
    both(lambda m, g: m.empty(1000).bernoulli_(of[m], generator=g))
    both(lambda m, g: m.bernoulli(of[m].reshape(20, 50).t(), generator=g))
    both(lambda m, g: m.empty(20, 50).t().bernoulli_(of[m].reshape(50, 20), generator=g))
    both(lambda m, g: m.empty(30, 50).bernoulli_(of[m][:50], generator=g))
    both(lambda m, g: m.bernoulli(of[m], 0.3, generator=g))


def test_normal_of_tensors() -> None:
    mean = torch.arange(20.0)
    of = {torch: mean, taeda: to_taeda(mean)}
    both(lambda m, g: m.normal(of[m], of[m] + 1, generator=g))
    both(lambda m, g: m.normal(of[m], 2.0, generator=g))
    both(lambda m, g: m.normal(3.0, of[m] + 1, generator=g))


@pytest.mark.parametrize("rows", [1, 3, 4, 5, 9])
def test_multinomial_of_rows(rows: int) -> None:
    weights = torch.rand(rows, 37)
    weights[:, ::5] = 0
    of = {torch: weights, taeda: taeda.tensor(weights.numpy())}
    both(lambda m, g: m.multinomial(of[m], 11, True, generator=g))
    both(lambda m, g: m.multinomial(of[m].double(), 6, True, generator=g))
    for bad in (-1.0, float("nan"), float("inf")):
        wrong = of[taeda].clone()
        wrong[rows - 1, 20] = bad
        with pytest.raises(RuntimeError, match="contains either"):
            wrong.multinomial(2, True)
    with pytest.raises(RuntimeError, match="sum of probabilities <= 0"):
        taeda.zeros(rows, 9).multinomial(2, True)


def test_multinomial_and_poisson() -> None:
    w = torch.rand(3, 7, generator=torch.Generator().manual_seed(1))
    of = {torch: w, taeda: to_taeda(w)}
    for k, replacement in ((1, False), (3, False), (7, False), (1, True), (50, True)):
        both(lambda m, g, k=k, r=replacement: m.multinomial(of[m], k, r, generator=g))
        both(lambda m, g, k=k, r=replacement: m.multinomial(of[m][0], k, r, generator=g))
    both(lambda m, g: m.poisson(of[m] * 5, generator=g))
    both(lambda m, g: m.poisson(of[m] * 200, generator=g))


@pytest.mark.parametrize("name", ["uniform_", "normal_", "bernoulli_", "random_"])
def test_layouts_are_filled_in_memory_order(name: str) -> None:
    both(lambda m, g: getattr(m.empty(10, 20).t(), name)(generator=g))
    both(lambda m, g: getattr(m.empty(40, 20)[:, ::2], name)(generator=g))
    both(lambda m, g: getattr(m.empty(4, 5, 6).permute(2, 0, 1), name)(generator=g))


def test_layouts_of_arguments() -> None:
    of = {m: t for m, t in zip((torch, taeda), [torch.rand(4, 5, 6)] * 2, strict=True)}
    of[taeda] = to_taeda(of[torch])
    for view in (
        lambda x: x.permute(2, 0, 1),
        lambda x: x[:, ::2],
        lambda x: x[:1].expand(4, 5, 6),
    ):
        both(lambda m, g, v=view: m.normal(v(of[m]), 2.0, generator=g))
        both(lambda m, g, v=view: m.normal(1.0, v(of[m]), generator=g))
        both(lambda m, g, v=view: m.normal(v(of[m]), v(of[m]), generator=g))
        both(lambda m, g, v=view: m.bernoulli(v(of[m]), generator=g))
        both(lambda m, g, v=view: m.poisson(v(of[m]), generator=g))
        both(lambda m, g, v=view: m.empty_like(v(of[m])).exponential_(generator=g))
        both(lambda m, g, v=view: (m.manual_seed(7), m.randn_like(v(of[m])))[1])
        both(lambda m, g, v=view: (m.manual_seed(7), m.rand_like(v(of[m])))[1])


def test_dropout() -> None:
    both(lambda m, g: (m.manual_seed(3), m.nn.functional.dropout(m.ones(1000), 0.3))[1])
    both(lambda m, g: (m.manual_seed(3), m.nn.functional.dropout(m.ones(40, 30).t(), 0.3))[1])
    both(lambda m, g: (m.manual_seed(3), m.nn.functional.dropout2d(m.ones(4, 5, 3, 3), 0.4))[1])
    both(lambda m, g: (m.manual_seed(3), m.nn.functional.dropout(m.ones(99).bfloat16(), 0.3))[1])
    both(lambda m, g: (m.manual_seed(3), m.nn.functional.alpha_dropout(m.ones(40, 30).t(), 0.3))[1])
    ones = {m: m.ones(100_003) for m in (torch, taeda)}
    for p in (0.0, 1e-6, 0.5, 1 - 1e-6):
        both(lambda m, g, p=p: (m.manual_seed(3), m.dropout(ones[m], p, True))[1])
        both(lambda m, g: m.get_rng_state())
    odd = {m: m.tensor([1.0, -1.0, float("nan"), float("inf")] * 256) for m in (torch, taeda)}
    both(lambda m, g: (m.manual_seed(3), m.dropout(odd[m], 0.5, True))[1])


def test_default_generator() -> None:
    for m in (torch, taeda):
        m.manual_seed(1234)
    for _ in range(3):
        assert torch.equal(torch.randn(5), to_torch(taeda.randn(5)))
        assert torch.equal(torch.rand(20), to_torch(taeda.rand(20)))
    assert taeda.initial_seed() == 1234


def test_state_travels_between_libraries() -> None:
    theirs, ours = torch.Generator().manual_seed(9), taeda.Generator()
    torch.empty(3).normal_(generator=theirs)  # keeps a second normal
    ours.set_state(to_taeda(theirs.get_state()))
    assert torch.equal(
        torch.empty(5).normal_(generator=theirs), to_torch(taeda.empty(5).normal_(generator=ours))
    )
    theirs.set_state(to_torch(ours.get_state()))
    assert torch.equal(torch.rand(700, generator=theirs), to_torch(taeda.rand(700, generator=ours)))
    assert ours.initial_seed() == 9


def test_bad_states_are_refused() -> None:
    g = taeda.Generator()
    with pytest.raises(RuntimeError):
        g.set_state(taeda.zeros(10, dtype=taeda.uint8))
    with pytest.raises(RuntimeError):
        g.set_state(taeda.zeros(5056, dtype=taeda.uint8))


def test_only_the_low_bits_of_a_seed_choose_the_stream() -> None:
    a, b = taeda.Generator().manual_seed(5), taeda.Generator().manual_seed(2**40 + 5)
    assert b.initial_seed() == 2**40 + 5
    assert taeda.equal(taeda.rand(4, generator=a), taeda.rand(4, generator=b))


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("uniform_", (1.0, 0.0)),
        ("normal_", (0.0, -1.0)),
        ("bernoulli_", (1.5,)),
        ("exponential_", (-1.0,)),
        ("geometric_", (0.0,)),
        ("cauchy_", (0.0, -1.0)),
        ("log_normal_", (0.0, -1.0)),
        ("random_", (5, 5)),
    ],
)
def test_errors(name: str, args: tuple) -> None:
    with pytest.raises(RuntimeError):
        getattr(torch.empty(3), name)(*args)
    with pytest.raises(RuntimeError):
        getattr(taeda.empty(3), name)(*args)


@pytest.mark.parametrize("p", [0.3, 1.0])
def test_dropout_twice_differentiated(p: float) -> None:
    x = taeda.randn(40, 30, dtype=taeda.float64, requires_grad=True)
    y = taeda.dropout(x, p, True)
    scale = (y / x).detach()
    (g,) = taeda.autograd.grad((y * y).sum(), x, create_graph=True)
    assert taeda.allclose(g, 2 * x * scale * scale)
    (second,) = taeda.autograd.grad((g * x).sum(), x)
    assert taeda.allclose(second, 4 * x * scale * scale)


@pytest.mark.parametrize(
    "fill", ["bernoulli_", "uniform_", "normal_", "exponential_", "random_", "geometric_"]
)
def test_expanded_memory_is_not_filled(fill):
    x = taeda.zeros(1).expand(3)
    arguments = (0.5,) if fill == "geometric_" else ()
    with pytest.raises(RuntimeError, match="more than one element of the written-to tensor"):
        getattr(x, fill)(*arguments)
    assert x[0] == 0
