"""SummaryWriter: curves, images, histograms and text for TensorBoard, which must be installed.

>>> from taeda.utils.tensorboard import SummaryWriter  # doctest: +SKIP
>>> with SummaryWriter("runs/first") as writer:  # doctest: +SKIP
...     writer.add_scalar("loss", 0.5, global_step=1)
"""

from __future__ import annotations

import os
import struct
import time
import zlib
from typing import TYPE_CHECKING, Any

from taeda.utils._tensorboard_plugins import PluginWriter, array_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["FileWriter", "SummaryWriter"]


class FileWriter:
    """Writes events to one file. ``SummaryWriter`` makes those of its folder.

    Args:
        log_dir: the folder.
        max_queue: how many events may wait to be written.
        flush_secs: how many seconds they may.
        filename_suffix: appended to the file's name.

    Raises:
        ModuleNotFoundError: TensorBoard is not installed.
    """

    def __init__(
        self,
        log_dir: str | os.PathLike[str],
        max_queue: int = 10,
        flush_secs: float = 120,
        filename_suffix: str = "",
    ) -> None:
        try:
            from tensorboard.summary.writer.event_file_writer import EventFileWriter
        except ModuleNotFoundError as error:
            raise ModuleNotFoundError(
                "SummaryWriter needs TensorBoard: pip install taeda[tensorboard]", name=error.name
            ) from error
        self._folder = os.fspath(log_dir)
        self.event_writer = EventFileWriter(self._folder, max_queue, flush_secs, filename_suffix)

    def get_logdir(self) -> str:
        """The folder."""
        return self._folder

    def add_event(self, event: Any, step: int | None = None, walltime: float | None = None) -> None:
        """Write an event, at a step and a time."""
        event.wall_time = time.time() if walltime is None else walltime
        if step is not None:
            event.step = int(step)
        self.event_writer.add_event(event)

    def add_summary(
        self, summary: Any, global_step: int | None = None, walltime: float | None = None
    ) -> None:
        """Write a summary, such as those of `summary.hparams`."""
        from tensorboard.compat.proto.event_pb2 import Event

        self.add_event(Event(summary=summary), global_step, walltime)

    def flush(self) -> None:
        """Write what waits."""
        self.event_writer.flush()

    def close(self) -> None:
        """Write what waits, and close the file."""
        self.event_writer.close()


