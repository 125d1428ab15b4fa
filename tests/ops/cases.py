"""One list of cases for the differentiable ops: what to call, and how to make its inputs.

The gradient tests here and the comparison of devices read it; a new op adds a line.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import taeda
import taeda.nn.functional as F


@dataclass(frozen=True)
class Case:
    name: str
    call: Callable
    shapes: tuple[tuple[int, ...], ...]
    low: float = -1.0
    high: float = 1.0
    second: bool = True  # whether gradgradcheck applies
    tags: frozenset = field(default_factory=frozenset)

    def inputs(self, seed: int = 0) -> list[taeda.Tensor]:
        g = taeda.Generator()
        g.manual_seed(seed)
        made = []
        for shape in self.shapes:
            t = taeda.empty(shape, dtype=taeda.float64).uniform_(self.low, self.high, generator=g)
            made.append(t.requires_grad_())
        return made


def unary(names: str, low: float, high: float) -> list[Case]:
    return [Case(n, getattr(taeda, n), ((3, 4),), low, high) for n in names.split()]


def activation(names: str, low: float = -3, high: float = 3) -> list[Case]:
    return [Case(n, getattr(F, n), ((3, 5),), low, high) for n in names.split()]


INDEX = taeda.tensor([2, 0, 2])
GRID = taeda.tensor([[0, 2, 1], [1, 1, 0]])
PLACES = taeda.tensor([[0, 2], [1, 0]])
MASK = taeda.tensor([[True, False, True, False]])
TARGET = taeda.tensor([1, 0, 4])


def segments(x, how):
    return taeda.segment_reduce(x, how, lengths=taeda.tensor([1, 3]))


CASES = [
    *unary("neg exp expm1 sin cos tanh sinh cosh sigmoid atan asinh erf abs square sgn", -0.9, 0.9),
    *unary("log log2 log10 log1p sqrt rsqrt reciprocal lgamma digamma", 0.3, 3),
    *unary("tan asin acos atanh erfinv", -0.8, 0.8),
    *unary("acosh", 1.2, 3),
    *unary("logit", 0.2, 0.8),
    *activation(
        "relu elu selu celu gelu silu mish softplus hardswish hardsigmoid logsigmoid leaky_relu tanhshrink"
    ),
    Case("softmax", lambda x: F.softmax(x, 1), ((3, 5),)),
    Case("softmax over the first dimension", lambda x: F.softmax(x, 0), ((3, 5),)),
    Case("log_softmax", lambda x: F.log_softmax(x, -1), ((2, 3, 4),)),
    Case("gelu tanh", lambda x: F.gelu(x, approximate="tanh"), ((3, 4),)),
    Case("glu", F.glu, ((3, 4),)),
    Case("prelu", F.prelu, ((2, 3, 2), (3,))),
    # arithmetic with broadcasting
    Case("add", taeda.add, ((3, 4), (4,))),
    Case("add alpha", lambda a, b: taeda.add(a, b, alpha=2.5), ((3, 1), (1, 4))),
    Case("sub", taeda.sub, ((3, 4), (3, 1))),
    Case("mul", taeda.mul, ((3, 4), ())),
    Case("div", taeda.div, ((3, 4), (4,)), 0.5, 2),
    Case("pow", taeda.pow, ((3, 4), (4,)), 0.5, 2),
    Case("pow of a number", lambda x: x**3, ((3, 4),)),
    Case("number to a power", lambda x: 2.5**x, ((3, 4),)),
    Case("atan2", taeda.atan2, ((3, 4), (4,)), 0.5, 2),
    Case("hypot", taeda.hypot, ((3, 4), (4,)), 0.5, 2),
    Case("maximum", taeda.maximum, ((3, 4), (3, 4))),
    Case("minimum", taeda.minimum, ((3, 4), (4,))),
    Case("lerp", lambda a, b: taeda.lerp(a, b, 0.3), ((3, 4), (4,))),
    Case("addcmul", lambda a, b, c: taeda.addcmul(a, b, c, value=0.7), ((3, 4), (4,), (3, 1))),
    Case(
        "addcdiv", lambda a, b, c: taeda.addcdiv(a, b, c, value=0.7), ((3, 4), (4,), (3, 1)), 0.5, 2
    ),
    Case("clamp", lambda x: x.clamp(-0.5, 0.5), ((4, 5),)),
    Case("where", lambda a, b: taeda.where(MASK, a, b), ((3, 4), (4,))),
    Case("masked_fill", lambda x: x.masked_fill(MASK, 2.0), ((3, 4),)),
    Case("logaddexp", taeda.logaddexp, ((3, 4), (4,))),
    Case("xlogy", taeda.xlogy, ((3, 4), (4,)), 0.5, 2),
    # shapes
    Case("reshape", lambda x: x.reshape(4, 3) * x.reshape(4, 3), ((3, 4),)),
    Case("permute", lambda x: x.permute(2, 0, 1).sin(), ((2, 3, 4),)),
    Case("transpose", lambda x: x.t() @ x, ((3, 4),)),
    Case("expand", lambda x: x.expand(3, 4).exp(), ((1, 4),)),
    Case("slice with a step", lambda x: x[:, ::2].exp(), ((3, 5),)),
    Case("select", lambda x: x[1].exp(), ((3, 5),)),
    Case("index by a list", lambda x: x[[2, 0, 2]].exp(), ((3, 4),)),
    Case("index by a mask", lambda x: x[MASK[0]].exp(), ((4, 3),)),
    Case("index in two places", lambda x: x[INDEX, INDEX].exp(), ((3, 4),)),
    Case("index_select", lambda x: taeda.index_select(x, 0, INDEX).exp(), ((3, 4),)),
    Case("gather", lambda x: taeda.gather(x, 1, GRID).exp(), ((2, 3),)),
    Case("scatter", lambda x, s: taeda.scatter(x, 1, PLACES, s).exp(), ((2, 3), (2, 2))),
    Case("scatter_add", lambda x, s: taeda.scatter_add(x, 1, GRID, s).exp(), ((2, 3), (2, 3))),
    Case("index_add", lambda x, s: taeda.index_add(x, 0, INDEX, s).exp(), ((3, 2), (3, 2))),
    Case("cat", lambda a, b: taeda.cat([a, b], 1).exp(), ((2, 3), (2, 1))),
    Case("stack", lambda a, b: taeda.stack([a, b], 1).exp(), ((2, 3), (2, 3))),
    Case("split", lambda x: x.split(2, 1)[1].exp(), ((2, 5),)),
    Case("unbind", lambda x: x.unbind(1)[2].exp(), ((2, 5),)),
    Case("as_strided with overlap", lambda x: x.as_strided((3, 2), (1, 1)).exp(), ((6,),)),
    Case("unfold", lambda x: x.unfold(0, 3, 2).exp(), ((7,),)),
    Case("diagonal", lambda x: x.diagonal(1).exp(), ((3, 4),)),
    Case("tril", lambda x: x.tril().exp(), ((3, 4),)),
    Case("flip", lambda x: x.flip(0).exp(), ((3, 4),)),
    Case("roll", lambda x: x.roll(1, 0).exp(), ((3, 4),)),
    Case("repeat", lambda x: x.repeat(2, 1, 2).exp(), ((2, 3),)),
    Case("pad", lambda x: F.pad(x, (1, 2), value=0.5).exp(), ((2, 3),)),
    Case("pad reflect", lambda x: F.pad(x, (1, 2), mode="reflect").exp(), ((1, 2, 4),)),
    # reductions
    Case("sum", lambda x: x.sum(1).exp(), ((3, 4),)),
    Case("mean", lambda x: x.mean((0, 2), keepdim=True).exp(), ((2, 3, 2),)),
    Case("prod", lambda x: x.prod(1), ((3, 4),)),
    Case("var", lambda x: x.var(1), ((3, 4),)),
    Case("std", lambda x: x.std(0), ((3, 4),)),
    Case("logsumexp", lambda x: x.logsumexp(1), ((3, 4),)),
    Case("norm", lambda x: x.norm(), ((3, 4),)),
    Case("norm 3", lambda x: x.norm(3, 1), ((3, 4),), 0.2, 1),
    Case("max over a dimension", lambda x: x.max(1)[0].exp(), ((3, 4),)),
    Case("amin", lambda x: x.amin(0).exp(), ((3, 4),)),
    Case("cumsum", lambda x: x.cumsum(1).exp(), ((3, 4),)),
    Case("cumprod", lambda x: x.cumprod(1), ((3, 4),)),
    Case("sort", lambda x: x.sort(1)[0].exp(), ((3, 4),)),
    Case("topk", lambda x: x.topk(2, 1)[0].exp(), ((3, 4),)),
    # products
    Case("mm", taeda.mm, ((2, 3), (3, 4))),
    Case("bmm", taeda.bmm, ((2, 2, 3), (2, 3, 2))),
    Case("matmul of vectors", taeda.matmul, ((3,), (3,))),
    Case("matmul broadcast", taeda.matmul, ((2, 1, 2, 3), (3, 3, 2))),
    Case(
        "addmm", lambda m, a, b: taeda.addmm(m, a, b, beta=0.5, alpha=2.0), ((4,), (2, 3), (3, 4))
    ),
    Case("einsum", lambda a, b: taeda.einsum("bij,bjk->ik", a, b), ((2, 2, 3), (2, 3, 2))),
    Case("linear", F.linear, ((2, 2, 3), (4, 3), (4,))),
    Case("outer", taeda.outer, ((3,), (2,))),
    # layers
    Case(
        "conv1d",
        lambda x, w, b: F.conv1d(x, w, b, stride=2, padding=1),
        ((2, 2, 5), (3, 2, 3), (3,)),
    ),
    Case(
        "conv2d", lambda x, w, b: F.conv2d(x, w, b, padding=1), ((1, 2, 4, 4), (2, 2, 3, 3), (2,))
    ),
    Case(
        "conv2d groups and dilation",
        lambda x, w: F.conv2d(x, w, groups=2, dilation=2),
        ((1, 2, 5, 5), (2, 1, 2, 2)),
    ),
    Case(
        "conv_transpose2d",
        lambda x, w, b: F.conv_transpose2d(x, w, b, stride=2, output_padding=1),
        ((1, 2, 3, 3), (2, 2, 2, 2), (2,)),
    ),
    Case("max_pool2d", lambda x: F.max_pool2d(x, 2), ((1, 2, 4, 4),)),
    Case("avg_pool2d", lambda x: F.avg_pool2d(x, 3, stride=2, padding=1), ((1, 2, 5, 5),)),
    Case("adaptive_avg_pool2d", lambda x: F.adaptive_avg_pool2d(x, (2, 3)), ((1, 2, 5, 4),)),
    Case("layer_norm", lambda x, w, b: F.layer_norm(x, (4,), w, b), ((3, 4), (4,), (4,))),
    Case("group_norm", lambda x, w, b: F.group_norm(x, 2, w, b), ((2, 4, 3), (4,), (4,))),
    Case("rms_norm", lambda x, w: F.rms_norm(x, (4,), w), ((3, 4), (4,))),
    Case(
        "batch_norm in training",
        lambda x, w, b: F.batch_norm(x, None, None, w, b, training=True),
        ((4, 2, 3), (2,), (2,)),
    ),
    Case("embedding", lambda w: F.embedding(GRID, w).exp(), ((3, 2),)),
    # distances, statistics, integrals
    Case("cdist", taeda.cdist, ((2, 3, 4), (5, 4))),
    Case("cdist p=1", lambda a, b: taeda.cdist(a, b, 1.0), ((3, 4), (2, 4))),
    Case("cdist p=3", lambda a, b: taeda.cdist(a, b, 3.0), ((3, 4), (2, 4))),
    Case("cross", taeda.cross, ((2, 3), (2, 3))),
    Case("renorm", lambda x: taeda.renorm(x, 2, 0, 0.7), ((3, 4),)),
    Case("cov", taeda.cov, ((3, 5),)),
    Case("quantile", lambda x: taeda.quantile(x, 0.3, 1), ((3, 5),), second=False),
    Case("mode", lambda x: taeda.mode(x, 1)[0], ((3, 4),), second=False),
    Case("trapezoid", taeda.trapezoid, ((3, 4), (4,))),
    Case("gradient", lambda x: taeda.gradient(x, dim=1, edge_order=2)[0], ((3, 4),)),
    Case("frexp", lambda x: taeda.frexp(x)[0], ((3, 4),), second=False),
    Case("combinations", taeda.combinations, ((4,),)),
    Case(
        "index_reduce prod",
        lambda x, y: taeda.index_reduce(x, 1, INDEX, y, "prod"),
        ((2, 4), (2, 3)),
        0.5,
        2,
    ),
    Case("segment_reduce", lambda x: segments(x, "mean"), ((4, 2),)),
    Case(
        "as_strided_scatter",
        lambda x, y: taeda.as_strided_scatter(x, y, (2, 2), (1, 2), 1),
        ((3, 3), (2, 2)),
    ),
    # losses
    Case("mse_loss", F.mse_loss, ((3, 4), (3, 4))),
    Case("l1_loss", F.l1_loss, ((3, 4), (3, 4))),
    Case("smooth_l1_loss", F.smooth_l1_loss, ((3, 4), (3, 4))),
    Case("binary_cross_entropy", F.binary_cross_entropy, ((3, 4), (3, 4)), 0.2, 0.8),
    Case(
        "binary_cross_entropy_with_logits",
        F.binary_cross_entropy_with_logits,
        ((3, 4), (3, 4)),
        0.2,
        0.8,
    ),
    Case("nll_loss", lambda x: F.nll_loss(x, TARGET), ((3, 5),)),
    Case("cross_entropy", lambda x: F.cross_entropy(x, TARGET), ((3, 5),)),
    Case(
        "cross_entropy smoothed",
        lambda x: F.cross_entropy(x, TARGET, label_smoothing=0.2),
        ((3, 5),),
    ),
]
