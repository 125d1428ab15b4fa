"""The kernels of CUDA, compiled for the host, compute what the CPU's do."""

from __future__ import annotations

import pytest

from tests.cuda.compare import COMPARED, GRADIENTS, compared
from tests.cuda.shim import run


def cases(libraries, suite: str, **more: str) -> list[str]:
    """The lines that the suite prints on the device; what is missing there falls back."""
    library = libraries / "libtaeda_cuda.so"
    done = run(
        libraries,
        *("-m", "tests.guard.run", library, suite),
        GUARD_DEVICE="cuda",
        GUARD_TABLES="few",
        **more,
    )
    lines = done.stdout.splitlines()
    assert done.returncode == 0, f"ended in {lines[-1:]}: {done.stderr[-2000:]}"
    assert [line for line in lines if line.startswith("failed")] == []
    return [line for line in lines if line.startswith("ok")]


@pytest.mark.parametrize(
    ("suite", "least"),
    [("ops", 150), ("mixed", 50), ("places", 20), ("modules", 20), ("optimizers", 12)],
)
def test_same_as_on_the_cpu(libraries, suite, least):
    assert len(cases(libraries, suite)) >= least


def test_in_another_order_of_threads(libraries):
    """What depends on which thread comes first lacks a barrier."""
    assert len(cases(libraries, "ops", TAEDA_SHIM_REVERSED="1")) >= 150


# Shapes that the cases of tests.ops leave out: several blocks, parts of a reduction, tiles that are
# cut, many dimensions, dtypes that have to be converted.


def test_sorting_and_counting_of_many_shapes(libraries):
    """Of one line and of several, by keys with room for a line's number and without."""
    code = """
for dtype in (torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.int32,
              torch.int16, torch.int8, torch.uint8):
    for shape in ((1000,), (7, 300), (3, 1, 50), (2000, 3), (4, 0), (0, 4)):
        x = (torch.randn(shape) * 30).round().to(dtype)
        if x.is_floating_point() and x.numel():
            x.view(-1)[::7], x.view(-1)[1::9], x.view(-1)[2::9] = float("nan"), -0.0, 0.0
        for dim in range(x.dim() if x.numel() else 0):
            same(lambda x: tuple(torch.sort(x, dim, stable=True)), x)
            same(lambda x: tuple(torch.sort(x, dim, descending=True, stable=True)), x)
            same(lambda x: torch.topk(x, min(5, x.shape[dim]), dim).values, x)
            same(lambda x: tuple(torch.median(x, dim)), x)
            if x.is_floating_point():
                same(lambda x: tuple(torch.nanmedian(x, dim)), x)
            if dtype not in (torch.float16, torch.bfloat16):
                same(lambda x: tuple(torch.mode(x, dim)), x)
        same(lambda x: torch.isin(x, x[:1]), x)
        ordered = x[~x.isnan()].sort().values
        if ordered.numel():
            for right in (False, True):
                same(lambda s, x: torch.searchsorted(s, x, right=right), ordered, x)
same(lambda x: tuple(torch.sort(x, 1, stable=True)), torch.rand(5, 40) > 0.5)
x = torch.randint(-2, 3, (400, 3))
for y in (x, x.double(), torch.complex(x.float(), x.flip(0).float())):
    same(lambda y: torch.unique(y, dim=0, return_inverse=True, return_counts=True), y)
    same(lambda y: torch.unique_consecutive(y, dim=0, return_counts=True), y)
same(lambda x: torch.unique(x, return_inverse=True, return_counts=True), x)
for bins in (3, 5000):
    same(lambda v: torch.bincount(v, minlength=bins), torch.randint(0, bins, (20000,)))
    same(lambda v: torch.histc(v, bins, -1, 1), torch.randn(20000))
    same(lambda v: torch.histogram(v, bins).hist, torch.randn(20000, dtype=torch.float64))
"""
    assert compared(libraries, code) >= 500


def test_reductions_of_many_shapes(libraries):
    code = """
x = torch.randn(3, 700, 5)
for dims in [(0,), (1,), (2,), (0, 1), (1, 2), (0, 2), (0, 1, 2)]:
    same(lambda t: t.sum(dims), x)
    same(lambda t: t.var(dims), x)
    same(lambda t: t.amax(dims), x)
same(lambda t: t.transpose(0, 2).sum(1), x)
same(lambda t: t.sum(), torch.randn(200_000))
same(lambda t: t.sum(0), torch.randn(20_000, 3))
same(lambda t: t.argmax(), torch.randn(100_000).round())
same(lambda t: t.max(1), torch.randn(3, 1000).round())
same(lambda t: t.min(0), torch.randint(0, 9, (500, 3)))
same(lambda t: t.any(0), torch.rand(50, 7) > 0.98)
same(lambda t: t.prod(1), torch.rand(4, 50))
same(lambda t: t.cumsum(1), torch.randn(3, 1000))
same(lambda t: t.cumsum(0), torch.randint(0, 9, (300, 3)))
same(lambda t: t.cummax(1), torch.randn(3, 600).round())
same(lambda t: t.logcumsumexp(0), torch.randn(40, 2))
x = torch.randn(300); x[7] = float("nan"); x[200] = float("nan")
same(lambda t: (t.max(), t.argmin(), t.nansum(), t.cummin(0).indices), x)
"""
    assert compared(libraries, code) == 34


