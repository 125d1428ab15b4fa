"""How a tensor is placed along a dimension of a grid of processes."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Partial", "Placement", "Replicate", "Shard"]


class Placement:
    """Base class of placements."""

    def is_shard(self, dim: int | None = None) -> bool:
        """Whether each process has a part, along a dimension of the tensor if one is given."""
        return isinstance(self, Shard) and dim in (None, self.dim)

    def is_replicate(self) -> bool:
        """Whether each process has all."""
        return isinstance(self, Replicate)

    def is_partial(self, reduce_op: str | None = None) -> bool:
        """Whether the tensor is what those of all processes make together."""
        return isinstance(self, Partial) and reduce_op in (None, self.reduce_op)


@dataclass(frozen=True)
class Shard(Placement):
    """Each process has a part along a dimension of the tensor."""

    dim: int

    @staticmethod
    def local_shard_size_and_offset(
        curr_local_size: int, num_chunks: int, rank: int
    ) -> tuple[int, int]:
        """The size of a process's part, and where it begins, among equal ones but for the last."""
        chunk = -(-curr_local_size // num_chunks)
        first = min(chunk * rank, curr_local_size)
        return min(chunk, curr_local_size - first), first

    def __str__(self) -> str:
        return f"S({self.dim})"


@dataclass(frozen=True)
class Replicate(Placement):
    """Each process has all of the tensor."""

    def __str__(self) -> str:
        return "R"


@dataclass(frozen=True)
class Partial(Placement):
    """The tensor is what those of all processes make together."""

    reduce_op: str = "sum"

    def __repr__(self) -> str:
        return f"Partial({self.reduce_op})"

    def __str__(self) -> str:
        return f"P({self.reduce_op})"


@dataclass(frozen=True)
class _StridedShard(Shard):
    """Each process has parts that do not lie together."""

    split_factor: int = 1
