"""Products of matrices, convolutions and attention: sums of products.

The scale is what the same sum gives of the factors' magnitudes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.accuracy.cases.normalization import softmax
from benchmarks.accuracy.cases.reductions import ALL, REAL, Make
from benchmarks.accuracy.table import Case, add, beside
from benchmarks.accuracy.ulps import Array

COMPLEX = ("complex64", "complex128")


def arrays(*shapes: tuple[int, ...], complex_: bool = False, low: float | None = None) -> Make:
    def make(rng: np.random.Generator, n: int) -> tuple[Array, ...]:
        made = [rng.normal(size=shape) for shape in shapes]
        if low is not None:  # magnitudes over many powers of 2
            made = [x * np.exp2(rng.uniform(low, -low, x.shape)) for x in made]
        if complex_:
            made = [x + 1j * rng.normal(size=x.shape) for x in made]
        return tuple(made)

    return make


def bilinear(f: Callable[..., Array]) -> Callable[..., tuple[Array, Array]]:
    return lambda a, b: (f(a, b), f(np.abs(a), np.abs(b)))


def rows(
    family: str,
    title: str,
    inputs: Make,
    run: Callable[..., Any],
    reference: Callable[..., Any],
    dtypes: tuple[str, ...] = REAL,
    scaled: bool = True,
) -> None:
    for dtype in dtypes:
        add(Case(family, title, dtype, inputs, run, beside(dtype, reference, scaled)))


# ---- matrices

MATRICES = "matrix products"


def product(
    title: str,
    a: tuple[int, ...],
    b: tuple[int, ...],
    run: Callable[..., Any] | None = None,
    dtypes: tuple[str, ...] = REAL,
    **options: Any,
) -> None:
    rows(
        MATRICES,
        title,
        arrays(a, b, **options),
        run or (lambda fw, x, y: x @ y),
        bilinear(np.matmul),
        dtypes,
    )


product("8 x 8 by 8 x 8", (8, 8), (8, 8), dtypes=ALL)
product("100 x 200 by 200 x 120", (100, 200), (200, 120), dtypes=ALL)
product(
    "100 x 200 by 200 x 120, transposed",
    (100, 200),
    (200, 120),
    lambda fw, x, y: (y.t().contiguous() @ x.t().contiguous()).t(),
)
product("32 x 4096 by 4096 x 32", (32, 4096), (4096, 32), dtypes=ALL)
product("100 x 200 by 200 x 120, 2^-20 to 2^20", (100, 200), (200, 120), low=-20)
product("matrix by vector, 100 x 1000", (100, 1000), (1000,), dtypes=ALL)
product("vector by matrix, 1000 x 100", (1000,), (1000, 100))
product("dot of 10000", (10000,), (10000,), lambda fw, x, y: x.dot(y), ALL)
product("16 of 30 x 40 by 40 x 20", (16, 30, 40), (16, 40, 20), dtypes=ALL)
product("60 x 100 by 100 x 50, complex", (60, 100), (100, 50), dtypes=COMPLEX, complex_=True)
rows(
    MATRICES,
    "linear, 64 x 300 to 100",
    arrays((64, 300), (100, 300), (100,)),
    lambda fw, x, w, b: fw.nn.functional.linear(x, w, b),
    lambda x, w, b: (x @ w.T + b, np.abs(x) @ np.abs(w).T + np.abs(b)),
    ALL,
)
rows(
    MATRICES,
    "einsum bij,bkj->bik",
    arrays((6, 20, 50), (6, 30, 50)),
    lambda fw, x, y: fw.einsum("bij,bkj->bik", x, y),
    bilinear(lambda x, y: x @ y.transpose(0, 2, 1)),
)


def sparse_product(framework: Any, x: Any, y: Any) -> Any:
    return x.to_sparse_csr() @ y


def csr_inputs(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
    return rng.normal(size=(200, 300)) * (rng.random((200, 300)) < 0.1), rng.normal(size=(300, 40))


rows(MATRICES, "CSR by dense, 30 a row", csr_inputs, sparse_product, bilinear(np.matmul))
rows(
    MATRICES,
    "CSR by vector, 30 a row",
    lambda rng, n: (csr_inputs(rng, n)[0], rng.normal(size=300)),
    sparse_product,
    bilinear(np.matmul),
)

# ---- convolutions


def convolve(x: Array, w: Array, stride: int, padding: int, groups: int) -> Array:
    """By the definition, a position of the kernel at a time."""
    x = np.pad(x, [(0, 0), (0, 0), (padding, padding), (padding, padding)])
    batch, out, kh, kw = x.shape[0], *(w.shape[i] for i in (0, 2, 3))
    oh, ow = (x.shape[2] - kh) // stride + 1, (x.shape[3] - kw) // stride + 1
    y = np.zeros((batch, groups, out // groups, oh, ow), x.dtype)
    split = x.reshape(batch, groups, -1, *x.shape[2:])
    kernels = w.reshape(groups, out // groups, -1, kh, kw)
    for i in range(kh):
        for j in range(kw):
            part = split[..., i : i + stride * oh : stride, j : j + stride * ow : stride]
            y += np.einsum("bgihw,goi->bgohw", part, kernels[..., i, j])
    return y.reshape(batch, out, oh, ow)


def convolve_back(
    g: Array, w: Array, stride: int, padding: int, groups: int, size: tuple[int, ...]
) -> Array:
    """The gradient of the input, of the shape `size`."""
    batch, out, kh, kw = g.shape[0], *(w.shape[i] for i in (0, 2, 3))
    gx = np.zeros(
        (batch, groups, size[1] // groups, size[2] + 2 * padding, size[3] + 2 * padding), g.dtype
    )
    split = g.reshape(batch, groups, out // groups, *g.shape[2:])
    kernels = w.reshape(groups, out // groups, -1, kh, kw)
    oh, ow = g.shape[2:]
    for i in range(kh):
        for j in range(kw):
            part = np.einsum("bgohw,goi->bgihw", split, kernels[..., i, j])
            gx[..., i : i + stride * oh : stride, j : j + stride * ow : stride] += part
    gx = gx.reshape(batch, size[1], *gx.shape[3:])
    return gx[:, :, padding : padding + size[2], padding : padding + size[3]]


def convolve_weight(
    x: Array, g: Array, stride: int, padding: int, groups: int, size: tuple[int, ...]
) -> Array:
    """The gradient of the weight, of the shape `size`."""
    x = np.pad(x, [(0, 0), (0, 0), (padding, padding), (padding, padding)])
    batch, (oh, ow) = x.shape[0], g.shape[2:]
    split = x.reshape(batch, groups, -1, *x.shape[2:])
    grads = g.reshape(batch, groups, -1, oh, ow)
    gw = np.zeros((groups, size[0] // groups, size[1], *size[2:]), x.dtype)
    for i in range(size[2]):
        for j in range(size[3]):
            part = split[..., i : i + stride * oh : stride, j : j + stride * ow : stride]
            gw[..., i, j] = np.einsum("bgihw,bgohw->goi", part, grads)
    return gw.reshape(size)


class Forced:
    """A call with taeda's convolutions done by one algorithm; PyTorch's by its own choice."""

    def __init__(self, name: str, run: Callable[..., Any]) -> None:
        self.name, self.run = name, run

    def __call__(self, framework: Any, *args: Any) -> Any:
        force = getattr(framework._C, "_force_conv", None)
        if force is None:
            return self.run(framework, *args)
        force(self.name)
        try:
            return self.run(framework, *args)
        finally:
            force("")


def convolution(
    algorithm: str,
    x: tuple[int, ...],
    w: tuple[int, ...],
    stride: int = 1,
    padding: int = 1,
    groups: int = 1,
    dtypes: tuple[str, ...] = REAL,
    last: bool = False,
) -> None:
    out = tuple((x[i] + 2 * padding - w[i]) // stride + 1 for i in (2, 3))
    g = (x[0], w[0], *out)
    how: Any = (stride, padding, groups)

    def call(framework: Any, x: Any, w: Any) -> Any:
        if last:
            x = x.contiguous(memory_format=framework.channels_last)
        return framework.nn.functional.conv2d(x, w, None, stride, padding, 1, groups)

    def run_back(framework: Any, g: Any, w: Any) -> Any:
        leaf = framework.zeros(x, dtype=g.dtype).requires_grad_()
        call(framework, leaf, w).backward(g)
        return leaf.grad

    def run_weight(framework: Any, x: Any, g: Any) -> Any:
        leaf = framework.zeros(w, dtype=g.dtype).requires_grad_()
        call(framework, x, leaf).backward(g)
        return leaf.grad

    title = f"{algorithm}, {w[2]} x {w[3]}, {x[1]} to {w[0]} channels"
    title += f" in {groups} groups" if groups > 1 else ""
    title += f", stride {stride}" if stride > 1 else ""
    for name, inputs, run, reference in (
        ("", arrays(x, w), call, lambda a, b: convolve(a, b, *how)),
        (
            ", gradient of the input",
            arrays(g, w),
            run_back,
            lambda a, b: convolve_back(a, b, *how, x),
        ),
        (
            ", gradient of the weight",
            arrays(x, g),
            run_weight,
            lambda a, b: convolve_weight(a, b, *how, w),
        ),
    ):
        rows(
            "convolutions",
            title + name,
            inputs,
            Forced(algorithm, run),
            bilinear(reference),
            dtypes,
        )


SINGLE = ("float32",)
convolution("im2col", (2, 32, 14, 14), (32, 32, 3, 3))
convolution("im2col", (2, 3, 28, 28), (16, 3, 7, 7), 2, 3)
convolution("nhwc", (2, 32, 14, 14), (32, 32, 3, 3), last=True)
convolution("nhwc", (2, 64, 14, 14), (48, 64, 1, 1), padding=0)
convolution("winograd", (2, 32, 14, 14), (32, 32, 3, 3), dtypes=SINGLE)
convolution("depthwise", (2, 32, 14, 14), (32, 1, 3, 3), groups=32)
convolution("nhwc", (2, 32, 14, 14), (32, 1, 3, 3), groups=32, last=True)
rows(
    "convolutions",
    "conv2d, 3 x 3, 32 to 32 channels",
    arrays((2, 32, 14, 14), (32, 32, 3, 3)),
    lambda fw, x, w: fw.nn.functional.conv2d(x, w, padding=1),
    bilinear(lambda x, w: convolve(x, w, 1, 1, 1)),
    ("bfloat16", "float16"),
)
rows(
    "convolutions",
    "conv1d, 5, 16 to 24 channels",
    arrays((4, 16, 60), (24, 16, 5)),
    lambda fw, x, w: fw.nn.functional.conv1d(x, w),
    bilinear(lambda x, w: convolve(x[:, :, None], w[:, :, None], 1, 0, 1)[:, :, 0]),
)
rows(
    "convolutions",
    "conv_transpose2d, 3 x 3, 24 to 16 channels",
    arrays((2, 24, 9, 9), (24, 16, 3, 3)),
    lambda fw, x, w: fw.nn.functional.conv_transpose2d(x, w, stride=2),
    bilinear(lambda x, w: convolve_back(x, w, 2, 0, 1, (2, 16, 19, 19))),
)

# ---- attention


def attention(q: Array, k: Array, v: Array, causal: bool = False) -> tuple[Array, Array]:
    """The scale is the average of the values' magnitudes, and what the scores' rounding moves it by."""
    q, k, v = (x.astype(np.longdouble) for x in (q, k, v))
    root = np.sqrt(np.longdouble(q.shape[-1]))
    scores = q @ k.swapaxes(-1, -2) / root
    size = np.abs(q) @ np.abs(k).swapaxes(-1, -2) / root
    if causal:
        scores = np.where(np.tril(np.ones(scores.shape[-2:], bool)), scores, -np.inf)
    p = softmax(-1)(scores)
    return p @ v, (p * (1 + size)) @ np.abs(v)


def attend(framework: Any, q: Any, k: Any, v: Any) -> Any:
    return framework.nn.functional.scaled_dot_product_attention(q, k, v)


def attend_causally(framework: Any, q: Any, k: Any, v: Any) -> Any:
    return framework.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)


def attention_gradients(q: Array, k: Array, v: Array, g: Array) -> tuple[Array, ...]:
    q, k, v, g = (x.astype(np.longdouble) for x in (q, k, v, g))
    root = np.sqrt(np.longdouble(q.shape[-1]))

    def turned(x: Array) -> Array:
        return x.swapaxes(-1, -2)

    p = softmax(-1)(q @ turned(k) / root)
    gp = g @ turned(v)
    gs = p * (gp - (gp * p).sum(-1, keepdims=True)) / root
    size = np.abs(g) @ turned(np.abs(v))
    scale = p * (size + (size * p).sum(-1, keepdims=True)) / root
    scale = scale * (1 + np.abs(q) @ turned(np.abs(k)) / root)
    return (
        gs @ k,
        scale @ np.abs(k),
        turned(gs) @ q,
        turned(scale) @ np.abs(q),
        turned(p) @ g,
        turned(p * (1 + np.abs(q) @ turned(np.abs(k)) / root)) @ np.abs(g),
    )


def run_attention_gradients(framework: Any, q: Any, k: Any, v: Any, g: Any) -> Any:
    leaves = [x.clone().requires_grad_() for x in (q, k, v)]
    attend(framework, *leaves).backward(g)
    return tuple(leaf.grad for leaf in leaves)


HEADS = (2, 4, 60, 32)
rows("attention", "2 x 4 heads of 60 x 32", arrays(HEADS, HEADS, HEADS), attend, attention, ALL)
rows(
    "attention",
    "2 x 4 heads of 60 x 32, causal",
    arrays(HEADS, HEADS, HEADS),
    attend_causally,
    lambda q, k, v: attention(q, k, v, True),
)
rows(
    "attention",
    "2 x 4 heads of 60 x 32, gradients",
    arrays(HEADS, HEADS, HEADS, HEADS),
    run_attention_gradients,
    attention_gradients,
)