def test_reductions_by_vectors(libraries):
    """Rows and columns with packs of neighbours, what is left over, views that are not aligned."""
    code = """
def all_of(x, dim, tol=1e-5):
    if x.dtype.is_floating_point:
        same(lambda t: (t.sum(dim), t.mean(dim), t.nansum(dim), (t * 1e-2).norm(2, dim), t.norm(1, dim)), x, tol=tol)
        same(lambda t: (t.float() if t.dtype.itemsize == 2 else t).var(dim), x, tol=tol)
        same(lambda t: torch.std_mean(t, dim), x, tol=tol)
    else:
        same(lambda t: (t.sum(dim), t.count_nonzero(dim)), x)
    same(lambda t: (t.amax(dim), t.amin(dim), t.any(dim), t.all(dim)), x)
    if (dim is None or type(dim) is int) and x.dtype != torch.bool:
        same(lambda t: (t.argmax(dim), t.argmin(dim)), x)
for dtype, tol in [(torch.float32, 1e-5), (torch.float64, 1e-12), (torch.float16, 5e-3), (torch.bfloat16, 5e-2)]:
    for shape in [(3, 1000), (3, 1003), (130, 64), (9, 1), (2, 9)]:
        x = (torch.randn(shape) * 4).round().to(dtype)
        all_of(x, 1, tol)
        all_of(x, 0, tol)
    x = (torch.randn(6, 16, 24) * 4).round().to(dtype)
    for dim in (None, 1, (0, 2), (1, 2), (0, 1)):
        all_of(x, dim, tol)
    all_of(x.transpose(0, 1), (0, 2), tol)
    all_of(x.flatten()[1:], 0, tol)
    all_of(x[:, 1:, :8], 2, tol)
for dtype in (torch.bool, torch.uint8, torch.int8, torch.int32, torch.int64):
    x = torch.randint(-9, 9, (40, 72)).to(dtype)
    for dim in (0, 1, None):
        all_of(x, dim)
far = torch.randn(4000, 8) * 0.01 + 1000
same(lambda t: (t.var(0), t.var(1), t.var()), far, tol=1e-3)
same(lambda t: (t.sum(0), t.mean(1), t.mean()), far)
same(lambda t: t.sum(), torch.rand(200_003))
same(lambda t: (t.var(), t.amax(), t.argmax()), torch.rand(100_000))
x = torch.randn(9, 40)
x[0, 3], x[1, 5], x[2, 7], x[3, 7] = float("nan"), float("inf"), -float("inf"), 9.0
same(lambda t: (t.sum(0), t.sum(1), t.nansum(0), t.nansum(1), t.amax(1), t.amin(0), t.argmax(0), t.argmin(1)), x)
same(lambda t: (t.sum(0), t.sum(1), t.prod(0)), torch.zeros(0, 8))
"""
    assert compared(libraries, code) > 200


def test_products_of_many_shapes(libraries):
    code = """
for m, k, n in [(1, 1, 1), (65, 17, 3), (3, 130, 70), (64, 64, 64), (2, 0, 3)]:
    same(lambda a, b: a @ b, torch.randn(m, k), torch.randn(k, n))
    same(lambda a, b: a.T @ b.T, torch.randn(k, m), torch.randn(n, k))
for dtype in (torch.float64, torch.complex64, torch.complex128, torch.float16, torch.bfloat16):
    a, b = torch.randn(9, 20).to(dtype), torch.randn(20, 70).to(dtype)
    same(lambda a, b: a @ b, a, b, tol={torch.float16: 1e-2, torch.bfloat16: 4e-2}.get(dtype, 1e-5))
same(lambda a, b: a @ b.mH, torch.randn(4, 5, dtype=torch.complex64), torch.randn(3, 5, dtype=torch.complex64))
same(lambda a, b: a @ b, torch.randint(-99, 99, (5, 70)), torch.randint(-99, 99, (70, 4)))
same(torch.bmm, torch.randn(5, 3, 20), torch.randn(5, 20, 2))
same(torch.nn.functional.linear, torch.randn(5, 20), torch.randn(3, 20), torch.randn(3))
same(lambda c, a, b: torch.addmm(c, a, b, beta=0.5, alpha=2), torch.randn(3), torch.randn(5, 4), torch.randn(4, 3))
"""
    assert compared(libraries, code) == 20


