# Made by `python -m tests.stubs`. Do not edit: change an op, or tests/stubs/core.pyi.

from builtins import bool as _bool
from builtins import complex as _complex
from builtins import float as _float
from builtins import int as _int
from builtins import str as _str
from collections.abc import Sequence
from typing import overload

from taeda import return_types
from taeda._C import Generator, Tensor, _Device, _dtype, _layout, _Number, memory_format

def __lshift__(input: _Number, other: _Number) -> Tensor: ...
def __rshift__(input: _Number, other: _Number) -> Tensor: ...
def _adaptive_avg_pool_backward(grad: Tensor, sizes: Sequence[_int], spatial: _int) -> Tensor: ...
def _amp_foreach_non_finite_check_and_unscale_(
    grads: Sequence[Tensor],
    found_inf: Tensor,
    inv_scale: Tensor,
) -> None: ...
def _amp_update_scale_(
    input: Tensor,
    growth_tracker: Tensor,
    found_inf: Tensor,
    scale_growth_factor: _float,
    scale_backoff_factor: _float,
    growth_interval: _int,
) -> Tensor: ...
def _as_strided(
    input: Tensor,
    size: Sequence[_int],
    stride: Sequence[_int],
    storage_offset: _int,
    self_stride: Sequence[_int],
    self_offset: _int,
) -> Tensor: ...
def _as_strided_(
    input: Tensor,
    size: Sequence[_int],
    stride: Sequence[_int],
    storage_offset: _int,
    self_stride: Sequence[_int],
    self_offset: _int,
) -> Tensor: ...
def _attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Tensor | None,
    causal: _bool,
    scale: _float,
) -> tuple[Tensor, Tensor]: ...
def _attention_backward(
    grad: Tensor,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Tensor | None,
    out: Tensor,
    log_sums: Tensor,
    causal: _bool,
    scale: _float,
) -> tuple[Tensor, Tensor, Tensor]: ...
def _avg_pool1d(
    input: Tensor,
    kernel_size: _int | Sequence[_int],
    stride: _int | Sequence[_int] | None = ...,
    padding: _int | Sequence[_int] = 0,
    ceil_mode: _bool = False,
    count_include_pad: _bool = True,
    divisor_override: _int | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def _avg_pool_backward(
    grad: Tensor,
    sizes: Sequence[_int],
    kernel_size: Sequence[_int],
    stride: Sequence[_int],
    padding: Sequence[_int],
    ceil_mode: _bool,
    count_include_pad: _bool,
    divisor_override: _int | None,
    spatial: _int,
) -> Tensor: ...
@overload
def _block_diag(tensors: Sequence[Tensor]) -> Tensor: ...
@overload
def _block_diag(*tensors: Tensor) -> Tensor: ...
def _cdist(x1: Tensor, x2: Tensor, p: _float, by_product: _bool) -> Tensor: ...
def _cdist_backward(grad: Tensor, x1: Tensor, x2: Tensor) -> Tensor: ...
def _chunk_cat(
    tensors: Sequence[Tensor],
    dim: _int,
    num_chunks: _int,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def _clamp_all_(tensors: Sequence[Tensor], limit: _float) -> None: ...
def _col2im(
    input: Tensor,
    output_size: Sequence[_int],
    kernel_size: Sequence[_int],
    dilation: Sequence[_int],
    padding: Sequence[_int],
    stride: Sequence[_int],
) -> Tensor: ...
def _conv(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Sequence[_int],
    padding: Sequence[_int],
    dilation: Sequence[_int],
    groups: _int,
) -> Tensor: ...
def _conv_input(
    grad: Tensor,
    weight: Tensor,
    input_size: Sequence[_int],
    stride: Sequence[_int],
    padding: Sequence[_int],
    dilation: Sequence[_int],
    groups: _int,
) -> Tensor: ...
def _conv_weight(
    input: Tensor,
    grad: Tensor,
    kernel_size: Sequence[_int],
    stride: Sequence[_int],
    padding: Sequence[_int],
    dilation: Sequence[_int],
    groups: _int,
) -> Tensor: ...
def _count_between(input: Tensor, edges: Tensor) -> Tensor: ...
def _cross(input: Tensor, other: Tensor, dim: _int) -> Tensor: ...
def _cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None,
    reduction: _int,
    ignore_index: _int,
) -> tuple[Tensor, Tensor, Tensor]: ...
def _cross_entropy_backward(
    grad: Tensor,
    input: Tensor,
    target: Tensor,
    weight: Tensor | None,
    stats: Tensor,
    total_weight: Tensor,
    reduction: _int,
    ignore_index: _int,
) -> Tensor: ...
def _csr_inner(crow: Tensor, col: Tensor, a: Tensor, b: Tensor) -> Tensor: ...
def _csr_mm(crow: Tensor, col: Tensor, values: Tensor | None, dense: Tensor) -> Tensor: ...
def _csr_rows(crow: Tensor, col: Tensor) -> Tensor: ...
def _ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Sequence[_int],
    target_lengths: Sequence[_int],
    blank: _int,
    zero_infinity: _bool,
) -> Tensor: ...
def _ctc_loss_backward(
    grad: Tensor,
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Sequence[_int],
    target_lengths: Sequence[_int],
    blank: _int,
    zero_infinity: _bool,
) -> Tensor: ...
def _diagonal_backward(
    grad: Tensor,
    sizes: Sequence[_int],
    offset: _int,
    dim1: _int,
    dim2: _int,
) -> Tensor: ...
def _dirichlet_grad(x: Tensor, alpha: Tensor, total: Tensor) -> Tensor: ...
def _dropout_backward(grad: Tensor, mask: Tensor, scale: _float) -> Tensor: ...
@overload
def _einsum(equation: _str, tensors: Sequence[Tensor]) -> Tensor: ...
@overload
def _einsum(equation: _str, *tensors: Tensor) -> Tensor: ...
def _embedding_sums(weight: Tensor, indices: Tensor) -> Tensor: ...
def _fft_c2c(input: Tensor, dim: Sequence[_int], scale: _float, forward: _bool) -> Tensor: ...
def _fft_c2r(input: Tensor, dim: Sequence[_int], scale: _float, n: _int) -> Tensor: ...
def _fft_r2c(input: Tensor, dim: Sequence[_int], scale: _float, half: _bool) -> Tensor: ...
def _fractional_max_pool(
    input: Tensor,
    samples: Tensor,
    kernel_size: Sequence[_int],
    output_size: Sequence[_int],
) -> tuple[Tensor, Tensor]: ...
@overload
def _fused_adadelta_(
    params: Sequence[Tensor],
    grads: Sequence[Tensor],
    square_avgs: Sequence[Tensor],
    acc_deltas: Sequence[Tensor],
    steps: Sequence[Tensor],
    *,
    lr: _float,
    rho: _float,
    eps: _float,
    weight_decay: _float,
    maximize: _bool,
    rate: Tensor | None = None,
    grad_scale: Tensor | None = None,
    found_inf: Tensor | None = None,
) -> None: ...
@overload
def _fused_adadelta_(
    params: Sequence[Tensor],
    grads: Sequence[Tensor],
    square_avgs: Sequence[Tensor],
    acc_deltas: Sequence[Tensor],
    *steps: Tensor,
    lr: _float,
    rho: _float,
    eps: _float,
    weight_decay: _float,
    maximize: _bool,
    rate: Tensor | None = None,
    grad_scale: Tensor | None = None,
    found_inf: Tensor | None = None,
) -> None: ...
@overload
def _fused_adagrad_(
    params: Sequence[Tensor],
    grads: Sequence[Tensor],
    sums: Sequence[Tensor],
    steps: Sequence[Tensor],
    *,
    lr: _float,
    lr_decay: _float,
    weight_decay: _float,
    eps: _float,
    maximize: _bool,
    rate: Tensor | None = None,
    grad_scale: Tensor | None = None,
    found_inf: Tensor | None = None,
) -> None: ...
@overload
def _fused_adagrad_(
    params: Sequence[Tensor],
    grads: Sequence[Tensor],
    sums: Sequence[Tensor],
    *steps: Tensor,
    lr: _float,
    lr_decay: _float,
    weight_decay: _float,
    eps: _float,
    maximize: _bool,
    rate: Tensor | None = None,
    grad_scale: Tensor | None = None,
    found_inf: Tensor | None = None,
) -> None: ...
@overload
def _fused_adam_(
    params: Sequence[Tensor],
    grads: Sequence[Tensor],
    exp_avgs: Sequence[Tensor],
    exp_avg_sqs: Sequence[Tensor],
    max_exp_avg_sqs: Sequence[Tensor],
    steps: Sequence[Tensor],
    *,
    lr: _float,
    beta1: _float,
    beta2: _float,
    weight_decay: _float,
    eps: _float,
    maximize: _bool,
    decoupled: _bool,
    rate: Tensor | None = None,
    grad_scale: Tensor | None = None,
    found_inf: Tensor | None = None,
) -> None: ...
@overload
def _fused_adam_(
    params: Sequence[Tensor],
    grads: Sequence[Tensor],
    exp_avgs: Sequence[Tensor],
    exp_avg_sqs: Sequence[Tensor],
    max_exp_avg_sqs: Sequence[Tensor],
    *steps: Tensor,
    lr: _float,
    beta1: _float,
    beta2: _float,
    weight_decay: _float,
    eps: _float,
    maximize: _bool,
    decoupled: _bool,
    rate: Tensor | None = None,
    grad_scale: Tensor | None = None,
    found_inf: Tensor | None = None,
) -> None: ...
@overload
def _fused_adamax_(
    params: Sequence[Tensor],
    grads: Sequence[Tensor],
    exp_avgs: Sequence[Tensor],
    exp_infs: Sequence[Tensor],
    steps: Sequence[Tensor],
    *,
    lr: _float,
    beta1: _float,
    beta2: _float,
    weight_decay: _float,
    eps: _float,
    maximize: _bool,
    rate: Tensor | None = None,
    grad_scale: Tensor | None = None,
    found_inf: Tensor | None = None,
) -> None: ...
@overload
def _fused_adamax_(
    params: Sequence[Tensor],
    grads: Sequence[Tensor],
    exp_avgs: Sequence[Tensor],
    exp_infs: Sequence[Tensor],
    *steps: Tensor,
    lr: _float,
    beta1: _float,
    beta2: _float,
    weight_decay: _float,
    eps: _float,
    maximize: _bool,
    rate: Tensor | None = None,
    grad_scale: Tensor | None = None,
    found_inf: Tensor | None = None,
) -> None: ...
@overload
def _fused_asgd_(
    params: Sequence[Tensor],
    grads: Sequence[Tensor],
    averages: Sequence[Tensor],
    steps: Sequence[Tensor],
    etas: Sequence[Tensor],
    mus: Sequence[Tensor],
    *,
    lr: _float,
    lambd: _float,
    alpha: _float,
    t0: _float,
    weight_decay: _float,
    maximize: _bool,
    rate: Tensor | None = None,
    grad_scale: Tensor | None = None,
    found_inf: Tensor | None = None,
) -> None: ...
@overload
def _fused_asgd_(
    params: Sequence[Tensor],
    grads: Sequence[Tensor],
    averages: Sequence[Tensor],
    steps: Sequence[Tensor],
    etas: Sequence[Tensor],
    *mus: Tensor,
    lr: _float,
    lambd: _float,
    alpha: _float,
    t0: _float,
    weight_decay: _float,
    maximize: _bool,
    rate: Tensor | None = None,
    grad_scale: Tensor | None = None,
    found_inf: Tensor | None = None,
) -> None: ...
@overload
def _fused_nadam_(
    params: Sequence[Tensor],
    grads: Sequence[Tensor],
    exp_avgs: Sequence[Tensor],
    exp_avg_sqs: Sequence[Tensor],
    steps: Sequence[Tensor],
    mu_products: Sequence[Tensor],
    *,
    lr: _float,
    beta1: _float,
    beta2: _float,
    weight_decay: _float,
    eps: _float,
    momentum_decay: _float,
    maximize: _bool,
    decoupled: _bool,
    rate: Tensor | None = None,
    grad_scale: Tensor | None = None,
    found_inf: Tensor | None = None,
) -> None: ...
@overload
def _fused_nadam_(
    params: Sequence[Tensor],
    grads: Sequence[Tensor],
    exp_avgs: Sequence[Tensor],
    exp_avg_sqs: Sequence[Tensor],
    steps: Sequence[Tensor],
    *mu_products: Tensor,
    lr: _float,
    beta1: _float,
    beta2: _float,
    weight_decay: _float,
    eps: _float,
    momentum_decay: _float,
    maximize: _bool,
    decoupled: _bool,
    rate: Tensor | None = None,
    grad_scale: Tensor | None = None,
    found_inf: Tensor | None = None,
) -> None: ...
@overload
def _fused_radam_(
    params: Sequence[Tensor],
    grads: Sequence[Tensor],
    exp_avgs: Sequence[Tensor],
    exp_avg_sqs: Sequence[Tensor],
    steps: Sequence[Tensor],
    *,
    lr: _float,
    beta1: _float,
    beta2: _float,
    weight_decay: _float,
    eps: _float,
    maximize: _bool,
    decoupled: _bool,
    rate: Tensor | None = None,
    grad_scale: Tensor | None = None,
    found_inf: Tensor | None = None,
) -> None: ...
@overload
def _fused_radam_(
    params: Sequence[Tensor],
    grads: Sequence[Tensor],
    exp_avgs: Sequence[Tensor],
    exp_avg_sqs: Sequence[Tensor],
    *steps: Tensor,
    lr: _float,
    beta1: _float,
    beta2: _float,
    weight_decay: _float,
    eps: _float,
    maximize: _bool,
    decoupled: _bool,
    rate: Tensor | None = None,
    grad_scale: Tensor | None = None,
    found_inf: Tensor | None = None,
) -> None: ...
@overload
def _fused_rmsprop_(
    params: Sequence[Tensor],
    grads: Sequence[Tensor],
    square_avgs: Sequence[Tensor],
    momentum_buffers: Sequence[Tensor],
    grad_avgs: Sequence[Tensor],
    steps: Sequence[Tensor],
    *,
    lr: _float,
    alpha: _float,
    eps: _float,
    weight_decay: _float,
    momentum: _float,
    maximize: _bool,
    rate: Tensor | None = None,
    grad_scale: Tensor | None = None,
    found_inf: Tensor | None = None,
) -> None: ...
@overload
def _fused_rmsprop_(
    params: Sequence[Tensor],
    grads: Sequence[Tensor],
    square_avgs: Sequence[Tensor],
    momentum_buffers: Sequence[Tensor],
    grad_avgs: Sequence[Tensor],
    *steps: Tensor,
    lr: _float,
    alpha: _float,
    eps: _float,
    weight_decay: _float,
    momentum: _float,
    maximize: _bool,
    rate: Tensor | None = None,
    grad_scale: Tensor | None = None,
    found_inf: Tensor | None = None,
) -> None: ...
@overload
def _fused_rprop_(
    params: Sequence[Tensor],
    grads: Sequence[Tensor],
    prevs: Sequence[Tensor],
    step_sizes: Sequence[Tensor],
    steps: Sequence[Tensor],
    *,
    etaminus: _float,
    etaplus: _float,
    step_size_min: _float,
    step_size_max: _float,
    maximize: _bool,
    rate: Tensor | None = None,
    grad_scale: Tensor | None = None,
    found_inf: Tensor | None = None,
) -> None: ...
@overload
def _fused_rprop_(
    params: Sequence[Tensor],
    grads: Sequence[Tensor],
    prevs: Sequence[Tensor],
    step_sizes: Sequence[Tensor],
    *steps: Tensor,
    etaminus: _float,
    etaplus: _float,
    step_size_min: _float,
    step_size_max: _float,
    maximize: _bool,
    rate: Tensor | None = None,
    grad_scale: Tensor | None = None,
    found_inf: Tensor | None = None,
) -> None: ...
@overload
def _fused_sgd_(
    params: Sequence[Tensor],
    grads: Sequence[Tensor],
    momentum_buffers: Sequence[Tensor],
    *,
    lr: _float,
    momentum: _float,
    dampening: _float,
    weight_decay: _float,
    nesterov: _bool,
    maximize: _bool,
    is_first_step: _bool,
    rate: Tensor | None = None,
    grad_scale: Tensor | None = None,
    found_inf: Tensor | None = None,
) -> None: ...
@overload
def _fused_sgd_(
    params: Sequence[Tensor],
    grads: Sequence[Tensor],
    *momentum_buffers: Tensor,
    lr: _float,
    momentum: _float,
    dampening: _float,
    weight_decay: _float,
    nesterov: _bool,
    maximize: _bool,
    is_first_step: _bool,
    rate: Tensor | None = None,
    grad_scale: Tensor | None = None,
    found_inf: Tensor | None = None,
) -> None: ...
def _gather_pool(input: Tensor, index: Tensor, spatial: _int) -> Tensor: ...
def _grid_sample(
    input: Tensor,
    grid: Tensor,
    spatial: _int,
    how: _int,
    outside: _int,
    corners: _bool,
) -> Tensor: ...
def _grid_sample_grid(
    grad: Tensor,
    input: Tensor,
    grid: Tensor,
    spatial: _int,
    how: _int,
    outside: _int,
    corners: _bool,
) -> Tensor: ...
def _grid_sample_input(
    grad: Tensor,
    grid: Tensor,
    sizes: Sequence[_int],
    spatial: _int,
    how: _int,
    outside: _int,
    corners: _bool,
) -> Tensor: ...
def _group_rows(index: Tensor, size: _int) -> return_types._group_rows: ...
def _histogramdd(
    input: Tensor,
    bins: Sequence[_int],
    edges: Sequence[Tensor],
    range: Sequence[_float] | None,
    weight: Tensor | None,
    density: _bool,
) -> tuple[Tensor, ...]: ...
def _im2col(
    input: Tensor,
    kernel_size: Sequence[_int],
    dilation: Sequence[_int],
    padding: Sequence[_int],
    stride: Sequence[_int],
) -> Tensor: ...
def _index_backward(
    grad: Tensor,
    indices: Sequence[Tensor | None],
    sizes: Sequence[_int],
) -> Tensor: ...
def _linalg_det(A: Tensor) -> tuple[Tensor, Tensor, Tensor]: ...
def _linalg_eig(A: Tensor, compute_v: _bool) -> tuple[Tensor, Tensor]: ...
def _linalg_eigh(A: Tensor, UPLO: _str, compute_v: _bool) -> tuple[Tensor, Tensor]: ...
def _linalg_householder(input: Tensor, tau: Tensor) -> Tensor: ...
def _linalg_lstsq(
    input: Tensor,
    b: Tensor,
    rcond: _float | None,
    driver: _str,
) -> tuple[Tensor, Tensor, Tensor, Tensor]: ...
def _linalg_lu_solve(LU: Tensor, pivots: Tensor, B: Tensor, adjoint: _bool) -> Tensor: ...
def _linalg_ormqr(
    input: Tensor,
    input2: Tensor,
    input3: Tensor,
    left: _bool,
    transpose: _bool,
) -> Tensor: ...
def _linalg_pinv(
    A: Tensor,
    atol: Tensor | None,
    rtol: Tensor | None,
    hermitian: _bool,
) -> Tensor: ...
def _linalg_row_order(pivots: Tensor, rows: _int) -> Tensor: ...
def _linalg_slogdet(A: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]: ...
def _linalg_solve_ex(
    A: Tensor,
    B: Tensor,
    left: _bool,
    check_errors: _bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor]: ...
