"""Datasets, samplers and DataLoaders: PyTorch's batches, in PyTorch's order."""

from __future__ import annotations

import collections
import itertools

import numpy as np
import pytest

import taeda
from taeda.utils import data

Pair = collections.namedtuple("Pair", "a b")


def plain(value):
    """A value without the library it came from: tensors as (dtype, shape, values)."""
    if hasattr(value, "untyped_storage"):
        return (str(value.dtype).split(".")[1], tuple(value.shape), value.tolist())
    if isinstance(value, dict):
        return type(value), {key: plain(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value), [plain(part) for part in value]
    return value


class Counted:
    """A sampler or dataset with whatever items it is given."""

    def __init__(self, items):
        self.items = items

    def __iter__(self):
        return iter(self.items)

    def __len__(self):
        return len(self.items)


def make_dataset(library, kind):
    module = library.utils.data
    rows = library.arange(53 * 3).reshape(53, 3).float()
    tensors = module.TensorDataset(rows, library.arange(53))
    if kind == "list":
        return [(float(i), {"index": i, "name": str(i)}) for i in range(53)]
    if kind == "samples":

        class Samples(module.Dataset):
            def __getitem__(self, i):
                return rows[i], i

            def __len__(self):
                return 53

        return Samples()
    if kind == "split":
        return module.random_split(tensors, [20, 33])[1]
    if kind == "subset of subset":
        return module.Subset(module.Subset(tensors, range(3, 50)), list(range(0, 40, 2)))
    if kind == "stack":
        return module.StackDataset(a=tensors, b=range(53))
    return tensors


def loader_options(module, dataset, sampler, generator):
    if sampler == "replacement":
        return {"sampler": module.RandomSampler(dataset, True, 75, generator)}
    if sampler == "several passes":
        return {"sampler": module.RandomSampler(dataset, num_samples=130, generator=generator)}
    if sampler == "weighted":
        weights = [0.1] * len(dataset)
        return {"sampler": module.WeightedRandomSampler(weights, 30, generator=generator)}
    if sampler == "subset":
        return {"sampler": module.SubsetRandomSampler([3, 1, 4, 7], generator)}
    if sampler == "negative":
        return {"sampler": Counted([3, -1, -2, 2])}
    if sampler == "list":
        return {"sampler": [3, 1, 1, 2, 9, 0]}
    return {}


def run(library, kind, sampler, generator_seed, passes=2, **options):
    """Every batch of some passes, each followed by what the default generator then gives."""
    library.manual_seed(5)
    dataset = make_dataset(library, kind)
    generator = None
    if generator_seed is not None:
        generator = library.Generator()
        generator.manual_seed(generator_seed)
    options |= loader_options(library.utils.data, dataset, sampler, generator)
    loader = library.utils.data.DataLoader(dataset, generator=generator, **options)
    result = [len(loader)]
    for _ in range(passes):
        for batch in loader:
            result.append(plain(batch))
            result.append(library.rand(1).item())
    result.append(library.rand(3).tolist())
    if generator is not None:
        result.append(library.rand(3, generator=generator).tolist())
    return result


KINDS = ["tensors", "list", "samples", "split", "subset of subset", "stack"]
SAMPLERS = [None, "replacement", "several passes", "weighted", "subset", "negative", "list"]


@pytest.mark.parametrize("sampler", SAMPLERS)
@pytest.mark.parametrize("kind", KINDS)
def test_same_batches_and_draws_as_pytorch(kind, sampler):
    torch = pytest.importorskip("torch")
    for batch_size, drop_last, shuffle, seed in itertools.product(
        (1, 4, 60, None), (False, True), (False, True), (None, 7)
    ):
        if (batch_size is None and drop_last) or (sampler and shuffle):
            continue
        options = {"batch_size": batch_size, "drop_last": drop_last, "shuffle": shuffle}
        ours = run(taeda, kind, sampler, seed, **options)
        assert ours == run(torch, kind, sampler, seed, **options), (options, seed)


def test_batches_are_the_callers_own():
    rows = taeda.arange(4.0)
    for shuffle in (False, True):
        for (batch,) in data.DataLoader(data.TensorDataset(rows), batch_size=2, shuffle=shuffle):
            batch.zero_()
    assert rows.tolist() == [0.0, 1.0, 2.0, 3.0]


def test_subclasses_of_tensor_dataset_are_asked_themselves():
    class Shifted(data.TensorDataset):
        def __getitem__(self, index):
            return (super().__getitem__(index)[0] + 100,)

    (batch,) = data.DataLoader(Shifted(taeda.arange(3)), batch_size=3)
    assert batch[0].tolist() == [100, 101, 102]


def test_datasets_can_give_whole_batches():
    class Whole(data.Dataset):
        def __getitems__(self, indices):
            return [10 * i for i in indices]

        def __len__(self):
            return 4

    assert [b.tolist() for b in data.DataLoader(Whole(), batch_size=2)] == [[0, 10], [20, 30]]


def test_batch_samplers_and_collate_functions():
    loader = data.DataLoader(range(10), batch_sampler=[[1, 2], [5]], collate_fn=lambda batch: batch)
    assert list(loader) == [[1, 2], [5]] and len(loader) == 2
    assert list(data.DataLoader(["a", "b"], batch_size=None)) == ["a", "b"]


# Iterable datasets


class Stream(data.IterableDataset):
    def __iter__(self):
        return iter(range(7))


class Measured(Stream):
    def __len__(self):
        return 5


def test_iterable_datasets():
    def batches(**options):
        return [
            b if isinstance(b, int) else b.tolist() for b in data.DataLoader(Stream(), **options)
        ]

    assert batches(batch_size=3) == [[0, 1, 2], [3, 4, 5], [6]]
    assert batches(batch_size=3, drop_last=True) == [[0, 1, 2], [3, 4, 5]]
    assert batches(batch_size=None) == list(range(7))
    assert list(Stream() + Stream()) == [*range(7), *range(7)]
    assert len(data.DataLoader(Measured(), batch_size=2)) == 3
    assert len(data.ChainDataset([Measured(), Measured()])) == 10
    with pytest.raises(TypeError):
        len(data.DataLoader(Stream()))


def test_a_wrong_length_is_reported():
    loader = data.DataLoader(Measured(), batch_size=2)
    assert len(loader) == 3
    with pytest.warns(UserWarning, match="said to be 5, but 6"):
        list(loader)


# Datasets


def test_tensor_dataset():
    dataset = data.TensorDataset(taeda.arange(4), taeda.arange(8).reshape(4, 2))
    assert len(dataset) == 4
    assert [t.tolist() for t in dataset[1]] == [1, [2, 3]]
    assert [t.tolist() for t in dataset[1:3]] == [[1, 2], [[2, 3], [4, 5]]]
    with pytest.raises(AssertionError, match="Size mismatch"):
        data.TensorDataset(taeda.ones(2), taeda.ones(3))


def test_concat_dataset():
    dataset = data.ConcatDataset([range(3), range(10, 12)])
    assert [dataset[i] for i in range(-5, 5)] == [0, 1, 2, 10, 11] * 2
    assert len(dataset) == 5 and dataset.cumulative_sizes == [3, 5]
    with pytest.raises(IndexError):
        dataset[5]
    with pytest.raises(ValueError):
        dataset[-6]
    with pytest.raises(AssertionError, match="empty"):
        data.ConcatDataset([])
    with pytest.raises(AssertionError, match="IterableDataset"):
        data.ConcatDataset([Stream()])
    both = data.TensorDataset(taeda.ones(1)) + data.TensorDataset(taeda.ones(2))
    assert isinstance(both, data.ConcatDataset) and len(both) == 3


def test_stack_dataset():
    assert data.StackDataset(range(3), range(3, 6))[1] == (1, 4)
    named = data.StackDataset(a=range(3), b=range(3, 6))
    assert named[1] == {"a": 1, "b": 4}
    assert named.__getitems__([0, 2]) == [{"a": 0, "b": 3}, {"a": 2, "b": 5}]
    with pytest.raises(ValueError, match="Size mismatch"):
        data.StackDataset(range(3), range(2))
    with pytest.raises(ValueError, match="at least one"):
        data.StackDataset()


def test_subset():
    subset = data.Subset(data.TensorDataset(taeda.arange(10)), [7, 5, 3])
    assert len(subset) == 3 and subset[1][0].item() == 5
    assert subset[[0, 2]][0].tolist() == [7, 3]
    assert [x[0].item() for x in subset.__getitems__([2, 0])] == [3, 7]


@pytest.mark.parametrize("lengths", [[3, 8], [0.3, 0.3, 0.4], [0.25] * 4, [11], [1.0]])
def test_random_split(lengths):
    parts = data.random_split(range(11), lengths)
    indices = sorted(i for part in parts for i in part.indices)
    assert indices == list(range(11))
    torch = pytest.importorskip("torch")
    taeda.manual_seed(3)
    ours = data.random_split(range(11), lengths)
    torch.manual_seed(3)
    theirs = torch.utils.data.random_split(range(11), lengths)
    assert [part.indices for part in ours] == [part.indices for part in theirs]


def test_bad_splits_are_refused():
    for lengths in ([3, 6], [-1, 12], [0.5, 0.2, 0.2], [-0.5, 1.5]):
        with pytest.raises(ValueError, match="random_split"):
            data.random_split(range(10), lengths)
    with pytest.warns(UserWarning, match="no samples"):
        data.random_split(range(1), [0.5, 0.5])


# Samplers and options


def test_samplers():
    assert list(data.SequentialSampler(range(3))) == [0, 1, 2]
    assert sorted(data.RandomSampler(range(10))) == list(range(10))
    assert len(data.RandomSampler(range(3), num_samples=7)) == 7
    assert len(list(data.RandomSampler(range(3), replacement=True, num_samples=70))) == 70
    assert list(data.BatchSampler(range(5), 2, True)) == [[0, 1], [2, 3]]
    assert len(data.BatchSampler(range(5), 2, False)) == 3
    drawn = list(data.WeightedRandomSampler([0.0, 1.0, 0.0], 5))
    assert drawn == [1] * 5
    assert sorted(data.WeightedRandomSampler([1.0, 1.0], 2, replacement=False)) == [0, 1]


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda: data.RandomSampler(range(3), replacement=1), TypeError),
        (lambda: data.RandomSampler(range(3), num_samples=-1), ValueError),
        (lambda: data.RandomSampler([]), ValueError),
        (lambda: data.BatchSampler(range(3), 0, True), ValueError),
        (lambda: data.BatchSampler(range(3), 2, 1), ValueError),
        (lambda: data.WeightedRandomSampler([[1.0]], 2), ValueError),
        (lambda: data.WeightedRandomSampler([1.0], 0), ValueError),
        (lambda: data.DataLoader([1], batch_size=0), ValueError),
        (lambda: data.DataLoader([1], batch_size="a"), ValueError),
        (lambda: data.DataLoader([1], shuffle=True, sampler=[0]), ValueError),
        (lambda: data.DataLoader([1], batch_sampler=[[0]], batch_size=2), ValueError),
        (lambda: data.DataLoader([1], batch_size=None, drop_last=True), ValueError),
        (lambda: data.DataLoader([1], num_workers=-1), ValueError),
        (lambda: data.DataLoader([1], timeout=-1), ValueError),
        (lambda: data.DataLoader([1], prefetch_factor=2), ValueError),
        (lambda: data.DataLoader([1], persistent_workers=True), ValueError),
        (lambda: data.DataLoader(Stream(), shuffle=True), ValueError),
        (lambda: data.DataLoader(Stream(), sampler=[0]), ValueError),
    ],
)
def test_bad_options_are_refused(make, error):
    with pytest.raises(error):
        make()


