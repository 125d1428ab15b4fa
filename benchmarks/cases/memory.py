"""Large work that waits for memory: pointwise, reductions, copies, and what can be done in one pass."""

from __future__ import annotations

from benchmarks.cases.table import case


def pointwise(name, title, function, count=16_000_000, element_bytes=8):
    """A float32 read and one written for each element, unless element_bytes says otherwise."""

    def prepare(fw):
        x = fw.rand(count) + 0.5
        return lambda: function(fw, x)

    prepare.__name__ = name
    case("memory", title, bytes=element_bytes * count)(prepare)


pointwise("exp_16m", "exp, 16M", lambda fw, x: fw.exp(x))
pointwise("tanh_16m", "tanh, 16M", lambda fw, x: fw.tanh(x))
pointwise("sigmoid_16m", "sigmoid, 16M", lambda fw, x: fw.sigmoid(x))
pointwise("erf_16m", "erf, 16M", lambda fw, x: fw.erf(x))
pointwise("log_16m", "log, 16M", lambda fw, x: fw.log(x))
pointwise("sin_16m", "sin, 16M", lambda fw, x: fw.sin(x))
pointwise("gelu_4m", "gelu, 4M", lambda fw, x: fw.nn.functional.gelu(x), 4_000_000)
pointwise("silu_4m", "silu, 4M", lambda fw, x: fw.nn.functional.silu(x), 4_000_000)
pointwise("relu_16m", "relu, 16M", lambda fw, x: fw.relu(x))
pointwise("sum_16m", "sum, 16M", lambda fw, x: x.sum(), element_bytes=4)
pointwise("dropout_4m", "dropout, 4M", lambda fw, x: fw.dropout(x, 0.1, True), 4_000_000)
pointwise("sort_1m", "sort, 1M", lambda fw, x: fw.sort(x), 1_000_000, 16)
pointwise("cumsum_4m", "cumsum, 4M", lambda fw, x: fw.cumsum(x, 0), 4_000_000)
pointwise("clone_16m", "clone, 16M", lambda fw, x: x.clone())
pointwise("to_bf16", "float32 to bfloat16, 16M", lambda fw, x: x.to(fw.bfloat16), element_bytes=6)


def square(name, title, function, n=4096, element_bytes=4):
    """One float32 read for each element, unless element_bytes says otherwise."""

    def prepare(fw):
        x = fw.randn(n, n)
        return lambda: function(fw, x)

    prepare.__name__ = name
    case("memory", title, bytes=element_bytes * n * n)(prepare)


square("max_rows", "max(dim=1), 4096x4096", lambda fw, x: x.max(dim=1))
square("max_columns", "max(dim=0), 4096x4096", lambda fw, x: x.max(dim=0))
square("var_rows", "var(dim=1), 4096x4096", lambda fw, x: x.var(dim=1))
square("var_columns", "var(dim=0), 4096x4096", lambda fw, x: x.var(dim=0))
square("sum_rows", "sum(dim=1), 4096x4096", lambda fw, x: x.sum(dim=1))
square("sum_columns", "sum(dim=0), 4096x4096", lambda fw, x: x.sum(dim=0))
square("argmax_rows", "argmax(dim=1), 4096x4096", lambda fw, x: x.argmax(dim=1))
square(
    "transposed_copy",
    "a transposed copy, 4096x4096",
    lambda fw, x: x.t().contiguous(),
    element_bytes=8,
)
square("softmax_rows", "softmax(dim=1), 4096x4096", lambda fw, x: fw.softmax(x, 1), element_bytes=8)
square(
    "log_softmax_rows",
    "log_softmax(dim=1), 4096x4096",
    lambda fw, x: fw.log_softmax(x, 1),
    element_bytes=8,
)
square("softmax_columns", "softmax(dim=0), 1024x1024", lambda fw, x: fw.softmax(x, 0), 1024, 8)
square("cat_rows", "cat of two, 2048x2048", lambda fw, x: fw.cat([x, x]), 2048, 16)
square("topk_rows", "topk(10), 1024x1024", lambda fw, x: fw.topk(x, 10), 1024)
square(
    "layer_norm_rows",
    "layer_norm, 4096x4096",
    lambda fw, x: fw.layer_norm(x, (4096,)),
    element_bytes=8,
)


@case("memory", "a + b, 16M, into new memory", bytes=12 * 16e6)
def add_16m(fw):
    a, b = fw.randn(16_000_000), fw.randn(16_000_000)
    return lambda: a + b