def test_pointwise_of_many_layouts(libraries):
    code = """
x, y = torch.randn(70, 33), torch.randn(33)
same(lambda a, b: a * b + 2, x, y)
same(lambda a, b: a.T + b[:, None], x, y)
same(lambda a: a[::2, 1::3].exp(), x)
same(lambda a: a[1:].reshape(-1)[1:] * 3, x)  # not aligned
n = 10
many = torch.randn([2] * n).permute(*range(n)[::-2], *range(n)[-2::-2])
same(lambda a, b: a + b, many, torch.randn([2] * n))
for a, b in itertools.product([torch.float32, torch.float16, torch.int64, torch.bool, torch.complex32, torch.complex64], repeat=2):
    p, q = (3 * torch.rand(2, 100)).to(a), (3 * torch.rand(100)).to(b)
    same(lambda p, q: p * q, p, q, tol=1e-2)
    same(lambda p, q: p == q, p, q)
kinds = [torch.uint8, torch.int16, torch.uint16, torch.uint64, torch.bfloat16, torch.float8_e5m2,
         torch.float8_e4m3fn, torch.float64, torch.complex32, torch.complex128]
for a, b in itertools.product(kinds, repeat=2):
    v = (100 * torch.rand(3, 50)).to(a)
    same(lambda t: t.to(b).double() if not b.is_complex else t.to(b), v)
same(lambda t: torch.where(t > 0, t, 7.0), x)
same(lambda t: t.clone().mul_(3).sub_(1), x.half(), tol=1e-2)
same(lambda a, b: a // b, torch.randint(-9, 9, (100,)), torch.randint(1, 5, (100,)))
"""
    assert compared(libraries, code) == 5 + 72 + 100 + 3


def test_complex_numbers_of_two_halves(libraries):
    code = """
z, i = torch.randn(40, 6, dtype=torch.chalf), torch.tensor([1, 7, 1])
same(lambda z: (z.exp(), z / z[0], z.abs(), z.angle(), z == z[0], z + 1, z.real, z.conj(), z.half()), z, tol=1e-2)
same(lambda z: (z.sum(0), z.mean(), z.std(1), z.norm(), z.any(0), z.count_nonzero()), z, tol=1e-2)
same(lambda z: (z @ z.mT, torch.cat([z, z]), z[:, 1:].clone(), z.T.contiguous(), torch.where(z == 0, z, z[0])), z, tol=1e-2)
same(lambda z, i: (z[i], z.index_add(0, i, z[:3]), z.index_put((i,), z[:3], accumulate=True)), z, i, tol=1e-2)
"""
    assert compared(libraries, code) == 4


def test_edges_of_functions(libraries):
    """Where the short forms of functions end, and beyond numbers."""
    code = """
inf, F = float("inf"), torch.nn.functional
x = torch.tensor([inf, -inf, float("nan"), 0.0, -0.0, 88.9, -104.0, -90.0, 1e-40, 3e38, 1.0, -1.0, 1e5])
for f in (torch.exp, torch.exp2, torch.expm1, torch.log, torch.log2, torch.log10, torch.log1p, torch.sqrt,
          torch.sin, torch.cos, torch.tan, torch.tanh, torch.sigmoid, torch.erf, F.silu, F.gelu, F.softplus, F.logsigmoid):
    for d in (torch.float32, torch.float64):
        same(f, x.to(d))
same(torch.fmod, torch.tensor([0.5, 1.0, 3.0, -3.4e10]), torch.tensor([2e-38, 2e-38, 2e-38, 1.1e-23]), tol=0)
same(lambda t: t.logsumexp(0), torch.full((3,), -inf))
"""
    assert compared(libraries, code) == 38


def test_indices_of_many_shapes(libraries):
    code = """
x = torch.randn(30, 4, 9)
i = torch.randint(0, 30, (50,))
same(lambda t, i: t[i], x, i)
same(lambda t, i: t.index_add(0, i, t[i]), x, i)
same(lambda t, i: t.index_select(0, i), x, i)
same(lambda t, i: t.gather(0, i), x, torch.randint(0, 30, (5, 4, 9)))
same(lambda t, i: t.scatter(0, i, t), x, torch.randint(0, 30, (30, 4, 9)))
same(lambda t, i: t.scatter_reduce(0, i, t, "amax"), x, torch.randint(0, 30, (30, 4, 9)))
same(lambda t: t[t > 0], x)
same(lambda t: (t > 1).nonzero(), x)
same(lambda t: t.masked_scatter(t > 0, t.flatten()), x)
same(lambda t: torch.cat([t, t[:, :1], t], 1), x)
same(lambda t: t.tril(1), torch.randn(3, 70, 70))
same(lambda t: torch.stack([t, t], 2), torch.randint(0, 9, (3, 5), dtype=torch.uint8))
same(torch.nn.functional.embedding, torch.randint(0, 30, (2, 3)), torch.randn(30, 5))
"""
    assert compared(libraries, code) == 13