def test_some_attributes_stay_as_they_are():
    loader = data.DataLoader([1, 2], batch_size=2)
    with pytest.raises(ValueError, match="batch_size should not be set"):
        loader.batch_size = 3
    assert loader.batch_size == 2


@pytest.mark.skipif(
    taeda.cuda.is_available() if hasattr(taeda, "cuda") else False, reason="has GPU"
)
def test_pinning_without_a_gpu_warns():
    with pytest.warns(UserWarning, match="no accelerator"):
        assert next(iter(data.DataLoader([1], pin_memory=True))).tolist() == [1]


# Collation


def collate_cases(library):
    tensor = library.tensor
    return [
        [1, 2], [1.5, 2], ["a", "b"], [b"a"], [True, False], [1, 2.5],
        [{"a": 1, "b": 2.0}, {"a": 3, "b": 4.0}],
        [(1, 2), (3, 4)], [[1, 2], [3, 4]], [Pair(1, 2), Pair(3, 4)],
        [np.float32(1), np.float32(2)], [np.array([1, 2]), np.array([3, 4])], [np.array(1.5)],
        [np.array("a")], [tensor([1.0]), tensor([2.0])], [tensor(1, dtype=library.int32)],
        [None], [[1], [1, 2]], [tensor([1.0]), tensor([1.0, 2.0])], [object()], [],
        [collections.OrderedDict(a=1), collections.OrderedDict(a=2)],
        [range(2), range(2)], [{"a": 1}, {"b": 1}],
    ]  # fmt: skip


