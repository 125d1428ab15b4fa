"""What SummaryWriter logs for TensorBoard's plugins: tables of runs, curves, embeddings, graphs."""

from __future__ import annotations

import os
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import taeda


def array_of(values: Any) -> Any:
    """A tensor, array or nested list as an array."""
    import numpy

    if isinstance(values, taeda.Tensor):
        values = values.detach().cpu()
        return (values.float() if values.dtype == taeda.bfloat16 else values).numpy()
    return numpy.asarray(values)


def _tensor_value(values: Any) -> Any:
    """An array as TensorBoard's own kind of tensor."""
    from tensorboard.util import tensor_util

    return tensor_util.make_tensor_proto(values)


class PluginWriter(ABC):
    """The methods of SummaryWriter that serve a plugin each."""

    log_dir: str

    @abstractmethod
    def _add(self, tag: str, step: int | None, walltime: float | None, **value: Any) -> None:
        """Log a value."""

    @abstractmethod
    def _write(self, part: str, event: Any, walltime: float | None = None) -> None:
        """Log an event in the file of a folder under ``log_dir``."""

    # ---- any tensor ----

    def add_tensor(
        self,
        tag: str,
        tensor: Any,
        global_step: int | None = None,
        walltime: float | None = None,
    ) -> None:
        """Log a tensor as it is."""
        self._add(tag, global_step, walltime, tensor=_tensor_value(array_of(tensor)))

    def add_audio(
        self,
        tag: str,
        snd_tensor: Any,
        global_step: int | None = None,
        sample_rate: int = 44100,
        walltime: float | None = None,
    ) -> None:
        """Log sound of one channel: samples from -1 to 1, which are cut off beyond that."""
        import io
        import wave

        from tensorboard.compat.proto.summary_pb2 import Summary

        samples = array_of(snd_tensor).squeeze()
        if samples.ndim != 1:
            raise ValueError(f"add_audio: expected one row of samples, got shape {samples.shape}")
        data = (samples.clip(-1, 1) * 32767).astype("<i2")
        file = io.BytesIO()
        with wave.open(file, "wb") as sound:
            sound.setnchannels(1)
            sound.setsampwidth(2)
            sound.setframerate(sample_rate)
            sound.writeframes(data.tobytes())
        audio = Summary.Audio(
            sample_rate=sample_rate,
            num_channels=1,
            length_frames=len(data),
            encoded_audio_string=file.getvalue(),
            content_type="audio/wav",
        )
        self._add(tag, global_step, walltime, audio=audio)

    # ---- runs and what they were given ----

    def add_hparams(
        self,
        hparam_dict: Mapping[str, Any],
        metric_dict: Mapping[str, Any],
        hparam_domain_discrete: Mapping[str, Sequence[Any]] | None = None,
        run_name: str | None = None,
        global_step: int | None = None,
    ) -> None:
        """Log what a run was given and what came of it, in a folder of its own.

        Args:
            hparam_dict: names, and numbers, strings or bools.
            metric_dict: names, and numbers.
            hparam_domain_discrete: for some of the names, all values that they may have.
            run_name: the folder's name; the time, where it is None.
            global_step: the step of the metrics.

        Raises:
            TypeError: either is no dict, or a value is of another type.
        """
        started, session, ended = hparams_of(hparam_dict, metric_dict, hparam_domain_discrete)
        where = os.path.join(self.log_dir, str(time.time()) if run_name is None else run_name)
        with type(self)(log_dir=where) as writer:  # type: ignore[call-arg, attr-defined]
            for summary in (started, session, ended):
                writer._get_file_writer().add_summary(summary)
            for name, value in metric_dict.items():
                writer.add_scalar(name, value, global_step)

    # ---- precision and recall ----

    def add_pr_curve(
        self,
        tag: str,
        labels: Any,
        predictions: Any,
        global_step: int | None = None,
        num_thresholds: int = 127,
        weights: Any = None,
        walltime: float | None = None,
    ) -> None:
        """Log precision and recall for many thresholds.

        Args:
            tag: the curve's name.
            labels: whether each element is positive.
            predictions: the probability that it is, from 0 to 1.
            global_step: the step.
            num_thresholds: how many thresholds, evenly from 0 to 1.
            weights: how much each element counts; 1 by default.
            walltime: seconds since the epoch; now, where it is None.
        """
        import numpy

        truth, guess = array_of(labels).ravel().astype(bool), array_of(predictions).ravel()
        if truth.shape != guess.shape:
            raise ValueError(
                f"add_pr_curve: there are {truth.size} labels but {guess.size} predictions"
            )
        count = array_of(1.0 if weights is None else weights).astype("float64")
        count = numpy.broadcast_to(count.ravel() if count.ndim else count, truth.shape)
        place = numpy.clip((guess * (num_thresholds - 1)).astype("int64"), 0, num_thresholds - 1)

        def at_least(mask: Any) -> Any:  # the weight of what is predicted, for each threshold
            held = numpy.bincount(place, count * mask, num_thresholds)
            return held[::-1].cumsum()[::-1]

        true, false = at_least(truth), at_least(~truth)
        tiny = numpy.finfo("float64").tiny
        self.add_pr_curve_raw(
            tag, true, false, false[0] - false, true[0] - true,
            true / numpy.maximum(true + false, tiny), true / max(true[0], tiny),
            global_step, num_thresholds, None, walltime,
        )  # fmt: skip

    def add_pr_curve_raw(
        self,
        tag: str,
        true_positive_counts: Any,
        false_positive_counts: Any,
        true_negative_counts: Any,
        false_negative_counts: Any,
        precision: Any,
        recall: Any,
        global_step: int | None = None,
        num_thresholds: int = 127,
        weights: float | None = None,
        walltime: float | None = None,
    ) -> None:
        """Log precision and recall that are known: one number for each threshold in each row.

        ``weights``, where given, multiplies the four counts.
        """
        import numpy
        from tensorboard.plugins.pr_curve import metadata

        counts = [true_positive_counts, false_positive_counts]
        counts += [true_negative_counts, false_negative_counts]
        scale = 1.0 if weights is None else weights
        rows = [array_of(row) * scale for row in counts] + [array_of(precision), array_of(recall)]
        if any(row.shape != (num_thresholds,) for row in rows):
            raise ValueError(
                f"add_pr_curve_raw: each row must have {num_thresholds} numbers, got "
                f"{[row.shape for row in rows]}"
            )
        self._add(
            tag, global_step, walltime,
            metadata=metadata.create_summary_metadata(tag, "", num_thresholds),
            tensor=_tensor_value(numpy.stack(rows).astype("float32")),
        )  # fmt: skip

    # ---- several curves in a chart ----

    def add_custom_scalars(self, layout: Mapping[str, Mapping[str, Sequence[Any]]]) -> None:
        """Say which scalars are shown together.

        Args:
            layout: for each category, its charts: for each title ``["Multiline", tags]``, or
                ``["Margin", tags]`` with the tags of a value and its lower and upper bound.
        """
        from tensorboard.plugins.custom_scalar import layout_pb2, metadata

        categories = []
        for category, charts in layout.items():
            shown = []
            for title, (kind, tags) in charts.items():
                if kind == "Margin":
                    if len(tags) != 3:
                        raise ValueError(
                            f"add_custom_scalars: a margin chart needs 3 tags, got {tags}"
                        )
                    value, lower, upper = tags
                    series = layout_pb2.MarginChartContent.Series(
                        value=value, lower=lower, upper=upper
                    )
                    content: Any = {"margin": layout_pb2.MarginChartContent(series=[series])}
                elif kind == "Multiline":
                    content = {"multiline": layout_pb2.MultilineChartContent(tag=tags)}
                else:
                    raise ValueError(
                        f"add_custom_scalars: a chart is 'Multiline' or 'Margin', got {kind!r}"
                    )
                shown.append(layout_pb2.Chart(title=title, **content))
            categories.append(layout_pb2.Category(title=category, chart=shown))
        text = layout_pb2.Layout(category=categories).SerializeToString()
        kept, value = metadata.create_summary_metadata(), _tensor_value(text)
        self._add(metadata.CONFIG_SUMMARY_TAG, None, None, metadata=kept, tensor=value)

    def add_custom_scalars_multilinechart(
        self, tags: Sequence[str], category: str = "default", title: str = "untitled"
    ) -> None:
        """Show several scalars in one chart; `add_custom_scalars` lays out more than one."""
        self.add_custom_scalars({category: {title: ["Multiline", tags]}})

    def add_custom_scalars_marginchart(
        self, tags: Sequence[str], category: str = "default", title: str = "untitled"
    ) -> None:
        """Show a value between two bounds; ``tags`` are the three of them."""
        self.add_custom_scalars({category: {title: ["Margin", tags]}})

    # ---- points in space ----

    def add_mesh(
        self,
        tag: str,
        vertices: Any,
        colors: Any = None,
        faces: Any = None,
        config_dict: Mapping[str, Any] | None = None,
        global_step: int | None = None,
        walltime: float | None = None,
    ) -> None:
        """Log points, or what they span.

        Args:
            tag: the mesh's name.
            vertices: places, of shape (batch, points, 3).
            colors: from 0 to 255, of the same shape.
            faces: triples of points, of shape (batch, faces, 3).
            config_dict: what is passed to the viewer.
            global_step: the step.
            walltime: seconds since the epoch; now, where it is None.
        """
        import json

        from tensorboard.plugins.mesh import metadata
        from tensorboard.plugins.mesh.plugin_data_pb2 import MeshPluginData as Kinds

        given = {Kinds.VERTEX: vertices, Kinds.FACE: faces, Kinds.COLOR: colors}
        parts = {kind: array_of(x) for kind, x in given.items() if x is not None}
        for part in parts.values():
            if part.ndim != 3 or part.shape[2] != 3:
                raise ValueError(f"add_mesh: expected shapes (batch, count, 3), got {part.shape}")
        components = metadata.get_components_bitmask(list(parts))
        config = json.dumps(config_dict or {}, sort_keys=True)
        for kind, part in parts.items():
            part = part.astype("float32" if kind == Kinds.VERTEX else "int32")
            kept = metadata.create_summary_metadata(
                tag, None, kind, components, part.shape, json_config=config
            )
            name = metadata.get_instance_name(tag, kind)
            self._add(name, global_step, walltime, metadata=kept, tensor=_tensor_value(part))

    def add_embedding(
        self,
        mat: Any,
        metadata: Sequence[Any] | None = None,
        label_img: Any = None,
        global_step: int | None = None,
        tag: str = "default",
        metadata_header: Sequence[str] | None = None,
    ) -> None:
        """Log points of many dimensions, for the projector.

        Args:
            mat: the points, of shape (points, dimensions).
            metadata: a label for each, or a row of labels.
            label_img: a picture for each, of shape (points, channels, height, width), from 0 to 1.
            global_step: the step.
            tag: the embedding's name.
            metadata_header: the names of the columns, where the labels are rows.
        """
        from taeda.utils._tensorboard_files import write_embedding

        write_embedding(
            self.log_dir, array_of(mat), metadata, label_img, global_step or 0, tag, metadata_header
        )

    # ---- models ----

    def add_graph(self, model: Any, input_to_model: Any = None, verbose: bool = False) -> None:
        """Log the operations that a model runs, below the modules that run them.

        Args:
            model: a module. It is run once, in eval mode and without gradients.
            input_to_model: its input, or a tuple of several.
            verbose: print the graph too.
        """
        from tensorboard.compat.proto.event_pb2 import Event

        from taeda.utils._tensorboard_files import graph_of

        graph = graph_of(model, input_to_model)
        if verbose:
            print(graph)
        self._write("", Event(graph_def=graph.SerializeToString()))


