"""DataLoader: batches of a dataset's samples, in the order of a sampler."""

from __future__ import annotations

import functools
import warnings
from itertools import islice
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import taeda

from ._worker_info import EXHAUSTED, get_worker_info
from .collate import default_collate, default_convert
from .dataset import IterableDataset, Subset, TensorDataset
from .pin_memory import pin_memory
from .sampler import (
    BatchSampler,
    RandomSampler,
    SequentialSampler,
    check_positive,
    draw_seed,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from typing_extensions import Self

    from taeda import Generator, Tensor

    from ._workers import WorkerPass, Workers
    from .dataset import Dataset

__all__ = ["DataLoader", "get_worker_info"]

T_co = TypeVar("T_co", covariant=True)

_FIXED = frozenset(
    ["dataset", "batch_size", "batch_sampler", "sampler", "drop_last", "persistent_workers"]
)
_PREFETCH = 2


class DataLoader(Generic[T_co]):
    """Go through a dataset in batches, in this process or with workers.

    The order of a shuffled pass, and what it takes from the default generator, are PyTorch's.
    A ``TensorDataset`` (or a ``Subset`` of one) with the default ``collate_fn`` is read a batch
    at a time instead of a sample at a time.

    Batches from workers come through shared memory that has no name: none is left behind, however
    a process ends. A worker's exception is raised here, with its traceback; a worker that dies is
    reported as RuntimeError. All workers end with the pass, unless they are persistent.

    Args:
        dataset: a Dataset with indices and a length, or an IterableDataset.
        batch_size: samples in a batch. None yields single samples.
        shuffle: visit the samples in a new random order in each pass.
        sampler: yields the indices to visit; not together with ``shuffle``.
        batch_sampler: yields lists of indices; not together with ``batch_size``, ``shuffle``,
            ``sampler`` or ``drop_last``.
        num_workers: how many processes load batches. 0: this one does.
        collate_fn: makes a batch of a list of samples. Where it is None, ``default_collate``; for
            single samples ``default_convert``.
        pin_memory: copy batches to memory that a GPU reads faster: those of workers in a thread, as
            soon as they come. Warns where there is no GPU.
        drop_last: leave out the last batch where it is smaller.
        timeout: seconds to wait for a batch from the workers; 0 waits for ever.
        worker_init_fn: called in each worker, with its number, before it loads anything.
        multiprocessing_context: how workers start, as a context of ``multiprocessing`` or its name;
            None is Python's default.
        generator: source of randomness for ``shuffle`` and of the workers' seeds; the default
            generator where it is None.
        prefetch_factor: batches that each worker prepares ahead; 2 where it is None.
        persistent_workers: keep the workers, and their copies of the dataset, between passes.
        pin_memory_device: the CUDA device whose driver pins; ``""`` is the current one.
        in_order: yield batches in the sampler's order. False yields them as workers finish.

    Raises:
        ValueError: options contradict each other.

    >>> data = taeda.utils.data.TensorDataset(taeda.arange(5))
    >>> [x.tolist() for (x,) in taeda.utils.data.DataLoader(data, batch_size=2)]
    [[0, 1], [2, 3], [4]]
    """

    dataset: Dataset[T_co]
    batch_size: int | None
    sampler: Any
    batch_sampler: Any
    drop_last: bool
    _ready = False

    def __init__(
        self,
        dataset: Dataset[T_co],
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Iterable[Any] | None = None,
        batch_sampler: Iterable[list[Any]] | None = None,
        num_workers: int = 0,
        collate_fn: Callable[[list[T_co]], Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Callable[[int], None] | None = None,
        multiprocessing_context: Any = None,
        generator: Generator | None = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
        in_order: bool = True,
    ) -> None:
        if num_workers < 0:
            raise ValueError(f"DataLoader: num_workers should be non-negative, got {num_workers}")
        if timeout < 0:
            raise ValueError(f"DataLoader: timeout should be non-negative, got {timeout}")
        for option, given in (
            ("prefetch_factor", prefetch_factor is not None),
            ("persistent_workers", persistent_workers),
            ("multiprocessing_context", multiprocessing_context is not None),
        ):
            if given and num_workers == 0:
                raise ValueError(f"DataLoader: {option} needs num_workers > 0")
        if prefetch_factor is not None:
            check_positive("DataLoader", "prefetch_factor", prefetch_factor)
        if pin_memory_device and taeda.device(pin_memory_device).type != "cuda":
            raise ValueError(
                f"DataLoader: pin_memory_device must be a cuda device, got {pin_memory_device!r}"
            )
        self.dataset = dataset
        self.num_workers = num_workers
        self.prefetch_factor = prefetch_factor or (_PREFETCH if num_workers else None)
        self.pin_memory = pin_memory
        self.pin_memory_device = pin_memory_device
        self.timeout = timeout
        self.worker_init_fn = worker_init_fn
        self.multiprocessing_context = _context(multiprocessing_context)
        self.persistent_workers = persistent_workers
        self.in_order = in_order
        self.generator = generator

        if self._dataset_kind == _DatasetKind.Iterable:
            for option, value in (
                ("shuffle", shuffle or None),
                ("sampler", sampler),
                ("batch_sampler", batch_sampler),
            ):
                if value is not None:
                    raise ValueError(
                        f"DataLoader: an IterableDataset has its own order; {option} should not "
                        f"be given, got {value!r}"
                    )
        if sampler is not None and shuffle:
            raise ValueError("DataLoader: sampler option is mutually exclusive with shuffle")
        if batch_sampler is not None:
            if batch_size != 1 or shuffle or sampler is not None or drop_last:
                raise ValueError(
                    "DataLoader: batch_sampler option is mutually exclusive with batch_size, "
                    "shuffle, sampler, and drop_last"
                )
            batch_size = None
            drop_last = False
        elif batch_size is None:
            if drop_last:
                raise ValueError(
                    "DataLoader: batch_size=None yields single samples and is mutually "
                    "exclusive with drop_last"
                )
        else:
            check_positive("DataLoader", "batch_size", batch_size)

        source: Any = dataset
        order: Any = sampler
        if order is None:
            if self._dataset_kind == _DatasetKind.Iterable:
                order = _Endless()
            elif shuffle:
                order = RandomSampler(source, generator=generator)
            else:
                order = SequentialSampler(source)
        if batch_sampler is None and batch_size is not None:
            batch_sampler = BatchSampler(order, batch_size, drop_last)
        self.batch_size = batch_size
        self.drop_last = drop_last
        self.sampler = order
        self.batch_sampler = batch_sampler
        if collate_fn is None:
            collate_fn = default_convert if batch_sampler is None else default_collate
        self.collate_fn = collate_fn
        self._IterableDataset_len_called: int | None = None  # what __len__ said, to compare with
        self._workers: Workers | None = None  # that persist
        self._ready = True

    @property
    def _dataset_kind(self) -> int:
        iterable = isinstance(self.dataset, IterableDataset)
        return _DatasetKind.Iterable if iterable else _DatasetKind.Map

    @property
    def _auto_collation(self) -> bool:
        return self.batch_sampler is not None

    @property
    def _index_sampler(self) -> Any:
        return self.sampler if self.batch_sampler is None else self.batch_sampler

    def __setattr__(self, name: str, value: Any) -> None:
        if self._ready and name in _FIXED:
            raise ValueError(
                f"DataLoader: {name} should not be set after the loader is made; make another one"
            )
        super().__setattr__(name, value)

    def __iter__(self) -> Iterator[Any]:
        if self.num_workers:
            return _MultiProcessingDataLoaderIter(self)
        return _SingleProcessDataLoaderIter(self)

    def __len__(self) -> int:
        if self._dataset_kind == _DatasetKind.Iterable:
            # The number of samples may be a guess; the pass compares it with what comes.
            samples = self._IterableDataset_len_called = len(self.dataset)  # type: ignore[arg-type]
            if self.batch_size is None:
                return samples
            if self.drop_last:
                return samples // self.batch_size
            return -(-samples // self.batch_size)
        return len(self._index_sampler)


class _Endless:
    """Yields None for ever: the sampler of datasets that have an order of their own."""

    def __iter__(self) -> Iterator[None]:
        while True:
            yield None


def _context(given: Any) -> Any:
    """A multiprocessing context, from one or from its name."""
    if given is None:
        return None
    import multiprocessing

    if isinstance(given, str):
        methods = multiprocessing.get_all_start_methods()
        if given not in methods:
            raise ValueError(
                f"DataLoader: multiprocessing_context must be one of {methods}, got {given!r}"
            )
        return multiprocessing.get_context(given)
    if not hasattr(given, "Process") or not hasattr(given, "get_start_method"):
        raise TypeError(
            "DataLoader: multiprocessing_context must be a context of multiprocessing or the name "
            f"of one, got {type(given).__name__}"
        )
    return given


class _DatasetKind:
    """Whether samples are read by index, or come in an order of their own."""

    Map = 0
    Iterable = 1


class _BaseDataLoaderIter:
    """One pass through a DataLoader.

    Packages look for these classes by PyTorch's names, and make passes through loaders of their
    own: what is read of a loader here is called as it is there.
    """

    _batches: Iterator[Any]

    def __init__(self, loader: Any) -> None:
        self._length_of = loader
        self._pin: int | None = None  # the device for which batches are pinned here
        if loader.pin_memory and _has_gpu():
            named = taeda.device(getattr(loader, "pin_memory_device", None) or "cuda").index
            self._pin = taeda.cuda.current_device() if named is None else named
        elif loader.pin_memory:
            warnings.warn(
                "DataLoader: pin_memory is set, but no accelerator is found; batches stay in "
                "ordinary memory",
                stacklevel=4,
            )

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Any:
        batch = next(self._batches)
        if self._pin is None:
            return batch
        with taeda.cuda.device(self._pin):
            return pin_memory(batch)

    def __len__(self) -> int:
        return len(self._length_of)


class _SingleProcessDataLoaderIter(_BaseDataLoaderIter):
    """A pass that reads the dataset itself."""

    def __init__(self, loader: Any) -> None:
        super().__init__(loader)
        # PyTorch draws a seed for its workers at the start of every pass, also without workers.
        draw_seed(loader.generator)
        if loader._dataset_kind == _DatasetKind.Iterable:
            self._batches = _from_stream(loader)
        else:
            tensors, chosen = _tensors_of(loader)
            if tensors is not None:
                self._batches = _from_tensors(loader, tensors, chosen)
            else:
                self._batches = _from_samples(loader)


class _MultiProcessingDataLoaderIter(_BaseDataLoaderIter):
    """A pass whose batches are made by worker processes."""

    _batches: WorkerPass

    def __init__(self, loader: Any) -> None:
        super().__init__(loader)
        pin, self._pin = self._pin, None  # a thread does
        self._batches = _from_workers(loader, pin)

    def _shutdown_workers(self) -> None:
        """End the processes, also those that would persist."""
        self._batches.stop()


def _from_workers(loader: DataLoader[Any], pin: int | None) -> WorkerPass:
    """Batches that worker processes make."""
    from ._workers import WorkerPass

    assert loader.prefetch_factor is not None
    workers = getattr(loader, "_workers", None)
    if workers is None or not workers.processes:
        workers = _start_workers(loader)
        loader._workers = workers if loader.persistent_workers else None
    tasks = loader._index_sampler
    size = _stream_size(loader) or 1
    length = loader._IterableDataset_len_called
    if length is not None:
        length = length // size if loader.drop_last else -(-length // size)
    return WorkerPass(
        workers,
        iter(tasks),
        loader.prefetch_factor,
        timeout=loader.timeout,
        in_order=loader.in_order,
        keep=loader.persistent_workers,
        length=length,
        pin=pin,
    )


def _start_workers(loader: DataLoader[Any]) -> Workers:
    import multiprocessing

    from ._worker import Job
    from ._workers import Workers

    assert loader.prefetch_factor is not None
    if loader._dataset_kind == _DatasetKind.Iterable:
        options = (loader.collate_fn, _stream_size(loader), loader.drop_last)
        fetch = functools.partial(_stream_fetch, *options)
    else:
        batched = loader._auto_collation
        fetch = functools.partial(_sample_fetch, loader.collate_fn, batched)
    seed = draw_seed(loader.generator)
    job = Job(loader.dataset, fetch, loader.worker_init_fn, seed, loader.num_workers)
    context = loader.multiprocessing_context or multiprocessing.get_context()
    return Workers(context, loader.num_workers, job, loader.prefetch_factor)


def _stream_size(loader: DataLoader[Any]) -> int | None:
    """How many samples of a stream make a batch; None where each is given as it is."""
    return loader.batch_size if loader._auto_collation else None


def _stream_fetch(collate: Any, size: int | None, drop_last: bool, dataset: Any) -> Any:
    """Return the fetch function for the batches of an IterableDataset."""
    samples = iter(dataset)

    def fetch(task: Any) -> Any:
        batch = list(islice(samples, size or 1))
        if not batch or (drop_last and size is not None and len(batch) < size):
            return EXHAUSTED
        return collate(batch if size is not None else batch[0])

    return fetch


def _sample_fetch(collate: Any, batched: bool, dataset: Any) -> Any:
    """Return the fetch function for batches of given indices."""
    together = getattr(dataset, "__getitems__", None)

    def fetch(task: Any) -> Any:
        if not batched:
            return collate(dataset[task])
        return collate(together(task) if together else [dataset[index] for index in task])

    return fetch


def _has_gpu() -> bool:
    cuda = getattr(taeda, "cuda", None)
    return cuda is not None and cuda.is_available()


def _from_samples(loader: DataLoader[Any]) -> Iterator[Any]:
    """Batches of a dataset with indices, sample by sample."""
    fetch = _sample_fetch(loader.collate_fn, loader._auto_collation, loader.dataset)
    for task in loader._index_sampler:
        yield fetch(task)


def _from_stream(loader: DataLoader[Any]) -> Iterator[Any]:
    """Batches of an IterableDataset."""
    dataset: Any = loader.dataset
    samples, collate, size = iter(dataset), loader.collate_fn, _stream_size(loader)
    seen = 0
    warned = False
    while batch := list(islice(samples, size or 1)):
        if loader.drop_last and size is not None and len(batch) < size:
            return
        seen += len(batch)
        if (
            not warned
            and loader._IterableDataset_len_called is not None
            and seen > loader._IterableDataset_len_called
        ):
            warnings.warn(
                f"DataLoader: the length of {type(loader.dataset).__name__} was said to be "
                f"{loader._IterableDataset_len_called}, but {seen} samples have come",
                stacklevel=3,
            )
            warned = True
        yield collate(batch if size is not None else batch[0])


def _tensors_of(loader: DataLoader[Any]) -> tuple[tuple[Tensor, ...] | None, Tensor | None]:
    """The tensors to take whole batches from, and which of their rows; (None, None) if none."""
    dataset: Any = loader.dataset
    subsets = []
    while type(dataset) is Subset:
        subsets.append(dataset.indices)
        dataset = dataset.dataset
    if (
        loader.collate_fn is not default_collate
        or loader.batch_sampler is None
        or type(dataset) is not TensorDataset
        or not dataset.tensors
        or any(type(t) is not taeda.Tensor or t.requires_grad for t in dataset.tensors)
    ):
        return None, None
    chosen = None
    for indices in reversed(subsets):
        indices = list(indices)
        if any(type(i) is not int for i in indices):
            return None, None
        rows = taeda.tensor(indices, dtype=taeda.int64)
        chosen = rows if chosen is None else chosen[rows]
    return dataset.tensors, chosen


def _from_tensors(
    loader: DataLoader[Any], tensors: tuple[Tensor, ...], chosen: Tensor | None
) -> Iterator[Any]:
    """Batches of a TensorDataset, each taken from every tensor in one operation."""
    for rows in _row_batches(loader):
        if isinstance(rows, list):
            if not rows or any(type(i) is not int for i in rows):
                # Whatever this sampler means, the dataset knows.
                yield default_collate([loader.dataset[i] for i in rows])
                continue
            rows = taeda.tensor(rows, dtype=taeda.int64)
        if chosen is not None:
            rows = chosen[rows]
        # A slice of a tensor is a view of it; batches are the caller's own.
        parts = [tensor[rows] for tensor in tensors]
        yield [part.clone() for part in parts] if isinstance(rows, slice) else parts


def _row_batches(loader: DataLoader[Any]) -> Iterator[Any]:
    """The rows of each batch: a slice, a tensor of indices, or what another sampler gives."""
    batches, sampler = loader.batch_sampler, loader.sampler
    if type(batches) is BatchSampler and batches.sampler is sampler:
        size = batches.batch_size
        if type(sampler) is SequentialSampler:
            total = len(sampler)
            stop = total - total % size if batches.drop_last else total
            for start in range(0, stop, size):
                yield slice(start, min(start + size, stop))
            return
        if type(sampler) is RandomSampler:
            rest: Any = None
            for piece in sampler.pieces():
                rest = piece if rest is None else taeda.cat((rest, piece))
                while rest.size(0) >= size:
                    yield rest[:size]
                    rest = rest[size:]
            if rest is not None and rest.size(0) and not batches.drop_last:
                yield rest
            return
    for indices in batches:
        yield list(indices)
