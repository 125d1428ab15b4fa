"""Non-maximum suppression of boxes."""

from __future__ import annotations

import taeda
from taeda import Tensor


def _check(dets: Tensor, scores: Tensor) -> None:
    if dets.dim() != 2:
        raise RuntimeError(f"boxes should be a 2d tensor, got {dets.dim()}D")
    if dets.size(1) != 4:
        raise RuntimeError(f"boxes should have 4 elements in dimension 1, got {dets.size(1)}")
    if scores.dim() != 1:
        raise RuntimeError(f"scores should be a 1d tensor, got {scores.dim()}D")
    if dets.size(0) != scores.size(0):
        raise RuntimeError(
            "boxes and scores should have same number of elements in dimension 0, got "
            f"{dets.size(0)} and {scores.size(0)}"
        )
    if dets.dtype is not scores.dtype:
        raise RuntimeError("dets should have the same type as scores")


def nms(dets: Tensor, scores: Tensor, iou_threshold: float) -> Tensor:
    """Return the boxes that no box of a higher score overlaps by more than a threshold.

    Args:
        dets: boxes (x1, y1, x2, y2), of shape [N, 4].
        scores: of shape [N].
        iou_threshold: the intersection over the union from which, exclusively, the box of the lower
            score is dropped.

    Returns:
        Their indices, by falling score.
    """
    _check(dets, scores)
    order = scores.sort(stable=True, descending=True)[1]
    x1, y1, x2, y2 = dets[order].unbind(1)
    areas = (x2 - x1) * (y2 - y1)
    kept, left = [], taeda.arange(len(order))
    while len(left):
        first, left = left[0], left[1:]
        kept.append(first)
        width = (taeda.minimum(x2[first], x2[left]) - taeda.maximum(x1[first], x1[left])).clamp(
            min=0
        )
        height = (taeda.minimum(y2[first], y2[left]) - taeda.maximum(y1[first], y1[left])).clamp(
            min=0
        )
        shared = width * height
        overlap = shared / (areas[first] + areas[left] - shared)
        # In double, where the threshold is not rounded.
        left = left[~(overlap.double() > iou_threshold)]
    return order[taeda.stack(kept)] if kept else order
