"""What programs need whose processes may be stopped and started anew, perhaps fewer of them."""

from . import multiprocessing
from .sampler import ElasticBatchSampler

__all__ = ["ElasticBatchSampler", "multiprocessing"]