def _linalg_svd(
    A: Tensor,
    full_matrices: _bool,
    compute_uv: _bool,
    any_signs: _bool,
) -> tuple[Tensor, Tensor, Tensor]: ...
def _local_scalar_dense(input: Tensor) -> _Number: ...
def _log_softmax_backward(grad: Tensor, out: Tensor, dim: _int) -> Tensor: ...
def _logcumsumexp_sums(t: Tensor, x: Tensor, y: Tensor, dim: _int, back: _bool) -> Tensor: ...
def _multi_margin_loss_backward(
    grad: Tensor,
    input: Tensor,
    target: Tensor,
    p: _float,
    margin: _float,
    weight: Tensor | None,
    reduction: _int,
) -> Tensor: ...
def _multilabel_margin_loss_backward(
    grad: Tensor,
    input: Tensor,
    target: Tensor,
    reduction: _int,
) -> Tensor: ...
def _nll_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None,
    reduction: _int,
    ignore_index: _int,
) -> tuple[Tensor, Tensor]: ...
def _nll_loss_backward(
    grad: Tensor,
    target: Tensor,
    weight: Tensor | None,
    total_weight: Tensor,
    sizes: Sequence[_int],
    reduction: _int,
    ignore_index: _int,
) -> Tensor: ...
def _nonzero_tuple(input: Tensor) -> tuple[Tensor, ...]: ...
def _pairs_of_square(square: Tensor) -> Tensor: ...
def _pdist(input: Tensor, p: _float) -> Tensor: ...
def _prelu(input: Tensor, weight: Tensor) -> Tensor: ...
def _repeat_index(repeats: Tensor, output_size: _int | None = None) -> Tensor: ...
def _resample(
    input: Tensor,
    size: Sequence[_int],
    step: Sequence[_float],
    how: _int,
    corners: _bool,
) -> Tensor: ...
def _resample_backward(
    grad: Tensor,
    size: Sequence[_int],
    step: Sequence[_float],
    how: _int,
    corners: _bool,
) -> Tensor: ...
def _reshape_copy(input: Tensor, shape: Sequence[_int]) -> Tensor: ...
def _rnn_sequence(
    x: Tensor,
    h0: Tensor,
    c0: Tensor | None,
    w: Tensor,
    b: Tensor | None,
    r: Tensor | None,
    sizes: Sequence[_int],
    cell: _int,
    reverse: _bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]: ...
def _rnn_sequence_backward(
    grad: Tensor | None,
    grad_h: Tensor | None,
    grad_c: Tensor | None,
    h0: Tensor,
    c0: Tensor | None,
    w: Tensor,
    r: Tensor | None,
    output: Tensor,
    acts: Tensor,
    extra: Tensor,
    sizes: Sequence[_int],
    cell: _int,
    reverse: _bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]: ...
