"""Graphs: work of a device that is recorded once, and run again as a whole."""

from __future__ import annotations

import ctypes
import gc
import sys
from typing import Any

import taeda
from taeda import _C
from taeda.cuda import _pools, _runtime
from taeda.cuda._devices import synchronize
from taeda.cuda._pools import graph_pool_handle
from taeda.cuda._runtime import call
from taeda.cuda._streams import Stream, StreamContext, current_stream

__all__ = ["CUDAGraph", "graph", "is_current_stream_capturing"]

# How strictly the driver looks for what no graph can record (CUstreamCaptureMode).
_MODES = {"global": 0, "thread_local": 1, "relaxed": 2}


def is_current_stream_capturing() -> bool:
    """Whether work on the current stream is recorded into a graph, instead of being done."""
    if _runtime.why_not():
        return False
    capturing = ctypes.c_int()
    call("is_capturing", *current_stream()._place, ctypes.byref(capturing))
    return bool(capturing.value)


class _Draws:
    """What a graph draws from a generator: its kernels read where from the device's memory."""

    def __init__(self, generator: _C.Generator) -> None:
        self.generator = generator
        self.engine = generator._engine()
        self._place: _C.Tensor | None = None
        self._drawn = 0

    def begin(self, index: int) -> None:
        """Let what is recorded on a device draw."""
        self._place = taeda.empty(2, dtype=taeda.int64, device=taeda.device("cuda", index))
        place = ctypes.c_void_p(self._place.data_ptr())
        call("begin_draws", index, ctypes.c_void_p(self.engine), place)

    def end(self, index: int) -> None:
        """Count what has been drawn."""
        drawn = ctypes.c_uint64()
        call("end_draws", index, ctypes.c_void_p(self.engine), ctypes.byref(drawn))
        self._drawn = drawn.value

    def prepare(self, index: int) -> None:
        """Write where a replay on the current stream begins to draw, which takes the numbers."""
        if self._drawn:
            assert self._place is not None
            seed, offset = self.generator._take(self._drawn)
            place = ctypes.c_void_p(self._place.data_ptr())
            call("write_place", index, place, ctypes.c_uint64(seed), ctypes.c_uint64(offset))


