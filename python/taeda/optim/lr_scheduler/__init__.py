"""Learning rate schedules. Call ``scheduler.step()`` after ``optimizer.step()``.

Most schedules step from the rate that is set now, so that several can act on one optimizer: their
factors multiply.

>>> import taeda
>>> optimizer = taeda.optim.SGD([taeda.nn.Parameter(taeda.ones(1))], lr=1.0)
>>> scheduler = taeda.optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.5)
>>> for _ in range(4):
...     print(scheduler.get_last_lr())
...     optimizer.step()
...     scheduler.step()
[1.0]
[1.0]
[0.5]
[0.5]
"""

from .base import LRScheduler
from .combine import ChainedScheduler, SequentialLR
from .curves import CosineAnnealingLR, CosineAnnealingWarmRestarts
from .cycles import CyclicLR, OneCycleLR
from .factors import (
    ConstantLR,
    ExponentialLR,
    LambdaLR,
    LinearLR,
    MultiplicativeLR,
    MultiStepLR,
    PolynomialLR,
    StepLR,
)
from .plateau import ReduceLROnPlateau

_LRScheduler = LRScheduler  # the name that it once had, and that subclasses elsewhere still use

__all__ = [
    "ChainedScheduler",
    "ConstantLR",
    "CosineAnnealingLR",
    "CosineAnnealingWarmRestarts",
    "CyclicLR",
    "ExponentialLR",
    "LRScheduler",
    "LambdaLR",
    "LinearLR",
    "MultiStepLR",
    "MultiplicativeLR",
    "OneCycleLR",
    "PolynomialLR",
    "ReduceLROnPlateau",
    "SequentialLR",
    "StepLR",
]
