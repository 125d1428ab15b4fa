"""Resizing, sampling, windows, padding, distances and lists on CUDA as on the CPU."""

from __future__ import annotations

from tests.cuda.compare import GRADIENTS, compared


def test_resizing_of_many_shapes(libraries):
    code = """
modes = [("nearest", {}), ("nearest-exact", {}), ("linear", {}), ("linear", {"align_corners": True}), ("area", {})]
planes = [("bicubic", {}), ("bicubic", {"align_corners": True}), ("bilinear", {"antialias": True}), ("bicubic", {"antialias": True})]
sizes = {1: [(1,), (5,), (40,)], 2: [(1, 3), (30, 9), (7, 40), (13, 17)], 3: [(2, 3, 9), (9, 5, 4)]}
for dims, outs in sizes.items():
    for size in outs:
        for mode, how in modes + planes * (dims == 2):
            mode = mode if mode != "linear" else ("linear", "bilinear", "trilinear")[dims - 1]
            gradients(lambda x: F.interpolate(x, size, mode=mode, **how), (2, 3, *[13, 17, 6][:dims]))
for how in ({"scale_factor": 2.5}, {"scale_factor": (0.4, 3.1), "recompute_scale_factor": True}):
    gradients(lambda x: F.interpolate(x, mode="bilinear", **how), (2, 3, 9, 12))
last = lambda x: x.to(memory_format=torch.channels_last)
gradients(lambda x: F.interpolate(last(x), (9, 4), mode="bilinear"), (2, 5, 4, 7))
gradients(lambda x: F.interpolate(last(x), scale_factor=0.3, mode="bicubic", antialias=True), (2, 5, 14, 17))
for dtype in (torch.float16, torch.bfloat16, torch.float64):
    same(lambda x: F.interpolate(x, (5, 9), mode="bilinear"), torch.randn(1, 2, 8, 7).to(dtype), tol=1e-2)
same(lambda x: F.interpolate(x, scale_factor=3), torch.randint(0, 99, (1, 2, 8, 7), dtype=torch.uint8))
same(lambda x: F.interpolate(x, scale_factor=2), torch.zeros(0, 2, 8, 7))
"""
    count = 3 * 5 + 4 * 9 + 2 * 5 + 2 + 2 + 3 + 2
    assert compared(libraries, GRADIENTS + code) == count


def test_sampling_by_grids(libraries):
    code = """
def sampled(mode, outside, corners, shape, points):
    dims = len(shape) - 2
    gradients(lambda x, g: F.grid_sample(x, 1.5 * g.tanh(), mode, outside, corners), shape, (shape[0], *points, dims))
for outside in ("zeros", "border", "reflection"):
    for corners in (False, True):
        for mode in ("bilinear", "nearest", "bicubic"):
            sampled(mode, outside, corners, (2, 3, 7, 9), (5, 40))
        for mode in ("bilinear", "nearest"):
            sampled(mode, outside, corners, (2, 2, 3, 7, 4), (2, 5, 9))
sampled("bilinear", "zeros", False, (3, 9, 2, 2), (30, 30))  # many points for each element
sampled("bilinear", "border", False, (1, 1, 40, 50), (1, 1))
sampled("bilinear", "reflection", True, (1, 1, 1, 1), (2, 2))
bad = torch.randn(1, 4, 4, 2)
bad[0, 0, 0, 0], bad[0, 1, 1, 1], bad[0, 2] = float("nan"), float("inf"), -1e30
same(lambda x, g: F.grid_sample(x, g, "bilinear", "zeros", False), torch.randn(1, 2, 5, 5), bad)
same(lambda t: F.affine_grid(t, (2, 1, 4, 5), False), torch.randn(2, 2, 3))
x, g = torch.randn(2, 3, 20, 20, device="cuda"), torch.randn(2, 50, 9, 2, device="cuda").mul_(0.1)
def once():
    leaf = x.clone().requires_grad_()
    F.grid_sample(leaf, g, align_corners=False).cos().sum().backward()
    return leaf.grad.cpu()
assert torch.equal(once(), once())
print("ok")
"""
    assert compared(libraries, GRADIENTS + code) == 3 * 2 * 5 + 3 + 2 + 1


