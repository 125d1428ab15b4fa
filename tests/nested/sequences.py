"""Nested tensors of one content in taeda and in PyTorch, and how to compare what comes out."""

from __future__ import annotations

import re
import warnings

import numpy as np

LENGTHS = [2, 4, 1, 4]


def arrays(lengths=LENGTHS, rest=(6,), dtype="float64", seed=0):
    """Sequences with different numbers."""
    rng = np.random.default_rng(seed)
    whole = [rng.standard_normal((n, *rest)) * 2 for n in lengths]
    return [a.astype(dtype) for a in whole]


def nested(library, lengths=LENGTHS, rest=(6,), dtype="float64", seed=0, layout=None):
    """The same of a library, ``taeda`` or ``torch``; a leaf that requires a gradient."""
    parts = [library.tensor(a) for a in arrays(lengths, rest, dtype, seed)]
    x = library.nested.nested_tensor(parts, layout=layout or library.jagged)
    return x.requires_grad_() if x.is_floating_point() else x


def shown(size):
    return re.sub(r"j\d+", "j", str(tuple(size)))


def same(ours, theirs, tolerance=1e-9):
    """Compare tensors, nested or not, and what contains them."""
    if isinstance(theirs, (tuple, list)):
        assert len(ours) == len(theirs)
        for a, b in zip(ours, theirs, strict=True):
            same(a, b, tolerance)
        return
    if not hasattr(theirs, "is_nested"):
        assert ours == theirs
        return
    assert ours.is_nested == theirs.is_nested
    assert str(ours.dtype).split(".")[1] == str(theirs.dtype).split(".")[1]
    if theirs.is_nested:
        assert ours.dim() == theirs.dim()
        assert str(ours.layout).split(".")[1] == str(theirs.layout).split(".")[1]
        if str(theirs.layout).endswith("jagged"):
            assert shown(ours.shape) == shown(theirs.shape)
            assert ours._ragged_idx == theirs._ragged_idx
            assert ours.offsets().tolist() == theirs.offsets().tolist()
        same(list(ours.unbind()), list(theirs.unbind()), tolerance)
        return
    assert tuple(ours.shape) == tuple(theirs.shape)
    np.testing.assert_allclose(
        ours.detach().numpy(), theirs.detach().numpy(), rtol=tolerance, atol=tolerance
    )


def weighted(library, result):
    """A number that every element of a result goes into with a weight of its own."""
    parts = result if isinstance(result, (tuple, list)) else [result]
    total = 0.0
    for part in parts:
        pieces = part.unbind() if part.is_nested else [part]
        for i, piece in enumerate(pieces):
            if piece.is_floating_point() and piece.requires_grad:
                weights = library.arange(piece.numel(), dtype=piece.dtype).reshape(piece.shape)
                total = total + (piece * (weights + i + 1).cos()).sum()
    return total


def quietly(function, *args):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return function(*args)
