"""States of models and optimizers: by the names of parameters, and in files.

`save` and `load` write and read folders, for any number of processes, or ``.safetensors`` files as
the Hugging Face hub has them (`hf_storage`). `state_dict` has the states of models that are wrapped
or divided. The files of PyTorch's module of this name are not read.
"""

from . import hf_storage, state_dict, stateful
from ._folders import FileSystemReader, FileSystemWriter
from ._saving import CheckpointException, load, save
from .hf_storage import HuggingFaceStorageReader, HuggingFaceStorageWriter

__all__ = [
    "CheckpointException",
    "FileSystemReader",
    "FileSystemWriter",
    "HuggingFaceStorageReader",
    "HuggingFaceStorageWriter",
    "hf_storage",
    "load",
    "save",
    "state_dict",
    "stateful",
]
