"""Programs that compute the same on the CPU and with CUDA's kernels."""

from __future__ import annotations

from pathlib import Path

from tests.cuda.shim import run

# same(f, tensors...) on both devices prints "ok".
COMPARED = """
import itertools, taeda as torch
torch.manual_seed(0)
torch.backends.cudnn.allow_tf32 = False
def same(f, *tensors, tol=1e-5):
    want, got = f(*tensors), f(*[t.to("cuda") for t in tensors])
    for w, g in zip(*[(r if isinstance(r, tuple) else (r,)) for r in (want, got)]):
        torch.testing.assert_close(g.cpu(), w, rtol=tol, atol=tol, equal_nan=True)
    print("ok")
"""

# gradients(f, shapes...): the same of f and of its gradients.
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


def compared(libraries: Path, code: str, **more: str) -> int:
    """Run such a program; how often it printed "ok"."""
    done = run(libraries, "-c", COMPARED + code, **more)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout.count("ok")