def test_convolutions_and_pools_of_many_shapes(libraries):
    code = """
for groups, stride, padding, dilation in [(1, 1, 0, 1), (2, 2, 1, 1), (4, 1, 2, 2), (1, (2, 1), (0, 3), (1, 2))]:
    gradients(lambda x, w, b: F.conv2d(x, w, b, stride, padding, dilation, groups), (3, 4, 11, 9), (8, 4 // groups, 3, 2), (8,))
gradients(lambda x, w: F.conv_transpose2d(x, w, None, 2, 1, 1), (2, 3, 5, 6), (3, 4, 3, 3))
gradients(lambda x, w: F.conv1d(x, w), (2, 3, 300), (2, 3, 7))
gradients(lambda x, w: F.conv3d(x, w, None, 1, 1), (1, 2, 4, 5, 6), (2, 2, 3, 3, 3))
gradients(lambda x: F.max_pool2d(x, 3, 2, 1), (2, 3, 20, 17))
gradients(lambda x: F.max_pool1d(x, 2, 1, 0, 3), (2, 3, 20))
gradients(lambda x: F.avg_pool2d(x, 3, 2, 1), (2, 3, 20, 17))
gradients(lambda x: F.avg_pool2d(x, (2, 3), 2, 1, ceil_mode=True, count_include_pad=False), (2, 3, 9, 8))
gradients(lambda x: F.avg_pool3d(x, 2, divisor_override=3), (2, 4, 5, 6))
gradients(lambda x: F.adaptive_avg_pool2d(x, (3, 5)), (2, 3, 7, 5))
gradients(lambda x: F.adaptive_max_pool2d(x, (2, 3)), (2, 3, 7, 5))
"""
    assert compared(libraries, GRADIENTS + code) == 14


def test_convolutions_of_many_layouts_and_dtypes(libraries):
    code = """
# Several tiles and panels, and sums in parts.
gradients(lambda x, w, b: F.conv2d(x, w / 30, b, 1, 1), (2, 70, 13, 11), (66, 70, 3, 3), (66,))
gradients(lambda x, w: F.conv2d(x, w / 9, None, 2, 3, 2, 5), (3, 20, 40, 37), (10, 4, 5, 3))
gradients(lambda x, w: F.conv_transpose2d(x, w, None, 3, 2, 2, 5, 3), (2, 10, 7, 9), (10, 3, 4, 3))
gradients(lambda x, w: F.conv1d(x, w, None, 4), (1, 2, 40000), (3, 2, 9))
for kind in (torch.channels_last, torch.channels_last_3d):
    d = 2 if kind == torch.channels_last else 3
    conv = getattr(F, f"conv{d}d")
    for groups in (1, 4, 12):
        gradients(lambda x, w, b: conv(x.to(memory_format=kind), w / 9, b, 2, 1, 1, groups), (2, 12, *[6, 7, 8][:d]), (24, 12 // groups, *[3] * d), (24,))
same(lambda x, w: torch.tensor(F.conv2d(x, w).stride()), torch.randn(2, 3, 5, 5).to(memory_format=torch.channels_last), torch.randn(4, 3, 2, 2))
for dtype in (torch.float16, torch.bfloat16, torch.float64):
    for kind in (torch.contiguous_format, torch.channels_last):
        x, w, b = torch.randn(2, 6, 9, 8).to(dtype), torch.randn(9, 6, 3, 3).to(dtype), torch.randn(9).to(dtype)
        def both(x, w, b):
            x, w = x.detach().requires_grad_(), w.detach().requires_grad_()
            y = F.conv2d(x.to(memory_format=kind), w, b, 1, 1)
            assert y.dtype == dtype
            return (y.detach(), *torch.autograd.grad(y.sum(), (x, w)))
        same(both, x, w, b, tol=0.1 if dtype == torch.bfloat16 else 1e-2)
for dtype in (torch.uint8, torch.int16, torch.int64):
    same(F.conv2d, torch.randint(0, 99, (2, 9, 7, 6), dtype=dtype), torch.randint(0, 99, (5, 9, 3, 3), dtype=dtype))
    same(F.conv_transpose2d, torch.randint(0, 99, (2, 9, 7, 6), dtype=dtype), torch.randint(0, 99, (9, 5, 3, 3), dtype=dtype))
same(F.conv2d, torch.randn(2, 3, 8, 8, dtype=torch.complex64), torch.randn(4, 3, 3, 3, dtype=torch.complex64))
"""
    assert compared(libraries, GRADIENTS + code) == 24


