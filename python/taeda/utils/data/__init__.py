"""Datasets, the orders in which to visit them, and batches.

>>> import taeda
>>> from taeda.utils.data import DataLoader, TensorDataset
>>> data = TensorDataset(taeda.arange(6.0).reshape(3, 2), taeda.tensor([0, 1, 1]))
>>> for inputs, labels in DataLoader(data, batch_size=2):
...     print(inputs.shape, labels.tolist())
taeda.Size([2, 2]) [0, 1]
taeda.Size([1, 2]) [1]
"""

from .collate import default_collate, default_convert
from .dataloader import DataLoader, get_worker_info
from .dataset import (
    ChainDataset,
    ConcatDataset,
    Dataset,
    IterableDataset,
    StackDataset,
    Subset,
    TensorDataset,
    random_split,
)
from .distributed import DistributedSampler
from .sampler import (
    BatchSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)

__all__ = [
    "BatchSampler",
    "ChainDataset",
    "ConcatDataset",
    "DataLoader",
    "Dataset",
    "DistributedSampler",
    "IterableDataset",
    "RandomSampler",
    "Sampler",
    "SequentialSampler",
    "StackDataset",
    "Subset",
    "SubsetRandomSampler",
    "TensorDataset",
    "WeightedRandomSampler",
    "default_collate",
    "default_convert",
    "get_worker_info",
    "random_split",
]
