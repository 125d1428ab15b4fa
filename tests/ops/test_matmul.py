"""Matrix products: shapes, layouts, dtypes, gradients, and bits that no thread count changes."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="compares with PyTorch")

import taeda  # noqa: E402
from tests.conformance.bridge import to_taeda, to_torch  # noqa: E402
from tests.ops.compare import compare, compare_error, leaf  # noqa: E402

SHAPES = [
    ((3,), (3,)),
    ((3,), (3, 4)),
    ((2, 3), (3,)),
    ((2, 3), (3, 4)),
    ((1, 1), (1, 1)),
    ((5, 2, 3), (3, 4)),
    ((5, 2, 3), (3,)),
    ((2, 3), (5, 3, 4)),
    ((5, 2, 3), (5, 3, 4)),
    ((5, 1, 2, 3), (4, 3, 2)),
    ((0, 3), (3, 4)),
    ((2, 0), (0, 4)),
    ((5, 2, 0), (5, 0, 4)),
    ((33, 70), (70, 41)),
]


@pytest.mark.parametrize(("a", "b"), SHAPES, ids=str)
@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128], ids=str)
def test_matmul(a: tuple, b: tuple, dtype: torch.dtype) -> None:
    compare("matmul", leaf(*a, dtype=dtype), leaf(*b, dtype=dtype, seed=1))


@pytest.mark.parametrize(
    "dtype", [torch.float32, torch.float16, torch.bfloat16, torch.complex64], ids=str
)
def test_dtypes(dtype: torch.dtype) -> None:
    compare(
        "matmul",
        leaf(20, 30, dtype=dtype, grad=False),
        leaf(30, 10, dtype=dtype, seed=1, grad=False),
    )


@pytest.mark.parametrize(
    "dtype", [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64], ids=str
)
def test_integers(dtype: torch.dtype) -> None:
    a = (leaf(7, 9, grad=False) * 50).to(dtype)
    b = (leaf(9, 5, seed=1, grad=False) * 50).to(dtype)
    compare("matmul", a, b)
    compare("matmul", a, b.t().contiguous().t())
    compare("mv", a, b[:, 0])
    compare("bmm", a.expand(3, 7, 9), b.expand(3, 9, 5))


@pytest.mark.parametrize(
    "dtype", [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64], ids=str
)
@pytest.mark.parametrize(
    ("m", "k", "n"),
    [(1, 1, 1), (3, 0, 2), (1, 33, 40), (40, 33, 1), (17, 65, 130), (130, 65, 17), (9, 1000, 3)]
    + [(300, 8, 5), (2, 3000, 2), (33, 129, 70)],
)
def test_products_of_integers_wrap_around(dtype: torch.dtype, m: int, k: int, n: int) -> None:
    limits = torch.iinfo(dtype)
    generator = torch.Generator().manual_seed(m + k + n)
    make = lambda *size: torch.randint(  # noqa: E731
        limits.min, limits.max, size, dtype=dtype, generator=generator
    )
    a, b = make(m, k), make(k, n)
    for x in layouts(a):
        for y in layouts(b):
            compare("matmul", x, y)


def layouts(t: torch.Tensor) -> list:
    wide = torch.zeros(*t.shape[:-1], t.shape[-1] * 2, dtype=t.dtype)
    wide[..., ::2] = t
    padded = torch.zeros(*t.shape[:-1], t.shape[-1] + 3, dtype=t.dtype)
    padded[..., : t.shape[-1]] = t
    return [
        t,
        t.transpose(-1, -2).contiguous().transpose(-1, -2),
        wide[..., ::2],
        padded[..., : t.shape[-1]],
    ]


def test_layouts() -> None:
    a, b = leaf(4, 6, 5, grad=False), leaf(4, 5, 7, seed=1, grad=False)
    for x in layouts(a):
        for y in layouts(b):
            compare("matmul", x, y)
            compare("matmul", x[0], y[0])
            compare("matmul", x[0, :1], y[0, :, :1])
            compare("matmul", x[0], y[0, :, 2])
            compare("matmul", x, y[:1].expand(4, 5, 7))
            compare("matmul", x.requires_grad_(), y.requires_grad_())
            x, y = x.detach(), y.detach()


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
@pytest.mark.parametrize(
    ("m", "k", "n"),
    [(2, 3, 67), (65, 1, 3), (70, 513, 49), (9, 1100, 100), (130, 40, 17), (12, 530, 300)],
)
def test_sizes_that_registers_do_not_divide(dtype, m: int, k: int, n: int) -> None:
    a, b = leaf(m, k, dtype=dtype, grad=False), leaf(k, n, dtype=dtype, seed=1, grad=False)
    exact = a.double() @ b.double()
    near = {"rtol": 0, "atol": 1e-5 * k**0.5 if dtype == torch.float32 else 1e-12 * k**0.5}
    start, row = leaf(m, n, dtype=dtype, seed=2, grad=False), leaf(n, dtype=dtype, grad=False)
    for x in layouts(a):
        for y in layouts(b):
            ours, theirs = to_taeda(x), to_taeda(y)
            torch.testing.assert_close(to_torch(ours @ theirs).double(), exact, **near)
            sum_ = taeda.addmm(to_taeda(start), ours, theirs, beta=0.5, alpha=-2)
            want = 0.5 * start.double() - 2 * exact
            torch.testing.assert_close(to_torch(sum_).double(), want, **near)
            sum_ = taeda.nn.functional.linear(ours, theirs.T, to_taeda(row))
            torch.testing.assert_close(to_torch(sum_).double(), exact + row.double(), **near)


def test_what_is_not_finite_stays_where_it_is() -> None:
    a, b = leaf(70, 40, grad=False), leaf(40, 67, seed=1, grad=False)
    a[3, 7], b[5, 66], b[39, 64] = float("inf"), float("nan"), -float("inf")
    compare("mm", a, b)
    compare("mm", b.t().contiguous(), a.t().contiguous())


@pytest.mark.parametrize("beta", [0, 1, 0.5])
def test_fused(beta: float) -> None:
    m, a, b = leaf(3, 5), leaf(3, 4, seed=1), leaf(4, 5, seed=2)
    compare("addmm", m, a, b, beta=beta, alpha=2)
    compare("addmm", leaf(5), a, b, beta=beta)
    compare("addmv", leaf(3), a, leaf(4, seed=3), beta=beta)
    compare("addr", m, leaf(3, seed=3), leaf(5, seed=4), beta=beta)
    x, y = leaf(2, 3, 4, seed=5), leaf(2, 4, 5, seed=6)
    compare("baddbmm", leaf(2, 3, 5), x, y, beta=beta)
    compare("addbmm", m, x, y, beta=beta, alpha=0.5)


def test_beta_zero_ignores_what_was_there() -> None:
    nan = torch.full((3, 5), float("nan"), dtype=torch.float64)
    compare("addmm", nan, leaf(3, 4, grad=False), leaf(4, 5, grad=False), beta=0)
    compare("addmv", nan[:, 0], leaf(3, 4, grad=False), leaf(4, grad=False), beta=0)


def test_linear() -> None:
    for shape in ((4,), (3, 4), (2, 3, 4), (0, 4)):
        compare("nn.functional.linear", leaf(*shape), leaf(5, 4, seed=1), leaf(5, seed=2))
        compare("nn.functional.linear", leaf(*shape), leaf(5, 4, seed=1))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_small_sides(dtype: str) -> None:
    """Every side up to where BLAS takes over, with operands in all layouts, against float64."""
    tolerance = {"float32": 2e-6, "float64": 1e-14}[dtype]
    for m in (1, 2, 3, 7, 9, 24, 49):
        for k in (1, 2, 5, 8, 23, 24, 25):
            for n in (1, 2, 3, 4, 7, 8, 13, 15, 16, 23, 24, 25):
                a, b, bias = (
                    taeda.randn(*sizes, dtype=taeda.float64) for sizes in ((m, k), (n, k), (n,))
                )
                want = a.numpy() @ b.numpy().T
                x, w, start = (t.to(getattr(taeda, dtype)) for t in (a, b, bias))
                results = [
                    x @ w.T,
                    x.T.contiguous().T @ w.T,
                    x @ w.T.contiguous(),
                    taeda.nn.functional.linear(x, w, start) - start,
                    taeda.addmm(start, x, w.T) - start,
                ]
                for result in results:
                    difference = abs(result.double().numpy() - want).max()
                    assert difference <= tolerance * max(1, abs(want).max()), (m, k, n)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
def test_short_sums(dtype: str) -> None:
    """Sides that are read where they lie, in all layouts and conjugated, against float64."""
    tolerance = 2e-6 if dtype in ("float32", "complex64") else 1e-14
    wide = torch.complex128 if dtype.startswith("complex") else torch.float64
    for m, k, n in [
        (1, 1, 1), (2, 1, 2), (3, 2, 70), (70, 2, 3), (65, 4, 41), (37, 65, 5), (50, 8, 50),
        (33, 24, 33), (5, 7, 129), (100, 3, 1), (1, 3, 100), (3, 4, 5001),
        (40, 256, 7), (9, 64, 9), (2, 0, 3),
    ]:  # fmt: skip
        a, b = torch.randn(m, k, dtype=wide), torch.randn(k, n, dtype=wide)
        start = torch.randn(m, n, dtype=wide)
        x, y, z = (t.to(getattr(torch, dtype)) for t in (a, b, start))
        want = x.to(wide) @ y.to(wide)
        for left in [*layouts(x), x.conj()]:
            for right in [*layouts(y), y.conj()]:
                exact = left.to(wide) @ right.to(wide)
                got = to_torch(to_taeda(left) @ to_taeda(right)).to(wide)
                torch.testing.assert_close(got, exact, rtol=tolerance, atol=tolerance * (k + 1))
        got = to_torch(taeda.addmm(to_taeda(z), to_taeda(x), to_taeda(y))).to(wide)
        torch.testing.assert_close(got, want + z.to(wide), rtol=tolerance, atol=tolerance * (k + 1))


def test_short_sums_of_what_is_not_finite() -> None:
    for dtype in (torch.float32, torch.complex64):
        a, b = torch.ones(40, 3, dtype=dtype), torch.ones(3, 70, dtype=dtype)
        a[3, 1], a[39, 2], b[0, 69] = float("nan"), float("inf"), float("nan")
        got = to_torch(to_taeda(a) @ to_taeda(b))
        assert torch.equal(got.isnan(), (a @ b).isnan())
        if not dtype.is_complex:  # an infinite part beside a NaN says no more than two NaN
            assert torch.equal(got.isinf(), (a @ b).isinf())


@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128], ids=str)
def test_batches_of_complex_matrices(dtype: torch.dtype) -> None:
    for m, k, n in [(2, 2, 2), (1, 1, 1), (3, 5, 9), (8, 8, 8), (7, 70, 3), (1, 4, 33)]:
        a, b = torch.randn(11, m, k, dtype=dtype), torch.randn(11, k, n, dtype=dtype)
        for x in [*layouts(a), a[1].expand(11, m, k), a.conj()]:
            for y in [*layouts(b), b[:1].expand(11, k, n)]:
                got = to_torch(to_taeda(x) @ to_taeda(y))
                torch.testing.assert_close(got, x @ y)


@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128], ids=str)
@pytest.mark.parametrize(
    ("m", "k", "n"),
    [
        (150, 140, 160),
        (1100, 40, 30),
        (20, 1030, 1040),
        (3, 200, 300),
        (300, 200, 3),
        (400, 300, 1),
    ],
)
def test_large_complex_products(dtype: torch.dtype, m: int, k: int, n: int) -> None:
    """In all layouts, conjugated or not, scaled and added to, against complex128."""
    tolerance = 1e-5 if dtype == torch.complex64 else 1e-13
    a, b = torch.randn(m, k, dtype=dtype), torch.randn(k, n, dtype=dtype)
    z = torch.randn(m, n, dtype=dtype)

    def check(got: taeda.Tensor, want: torch.Tensor) -> None:
        error = (to_torch(got).to(torch.complex128) - want).abs().max()
        assert error <= tolerance * k**0.5

    # A left side with columns in memory, plain and conjugated, and the same of the right side.
    for left in (a, a.T.contiguous().T, a.T.contiguous().mH):
        for right in (b, b.T.contiguous().T, b.T.contiguous().mH):
            x, y = to_taeda(left), to_taeda(right)
            wide = left.to(torch.complex128) @ right.to(torch.complex128)
            check(x @ y, wide)
            check(taeda.addmm(to_taeda(z), x, y, alpha=1 - 2j, beta=3j), (1 - 2j) * wide + 3j * z)
            check(taeda.addmm(to_taeda(z), x, y, alpha=-2, beta=0.5), -2 * wide + 0.5 * z)
            row = taeda.addmm(to_taeda(z[0]), x, y, alpha=-1)
            check(row, z[0] - wide)


@pytest.mark.parametrize(
    "dtype", [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64], ids=str
)
@pytest.mark.parametrize(("m", "k", "n"), [(1, 300, 700), (2, 5, 33), (1, 0, 4), (2, 1, 129)])
def test_few_rows_of_integers(dtype: torch.dtype, m: int, k: int, n: int) -> None:
    info = torch.iinfo(dtype)
    a = torch.randint(info.min, info.max, (m, k)).to(dtype)
    b = torch.randint(info.min, info.max, (k, n)).to(dtype)
    for left in layouts(a):
        for right in layouts(b):
            assert torch.equal(to_torch(to_taeda(left) @ to_taeda(right)), a @ b)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize(
    ("m", "k", "n"), [(700, 8, 8), (3, 2, 1100), (2000, 1, 3), (50, 300, 2), (9, 8, 600)]
)
def test_halves_with_few_columns_or_terms(dtype: torch.dtype, m: int, k: int, n: int) -> None:
    a, b = torch.randn(m, k).to(dtype), torch.randn(k, n).to(dtype)
    exact = (a.float() @ b.float()).to(dtype)
    for left in layouts(a):
        for right in layouts(b):
            got = to_torch(to_taeda(left) @ to_taeda(right))
            torch.testing.assert_close(got, exact, rtol=1e-2, atol=1e-3)
    compare("mm", a.requires_grad_(), b.requires_grad_(), second=False)


def test_rounding_to_bfloat16_keeps_what_is_special() -> None:
    a = torch.tensor([[1.0], [float("nan")], [float("inf")], [1e-39], [3.3e38], [-0.0]] * 20)
    a = a.bfloat16()
    b = torch.tensor([[1.0, 1.0078125, -1.0, 0.5]]).bfloat16()
    want = (a.float() @ b.float()).bfloat16()
    got = to_torch(to_taeda(a) @ to_taeda(b))
    torch.testing.assert_close(got, want, rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("batch", [2, 7, 16, 37])
def test_batches_of_tiny_matrices(batch: int, dtype: torch.dtype) -> None:
    """As many as a register has lanes are multiplied at once; the last ones are fewer."""
    for m, k, n in [(1, 1, 1), (3, 3, 1), (3, 3, 3), (2, 4, 3), (4, 1, 4), (5, 3, 2), (3, 9, 1)]:
        a, b = torch.randn(batch, m, k, dtype=dtype), torch.randn(batch, k, n, dtype=dtype)
        a[-1, 0, 0] = float("nan")
        for x in [*layouts(a), a[1].expand(batch, m, k)]:
            for y in [*layouts(b), b[:1].expand(batch, k, n)]:
                got = to_torch(to_taeda(x) @ to_taeda(y))
                torch.testing.assert_close(got, x @ y, equal_nan=True)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("k", [1, 5, 24, 37, 256])
def test_small_linear_layers(k: int, dtype: torch.dtype) -> None:
    """Every number of columns that leaves a register part full; NaN stays in its row."""
    close = (
        {"rtol": 1e-5, "atol": 1e-4} if dtype == torch.float32 else {"rtol": 1e-9, "atol": 1e-11}
    )
    for n in range(1, 26):
        for m in (2, 3, 8, 13):
            x, weight, bias = (torch.randn(*s, dtype=dtype) for s in ((m, k), (n, k), (n,)))
            x[1, -1] = float("nan")
            for left in layouts(x):
                for right in layouts(weight):
                    want = x.double() @ weight.double().T + bias.double()
                    got = taeda.nn.functional.linear(
                        to_taeda(left), to_taeda(right), to_taeda(bias)
                    )
                    torch.testing.assert_close(
                        to_torch(got), want.to(dtype), equal_nan=True, **close
                    )


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("rows", [(1,), (9,), (2, 3), (0,)], ids=str)
def test_gradients_of_small_linear_layers(rows: tuple[int, ...], bias: bool) -> None:
    x, weight = leaf(*rows, 5, dtype=torch.float64), leaf(3, 5, dtype=torch.float64, seed=1)
    arguments = [x, weight, *([leaf(3, dtype=torch.float64, seed=2)] if bias else [])]
    compare("nn.functional.linear", *arguments)
    for fixed in range(len(arguments)):
        some = [a.detach() if i == fixed else a for i, a in enumerate(arguments)]
        compare("nn.functional.linear", *some)


def test_products_of_vectors() -> None:
    for dtype in (torch.float64, torch.complex128):
        a, b = leaf(6, dtype=dtype), leaf(6, dtype=dtype, seed=1)
        compare("dot", a, b)
        compare("vdot", a, b)
        compare("outer", a, b)
        compare("mv", leaf(4, 6, dtype=dtype), b)


@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128], ids=str)
def test_gradients_follow_the_convention_for_complex_numbers(dtype: torch.dtype) -> None:
    """Of a real loss, the gradient is that with respect to the conjugate, in every product."""
    a, b, c = (leaf(2, 3, 3, dtype=dtype, seed=i) for i in range(3))
    v, w = leaf(3, dtype=dtype, seed=4), leaf(3, dtype=dtype, seed=5)
    for name in ("mm", "matmul", "inner", "kron"):
        compare(name, a[0], b[0])
    for name in ("bmm", "matmul", "linalg.vecdot"):
        compare(name, a, b)
    compare("mv", a[0], v)
    compare("linalg.multi_dot", [a[0], b[0], c[0]])
    compare("linalg.multi_dot", [v, a[0], b[0]])
    compare("tensordot", a, b, dims=([0, 2], [0, 1]))
    compare("tensordot", a, b[0], dims=1)
    compare("einsum", "bij,bjk,bkl->bil", a, b, c)
    compare("nn.functional.linear", a, b[0], v)
    scale = {torch.float64: 0.5}.get(dtype, 0.5 + 2j)
    compare("addmm", a[0], b[0], c[0], beta=scale, alpha=scale)
    compare("baddbmm", a, b, c, beta=scale, alpha=scale)
    compare("addbmm", a[0], b, c, beta=scale, alpha=scale)
    compare("addmv", v, a[0], w, beta=scale, alpha=scale)
    compare("addr", a[0], v, w, beta=scale, alpha=scale)


EQUATIONS = [
    "ij,jk,kl->il",
    "ij,jk,kl,l->i",
    "ij,j,k->k",
    "ab,bc,cd,da->",
    "abi,bcj,cak->ijk",
    "i,j,k,l->lkji",
    "bij,bjk,bk->b",
    "ii,ij,jj->ij",
    "...i,...ij,j->...",
    "a,ab,abc,abcd->d",
    "ab,ab,ab->ba",
    "i,i,i,i->i",
]


@pytest.mark.parametrize("equation", EQUATIONS)
def test_einsum_of_several_operands(equation: str) -> None:
    sizes = dict(zip("abcdijkl", (2, 3, 1, 4, 3, 2, 4, 1), strict=True))
    operands = []
    for i, term in enumerate(equation.split("->")[0].split(",")):
        shape = [5] if "..." in term else []
        shape += [sizes[label] for label in term.replace("...", "")]
        operands.append(leaf(*shape, seed=i))
    compare("einsum", equation, *operands)
    compare("einsum", equation, *[t.detach().to(torch.complex64) for t in operands])


def test_einsum_multiplies_the_cheapest_pair_first() -> None:
    """From left to right this chain would take 500 times as many multiplications, and 400 MB."""
    wide, tall = torch.randn(10000, 1), torch.randn(1, 10000)
    product = taeda.einsum("ij,jk,kl->il", to_taeda(wide), to_taeda(tall), to_taeda(wide))
    expected = wide @ (tall @ wide)
    torch.testing.assert_close(torch.from_dlpack(product), expected, rtol=1e-3, atol=1e-2)


def test_errors() -> None:
    a, b = torch.ones(2, 3), torch.ones(4, 5)
    compare_error("matmul", a, b)
    compare_error("mm", a, torch.ones(3))
    compare_error("mm", a, torch.ones(3, 4, dtype=torch.float64))
    compare_error("bmm", a, b)
    compare_error("bmm", torch.ones(2, 3, 4), torch.ones(3, 4, 5))
    compare_error("mv", a, torch.ones(2))
    compare_error("dot", torch.ones(3), torch.ones(4))
    compare_error("matmul", torch.tensor(1.0), a)
    compare_error("addmm", torch.ones(7), a, torch.ones(3, 4))


def test_threads_do_not_change_the_bits() -> None:
    shapes = [(300, 400, 200), (20, 20000, 30), (1, 900, 3000), (30000, 3, 9), (64, 4, 9000)]
    before = taeda.get_num_threads()
    try:
        for m, k, n in shapes:
            for dtype in (torch.float32, torch.complex64, torch.bfloat16):
                a = to_taeda(torch.randn(m, k).to(dtype))
                b = to_taeda(torch.randn(k, n).to(dtype))
                results = []
                for threads in (1, 2, 3):
                    taeda.set_num_threads(threads)
                    results.append(a @ b)
                assert all(taeda.equal(results[0], r) for r in results[1:])
    finally:
        taeda.set_num_threads(before)


@pytest.mark.parametrize(
    ("m", "k", "n"), [(2, 1, 2), (7, 5, 3), (65, 33, 70), (17, 256, 300), (8, 2048, 40), (3, 0, 2)]
)
def test_bfloat16(m: int, k: int, n: int) -> None:
    a, b = leaf(m, k, dtype=torch.bfloat16), leaf(k, n, dtype=torch.bfloat16, seed=1)
    exact = a.detach().double() @ b.detach().double()
    for left in layouts(a.detach()):
        for right in layouts(b.detach()):
            ours = to_torch(to_taeda(left) @ to_taeda(right)).double()
            torch.testing.assert_close(ours, exact, rtol=1 / 256, atol=1e-4)
    compare("addmm", leaf(n, dtype=torch.bfloat16), a, b, beta=2, alpha=3, second=False)
    compare("nn.functional.linear", a, leaf(n, k, dtype=torch.bfloat16), second=False)
    compare("bmm", a.detach().expand(9, m, k), b.detach().expand(9, k, n))


def test_bfloat16_that_is_not_finite() -> None:
    a, b = leaf(20, 40, dtype=torch.bfloat16, grad=False), torch.ones(40, 20, dtype=torch.bfloat16)
    a[3, 7], a[5, 8], a[6, 1] = float("inf"), float("nan"), 3e38
    compare("mm", a, b)
    compare("mm", b.t().contiguous(), a.t().contiguous())


def test_threads_do_not_change_the_bits_of_bfloat16() -> None:
    a = taeda.randn(130, 70).bfloat16()
    b = taeda.randn(70, 600).bfloat16()
    before = taeda.get_num_threads()
    results = []
    try:
        for threads in (1, 2, 3):
            taeda.set_num_threads(threads)
            results.append(a @ b)
    finally:
        taeda.set_num_threads(before)
    assert all(taeda.equal(r, results[0]) for r in results)


def test_mv_derivatives_read_what_the_vector_holds_then():
    """`v.data = ...` between forward and backward is seen, as spectral norm by hand relies on."""
    w, v = taeda.ones(2, 3, requires_grad=True), taeda.nn.Parameter(taeda.ones(3))
    y = w.mv(v)
    v.data = taeda.full((3,), 3.0)
    y.sum().backward()
    assert w.grad.tolist() == [[3.0] * 3] * 2 and v.grad.tolist() == [2.0] * 3
    for dtype in (taeda.float64, taeda.complex128):
        w = taeda.randn(2, 3, dtype=dtype, requires_grad=True)
        v = taeda.randn(6, dtype=dtype)[::2].requires_grad_()
        assert taeda.autograd.gradcheck(taeda.mv, (w, v))
        assert taeda.autograd.gradgradcheck(taeda.mv, (w, v))
    batch = taeda.func.vmap(taeda.mv, in_dims=(None, 0))(w.detach(), taeda.eye(3).to(w.dtype))
    assert taeda.equal(batch, w.detach().T)
