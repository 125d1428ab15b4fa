"""The batching rule of each operation. A new one needs an entry unless one of these applies:

- what is composed of other operations (`composite`) runs as it is: its parts come here;
- what is computed element by element (`elementwise`) has the rule `pointwise`;
- what draws random numbers (takes a `generator`) has that of the module `random`;
- anything else runs once for each element of the batch, and says so in a warning.

An in-place form has the rule of the form that is not.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from taeda._batching import along, indexing, matrix, nn, pointwise, shape
from taeda._batching.dispatch import Op, Rule, as_it_is, loop, one_by_one
from taeda._batching.tensor import Level, separate


def dynamic(op: Op, level: Level, args: Sequence[Any]) -> Any:
    """Refuse: the shape of the result depends on the elements."""
    raise RuntimeError(
        "vmap: We do not support batching operators that can output dynamic shape. Attempted to "
        f"vmap over {op.name}."
    )


def no_tensor(op: Op, level: Level, args: Sequence[Any]) -> Any:
    """Refuse: the result is a Python number."""
    raise RuntimeError(
        f"Batching rule not implemented for {op.name}. We could not generate a fallback: its "
        "result is not a Tensor."
    )


def loop_if_batched(*names: str) -> Rule:
    """Return a rule that runs the composite, unless an argument of these names is batched."""

    def rule(op: Op, level: Level, args: Sequence[Any]) -> Any:
        for name in names:
            position = op.position(name)
            if position is not None and separate(args[position], level)[1]:
                return loop(op, level, args)
        return NotImplemented

    return rule


def one_hot(op: Op, level: Level, args: Sequence[Any]) -> Any:
    """`one_hot`, which must be told the number of classes."""
    if args[1] < 0:
        args[0].item()  # raises
    return shape.direct(op, level, args)


_RULES: list[tuple[str, Rule]] = [
    # Elementwise operations of the registry, and these:
    (
        "_dirichlet_grad _standard_gamma_grad complex copy frexp igamma igammac "
        "isclose isreal special_chebyshev_polynomial_t special_chebyshev_polynomial_u "
        "special_chebyshev_polynomial_v special_chebyshev_polynomial_w "
        "special_hermite_polynomial_h special_hermite_polynomial_he special_laguerre_polynomial_l "
        "special_legendre_polynomial_p special_shifted_chebyshev_polynomial_t "
        "special_shifted_chebyshev_polynomial_u special_shifted_chebyshev_polynomial_v "
        "special_shifted_chebyshev_polynomial_w special_zeta",
        pointwise.pointwise,
    ),
    ("fill", pointwise.fill_),
    ("masked_fill", pointwise.masked_fill),
    (
        "binary_cross_entropy binary_cross_entropy_with_logits huber_loss kl_div l1_loss mse_loss "
        "smooth_l1_loss soft_margin_loss",
        pointwise.loss,
    ),
    # One tensor, independent of its number of dimensions.
    (
        "_resample _resample_backward _to_copy alias clone detach empty_like full_like ones_like "
        "view_as_real zero zeros_like",
        shape.direct,
    ),
    ("view_as_complex", shape.last_dim),
    ("new_empty new_full new_ones new_zeros", shape.new),
    # Reductions over dimensions, by default all.
    (
        "_std _std_mean _var _var_mean all amax amin any argmax argmin count_nonzero "
        "linalg_vector_norm logsumexp max mean median min nanmedian nansum prod sum",
        along.reduction,
    ),
    # Along dimensions.
    (
        "_cross _fft_c2c _fft_c2r _fft_r2c _log_softmax_backward _logcumsumexp_sums "
        "_softmax_backward _unfold_backward cummax cummin cumprod cumsum flip kthvalue log_softmax "
        "logcumsumexp mode softmax sort topk unfold",
        along.along,
    ),
    (
        "_diagonal_backward _select_backward _slice_backward diagonal "
        "diagonal_scatter select select_scatter slice slice_scatter split split_with_sizes unbind",
        along.strictly_along,
    ),
    # Shapes.
    ("expand", shape.expand),
    ("view _reshape_copy", shape.view),
    ("squeeze", shape.squeeze),
    ("unsqueeze", shape.unsqueeze),
    ("t transpose", shape.transpose),
    ("permute", shape.permute),
    ("repeat", shape.repeat),
    ("roll", shape.roll),
    ("_as_strided", shape.as_strided),
    ("cat", shape.cat),
    ("stack", shape.stack),
    ("_block_diag", shape.block_diag),
    # Indices.
    ("index", indexing.index),
    ("index_put", indexing.index_put),
    ("_index_backward", indexing.index_backward),
    ("index_select", indexing.index_select),
    ("index_add index_copy", indexing.index_change),
    ("index_fill", indexing.index_fill),
    ("_scatter_fill gather scatter scatter_add scatter_reduce", indexing.gather),
    ("embedding", indexing.embedding),
    ("_embedding_sums", indexing.embedding_sums),
    ("_take_indices", indexing.take_indices),
    ("_take_indices_backward", indexing.take_indices),
    ("embedding_dense_backward", indexing.embedding_backward),
    ("bucketize", indexing.bucketize),
    ("searchsorted", indexing.search),
    ("isin", indexing.isin),
    ("one_hot", one_hot),
    # Products, and other operations with any number of leading dimensions.
    ("bmm mm", matrix.mm),
    ("dot", matrix.dot),
    ("mv", matrix.mv),
    ("addmm", matrix.addmm),
    ("linear", matrix.linear),
    ("_cdist", matrix.cdist),
    ("_cdist_backward", along.leading(2)),
    (
        "_linalg_det _linalg_eig _linalg_eigh _linalg_slogdet _linalg_svd cholesky_inverse geqrf "
        "linalg_cholesky_ex linalg_inv_ex linalg_ldl_factor_ex linalg_lu_factor_ex "
        "linalg_matrix_exp linalg_qr tril triu",
        along.leading(2),
    ),
    ("cholesky_solve linalg_solve_triangular", along.leading(2, 2)),
    ("_linalg_lu_solve linalg_ldl_solve", along.leading(2, 1, 2)),
    ("_linalg_householder", along.leading(2, 1)),
    ("_linalg_ormqr", along.leading(2, 1, 2)),
    ("_linalg_row_order", along.leading(1)),
    ("_dropout_backward", along.leading(0)),
    ("constant_pad_nd", shape.pad),
    ("_attention", along.leading(2)),
    # Layers of neural networks.
    ("_conv", matrix.conv),
    ("_conv_input", matrix.conv_input),
    ("_conv_weight", matrix.conv_weight),
    ("native_layer_norm native_rms_norm", nn.layer_norm),
    ("native_group_norm", nn.group_norm),
    ("native_batch_norm", nn.batch_norm),
    ("multi_margin_loss multilabel_margin_loss", nn.margin_loss),
    (
        "_multi_margin_loss_backward _multilabel_margin_loss_backward",
        nn.margin_loss_backward,
    ),
    ("_cross_entropy _nll_loss", nn.nll_loss),
    ("_nll_loss_backward", nn.nll_loss_backward),
    ("_cross_entropy_backward", nn.cross_entropy_backward),
    ("_avg_pool1d _col2im adaptive_avg_pool1d adaptive_max_pool1d max_pool1d_with_indices",
     along.folded(1)),
    (
        "_im2col adaptive_avg_pool2d adaptive_max_pool2d avg_pool2d max_pool2d_with_indices "
        "max_pool2d_with_indices_backward",
        along.folded(2),
    ),
    ("adaptive_avg_pool3d adaptive_max_pool3d avg_pool3d max_pool3d_with_indices",
     along.folded(3)),
    (
        "_adaptive_avg_pool_backward _avg_pool_backward _gather_pool _grid_sample "
        "_grid_sample_input _grid_sample_grid _scatter_pool",
        along.folded(0),
    ),
    # A loop is the best possible rule.
    ("_linalg_lstsq _linalg_pinv _linalg_solve_ex linspace logspace", loop),
    ("nonzero _nonzero_tuple _unique _unique_consecutive", dynamic),
    ("allclose equal", no_tensor),
    ("can_cast result_type", as_it_is),
]  # fmt: skip

# Composite operations that read elements.
_COMPOSITE: list[tuple[str, Rule]] = [
    ("istft quantile nanquantile", loop_if_batched("window", "q")),
    ("_histogramdd histogram segment_reduce", one_by_one),
]


def _by_name(rules: list[tuple[str, Rule]]) -> dict[str, Rule]:
    return {name: rule for names, rule in rules for name in names.split()}


RULES, COMPOSITE = _by_name(_RULES), _by_name(_COMPOSITE)


def rule_for(op: Op) -> Rule:
    """The rule of an operation."""
    if op.composite:
        return COMPOSITE.get(op.name, as_it_is)
    if op.name in RULES:
        return RULES[op.name]
    return pointwise.pointwise if op.elementwise else one_by_one
