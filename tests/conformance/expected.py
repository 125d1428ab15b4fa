"""Where taeda is known to differ from PyTorch's op database, each with its reason."""

# Entries that leave memory as it is: only shapes are compared.
UNINITIALISED = {
    "empty",
    "empty_like",
    "empty_permuted",
    "empty_strided",
    "new_empty",
    "new_empty_strided",
}

# Entries whose values are random. For one seed they are compared, but not their other forms, which draw on.
RANDOM = {
    "bernoulli",
    "cauchy",
    "exponential",
    "geometric",
    "log_normal",
    "multinomial",
    "normal",
    "normal-in_place",
    "normal-number_mean",
    "nn.functional.alpha_dropout",
    "nn.functional.dropout",
    "nn.functional.dropout2d",
    "nn.functional.dropout3d",
    "nn.functional.feature_alpha_dropout-with_train",
    "nn.functional.rrelu",
    "rand_like",
    "randint",
    "randint_like",
    "randn",
    "randn_like",
    "uniform",
}

# Key, or (key, aspect) -> reason. Aspects: a dtype's name ("float32": its values), "gradient-float64",
# "gradient-complex128", "forward-float64" (tangents), "errors" (error inputs), "method", "in-place", "out".
DIFFERS: dict[str | tuple[str, str], str] = {
    (
        "addbmm",
        "gradient in place",
    ): "PyTorch lets a tensor without dimensions become the larger result",
    (
        "cholesky_inverse",
        "forward-float64",
    ): "PyTorch's tangent is not what finite differences give; this one is",
    (
        "cholesky_inverse",
        "forward-complex128",
    ): "PyTorch's tangent is not what finite differences give; this one is",
    ("cov", "forward-complex128"): "weights of float32 have tangents of float32",
    (
        "logcumsumexp",
        "forward-float64",
    ): "PyTorch's tangents lose half of the digits where exponentials cancel",
    (
        "logcumsumexp",
        "forward-complex128",
    ): "PyTorch's tangents lose half of the digits where exponentials cancel",
    (
        "nn.functional.max_unpool2d",
        "forward-float64",
    ): "where places coincide, tangents are added, as the gradient goes to all of them",
    (
        "nn.functional.max_unpool3d",
        "forward-float64",
    ): "where places coincide, tangents are added, as the gradient goes to all of them",
    (
        "istft",
        "gradient-float64",
    ): "PyTorch loses the gradient of a window shorter than n_fft, for batches",
    (
        "istft",
        "gradient-complex128",
    ): "PyTorch loses the gradient of a window shorter than n_fft, for batches",
    (
        "linalg.norm-subgradients_at_zero",
        "gradient-float64",
    ): "the second derivative of the 2-norm at zero is 0 here, NaN in PyTorch",
    (
        "linalg.norm-subgradients_at_zero",
        "gradient-complex128",
    ): "the second derivative of the 2-norm at zero is 0 here, NaN in PyTorch",
    (
        "matrix_exp",
        "float32",
    ): "results of 1e5 are right to 1e-7 of that in both, not so their small elements",
    ("argsort", "bool"): "ties are ordered stably",
    ("kthvalue", "int64"): "ties are ordered stably",
    ("sort", "bool"): "ties are ordered stably",
    ("topk", "int64"): "ties are ordered stably",
    ("mode", "int64"): "of equal elements the last one's index is returned; PyTorch returns any",
    ("mode", "bool"): "of equal elements the last one's index is returned; PyTorch returns any",
    (
        "as_strided_scatter",
        "gradient-float64",
    ): "PyTorch's gradient of replaced elements is not zero, and fails its own gradcheck",
    (
        "as_strided_scatter",
        "gradient-complex128",
    ): "PyTorch's gradient of replaced elements is not zero, and fails its own gradcheck",
    (
        "masked.argmax",
        "float32",
    ): "indices are int64 also for a tensor without dimensions, where PyTorch returns the input's dtype",
    (
        "masked.argmax",
        "float64",
    ): "indices are int64 also for a tensor without dimensions, where PyTorch returns the input's dtype",
    (
        "masked.argmin",
        "float32",
    ): "indices are int64 also for a tensor without dimensions, where PyTorch returns the input's dtype",
    (
        "masked.argmin",
        "float64",
    ): "indices are int64 also for a tensor without dimensions, where PyTorch returns the input's dtype",
    (
        "masked.logaddexp",
        "gradient-float64",
    ): "second derivatives beside minus infinity are 0; PyTorch's are NaN",
    (
        "addbmm",
        "in-place",
    ): "the in-place form keeps the tensor's shape; PyTorch lets the result outgrow it",
    (
        "matrix_exp",
        "method",
    ): "results of 1e5 are right to 1e-7 of that in both, not so their small elements",
    ("special.bessel_j0", "float64"): "PyTorch's value has 6 digits right there; see test_special",
    ("special.bessel_y1", "float64"): "PyTorch's value has 6 digits right there; see test_special",
}