class SummaryWriter(PluginWriter):
    """Writes event files that TensorBoard shows.

    Args:
        log_dir: where they go; ``runs/`` and the time and the machine's name, where it is None.
        comment: appended to that default.
        purge_step: TensorBoard forgets what an earlier run in the folder logged from this step on.
        max_queue: how many events may wait to be written.
        flush_secs: how many seconds they may.
        filename_suffix: appended to the files' names.

    Raises:
        ModuleNotFoundError: TensorBoard is not installed.
    """

    def __init__(
        self,
        log_dir: str | os.PathLike[str] | None = None,
        comment: str = "",
        purge_step: int | None = None,
        max_queue: int = 10,
        flush_secs: float = 120,
        filename_suffix: str = "",
    ) -> None:
        if log_dir is None:
            import socket

            now = time.strftime("%b%d_%H-%M-%S")
            log_dir = os.path.join("runs", f"{now}_{socket.gethostname()}{comment}")
        self.log_dir = os.fspath(log_dir)
        self.purge_step = purge_step
        self._options = (max_queue, flush_secs, filename_suffix)
        self._files: dict[str, FileWriter] = {}
        self._open("")
        if purge_step is not None:
            from tensorboard.compat.proto.event_pb2 import Event, SessionLog

            self._write("", Event(step=purge_step, file_version="brain.Event:2"))
            start = SessionLog(status=SessionLog.START)
            self._write("", Event(step=purge_step, session_log=start))

    def _open(self, part: str) -> FileWriter:
        """The event file of a folder under ``log_dir``."""
        if part not in self._files:
            folder = os.path.join(self.log_dir, part) if part else self.log_dir
            self._files[part] = FileWriter(folder, *self._options)
        return self._files[part]

    def _get_file_writer(self) -> FileWriter:
        return self._open("")

    @property
    def file_writer(self) -> FileWriter:
        """The writer of the folder's own file."""
        return self._open("")

    def _write(self, part: str, event: Any, walltime: float | None = None) -> None:
        self._open(part).add_event(event, walltime=walltime)

    def _add(
        self,
        tag: str,
        step: int | None,
        walltime: float | None,
        *,
        part: str = "",
        **value: Any,
    ) -> None:
        from tensorboard.compat.proto.event_pb2 import Event
        from tensorboard.compat.proto.summary_pb2 import Summary

        summary = Summary(value=[Summary.Value(tag=tag, **value)])
        event = Event(summary=summary)
        if step is not None:
            event.step = int(step)
        self._write(part, event, walltime)

    def get_logdir(self) -> str:
        """The folder of the event files."""
        return self.log_dir

    def add_scalar(
        self,
        tag: str,
        scalar_value: Any,
        global_step: int | None = None,
        walltime: float | None = None,
    ) -> None:
        """Log a point of a curve: a number, or a tensor or array with one element."""
        self._add(tag, global_step, walltime, simple_value=_number(scalar_value))

    def add_scalars(
        self,
        main_tag: str,
        tag_scalar_dict: Mapping[str, Any],
        global_step: int | None = None,
        walltime: float | None = None,
    ) -> None:
        """Log a point of several curves in one chart; each has an event file of its own."""
        for tag, value in tag_scalar_dict.items():
            part = f"{main_tag.replace('/', '_')}_{tag}"
            self._add(main_tag, global_step, walltime, part=part, simple_value=_number(value))

    def add_histogram(
        self,
        tag: str,
        values: Any,
        global_step: int | None = None,
        bins: str | int | Sequence[float] = "tensorflow",
        walltime: float | None = None,
        max_bins: int | None = None,
    ) -> None:
        """Log how values are distributed.

        Args:
            tag: the histogram's name.
            values: a tensor or array.
            global_step: the step.
            bins: as for ``numpy.histogram``; ``"tensorflow"`` are those that grow by a tenth.
            walltime: seconds since the epoch; now, where it is None.
            max_bins: join neighbouring bins until there are at most so many.

        Raises:
            ValueError: there are no values.
        """
        import numpy
        from tensorboard.compat.proto.summary_pb2 import HistogramProto

        array = array_of(values).astype("float64").ravel()
        if array.size == 0:
            raise ValueError("add_histogram: values has no elements")
        edges: Any = _growing_edges() if bins == "tensorflow" else bins
        counts, limits = numpy.histogram(array, bins=edges)
        if max_bins is not None and len(counts) > max_bins:
            step = -(-len(counts) // max_bins)
            counts = numpy.add.reduceat(counts, range(0, len(counts), step))
            limits = numpy.append(limits[:-1:step], limits[-1])
        used = numpy.nonzero(counts)[0]
        # TensorBoard wants the empty bin before the first value, and none after the last.
        first, last = (max(used[0] - 1, 0), used[-1] + 1) if used.size else (0, 1)
        histogram = HistogramProto(
            min=array.min(),
            max=array.max(),
            num=array.size,
            sum=array.sum(),
            sum_squares=array.dot(array),
            bucket_limit=limits[first + 1 : last + 1].tolist(),
            bucket=counts[first:last].tolist(),
        )
        self._add(tag, global_step, walltime, histo=histogram)

    def add_histogram_raw(
        self,
        tag: str,
        min: float,
        max: float,
        num: float,
        sum: float,
        sum_squares: float,
        bucket_limits: Sequence[float],
        bucket_counts: Sequence[float],
        global_step: int | None = None,
        walltime: float | None = None,
    ) -> None:
        """Log a histogram that is known: the upper limit and the count of each bin.

        Raises:
            ValueError: there are not as many counts as limits.
        """
        from tensorboard.compat.proto.summary_pb2 import HistogramProto

        if len(bucket_limits) != len(bucket_counts):
            raise ValueError(
                f"add_histogram_raw: {len(bucket_limits)} limits, {len(bucket_counts)} counts"
            )
        histogram = HistogramProto(
            min=min,
            max=max,
            num=num,
            sum=sum,
            sum_squares=sum_squares,
            bucket_limit=bucket_limits,
            bucket=bucket_counts,
        )
        self._add(tag, global_step, walltime, histo=histogram)

    def add_image(
        self,
        tag: str,
        img_tensor: Any,
        global_step: int | None = None,
        walltime: float | None = None,
        dataformats: str = "CHW",
    ) -> None:
        """Log an image.

        Args:
            tag: its name.
            img_tensor: floats from 0 to 1, or uint8; of 1, 3 or 4 channels.
            global_step: the step.
            walltime: seconds since the epoch; now, where it is None.
            dataformats: what the dimensions are: ``"CHW"``, ``"HWC"`` or ``"HW"``.

        Raises:
            ValueError: the image has not those dimensions, or another number of channels.
        """
        from tensorboard.compat.proto.summary_pb2 import Summary

        pixels = _pixels(array_of(img_tensor), dataformats)
        height, width, channels = pixels.shape
        image = Summary.Image(
            height=height,
            width=width,
            colorspace=channels,
            encoded_image_string=_png(pixels),
        )
        self._add(tag, global_step, walltime, image=image)

    def add_images(
        self,
        tag: str,
        img_tensor: Any,
        global_step: int | None = None,
        walltime: float | None = None,
        dataformats: str = "NCHW",
    ) -> None:
        """Log a batch of images as one, in rows; ``dataformats`` is ``"NCHW"`` or ``"NHWC"``."""
        import numpy

        if dataformats not in ("NCHW", "NHWC"):
            raise ValueError(f"add_images: dataformats must be NCHW or NHWC, got {dataformats!r}")
        images = [_pixels(image, dataformats[1:]) for image in array_of(img_tensor)]
        if not images:
            raise ValueError("add_images: img_tensor has no images")
        across = min(8, len(images))
        blank = numpy.zeros_like(images[0])
        images += [blank] * (-len(images) % across)
        rows = [numpy.hstack(images[i : i + across]) for i in range(0, len(images), across)]
        self.add_image(tag, numpy.vstack(rows), global_step, walltime, "HWC")

    def add_figure(
        self,
        tag: str,
        figure: Any,
        global_step: int | None = None,
        close: bool = True,
        walltime: float | None = None,
    ) -> None:
        """Log a figure of matplotlib's as an image, and close it unless ``close`` is False."""
        import numpy
        from matplotlib.backends.backend_agg import FigureCanvasAgg

        canvas: Any = FigureCanvasAgg(figure)
        canvas.draw()
        pixels = numpy.asarray(canvas.buffer_rgba())
        self.add_image(tag, pixels, global_step, walltime, "HWC")
        if close:
            from matplotlib import pyplot

            pyplot.close(figure)

    def add_text(
        self,
        tag: str,
        text_string: str,
        global_step: int | None = None,
        walltime: float | None = None,
    ) -> None:
        """Log a text, which may be Markdown."""
        from tensorboard.compat.proto.summary_pb2 import SummaryMetadata
        from tensorboard.compat.proto.tensor_pb2 import TensorProto
        from tensorboard.compat.proto.tensor_shape_pb2 import TensorShapeProto

        plugin = SummaryMetadata.PluginData(plugin_name="text")
        shape = TensorShapeProto(dim=[TensorShapeProto.Dim(size=1)])
        text = TensorProto(dtype="DT_STRING", string_val=[text_string.encode()], tensor_shape=shape)
        metadata = SummaryMetadata(plugin_data=plugin)
        name = f"{tag}/text_summary"
        self._add(name, global_step, walltime, metadata=metadata, tensor=text)

    def flush(self) -> None:
        """Write what is waiting to the files."""
        for file in self._files.values():
            file.flush()

    def close(self) -> None:
        """Write what is waiting, and close the files; logging more opens new ones."""
        for file in self._files.values():
            file.flush()
            file.close()
        self._files.clear()

    def __enter__(self) -> SummaryWriter:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


def _number(value: Any) -> float:
    array = array_of(value)
    if array.size != 1:
        raise ValueError(f"add_scalar: expected one number, got shape {array.shape}")
    return float(array.reshape(()))


def _growing_edges() -> list[float]:
    """Edges from -1e20 to 1e20, each a tenth further from 0 than the one before."""
    edges, value = [], 1e-12
    while value < 1e20:
        edges.append(value)
        value *= 1.1
    return [-edge for edge in reversed(edges)] + [0.0] + edges


def _pixels(array: Any, dataformats: str) -> Any:
    """An image as bytes, with dimensions height, width and channels."""
    import numpy

    letters = dataformats.upper()
    if letters not in ("CHW", "HWC", "HW") or array.ndim != len(letters):
        raise ValueError(
            f"add_image: an image of shape {array.shape} has not the dimensions {dataformats!r}"
        )
    if letters == "HW":
        array = array[:, :, None]
    elif letters == "CHW":
        array = array.transpose(1, 2, 0)
    if array.shape[2] not in (1, 3, 4):
        raise ValueError(f"add_image: an image has 1, 3 or 4 channels, got {array.shape[2]}")
    if array.dtype != numpy.uint8:
        array = (array.astype("float64") * 255).clip(0, 255).astype("uint8")
    return array


def _png(pixels: Any) -> bytes:
    """A PNG file of (height, width, channels) bytes."""
    height, width, channels = pixels.shape
    kind = {1: 0, 3: 2, 4: 6}[channels]
    # Each row starts with its filter: 0, none.
    rows = b"".join(b"\0" + row.tobytes() for row in pixels)

    def chunk(name: bytes, data: bytes) -> bytes:
        check = struct.pack(">I", zlib.crc32(name + data))
        return struct.pack(">I", len(data)) + name + data + check

    header = struct.pack(">2I5B", width, height, 8, kind, 0, 0, 0)
    parts = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + parts
