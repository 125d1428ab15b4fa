"""Where taeda is known to differ from PyTorch's op database, each with its reason."""

# Entries whose values are random: only shapes are compared.
NON_DETERMINISTIC = {
    "bernoulli",
    "empty",
    "empty_like",
    "empty_permuted",
    "empty_strided",
    "new_empty",
    "new_empty_strided",
    "nn.functional.dropout",
    "nn.functional.alpha_dropout",
    "nn.functional.feature_alpha_dropout-with_train",
    "nn.functional.dropout2d",
    "nn.functional.dropout3d",
    "nn.functional.rrelu",
    "rand_like",
    "randint",
    "randint_like",
    "randn",
    "randn_like",
    "multinomial",
    "normal",
    "normal-number_mean",
    "cauchy",
    "exponential",
    "geometric",
    "log_normal",
    "uniform",
    "normal-in_place",
    "rand",
    "randperm",
}

# Key, (key, dtype name), (key, "gradient") or (key, "errors") -> reason.
DIFFERS: dict[str | tuple[str, str], str] = {
    ("sum_to_size", "bool"): "a bool tensor that is summed becomes int64",
    (
        "addbmm",
        "int64",
    ): "differs: RuntimeError: For integral input tensors, argument alpha and beta must not be a f",
    (
        "addmv",
        "int64",
    ): "differs: RuntimeError: For integral input tensors, argument alpha and beta must not be a f",
    (
        "addr",
        "bool",
    ): "differs: AssertionError: addr(bool[5, 10]/(10, 1), bool[5]/(1,), bool[10]/(1,), beta=3, al",
    (
        "aminmax",
        "errors",
    ): "an error that PyTorch raises is not raised: aminmax(float32[20, 20]/(20, 1), dim=0, out=(f",
    ("arange", "errors"): "differs: RuntimeError: step must be nonzero",
    ("argsort", "bool"): "ties are ordered stably",
    (
        "baddbmm",
        "int64",
    ): "differs: RuntimeError: For integral input tensors, argument alpha and beta must not be a f",
    (
        "bernoulli",
        "errors",
    ): "a form of the call is missing: TypeError: bernoulli() received an invalid combination of a",
    ("bitwise_and", "errors"): "an error that PyTorch raises is not raised: bitwise_and(2, 3)",
    (
        "bitwise_left_shift",
        "errors",
    ): "an error that PyTorch raises is not raised: bitwise_left_shift(2, 3)",
    ("bitwise_or", "errors"): "an error that PyTorch raises is not raised: bitwise_or(2, 3)",
    (
        "bitwise_right_shift",
        "errors",
    ): "an error that PyTorch raises is not raised: bitwise_right_shift(2, 3)",
    ("bitwise_xor", "errors"): "an error that PyTorch raises is not raised: bitwise_xor(2, 3)",
    (
        "cat",
        "errors",
    ): "an error that PyTorch raises is not raised: cat((float32[5, 5]/(5, 1), float32[5, 5]/(5, 1",
    (
        "clamp_max",
        "errors",
    ): "an error that PyTorch raises is not raised: clamp_max(int64[3]/(1,), 2)",
    (
        "clamp_min",
        "errors",
    ): "an error that PyTorch raises is not raised: clamp_min(int64[3]/(1,), 2)",
    (
        "copysign",
        "errors",
    ): "an error that PyTorch raises is not raised: copysign(2, int64[3]/(1,))",
    ("eq", "errors"): "an error that PyTorch raises is not raised: eq(2, int64[3]/(1,))",
    ("float_power", "errors"): "an error that PyTorch raises is not raised: float_power(2, 3)",
    ("fmod", "errors"): "an error that PyTorch raises is not raised: fmod(2, int64[3]/(1,))",
    (
        "gather",
        "errors",
    ): "an error that PyTorch raises is not raised: gather(float32[2, 2]/(2, 1), 1, int64[2, 2]/(2",
    ("ge", "errors"): "an error that PyTorch raises is not raised: ge(2, int64[3]/(1,))",
    ("gt", "errors"): "an error that PyTorch raises is not raised: gt(2, int64[3]/(1,))",
    (
        "heaviside",
        "errors",
    ): "an error that PyTorch raises is not raised: heaviside(int64[3]/(1,), 2)",
    (
        "index_select",
        "errors",
    ): "an error that PyTorch raises is not raised: index_select(float32[3, 6]/(6, 1), 1, int64[2]",
    (
        "kthvalue",
        "errors",
    ): "an error that PyTorch raises is not raised: kthvalue(float32[10]/(1,), 5, out=(float32[10]",
    ("istft", "gradient"): "PyTorch loses the gradient of a window shorter than n_fft, for batches",
    ("kthvalue", "int64"): "ties are ordered stably",
    ("ldexp", "errors"): "an error that PyTorch raises is not raised: ldexp(int64[3]/(1,), 2)",
    ("le", "errors"): "an error that PyTorch raises is not raised: le(2, int64[3]/(1,))",
    ("lt", "errors"): "an error that PyTorch raises is not raised: lt(2, int64[3]/(1,))",
    (
        "linalg.norm-subgradients_at_zero",
        "gradient",
    ): "the second derivative of the 2-norm at zero is 0 here, NaN in PyTorch",
    (
        "matrix_exp",
        "float32",
    ): "results of 1e5 are right to 1e-7 of that in both, not so their small elements",
    (
        "masked_select",
        "errors",
    ): "an error that PyTorch raises is not raised: masked_select(float32[6]/(1,), bool[6]/(1,), o",
    (
        "multinomial",
        "errors",
    ): "a form of the call is missing: TypeError: multinomial() got an unexpected keyword argument",
    ("ne", "errors"): "an error that PyTorch raises is not raised: ne(2, int64[3]/(1,))",
    ("nextafter", "gradient"): "missing: RuntimeError: derivative for nextafter is not implemented",
    (
        "nn.functional.adaptive_avg_pool1d",
        "errors",
    ): "differs: ValueError: adaptive pooling: expected 1 output sizes, got 0",
    (
        "nn.functional.adaptive_avg_pool2d",
        "errors",
    ): "differs: RuntimeError: adaptive_avg_pool2d(): Expected 3D or 4D (batch mode) tensor for in",
    (
        "nn.functional.adaptive_avg_pool3d",
        "errors",
    ): "differs: RuntimeError: adaptive_avg_pool3d(): Expected 4D or 5D (batch mode) tensor for in",
    (
        "nn.functional.adaptive_max_pool1d",
        "errors",
    ): "differs: ValueError: adaptive pooling: expected 1 output sizes, got 0",
    (
        "nn.functional.adaptive_max_pool2d",
        "errors",
    ): "differs: RuntimeError: adaptive_max_pool2d(): Expected 3D or 4D (batch mode) tensor for in",
    (
        "nn.functional.adaptive_max_pool3d",
        "errors",
    ): "differs: RuntimeError: adaptive_max_pool3d(): Expected 4D or 5D (batch mode) tensor for in",
    (
        "nn.functional.avg_pool1d",
        "int64",
    ): "missing: NotImplementedError: 'avg_pool1d' not implemented for 'Long'",
    (
        "nn.functional.avg_pool2d",
        "int64",
    ): "missing: NotImplementedError: 'avg_pool2d' not implemented for 'Long'",
    (
        "nn.functional.avg_pool3d",
        "int64",
    ): "missing: NotImplementedError: 'avg_pool3d' not implemented for 'Long'",
    (
        "nn.functional.batch_norm",
        "float32",
    ): "differs: RuntimeError: batch_norm(): expected input with at least 2 dimensions (N, C, ...)",
    (
        "nn.functional.batch_norm",
        "float64",
    ): "differs: RuntimeError: batch_norm(): expected input with at least 2 dimensions (N, C, ...)",
    (
        "nn.functional.batch_norm",
        "gradient",
    ): "differs: RuntimeError: batch_norm(): expected input with at least 2 dimensions (N, C, ...)",
    (
        "nn.functional.conv2d",
        "errors",
    ): "differs: ValueError: zip() argument 2 is shorter than argument 1",
    (
        "nn.functional.conv3d",
        "errors",
    ): "differs: ValueError: zip() argument 2 is shorter than argument 1",
    (
        "nn.functional.embedding",
        "errors",
    ): "differs: IndexError: Dimension specified as 0 but tensor has no dimensions",
    (
        "nn.functional.embedding",
        "float32",
    ): "differs: ValueError: embedding: gradients are dense here; sparse must be False, got True",
    (
        "nn.functional.embedding",
        "float64",
    ): "differs: ValueError: embedding: gradients are dense here; sparse must be False, got True",
    (
        "nn.functional.embedding_bag",
        "float32",
    ): "differs: ValueError: embedding: gradients are dense here; sparse must be False, got True",
    (
        "nn.functional.embedding_bag",
        "float64",
    ): "differs: ValueError: embedding: gradients are dense here; sparse must be False, got True",
    (
        "nn.functional.local_response_norm",
        "int64",
    ): "missing: NotImplementedError: 'avg_pool2d' not implemented for 'Long'",
    (
        "nn.functional.max_pool2d",
        "int64",
    ): "missing: NotImplementedError: 'max_pool2d' not implemented for 'Long'",
    (
        "nn.functional.max_pool3d",
        "int64",
    ): "missing: NotImplementedError: 'max_pool3d' not implemented for 'Long'",
    (
        "nn.functional.max_unpool1d",
        "errors",
    ): "an error that PyTorch raises is not raised: nn.functional.max_unpool1d(float32[8, 8]/(8, 1",
    (
        "nn.functional.max_unpool2d",
        "errors",
    ): "an error that PyTorch raises is not raised: nn.functional.max_unpool2d(float32[1, 1, 4, 4]",
    (
        "nn.functional.max_unpool3d",
        "errors",
    ): "an error that PyTorch raises is not raised: nn.functional.max_unpool3d(float32[1, 1, 4, 4,",
    ("nn.functional.multi_head_attention_forward", "gradient"): "values differ on some sample",
    (
        "nn.functional.multi_margin_loss",
        "errors",
    ): "differs: RuntimeError: gather(): Expected dtype int32/int64 for index",
    (
        "nn.functional.multi_margin_loss",
        "float32",
    ): "differs: IndexError: Dimension specified as 0 but tensor has no dimensions",
    (
        "nn.functional.multi_margin_loss",
        "float64",
    ): "differs: IndexError: Dimension specified as 0 but tensor has no dimensions",
    (
        "nn.functional.multi_margin_loss",
        "gradient",
    ): "differs: IndexError: Dimension specified as 0 but tensor has no dimensions",
    (
        "nn.functional.multilabel_margin_loss",
        "errors",
    ): "differs: RuntimeError: scatter_add(): Expected dtype int32/int64 for index",
    (
        "nn.functional.multilabel_margin_loss",
        "float32",
    ): "differs: IndexError: Dimension out of range (expected to be in range of [-1, 0], but got -",
    (
        "nn.functional.multilabel_margin_loss",
        "float64",
    ): "differs: IndexError: Dimension out of range (expected to be in range of [-1, 0], but got -",
    (
        "nn.functional.multilabel_margin_loss",
        "gradient",
    ): "differs: IndexError: Dimension out of range (expected to be in range of [-1, 0], but got -",
    (
        "nn.functional.rms_norm",
        "complex64",
    ): "missing: NotImplementedError: 'rms_norm' not implemented for 'ComplexFloat'",
    (
        "nn.functional.rms_norm",
        "gradient",
    ): "missing: NotImplementedError: 'rms_norm' not implemented for 'ComplexDouble'",
    (
        "nn.functional.rrelu",
        "errors",
    ): "differs: ValueError: rrelu: lower must not be above upper, got 0.3 and 0.1",
    (
        "nn.functional.scaled_dot_product_attention",
        "gradient",
    ): "missing: RuntimeError: derivative for aten::_scaled_dot_product_flash_attention_for_cpu_ba",
    ("polygamma-polygamma_n_0", "float32"): "values differ on some sample",
    ("polygamma-polygamma_n_1", "float32"): "values differ on some sample",
    ("polygamma-polygamma_n_2", "float32"): "values differ on some sample",
    ("polygamma-polygamma_n_3", "float32"): "values differ on some sample",
    ("polygamma-polygamma_n_4", "float32"): "values differ on some sample",
    ("pow", "errors"): "an error that PyTorch raises is not raised: pow(2, 3)",
    ("remainder", "errors"): "an error that PyTorch raises is not raised: remainder(2, 3)",
    ("rsub", "errors"): "an error that PyTorch raises is not raised: rsub(2, int64[3]/(1,))",
    ("sort", "bool"): "ties are ordered stably",
    (
        "take",
        "errors",
    ): "an error that PyTorch raises is not raised: take(float32[6]/(1,), int64[3]/(1,), out=float",
    ("topk", "int64"): "ties are ordered stably",
    ("xlogy", "errors"): "an error that PyTorch raises is not raised: xlogy(2, 3)",
}
