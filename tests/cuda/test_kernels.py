"""The kernels of CUDA, compiled for the host, compute what the CPU's do."""

from __future__ import annotations

import pytest

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
COMPARED = """
import itertools, taeda as torch
torch.manual_seed(0)
def same(f, *tensors, tol=1e-5):
    want, got = f(*tensors), f(*[t.to("cuda") for t in tensors])
    for w, g in zip(*[(r if isinstance(r, tuple) else (r,)) for r in (want, got)]):
        torch.testing.assert_close(g.cpu(), w, rtol=tol, atol=tol, equal_nan=True)
    print("ok")
"""


def compared(libraries, code: str, **more: str) -> int:
    done = run(libraries, "-c", COMPARED + code, **more)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout.count("ok")


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


def test_products_of_many_shapes(libraries):
    code = """
for m, k, n in [(1, 1, 1), (65, 17, 3), (3, 130, 70), (64, 64, 64), (2, 0, 3)]:
    same(lambda a, b: a @ b, torch.randn(m, k), torch.randn(k, n))
    same(lambda a, b: a.T @ b.T, torch.randn(k, m), torch.randn(n, k))
for dtype in (torch.float64, torch.complex64, torch.complex128, torch.float16, torch.bfloat16):
    a, b = torch.randn(9, 20).to(dtype), torch.randn(20, 70).to(dtype)
    same(lambda a, b: a @ b, a, b, tol=1e-2 if dtype.itemsize == 2 else 1e-5)
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
for a, b in itertools.product([torch.float32, torch.float16, torch.int64, torch.bool, torch.complex64], repeat=2):
    p, q = (3 * torch.rand(2, 100)).to(a), (3 * torch.rand(100)).to(b)
    same(lambda p, q: p * q, p, q, tol=1e-2)
    same(lambda p, q: p == q, p, q)
kinds = [torch.uint8, torch.int16, torch.uint16, torch.uint64, torch.bfloat16, torch.float8_e5m2,
         torch.float8_e4m3fn, torch.float64, torch.complex128]
for a, b in itertools.product(kinds, repeat=2):
    v = (100 * torch.rand(3, 50)).to(a)
    same(lambda t: t.to(b).double() if not b.is_complex else t.to(b), v)
same(lambda t: torch.where(t > 0, t, 7.0), x)
same(lambda t: t.clone().mul_(3).sub_(1), x.half(), tol=1e-2)
same(lambda a, b: a // b, torch.randint(-9, 9, (100,)), torch.randint(1, 5, (100,)))
"""
    assert compared(libraries, code) == 5 + 50 + 81 + 3


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


GRADIENTS = """
F = torch.nn.functional
def gradients(f, *shapes):
    leaves = [torch.randn(s) for s in shapes]
    def both(*t):
        t = [v.detach().requires_grad_() for v in t]
        y = f(*t)
        (y * y.detach().cos()).sum().backward()
        return (y.detach(), *[v.grad for v in t])
    same(both, *leaves, tol=1e-4)
"""


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


@pytest.mark.parametrize("order", [{}, {"TAEDA_SHIM_REVERSED": "1"}], ids=["", "reversed"])
def test_attention_of_many_shapes(libraries, order):
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
check(*made(torch.float64, 70, 90, 24, 130))
check(*made(torch.float64, 130, 70, 5), is_causal=True)
check(*made(torch.float32, 130, 70, 130, 64), is_causal=True)
"""
    assert compared(libraries, ATTENTION + code, **order) == 8 * 2 * 3 + 2 * 7 + 4


def test_attention_of_many_layouts_and_masks(libraries):
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
    assert compared(libraries, ATTENTION + code) == 3 * 14 + 2 * 3 + 2


def test_attention_is_the_same_each_time(libraries):
    code = """
q, k, v = [t.to("cuda").requires_grad_() for t in made(torch.float16, 130, 130, 64)]
def once():
    y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    return [t.cpu() for t in (y, *torch.autograd.grad(y.float().square().sum(), (q, k, v)))]
for a, b in zip(once(), once()):
    assert torch.equal(a, b)
    print("ok")
"""
    assert compared(libraries, ATTENTION + code) == 4


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