def test_convolutions_by_cudnn(libraries):
    """Its graphs, the choice of an engine, and what it leaves to taeda's kernels."""
    code = """
def convolved(x, w, b, dims, *window):
    x, w, b = (t.detach().requires_grad_() for t in (x, w, b))
    y = getattr(F, f"conv{dims}d")(x, w, b, *window)
    y.backward(y.detach().cos())
    return (y.detach(), x.grad, w.grad, b.grad)
def case(dtype, dims, *window, groups=1, kind=torch.contiguous_format):
    x = torch.randn(2, 4, *[9, 7, 6][:dims]).to(dtype).to(memory_format=kind)
    w, b = torch.randn(8, 4 // groups, *[3, 2, 2][:dims]).to(dtype), torch.randn(8).to(dtype)
    same(lambda *t: convolved(*t, dims, *window, groups), x, w / 4, b, tol=0.1 if dtype.itemsize == 2 else 1e-4)

print(torch.backends.cudnn.is_available(), torch.backends.cudnn.version())
torch.backends.cudnn.allow_tf32 = False
for dtype in (torch.float32, torch.float64, torch.float16, torch.bfloat16):
    case(dtype, 2, 2, 1, 1)
for dims in (1, 2, 3):
    case(torch.float32, dims, 1, 2, 2, groups=2)
case(torch.float32, 2, 2, 1, 1, kind=torch.channels_last)
case(torch.float16, 3, 2, 1, 1, kind=torch.channels_last_3d)
same(lambda x, w: F.conv_transpose2d(x, w, None, 2, 1, 1), torch.randn(2, 3, 5, 6), torch.randn(3, 4, 3, 3))
case(torch.float32, 2, 1, 4, 4)  # no engine
x, w = torch.full((1, 1, 1, 1), 1 + 2**-12, device="cuda"), torch.ones(1, 1, 1, 1, device="cuda")
exact = [F.conv2d(x, w).item() for _ in range(2)][1]
with torch.backends.cudnn.flags(enabled=True, allow_tf32=True):
    print(exact == x.item(), F.conv2d(x, w).item())
with torch.backends.cudnn.flags(enabled=False):
    print(F.conv2d(x, w).item() == exact)
"""
    done = run(
        libraries,
        *("-c", COMPARED + GRADIENTS + code),
        LD_LIBRARY_PATH=f"{libraries / 'cudnn'}:{libraries}",
        TAEDA_CUDA_DEBUG_LIBRARIES="1",
    )
    assert done.returncode == 0, done.stderr[-3000:]
    lines = done.stdout.splitlines()
    assert lines == ["True 90000", *["ok"] * 11, "True 1.0", "True"]
    reports = done.stderr.splitlines()
    chosen = [line for line in reports if ": candidate " in line]
    assert len(chosen) == 3 * 9 + 3, "one plan for each pass of each shape"
    assert ["TF32" in line for line in chosen] == [False] * 29 + [True]
    assert "candidate 3 of 3 of heuristic 1, workspace 1000" in chosen[-1]
    assert sum("no engine" in line for line in reports) == 3


def test_losses_and_norms_of_many_shapes(libraries):
    code = """
for shape, dim in [((3, 1000), 1), ((300, 3), 0), ((2, 5, 40), 1)]:
    gradients(lambda x: x.softmax(dim), shape)
    gradients(lambda x: x.log_softmax(dim), shape)
gradients(lambda x, w, b: F.layer_norm(x, (600,), w, b), (5, 600), (600,), (600,))
gradients(lambda x, w, b: F.group_norm(x, 2, w, b), (3, 4, 70), (4,), (4,))
gradients(lambda x, w: F.rms_norm(x, (60,), w), (40, 60), (60,))
gradients(lambda x, w, b: F.batch_norm(x, None, None, w, b, True), (70, 40), (40,), (40,))
gradients(lambda x, w, b: F.batch_norm(x, None, None, w, b, True), (3, 4, 90), (4,), (4,))
def masked(q, k, v, m):
    return F.scaled_dot_product_attention(q, k, v, attn_mask=m)
gradients(F.scaled_dot_product_attention, (2, 3, 40, 8), (2, 3, 70, 8), (2, 3, 70, 5))
gradients(lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True), *3 * [(1, 2, 50, 4)])
seen = torch.rand(9, 33) > 0.5
seen[4] = False
gradients(lambda q, k, v: masked(q, k, v, seen.to(q.device)), (2, 2, 9, 8), (2, 2, 33, 8), (2, 2, 33, 8))
t = torch.randint(0, 50, (70,))
t[3] = -100
for reduction in ("mean", "sum", "none"):
    gradients(lambda x: F.cross_entropy(x, t.to(x.device), reduction=reduction), (70, 50))
    gradients(lambda x: F.nll_loss(x, t.to(x.device), reduction=reduction), (70, 50))
"""
    assert compared(libraries, GRADIENTS + code) == 20


