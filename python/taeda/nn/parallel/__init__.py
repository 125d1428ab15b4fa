"""One model on several devices, from one process."""

from .data_parallel import DataParallel as DataParallel
from .data_parallel import data_parallel as data_parallel
from .scatter_gather import gather as gather
from .scatter_gather import scatter as scatter

__all__ = ["DataParallel", "data_parallel", "gather", "scatter"]
