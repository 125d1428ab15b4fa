"""Large work that waits for arithmetic: products, convolutions, attention."""

from __future__ import annotations

import math

from benchmarks.cases.table import case


def product(name, title, left, right, dtype="float32", bytes=0):
    def prepare(fw):
        a, b = fw.randn(*left).to(getattr(fw, dtype)), fw.randn(*right).to(getattr(fw, dtype))
        return lambda: a @ b

    prepare.__name__ = name
    scale = 2 if dtype == "float64" else 1
    case("compute", title, bytes=bytes, flops=scale * 2 * math.prod(left) * right[-1])(prepare)


product("mm_32", "32x32 @ 32x32", (32, 32), (32, 32))
product("mm_128", "128x128 @ 128x128", (128, 128), (128, 128))
product("mm_512", "512x512 @ 512x512", (512, 512), (512, 512))
product("mm_1024", "1024x1024 @ 1024x1024", (1024, 1024), (1024, 1024))
product("mm_row", "(1, 1024) @ (1024, 1024)", (1, 1024), (1024, 1024), bytes=4 * 1024 * 1024)
product("mm_64_rows", "(64, 784) @ (784, 256)", (64, 784), (784, 256))
product("bmm_16", "256 of 16x16 @ 16x16", (256, 16, 16), (256, 16, 16))
product("bmm_64", "64 of 64x64 @ 64x64", (64, 64, 64), (64, 64, 64))
product("mm_bf16", "512x512, bfloat16", (512, 512), (512, 512), "bfloat16")
product("mm_double", "512x512, float64", (512, 512), (512, 512), "float64")


def sparse_product(name, title, layout):
    def prepare(fw):
        places = fw.randint(20000, (2, 160000))
        a = fw.sparse_coo_tensor(places, fw.randn(160000), (20000, 20000)).coalesce()
        a, b = a.to_sparse(layout=getattr(fw, layout)), fw.randn(20000, 64)
        return lambda: fw.sparse.mm(a, b)

    prepare.__name__ = name
    flops, least = 2 * 160_000 * 64, 2 * 20_000 * 64 * 4 + 160_000 * 12
    case("compute", title, bytes=least, flops=flops)(prepare)


sparse_product("sparse_mm_coo", "20000 rows of 8 elements @ (20000, 64), COO", "sparse_coo")
sparse_product("sparse_mm_csr", "20000 rows of 8 elements @ (20000, 64), CSR", "sparse_csr")


@case("compute", "Linear(512, 2048) on (256, 512), with backward", flops=6 * 256 * 512 * 2048)
def linear_backward(fw):
    layer, x = fw.nn.Linear(512, 2048), fw.randn(256, 512, requires_grad=True)
    g = fw.randn(256, 2048)

    def run():
        layer.zero_grad()
        x.grad = None
        layer(x).backward(g)

    return run


