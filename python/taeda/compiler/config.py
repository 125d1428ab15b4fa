"""Settings of PyTorch's compiler, for programs that set them: they choose nothing.

>>> import taeda
>>> taeda.compiler.config.recompile_limit
8
"""

from __future__ import annotations

from typing import Any

__all__ = [
    "accumulated_recompile_limit",
    "allow_unspec_int_on_nn_module",
    "assume_static_by_default",
    "automatic_dynamic_shapes",
    "capture_dynamic_output_shape_ops",
    "capture_scalar_outputs",
    "dynamic_shapes",
    "enable_cpp_symbolic_shape_guards",
    "fail_on_recompile_limit_hit",
    "force_disable_caches",
    "recompile_limit",
    "reorderable_logging_functions",
    "skip_tensor_guards_with_matching_dict_tags",
    "verbose",
    "wrap_top_frame",
]

accumulated_recompile_limit = 256
allow_unspec_int_on_nn_module = False
assume_static_by_default = True
automatic_dynamic_shapes = True
capture_dynamic_output_shape_ops = False
capture_scalar_outputs = False
dynamic_shapes = True
enable_cpp_symbolic_shape_guards = False
fail_on_recompile_limit_hit = False
force_disable_caches = False
recompile_limit = 8
reorderable_logging_functions: set[Any] = set()
skip_tensor_guards_with_matching_dict_tags = True
verbose = False
wrap_top_frame = False
