"""Public names of the package that are not imported directly, and the modules that define them."""

from __future__ import annotations

# Loaded on first use.
SUBMODULES = frozenset({
    "__config__", "__future__", "accelerator", "amp", "ao", "array_api", "autograd", "backends",
    "compat", "compiler", "cpu", "cuda", "distributed", "distributions", "fft", "func",
    "functional", "futures", "fx", "hub", "insight", "jit", "library", "linalg", "masked",
    "monitor", "mps", "mtia", "multiprocessing", "nested", "nn", "onnx", "ops", "optim",
    "overrides", "profiler", "quasirandom", "random", "safetensors", "serialization", "signal",
    "sklearn", "sparse", "special", "storage", "testing", "torch_version", "training", "types",
    "utils", "version", "xpu",
})  # fmt: skip

_NN_FUNCTIONS = (
    "adjoint", "affine_grid_generator", "alpha_dropout_", "bilinear",
    "binary_cross_entropy_with_logits", "channel_shuffle", "cosine_embedding_loss",
    "cosine_similarity", "ctc_loss", "detach_", "dsmm", "feature_alpha_dropout_",
    "frobenius_norm", "get_device", "grid_sampler", "hinge_embedding_loss", "instance_norm",
    "is_distributed", "kl_div", "margin_ranking_loss", "norm_except_dim", "pairwise_distance",
    "poisson_nll_loss", "resize_as_", "rrelu",
    "rrelu_", "spmm", "triplet_margin_loss", "vander",
)  # fmt: skip

_MORE_FUNCTIONS = (
    "ccol_indices_copy", "col_indices_copy", "cond", "conv_tbc", "crow_indices_copy", "dequantize",
    "embedding_bag", "fake_quantize_per_channel_affine", "fake_quantize_per_tensor_affine",
    "indices_copy", "row_indices_copy", "values_copy", "hspmm", "lu", "native_channel_shuffle",
    "smm", "sspaddmm", "sym_float", "sym_int", "sym_ite", "sym_max", "sym_min", "sym_not",
    "sym_sum",
)  # fmt: skip

_BATCH_NORM_PARTS = (
    "batch_norm_backward_elemt", "batch_norm_backward_reduce", "batch_norm_elemt",
    "batch_norm_gather_stats", "batch_norm_gather_stats_with_counts", "batch_norm_stats",
    "batch_norm_update_stats",
)  # fmt: skip

_STORAGES = (
    "BFloat16Storage", "BoolStorage", "ByteStorage", "CharStorage", "ComplexDoubleStorage",
    "ComplexFloatStorage", "DoubleStorage", "FloatStorage", "HalfStorage", "IntStorage",
    "LongStorage", "ShortStorage",
)  # fmt: skip

# Dtypes that no tensor here has.
DTYPE_NAMES = (
    "bit", "bits16", "bits1x8", "bits2x4", "bits4x2", "bits8",
    "float4_e2m1fn_x2", "int1", "int2", "int3", "int4", "int5", "int6", "int7", "qint32", "qint8",
    "quint2x4", "quint4x2", "quint8", "uint1", "uint2", "uint3", "uint4", "uint5", "uint6", "uint7",
)  # fmt: skip

# Names whose modules are loaded on first use.
FROM_SUBMODULES = {
    **dict.fromkeys(_MORE_FUNCTIONS, "taeda._functional.more_functions"),
    **dict.fromkeys(_BATCH_NORM_PARTS, "taeda._functional.batch_norm_parts"),
    **dict.fromkeys(_STORAGES, "taeda.storage"),
    **dict.fromkeys(DTYPE_NAMES, "taeda._symbols"),
    "AcceleratorError": "taeda._errors",
    "OutOfMemoryError": "taeda._errors",
    "get_deterministic_debug_mode": "taeda._switches",
    "has_lapack": "taeda._switches",
    "has_mkl": "taeda._switches",
    "has_openmp": "taeda._switches",
    "has_spectral": "taeda._switches",
    "set_deterministic_debug_mode": "taeda._switches",
    "set_flush_denormal": "taeda._switches",
    "fork": "taeda.jit",
    "wait": "taeda.jit",
    "_convert_indices_from_coo_to_csr": "taeda.sparse._rows",
    "_convert_indices_from_csr_to_coo": "taeda.sparse._rows",
    "_segment_reduce": "taeda._functional.aliases",
    "_standard_gamma": "taeda._functional.aliases",
    **dict.fromkeys(_NN_FUNCTIONS, "taeda._functional.nn_functions"),
    "Event": "taeda._symbols",
    "Future": "taeda.futures",
    "GradScaler": "taeda.amp",
    "Stream": "taeda._symbols",
    "ScriptModule": "taeda.jit",
    "PyTorchFileReader": "taeda.serialization._records",
    "jagged": "taeda._symbols",
    "SymBool": "taeda._symbols",
    "SymFloat": "taeda._symbols",
    "SymInt": "taeda._symbols",
    "TensorType": "taeda._symbols",
    "Trainer": "taeda.training",
    "lobpcg": "taeda._functional.lobpcg",
    "StorageBase": "taeda.storage",
    "TypedStorage": "taeda.storage",
    "__array_namespace_info__": "taeda.array_api",
    "autocast": "taeda.amp.autocast_mode",
    "get_device_module": "taeda._devices",
    "register_device": "taeda._devices",
    "set_fallback": "taeda._devices",
    "from_file": "taeda.storage",
    "clear_autocast_cache": "taeda.amp.autocast_mode",
    "get_autocast_dtype": "taeda.amp.autocast_mode",
    "is_autocast_cache_enabled": "taeda.amp.autocast_mode",
    "is_autocast_enabled": "taeda.amp.autocast_mode",
    "set_autocast_cache_enabled": "taeda.amp.autocast_mode",
    "set_autocast_dtype": "taeda.amp.autocast_mode",
    "set_autocast_enabled": "taeda.amp.autocast_mode",
    "sparse_coo_tensor": "taeda.sparse._make",
    "sparse_compressed_tensor": "taeda.sparse._make_compressed",
    "sparse_csr_tensor": "taeda.sparse._make_compressed",
    "sparse_csc_tensor": "taeda.sparse._make_compressed",
    "sparse_bsr_tensor": "taeda.sparse._make_compressed",
    "sparse_bsc_tensor": "taeda.sparse._make_compressed",
    "vmap": "taeda.func._vmap",
    **dict.fromkeys(("explain", "record", "strict", "summary", "wiring"), "taeda.insight"),
}
