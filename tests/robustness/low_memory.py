"""Makes every allocation of many calls fail, one after another: see test_low_memory.py.

`python -m tests.robustness.low_memory NAME...` with `failing_memory.c` loaded before.
"""

import ctypes
import faulthandler
import io
import sys

import taeda
import taeda.nn.functional as F
from taeda import nn

r = taeda.randn
LARGE = 300


def calls():
    """Name -> a function of tensors, and those tensors, which it leaves as they are."""
    a, b, v = r(LARGE, LARGE), r(LARGE, LARGE), r(LARGE)
    spd = a @ a.T + LARGE * taeda.eye(LARGE)
    c, wide = r(200, 200, dtype=taeda.complex64), r(40_000)
    image, kernel = r(2, 8, 30, 30), r(16, 8, 3, 3)
    index, q = taeda.randint(0, LARGE, (LARGE,)), r(2, 4, 64, 32)
    file = io.BytesIO()
    taeda.save({"a": a, "v": [v]}, file)
    linalg = taeda.linalg
    return {
        "empty": (lambda x: taeda.empty(3 << 20), [v]),
        "zeros": (lambda x: taeda.zeros(3 << 20), [v]),
        "clone": (lambda x: x.clone(), [a]),
        "add": (lambda x, y: x + y, [a, b]),
        "add broadcast": (lambda x, y: x + y, [a, v]),
        "to": (lambda x: x.double(), [a]),
        "transpose": (lambda x: x.T.contiguous(), [a]),
        "exp": (lambda x: x.exp(), [wide]),
        "where": (lambda x, y: taeda.where(x > 0, x, y), [a, b]),
        "sum": (lambda x: x.sum(), [a]),
        "sum rows": (lambda x: x.sum(1), [a]),
        "mean columns": (lambda x: x.mean(0), [a]),
        "cumsum": (lambda x: x.cumsum(0), [a]),
        "max": (lambda x: x.max(1), [a]),
        "sort": (lambda x: x.sort(), [wide]),
        "argsort": (lambda x: x.argsort(0), [a]),
        "topk": (lambda x: x.topk(5), [a]),
        "unique": (lambda x: x.unique(), [index]),
        "nonzero": (lambda x: (x > 0).nonzero(), [a]),
        "index": (lambda x, i: x[i], [a, index]),
        "mask": (lambda x: x[x > 0], [a]),
        "gather": (lambda x, i: x.gather(0, i[None]), [a, index]),
        "index_add": (lambda x, i, y: x.index_add(0, i, y), [a, index, b]),
        "scatter": (lambda x, i, y: x.scatter(0, i[None], y), [a, index, b]),
        "cat": (lambda x, y: taeda.cat([x, y]), [a, b]),
        "stack": (lambda x, y: taeda.stack([x, y]), [a, b]),
        "split": (lambda x: x.split(3), [a]),
        "pad": (lambda x: F.pad(x, (1, 2, 3, 4)), [a]),
        "mm": (lambda x, y: x @ y, [a, b]),
        "mm double": (lambda x, y: x.double() @ y.double(), [a, b]),
        "mm half": (lambda x, y: x.bfloat16() @ y.bfloat16(), [a, b]),
        "mm complex": (lambda x: x @ x, [c]),
        "mv": (lambda x, y: x @ y, [a, v]),
        "bmm": (lambda x: x @ x.mT, [q]),
        "einsum": (lambda x, y: taeda.einsum("ij,jk->ki", x, y), [a, b]),
        "inv": (linalg.inv, [a]),
        "lu": (linalg.lu_factor, [a]),
        "qr": (linalg.qr, [a]),
        "svd": (linalg.svd, [a[:90, :90]]),
        "eigh": (linalg.eigh, [spd[:90, :90]]),
        "eig": (linalg.eig, [a[:40, :40]]),
        "lstsq": (lambda x, y: linalg.lstsq(x, y), [a, b]),
        "cholesky": (linalg.cholesky, [spd]),
        "solve": (linalg.solve, [spd, b]),
        "conv2d": (lambda x, w: F.conv2d(x, w), [image, kernel]),
        "conv2d strided": (lambda x, w: F.conv2d(x, w, stride=2, padding=1), [image, kernel]),
        "conv_transpose2d": (lambda x, w: F.conv_transpose2d(x, w[:8]), [image, kernel]),
        "max_pool2d": (lambda x: F.max_pool2d(x, 2), [image]),
        "batch_norm": (lambda x: F.batch_norm(x, None, None, training=True), [image]),
        "layer_norm": (lambda x: F.layer_norm(x, (LARGE,)), [a]),
        "softmax": (lambda x: F.softmax(x, 0), [a]),
        "attention": (lambda x: F.scaled_dot_product_attention(x, x, x), [q]),
        "cross_entropy": (F.cross_entropy, [a, index]),
        "interpolate": (lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"), [image]),
        "embedding": (lambda i, w: F.embedding(i, w), [index, a]),
        "fft": (taeda.fft.fft, [a]),
        "rfft of a prime": (lambda x: taeda.fft.rfft(x[:293]), [v]),
        "randn": (lambda x: taeda.randn(100_000), [v]),
        "randperm": (lambda x: taeda.randperm(100_000), [v]),
        "multinomial": (lambda x: x.abs().multinomial(5), [a]),
        "lstm": (nn.LSTM(30, 20), [r(5, 3, 30)]),
        "tolist": (lambda x: x.tolist(), [a]),
        "repr": (repr, [a]),
        "tensor": (lambda x: taeda.tensor([[1.0, 2.0]] * 500), [v]),
        "save": (lambda x: taeda.save(x, io.BytesIO()), [a]),
        "load": (lambda x: taeda.load(io.BytesIO(file.getvalue())), [v]),
        "gradients": (gradients, [a, b]),
        "second gradients": (second_gradients, [a[:50, :50]]),
        "sparse": (lambda x: x.relu().to_sparse() @ x, [a]),
    }


def gradients(x, y):
    x = x.detach().requires_grad_()
    (taeda.tanh(x @ y).softmax(1) * y).sum().backward()
    return x.grad


def second_gradients(x):
    x = x.detach().requires_grad_()
    (g,) = taeda.autograd.grad((x @ x).sin().sum(), x, create_graph=True)
    return taeda.autograd.grad(g.square().sum(), x)


class Step:
    """A training step; one that fails can be made again."""

    def __init__(self):
        self.model = nn.Sequential(
            nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 196, 10)
        )
        self.optimizer = taeda.optim.AdamW(self.model.parameters())
        self.x, self.y = r(8, 3, 16, 16), taeda.randint(0, 10, (8,))

    def __call__(self, *unused):
        self.optimizer.zero_grad()
        F.cross_entropy(self.model(self.x), self.y).backward()
        self.optimizer.step()


def fail_each(name, call, args, library):
    """Every allocation of a call fails in turn. Returns how many that were."""
    before = [a.clone() for a in args]
    for n in range(1, 100_000):
        taeda._C.cpu_empty_cache()
        library.fail_allocation(n)
        error = None
        try:
            call(*args)
        except (MemoryError, RuntimeError) as e:
            error = e
        finally:
            count = library.fail_allocation(0)
        if isinstance(error, RuntimeError):
            print(f"{name} {n}: {type(error).__name__} {error}", flush=True)
        for a, b in zip(args, before, strict=True):
            if not taeda.equal(a, b):
                print(f"{name} {n}: an argument changed", flush=True)
        if count < n:
            return n - 1
    return None


def main(names, every=1):
    taeda.set_num_threads(2)
    faulthandler.enable()
    library = ctypes.CDLL(None)
    cases = {**calls(), "a training step": (Step(), [])}
    total = 0
    for name in names or cases:
        print(f"{name}:", file=sys.stderr, flush=True)  # the last one, after a crash
        total += fail_each(name, *cases[name], library)
        cases[name][0](*cases[name][1])  # and works afterwards
    print("allocations:", total, "calls:", len(names or cases))


if __name__ == "__main__":
    main(sys.argv[1:])
