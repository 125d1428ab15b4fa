"""All that going on with a training depends on, as a dictionary."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from taeda.functional import Parameters
from taeda.training._random import load_streams, streams

if TYPE_CHECKING:
    from taeda.training._callbacks import Callback
    from taeda.training._trainer import Trainer

__all__ = ["load_state", "state_of"]

_VERSION = 1


def state_of(trainer: Trainer) -> dict[str, Any]:
    """What ``Trainer.state_dict`` returns."""
    model = trainer.model
    kept = set(model.state_dict())
    waiting = trainer._gradients() if trainer._pending else {}
    return {
        "version": _VERSION,
        "model": model.state_dict(),
        "buffers": {n: b for n, b in model.named_buffers() if n not in kept},
        "optimizer": trainer.optimizer.state_dict(),
        "callbacks": [[type(c).__name__, state] for c, state in _remembering(trainer)],
        "gradients": dict(waiting),
        "streams": {"now": streams(trainer._loader), "epoch": trainer._epoch_streams},
        "progress": {
            "epoch": trainer.epoch,
            "batch": trainer.batch,
            "updates": trainer.updates,
            "pending": trainer._pending,
            "stop": trainer.stop,
            "sums": dict(trainer._sums),
            "history": [dict(log) for log in trainer.history],
        },
    }


def _remembering(trainer: Trainer) -> list[tuple[Callback, dict[str, Any]]]:
    """The callbacks that have a state, and it."""
    states = [(callback, callback.state_dict()) for callback in trainer.callbacks]
    return [(callback, state) for callback, state in states if state]


def load_state(trainer: Trainer, state: Mapping[str, Any]) -> None:
    """What ``Trainer.load_state_dict`` does."""
    if state.get("version") != _VERSION:
        raise ValueError(
            f"Trainer.load_state_dict: expected a state of version {_VERSION}, got "
            f"{state.get('version')!r}"
        )
    saved = [name for name, _ in state["callbacks"]]
    callbacks = [callback for callback, _ in _remembering(trainer)]
    own = [type(callback).__name__ for callback in callbacks]
    if saved != own:
        raise ValueError(
            f"Trainer.load_state_dict: the state was saved with the callbacks {saved}, the "
            f"trainer has {own}"
        )
    trainer.model.load_state_dict(state["model"])
    Parameters(state["buffers"]).copy_to(trainer.model)
    trainer.optimizer.load_state_dict(state["optimizer"])
    for callback, (_, own_state) in zip(callbacks, state["callbacks"], strict=True):
        callback.load_state_dict(own_state)
    trainer.zero_grad()
    for name, gradient in state["gradients"].items():
        trainer.model.get_parameter(name).grad = gradient
    progress = state["progress"]
    trainer.epoch, trainer.batch = progress["epoch"], progress["batch"]
    trainer.updates, trainer._pending = progress["updates"], progress["pending"]
    trainer.stop, trainer._sums = progress["stop"], dict(progress["sums"])
    trainer.history = [dict(log) for log in progress["history"]]
    trainer._resumed = state["streams"]
    load_streams(state["streams"]["now"], None)