def test_norms_of_rows_of_many_shapes(libraries):
    """Rows that registers hold and longer ones, by vectors and by elements, and none at all."""
    code = """
def of_rows(dtype, rows, n, tol, offset=0, scale=1.0, shift=0.0):
    def both(x, w, b):
        x = x[offset:].detach().view(rows, n).requires_grad_()
        w, b = (t.detach().requires_grad_() for t in (w, b))
        y = F.layer_norm(x, (n,), w, b) + F.rms_norm(x, (n,), w)
        (y * y.detach().cos()).sum().backward()
        return tuple(t.detach().float() for t in (y, x.grad, w.grad, b.grad))
    x = torch.randn(rows * n + offset) * scale + shift
    same(both, *[t.to(dtype) for t in (x, torch.randn(n), torch.randn(n))], tol=tol)
for n in (1, 3, 8, 24, 33, 64, 500, 1032, 1025):
    of_rows(torch.float32, 5, n, 1e-4)
    of_rows(torch.bfloat16, 5, n, 5e-2)
for n in (8200, 8201, 17000, 33000):
    of_rows(torch.float32, 2, n, 1e-4)
    of_rows(torch.float16, 2, n, 1e-2)
of_rows(torch.float64, 3, 500, 1e-9)
of_rows(torch.float64, 3, 501, 1e-9)
of_rows(torch.float32, 300, 64, 1e-4)
of_rows(torch.float32, 4, 64, 1e-4, offset=1)
of_rows(torch.float32, 4, 640, 1e-3, scale=0.1, shift=100.0)
of_rows(torch.float32, 2, 17000, 1e-3, scale=0.1, shift=100.0)
gradients(lambda x: F.layer_norm(x, (64,)), (0, 64))
gradients(lambda x: F.layer_norm(x, (64,)), (3, 64))
x = torch.randn(4, 40)
x[0, 3], x[1, 0], x[2] = float("nan"), float("inf"), 7.0
same(lambda t: F.layer_norm(t, (40,)), x)
same(lambda t: F.layer_norm(t.half(), (40,)), x, tol=1e-2)
for groups, shape in [(2, (3, 4, 70)), (3, (2, 6, 8)), (2, (3, 8)), (8, (5, 16)), (2, (2, 4, 30, 40)), (1, (2, 3, 7, 7)), (4, (1, 4, 9000))]:
    gradients(lambda x, w, b: F.group_norm(x, groups, w, b), shape, shape[1:2], shape[1:2])
    gradients(lambda x: F.group_norm(x, groups), shape)
gradients(lambda x, w, b: F.layer_norm(x, (8,), w, b), (3000, 8), (8,), (8,))
"""
    assert compared(libraries, GRADIENTS + code) == 18 + 8 + 6 + 4 + 14 + 1


def test_norms_of_channels_of_many_shapes(libraries):
    code = """
def norm(x, w, b):
    return F.batch_norm(x, None, None, w, b, True)
for shape in [(70, 40), (70, 41), (3000, 3), (2, 64), (3, 4, 90), (3, 8, 64), (9, 5, 7, 7), (2, 3, 50, 60), (1, 2, 9000), (700, 4, 4), (64, 300)]:
    gradients(norm, shape, shape[1:2], shape[1:2])
    gradients(lambda x: norm(x, None, None), shape)
def eval_norm(x, w, b, m, v):
    return F.batch_norm(x, m, v.abs() + 0.5, w, b, False)
gradients(lambda x, w, b: eval_norm(x, w, b, torch.ones(8, device=x.device), torch.ones(8, device=x.device)), (3, 8, 6), (8,), (8,))
gradients(lambda x: norm(x, None, None), (0, 3, 4))
for shape in [(50, 8), (4, 8, 33)]:
    far = torch.randn(shape) * 0.1 + 100
    same(lambda t: norm(t, None, None), far, tol=1e-3)
    same(lambda t: norm(t.bfloat16(), None, None), torch.randn(shape), tol=5e-2)
    same(lambda t: norm(t.double(), None, None), far, tol=1e-9)
    holes = torch.randn(shape)
    holes[1, 2], holes[0, 5] = float("nan"), float("inf")
    same(lambda t: norm(t, None, None), holes)
def running(x):
    m, v = torch.zeros(8, device=x.device), torch.ones(8, device=x.device)
    return F.batch_norm(x, m, v, None, None, True, 0.3), m, v
same(running, torch.randn(5, 8, 6))
"""
    assert compared(libraries, GRADIENTS + code) == 22 + 2 + 8 + 1


