"""taeda: deep learning in the style of PyTorch.

Tensors, their operations and gradients are in this package; layers in ``taeda.nn``, optimizers in
``taeda.optim``, data loading in ``taeda.utils.data``.

>>> import taeda
>>> x = taeda.tensor([1.0, 2.0], requires_grad=True)
>>> (x * x).sum().backward()
>>> x.grad
tensor([2., 4.])
"""

from __future__ import annotations

import builtins
import copyreg as _copyreg
import importlib
import math
import sys
from typing import TYPE_CHECKING

from taeda import _C, _public_names
from taeda._C import (
    Generator,
    Size,
    Tensor,
    UntypedStorage,
    as_tensor,
    asarray,
    bfloat16,
    bool,
    channels_last,
    channels_last_3d,
    complex32,
    complex64,
    complex128,
    contiguous_format,
    device,
    dtype,
    float8_e4m3fn,
    float8_e4m3fnuz,
    float8_e5m2,
    float8_e5m2fnuz,
    float8_e8m0fnu,
    float16,
    float32,
    float64,
    from_dlpack,
    from_numpy,
    frombuffer,
    get_default_device,
    get_default_dtype,
    get_num_threads,
    int8,
    int16,
    int32,
    int64,
    layout,
    memory_format,
    preserve_format,
    return_types,
    set_default_device,
    set_default_dtype,
    set_num_threads,
    sparse_bsc,
    sparse_bsr,
    sparse_coo,
    sparse_csc,
    sparse_csr,
    strided,
    tensor,
    to_dlpack,
    uint8,
    uint16,
    uint32,
    uint64,
)
from taeda._registry import functions as _functions
from taeda._registry import let_classes_answer as _let_classes_answer
from taeda._version import __version__

if TYPE_CHECKING:
    from typing import Any

    from taeda import autograd, linalg, nn, optim, utils

sys.modules["taeda.return_types"] = return_types
sys.modules[__name__].__class__ = _C._Package  # faster attribute lookup
# Packages that send functions to other processes (cloudpickle) know modules by their exact type.
_copyreg.pickle(_C._Package, lambda module: (importlib.import_module, (module.__name__,)))

# ---- every public operation ---------------------------------------------------------------------

_OPERATIONS = _functions("")
globals().update(_OPERATIONS)

from taeda._checks import (  # noqa: E402
    _assert,
    _assert_async,
    _check,
    _check_index,
    _check_is_size,
    _check_not_implemented,
    _check_tensor_all,
    _check_tensor_all_with,
    _check_type,
    _check_value,
    _check_with,
    _shape_as_tensor,
)
from taeda._deprecated import range  # noqa: E402
from taeda._functional.lowrank import pca_lowrank, svd_lowrank  # noqa: E402
from taeda._functional.numerics import (  # noqa: E402
    gradient,
    grid_sampler_2d,
    grid_sampler_3d,
    histogramdd,
    native_batch_norm,
    native_group_norm,
    native_layer_norm,
)
from taeda._switches import (  # noqa: E402
    are_deterministic_algorithms_enabled,
    get_float32_matmul_precision,
    get_num_interop_threads,
    init_num_threads,
    is_deterministic_algorithms_warn_only_enabled,
    set_float32_matmul_precision,
    set_num_interop_threads,
    use_deterministic_algorithms,
)
from taeda._tensor import methods as _methods  # noqa: E402
from taeda._tensor.printing import set_printoptions  # noqa: E402
from taeda._tensor.types import TYPES as _TYPES  # noqa: E402
from taeda._type_info import finfo, iinfo  # noqa: E402
from taeda.autograd.grad_mode import (  # noqa: E402
    enable_grad,
    inference_mode,
    no_grad,
    set_grad_enabled,
)
from taeda.compiler import compile  # noqa: E402
from taeda.functional import (  # noqa: E402
    broadcast_shapes,
    cartesian_prod,
    chain_matmul,
    einsum,
    empty_permuted,
    is_complex,
    is_conj,
    is_floating_point,
    is_neg,
    is_nonzero,
    is_same_size,
    is_signed,
    is_storage,
    is_tensor,
    meshgrid,
    nonzero,
    numel,
    tensordot,
    typename,
    unique,
    unique_consecutive,
    unravel_index,
    where,
)
from taeda.random import (  # noqa: E402
    default_generator,
    get_rng_state,
    initial_seed,
    manual_seed,
    seed,
    set_rng_state,
)
from taeda.serialization import load, save  # noqa: E402

del _methods
globals().update(_TYPES)

# ---- other names for the same things ------------------------------------------------------------

float = float32
double = float64
half = float16
chalf = complex32
cfloat = complex64
cdouble = complex128
short = int16
int = int32
long = int64

inf = math.inf
nan = math.nan
pi = math.pi
e = math.e
newaxis = None
legacy_contiguous_format = contiguous_format

_sample_dirichlet = _C.ops._sample_dirichlet  # packages use it for random draws

is_grad_enabled = _C.is_grad_enabled
is_inference_mode_enabled = _C.is_inference_mode_enabled
is_anomaly_enabled = _C.is_anomaly_enabled
is_anomaly_check_nan_enabled = _C.is_anomaly_check_nan_enabled
is_warn_always_enabled = _C.is_warn_always_enabled
set_warn_always = _C.set_warn_always


