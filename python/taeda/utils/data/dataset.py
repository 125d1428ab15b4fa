"""Datasets: what a DataLoader takes samples from."""

from __future__ import annotations

import math
import warnings
from bisect import bisect_right
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import taeda

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from taeda import Generator, Tensor

__all__ = [
    "ChainDataset",
    "ConcatDataset",
    "Dataset",
    "IterableDataset",
    "StackDataset",
    "Subset",
    "TensorDataset",
    "random_split",
]

T_co = TypeVar("T_co", covariant=True)


class Dataset(Generic[T_co]):
    """Samples by index: a subclass gives ``__getitem__``, and ``__len__`` where it has an end.

    It may also give ``__getitems__(indices)``, which returns the list of a whole batch's samples
    faster than one by one; a DataLoader then uses that. ``a + b`` is ``ConcatDataset([a, b])``.
    """

    def __getitem__(self, index: Any) -> T_co:
        raise NotImplementedError(f"{type(self).__name__} must define __getitem__()")

    def __add__(self, other: Dataset[Any]) -> ConcatDataset:
        return ConcatDataset([self, other])


class IterableDataset(Dataset[T_co]):
    """Samples in an order of their own, as from a stream: a subclass gives ``__iter__``.

    ``a + b`` is ``ChainDataset([a, b])``.
    """

    def __iter__(self) -> Iterator[T_co]:
        raise NotImplementedError(f"{type(self).__name__} must define __iter__()")

    def __add__(self, other: Dataset[Any]) -> ChainDataset:  # type: ignore[override]
        return ChainDataset([self, other])


class TensorDataset(Dataset["tuple[Tensor, ...]"]):
    """Sample ``i`` is the tuple of every tensor's row ``i``.

    Args:
        tensors: tensors with the same size of their first dimension.

    Raises:
        AssertionError: their first dimensions differ.

    >>> data = taeda.utils.data.TensorDataset(taeda.arange(4), taeda.ones(4, 2))
    >>> data[1]
    (tensor(1), tensor([1., 1.]))
    """

    tensors: tuple[Tensor, ...]

    def __init__(self, *tensors: Tensor) -> None:
        sizes = [tensor.size(0) for tensor in tensors]
        if len(set(sizes)) > 1:
            raise AssertionError(f"TensorDataset: Size mismatch between tensors: {sizes} rows")
        self.tensors = tensors

    def __getitem__(self, index: Any) -> tuple[Tensor, ...]:
        return tuple(tensor[index] for tensor in self.tensors)

    def __len__(self) -> int:
        return int(self.tensors[0].size(0))


class StackDataset(Dataset[Any]):
    """Sample ``i`` is a tuple, or a dict, of every dataset's sample ``i``.

    Args:
        args: datasets of the same length; samples are tuples.
        kwargs: datasets of the same length, named; samples are dicts. Not both.

    Raises:
        ValueError: no dataset is given, both kinds are, or lengths differ.
    """

    datasets: tuple[Any, ...] | dict[str, Any]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if bool(args) == bool(kwargs):
            raise ValueError(
                "StackDataset: at least one dataset should be passed, and either all by "
                f"position or all by name; got {len(args)} and {len(kwargs)}"
            )
        self.datasets = args or kwargs
        lengths = [len(dataset) for dataset in self._all()]
        if len(set(lengths)) > 1:
            raise ValueError(f"StackDataset: Size mismatch between datasets: lengths {lengths}")
        self._length = lengths[0]

    def _all(self) -> list[Any]:
        return list(self.datasets.values() if isinstance(self.datasets, dict) else self.datasets)

    def _sample(self, parts: Sequence[Any]) -> Any:
        if isinstance(self.datasets, dict):
            return dict(zip(self.datasets, parts, strict=True))
        return tuple(parts)

    def __getitem__(self, index: Any) -> Any:
        return self._sample([dataset[index] for dataset in self._all()])

    def __getitems__(self, indices: list[Any]) -> list[Any]:
        columns = [_fetch(dataset, indices) for dataset in self._all()]
        return [self._sample(parts) for parts in zip(*columns, strict=True)]

    def __len__(self) -> int:
        return self._length


def _fetch(dataset: Any, indices: list[Any]) -> list[Any]:
    """Several samples of a dataset, in the way it offers."""
    together = getattr(dataset, "__getitems__", None)
    if not callable(together):
        return [dataset[index] for index in indices]
    samples = together(indices)
    if len(samples) != len(indices):
        raise ValueError(
            f"{type(dataset).__name__}.__getitems__: asked for {len(indices)} samples, "
            f"it returned {len(samples)}"
        )
    return list(samples)


