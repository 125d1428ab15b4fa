"""How long statements take: a timer that knows of threads and noise, and tables of its results.

>>> from taeda.utils import benchmark
>>> timer = benchmark.Timer("x + x", setup="x = taeda.ones(64)", label="add", num_threads=1)
>>> measurement = timer.timeit(100)
>>> measurement.number_per_run, measurement.median > 0
(100, True)
"""

from taeda.utils.benchmark._compare import Compare
from taeda.utils.benchmark._measurement import (
    Measurement,
    TaskSpec,
    select_unit,
    trim_sigfig,
)
from taeda.utils.benchmark._timer import Timer, timer

__all__ = ["Compare", "Measurement", "TaskSpec", "Timer", "select_unit", "timer", "trim_sigfig"]
