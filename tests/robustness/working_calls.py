"""One call that works for ops that trust their arguments most: those with kernels of their own."""

import taeda


def working_calls():
    """Op name -> positional arguments, made anew for every call."""
    r = taeda.randn
    yes = taeda.ones(3, 4, dtype=taeda.bool)

    def n(*size):
        return taeda.randint(0, 3, size)

    image, kernel = r(2, 4, 5, 5), r(6, 2, 3, 3)
    window = [[1, 2], [1, 0], [1, 1]]  # stride, padding, dilation
    return {
        "_adaptive_avg_pool_backward": [r(2, 3, 2, 2), [2, 3, 5, 5], 2],
        "_as_strided": [r(4, 3), [2, 2], [3, 1], 1, [3, 1], 0],
        "_avg_pool_backward": [
            *(r(2, 3, 2, 2), [2, 3, 5, 5], [2, 2], [2, 2], [0, 0]),
            *(False, True, None, 2),
        ],
        "_conv": [image, kernel, r(6), *window, 2],
        "_conv_input": [r(2, 6, 5, 2), kernel, [5, 5], *window, 2],
        "_conv_weight": [image, r(2, 6, 5, 2), [3, 3], *window, 2],
        "_diagonal_backward": [r(2, 3), [3, 4, 2], 0, 0, 1],
        "_gather_pool": [r(2, 3, 5, 5), n(2, 3, 2, 2), 2],
        "_index_backward": [r(2, 4), [n(2)], [3, 4]],
        "_log_softmax_backward": [r(2, 4), r(2, 4), 1],
        "_nll_loss": [r(4, 3, 2), n(4, 2), r(3), 1, -100],
        "_nll_loss_backward": [
            *(r([]), n(4, 2), r(3), taeda.ones([], dtype=taeda.float64)),
            *([4, 3, 2], 1, -100),
        ],
        "_repeat_index": [n(4), None],
        "_scatter_fill": [r(3, 4), 1, n(3, 2), 1.0],
        "_scatter_pool": [r(2, 3, 2, 2), n(2, 3, 2, 2), [2, 3, 5, 5], 2],
        "_select_backward": [r(4), [3, 4], 0, 1],
        "_slice_backward": [r(2, 4), [5, 4], 0, 1, 3, 1],
        "_softmax_backward": [r(2, 4), r(2, 4), 1],
        "_tensordot": [r(2, 3, 4), r(4, 3, 5), [1, 2], [1, 0]],
        "_unfold_backward": [r(2, 3), [4], 0, 3, 1],
        "adaptive_max_pool2d": [r(2, 3, 5, 5), [2, 3]],
        "avg_pool2d": [r(2, 3, 5, 5), [2, 2], [1, 1], [1, 1], True, False, 3],
        "baddbmm": [r(2, 3, 5), r(2, 3, 4), r(2, 4, 5)],
        "cat": [[r(2, 3), r(1, 3)], 0],
        "constant_pad_nd": [r(2, 3), [1, 2, -1, 1], 0.0],
        "conv1d": [r(2, 4, 5), r(6, 2, 3), r(6), [1], [1], [1], 2],
        "conv_transpose2d": [image, r(4, 2, 3, 3), r(4), [2, 2], [1, 0], [1, 1], 2, [1, 1]],
        "_einsum": ["ij,jk->ik", [r(2, 3), r(3, 4)]],
        "embedding": [r(3, 5), n(4), -1],
        "embedding_dense_backward": [r(4, 5), n(4), 3, -1],
        "embedding_renorm_": [r(3, 5), n(4), 1.0, 2.0],
        "gather": [r(3, 4), 1, n(3, 2)],
        "index_add": [r(3, 4), 0, n(2), r(2, 4)],
        "index_copy": [r(3, 4), 0, taeda.tensor([0, 2]), r(2, 4)],
        "index_fill": [r(3, 4), 0, n(2), 1.0],
        "index_put": [r(3, 4), [n(2), n(2)], r(2), True],
        "index_select": [r(3, 4), 0, n(2)],
        "linear": [r(3, 4), r(5, 4), r(5)],
        "masked_scatter": [r(3, 4), yes, r(12)],
        "masked_scatter_": [r(3, 4), yes, r(12)],
        "masked_select": [r(3, 4), yes],
        "max_pool2d_with_indices": [r(2, 3, 5, 5), [2, 2], [1, 1], [0, 0], [1, 1], True],
        "multinomial": [taeda.rand(3, 4), 2],
        "native_batch_norm": [r(4, 3, 2), r(3), r(3), r(3), r(3).abs(), True, 0.1, 1e-5],
        "native_batch_norm_backward": [r(4, 3, 2), r(4, 3, 2), r(3), r(3), r(3), True],
        "native_group_norm": [r(4, 6, 2), 3, r(6), r(6), 1e-5],
        "native_group_norm_backward": [r(4, 6, 2), r(4, 6, 2), 3, r(12), r(12), r(6)],
        "native_layer_norm": [r(4, 3), [3], r(3), r(3), 1e-5],
        "native_layer_norm_backward": [r(4, 3), r(4, 3), [3], r(4), r(4), r(3)],
        "native_rms_norm_backward": [r(4, 3), r(4, 3), [3], r(4), r(4), r(3)],
        "put": [r(3, 4), n(2), r(2), True],
        "scatter": [r(3, 4), 1, n(3, 2), r(3, 2)],
        "scatter_add": [r(3, 4), 1, n(3, 2), r(3, 2)],
        "scatter_reduce": [r(3, 4), 1, n(3, 2), r(3, 2), "amax"],
        "stack": [[r(2, 3), r(2, 3)], 1],
        "take": [r(3, 4), n(2)],
        "topk": [r(3, 4), 2, 1],
        "unfold": [r(5), 0, 3, 1],
    }