def outcome(function, value):
    try:
        return plain(function(value))
    except Exception as error:
        return type(error)


def test_same_collation_as_pytorch():
    torch = pytest.importorskip("torch")
    for ours, theirs in zip(collate_cases(taeda), collate_cases(torch), strict=True):
        expected = outcome(torch.utils.data.default_collate, theirs)
        assert outcome(data.default_collate, ours) == expected, theirs


def test_same_conversion_as_pytorch():
    torch = pytest.importorskip("torch")
    for value in [
        1, "a", np.array([1, 2]), [np.array([1]), 2], {"a": np.array(1.0)}, Pair(1, np.ones(2)),
        (1, np.ones(1)), np.float32(3),
    ]:  # fmt: skip
        expected = plain(torch.utils.data.default_convert(value))
        assert plain(data.default_convert(value)) == expected


def test_collation_names_what_it_cannot_do():
    with pytest.raises(TypeError, match="found <class 'NoneType'>"):
        data.default_collate([None])
    with pytest.raises(RuntimeError, match=r"equal size, got lengths \[1, 2\]"):
        data.default_collate([[1], [1, 2]])


def test_collate_by_a_table_of_functions():
    from taeda.utils.data.collate import collate, default_collate_fn_map

    class Point:
        def __init__(self, x):
            self.x = x

    class Near(Point):
        pass

    def points(batch, *, collate_fn_map=None):
        return taeda.tensor([point.x for point in batch])

    with pytest.raises(TypeError, match="Point"):
        taeda.utils.data.default_collate([Point(1)])
    default_collate_fn_map[Point] = points
    try:
        both = taeda.utils.data.default_collate([{"p": Near(1)}, {"p": Near(2)}])
    finally:
        del default_collate_fn_map[Point]
    assert both["p"].tolist() == [1, 2]
    table = {(int, float): lambda batch, *, collate_fn_map: sum(batch)}
    assert collate([(1, 2.5), (3, 4.0)], collate_fn_map=table) == [4, 6.5]
    with pytest.raises(TypeError):
        collate([1], collate_fn_map=None)


def test_classes_of_the_iterators():
    from taeda.utils.data import dataloader

    numbers = data.TensorDataset(taeda.arange(6))
    single = iter(data.DataLoader(numbers, batch_size=2))
    assert isinstance(single, dataloader._SingleProcessDataLoaderIter) and len(single) == 3
    several = iter(data.DataLoader(numbers, batch_size=2, num_workers=1))
    assert isinstance(several, dataloader._MultiProcessingDataLoaderIter)
    assert isinstance(several, dataloader._BaseDataLoaderIter)
    assert next(several)[0].tolist() == [0, 1]
    several._shutdown_workers()
    with pytest.raises(StopIteration):
        next(several)


def test_a_pass_through_something_like_a_loader():
    from taeda.utils.data import dataloader

    class Loader:
        _dataset_kind = dataloader._DatasetKind.Iterable
        _auto_collation = False
        _IterableDataset_len_called = None
        generator, drop_last, pin_memory = None, False, False
        dataset = ["a", "b"]

        @staticmethod
        def collate_fn(sample):
            return sample * 2

    assert list(dataloader._SingleProcessDataLoaderIter(Loader())) == ["aa", "bb"]