@case("memory", "a + b, 16M, out=", bytes=12 * 16e6)
def add_out_16m(fw):
    a, b, out = fw.randn(16_000_000), fw.randn(16_000_000), fw.empty(16_000_000)
    return lambda: fw.add(a, b, out=out)


@case("memory", "where, 16M", bytes=13 * 16e6)
def where_16m(fw):
    a, b = fw.randn(16_000_000), fw.randn(16_000_000)
    mask = a > 0
    return lambda: fw.where(mask, a, b)


@case("memory", "gather of 4M", bytes=16 * 4e6)
def gather_4m(fw):
    x, at = fw.randn(4_000_000), fw.randint(0, 4_000_000, (4_000_000,))
    return lambda: fw.gather(x, 0, at)


@case("memory", "index_select of 65,536 rows of 64", bytes=65_536 * (64 * 8 + 8))
def index_rows(fw):
    x, at = fw.randn(100_000, 64), fw.randint(0, 100_000, (65_536,))
    return lambda: fw.index_select(x, 0, at)


@case("memory", "cross entropy, (4096, 10000), forward", bytes=4 * 4096e4)
def cross_entropy(fw):
    x, y = fw.randn(4096, 10_000), fw.randint(0, 10_000, (4096,))
    return lambda: fw.nn.functional.cross_entropy(x, y)


@case("memory", "cross entropy, (4096, 10000), with backward", bytes=12 * 4096e4)
def cross_entropy_backward(fw):
    x, y = fw.randn(4096, 10_000, requires_grad=True), fw.randint(0, 10_000, (4096,))

    def run():
        x.grad = None
        fw.nn.functional.cross_entropy(x, y).backward()

    return run


@case("memory", "layer_norm, (4096, 1024), with backward", bytes=20 * 4096 * 1024)
def layer_norm_backward(fw):
    x = fw.randn(4096, 1024, requires_grad=True)
    w, b = fw.ones(1024, requires_grad=True), fw.zeros(1024, requires_grad=True)
    g = fw.randn(4096, 1024)

    def run():
        x.grad = w.grad = b.grad = None
        fw.layer_norm(x, (1024,), w, b).backward(g)

    return run


@case(
    "memory",
    "batch_norm, (32, 64, 56, 56), training, with backward",
    bytes=20 * 32 * 64 * 56 * 56,
)
def batch_norm_backward(fw):
    layer, x = fw.nn.BatchNorm2d(64), fw.randn(32, 64, 56, 56, requires_grad=True)
    g = fw.randn(32, 64, 56, 56)

    def run():
        x.grad = None
        layer.zero_grad()
        layer(x).backward(g)

    return run


@case("memory", "gelu, 4M, with backward", bytes=20 * 4e6)
def gelu_backward(fw):
    x, g = fw.randn(4_000_000, requires_grad=True), fw.randn(4_000_000)

    def run():
        x.grad = None
        fw.nn.functional.gelu(x).backward(g)

    return run


@case(
    "memory",
    "embedding of 32,768 of 50,000 rows of 128, with backward",
    bytes=32_768 * (128 * 12 + 8) + 50_000 * 128 * 4,
)
def embedding_backward(fw):
    w, at = fw.randn(50_000, 128, requires_grad=True), fw.randint(0, 50_000, (32_768,))
    g = fw.randn(32_768, 128)

    def run():
        w.grad = None
        fw.nn.functional.embedding(at, w).backward(g)

    return run


@case("memory", "Adam step, 16M parameters", bytes=28 * 16e6)
def adam_16m(fw):
    p = fw.nn.Parameter(fw.randn(16_000_000))
    p.grad = fw.randn(16_000_000)
    optimizer = fw.optim.Adam([p], lr=1e-3)
    return lambda: optimizer.step()


@case("memory", "clip_grad_norm_, 16M", bytes=4 * 16e6)
def clip_16m(fw):
    p = fw.nn.Parameter(fw.randn(16_000_000))
    p.grad = fw.randn(16_000_000)
    return lambda: fw.nn.utils.clip_grad_norm_([p], 1e9)


@case("memory", "max_pool2d, (32, 64, 56, 56)", bytes=32 * 64 * (56 * 56 + 28 * 28) * 4)
def max_pool(fw):
    x = fw.randn(32, 64, 56, 56)
    return lambda: fw.nn.functional.max_pool2d(x, 3, 2, 1)