def test_windows_and_padding(libraries):
    code = """
for window in [(3,), ((2, 3), 1, 1, 2), ((3, 2), (2, 1), (0, 1), (1, 3))]:
    gradients(lambda x: F.unfold(x, *window), (2, 3, 9, 10))
gradients(lambda x: F.fold(x, (7, 8), (3, 2), 1, 1, 2), (2, 3 * 6, 20))
same(lambda x: F.fold(x, (4, 5), 2), torch.randn(1, 4, 12).bfloat16(), tol=2e-2)
same(lambda x: F.fold(x, (4, 5), 2), torch.randn(1, 4, 12, dtype=torch.complex64))
same(lambda x: F.unfold(x, 2), torch.randn(1, 2, 4, 4, dtype=torch.float64))
for mode in ("reflect", "replicate", "circular"):
    gradients(lambda x: F.pad(x, (3, 2), mode), (2, 3, 5))
    gradients(lambda x: F.pad(x, (3, 2, 1, 4), mode), (2, 3, 6, 5))
    gradients(lambda x: F.pad(x, (1, 2, 1, 3, 2, 0), mode), (2, 3, 4, 5, 3))
    gradients(lambda x: F.pad(x, (-1, 2), mode), (3, 7))
    same(lambda x: F.pad(x, (1, 2), mode), torch.arange(12).view(3, 4))
    both = lambda x: torch.func.vjp(lambda x: F.pad(x, (3, 3), mode), x)[1](torch.ones(2, 10, device=x.device, dtype=x.dtype))
    same(both, torch.randn(2, 4).half())
gradients(lambda x: F.pad(x, (9, 9), "replicate"), (2, 1))
gradients(lambda x: F.pad(x, (1, 2), "constant", 3.0), (2, 4))
for dims, samples in ((2, (2, 3, 2)), (3, (2, 3, 3))):
    u = torch.rand(samples)
    pool = getattr(F, f"fractional_max_pool{dims}d")
    gradients(lambda x: pool(x, 2, output_size=[4, 3, 5][:dims], _random_samples=u.to(x.device)), (2, 3, *[9, 8, 7][:dims]))
"""
    assert compared(libraries, GRADIENTS + code) == 3 + 4 + 3 * 6 + 2 + 2


def test_distances_and_margins(libraries):
    code = """
for p in (0.0, 1.0, 2.0, 1.5, 3.0, float("inf")):
    for shape in [((20, 7), (35, 7)), ((2, 3, 9), (2, 40, 9)), ((1, 1), (1, 1))]:
        gradients(lambda a, b: torch.cdist(a, b, p), *shape)
    gradients(lambda a: F.pdist(a, p), (37, 5))
for how in ("use_mm_for_euclid_dist", "donot_use_mm_for_euclid_dist"):
    gradients(lambda a, b: torch.cdist(a, b, compute_mode=how), (2, 30, 40), (2, 27, 40))
near = torch.randn(30, 50)
same(lambda a, b: torch.cdist(a, b, compute_mode="use_mm_for_euclid_dist"), near, near + 1e-4 * torch.randn(30, 50), tol=1e-4)
gradients(lambda a, b: torch.linalg.cross(a, b, dim=1), (4, 3, 5), (4, 3, 5))
gradients(lambda a, b: torch.linalg.cross(a, b), (2, 1, 3), (1, 4, 3))
one, many = torch.randint(0, 9, (20,)), torch.randint(-1, 9, (20, 9))
w = torch.rand(9)
for reduction in ("mean", "sum", "none"):
    for p in (1, 2):
        gradients(lambda x: F.multi_margin_loss(x, one.to(x.device), p, 0.7, reduction=reduction), (20, 9))
        gradients(lambda x: F.multi_margin_loss(x, one.to(x.device), p, weight=w.to(x.device), reduction=reduction), (20, 9))
    gradients(lambda x: F.multilabel_margin_loss(x, many.to(x.device), reduction=reduction), (20, 9))
gradients(lambda x: F.multi_margin_loss(x, one[:3].to(x.device)), (3, 700))
"""
    assert compared(libraries, GRADIENTS + code) == 6 * 4 + 2 + 1 + 2 + 3 * 5 + 1


def test_lists_of_numbers(libraries):
    code = """
for n, r in [(1, 1), (7, 1), (7, 3), (5, 5), (40, 2), (9, 6)]:
    for again in (False, True):
        same(lambda x: torch.combinations(x, r, again), torch.arange(n))
counts = torch.randint(0, 4, (300,))
same(lambda c: torch.repeat_interleave(c), counts)
same(lambda c: torch.repeat_interleave(torch.arange(300, device=c.device), c), counts)
same(lambda c: torch.repeat_interleave(c), torch.zeros(4, dtype=torch.int64))
on = lambda f, *a: same(lambda t: f(*a, device=t.device), torch.zeros(1))
for rows, columns in [(3, 4), (4, 3), (1, 9), (9, 1), (50, 40), (0, 3)]:
    for diagonal in (-60, -4, -1, 0, 1, 2, 9, 60):
        on(torch.tril_indices, rows, columns, diagonal)
        on(torch.triu_indices, rows, columns, diagonal)
for p in (1.0, 2.0, 2.5, float("inf")):
    def shortened(i, w):
        w = w.clone()
        return F.embedding(i, w, max_norm=0.9, norm_type=p), w
    same(shortened, torch.randint(0, 30, (4, 50)), torch.randn(30, 70))
    same(shortened, torch.zeros(5, dtype=torch.int64), torch.ones(3, 2))
"""
    assert compared(libraries, GRADIENTS + code) == 12 + 3 + 6 * 8 * 2 + 8