def is_inference(input: Tensor) -> builtins.bool:
    """Whether a tensor was made in inference mode."""
    return input.is_inference()


def set_default_tensor_type(t: Any) -> None:
    """Set the default dtype by the old name of a tensor type, such as ``taeda.DoubleTensor``.

    Types of CUDA tensors make the current device the default one, too.
    """
    from taeda._tensor.types import as_dtype, is_cuda_type

    if is_cuda_type(t):
        from taeda import cuda  # which imports this package

        if not cuda.is_available():
            raise TypeError(f"type {t} not available: there is no CUDA device")
        set_default_device("cuda")
    elif get_default_device().type == "cuda":
        set_default_device("cpu")
    set_default_dtype(as_dtype(t))


_C._ask_overrides(is_inference)
_let_classes_answer(globals())

# ---- submodules, loaded when they are first used ------------------------------------------------


def __getattr__(name: str) -> Any:
    if name in _public_names.FROM_SUBMODULES:
        value = getattr(importlib.import_module(_public_names.FROM_SUBMODULES[name]), name)
        _let_classes_answer({name: value})
        return value
    if name in _public_names.SUBMODULES:
        full = f"taeda.{name}"
        try:
            return importlib.import_module(full)
        except ModuleNotFoundError as error:
            if error.name != full:
                raise
    if name.startswith("_foreach_"):
        from taeda._functional.foreach import FUNCTIONS

        if name in FUNCTIONS:
            globals().update(FUNCTIONS)
            return FUNCTIONS[name]
    raise AttributeError(f"module 'taeda' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(
        {
            *globals(),
            *_public_names.FROM_SUBMODULES,
            *(name for name in _public_names.SUBMODULES if _has_submodule(name)),
        }
    )


def _has_submodule(name: str) -> builtins.bool:
    import importlib.util

    return importlib.util.find_spec(f"taeda.{name}") is not None


__all__ = [
    *_OPERATIONS,
    *_TYPES,
    "Generator",
    "Size",
    "Tensor",
    "UntypedStorage",
    "are_deterministic_algorithms_enabled",
    "as_tensor",
    "asarray",
    "autograd",
    "bfloat16",
    "bool",
    "broadcast_shapes",
    "cartesian_prod",
    "cdouble",
    "cfloat",
    "chalf",
    "chain_matmul",
    "channels_last",
    "channels_last_3d",
    "compile",
    "complex32",
    "complex64",
    "complex128",
    "contiguous_format",
    "default_generator",
    "device",
    "double",
    "dtype",
    "e",
    "einsum",
    "empty_permuted",
    "enable_grad",
    "finfo",
    "float",
    "float8_e4m3fn",
    "float8_e4m3fnuz",
    "float8_e5m2",
    "float8_e5m2fnuz",
    "float8_e8m0fnu",
    "float16",
    "float32",
    "float64",
    "from_dlpack",
    "from_numpy",
    "frombuffer",
    "get_default_device",
    "get_default_dtype",
    "get_float32_matmul_precision",
    "get_num_interop_threads",
    "get_num_threads",
    "get_rng_state",
    "gradient",
    "grid_sampler_2d",
    "grid_sampler_3d",
    "half",
    "histogramdd",
    "iinfo",
    "inf",
    "inference_mode",
    "init_num_threads",
    "initial_seed",
    "int",
    "int8",
    "int16",
    "int32",
    "int64",
    "is_anomaly_check_nan_enabled",
    "is_anomaly_enabled",
    "is_complex",
    "is_conj",
    "is_deterministic_algorithms_warn_only_enabled",
    "is_floating_point",
    "is_grad_enabled",
    "is_inference",
    "is_inference_mode_enabled",
    "is_neg",
    "is_nonzero",
    "is_same_size",
    "is_signed",
    "is_storage",
    "is_tensor",
    "is_warn_always_enabled",
    "layout",
    "legacy_contiguous_format",
    "linalg",
    "load",
    "long",
    "manual_seed",
    "memory_format",
    "nan",
    "native_batch_norm",
    "native_group_norm",
    "native_layer_norm",
    "newaxis",
    "nn",
    "no_grad",
    "nonzero",
    "numel",
    "optim",
    "pca_lowrank",
    "pi",
    "preserve_format",
    "range",
    "return_types",
    "save",
    "seed",
    "set_default_device",
    "set_default_dtype",
    "set_default_tensor_type",
    "set_float32_matmul_precision",
    "set_grad_enabled",
    "set_num_interop_threads",
    "set_num_threads",
    "set_printoptions",
    "set_rng_state",
    "set_warn_always",
    "short",
    "sparse_coo",
    "sparse_bsc",
    "sparse_bsr",
    "sparse_csc",
    "sparse_csr",
    "strided",
    "svd_lowrank",
    "tensor",
    "tensordot",
    "to_dlpack",
    "typename",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "unique",
    "unique_consecutive",
    "unravel_index",
    "use_deterministic_algorithms",
    "utils",
    "where",
    "__version__",
]
