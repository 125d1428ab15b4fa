"""States of models and optimizers: by the names of parameters, and in files of one process.

`state_dict` has the functions for the former. `save` and `load` write and read folders of
``.safetensors`` files (`hf_storage`); PyTorch's own format of several processes is missing.
"""

from . import hf_storage, state_dict, stateful
from .hf_storage import (
    CheckpointException,
    HuggingFaceStorageReader,
    HuggingFaceStorageWriter,
    load,
    save,
)

__all__ = [
    "CheckpointException",
    "HuggingFaceStorageReader",
    "HuggingFaceStorageWriter",
    "hf_storage",
    "load",
    "save",
    "state_dict",
    "stateful",
]
