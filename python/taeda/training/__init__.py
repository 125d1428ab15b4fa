"""An object that owns a model's training: ``Trainer``, and the callbacks that extend it."""

from taeda.training._callbacks import (
    Accumulate,
    Average,
    Callback,
    Checkpoint,
    Clip,
    EarlyStopping,
    MixedPrecision,
    Progress,
    Schedule,
)
from taeda.training._trainer import Step, Trainer

__all__ = [
    "Accumulate",
    "Average",
    "Callback",
    "Checkpoint",
    "Clip",
    "EarlyStopping",
    "MixedPrecision",
    "Progress",
    "Schedule",
    "Step",
    "Trainer",
]