def test_softmax_of_many_shapes(libraries):
    code = """
def both(dtype, dim, tol):
    def f(x):
        x = x.detach().requires_grad_()
        y = x.softmax(dim) + x.log_softmax(dim)
        (y * y.detach().cos()).sum().backward()
        return y.detach().float(), x.grad.float()
    return lambda x: same(f, x.to(dtype), tol=tol)
for n in (1, 3, 8, 64, 1000, 1001, 8200, 33000, 33001):
    both(torch.float32, 1, 1e-4)(torch.randn(3, n) * 3)
    both(torch.bfloat16, 1, 5e-2)(torch.randn(3, n) * 3)
    both(torch.float16, 1, 5e-3)(torch.randn(3, n) * 3)
both(torch.float64, 1, 1e-12)(torch.randn(3, 500))
both(torch.float32, 1, 1e-5)(torch.randn(500, 8))
for shape, dim in [((2, 5, 40), 1), ((2, 300, 3), 1), ((700, 300), 0), ((1, 2, 5, 7), 1)]:
    both(torch.float32, dim, 1e-5)(torch.randn(shape))
    both(torch.float16, dim, 5e-3)(torch.randn(shape))
same(lambda t: t[1:].view(4, 16).softmax(1), torch.randn(65))
inf = float("inf")
x = torch.randn(5, 40)
x[0, :30], x[1], x[2, 3], x[3, 4], x[4, 5:9] = -inf, -inf, inf, float("nan"), 80.0
for t in (x, torch.cat([x] * 30, 1), torch.cat([x] * 300, 1)[:, 1:]):
    same(lambda v: (v.softmax(1), v.log_softmax(1)), t)
    same(lambda v: (v.softmax(0), v.log_softmax(0)), t.T)
same(lambda t: t.softmax(1), torch.zeros(3, 0))
"""
    assert compared(libraries, code) == 27 + 2 + 8 + 1 + 6 + 1


# Attention and its gradients beside the same in float64 on the CPU, of the same rounded numbers.
ATTENTION = """
F = torch.nn.functional
CLOSE = {torch.float64: 1e-12, torch.float32: 3e-5, torch.float16: 3e-3, torch.bfloat16: 2e-2}
def attended(q, k, v, g, mask, options, device, dtype):
    q, k, v, g = [t.to(device).to(dtype) for t in (q, k, v, g)]
    mask = mask if mask is None else mask.to(device)
    if mask is not None and mask.dtype != torch.bool: mask = mask.to(dtype)
    leaves = [t.detach().requires_grad_() for t in (q, k, v)]
    y = F.scaled_dot_product_attention(*leaves, mask, **options)
    return [t.cpu().double() for t in (y.detach(), *torch.autograd.grad(y, leaves, g))]
def check(q, k, v, mask=None, **options):
    g = torch.randn(*q.shape[:-1], v.size(-1)).to(q.dtype)
    want = attended(q, k, v, g, mask, options, "cpu", torch.float64)
    got = attended(q, k, v, g, mask, options, "cuda", q.dtype)
    for name, w, r in zip(("result", "dq", "dk", "dv"), want, got):
        most = max([1.0, *w.abs().flatten().tolist()])
        torch.testing.assert_close(r / most, w / most, rtol=0, atol=CLOSE[q.dtype], equal_nan=True,
                                   msg=lambda m: f"{name}: {m}")
    print("ok")
def made(dtype, queries, keys, size, value_size=None, lead=(1, 2)):
    sizes = (queries, size), (keys, size), (keys, value_size or size)
    return [torch.randn(*lead, *s).to(dtype) for s in sizes]
HALVES = torch.float16, torch.bfloat16
"""
CAPABILITIES = [{"STUB_CAPABILITY": "80"}, {"STUB_CAPABILITY": "90"}]  # by warps, by warpgroups


@pytest.mark.parametrize("order", [{}, {"TAEDA_SHIM_REVERSED": "1"}], ids=["", "reversed"])
@pytest.mark.parametrize("capability", CAPABILITIES)
def test_attention_of_many_shapes(libraries, order, capability):
    code = """
lengths = [(1, 1), (7, 64), (64, 7), (65, 130), (130, 65), (130, 130), (1, 257), (257, 1)]
for i, (queries, keys) in enumerate(lengths):
    for causal in (False, True):
        check(*made(HALVES[i % 2], queries, keys, 64), is_causal=causal)
        check(*made(HALVES[1 - i % 2], queries, keys, 128, lead=(1,)), is_causal=causal)
        check(*made(torch.float32, queries, keys, 40, 72), is_causal=causal)
for dtype in HALVES:
    for size, value_size in [(8, 8), (40, 40), (72, 72), (64, 128), (24, 16), (136, 64), (5, 9)]:
        check(*made(dtype, 70, 90, size, value_size, lead=()), is_causal=size > 40)
check(*made(torch.float16, 257, 257, 64, lead=(1,)), is_causal=True)
check(*made(torch.bfloat16, 300, 400, 64, lead=(1,)), is_causal=True)
check(*made(torch.float64, 70, 90, 24, 130))
check(*made(torch.float64, 130, 70, 5), is_causal=True)
check(*made(torch.float32, 130, 70, 130, 64), is_causal=True)
"""
    assert compared(libraries, ATTENTION + code, **order, **capability) == 8 * 2 * 3 + 2 * 7 + 5


