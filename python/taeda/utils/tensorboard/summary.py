"""Summaries, for those who write them themselves; TensorBoard must be installed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from taeda.utils._tensorboard_plugins import hparams_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["hparams", "scalar", "text"]


def hparams(
    hparam_dict: Mapping[str, Any] | None = None,
    metric_dict: Mapping[str, Any] | None = None,
    hparam_domain_discrete: Mapping[str, Sequence[Any]] | None = None,
) -> tuple[Any, Any, Any]:
    """What a run was given, and which numbers come of it.

    Args:
        hparam_dict: names, and numbers, strings or bools.
        metric_dict: names of numbers, whatever their values.
        hparam_domain_discrete: for some of the names, all values that they may have.

    Returns:
        The summaries of the experiment, of the run's start and of its end.
    """
    return hparams_of(hparam_dict or {}, metric_dict or {}, hparam_domain_discrete)


def scalar(name: str, tensor: Any) -> Any:
    """A point of a curve: a number, or a tensor or array with one element."""
    from tensorboard.compat.proto.summary_pb2 import Summary

    from taeda.utils.tensorboard import _number

    return Summary(value=[Summary.Value(tag=name, simple_value=_number(tensor))])


def text(tag: str, text: str) -> Any:
    """A text."""
    from tensorboard.compat.proto.summary_pb2 import Summary, SummaryMetadata
    from tensorboard.compat.proto.tensor_pb2 import TensorProto
    from tensorboard.compat.proto.tensor_shape_pb2 import TensorShapeProto

    kind = SummaryMetadata(plugin_data=SummaryMetadata.PluginData(plugin_name="text"))
    shape = TensorShapeProto(dim=[TensorShapeProto.Dim(size=1)])
    value = TensorProto(dtype="DT_STRING", string_val=[text.encode()], tensor_shape=shape)
    return Summary(value=[Summary.Value(tag=f"{tag}/text_summary", metadata=kind, tensor=value)])