def convolution(name, title, shape, out_channels, kernel, backward=False, **options):
    """The gradients of the data and of the weight each cost what the forward pass does."""
    padding, stride = options.get("padding", 0), options.get("stride", 1)
    places = math.prod((n + 2 * padding - kernel) // stride + 1 for n in shape[2:])
    sums = shape[0] * out_channels * places
    flops = 2 * sums * shape[1] // options.get("groups", 1) * kernel**2 * (3 if backward else 1)

    def prepare(fw):
        layer = fw.nn.Conv2d(shape[1], out_channels, kernel, **options)
        x = fw.randn(*shape)
        if not backward:

            def run():
                with fw.no_grad():
                    return layer(x)

            return run
        x.requires_grad_(True)
        g = fw.randn(*layer(x).shape)

        def run():
            layer.zero_grad()
            x.grad = None
            layer(x).backward(g)

        return run

    prepare.__name__ = name
    case("compute", title, flops=flops)(prepare)


for backward in (False, True):
    end, mark = (", with backward", "_backward") if backward else ("", "")
    convolution(
        "conv_3x3" + mark,
        "conv 3x3, (8, 64, 56, 56) to 64" + end,
        (8, 64, 56, 56),
        64,
        3,
        backward,
        padding=1,
    )
    convolution(
        "conv_deep" + mark,
        "conv 3x3, (8, 256, 14, 14) to 256" + end,
        (8, 256, 14, 14),
        256,
        3,
        backward,
        padding=1,
    )
    convolution(
        "conv_1x1" + mark,
        "conv 1x1, (8, 256, 28, 28) to 64" + end,
        (8, 256, 28, 28),
        64,
        1,
        backward,
    )
    convolution(
        "conv_stem" + mark,
        "conv 7x7 stride 2, (4, 3, 224, 224) to 64" + end,
        (4, 3, 224, 224),
        64,
        7,
        backward,
        stride=2,
        padding=3,
    )
    convolution(
        "conv_depthwise" + mark,
        "depthwise conv 3x3, (8, 128, 56, 56)" + end,
        (8, 128, 56, 56),
        128,
        3,
        backward,
        padding=1,
        groups=128,
    )
    convolution(
        "conv_strided" + mark,
        "conv 3x3 stride 2, (8, 64, 56, 56) to 128" + end,
        (8, 64, 56, 56),
        128,
        3,
        backward,
        stride=2,
        padding=1,
    )
    convolution(
        "conv_small" + mark,
        "conv 3x3, (32, 1, 28, 28) to 32" + end,
        (32, 1, 28, 28),
        32,
        3,
        backward,
        padding=1,
    )


def attention(name, title, shape, causal, backward):
    """Two products forward and five backward (the scores are made again), of the pairs in use."""
    *batch, n, width = shape
    pairs = math.prod(batch) * (n * (n + 1) // 2 if causal else n * n)
    flops = 2 * pairs * width * (7 if backward else 2)

    def prepare(fw):
        q, k, v = (fw.randn(*shape, requires_grad=backward) for _ in range(3))
        g = fw.randn(*shape)
        sdpa = fw.nn.functional.scaled_dot_product_attention

        def run():
            out = sdpa(q, k, v, is_causal=causal)
            if backward:
                q.grad = k.grad = v.grad = None
                out.backward(g)

        return run

    prepare.__name__ = name
    case("compute", title, flops=flops)(prepare)


attention("sdpa", "attention, (8, 8, 128, 64)", (8, 8, 128, 64), False, False)
attention("sdpa_causal", "causal attention, (8, 8, 128, 64)", (8, 8, 128, 64), True, False)
attention(
    "sdpa_causal_backward",
    "causal attention, (8, 8, 128, 64), with backward",
    (8, 8, 128, 64),
    True,
    True,
)
attention("sdpa_long", "causal attention, (1, 8, 1024, 64)", (1, 8, 1024, 64), True, False)
attention(
    "sdpa_long_backward",
    "causal attention, (1, 8, 1024, 64), with backward",
    (1, 8, 1024, 64),
    True,
    True,
)


# Forward a product with each weight; backward one for each weight's gradient and the hidden state's.
@case(
    "compute",
    "LSTM(128, 128), 50 steps of 16, with backward",
    flops=5 * 2 * 50 * 16 * 128 * 512,
)
def lstm(fw):
    layer, x = fw.nn.LSTM(128, 128), fw.randn(50, 16, 128)

    def run():
        layer.zero_grad()
        layer(x)[0].sum().backward()

    return run


@case(
    "compute",
    "linalg.solve, 512x512, 64 right sides",
    flops=2 * 512**3 / 3 + 2 * 512**2 * 64,
)
def linalg_solve(fw):
    a, b = fw.randn(512, 512) + 10 * fw.eye(512), fw.randn(512, 64)
    return lambda: fw.linalg.solve(a, b)


@case("compute", "linalg.cholesky of 1,000 matrices 4x4", flops=1000 * 4**3 / 3)
def linalg_cholesky(fw):
    a = fw.randn(1000, 4, 4)
    a = a @ a.mT + fw.eye(4)
    return lambda: fw.linalg.cholesky(a)


@case("compute", "linalg.svd of 64 matrices 32x32")
def linalg_svd(fw):
    a = fw.randn(64, 32, 32)
    return lambda: fw.linalg.svd(a)


@case("compute", "linalg.eigh, 256x256")
def linalg_eigh(fw):
    a = fw.randn(256, 256)
    a = a + a.mT
    return lambda: fw.linalg.eigh(a)