def _plain(name: str, value: Any) -> bool | float | str:
    """A value that a table of runs can show."""
    if isinstance(value, taeda.Tensor) and value.numel() == 1:
        value = value.item()
    if not isinstance(value, (bool, int, float, str)):
        raise TypeError(
            f"add_hparams: {name!r} must be a number, a string or a bool, got "
            f"{type(value).__name__}"
        )
    return value


def hparams_of(
    hparam_dict: Mapping[str, Any],
    metric_dict: Mapping[str, Any],
    hparam_domain_discrete: Mapping[str, Sequence[Any]] | None = None,
) -> tuple[Any, Any, Any]:
    """What a run was given, as summaries: of the experiment, of the run, of its end."""
    from tensorboard.compat.proto.summary_pb2 import Summary
    from tensorboard.plugins.hparams import api_pb2, metadata, plugin_data_pb2, summary_v2

    for name, given in (("hparam_dict", hparam_dict), ("metric_dict", metric_dict)):
        if not isinstance(given, Mapping):
            raise TypeError(f"add_hparams: {name} must be a dict, got {type(given).__name__}")
    values = {name: _plain(name, value) for name, value in hparam_dict.items()}
    domains = hparam_domain_discrete or {}
    unknown = sorted(set(domains) - set(values))
    if unknown:
        raise TypeError(f"add_hparams: hparam_domain_discrete names {unknown}, hparam_dict not")
    params = [
        summary_v2.HParam(name, summary_v2.Discrete(domains[name]) if name in domains else None)
        for name in values
    ]
    metrics = [summary_v2.Metric(name) for name in metric_dict]
    ended = plugin_data_pb2.HParamsPluginData(
        session_end_info=plugin_data_pb2.SessionEndInfo(
            status=api_pb2.STATUS_SUCCESS, end_time_secs=time.time()
        )
    )
    end = Summary.Value(
        tag="_hparams_/session_end_info",
        metadata=metadata.create_summary_metadata(ended),
        tensor=metadata.NULL_TENSOR,
    )
    return (
        summary_v2.hparams_config_pb(params, metrics),
        summary_v2.hparams_pb(values),
        Summary(value=[end]),
    )
