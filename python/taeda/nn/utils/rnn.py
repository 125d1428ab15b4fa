"""Sequences of different lengths: padded, packed, and back.

A packed batch holds the first element of every sequence, then the second of those that have one,
and so on; the sequences are sorted from the longest to the shortest. Recurrent layers take it as
it is and spend nothing on padding.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import taeda
from taeda._C import Tensor

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = [
    "PackedSequence",
    "invert_permutation",
    "pack_padded_sequence",
    "pack_sequence",
    "pad_packed_sequence",
    "pad_sequence",
    "unpack_sequence",
    "unpad_sequence",
]


class _Fields(NamedTuple):
    data: Tensor
    batch_sizes: Tensor
    sorted_indices: Tensor | None
    unsorted_indices: Tensor | None


class PackedSequence(_Fields):
    """A batch of sequences of different lengths, without padding; see `pack_padded_sequence`.

    Attributes:
        data: the elements of all sequences, of shape (sum of the lengths, *).
        batch_sizes: how many sequences have a first element, a second, and so on; int64, on the
            CPU.
        sorted_indices: which sequence of the batch comes first, second, ...; or None where the
            batch was sorted.
        unsorted_indices: the inverse of `sorted_indices`, made from it where it is not given.
    """

    def __new__(
        cls,
        data: Tensor,
        batch_sizes: Tensor | None = None,
        sorted_indices: Tensor | None = None,
        unsorted_indices: Tensor | None = None,
    ) -> Self:
        if batch_sizes is None:
            if not isinstance(data, (list, tuple)) or len(data) != 2:
                raise AssertionError(
                    "PackedSequence: without batch_sizes, data must be a list or tuple of length "
                    f"2, got {type(data).__name__}"
                )
            data, batch_sizes = data
        if batch_sizes.device.type != "cpu":
            raise ValueError(
                "PackedSequence: batch_sizes should always be on CPU. Instances of PackedSequence "
                "should never be created manually. They should be instantiated by functions like "
                "pack_sequence and pack_padded_sequence in nn.utils.rnn."
            )
        if unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)

    def to(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """Move or cast `data`, as `Tensor.to` does; return this batch where nothing changes."""
        data = self.data.to(*args, **kwargs)
        if data is self.data:
            return self
        indices = [
            None if index is None else index.to(data.device)
            for index in (self.sorted_indices, self.unsorted_indices)
        ]
        return type(self)(data, self.batch_sizes, *indices)

    def pin_memory(self) -> PackedSequence:
        """Copy the batch to pinned memory, from which a CUDA device copies by itself."""
        indices = [
            None if index is None else index.pin_memory()
            for index in (self.sorted_indices, self.unsorted_indices)
        ]
        return type(self)(self.data.pin_memory(), self.batch_sizes, *indices)

    def is_pinned(self) -> bool:
        """Whether `data` is in pinned memory."""
        return self.data.is_pinned()

    def cpu(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """Move the batch to the CPU."""
        return self.to(*args, device="cpu", **kwargs)

    def cuda(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """Move the batch to a CUDA device."""
        return self.to(*args, device="cuda", **kwargs)

    def double(self) -> PackedSequence:
        """Cast `data` to float64."""
        return self.to(dtype=taeda.float64)

    def float(self) -> PackedSequence:
        """Cast `data` to float32."""
        return self.to(dtype=taeda.float32)

    def half(self) -> PackedSequence:
        """Cast `data` to float16."""
        return self.to(dtype=taeda.float16)

    def long(self) -> PackedSequence:
        """Cast `data` to int64."""
        return self.to(dtype=taeda.int64)

    def int(self) -> PackedSequence:
        """Cast `data` to int32."""
        return self.to(dtype=taeda.int32)

    def short(self) -> PackedSequence:
        """Cast `data` to int16."""
        return self.to(dtype=taeda.int16)

    def char(self) -> PackedSequence:
        """Cast `data` to int8."""
        return self.to(dtype=taeda.int8)

    def byte(self) -> PackedSequence:
        """Cast `data` to uint8."""
        return self.to(dtype=taeda.uint8)

    @property
    def is_cuda(self) -> bool:
        """Whether `data` is on a CUDA device."""
        return self.data.is_cuda


def invert_permutation(permutation: Tensor | None) -> Tensor | None:
    """Return the permutation that undoes a given one; None for None.

    >>> taeda.nn.utils.rnn.invert_permutation(taeda.tensor([2, 0, 1]))
    tensor([1, 2, 0])
    """
    if permutation is None:
        return None
    indices = taeda.arange(permutation.numel(), device=permutation.device)
    return taeda.empty_like(permutation).scatter_(0, permutation, indices)


def _elements(lengths: Tensor, steps: int) -> tuple[Tensor, Tensor]:
    """For falling lengths: where elements are in (steps, batch), flattened; how many a step has."""
    there = taeda.arange(steps, device="cpu").unsqueeze(1) < lengths.unsqueeze(0)
    return there.flatten().nonzero().squeeze(1), there.sum(1)


def pack_padded_sequence(
    input: Tensor,
    lengths: Tensor | Sequence[int],
    batch_first: bool = False,
    enforce_sorted: bool = True,
) -> PackedSequence:
    """Pack a padded batch.

    Args:
        input: of shape (T, B, *), or (B, T, *) when `batch_first`.
        lengths: the B lengths, from 1 to T.
        batch_first: which of the two shapes the input has.
        enforce_sorted: the sequences come from the longest to the shortest. Otherwise they are
            sorted here, and the result remembers their order.

    Raises:
        RuntimeError: the lengths are not B, not sorted though they should be, or out of range.

    >>> padded = taeda.tensor([[1, 2, 3], [4, 5, 0]])
    >>> taeda.nn.utils.rnn.pack_padded_sequence(padded, [3, 2], batch_first=True).data
    tensor([1, 4, 2, 5, 3])
    """
    sizes = taeda.as_tensor(lengths, dtype=taeda.int64).cpu()
    if not isinstance(input, Tensor):
        raise TypeError(f"pack_padded_sequence: input must be Tensor, not {type(input).__name__}")
    if input.dim() < 2:
        raise IndexError(
            f"pack_padded_sequence: input must have 2 dimensions or more, got {input.dim()}"
        )
    if input.numel() == 0:
        raise RuntimeError(
            f"pack_padded_sequence: Cannot pack empty tensors, got shape {list(input.shape)}"
        )
    order = None
    if not enforce_sorted:
        sizes, order = sizes.sort(descending=True, stable=True)
        order = order.to(input.device)
        input = input.index_select(0 if batch_first else 1, order)
    if batch_first:
        input = input.transpose(0, 1)
    steps, batch = input.shape[:2]
    if sizes.dim() != 1 or sizes.numel() != batch:
        raise RuntimeError(
            "pack_padded_sequence: Expected `len(lengths)` to be equal to batch_size, but "
            f"got {sizes.numel()} "
            f"(batch_size={batch})"
        )
    if bool((sizes[:-1] < sizes[1:]).any()):
        raise RuntimeError(
            "pack_padded_sequence: `lengths` array must be sorted in decreasing order "
            "when `enforce_sorted` is True. "
            "You can pass `enforce_sorted=False` to pack_padded_sequence and/or pack_sequence to "
            "sidestep this requirement."
        )
    if int(sizes[-1]) <= 0:
        raise RuntimeError(
            "pack_padded_sequence: Length of all samples has to be greater than 0, but "
            "found an element in 'lengths' "
            "that is <= 0"
        )
    longest = int(sizes[0])
    if longest > steps:
        raise RuntimeError(
            f"pack_padded_sequence: a length of {longest} is more than the {steps} steps of the "
            "input"
        )
    rows, batch_sizes = _elements(sizes, longest)
    flat = input.reshape(steps * batch, *input.shape[2:])
    return PackedSequence(flat.index_select(0, rows.to(input.device)), batch_sizes, order)


def pad_packed_sequence(
    sequence: PackedSequence,
    batch_first: bool = False,
    padding_value: float = 0.0,
    total_length: int | None = None,
) -> tuple[Tensor, Tensor]:
    """Undo `pack_padded_sequence`.

    Args:
        sequence: a packed batch.
        batch_first: give (B, T, *) instead of (T, B, *).
        padding_value: what stands after the end of a sequence.
        total_length: the T to give, at least the longest length, which is the default.

    Returns:
        the padded batch, and the lengths.

    Raises:
        ValueError: `total_length` is less than the longest length.
    """
    sizes = sequence.batch_sizes
    longest, batch = sizes.numel(), int(sizes[0])
    steps = longest if total_length is None else total_length
    if steps < longest:
        raise ValueError(
            "pad_packed_sequence: Expected total_length to be at least the length of the "
            "longest sequence in input, "
            f"but got total_length={total_length} and max sequence length being {longest}"
        )
    data = sequence.data
    there = taeda.arange(batch, device="cpu").unsqueeze(0) < sizes.unsqueeze(1)
    rows = there.flatten().nonzero().squeeze(1).to(data.device)
    flat = data.new_full((steps * batch, *data.shape[1:]), padding_value)
    padded = flat.index_copy(0, rows, data).reshape(steps, batch, *data.shape[1:])
    lengths = there.sum(0)
    order = sequence.unsorted_indices
    if batch_first:
        padded = padded.transpose(0, 1)
    if order is not None:
        padded = padded.index_select(0 if batch_first else 1, order)
        lengths = lengths[order.cpu()]
    return padded, lengths


def pad_sequence(
    sequences: Tensor | Iterable[Tensor],
    batch_first: bool = False,
    padding_value: float = 0.0,
    padding_side: str = "right",
) -> Tensor:
    """Put sequences of different lengths into one tensor.

    Args:
        sequences: each of shape (L, *), with the same sizes after L.
        batch_first: give (B, T, *) instead of (T, B, *).
        padding_value: the value of padding elements.
        padding_side: "right" or "left": the side of the padding.

    Raises:
        RuntimeError: there is no sequence, or `padding_side` is something else.

    >>> a, b = taeda.tensor([1, 2, 3]), taeda.tensor([4])
    >>> taeda.nn.utils.rnn.pad_sequence([a, b], batch_first=True)
    tensor([[1, 2, 3],
            [4, 0, 0]])
    """
    if padding_side not in ("left", "right"):
        raise RuntimeError(
            "pad_sequence: Expected padding_side to be one of left or right, but got "
            f"{padding_side}."
        )
    if not isinstance(sequences, Iterable):
        raise RuntimeError(
            "pad_sequence: Expected iterable for input sequences, but got arg of type: "
            f"{type(sequences).__name__}"
        )
    listed = list(sequences.unbind(0) if isinstance(sequences, Tensor) else sequences)
    for i, sequence in enumerate(listed):
        if not isinstance(sequence, Tensor):
            raise TypeError(
                f"pad_sequence: expected Tensor as element {i} of sequences, but got "
                f"{type(sequence).__name__}"
            )
    if not listed:
        raise RuntimeError("pad_sequence: received an empty list of sequences")
    steps = max(sequence.size(0) for sequence in listed)
    padded = []
    for sequence in listed:
        gap = steps - sequence.size(0)
        ends = (gap, 0) if padding_side == "left" else (0, gap)
        amounts = (0, 0) * (sequence.dim() - 1) + ends
        padded.append(
            taeda.nn.functional.pad(sequence, amounts, value=padding_value) if gap else sequence
        )
    return taeda.stack(padded, 0 if batch_first else 1)


def unpad_sequence(
    padded_sequences: Tensor, lengths: Tensor, batch_first: bool = False
) -> list[Tensor]:
    """Undo `pad_sequence`: return the sequences.

    Args:
        padded_sequences: of shape (T, B, *), or (B, T, *) when `batch_first`.
        lengths: the B lengths.
        batch_first: which of the two shapes it is.
    """
    if not batch_first:
        padded_sequences = padded_sequences.transpose(0, 1)
    return [
        sequence[:length]
        for sequence, length in zip(padded_sequences.unbind(0), lengths.tolist(), strict=True)
    ]


def pack_sequence(sequences: Sequence[Tensor], enforce_sorted: bool = True) -> PackedSequence:
    """Pack sequences of different lengths.

    Args:
        sequences: each of shape (L, *), with L at least 1.
        enforce_sorted: as for `pack_padded_sequence`.
    """
    lengths = [sequence.size(0) for sequence in sequences]
    return pack_padded_sequence(pad_sequence(sequences), lengths, enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences: PackedSequence) -> list[Tensor]:
    """Undo `pack_sequence`: return the sequences, in the order in which they were given."""
    return unpad_sequence(*pad_packed_sequence(packed_sequences))