class ConcatDataset(Dataset[Any]):
    """The samples of several datasets, one after the other.

    Args:
        datasets: datasets with lengths.

    Raises:
        AssertionError: there are none, or one is an IterableDataset.
    """

    datasets: list[Any]
    cumulative_sizes: list[int]

    def __init__(self, datasets: Iterable[Any]) -> None:
        self.datasets = list(datasets)
        if not self.datasets:
            raise AssertionError("ConcatDataset: datasets should not be an empty iterable")
        for dataset in self.datasets:
            if isinstance(dataset, IterableDataset):
                raise AssertionError(
                    "ConcatDataset: IterableDatasets have no indices; use ChainDataset"
                )
        self.cumulative_sizes = list(accumulate(len(dataset) for dataset in self.datasets))

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]

    def __getitem__(self, index: int) -> Any:
        if index < 0:
            if -index > len(self):
                raise ValueError(
                    f"ConcatDataset: index {index} is out of range for {len(self)} samples"
                )
            index += len(self)
        elif index >= len(self):
            raise IndexError(
                f"ConcatDataset: index {index} is out of range for {len(self)} samples"
            )
        which = bisect_right(self.cumulative_sizes, index)
        before = self.cumulative_sizes[which - 1] if which else 0
        return self.datasets[which][index - before]


class ChainDataset(IterableDataset[Any]):
    """The samples of several IterableDatasets, one after the other.

    Args:
        datasets: IterableDatasets.
    """

    def __init__(self, datasets: Iterable[Any]) -> None:
        super().__init__()
        self.datasets = datasets

    def _check(self, dataset: Any) -> None:
        if not isinstance(dataset, IterableDataset):
            raise AssertionError(
                f"ChainDataset: only IterableDatasets can be chained, got {type(dataset).__name__}"
            )

    def __iter__(self) -> Iterator[Any]:
        for dataset in self.datasets:
            self._check(dataset)
            yield from dataset

    def __len__(self) -> int:
        total = 0
        for dataset in self.datasets:
            self._check(dataset)
            total += len(dataset)
        return total


class Subset(Dataset[T_co]):
    """Some samples of a dataset.

    Args:
        dataset: the whole.
        indices: which of its samples, in what order.
    """

    dataset: Dataset[T_co]
    indices: Sequence[int]

    def __init__(self, dataset: Dataset[T_co], indices: Sequence[int]) -> None:
        self.dataset = dataset
        self.indices = indices

    def __getitem__(self, index: Any) -> T_co:
        if isinstance(index, list):
            return self.dataset[[self.indices[i] for i in index]]
        return self.dataset[self.indices[index]]

    def __getitems__(self, indices: list[int]) -> list[T_co]:
        return _fetch(self.dataset, [self.indices[i] for i in indices])

    def __len__(self) -> int:
        return len(self.indices)


def random_split(
    dataset: Dataset[T_co],
    lengths: Sequence[int | float],
    generator: Generator | None = None,
) -> list[Subset[T_co]]:
    """Divide a dataset at random into parts that do not overlap.

    Args:
        dataset: what to divide.
        lengths: the parts' lengths, which add up to the whole; or fractions that add up to 1.
            Samples left over by rounding fractions down go to the first parts, one each.
        generator: source of randomness; the default generator where it is None.

    Raises:
        ValueError: the lengths do not add up, or a fraction is not between 0 and 1.

    >>> a, b = taeda.utils.data.random_split(range(10), [0.7, 0.3])
    >>> len(a), len(b)
    (7, 3)
    """
    total = len(dataset)  # type: ignore[arg-type]
    if math.isclose(sum(lengths), 1) and sum(lengths) <= 1:
        counts: list[int] = []
        for i, fraction in enumerate(lengths):
            if not 0 <= fraction <= 1:
                raise ValueError(
                    f"random_split: Fraction at index {i} is not between 0 and 1: {fraction}"
                )
            counts.append(math.floor(total * fraction))
        for i in range(total - sum(counts)):
            counts[i % len(counts)] += 1
        for i, count in enumerate(counts):
            if count == 0:
                warnings.warn(f"random_split: the part at index {i} has no samples", stacklevel=2)
    else:
        counts = [int(length) for length in lengths]
    if sum(counts) != total or any(count < 0 for count in counts):
        raise ValueError(
            f"random_split: lengths {list(lengths)} do not add up to the dataset's {total} samples"
        )
    order = taeda.randperm(total, generator=generator).tolist()
    ends = list(accumulate(counts))
    return [
        Subset(dataset, order[end - count : end]) for end, count in zip(ends, counts, strict=True)
    ]
