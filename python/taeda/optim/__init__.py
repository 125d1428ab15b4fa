"""Optimizers and learning rate schedules.

>>> import taeda
>>> model = taeda.nn.Linear(3, 1)
>>> optimizer = taeda.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
>>> loss = model(taeda.ones(4, 3)).square().mean()
>>> optimizer.zero_grad()
>>> loss.backward()
>>> optimizer.step()
"""

from . import lr_scheduler
from .adam import Adam, AdamW
from .adam_variants import Adamax, NAdam, RAdam
from .optimizer import Optimizer
from .rmsprop import Adadelta, Adagrad, RMSprop
from .sgd import SGD

__all__ = [
    "Adadelta",
    "Adagrad",
    "Adam",
    "AdamW",
    "Adamax",
    "NAdam",
    "Optimizer",
    "RAdam",
    "RMSprop",
    "SGD",
    "lr_scheduler",
]
