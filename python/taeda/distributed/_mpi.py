"""The transport over MPI, by the package mpi4py and the MPI that it finds when it is first used."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from ._transport import Late, Lost, Transfer, Transport

__all__ = ["MPITransport", "module"]

_TAGS = 1 << 15  # the least number of tags that MPI promises


def module() -> Any:
    """The module ``mpi4py.MPI``, with MPI initialised.

    Raises:
        RuntimeError: mpi4py, or an MPI library, is missing.
    """
    try:
        from mpi4py import MPI
    except (ImportError, RuntimeError) as error:
        raise RuntimeError(
            f"the backend 'mpi' needs mpi4py and an MPI library: pip install 'taeda[mpi]' ({error})"
        ) from error
    return MPI


class _Request(Transfer):
    def __init__(self, peer: int | None, tag: int, data: memoryview, out: bool) -> None:
        super().__init__(peer, tag, data, out)
        self.request: Any = None


class MPITransport(Transport):
    """Messages between the processes of an MPI communicator.

    Args:
        communicator: an ``MPI.Comm`` of the group's processes, in the order of their ranks.
    """

    def __init__(self, communicator: Any) -> None:
        super().__init__()
        self._mpi = module()
        self._looked = 0.0
        self._communicator = communicator
        self.rank, self.size = communicator.Get_rank(), communicator.Get_size()

    def send(self, peer: int, tag: int, data: memoryview) -> Transfer:
        made = _Request(peer, tag, data, out=True)
        made.request = self._communicator.Isend([data, self._mpi.BYTE], peer, tag % _TAGS)
        return made

    def receive(self, peer: int | None, tag: int, data: memoryview) -> Transfer:
        made = _Request(peer, tag, data, out=False)
        source = self._mpi.ANY_SOURCE if peer is None else peer
        made.request = self._communicator.Irecv([data, self._mpi.BYTE], source, tag % _TAGS)
        return made

    def finish(self, transfers: Sequence[Transfer], until: float) -> None:
        waiting = [t for t in transfers if isinstance(t, _Request) and not t.done]
        turns = 0
        while waiting:
            waiting = [t for t in waiting if not self._tested(t)]
            turns += 1
            if waiting and turns > 100:
                # MPI has no wait with an end to it.
                time.sleep(min(1e-3, 1e-6 * turns))
                self._look(waiting, until)

    def _look(self, waiting: Sequence[Transfer], until: float) -> None:
        now = time.monotonic()
        if now > until:
            raise Late(sorted({t.peer for t in waiting if t.peer is not None}))
        if now > self._looked + 0.5:
            self._looked = now
            why = self.watch()
            if why is not None:
                raise Lost(None, why)

    def _tested(self, transfer: _Request) -> bool:
        status = self._mpi.Status()
        try:
            done: bool = transfer.request.Test(status)
        except self._mpi.Exception as error:
            raise Lost(transfer.peer, f"MPI says: {error}") from error
        if done:
            if not transfer.out:
                transfer.peer = status.Get_source()
                size = status.Get_count(self._mpi.BYTE)
                if size != transfer.data.nbytes:
                    raise RuntimeError(
                        f"process {transfer.peer} of the group sent {size} bytes where "
                        f"{transfer.data.nbytes} are expected: tensors of processes must have the "
                        "same sizes"
                    )
            transfer.end()
        return done

    def close(self) -> None:
        """Leave the communicator to MPI, which frees it at the end."""
