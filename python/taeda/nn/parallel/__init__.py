"""One model on several devices, from one process."""

from .data_parallel import DataParallel as DataParallel
from .data_parallel import data_parallel as data_parallel

__all__ = ["DataParallel", "data_parallel"]