@pytest.mark.parametrize("capability", CAPABILITIES)
def test_attention_of_many_layouts_and_masks(libraries, capability):
    code = """
for dtype in (*HALVES, torch.float32):
    q, k, v = made(dtype, 20, 70, 24, lead=(2, 2))
    check(*[t.transpose(1, 2).contiguous().transpose(1, 2) for t in (q, k, v)], is_causal=True)
    check(q, k[:, :1].expand(2, 2, 70, 24), v[:1].expand(2, 2, 70, 24))
    check(*torch.randn(2, 50, 3, 2, 16).to(dtype).permute(2, 0, 3, 1, 4), is_causal=True)
    check(*[t[..., 1:17] for t in (q, k, v)])  # not aligned
    check(*[t[..., 8:24] for t in (q, k, v)])
    check(*[t.transpose(-1, -2).contiguous().transpose(-1, -2) for t in (q, k, v)])
    check(*made(dtype, 20, 30, 16, lead=(1, 2, 1, 2)), is_causal=True)
    seen = torch.rand(20, 70) > 0.5
    seen[4] = False
    seen[:, 5] = False
    check(q, k, v, seen)
    check(q, k, v, torch.rand(2, 1, 1, 70) > 0.3)
    check(q, k, v, torch.randn(2, 20, 70))
    check(q, k, v, scale=-0.3)
    check(q, k, v, scale=0.0, is_causal=True)
    check(*[2 * t for t in made(dtype, 70, 140, 16)], scale=1.0)  # weights of nearly 1
    far = torch.zeros(1, 1, 20, 70)
    far[..., :64] = -3e38 if dtype != torch.float16 else -6e4
    check(q, k, v, far)
for size in (64, 128):
    check(*made(torch.bfloat16, 90, 150, size), torch.randn(90, 150))
    check(*made(torch.float16, 0, 3, size), is_causal=True)
    check(*made(torch.float16, 3, 0, size))
q, k, v = made(torch.bfloat16, 9, 70, 16)
lowest = torch.zeros(9, 70)
lowest[3] = torch.finfo(torch.bfloat16).min  # this query sees all keys alike
same(lambda q, k, v, m: F.scaled_dot_product_attention(q, k, v, m), q, k, v, lowest.to(q.dtype), tol=2e-2)
leaves = [t.to("cuda").requires_grad_() for t in (q, k, v)]
y = F.scaled_dot_product_attention(*leaves, lowest.to("cuda"))
y[..., :3, :].float().sum().backward()
assert all(t.grad.isfinite().all() for t in leaves)
q, k, v = made(torch.bfloat16, 9, 9, 16)
k[0, 0, 3, 2] = float("nan")
check(q, k, v)
"""
    assert compared(libraries, ATTENTION + code, **capability) == 3 * 14 + 2 * 3 + 2


@pytest.mark.parametrize("capability", CAPABILITIES)
def test_attention_is_the_same_each_time(libraries, capability):
    code = """
q, k, v = [t.to("cuda").requires_grad_() for t in made(torch.float16, 130, 130, 64)]
def once():
    y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    return [t.cpu() for t in (y, *torch.autograd.grad(y.float().square().sum(), (q, k, v)))]
for a, b in zip(once(), once()):
    assert torch.equal(a, b)
    print("ok")
"""
    assert compared(libraries, ATTENTION + code, **capability) == 4


def test_half_precision_has_gradients(libraries):
    code = """
x = torch.randn(9, 16).half()
def f(t):
    t = t.detach().requires_grad_()
    y = torch.nn.functional.layer_norm(t, (16,)).gelu() if hasattr(t, "gelu") else torch.nn.functional.gelu(torch.nn.functional.layer_norm(t, (16,)))
    y.float().sum().backward()
    return y.detach(), t.grad
same(f, x, tol=1e-2)
"""
    assert compared(libraries, code) == 1


def test_large_models_step_in_few_launches(libraries):
    """40 parameters, of two dtypes, one of which has no elements."""
    code = """
def trained(dtype_of, device):
    torch.manual_seed(0)
    p = [torch.randn(7, i).to(dtype_of(i)).to(device).requires_grad_() for i in range(40)]
    o = torch.optim.AdamW(p, lr=0.1, amsgrad=True)
    for _ in range(3):
        sum((v.double() ** 2).sum() for v in p).backward()
        o.step()
        o.zero_grad()
    return [v.detach().cpu() for v in p]
def dtype_of(i): return torch.float64 if i % 3 else torch.float32
for a, b in zip(trained(dtype_of, "cpu"), trained(dtype_of, "cuda")):
    torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-6)
print("ok")
"""
    assert compared(libraries, code) == 1
