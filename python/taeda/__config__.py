"""The configuration of this build of taeda, for bug reports.

>>> import taeda
>>> taeda.__config__.show().splitlines()[0]
'taeda built with:'
"""

from __future__ import annotations

import os

from taeda import _C
from taeda._version import __version__
from taeda.backends.cpu import get_cpu_capability

__all__ = ["parallel_info", "show"]

# In the format in which packages parse PyTorch's settings.
_SETTINGS = {
    "BLAS_INFO": "open",
    "LAPACK_INFO": "open",
    "USE_CUDA": "OFF",
    "USE_CUDNN": "OFF",
    "USE_MKL": "OFF",
    "USE_MKLDNN": "OFF",
    "USE_MPI": "OFF",
    "USE_NCCL": "OFF",
    "USE_OPENMP": "OFF",
    "USE_ROCM": "OFF",
}


def show() -> str:
    """The versions and settings of this build, as a text of several lines."""
    settings = ", ".join(f"{name}={value}" for name, value in _SETTINGS.items())
    return "\n".join(
        [
            "taeda built with:",
            f"  - taeda {__version__}",
            "  - OpenBLAS, which has LAPACK, from scipy-openblas32",
            f"  - CPU capability usage: {get_cpu_capability()}",
            f"  - Build settings: {settings}",
            "",
        ]
    )


def parallel_info() -> str:
    """The number of threads, and the settings that determine it, as text."""
    named = ("TAEDA_NUM_THREADS", "OMP_NUM_THREADS")
    return "\n".join(
        [
            f"taeda.get_num_threads() : {_C.get_num_threads()}",
            f"os.cpu_count() : {os.cpu_count()}",
            "Environment variables:",
            *(f"\t{name} : {os.environ.get(name, '[not set]')}" for name in named),
            "Parallel backend: a pool of taeda's own",
            "",
        ]
    )
