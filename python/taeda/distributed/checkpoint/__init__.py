"""States of models and optimizers, by the names of parameters: `state_dict`."""

from . import state_dict, stateful

__all__ = ["state_dict", "stateful"]