class CUDAGraph:
    """Work of a device that is recorded once, and run again as a whole by :meth:`replay`.

    What is recorded are kernels with the addresses of their operands: a replay reads what lies in
    the inputs' memory then, and overwrites the results. Random numbers go on from replay to replay,
    as if the work was done anew. Whatever the host waits for cannot be recorded, which is an error,
    and optimizers that count their steps only with ``capturable=True``; nor are shapes, numbers of
    Python and branches, of which each replay repeats those at the time of recording.

    Example:
        >>> import taeda
        >>> if taeda.cuda.is_available():
        ...     x, g = taeda.ones(3, device="cuda"), taeda.cuda.CUDAGraph()
        ...     with taeda.cuda.graph(g):
        ...         y = x * 2 + 1
        ...     x.fill_(5.0)
        ...     g.replay()  # y is 11
    """

    def __init__(self) -> None:
        self._runnable: ctypes.c_void_p | None = None
        self._pool: tuple[int, int] | None = None
        self._stream: Stream | None = None  # while it is recorded
        self._index = 0
        self._draws: list[_Draws] = []  # of each generator

    def register_generator_state(self, generator: _C.Generator) -> None:
        """Let the graph draw from a generator beside the device's default one.

        Args:
            generator: one of the graph's device, before the recording begins.
        """
        if generator.device.type != "cuda":
            raise RuntimeError(
                "cuda.CUDAGraph.register_generator_state: expected a generator of a cuda device, "
                f"got one of {generator.device}"
            )
        if self._stream is not None or self._runnable is not None:
            raise RuntimeError(
                "cuda.CUDAGraph.register_generator_state: the graph has been recorded already"
            )
        if all(draws.engine != generator._engine() for draws in self._draws):
            self._draws.append(_Draws(generator))

    def capture_begin(
        self, pool: tuple[int, int] | None = None, capture_error_mode: str = "global"
    ) -> None:
        """Record the current stream's work from here on.

        Args:
            pool: whose memory to use: of :meth:`pool`, :func:`graph_pool_handle` or a
                :class:`MemPool`'s ``id``; graphs that share it must run in the order in which they
                were recorded. None is a new one.
            capture_error_mode: ``"global"``, ``"thread_local"`` or ``"relaxed"``: in which threads
                what no graph can record is an error.

        Raises:
            RuntimeError: on the default stream, or for a graph that has been recorded.
        """
        if capture_error_mode not in _MODES:
            raise RuntimeError(
                f"cuda.CUDAGraph.capture_begin: capture_error_mode must be one of {list(_MODES)}, "
                f"got {capture_error_mode!r}"
            )
        if pool is not None and not (isinstance(pool, tuple) and len(pool) == 2):
            raise TypeError(
                "cuda.CUDAGraph.capture_begin: pool must be what pool() or graph_pool_handle() "
                f"gave, got {pool!r}"
            )
        if self._runnable is not None or self._stream is not None:
            raise RuntimeError(
                "cuda.CUDAGraph.capture_begin: the graph is in use; reset() it first"
            )
        stream = current_stream()
        if stream.cuda_stream == 0:
            raise RuntimeError(
                "cuda.CUDAGraph.capture_begin: the default stream cannot be recorded; use "
                "`with taeda.cuda.graph(g):` or another stream"
            )
        self._pool = graph_pool_handle() if pool is None else pool
        self._index = stream._place[0]
        self.register_generator_state(_C._cuda_generator(self._index))
        self._begin_draws()
        try:
            call("begin_capture", *stream._place, self._memory(), _MODES[capture_error_mode])
        except RuntimeError:
            self._end_draws()
            raise
        self._stream = stream

    def capture_end(self) -> None:
        """End what :meth:`capture_begin` began. RuntimeError where something cannot be recorded."""
        if self._stream is None:
            raise RuntimeError("cuda.CUDAGraph.capture_end: nothing is recorded")
        stream, self._stream = self._stream, None
        runnable = ctypes.c_void_p()
        self._end_draws()
        call("end_capture", *stream._place, self._memory(), ctypes.byref(runnable))
        self._runnable = runnable

    def replay(self) -> None:
        """Run the recorded work on the current stream, and return at once."""
        if self._runnable is None:
            raise RuntimeError("cuda.CUDAGraph.replay: nothing has been recorded")
        stream = current_stream(self._index)
        for draws in self._draws:
            draws.prepare(self._index)
        call("launch_graph", self._index, self._runnable, ctypes.c_void_p(stream.cuda_stream))

    def reset(self) -> None:
        """Forget what was recorded, and give its memory back to the allocator."""
        if self._runnable is not None:
            call("synchronize", self._index)
            call("destroy_graph", self._index, self._runnable, self._memory())
            self._runnable = None
            self._draws = []

    def _begin_draws(self) -> None:
        for n, draws in enumerate(self._draws):
            try:
                draws.begin(self._index)
            except RuntimeError:
                for begun in self._draws[:n]:
                    begun.end(self._index)
                raise

    def _end_draws(self) -> None:
        for draws in self._draws:
            draws.end(self._index)

    def pool(self) -> tuple[int, int]:
        """The memory that the graph was recorded with, for other graphs to share."""
        if self._pool is None:
            raise RuntimeError("cuda.CUDAGraph.pool: nothing has been recorded")
        return self._pool

    def _memory(self) -> ctypes.c_uint64:
        assert self._pool is not None
        return _pools.number(self._pool)

    def __del__(self) -> None:
        if getattr(self, "_runnable", None) is not None and not sys.is_finalizing():
            self.reset()


class graph:
    """Inside ``with graph(g):`` work is recorded into a :class:`CUDAGraph`, and not done.

    Args:
        cuda_graph: the graph.
        pool: as in :meth:`CUDAGraph.capture_begin`.
        stream: where to record; None is a stream of its own.
        capture_error_mode: as in :meth:`CUDAGraph.capture_begin`.
    """

    def __init__(
        self,
        cuda_graph: CUDAGraph,
        pool: tuple[int, int] | None = None,
        stream: Stream | None = None,
        capture_error_mode: str = "global",
    ) -> None:
        if not isinstance(cuda_graph, CUDAGraph):
            raise TypeError(
                f"cuda.graph: cuda_graph must be a CUDAGraph, got {type(cuda_graph).__name__}"
            )
        self.cuda_graph = cuda_graph
        self.pool = pool
        self.stream_ctx = StreamContext(Stream() if stream is None else stream)
        self.capture_error_mode = capture_error_mode

    def __enter__(self) -> None:
        """Wait for the device, and begin."""
        synchronize()
        gc.collect()  # tensors that die while work is recorded may have to wait for other streams
        self.stream_ctx.__enter__()
        try:
            self.cuda_graph.capture_begin(self.pool, self.capture_error_mode)
        except BaseException:
            self.stream_ctx.__exit__()
            raise

    def __exit__(self, *exc_info: Any) -> None:
        """End the recording."""
        try:
            self.cuda_graph.capture_end()
        except RuntimeError:
            if exc_info[0] is None:  # else what was raised inside says more
                raise
        finally:
            self.stream_ctx.__exit__(*exc_info)
