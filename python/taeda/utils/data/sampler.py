"""Samplers: the orders in which a DataLoader visits a dataset."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import taeda

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence, Sized

    from taeda import Generator, Tensor

__all__ = [
    "BatchSampler",
    "RandomSampler",
    "Sampler",
    "SequentialSampler",
    "SubsetRandomSampler",
    "WeightedRandomSampler",
]

T_co = TypeVar("T_co", covariant=True)


def check_positive(who: str, name: str, value: Any) -> None:
    """Raise unless ``value`` is an integer greater than 0."""
    if not isinstance(value, int) or isinstance(value, bool) or value <= 0:
        raise ValueError(f"{who}: {name} should be a positive integer value, but got {value!r}")


def check_bool(who: str, name: str, value: Any, error: type[Exception]) -> None:
    """Raise unless ``value`` is True or False."""
    if not isinstance(value, bool):
        raise error(f"{who}: {name} should be a boolean value, but got {value!r}")


def draw_seed(generator: Generator | None = None) -> int:
    """A seed from a generator: one draw of a 64-bit integer."""
    return int(taeda.empty((), dtype=taeda.int64).random_(generator=generator).item())


class Sampler(Generic[T_co]):
    """Base of samplers: a subclass gives ``__iter__`` over indices, and ``__len__`` where known."""

    def __iter__(self) -> Iterator[T_co]:
        raise NotImplementedError(f"{type(self).__name__} must define __iter__()")


class SequentialSampler(Sampler[int]):
    """All indices, in order.

    Args:
        data_source: what to sample from.
    """

    data_source: Sized

    def __init__(self, data_source: Sized) -> None:
        self.data_source = data_source

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)


class RandomSampler(Sampler[int]):
    """Indices in random order; another one in each pass.

    Args:
        data_source: what to sample from.
        replacement: draw each index independently, so that some come twice and others never.
        num_samples: how many to draw; as many as there are, where it is None. More than there are
            means several passes.
        generator: source of randomness. None seeds a new one from the default generator at each
            pass.

    Raises:
        TypeError: ``replacement`` is not a bool.
        ValueError: ``num_samples`` is not a positive integer, or ``data_source`` is empty.
    """

    def __init__(
        self,
        data_source: Sized,
        replacement: bool = False,
        num_samples: int | None = None,
        generator: Generator | None = None,
    ) -> None:
        self.data_source = data_source
        self.replacement = replacement
        self._num_samples = num_samples
        self.generator = generator
        check_bool("RandomSampler", "replacement", replacement, TypeError)
        check_positive("RandomSampler", "num_samples", self.num_samples)

    @property
    def num_samples(self) -> int:
        """How many indices a pass draws."""
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def pieces(self) -> Iterator[Tensor]:
        """The indices of a pass, as tensors of many."""
        count, wanted, generator = len(self.data_source), self.num_samples, self.generator
        if generator is None:
            generator = taeda.Generator()
            generator.manual_seed(draw_seed())
        if self.replacement:
            for start in range(0, wanted, 32):
                size = (min(32, wanted - start),)
                yield taeda.randint(count, size, dtype=taeda.int64, generator=generator)
            return
        for _ in range(wanted // count):
            yield taeda.randperm(count, generator=generator)
        # Drawn even where nothing of it is used, so that a generator goes the way PyTorch's goes.
        yield taeda.randperm(count, generator=generator)[: wanted % count]

    def __iter__(self) -> Iterator[int]:
        for piece in self.pieces():
            yield from piece.tolist()

    def __len__(self) -> int:
        return self.num_samples


class SubsetRandomSampler(Sampler[int]):
    """Given indices, in random order.

    Args:
        indices: what to draw, each once.
        generator: source of randomness; the default generator where it is None.
    """

    def __init__(self, indices: Sequence[int], generator: Generator | None = None) -> None:
        self.indices = indices
        self.generator = generator

    def __iter__(self) -> Iterator[int]:
        for i in taeda.randperm(len(self.indices), generator=self.generator).tolist():
            yield self.indices[i]

    def __len__(self) -> int:
        return len(self.indices)


class WeightedRandomSampler(Sampler[int]):
    """Indices drawn with given weights.

    Args:
        weights: the weight of each index; they need not add up to 1.
        num_samples: how many to draw.
        replacement: whether an index can come more than once.
        generator: source of randomness; the default generator where it is None.

    Raises:
        ValueError: ``weights`` is not one-dimensional, ``num_samples`` not a positive integer or
            ``replacement`` not a bool.
    """

    def __init__(
        self,
        weights: Sequence[float],
        num_samples: int,
        replacement: bool = True,
        generator: Generator | None = None,
    ) -> None:
        check_positive("WeightedRandomSampler", "num_samples", num_samples)
        check_bool("WeightedRandomSampler", "replacement", replacement, ValueError)
        self.weights = taeda.as_tensor(weights, dtype=taeda.float64)
        if self.weights.dim() != 1:
            raise ValueError(
                "WeightedRandomSampler: weights should be a 1d sequence, but have shape "
                f"{tuple(self.weights.shape)}"
            )
        self.num_samples = num_samples
        self.replacement = replacement
        self.generator = generator

    def __iter__(self) -> Iterator[int]:
        drawn = taeda.multinomial(
            self.weights, self.num_samples, self.replacement, generator=self.generator
        )
        yield from drawn.tolist()

    def __len__(self) -> int:
        return self.num_samples


class BatchSampler(Sampler["list[int]"]):
    """Lists of a sampler's indices.

    Args:
        sampler: anything that yields indices.
        batch_size: how many indices make a list.
        drop_last: leave out the last list where it is shorter.

    Raises:
        ValueError: ``batch_size`` is not a positive integer, or ``drop_last`` not a bool.

    >>> list(taeda.utils.data.BatchSampler(range(5), 2, drop_last=False))
    [[0, 1], [2, 3], [4]]
    """

    def __init__(self, sampler: Iterable[int], batch_size: int, drop_last: bool) -> None:
        check_positive("BatchSampler", "batch_size", batch_size)
        check_bool("BatchSampler", "drop_last", drop_last, ValueError)
        self.sampler = sampler
        self.batch_size = batch_size
        self.drop_last = drop_last

    def __iter__(self) -> Iterator[list[int]]:
        indices = iter(self.sampler)
        while batch := list(islice(indices, self.batch_size)):
            if len(batch) < self.batch_size and self.drop_last:
                return
            yield batch

    def __len__(self) -> int:
        count = len(self.sampler)  # type: ignore[arg-type]
        if self.drop_last:
            return count // self.batch_size
        return -(-count // self.batch_size)