# Function -> factor of the tolerance.
WIDER_TOLERANCE = {
    # PyTorch's float32 kernel is off by up to 5e-4 beside the poles; taeda computes in double.
    "polygamma": 30.0,
    "special.polygamma": 30.0,
    # Sums of products that cancel to a millionth of their size.
    "nn.functional.multi_head_attention_forward": 100.0,
    # Sums of 108 products of up to 81 each, in another order.
    "nn.functional.conv_transpose3d": 4.0,
}

# Key, aspect -> why it is not run at all.
NOT_RUN = {
    (name, "out"): "PyTorch writes outside of an overlapping tensor, and crashes"
    for name in ("narrow_copy", "lu", "linalg.lu", "lu_unpack", "nn.functional.avg_pool3d")
}
NOT_RUN["native_batch_norm", "out"] = "samples share running statistics that each call changes"

# Names of ops that take other dtypes of `out` than PyTorch -> why.
OUT_DTYPES = {
    **dict.fromkeys(
        ("abs", "diff", "inner", "lerp", "linalg.matrix_power", "std", "var"),
        "PyTorch casts in some cases and not in others, by the other arguments",
    ),
    **dict.fromkeys(
        ("fft.ifft", "fft.ihfft", "fft.ihfftn"), "PyTorch casts the result of the other transforms"
    ),
    **dict.fromkeys(("nansum", "nanmean"), "complex numbers are summed up too"),
}

for key in ("resize_", "resize_as_"):
    DIFFERS[key, "vmap"] = "the memory of a batched tensor is its value's"
for key in ("to_sparse", "sparse.mm-reduce", "sparse.sampled_addmm"):
    DIFFERS[key, "vmap"] = "sparse tensors are not batched"
DIFFERS["nn.functional.ctc_loss", "vmap"] = "lengths are read as Python numbers"
DIFFERS["nn.functional.embedding_bag", "vmap"] = "indices equal to padding_idx are taken out"

# Entries that taeda will not have -> reason.
OUT_OF_SCOPE: dict[str, str] = {
    "hash_tensor": "uint64 can be stored, not computed with",
    "jiterator_2inputs_2outputs": "compiles CUDA source",
    "jiterator_4inputs_with_extra_args": "compiles CUDA source",
    "jiterator_binary": "compiles CUDA source",
    "jiterator_binary_return_by_ref": "compiles CUDA source",
    "jiterator_unary": "compiles CUDA source",
    "sparse.mm-reduce": "products of sparse matrices add up; there is no other reduction",
    "torch._scaled_mm": "8-bit floating dtypes can be stored, not multiplied",
    "torch._scaled_mm_v2": "8-bit floating dtypes can be stored, not multiplied",
    "torch.ops.aten._efficient_attention_forward": "CUDA only",
    "torch.ops.aten._flash_attention_forward": "CUDA only",
}

# Key, or (key, form of the call) -> why a call is taken or refused otherwise than by PyTorch.
SIGNATURES: dict[str | tuple[str, str], str] = {
    "rsub": "`alpha` may follow by position; PyTorch takes it so after a number alone",
    (
        "rsub",
        "all positional",
    ): "`alpha` may follow by position; PyTorch takes it so after a number",
    "matrix_exp": "rounding: the entries are as large as 1e3, and sums are added up in another order",
    "masked.argmax": "indices are int64; PyTorch gives them the dtype of the input",
    "masked.argmin": "indices are int64; PyTorch gives them the dtype of the input",
    **{
        (f"norm{variant}", "all positional"): "`out` and `dtype` are given by keyword"
        for variant in ("", "-nuc", "-fro", "-inf")
    },
    **{
        (f"__r{name}__", "method, keyword"): "Python calls it by position"
        for name in ("matmul", "mod", "pow", "sub")
    },
}