def _safe_softmax(input: Tensor, dim: _int, dtype: _dtype | None = None) -> Tensor: ...
def _sample_dirichlet(input: Tensor, generator: Generator | None = None) -> Tensor: ...
def _scale_all_(tensors: Sequence[Tensor], factor: Tensor) -> None: ...
def _scatter_fill(input: Tensor, dim: _int, index: Tensor, value: _Number) -> Tensor: ...
def _scatter_pool(grad: Tensor, index: Tensor, sizes: Sequence[_int], spatial: _int) -> Tensor: ...
def _select_backward(grad: Tensor, sizes: Sequence[_int], dim: _int, index: _int) -> Tensor: ...
def _slice_backward(
    grad: Tensor,
    sizes: Sequence[_int],
    dim: _int,
    start: _int | None,
    end: _int | None,
    step: _int,
) -> Tensor: ...
def _softmax_backward(grad: Tensor, out: Tensor, dim: _int) -> Tensor: ...
def _softmax_backward_data(
    grad: Tensor,
    output: Tensor,
    dim: _int,
    input_dtype: _dtype,
) -> Tensor: ...
def _square_of_pairs(pairs: Tensor, n: _int) -> Tensor: ...
def _standard_gamma(input: Tensor, generator: Generator | None = None) -> Tensor: ...
def _standard_gamma_grad(input: Tensor, output: Tensor) -> Tensor: ...
def _std(
    input: Tensor,
    dim: _int | Sequence[_int] | None,
    correction: _Number,
    keepdim: _bool,
) -> Tensor: ...
def _std_mean(
    input: Tensor,
    dim: _int | Sequence[_int] | None,
    correction: _Number,
    keepdim: _bool,
) -> tuple[Tensor, Tensor]: ...
@overload
def _take_indices(input: Tensor, indices: Sequence[Tensor]) -> Tensor: ...
@overload
def _take_indices(input: Tensor, *indices: Tensor) -> Tensor: ...
def _take_indices_backward(
    grad: Tensor,
    indices: Sequence[Tensor],
    sizes: Sequence[_int],
) -> Tensor: ...
def _tensordot(
    input: Tensor,
    other: Tensor,
    dims_self: Sequence[_int],
    dims_other: Sequence[_int],
) -> Tensor: ...
def _to_copy(
    input: Tensor,
    *,
    dtype: _dtype | None = None,
    device: _Device = None,
    memory_format: memory_format | None = None,
    non_blocking: _bool = False,
) -> Tensor: ...
def _total_norm(tensors: Sequence[Tensor], norm_type: _float) -> Tensor: ...
def _unfold_backward(
    grad: Tensor,
    sizes: Sequence[_int],
    dim: _int,
    size: _int,
    step: _int,
) -> Tensor: ...
def _unique(
    input: Tensor,
    dim: _int | None = None,
    inverse: _bool = True,
    counts: _bool = True,
) -> tuple[Tensor, Tensor, Tensor]: ...
def _unique_consecutive(
    input: Tensor,
    dim: _int | None = None,
    inverse: _bool = True,
    counts: _bool = True,
) -> tuple[Tensor, Tensor, Tensor]: ...
def _unsafe_masked_index(
    input: Tensor,
    mask: Tensor,
    indices: Sequence[Tensor | None],
    fill: _Number,
) -> Tensor: ...
def _unsafe_masked_index_put_accumulate(
    input: Tensor,
    mask: Tensor,
    indices: Sequence[Tensor | None],
    values: Tensor,
) -> Tensor: ...
def _var(
    input: Tensor,
    dim: _int | Sequence[_int] | None,
    correction: _Number,
    keepdim: _bool,
) -> Tensor: ...
def _var_mean(
    input: Tensor,
    dim: _int | Sequence[_int] | None,
    correction: _Number,
    keepdim: _bool,
) -> tuple[Tensor, Tensor]: ...
def abs(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def abs_(input: Tensor) -> Tensor: ...
def absolute(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def absolute_(input: Tensor) -> Tensor: ...
def acos(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def acos_(input: Tensor) -> Tensor: ...
def acosh(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def acosh_(input: Tensor) -> Tensor: ...
def adaptive_avg_pool1d(input: Tensor, output_size: _int | Sequence[_int]) -> Tensor: ...
def adaptive_avg_pool2d(input: Tensor, output_size: _int | Sequence[_int]) -> Tensor: ...
def adaptive_avg_pool3d(input: Tensor, output_size: _int | Sequence[_int]) -> Tensor: ...
def adaptive_max_pool1d(
    input: Tensor,
    output_size: _int | Sequence[_int],
) -> tuple[Tensor, Tensor]: ...
def adaptive_max_pool2d(
    input: Tensor,
    output_size: _int | Sequence[_int],
) -> tuple[Tensor, Tensor]: ...
def adaptive_max_pool3d(
    input: Tensor,
    output_size: _int | Sequence[_int],
) -> tuple[Tensor, Tensor]: ...
def add(
    input: _Number,
    other: _Number,
    *,
    alpha: _Number = 1,
    out: Tensor | None = None,
) -> Tensor: ...
def add_(input: _Number, other: _Number, *, alpha: _Number = 1) -> Tensor: ...
def addbmm(
    input: Tensor,
    batch1: Tensor,
    batch2: Tensor,
    *,
    beta: _Number = 1,
    alpha: _Number = 1,
    out: Tensor | None = None,
) -> Tensor: ...
def addbmm_(
    input: Tensor,
    batch1: Tensor,
    batch2: Tensor,
    *,
    beta: _Number = 1,
    alpha: _Number = 1,
) -> Tensor: ...
def addcdiv(
    input: Tensor,
    tensor1: Tensor,
    tensor2: Tensor,
    *,
    value: _Number = 1,
    out: Tensor | None = None,
) -> Tensor: ...
def addcdiv_(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: _Number = 1) -> Tensor: ...
def addcmul(
    input: Tensor,
    tensor1: Tensor,
    tensor2: Tensor,
    *,
    value: _Number = 1,
    out: Tensor | None = None,
) -> Tensor: ...
def addcmul_(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: _Number = 1) -> Tensor: ...
def addmm(
    input: Tensor,
    mat1: Tensor,
    mat2: Tensor,
    *,
    beta: _Number = 1,
    alpha: _Number = 1,
    out: Tensor | None = None,
) -> Tensor: ...
def addmm_(
    input: Tensor,
    mat1: Tensor,
    mat2: Tensor,
    *,
    beta: _Number = 1,
    alpha: _Number = 1,
) -> Tensor: ...
def addmv(
    input: Tensor,
    mat: Tensor,
    vec: Tensor,
    *,
    beta: _Number = 1,
    alpha: _Number = 1,
    out: Tensor | None = None,
) -> Tensor: ...
def addmv_(
    input: Tensor,
    mat: Tensor,
    vec: Tensor,
    *,
    beta: _Number = 1,
    alpha: _Number = 1,
) -> Tensor: ...
def addr(
    input: Tensor,
    vec1: Tensor,
    vec2: Tensor,
    *,
    beta: _Number = 1,
    alpha: _Number = 1,
    out: Tensor | None = None,
) -> Tensor: ...
def addr_(
    input: Tensor,
    vec1: Tensor,
    vec2: Tensor,
    *,
    beta: _Number = 1,
    alpha: _Number = 1,
) -> Tensor: ...
def alias(input: Tensor) -> Tensor: ...
def alias_copy(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def all(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def all(
    input: Tensor,
    dim: _int | Sequence[_int] | None = None,
    keepdim: _bool = False,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def allclose(
    input: Tensor,
    other: Tensor,
    rtol: _float = 1e-05,
    atol: _float = 1e-08,
    equal_nan: _bool = False,
) -> _bool: ...
def alpha_dropout(
    input: Tensor,
    p: _float,
    train: _bool,
    *,
    generator: Generator | None = None,
) -> Tensor: ...
def amax(
    input: Tensor,
    dim: _int | Sequence[_int] | None = None,
    keepdim: _bool = False,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def amin(
    input: Tensor,
    dim: _int | Sequence[_int] | None = None,
    keepdim: _bool = False,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def aminmax(
    input: Tensor,
    *,
    dim: _int | None = None,
    keepdim: _bool = False,
    out: Sequence[Tensor] | None = None,
) -> return_types.aminmax: ...
def angle(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def any(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def any(
    input: Tensor,
    dim: _int | Sequence[_int] | None = None,
    keepdim: _bool = False,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def arange(
    end: _Number,
    *,
    dtype: _dtype | None = None,
    device: _Device = None,
    requires_grad: _bool = False,
    out: Tensor | None = None,
    layout: _layout | None = None,
    pin_memory: _bool = False,
) -> Tensor: ...
@overload
def arange(
    start: _Number,
    end: _Number,
    step: _Number = 1,
    *,
    dtype: _dtype | None = None,
    device: _Device = None,
    requires_grad: _bool = False,
    out: Tensor | None = None,
    layout: _layout | None = None,
    pin_memory: _bool = False,
) -> Tensor: ...
def arccos(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def arccos_(input: Tensor) -> Tensor: ...
def arccosh(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def arccosh_(input: Tensor) -> Tensor: ...
def arcsin(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def arcsin_(input: Tensor) -> Tensor: ...
def arcsinh(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def arcsinh_(input: Tensor) -> Tensor: ...
def arctan(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def arctan2(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def arctan2_(input: Tensor, other: Tensor) -> Tensor: ...
def arctan_(input: Tensor) -> Tensor: ...
def arctanh(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def arctanh_(input: Tensor) -> Tensor: ...
def argmax(
    input: Tensor,
    dim: _int | None = None,
    keepdim: _bool = False,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def argmin(
    input: Tensor,
    dim: _int | None = None,
    keepdim: _bool = False,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def argsort(
    input: Tensor,
    dim: _int = -1,
    descending: _bool = False,
    stable: _bool = False,
) -> Tensor: ...
def argwhere(input: Tensor) -> Tensor: ...
def as_strided(
    input: Tensor,
    size: Sequence[_int],
    stride: Sequence[_int],
    storage_offset: _int | None = None,
) -> Tensor: ...
def as_strided_(
    input: Tensor,
    size: Sequence[_int],
    stride: Sequence[_int],
    storage_offset: _int | None = None,
) -> Tensor: ...
def as_strided_copy(
    input: Tensor,
    size: Sequence[_int],
    stride: Sequence[_int],
    storage_offset: _int | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def as_strided_scatter(
    input: Tensor,
    src: Tensor,
    size: Sequence[_int],
    stride: Sequence[_int],
    storage_offset: _int | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def asin(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def asin_(input: Tensor) -> Tensor: ...
def asinh(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def asinh_(input: Tensor) -> Tensor: ...
def atan(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def atan2(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def atan2_(input: Tensor, other: Tensor) -> Tensor: ...
def atan_(input: Tensor) -> Tensor: ...
def atanh(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def atanh_(input: Tensor) -> Tensor: ...
@overload
def atleast_1d(input: Tensor) -> Tensor: ...
@overload
def atleast_1d(tensors: Sequence[Tensor]) -> tuple[Tensor, ...]: ...
@overload
def atleast_1d(*tensors: Tensor) -> tuple[Tensor, ...]: ...
@overload
def atleast_2d(input: Tensor) -> Tensor: ...
@overload
def atleast_2d(tensors: Sequence[Tensor]) -> tuple[Tensor, ...]: ...
@overload
def atleast_2d(*tensors: Tensor) -> tuple[Tensor, ...]: ...
@overload
def atleast_3d(input: Tensor) -> Tensor: ...
@overload
def atleast_3d(tensors: Sequence[Tensor]) -> tuple[Tensor, ...]: ...
@overload
def atleast_3d(*tensors: Tensor) -> tuple[Tensor, ...]: ...
def avg_pool1d(
    input: Tensor,
    kernel_size: _int | Sequence[_int],
    stride: _int | Sequence[_int] | None = ...,
    padding: _int | Sequence[_int] = 0,
    ceil_mode: _bool = False,
    count_include_pad: _bool = True,
) -> Tensor: ...
def avg_pool2d(
    input: Tensor,
    kernel_size: _int | Sequence[_int],
    stride: _int | Sequence[_int] | None = ...,
    padding: _int | Sequence[_int] = 0,
    ceil_mode: _bool = False,
    count_include_pad: _bool = True,
    divisor_override: _int | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def avg_pool3d(
    input: Tensor,
    kernel_size: _int | Sequence[_int],
    stride: _int | Sequence[_int] | None = ...,
    padding: _int | Sequence[_int] = 0,
    ceil_mode: _bool = False,
    count_include_pad: _bool = True,
    divisor_override: _int | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def baddbmm(
    input: Tensor,
    batch1: Tensor,
    batch2: Tensor,
    *,
    beta: _Number = 1,
    alpha: _Number = 1,
    out: Tensor | None = None,
) -> Tensor: ...
def baddbmm_(
    input: Tensor,
    batch1: Tensor,
    batch2: Tensor,
    *,
    beta: _Number = 1,
    alpha: _Number = 1,
) -> Tensor: ...
def bartlett_window(
    window_length: _int,
    periodic: _bool = True,
    *,
    dtype: _dtype | None = None,
    device: _Device = None,
    requires_grad: _bool = False,
    layout: _layout | None = None,
    pin_memory: _bool = False,
) -> Tensor: ...
def batch_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    training: _bool,
    momentum: _float,
    eps: _float,
) -> Tensor: ...
@overload
def bernoulli(
    input: Tensor,
    *,
    generator: Generator | None = None,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def bernoulli(input: Tensor, p: _float, *, generator: Generator | None = None) -> Tensor: ...
@overload
def bernoulli_(input: Tensor, p: _float = 0.5, *, generator: Generator | None = None) -> Tensor: ...
@overload
def bernoulli_(input: Tensor, p: Tensor, *, generator: Generator | None = None) -> Tensor: ...
def bfloat16(input: Tensor, memory_format: memory_format | None = None) -> Tensor: ...
def binary_cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    reduction: _int = 1,
) -> Tensor: ...
def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    pos_weight: Tensor | None = None,
    reduction: _int = 1,
) -> Tensor: ...
def bincount(input: Tensor, weights: Tensor | None = None, minlength: _int = 0) -> Tensor: ...
def binomial(count: Tensor, prob: Tensor, generator: Generator | None = None) -> Tensor: ...
def bitwise_and(input: _Number, other: _Number, *, out: Tensor | None = None) -> Tensor: ...
def bitwise_and_(input: _Number, other: _Number) -> Tensor: ...
def bitwise_left_shift(input: _Number, other: _Number, *, out: Tensor | None = None) -> Tensor: ...
def bitwise_left_shift_(input: _Number, other: _Number) -> Tensor: ...
def bitwise_not(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def bitwise_not_(input: Tensor) -> Tensor: ...
def bitwise_or(input: _Number, other: _Number, *, out: Tensor | None = None) -> Tensor: ...
def bitwise_or_(input: _Number, other: _Number) -> Tensor: ...
def bitwise_right_shift(input: _Number, other: _Number, *, out: Tensor | None = None) -> Tensor: ...
def bitwise_right_shift_(input: _Number, other: _Number) -> Tensor: ...
def bitwise_xor(input: _Number, other: _Number, *, out: Tensor | None = None) -> Tensor: ...
def bitwise_xor_(input: _Number, other: _Number) -> Tensor: ...
def blackman_window(
    window_length: _int,
    periodic: _bool = True,
    *,
    dtype: _dtype | None = None,
    device: _Device = None,
    requires_grad: _bool = False,
    layout: _layout | None = None,
    pin_memory: _bool = False,
) -> Tensor: ...
@overload
def block_diag(tensors: Sequence[Tensor]) -> Tensor: ...
@overload
def block_diag(*tensors: Tensor) -> Tensor: ...
def bmm(input: Tensor, mat2: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def bool(input: Tensor, memory_format: memory_format | None = None) -> Tensor: ...
@overload
def broadcast_tensors(tensors: Sequence[Tensor]) -> tuple[Tensor, ...]: ...
@overload
def broadcast_tensors(*tensors: Tensor) -> tuple[Tensor, ...]: ...
def broadcast_to(input: Tensor, size: Sequence[_int]) -> Tensor: ...
@overload
def bucketize(
    input: Tensor,
    boundaries: Tensor,
    *,
    out_int32: _bool = False,
    right: _bool = False,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def bucketize(
    input: _complex,
    boundaries: Tensor,
    *,
    out_int32: _bool = False,
    right: _bool = False,
) -> Tensor: ...
def byte(input: Tensor, memory_format: memory_format | None = None) -> Tensor: ...
def can_cast(from_: _dtype, to: _dtype) -> _bool: ...
def cat(tensors: Sequence[Tensor], dim: _int = 0, *, out: Tensor | None = None) -> Tensor: ...
def cauchy_(
    input: Tensor,
    median: _float = 0,
    sigma: _float = 1,
    *,
    generator: Generator | None = None,
) -> Tensor: ...
def cdist(
    x1: Tensor,
    x2: Tensor,
    p: _float = 2.0,
    compute_mode: _str = "use_mm_for_euclid_dist_if_necessary",
) -> Tensor: ...
def cdouble(input: Tensor, memory_format: memory_format | None = None) -> Tensor: ...
def ceil(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def ceil_(input: Tensor) -> Tensor: ...
def celu(input: Tensor, alpha: _Number = 1.0) -> Tensor: ...
def celu_(input: Tensor, alpha: _Number = 1.0) -> Tensor: ...
def cfloat(input: Tensor, memory_format: memory_format | None = None) -> Tensor: ...
def chalf(input: Tensor, memory_format: memory_format | None = None) -> Tensor: ...
def char(input: Tensor, memory_format: memory_format | None = None) -> Tensor: ...
def cholesky(input: Tensor, upper: _bool = False, *, out: Tensor | None = None) -> Tensor: ...
def cholesky_inverse(
    input: Tensor,
    upper: _bool = False,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def cholesky_solve(
    input: Tensor,
    input2: Tensor,
    upper: _bool = False,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def chunk(input: Tensor, chunks: _int, dim: _int = 0) -> tuple[Tensor, ...]: ...
def clamp(
    input: _Number,
    min: _Number | None = None,
    max: _Number | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def clamp_(input: _Number, min: _Number | None = None, max: _Number | None = None) -> Tensor: ...
def clamp_max(input: _Number, max: _Number, *, out: Tensor | None = None) -> Tensor: ...
def clamp_max_(input: _Number, max: _Number) -> Tensor: ...
def clamp_min(input: _Number, min: _Number, *, out: Tensor | None = None) -> Tensor: ...
def clamp_min_(input: _Number, min: _Number) -> Tensor: ...
def clip(
    input: _Number,
    min: _Number | None = None,
    max: _Number | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def clip_(input: _Number, min: _Number | None = None, max: _Number | None = None) -> Tensor: ...
def clone(input: Tensor, *, memory_format: memory_format | None = None) -> Tensor: ...
@overload
def column_stack(tensors: Sequence[Tensor], *, out: Tensor | None = None) -> Tensor: ...
@overload
def column_stack(*tensors: Tensor, out: Tensor | None = None) -> Tensor: ...
def combinations(input: Tensor, r: _int = 2, with_replacement: _bool = False) -> Tensor: ...
def complex(real: Tensor, imag: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def concat(tensors: Sequence[Tensor], dim: _int = 0, *, out: Tensor | None = None) -> Tensor: ...
def concatenate(
    tensors: Sequence[Tensor],
    dim: _int = 0,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def conj(input: Tensor) -> Tensor: ...
def conj_physical(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def conj_physical_(input: Tensor) -> Tensor: ...
def constant_pad_nd(input: Tensor, pad: Sequence[_int], value: _Number = 0) -> Tensor: ...
def contiguous(input: Tensor, *, memory_format: memory_format = ...) -> Tensor: ...
@overload
def conv1d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: _int | Sequence[_int] = 1,
    padding: _int | Sequence[_int] = 0,
    dilation: _int | Sequence[_int] = 1,
    groups: _int = 1,
) -> Tensor: ...
@overload
def conv1d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: _int | Sequence[_int] = 1,
    padding: _str = "valid",
    dilation: _int | Sequence[_int] = 1,
    groups: _int = 1,
) -> Tensor: ...
@overload
def conv2d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: _int | Sequence[_int] = 1,
    padding: _int | Sequence[_int] = 0,
    dilation: _int | Sequence[_int] = 1,
    groups: _int = 1,
) -> Tensor: ...
@overload
def conv2d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: _int | Sequence[_int] = 1,
    padding: _str = "valid",
    dilation: _int | Sequence[_int] = 1,
    groups: _int = 1,
) -> Tensor: ...
@overload
def conv3d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: _int | Sequence[_int] = 1,
    padding: _int | Sequence[_int] = 0,
    dilation: _int | Sequence[_int] = 1,
    groups: _int = 1,
) -> Tensor: ...
@overload
def conv3d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: _int | Sequence[_int] = 1,
    padding: _str = "valid",
    dilation: _int | Sequence[_int] = 1,
    groups: _int = 1,
) -> Tensor: ...
def conv_transpose1d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: _int | Sequence[_int] = 1,
    padding: _int | Sequence[_int] = 0,
    output_padding: _int | Sequence[_int] = 0,
    groups: _int = 1,
    dilation: _int | Sequence[_int] = 1,
) -> Tensor: ...
def conv_transpose2d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: _int | Sequence[_int] = 1,
    padding: _int | Sequence[_int] = 0,
    output_padding: _int | Sequence[_int] = 0,
    groups: _int = 1,
    dilation: _int | Sequence[_int] = 1,
) -> Tensor: ...
def conv_transpose3d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: _int | Sequence[_int] = 1,
    padding: _int | Sequence[_int] = 0,
    output_padding: _int | Sequence[_int] = 0,
    groups: _int = 1,
    dilation: _int | Sequence[_int] = 1,
) -> Tensor: ...
def copy_(input: Tensor, other: _Number, non_blocking: _bool = False) -> Tensor: ...
def copysign(input: _Number, other: _Number, *, out: Tensor | None = None) -> Tensor: ...
def copysign_(input: _Number, other: _Number) -> Tensor: ...
def corrcoef(input: Tensor) -> Tensor: ...
def cos(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def cos_(input: Tensor) -> Tensor: ...
def cosh(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def cosh_(input: Tensor) -> Tensor: ...
def count_nonzero(input: Tensor, dim: _int | Sequence[_int] | None = None) -> Tensor: ...
def cov(
    input: Tensor,
    *,
    correction: _int = 1,
    fweights: Tensor | None = None,
    aweights: Tensor | None = None,
) -> Tensor: ...
def cpu(input: Tensor, memory_format: memory_format | None = None) -> Tensor: ...
def cross(
    input: Tensor,
    other: Tensor,
    dim: _int | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def cross_entropy_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    reduction: _int = 1,
    ignore_index: _int = -100,
    label_smoothing: _float = 0.0,
) -> Tensor: ...
def cummax(
    input: Tensor,
    dim: _int,
    *,
    out: Sequence[Tensor] | None = None,
) -> return_types.cummax: ...
def cummin(
    input: Tensor,
    dim: _int,
    *,
    out: Sequence[Tensor] | None = None,
) -> return_types.cummin: ...
def cumprod(
    input: Tensor,
    dim: _int,
    *,
    dtype: _dtype | None = None,
    out: Tensor | None = None,
) -> Tensor: ...
def cumprod_(input: Tensor, dim: _int, *, dtype: _dtype | None = None) -> Tensor: ...
def cumsum(
    input: Tensor,
    dim: _int,
    *,
    dtype: _dtype | None = None,
    out: Tensor | None = None,
) -> Tensor: ...
def cumsum_(input: Tensor, dim: _int, *, dtype: _dtype | None = None) -> Tensor: ...
@overload
def cumulative_trapezoid(y: Tensor, x: Tensor, *, dim: _int = -1) -> Tensor: ...
@overload
def cumulative_trapezoid(y: Tensor, *, dx: _Number = 1, dim: _int = -1) -> Tensor: ...
def deg2rad(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def deg2rad_(input: Tensor) -> Tensor: ...
def det(input: Tensor) -> Tensor: ...
def detach(input: Tensor) -> Tensor: ...
def detach_copy(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def diag(input: Tensor, diagonal: _int = 0, *, out: Tensor | None = None) -> Tensor: ...
def diag_embed(input: Tensor, offset: _int = 0, dim1: _int = -2, dim2: _int = -1) -> Tensor: ...
def diagflat(input: Tensor, offset: _int = 0) -> Tensor: ...
def diagonal(input: Tensor, offset: _int = 0, dim1: _int = 0, dim2: _int = 1) -> Tensor: ...
def diagonal_copy(
    input: Tensor,
    offset: _int = 0,
    dim1: _int = 0,
    dim2: _int = 1,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def diagonal_scatter(
    input: Tensor,
    src: Tensor,
    offset: _int = 0,
    dim1: _int = 0,
    dim2: _int = 1,
) -> Tensor: ...
def diff(
    input: Tensor,
    n: _int = 1,
    dim: _int = -1,
    prepend: Tensor | None = None,
    append: Tensor | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def digamma(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def digamma_(input: Tensor) -> Tensor: ...
def dist(input: Tensor, other: Tensor, p: _Number = 2) -> Tensor: ...
def div(
    input: _Number,
    other: _Number,
    *,
    rounding_mode: _str | None = None,
    out: Tensor | None = None,
) -> Tensor: ...
def div_(input: _Number, other: _Number, *, rounding_mode: _str | None = None) -> Tensor: ...
def divide(
    input: _Number,
    other: _Number,
    *,
    rounding_mode: _str | None = None,
    out: Tensor | None = None,
) -> Tensor: ...
def divide_(input: _Number, other: _Number, *, rounding_mode: _str | None = None) -> Tensor: ...
def dot(input: Tensor, tensor: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def double(input: Tensor, memory_format: memory_format | None = None) -> Tensor: ...
def dropout(
    input: Tensor,
    p: _float,
    train: _bool,
    *,
    generator: Generator | None = None,
) -> Tensor: ...
def dropout_(
    input: Tensor,
    p: _float,
    train: _bool,
    *,
    generator: Generator | None = None,
) -> Tensor: ...
@overload
def dsplit(input: Tensor, sections: _int) -> tuple[Tensor, ...]: ...
@overload
def dsplit(input: Tensor, indices: Sequence[_int]) -> tuple[Tensor, ...]: ...
@overload
def dstack(tensors: Sequence[Tensor], *, out: Tensor | None = None) -> Tensor: ...
@overload
def dstack(*tensors: Tensor, out: Tensor | None = None) -> Tensor: ...
def elu(input: Tensor, alpha: _Number = 1.0) -> Tensor: ...
def elu_(input: Tensor, alpha: _Number = 1.0) -> Tensor: ...
def embedding(weight: Tensor, indices: Tensor, padding_idx: _int = -1) -> Tensor: ...
def embedding_dense_backward(
    grad: Tensor,
    indices: Tensor,
    num_weights: _int,
    padding_idx: _int,
) -> Tensor: ...
def embedding_renorm_(
    input: Tensor,
    indices: Tensor,
    max_norm: _float,
    norm_type: _float,
) -> Tensor: ...
@overload
def empty(
    size: Sequence[_int],
    *,
    dtype: _dtype | None = None,
    device: _Device = None,
    requires_grad: _bool = False,
    memory_format: memory_format | None = None,
    out: Tensor | None = None,
    layout: _layout | None = None,
    pin_memory: _bool = False,
) -> Tensor: ...
@overload
def empty(
    *size: _int,
    dtype: _dtype | None = None,
    device: _Device = None,
    requires_grad: _bool = False,
    memory_format: memory_format | None = None,
    out: Tensor | None = None,
    layout: _layout | None = None,
    pin_memory: _bool = False,
) -> Tensor: ...
def empty_like(
    input: Tensor,
    *,
    dtype: _dtype | None = None,
    device: _Device = None,
    requires_grad: _bool = False,
    memory_format: memory_format | None = None,
    layout: _layout | None = None,
    pin_memory: _bool = False,
) -> Tensor: ...
def empty_strided(
    size: Sequence[_int],
    stride: Sequence[_int],
    *,
    dtype: _dtype | None = None,
    device: _Device = None,
    requires_grad: _bool = False,
    layout: _layout | None = None,
    pin_memory: _bool = False,
) -> Tensor: ...
def eq(input: _Number, other: _Number, *, out: Tensor | None = None) -> Tensor: ...
def eq_(input: _Number, other: _Number) -> Tensor: ...
def equal(input: Tensor, other: Tensor) -> _bool: ...
def erf(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def erf_(input: Tensor) -> Tensor: ...
def erfc(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def erfc_(input: Tensor) -> Tensor: ...
def erfinv(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def erfinv_(input: Tensor) -> Tensor: ...
def exp(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def exp2(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def exp2_(input: Tensor) -> Tensor: ...
def exp_(input: Tensor) -> Tensor: ...
def expand(input: Tensor, size: Sequence[_int], *, implicit: _bool = False) -> Tensor: ...
def expand_as(input: Tensor, other: Tensor) -> Tensor: ...
def expand_copy(
    input: Tensor,
    size: Sequence[_int],
    *,
    implicit: _bool = False,
    out: Tensor | None = None,
) -> Tensor: ...
def expm1(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def expm1_(input: Tensor) -> Tensor: ...
def exponential_(
    input: Tensor,
    lambd: _float = 1,
    *,
    generator: Generator | None = None,
) -> Tensor: ...
@overload
def eye(
    n: _int,
    *,
    dtype: _dtype | None = None,
    device: _Device = None,
    requires_grad: _bool = False,
    out: Tensor | None = None,
    layout: _layout | None = None,
    pin_memory: _bool = False,
) -> Tensor: ...
@overload
def eye(
    n: _int,
    m: _int,
    *,
    dtype: _dtype | None = None,
    device: _Device = None,
    requires_grad: _bool = False,
    out: Tensor | None = None,
    layout: _layout | None = None,
    pin_memory: _bool = False,
) -> Tensor: ...
def feature_alpha_dropout(
    input: Tensor,
    p: _float,
    train: _bool,
    *,
    generator: Generator | None = None,
) -> Tensor: ...
def feature_dropout(
    input: Tensor,
    p: _float,
    train: _bool,
    *,
    generator: Generator | None = None,
) -> Tensor: ...
def fft_fft(
    input: Tensor,
    n: _int | None = None,
    dim: _int = -1,
    norm: _str | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def fft_fft2(
    input: Tensor,
    s: _int | Sequence[_int] | None = None,
    dim: _int | Sequence[_int] | None = ...,
    norm: _str | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def fft_fftfreq(
    n: _int,
    d: _float = 1.0,
    *,
    dtype: _dtype | None = None,
    device: _Device = None,
    requires_grad: _bool = False,
    out: Tensor | None = None,
    layout: _layout | None = None,
    pin_memory: _bool = False,
) -> Tensor: ...
def fft_fftn(
    input: Tensor,
    s: _int | Sequence[_int] | None = None,
    dim: _int | Sequence[_int] | None = None,
    norm: _str | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def fft_fftshift(input: Tensor, dim: _int | Sequence[_int] | None = None) -> Tensor: ...
def fft_hfft(
    input: Tensor,
    n: _int | None = None,
    dim: _int = -1,
    norm: _str | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def fft_hfft2(
    input: Tensor,
    s: _int | Sequence[_int] | None = None,
    dim: _int | Sequence[_int] | None = ...,
    norm: _str | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def fft_hfftn(
    input: Tensor,
    s: _int | Sequence[_int] | None = None,
    dim: _int | Sequence[_int] | None = None,
    norm: _str | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def fft_ifft(
    input: Tensor,
    n: _int | None = None,
    dim: _int = -1,
    norm: _str | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def fft_ifft2(
    input: Tensor,
    s: _int | Sequence[_int] | None = None,
    dim: _int | Sequence[_int] | None = ...,
    norm: _str | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def fft_ifftn(
    input: Tensor,
    s: _int | Sequence[_int] | None = None,
    dim: _int | Sequence[_int] | None = None,
    norm: _str | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def fft_ifftshift(input: Tensor, dim: _int | Sequence[_int] | None = None) -> Tensor: ...
def fft_ihfft(
    input: Tensor,
    n: _int | None = None,
    dim: _int = -1,
    norm: _str | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def fft_ihfft2(
    input: Tensor,
    s: _int | Sequence[_int] | None = None,
    dim: _int | Sequence[_int] | None = ...,
    norm: _str | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def fft_ihfftn(
    input: Tensor,
    s: _int | Sequence[_int] | None = None,
    dim: _int | Sequence[_int] | None = None,
    norm: _str | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def fft_irfft(
    input: Tensor,
    n: _int | None = None,
    dim: _int = -1,
    norm: _str | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def fft_irfft2(
    input: Tensor,
    s: _int | Sequence[_int] | None = None,
    dim: _int | Sequence[_int] | None = ...,
    norm: _str | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def fft_irfftn(
    input: Tensor,
    s: _int | Sequence[_int] | None = None,
    dim: _int | Sequence[_int] | None = None,
    norm: _str | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def fft_rfft(
    input: Tensor,
    n: _int | None = None,
    dim: _int = -1,
    norm: _str | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def fft_rfft2(
    input: Tensor,
    s: _int | Sequence[_int] | None = None,
    dim: _int | Sequence[_int] | None = ...,
    norm: _str | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def fft_rfftfreq(
    n: _int,
    d: _float = 1.0,
    *,
    dtype: _dtype | None = None,
    device: _Device = None,
    requires_grad: _bool = False,
    out: Tensor | None = None,
    layout: _layout | None = None,
    pin_memory: _bool = False,
) -> Tensor: ...
def fft_rfftn(
    input: Tensor,
    s: _int | Sequence[_int] | None = None,
    dim: _int | Sequence[_int] | None = None,
    norm: _str | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def fill(input: _Number, value: _Number) -> Tensor: ...
def fill_(input: Tensor, value: _Number) -> Tensor: ...
def fix(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def fix_(input: Tensor) -> Tensor: ...
def flatten(input: Tensor, start_dim: _int = 0, end_dim: _int = -1) -> Tensor: ...
def flip(input: Tensor, dims: Sequence[_int]) -> Tensor: ...
def fliplr(input: Tensor) -> Tensor: ...
def flipud(input: Tensor) -> Tensor: ...
def float(input: Tensor, memory_format: memory_format | None = None) -> Tensor: ...
def float_power(input: _Number, exponent: _Number, *, out: Tensor | None = None) -> Tensor: ...
def float_power_(input: Tensor, exponent: _Number) -> Tensor: ...
def floor(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def floor_(input: Tensor) -> Tensor: ...
def floor_divide(input: _Number, other: _Number, *, out: Tensor | None = None) -> Tensor: ...
def floor_divide_(input: _Number, other: _Number) -> Tensor: ...
def fmax(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def fmin(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def fmod(input: _Number, other: _Number, *, out: Tensor | None = None) -> Tensor: ...
def fmod_(input: _Number, other: _Number) -> Tensor: ...
def frac(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def frac_(input: Tensor) -> Tensor: ...
def frexp(input: Tensor, *, out: Sequence[Tensor] | None = None) -> return_types.frexp: ...
def full(
    size: Sequence[_int],
    fill_value: _Number,
    *,
    dtype: _dtype | None = None,
    device: _Device = None,
    requires_grad: _bool = False,
    out: Tensor | None = None,
    layout: _layout | None = None,
    pin_memory: _bool = False,
) -> Tensor: ...
def full_like(
    input: Tensor,
    fill_value: _Number,
    *,
    dtype: _dtype | None = None,
    device: _Device = None,
    requires_grad: _bool = False,
    memory_format: memory_format | None = None,
    layout: _layout | None = None,
    pin_memory: _bool = False,
) -> Tensor: ...
def gather(
    input: Tensor,
    dim: _int,
    index: Tensor,
    *,
    sparse_grad: _bool = False,
    out: Tensor | None = None,
) -> Tensor: ...
def gcd(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def gcd_(input: Tensor, other: Tensor) -> Tensor: ...
def ge(input: _Number, other: _Number, *, out: Tensor | None = None) -> Tensor: ...
def ge_(input: _Number, other: _Number) -> Tensor: ...
def gelu(input: Tensor, *, approximate: _str = "none", out: Tensor | None = None) -> Tensor: ...
def geometric_(input: Tensor, p: _float, *, generator: Generator | None = None) -> Tensor: ...
def geqrf(input: Tensor, *, out: Sequence[Tensor] | None = None) -> return_types.geqrf: ...
def ger(input: Tensor, vec2: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def greater(input: _Number, other: _Number, *, out: Tensor | None = None) -> Tensor: ...
def greater_(input: _Number, other: _Number) -> Tensor: ...
def greater_equal(input: _Number, other: _Number, *, out: Tensor | None = None) -> Tensor: ...
def greater_equal_(input: _Number, other: _Number) -> Tensor: ...
def group_norm(
    input: Tensor,
    num_groups: _int,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: _float = 1e-05,
) -> Tensor: ...
def gt(input: _Number, other: _Number, *, out: Tensor | None = None) -> Tensor: ...
def gt_(input: _Number, other: _Number) -> Tensor: ...
def half(input: Tensor, memory_format: memory_format | None = None) -> Tensor: ...
def hamming_window(
    window_length: _int,
    periodic: _bool = True,
    alpha: _float = 0.54,
    beta: _float = 0.46,
    *,
    dtype: _dtype | None = None,
    device: _Device = None,
    requires_grad: _bool = False,
    layout: _layout | None = None,
    pin_memory: _bool = False,
) -> Tensor: ...
def hann_window(
    window_length: _int,
    periodic: _bool = True,
    *,
    dtype: _dtype | None = None,
    device: _Device = None,
    requires_grad: _bool = False,
    layout: _layout | None = None,
    pin_memory: _bool = False,
) -> Tensor: ...
def hardshrink(input: Tensor, lambd: _Number = 0.5, *, out: Tensor | None = None) -> Tensor: ...
def hardsigmoid(input: Tensor) -> Tensor: ...
def hardsigmoid_(input: Tensor) -> Tensor: ...
def hardswish(input: Tensor) -> Tensor: ...
def hardswish_(input: Tensor) -> Tensor: ...
def hardtanh(input: Tensor, min_val: _Number = -1.0, max_val: _Number = 1.0) -> Tensor: ...
def hardtanh_(input: Tensor, min_val: _Number = -1.0, max_val: _Number = 1.0) -> Tensor: ...
def heaviside(input: Tensor, values: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def heaviside_(input: Tensor, values: Tensor) -> Tensor: ...
def histc(
    input: Tensor,
    bins: _int = 100,
    min: _Number = 0,
    max: _Number = 0,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def histogram(
    input: Tensor,
    bins: Tensor,
    *,
    weight: Tensor | None = None,
    density: _bool = False,
    out: Sequence[Tensor] | None = None,
) -> return_types.histogram: ...
@overload
def histogram(
    input: Tensor,
    bins: _int = 100,
    *,
    range: Sequence[_float] | None = None,
    weight: Tensor | None = None,
    density: _bool = False,
    out: Sequence[Tensor] | None = None,
) -> return_types.histogram: ...
@overload
def hsplit(input: Tensor, sections: _int) -> tuple[Tensor, ...]: ...
@overload
def hsplit(input: Tensor, indices: Sequence[_int]) -> tuple[Tensor, ...]: ...
@overload
def hstack(tensors: Sequence[Tensor], *, out: Tensor | None = None) -> Tensor: ...
@overload
def hstack(*tensors: Tensor, out: Tensor | None = None) -> Tensor: ...
def huber_loss(
    input: Tensor,
    target: Tensor,
    reduction: _int = 1,
    delta: _float = 1.0,
) -> Tensor: ...
def hypot(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def hypot_(input: Tensor, other: Tensor) -> Tensor: ...
def i0(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def i0_(input: Tensor) -> Tensor: ...
def igamma(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def igamma_(input: Tensor, other: Tensor) -> Tensor: ...
def igammac(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def igammac_(input: Tensor, other: Tensor) -> Tensor: ...
def imag(input: Tensor) -> Tensor: ...
def index(input: Tensor, indices: Sequence[Tensor | None]) -> Tensor: ...
def index_add(
    input: Tensor,
    dim: _int,
    index: Tensor,
    source: Tensor,
    *,
    alpha: _Number = 1,
    out: Tensor | None = None,
) -> Tensor: ...
def index_add_(
    input: Tensor,
    dim: _int,
    index: Tensor,
    source: Tensor,
    *,
    alpha: _Number = 1,
) -> Tensor: ...
def index_copy(
    input: Tensor,
    dim: _int,
    index: Tensor,
    source: Tensor,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def index_copy_(input: Tensor, dim: _int, index: Tensor, source: Tensor) -> Tensor: ...
@overload
def index_fill(input: _Number, dim: _int, index: _Number, value: _complex) -> Tensor: ...
@overload
def index_fill(input: _Number, dim: _int, index: _Number, value: _Number) -> Tensor: ...
@overload
def index_fill_(input: _Number, dim: _int, index: _Number, value: _complex) -> Tensor: ...
@overload
def index_fill_(input: _Number, dim: _int, index: _Number, value: _Number) -> Tensor: ...
def index_put(
    input: Tensor,
    indices: Sequence[Tensor | None],
    values: Tensor,
    accumulate: _bool = False,
) -> Tensor: ...
def index_put_(
    input: Tensor,
    indices: Sequence[Tensor | None],
    values: Tensor,
    accumulate: _bool = False,
) -> Tensor: ...
def index_reduce(
    input: Tensor,
    dim: _int,
    index: Tensor,
    source: Tensor,
    reduce: _str,
    *,
    include_self: _bool = True,
    out: Tensor | None = None,
) -> Tensor: ...
def index_reduce_(
    input: Tensor,
    dim: _int,
    index: Tensor,
    source: Tensor,
    reduce: _str,
    *,
    include_self: _bool = True,
) -> Tensor: ...
def index_select(
    input: Tensor,
    dim: _int,
    index: Tensor,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def inner(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def int(input: Tensor, memory_format: memory_format | None = None) -> Tensor: ...
def inverse(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def isclose(
    input: Tensor,
    other: Tensor,
    rtol: _float = 1e-05,
    atol: _float = 1e-08,
    equal_nan: _bool = False,
) -> Tensor: ...
def isfinite(input: Tensor) -> Tensor: ...
@overload
def isin(
    elements: _Number,
    test_elements: _Number,
    *,
    assume_unique: _bool = False,
    invert: _bool = False,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def isin(
    elements: _Number,
    test_element: _Number,
    *,
    assume_unique: _bool = False,
    invert: _bool = False,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def isin(
    element: _Number,
    test_elements: _Number,
    *,
    assume_unique: _bool = False,
    invert: _bool = False,
    out: Tensor | None = None,
) -> Tensor: ...
def isinf(input: Tensor) -> Tensor: ...
def isnan(input: Tensor) -> Tensor: ...
def isneginf(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def isposinf(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def isreal(input: Tensor) -> Tensor: ...
def istft(
    input: Tensor,
    n_fft: _int,
    hop_length: _int | None = None,
    win_length: _int | None = None,
    window: Tensor | None = None,
    center: _bool = True,
    normalized: _bool = False,
    onesided: _bool | None = None,
    length: _int | None = None,
    return_complex: _bool = False,
) -> Tensor: ...
def kaiser_window(
    window_length: _int,
    periodic: _bool = True,
    beta: _float = 12.0,
    *,
    dtype: _dtype | None = None,
    device: _Device = None,
    requires_grad: _bool = False,
    layout: _layout | None = None,
    pin_memory: _bool = False,
) -> Tensor: ...
def kl_div(
    input: Tensor,
    target: Tensor,
    reduction: _int = 1,
    *,
    log_target: _bool = False,
) -> Tensor: ...
def kron(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def kthvalue(
    input: Tensor,
    k: _int,
    dim: _int = -1,
    keepdim: _bool = False,
    *,
    out: Sequence[Tensor] | None = None,
) -> return_types.kthvalue: ...
def l1_loss(input: Tensor, target: Tensor, reduction: _int = 1) -> Tensor: ...
def layer_norm(
    input: Tensor,
    normalized_shape: Sequence[_int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: _float = 1e-05,
) -> Tensor: ...
def lcm(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def lcm_(input: Tensor, other: Tensor) -> Tensor: ...
def ldexp(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def ldexp_(input: Tensor, other: Tensor) -> Tensor: ...
def le(input: _Number, other: _Number, *, out: Tensor | None = None) -> Tensor: ...
def le_(input: _Number, other: _Number) -> Tensor: ...
def leaky_relu(input: Tensor, negative_slope: _Number = 0.01) -> Tensor: ...
def leaky_relu_(input: Tensor, negative_slope: _Number = 0.01) -> Tensor: ...
def lerp(input: _Number, end: _Number, weight: _Number, *, out: Tensor | None = None) -> Tensor: ...
def lerp_(input: _Number, end: _Number, weight: _Number) -> Tensor: ...
def less(input: _Number, other: _Number, *, out: Tensor | None = None) -> Tensor: ...
def less_(input: _Number, other: _Number) -> Tensor: ...
def less_equal(input: _Number, other: _Number, *, out: Tensor | None = None) -> Tensor: ...
def less_equal_(input: _Number, other: _Number) -> Tensor: ...
def lgamma(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def lgamma_(input: Tensor) -> Tensor: ...
def linalg_cholesky(
    input: Tensor,
    *,
    upper: _bool = False,
    out: Tensor | None = None,
) -> Tensor: ...
def linalg_cholesky_ex(
    input: Tensor,
    *,
    upper: _bool = False,
    check_errors: _bool = False,
    out: Sequence[Tensor] | None = None,
) -> return_types.linalg_cholesky_ex: ...
@overload
def linalg_cond(
    input: Tensor,
    p: _Number | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def linalg_cond(input: Tensor, p: _str, *, out: Tensor | None = None) -> Tensor: ...
def linalg_cross(
    input: Tensor,
    other: Tensor,
    *,
    dim: _int = -1,
    out: Tensor | None = None,
) -> Tensor: ...
def linalg_det(A: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def linalg_diagonal(A: Tensor, *, offset: _int = 0, dim1: _int = -2, dim2: _int = -1) -> Tensor: ...
def linalg_eig(
    input: Tensor,
    *,
    out: Sequence[Tensor] | None = None,
) -> return_types.linalg_eig: ...
def linalg_eigh(
    input: Tensor,
    UPLO: _str = "L",
    *,
    out: Sequence[Tensor] | None = None,
) -> return_types.linalg_eigh: ...
def linalg_eigvals(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def linalg_eigvalsh(input: Tensor, UPLO: _str = "L", *, out: Tensor | None = None) -> Tensor: ...
def linalg_householder_product(
    input: Tensor,
    tau: Tensor,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def linalg_inv(A: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def linalg_inv_ex(
    A: Tensor,
    *,
    check_errors: _bool = False,
    out: Sequence[Tensor] | None = None,
) -> return_types.linalg_inv_ex: ...
def linalg_ldl_factor(
    input: Tensor,
    *,
    hermitian: _bool = False,
    out: Sequence[Tensor] | None = None,
) -> return_types.linalg_ldl_factor: ...
def linalg_ldl_factor_ex(
    input: Tensor,
    *,
    hermitian: _bool = False,
    check_errors: _bool = False,
    out: Sequence[Tensor] | None = None,
) -> return_types.linalg_ldl_factor_ex: ...
def linalg_ldl_solve(
    LD: Tensor,
    pivots: Tensor,
    B: Tensor,
    *,
    hermitian: _bool = False,
    out: Tensor | None = None,
) -> Tensor: ...
def linalg_lstsq(
    input: Tensor,
    b: Tensor,
    rcond: _float | None = None,
    *,
    driver: _str | None = None,
    out: Sequence[Tensor] | None = None,
) -> return_types.linalg_lstsq: ...
def linalg_lu(
    A: Tensor,
    *,
    pivot: _bool = True,
    out: Sequence[Tensor] | None = None,
) -> return_types.linalg_lu: ...
def linalg_lu_factor(
    A: Tensor,
    *,
    pivot: _bool = True,
    out: Sequence[Tensor] | None = None,
) -> return_types.linalg_lu_factor: ...
def linalg_lu_factor_ex(
    A: Tensor,
    *,
    pivot: _bool = True,
    check_errors: _bool = False,
    out: Sequence[Tensor] | None = None,
) -> return_types.linalg_lu_factor_ex: ...
def linalg_lu_solve(
    LU: Tensor,
    pivots: Tensor,
    B: Tensor,
    *,
    left: _bool = True,
    adjoint: _bool = False,
    out: Tensor | None = None,
) -> Tensor: ...
def linalg_matmul(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def linalg_matrix_exp(input: Tensor) -> Tensor: ...
@overload
def linalg_matrix_norm(
    input: Tensor,
    ord: _Number,
    dim: Sequence[_int] = ...,
    keepdim: _bool = False,
    *,
    dtype: _dtype | None = None,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def linalg_matrix_norm(
    input: Tensor,
    ord: _str = "fro",
    dim: Sequence[_int] = ...,
    keepdim: _bool = False,
    *,
    dtype: _dtype | None = None,
    out: Tensor | None = None,
) -> Tensor: ...
def linalg_matrix_power(input: Tensor, n: _int, *, out: Tensor | None = None) -> Tensor: ...
@overload
def linalg_matrix_rank(
    input: Tensor,
    *,
    atol: Tensor | None = None,
    rtol: Tensor | None = None,
    hermitian: _bool = False,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def linalg_matrix_rank(
    input: Tensor,
    *,
    atol: _float | None = None,
    rtol: _float | None = None,
    hermitian: _bool = False,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def linalg_matrix_rank(
    input: Tensor,
    tol: Tensor,
    hermitian: _bool = False,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def linalg_matrix_rank(
    input: Tensor,
    tol: _float,
    hermitian: _bool = False,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def linalg_multi_dot(tensors: Sequence[Tensor], *, out: Tensor | None = None) -> Tensor: ...
@overload
def linalg_multi_dot(*tensors: Tensor, out: Tensor | None = None) -> Tensor: ...
@overload
def linalg_norm(
    input: Tensor,
    ord: _Number | None = None,
    dim: _int | Sequence[_int] | None = None,
    keepdim: _bool = False,
    *,
    dtype: _dtype | None = None,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def linalg_norm(
    input: Tensor,
    ord: _str,
    dim: _int | Sequence[_int] | None = None,
    keepdim: _bool = False,
    *,
    dtype: _dtype | None = None,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def linalg_pinv(
    input: Tensor,
    *,
    atol: Tensor | None = None,
    rtol: Tensor | None = None,
    hermitian: _bool = False,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def linalg_pinv(
    input: Tensor,
    *,
    atol: _float | None = None,
    rtol: _float | None = None,
    hermitian: _bool = False,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def linalg_pinv(
    input: Tensor,
    rcond: Tensor,
    hermitian: _bool = False,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def linalg_pinv(
    input: Tensor,
    rcond: _float,
    hermitian: _bool = False,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def linalg_qr(
    A: Tensor,
    mode: _str = "reduced",
    *,
    out: Sequence[Tensor] | None = None,
) -> return_types.linalg_qr: ...
def linalg_slogdet(
    A: Tensor,
    *,
    out: Sequence[Tensor] | None = None,
) -> return_types.linalg_slogdet: ...
def linalg_solve(
    A: Tensor,
    B: Tensor,
    *,
    left: _bool = True,
    out: Tensor | None = None,
) -> Tensor: ...
def linalg_solve_ex(
    A: Tensor,
    B: Tensor,
    *,
    left: _bool = True,
    check_errors: _bool = False,
    out: Sequence[Tensor] | None = None,
) -> return_types.linalg_solve_ex: ...
def linalg_solve_triangular(
    input: Tensor,
    B: Tensor,
    *,
    upper: _bool,
    left: _bool = True,
    unitriangular: _bool = False,
    out: Tensor | None = None,
) -> Tensor: ...
def linalg_svd(
    A: Tensor,
    full_matrices: _bool = True,
    *,
    driver: _str | None = None,
    out: Sequence[Tensor] | None = None,
) -> return_types.linalg_svd: ...
def linalg_svdvals(
    A: Tensor,
    *,
    driver: _str | None = None,
    out: Tensor | None = None,
) -> Tensor: ...
def linalg_tensorinv(input: Tensor, ind: _int = 2, *, out: Tensor | None = None) -> Tensor: ...
def linalg_tensorsolve(
    input: Tensor,
    other: Tensor,
    dims: Sequence[_int] | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def linalg_vander(x: Tensor, *, N: _int | None = None) -> Tensor: ...
def linalg_vecdot(x: Tensor, y: Tensor, *, dim: _int = -1, out: Tensor | None = None) -> Tensor: ...
def linalg_vector_norm(
    input: Tensor,
    ord: _Number = 2,
    dim: _int | Sequence[_int] | None = None,
    keepdim: _bool = False,
    *,
    dtype: _dtype | None = None,
    out: Tensor | None = None,
) -> Tensor: ...
def linear(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def linspace(
    start: _complex,
    end: _complex,
    steps: _int,
    *,
    dtype: _dtype | None = None,
    device: _Device = None,
    requires_grad: _bool = False,
    out: Tensor | None = None,
    layout: _layout | None = None,
    pin_memory: _bool = False,
) -> Tensor: ...
@overload
def linspace(
    start: Tensor,
    end: Tensor,
    steps: _int,
    *,
    dtype: _dtype | None = None,
    device: _Device = None,
    requires_grad: _bool = False,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def linspace(
    start: Tensor,
    end: _complex,
    steps: _int,
    *,
    dtype: _dtype | None = None,
    device: _Device = None,
    requires_grad: _bool = False,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def linspace(
    start: _complex,
    end: Tensor,
    steps: _int,
    *,
    dtype: _dtype | None = None,
    device: _Device = None,
    requires_grad: _bool = False,
    out: Tensor | None = None,
    layout: _layout | None = None,
    pin_memory: _bool = False,
) -> Tensor: ...
def log(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def log10(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def log10_(input: Tensor) -> Tensor: ...
def log1p(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def log1p_(input: Tensor) -> Tensor: ...
def log2(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def log2_(input: Tensor) -> Tensor: ...
def log_(input: Tensor) -> Tensor: ...
def log_normal_(
    input: Tensor,
    mean: _float = 1,
    std: _float = 2,
    *,
    generator: Generator | None = None,
) -> Tensor: ...
def log_softmax(
    input: Tensor,
    dim: _int,
    dtype: _dtype | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def logaddexp(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def logaddexp2(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def logcumsumexp(input: Tensor, dim: _int, *, out: Tensor | None = None) -> Tensor: ...
def logdet(input: Tensor) -> Tensor: ...
def logical_and(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def logical_and_(input: Tensor, other: Tensor) -> Tensor: ...
def logical_not(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def logical_not_(input: Tensor) -> Tensor: ...
def logical_or(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def logical_or_(input: Tensor, other: Tensor) -> Tensor: ...
def logical_xor(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def logical_xor_(input: Tensor, other: Tensor) -> Tensor: ...
def logit(input: Tensor, eps: _float | None = None, *, out: Tensor | None = None) -> Tensor: ...
def logit_(input: Tensor, eps: _float | None = None) -> Tensor: ...
def logsigmoid(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def logspace(
    start: _complex,
    end: _complex,
    steps: _int,
    base: _float = 10.0,
    *,
    dtype: _dtype | None = None,
    device: _Device = None,
    requires_grad: _bool = False,
    out: Tensor | None = None,
    layout: _layout | None = None,
    pin_memory: _bool = False,
) -> Tensor: ...
@overload
def logspace(
    start: Tensor,
    end: Tensor,
    steps: _int,
    base: _float = 10.0,
    *,
    dtype: _dtype | None = None,
    device: _Device = None,
    requires_grad: _bool = False,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def logspace(
    start: Tensor,
    end: _complex,
    steps: _int,
    base: _float = 10.0,
    *,
    dtype: _dtype | None = None,
    device: _Device = None,
    requires_grad: _bool = False,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def logspace(
    start: _complex,
    end: Tensor,
    steps: _int,
    base: _float = 10.0,
    *,
    dtype: _dtype | None = None,
    device: _Device = None,
    requires_grad: _bool = False,
    out: Tensor | None = None,
    layout: _layout | None = None,
    pin_memory: _bool = False,
) -> Tensor: ...
def logsumexp(
    input: Tensor,
    dim: _int | Sequence[_int],
    keepdim: _bool = False,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def long(input: Tensor, memory_format: memory_format | None = None) -> Tensor: ...
def lt(input: _Number, other: _Number, *, out: Tensor | None = None) -> Tensor: ...
def lt_(input: _Number, other: _Number) -> Tensor: ...
def lu(input: Tensor, pivot: _bool = True, get_infos: _bool = False) -> tuple[Tensor, ...]: ...
def lu_solve(
    input: Tensor,
    LU_data: Tensor,
    LU_pivots: Tensor,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def lu_unpack(
    LU_data: Tensor,
    LU_pivots: Tensor,
    unpack_data: _bool = True,
    unpack_pivots: _bool = True,
    *,
    out: Sequence[Tensor] | None = None,
) -> return_types.lu_unpack: ...
def masked_fill(input: _Number, mask: _Number, value: _Number) -> Tensor: ...
def masked_fill_(input: _Number, mask: _Number, value: _Number) -> Tensor: ...
def masked_scatter(input: Tensor, mask: Tensor, source: Tensor) -> Tensor: ...
def masked_scatter_(input: Tensor, mask: Tensor, source: Tensor) -> Tensor: ...
def masked_select(input: Tensor, mask: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def matmul(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def matrix_exp(input: Tensor) -> Tensor: ...
def matrix_power(input: Tensor, n: _int, *, out: Tensor | None = None) -> Tensor: ...
@overload
def max(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def max(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def max(
    input: Tensor,
    dim: _int,
    keepdim: _bool = False,
    *,
    out: Sequence[Tensor] | None = None,
) -> return_types.max: ...
def max_pool1d(
    input: Tensor,
    kernel_size: _int | Sequence[_int],
    stride: _int | Sequence[_int] | None = ...,
    padding: _int | Sequence[_int] = 0,
    dilation: _int | Sequence[_int] = 1,
    ceil_mode: _bool = False,
) -> Tensor: ...
def max_pool1d_with_indices(
    input: Tensor,
    kernel_size: _int | Sequence[_int],
    stride: _int | Sequence[_int] | None = ...,
    padding: _int | Sequence[_int] = 0,
    dilation: _int | Sequence[_int] = 1,
    ceil_mode: _bool = False,
) -> tuple[Tensor, Tensor]: ...
def max_pool2d(
    input: Tensor,
    kernel_size: _int | Sequence[_int],
    stride: _int | Sequence[_int] | None = ...,
    padding: _int | Sequence[_int] = 0,
    dilation: _int | Sequence[_int] = 1,
    ceil_mode: _bool = False,
) -> Tensor: ...
def max_pool2d_with_indices(
    input: Tensor,
    kernel_size: _int | Sequence[_int],
    stride: _int | Sequence[_int] | None = ...,
    padding: _int | Sequence[_int] = 0,
    dilation: _int | Sequence[_int] = 1,
    ceil_mode: _bool = False,
) -> tuple[Tensor, Tensor]: ...
def max_pool2d_with_indices_backward(
    grad: Tensor,
    input: Tensor,
    kernel_size: _int | Sequence[_int],
    stride: _int | Sequence[_int],
    padding: _int | Sequence[_int],
    dilation: _int | Sequence[_int],
    ceil_mode: _bool,
    indices: Tensor,
) -> Tensor: ...
def max_pool3d(
    input: Tensor,
    kernel_size: _int | Sequence[_int],
    stride: _int | Sequence[_int] | None = ...,
    padding: _int | Sequence[_int] = 0,
    dilation: _int | Sequence[_int] = 1,
    ceil_mode: _bool = False,
) -> Tensor: ...
def max_pool3d_with_indices(
    input: Tensor,
    kernel_size: _int | Sequence[_int],
    stride: _int | Sequence[_int] | None = ...,
    padding: _int | Sequence[_int] = 0,
    dilation: _int | Sequence[_int] = 1,
    ceil_mode: _bool = False,
) -> tuple[Tensor, Tensor]: ...
def maximum(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def mean(
    input: Tensor,
    dim: _int | Sequence[_int] | None = None,
    keepdim: _bool = False,
    *,
    dtype: _dtype | None = None,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def median(input: Tensor) -> Tensor: ...
@overload
def median(
    input: Tensor,
    dim: _int,
    keepdim: _bool = False,
    *,
    out: Sequence[Tensor] | None = None,
) -> return_types.median: ...
@overload
def meshgrid(tensors: Sequence[Tensor], *, indexing: _str | None = None) -> tuple[Tensor, ...]: ...
@overload
def meshgrid(*tensors: Tensor, indexing: _str | None = None) -> tuple[Tensor, ...]: ...
@overload
def min(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def min(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def min(
    input: Tensor,
    dim: _int,
    keepdim: _bool = False,
    *,
    out: Sequence[Tensor] | None = None,
) -> return_types.min: ...
def minimum(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def mish(input: Tensor) -> Tensor: ...
def mish_(input: Tensor) -> Tensor: ...
def mm(input: Tensor, mat2: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def mode(
    input: Tensor,
    dim: _int = -1,
    keepdim: _bool = False,
    *,
    out: Sequence[Tensor] | None = None,
) -> return_types.mode: ...
def moveaxis(
    input: Tensor,
    source: _int | Sequence[_int],
    destination: _int | Sequence[_int],
) -> Tensor: ...
def movedim(
    input: Tensor,
    source: _int | Sequence[_int],
    destination: _int | Sequence[_int],
) -> Tensor: ...
def mse_loss(input: Tensor, target: Tensor, reduction: _int = 1) -> Tensor: ...
def msort(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def mul(input: _Number, other: _Number, *, out: Tensor | None = None) -> Tensor: ...
def mul_(input: _Number, other: _Number) -> Tensor: ...
def multi_margin_loss(
    input: Tensor,
    target: Tensor,
    p: _float = 1.0,
    margin: _float = 1.0,
    weight: Tensor | None = None,
    reduction: _int = 1,
) -> Tensor: ...
def multilabel_margin_loss(input: Tensor, target: Tensor, reduction: _int = 1) -> Tensor: ...
def multinomial(
    input: Tensor,
    num_samples: _int,
    replacement: _bool = False,
    *,
    generator: Generator | None = None,
    out: Tensor | None = None,
) -> Tensor: ...
def multiply(input: _Number, other: _Number, *, out: Tensor | None = None) -> Tensor: ...
def multiply_(input: _Number, other: _Number) -> Tensor: ...
def mv(input: Tensor, vec: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def mvlgamma(input: Tensor, p: _int, *, out: Tensor | None = None) -> Tensor: ...
def mvlgamma_(input: Tensor, p: _int) -> Tensor: ...
def nan_to_num(
    input: Tensor,
    nan: _float | None = None,
    posinf: _float | None = None,
    neginf: _float | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def nan_to_num_(
    input: Tensor,
    nan: _float | None = None,
    posinf: _float | None = None,
    neginf: _float | None = None,
) -> Tensor: ...
def nanmean(
    input: Tensor,
    dim: _int | Sequence[_int] | None = None,
    keepdim: _bool = False,
    *,
    dtype: _dtype | None = None,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def nanmedian(input: Tensor) -> Tensor: ...
@overload
def nanmedian(
    input: Tensor,
    dim: _int,
    keepdim: _bool = False,
    *,
    out: Sequence[Tensor] | None = None,
) -> return_types.nanmedian: ...
@overload
def nanquantile(
    input: Tensor,
    q: Tensor,
    dim: _int | None = None,
    keepdim: _bool = False,
    *,
    interpolation: _str = "linear",
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def nanquantile(
    input: Tensor,
    q: _float,
    dim: _int | None = None,
    keepdim: _bool = False,
    *,
    interpolation: _str = "linear",
    out: Tensor | None = None,
) -> Tensor: ...
def nansum(
    input: Tensor,
    dim: _int | Sequence[_int] | None = None,
    keepdim: _bool = False,
    *,
    dtype: _dtype | None = None,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def narrow(input: Tensor, dim: _int, start: _int, length: _int) -> Tensor: ...
@overload
def narrow(input: Tensor, dim: _int, start: Tensor, length: _int) -> Tensor: ...
def narrow_copy(
    input: Tensor,
    dim: _int,
    start: _int,
    length: _int,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def native_batch_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    training: _bool,
    momentum: _float,
    eps: _float,
) -> tuple[Tensor, Tensor, Tensor]: ...
def native_batch_norm_backward(
    grad: Tensor,
    input: Tensor,
    weight: Tensor | None,
    mean: Tensor,
    invstd: Tensor,
    training: _bool,
) -> tuple[Tensor, Tensor, Tensor]: ...
def native_dropout(
    input: Tensor,
    p: _float,
    generator: Generator | None,
) -> tuple[Tensor, Tensor]: ...
def native_dropout_backward(grad: Tensor, mask: Tensor, scale: _float) -> Tensor: ...
def native_group_norm(
    input: Tensor,
    num_groups: _int,
    weight: Tensor | None,
    bias: Tensor | None,
    eps: _float,
) -> tuple[Tensor, Tensor, Tensor]: ...
def native_group_norm_backward(
    grad: Tensor,
    input: Tensor,
    num_groups: _int,
    mean: Tensor,
    rstd: Tensor,
    weight: Tensor | None,
    affine: _bool = True,
) -> tuple[Tensor, Tensor, Tensor]: ...
def native_layer_norm(
    input: Tensor,
    normalized_shape: Sequence[_int],
    weight: Tensor | None,
    bias: Tensor | None,
    eps: _float,
) -> tuple[Tensor, Tensor, Tensor]: ...
def native_layer_norm_backward(
    grad: Tensor,
    input: Tensor,
    normalized_shape: Sequence[_int],
    mean: Tensor,
    rstd: Tensor,
    weight: Tensor | None,
    affine: _bool = True,
) -> tuple[Tensor, Tensor, Tensor]: ...
def native_rms_norm(
    input: Tensor,
    normalized_shape: Sequence[_int],
    weight: Tensor | None,
    eps: _float,
) -> tuple[Tensor, Tensor, Tensor]: ...
def native_rms_norm_backward(
    grad: Tensor,
    input: Tensor,
    normalized_shape: Sequence[_int],
    mean: Tensor,
    rstd: Tensor,
    weight: Tensor | None,
    affine: _bool = True,
) -> tuple[Tensor, Tensor, Tensor]: ...
def ne(input: _Number, other: _Number, *, out: Tensor | None = None) -> Tensor: ...
def ne_(input: _Number, other: _Number) -> Tensor: ...
def neg(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def neg_(input: Tensor) -> Tensor: ...
def negative(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def negative_(input: Tensor) -> Tensor: ...
def new_empty(
    input: Tensor,
    size: Sequence[_int],
    *,
    dtype: _dtype | None = None,
    device: _Device = None,
    requires_grad: _bool = False,
    layout: _layout | None = None,
    pin_memory: _bool = False,
) -> Tensor: ...
def new_empty_strided(
    input: Tensor,
    size: Sequence[_int],
    stride: Sequence[_int],
    *,
    dtype: _dtype | None = None,
    device: _Device = None,
    requires_grad: _bool = False,
    layout: _layout | None = None,
    pin_memory: _bool = False,
) -> Tensor: ...
def new_full(
    input: Tensor,
    size: Sequence[_int],
    fill_value: _Number,
    *,
    dtype: _dtype | None = None,
    device: _Device = None,
    requires_grad: _bool = False,
    layout: _layout | None = None,
    pin_memory: _bool = False,
) -> Tensor: ...
def new_ones(
    input: Tensor,
    size: Sequence[_int],
    *,
    dtype: _dtype | None = None,
    device: _Device = None,
    requires_grad: _bool = False,
    layout: _layout | None = None,
    pin_memory: _bool = False,
) -> Tensor: ...
def new_zeros(
    input: Tensor,
    size: Sequence[_int],
    *,
    dtype: _dtype | None = None,
    device: _Device = None,
    requires_grad: _bool = False,
    layout: _layout | None = None,
    pin_memory: _bool = False,
) -> Tensor: ...
def nextafter(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def nextafter_(input: Tensor, other: Tensor) -> Tensor: ...
def nll_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    reduction: _int = 1,
    ignore_index: _int = -100,
) -> Tensor: ...
def nonzero(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def nonzero_static(
    input: Tensor,
    *,
    size: _int,
    fill_value: _int = -1,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def norm(
    input: Tensor,
    p: _Number | None = 2,
    dim: _int | Sequence[_int] | None = None,
    keepdim: _bool = False,
    *,
    dtype: _dtype | None = None,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def norm(
    input: Tensor,
    p: _str,
    dim: _int | Sequence[_int] | None = None,
    keepdim: _bool = False,
    *,
    dtype: _dtype | None = None,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def normal(
    mean: Tensor,
    std: Tensor,
    *,
    generator: Generator | None = None,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def normal(
    mean: Tensor,
    std: _float = 1,
    *,
    generator: Generator | None = None,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def normal(
    mean: _float,
    std: Tensor,
    *,
    generator: Generator | None = None,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def normal(
    mean: _float,
    std: _float,
    size: Sequence[_int],
    *,
    generator: Generator | None = None,
    dtype: _dtype | None = None,
    device: _Device = None,
    out: Tensor | None = None,
    layout: _layout | None = None,
    pin_memory: _bool = False,
    requires_grad: _bool = False,
) -> Tensor: ...
def normal_(
    input: Tensor,
    mean: _float = 0,
    std: _float = 1,
    *,
    generator: Generator | None = None,
) -> Tensor: ...
def not_equal(input: _Number, other: _Number, *, out: Tensor | None = None) -> Tensor: ...
def not_equal_(input: _Number, other: _Number) -> Tensor: ...
def nuclear_norm(
    input: Tensor,
    dim: _int | Sequence[_int] | None = None,
    keepdim: _bool = False,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def one_hot(input: Tensor, num_classes: _int = -1) -> Tensor: ...
@overload
def ones(
    size: Sequence[_int],
    *,
    dtype: _dtype | None = None,
    device: _Device = None,
    requires_grad: _bool = False,
    out: Tensor | None = None,
    layout: _layout | None = None,
    pin_memory: _bool = False,
) -> Tensor: ...
@overload
def ones(
    *size: _int,
    dtype: _dtype | None = None,
    device: _Device = None,
    requires_grad: _bool = False,
    out: Tensor | None = None,
    layout: _layout | None = None,
    pin_memory: _bool = False,
) -> Tensor: ...
def ones_like(
    input: Tensor,
    *,
    dtype: _dtype | None = None,
    device: _Device = None,
    requires_grad: _bool = False,
    memory_format: memory_format | None = None,
    layout: _layout | None = None,
    pin_memory: _bool = False,
) -> Tensor: ...
def orgqr(input: Tensor, input2: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def ormqr(
    input: Tensor,
    input2: Tensor,
    input3: Tensor,
    left: _bool = True,
    transpose: _bool = False,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def outer(input: Tensor, vec2: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def pad(
    input: Tensor,
    pad: Sequence[_int],
    mode: _str = "constant",
    value: _float | None = None,
) -> Tensor: ...
def pdist(input: Tensor, p: _float = 2.0) -> Tensor: ...
def permute(input: Tensor, dims: Sequence[_int]) -> Tensor: ...
def permute_copy(input: Tensor, dims: Sequence[_int], *, out: Tensor | None = None) -> Tensor: ...
def pinverse(input: Tensor, rcond: _float = 1e-15) -> Tensor: ...
def pixel_shuffle(input: Tensor, upscale_factor: _int) -> Tensor: ...
def pixel_unshuffle(input: Tensor, downscale_factor: _int) -> Tensor: ...
def poisson(input: Tensor, generator: Generator | None = None) -> Tensor: ...
def polar(abs: Tensor, angle: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def polygamma(n: _int, input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def polygamma(input: Tensor, n: _int) -> Tensor: ...
def polygamma_(input: Tensor, n: _int) -> Tensor: ...
def positive(input: Tensor) -> Tensor: ...
def pow(input: _Number, exponent: _Number, *, out: Tensor | None = None) -> Tensor: ...
def pow_(input: _Number, exponent: _Number) -> Tensor: ...
def prelu(input: Tensor, weight: Tensor) -> Tensor: ...
def prod(
    input: Tensor,
    dim: _int | None = None,
    keepdim: _bool = False,
    *,
    dtype: _dtype | None = None,
    out: Tensor | None = None,
) -> Tensor: ...
def promote_types(type1: _dtype, type2: _dtype) -> _dtype: ...
def put(input: Tensor, index: Tensor, source: Tensor, accumulate: _bool = False) -> Tensor: ...
def put_(input: Tensor, index: Tensor, source: Tensor, accumulate: _bool = False) -> Tensor: ...
def qr(
    input: Tensor,
    some: _bool = True,
    *,
    out: Sequence[Tensor] | None = None,
) -> return_types.qr: ...
@overload
def quantile(
    input: Tensor,
    q: Tensor,
    dim: _int | None = None,
    keepdim: _bool = False,
    *,
    interpolation: _str = "linear",
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def quantile(
    input: Tensor,
    q: _float,
    dim: _int | None = None,
    keepdim: _bool = False,
    *,
    interpolation: _str = "linear",
    out: Tensor | None = None,
) -> Tensor: ...
def rad2deg(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def rad2deg_(input: Tensor) -> Tensor: ...
@overload
def rand(
    size: Sequence[_int],
    *,
    generator: Generator | None = None,
    dtype: _dtype | None = None,
    device: _Device = None,
    out: Tensor | None = None,
    layout: _layout | None = None,
    pin_memory: _bool = False,
    requires_grad: _bool = False,
) -> Tensor: ...
@overload
def rand(
    *size: _int,
    generator: Generator | None = None,
    dtype: _dtype | None = None,
    device: _Device = None,
    out: Tensor | None = None,
    layout: _layout | None = None,
    pin_memory: _bool = False,
    requires_grad: _bool = False,
) -> Tensor: ...
def rand_like(
    input: Tensor,
    *,
    generator: Generator | None = None,
    dtype: _dtype | None = None,
    device: _Device = None,
    layout: _layout | None = None,
    pin_memory: _bool = False,
    requires_grad: _bool = False,
) -> Tensor: ...
@overload
def randint(
    low: _int,
    high: _int,
    size: Sequence[_int],
    *,
    generator: Generator | None = None,
    dtype: _dtype | None = None,
    device: _Device = None,
    out: Tensor | None = None,
    layout: _layout | None = None,
    pin_memory: _bool = False,
    requires_grad: _bool = False,
) -> Tensor: ...
@overload
def randint(
    high: _int,
    size: Sequence[_int],
    *,
    generator: Generator | None = None,
    dtype: _dtype | None = None,
    device: _Device = None,
    out: Tensor | None = None,
    layout: _layout | None = None,
    pin_memory: _bool = False,
    requires_grad: _bool = False,
) -> Tensor: ...
@overload
def randint_like(
    input: Tensor,
    low: _int,
    high: _int,
    *,
    generator: Generator | None = None,
    dtype: _dtype | None = None,
    device: _Device = None,
    layout: _layout | None = None,
    pin_memory: _bool = False,
    requires_grad: _bool = False,
) -> Tensor: ...
@overload
def randint_like(
    input: Tensor,
    high: _int,
    *,
    generator: Generator | None = None,
    dtype: _dtype | None = None,
    device: _Device = None,
    layout: _layout | None = None,
    pin_memory: _bool = False,
    requires_grad: _bool = False,
) -> Tensor: ...
@overload
def randn(
    size: Sequence[_int],
    *,
    generator: Generator | None = None,
    dtype: _dtype | None = None,
    device: _Device = None,
    out: Tensor | None = None,
    layout: _layout | None = None,
    pin_memory: _bool = False,
    requires_grad: _bool = False,
) -> Tensor: ...
@overload
def randn(
    *size: _int,
    generator: Generator | None = None,
    dtype: _dtype | None = None,
    device: _Device = None,
    out: Tensor | None = None,
    layout: _layout | None = None,
    pin_memory: _bool = False,
    requires_grad: _bool = False,
) -> Tensor: ...
def randn_like(
    input: Tensor,
    *,
    generator: Generator | None = None,
    dtype: _dtype | None = None,
    device: _Device = None,
    layout: _layout | None = None,
    pin_memory: _bool = False,
    requires_grad: _bool = False,
) -> Tensor: ...
@overload
def random_(
    input: Tensor,
    from_: _int,
    to: _int | None,
    *,
    generator: Generator | None = None,
) -> Tensor: ...
@overload
def random_(input: Tensor, to: _int, *, generator: Generator | None = None) -> Tensor: ...
@overload
def random_(input: Tensor, *, generator: Generator | None = None) -> Tensor: ...
def randperm(
    n: _int,
    *,
    generator: Generator | None = None,
    dtype: _dtype | None = None,
    device: _Device = None,
    out: Tensor | None = None,
    layout: _layout | None = None,
    pin_memory: _bool = False,
    requires_grad: _bool = False,
) -> Tensor: ...
def ravel(input: Tensor) -> Tensor: ...
def real(input: Tensor) -> Tensor: ...
def reciprocal(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def reciprocal_(input: Tensor) -> Tensor: ...
def relu(input: Tensor) -> Tensor: ...
def relu6(input: Tensor) -> Tensor: ...
def relu6_(input: Tensor) -> Tensor: ...
def relu_(input: Tensor) -> Tensor: ...
def remainder(input: _Number, other: _Number, *, out: Tensor | None = None) -> Tensor: ...
def remainder_(input: _Number, other: _Number) -> Tensor: ...
def renorm(
    input: Tensor,
    p: _Number,
    dim: _int,
    maxnorm: _Number,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def renorm_(input: Tensor, p: _Number, dim: _int, maxnorm: _Number) -> Tensor: ...
def repeat(input: Tensor, repeats: Sequence[_int]) -> Tensor: ...
@overload
def repeat_interleave(
    input: Tensor,
    repeats: _int,
    dim: _int | None = None,
    *,
    output_size: _int | None = None,
) -> Tensor: ...
@overload
def repeat_interleave(
    input: Tensor,
    repeats: Tensor,
    dim: _int | None = None,
    *,
    output_size: _int | None = None,
) -> Tensor: ...
@overload
def repeat_interleave(repeats: Tensor, *, output_size: _int | None = None) -> Tensor: ...
def reshape(input: Tensor, shape: Sequence[_int]) -> Tensor: ...
def reshape_as(input: Tensor, other: Tensor) -> Tensor: ...
def resolve_conj(input: Tensor) -> Tensor: ...
def resolve_neg(input: Tensor) -> Tensor: ...
@overload
def result_type(tensor1: _Number, tensor2: _Number) -> _dtype: ...
@overload
def result_type(tensor: _Number, scalar: _Number) -> _dtype: ...
@overload
def result_type(scalar: _Number, tensor: _Number) -> _dtype: ...
@overload
def result_type(scalar1: _Number, scalar2: _Number) -> _dtype: ...
def rms_norm(
    input: Tensor,
    normalized_shape: Sequence[_int],
    weight: Tensor | None = None,
    eps: _float | None = None,
) -> Tensor: ...
def roll(
    input: Tensor,
    shifts: _int | Sequence[_int],
    dims: _int | Sequence[_int] | None = ...,
) -> Tensor: ...
def rot90(input: Tensor, k: _int = 1, dims: Sequence[_int] = ...) -> Tensor: ...
def round(input: Tensor, *, decimals: _int = 0, out: Tensor | None = None) -> Tensor: ...
def round_(input: Tensor, *, decimals: _int = 0) -> Tensor: ...
@overload
def row_stack(tensors: Sequence[Tensor], *, out: Tensor | None = None) -> Tensor: ...
@overload
def row_stack(*tensors: Tensor, out: Tensor | None = None) -> Tensor: ...
def rsqrt(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def rsqrt_(input: Tensor) -> Tensor: ...
def rsub(input: _Number, other: _Number, *, alpha: _Number = 1) -> Tensor: ...
def scalar_tensor(
    s: _Number,
    *,
    dtype: _dtype | None = None,
    device: _Device = None,
    requires_grad: _bool = False,
    layout: _layout | None = None,
    pin_memory: _bool = False,
) -> Tensor: ...
@overload
def scatter(
    input: Tensor,
    dim: _int,
    index: Tensor,
    src: Tensor,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def scatter(
    input: Tensor,
    dim: _int,
    index: Tensor,
    value: _Number,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def scatter(
    input: Tensor,
    dim: _int,
    index: Tensor,
    src: Tensor,
    *,
    reduce: _str,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def scatter(
    input: Tensor,
    dim: _int,
    index: Tensor,
    value: _Number,
    *,
    reduce: _str,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def scatter_(input: Tensor, dim: _int, index: Tensor, src: Tensor) -> Tensor: ...
@overload
def scatter_(input: Tensor, dim: _int, index: Tensor, value: _Number) -> Tensor: ...
@overload
def scatter_(input: Tensor, dim: _int, index: Tensor, src: Tensor, *, reduce: _str) -> Tensor: ...
@overload
def scatter_(
    input: Tensor,
    dim: _int,
    index: Tensor,
    value: _Number,
    *,
    reduce: _str,
) -> Tensor: ...
def scatter_add(
    input: Tensor,
    dim: _int,
    index: Tensor,
    src: Tensor,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def scatter_add_(input: Tensor, dim: _int, index: Tensor, src: Tensor) -> Tensor: ...
def scatter_reduce(
    input: Tensor,
    dim: _int,
    index: Tensor,
    src: Tensor,
    reduce: _str,
    *,
    include_self: _bool = True,
    out: Tensor | None = None,
) -> Tensor: ...
def scatter_reduce_(
    input: Tensor,
    dim: _int,
    index: Tensor,
    src: Tensor,
    reduce: _str,
    *,
    include_self: _bool = True,
) -> Tensor: ...
@overload
def searchsorted(
    sorted_sequence: Tensor,
    input: Tensor,
    *,
    out_int32: _bool = False,
    right: _bool = False,
    side: _str | None = None,
    sorter: Tensor | None = None,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def searchsorted(
    sorted_sequence: Tensor,
    input: _complex,
    *,
    out_int32: _bool = False,
    right: _bool = False,
    side: _str | None = None,
    sorter: Tensor | None = None,
) -> Tensor: ...
def segment_reduce(
    data: Tensor,
    reduce: _str,
    *,
    lengths: Tensor | None = None,
    indices: Tensor | None = None,
    offsets: Tensor | None = None,
    axis: _int = 0,
    unsafe: _bool = False,
    initial: _Number | None = None,
) -> Tensor: ...
def select(input: Tensor, dim: _int, index: _int) -> Tensor: ...
def select_copy(input: Tensor, dim: _int, index: _int, *, out: Tensor | None = None) -> Tensor: ...
def select_scatter(input: Tensor, src: Tensor, dim: _int, index: _int) -> Tensor: ...
def selu(input: Tensor) -> Tensor: ...
def selu_(input: Tensor) -> Tensor: ...
def sgn(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def sgn_(input: Tensor) -> Tensor: ...
def short(input: Tensor, memory_format: memory_format | None = None) -> Tensor: ...
def sigmoid(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def sigmoid_(input: Tensor) -> Tensor: ...
def sign(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def sign_(input: Tensor) -> Tensor: ...
def signbit(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def silu(input: Tensor) -> Tensor: ...
def silu_(input: Tensor) -> Tensor: ...
def sin(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def sin_(input: Tensor) -> Tensor: ...
def sinc(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def sinc_(input: Tensor) -> Tensor: ...
def sinh(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def sinh_(input: Tensor) -> Tensor: ...
def slice(
    input: Tensor,
    dim: _int = 0,
    start: _int | None = None,
    end: _int | None = None,
    step: _int = 1,
) -> Tensor: ...
def slice_copy(
    input: Tensor,
    dim: _int = 0,
    start: _int | None = None,
    end: _int | None = None,
    step: _int = 1,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def slice_scatter(
    input: Tensor,
    src: Tensor,
    dim: _int = 0,
    start: _int | None = None,
    end: _int | None = None,
    step: _int = 1,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def slogdet(input: Tensor, *, out: Sequence[Tensor] | None = None) -> return_types.slogdet: ...
def smooth_l1_loss(
    input: Tensor,
    target: Tensor,
    reduction: _int = 1,
    beta: _float = 1.0,
) -> Tensor: ...
def soft_margin_loss(input: Tensor, target: Tensor, reduction: _int = 1) -> Tensor: ...
def softmax(
    input: Tensor,
    dim: _int,
    dtype: _dtype | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def softplus(
    input: Tensor,
    beta: _Number = 1.0,
    threshold: _Number = 20.0,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def softshrink(input: Tensor, lambd: _Number = 0.5, *, out: Tensor | None = None) -> Tensor: ...
@overload
def sort(
    input: Tensor,
    dim: _int = -1,
    descending: _bool = False,
    stable: _bool = False,
    *,
    out: Sequence[Tensor] | None = None,
) -> return_types.sort: ...
@overload
def sort(
    input: Tensor,
    *,
    stable: _bool | None,
    dim: _int = -1,
    descending: _bool = False,
) -> return_types.sort: ...
def special_airy_ai(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def special_bessel_j0(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def special_bessel_j1(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def special_bessel_y0(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def special_bessel_y1(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def special_chebyshev_polynomial_t(
    x: _Number,
    n: _Number,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def special_chebyshev_polynomial_u(
    x: _Number,
    n: _Number,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def special_chebyshev_polynomial_v(
    x: _Number,
    n: _Number,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def special_chebyshev_polynomial_w(
    x: _Number,
    n: _Number,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def special_entr(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def special_erfcx(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def special_hermite_polynomial_h(
    x: _Number,
    n: _Number,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def special_hermite_polynomial_he(
    x: _Number,
    n: _Number,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def special_i0e(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def special_i1(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def special_i1e(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def special_laguerre_polynomial_l(
    x: _Number,
    n: _Number,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def special_legendre_polynomial_p(
    x: _Number,
    n: _Number,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def special_log_ndtr(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def special_modified_bessel_i0(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def special_modified_bessel_i1(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def special_modified_bessel_k0(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def special_modified_bessel_k1(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def special_ndtr(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def special_ndtri(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def special_scaled_modified_bessel_k0(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def special_scaled_modified_bessel_k1(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def special_shifted_chebyshev_polynomial_t(
    x: _Number,
    n: _Number,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def special_shifted_chebyshev_polynomial_u(
    x: _Number,
    n: _Number,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def special_shifted_chebyshev_polynomial_v(
    x: _Number,
    n: _Number,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def special_shifted_chebyshev_polynomial_w(
    x: _Number,
    n: _Number,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def special_spherical_bessel_j0(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def special_xlog1py(input: _Number, other: _Number, *, out: Tensor | None = None) -> Tensor: ...
def special_zeta(input: _Number, other: _Number, *, out: Tensor | None = None) -> Tensor: ...
@overload
def split(input: Tensor, split_size_or_sections: _int, dim: _int = 0) -> tuple[Tensor, ...]: ...
@overload
def split(
    input: Tensor,
    split_size_or_sections: Sequence[_int],
    dim: _int = 0,
) -> tuple[Tensor, ...]: ...
def split_copy(
    input: Tensor,
    split_size: _int,
    dim: _int = 0,
    *,
    out: Sequence[Tensor] | None = None,
) -> tuple[Tensor, ...]: ...
def split_with_sizes(
    input: Tensor,
    split_sizes: Sequence[_int],
    dim: _int = 0,
) -> tuple[Tensor, ...]: ...
def split_with_sizes_copy(
    input: Tensor,
    split_sizes: Sequence[_int],
    dim: _int = 0,
    *,
    out: Sequence[Tensor] | None = None,
) -> tuple[Tensor, ...]: ...
def sqrt(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def sqrt_(input: Tensor) -> Tensor: ...
def square(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def square_(input: Tensor) -> Tensor: ...
@overload
def squeeze(input: Tensor) -> Tensor: ...
@overload
def squeeze(input: Tensor, dim: _int) -> Tensor: ...
@overload
def squeeze(input: Tensor, dim: Sequence[_int]) -> Tensor: ...
@overload
def squeeze_(input: Tensor) -> Tensor: ...
@overload
def squeeze_(input: Tensor, dim: _int) -> Tensor: ...
@overload
def squeeze_(input: Tensor, dim: Sequence[_int]) -> Tensor: ...
@overload
def squeeze_copy(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def squeeze_copy(input: Tensor, dim: _int, *, out: Tensor | None = None) -> Tensor: ...
@overload
def squeeze_copy(input: Tensor, dim: Sequence[_int], *, out: Tensor | None = None) -> Tensor: ...
def stack(tensors: Sequence[Tensor], dim: _int = 0, *, out: Tensor | None = None) -> Tensor: ...
@overload
def std(input: Tensor, unbiased: _bool) -> Tensor: ...
@overload
def std(
    input: Tensor,
    dim: _int | Sequence[_int] | None = None,
    *,
    correction: _Number | None = None,
    keepdim: _bool = False,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def std(
    input: Tensor,
    dim: _int | Sequence[_int] | None,
    unbiased: _bool = True,
    keepdim: _bool = False,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def std_mean(input: Tensor, unbiased: _bool) -> tuple[Tensor, Tensor]: ...
@overload
def std_mean(
    input: Tensor,
    dim: _int | Sequence[_int] | None = None,
    *,
    correction: _Number | None = None,
    keepdim: _bool = False,
) -> tuple[Tensor, Tensor]: ...
@overload
def std_mean(
    input: Tensor,
    dim: _int | Sequence[_int] | None,
    unbiased: _bool = True,
    keepdim: _bool = False,
) -> tuple[Tensor, Tensor]: ...
def stft(
    input: Tensor,
    n_fft: _int,
    hop_length: _int | None = None,
    win_length: _int | None = None,
    window: Tensor | None = None,
    center: _bool = True,
    pad_mode: _str = "reflect",
    normalized: _bool = False,
    onesided: _bool | None = None,
    return_complex: _bool | None = None,
    align_to_window: _bool | None = None,
) -> Tensor: ...
def sub(
    input: _Number,
    other: _Number,
    *,
    alpha: _Number = 1,
    out: Tensor | None = None,
) -> Tensor: ...
def sub_(input: _Number, other: _Number, *, alpha: _Number = 1) -> Tensor: ...
def subtract(
    input: _Number,
    other: _Number,
    *,
    alpha: _Number = 1,
    out: Tensor | None = None,
) -> Tensor: ...
def subtract_(input: _Number, other: _Number, *, alpha: _Number = 1) -> Tensor: ...
def sum(
    input: Tensor,
    dim: _int | Sequence[_int] | None = None,
    keepdim: _bool = False,
    *,
    dtype: _dtype | None = None,
    out: Tensor | None = None,
) -> Tensor: ...
def svd(
    input: Tensor,
    some: _bool = True,
    compute_uv: _bool = True,
    *,
    out: Sequence[Tensor] | None = None,
) -> return_types.svd: ...
def swapaxes(input: Tensor, axis0: _int, axis1: _int) -> Tensor: ...
def swapdims(input: Tensor, dim0: _int, dim1: _int) -> Tensor: ...
def t(input: Tensor) -> Tensor: ...
def t_(input: Tensor) -> Tensor: ...
def t_copy(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def take(input: Tensor, index: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def take_along_dim(
    input: Tensor,
    indices: Tensor,
    dim: _int | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def tan(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def tan_(input: Tensor) -> Tensor: ...
def tanh(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def tanh_(input: Tensor) -> Tensor: ...
@overload
def tensor_split(input: Tensor, sections: _int, dim: _int = 0) -> tuple[Tensor, ...]: ...
@overload
def tensor_split(input: Tensor, indices: Sequence[_int], dim: _int = 0) -> tuple[Tensor, ...]: ...
@overload
def tensor_split(
    input: Tensor,
    tensor_indices_or_sections: Tensor,
    dim: _int = 0,
) -> tuple[Tensor, ...]: ...
def threshold(
    input: Tensor,
    threshold: _Number,
    value: _Number,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def threshold_(input: Tensor, threshold: _Number, value: _Number) -> Tensor: ...
def tile(input: Tensor, dims: Sequence[_int]) -> Tensor: ...
@overload
def to(
    input: Tensor,
    dtype: _dtype,
    non_blocking: _bool = False,
    copy: _bool = False,
    *,
    memory_format: memory_format | None = None,
) -> Tensor: ...
@overload
def to(
    input: Tensor,
    device: _Device = None,
    dtype: _dtype | None = None,
    non_blocking: _bool = False,
    copy: _bool = False,
    *,
    memory_format: memory_format | None = None,
) -> Tensor: ...
@overload
def to(
    input: Tensor,
    other: Tensor,
    non_blocking: _bool = False,
    copy: _bool = False,
    *,
    memory_format: memory_format | None = None,
) -> Tensor: ...
def topk(
    input: Tensor,
    k: _int,
    dim: _int = -1,
    largest: _bool = True,
    sorted: _bool = True,
    *,
    out: Sequence[Tensor] | None = None,
) -> return_types.topk: ...
def trace(input: Tensor) -> Tensor: ...
def transpose(input: Tensor, dim0: _int, dim1: _int) -> Tensor: ...
def transpose_(input: Tensor, dim0: _int, dim1: _int) -> Tensor: ...
def transpose_copy(
    input: Tensor,
    dim0: _int,
    dim1: _int,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def trapezoid(y: Tensor, x: Tensor, *, dim: _int = -1) -> Tensor: ...
@overload
def trapezoid(y: Tensor, *, dx: _Number = 1, dim: _int = -1) -> Tensor: ...
@overload
def trapz(y: Tensor, x: Tensor, *, dim: _int = -1) -> Tensor: ...
@overload
def trapz(y: Tensor, *, dx: _Number = 1, dim: _int = -1) -> Tensor: ...
def triangular_solve(
    input: Tensor,
    A: Tensor,
    upper: _bool = True,
    transpose: _bool = False,
    unitriangular: _bool = False,
    *,
    out: Sequence[Tensor] | None = None,
) -> return_types.triangular_solve: ...
def tril(input: Tensor, diagonal: _int = 0, *, out: Tensor | None = None) -> Tensor: ...
def tril_(input: Tensor, diagonal: _int = 0) -> Tensor: ...
def tril_indices(
    row: _int,
    col: _int,
    offset: _int = 0,
    *,
    dtype: _dtype | None = None,
    device: _Device = None,
    requires_grad: _bool = False,
    layout: _layout | None = None,
    pin_memory: _bool = False,
) -> Tensor: ...
def triu(input: Tensor, diagonal: _int = 0, *, out: Tensor | None = None) -> Tensor: ...
def triu_(input: Tensor, diagonal: _int = 0) -> Tensor: ...
def triu_indices(
    row: _int,
    col: _int,
    offset: _int = 0,
    *,
    dtype: _dtype | None = None,
    device: _Device = None,
    requires_grad: _bool = False,
    layout: _layout | None = None,
    pin_memory: _bool = False,
) -> Tensor: ...
def true_divide(input: _Number, other: _Number, *, out: Tensor | None = None) -> Tensor: ...
def true_divide_(input: _Number, other: _Number) -> Tensor: ...
def trunc(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def trunc_(input: Tensor) -> Tensor: ...
def type_as(input: Tensor, other: Tensor) -> Tensor: ...
def unbind(input: Tensor, dim: _int = 0) -> tuple[Tensor, ...]: ...
def unbind_copy(
    input: Tensor,
    dim: _int = 0,
    *,
    out: Sequence[Tensor] | None = None,
) -> tuple[Tensor, ...]: ...
def unflatten(input: Tensor, dim: _int, sizes: Sequence[_int]) -> Tensor: ...
def unfold(input: Tensor, dimension: _int, size: _int, step: _int) -> Tensor: ...
def unfold_copy(
    input: Tensor,
    dimension: _int,
    size: _int,
    step: _int,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def uniform_(
    input: Tensor,
    from_: _float = 0,
    to: _float = 1,
    *,
    generator: Generator | None = None,
) -> Tensor: ...
def unsafe_chunk(input: Tensor, chunks: _int, dim: _int = 0) -> tuple[Tensor, ...]: ...
def unsafe_split(input: Tensor, split_size: _int, dim: _int = 0) -> tuple[Tensor, ...]: ...
def unsafe_split_with_sizes(
    input: Tensor,
    split_sizes: Sequence[_int],
    dim: _int = 0,
) -> tuple[Tensor, ...]: ...
def unsqueeze(input: Tensor, dim: _int) -> Tensor: ...
def unsqueeze_(input: Tensor, dim: _int) -> Tensor: ...
def unsqueeze_copy(input: Tensor, dim: _int, *, out: Tensor | None = None) -> Tensor: ...
@overload
def var(input: Tensor, unbiased: _bool) -> Tensor: ...
@overload
def var(
    input: Tensor,
    dim: _int | Sequence[_int] | None = None,
    *,
    correction: _Number | None = None,
    keepdim: _bool = False,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def var(
    input: Tensor,
    dim: _int | Sequence[_int] | None,
    unbiased: _bool = True,
    keepdim: _bool = False,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def var_mean(input: Tensor, unbiased: _bool) -> tuple[Tensor, Tensor]: ...
@overload
def var_mean(
    input: Tensor,
    dim: _int | Sequence[_int] | None = None,
    *,
    correction: _Number | None = None,
    keepdim: _bool = False,
) -> tuple[Tensor, Tensor]: ...
@overload
def var_mean(
    input: Tensor,
    dim: _int | Sequence[_int] | None,
    unbiased: _bool = True,
    keepdim: _bool = False,
) -> tuple[Tensor, Tensor]: ...
def vdot(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def view(input: Tensor, size: Sequence[_int]) -> Tensor: ...
@overload
def view(input: Tensor, dtype: _dtype) -> Tensor: ...
def view_as(input: Tensor, other: Tensor) -> Tensor: ...
def view_as_complex(input: Tensor) -> Tensor: ...
def view_as_complex_copy(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def view_as_real(input: Tensor) -> Tensor: ...
def view_as_real_copy(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def view_copy(input: Tensor, size: Sequence[_int], *, out: Tensor | None = None) -> Tensor: ...
@overload
def view_copy(input: Tensor, dtype: _dtype, *, out: Tensor | None = None) -> Tensor: ...
@overload
def vsplit(input: Tensor, sections: _int) -> tuple[Tensor, ...]: ...
@overload
def vsplit(input: Tensor, indices: Sequence[_int]) -> tuple[Tensor, ...]: ...
@overload
def vstack(tensors: Sequence[Tensor], *, out: Tensor | None = None) -> Tensor: ...
@overload
def vstack(*tensors: Tensor, out: Tensor | None = None) -> Tensor: ...
@overload
def where(condition: _Number) -> tuple[Tensor, ...]: ...
@overload
def where(
    condition: _Number,
    input: _Number,
    other: _Number,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def xlogy(input: _Number, other: _Number, *, out: Tensor | None = None) -> Tensor: ...
def xlogy_(input: _Number, other: _Number) -> Tensor: ...
def zero_(input: Tensor) -> Tensor: ...
@overload
def zeros(
    size: Sequence[_int],
    *,
    dtype: _dtype | None = None,
    device: _Device = None,
    requires_grad: _bool = False,
    out: Tensor | None = None,
    layout: _layout | None = None,
    pin_memory: _bool = False,
) -> Tensor: ...
@overload
def zeros(
    *size: _int,
    dtype: _dtype | None = None,
    device: _Device = None,
    requires_grad: _bool = False,
    out: Tensor | None = None,
    layout: _layout | None = None,
    pin_memory: _bool = False,
) -> Tensor: ...
def zeros_like(
    input: Tensor,
    *,
    dtype: _dtype | None = None,
    device: _Device = None,
    requires_grad: _bool = False,
    memory_format: memory_format | None = None,
    layout: _layout | None = None,
    pin_memory: _bool = False,
) -> Tensor: ...
