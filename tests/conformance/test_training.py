"""Scripts written for PyTorch, run on both by changing the import: the same losses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="the conformance suite compares with PyTorch")

SCRIPTS = Path(__file__).parent / "training"


def losses(name: str, package: str) -> list[float]:
    source = (SCRIPTS / name).read_text()
    source = source.replace("import torch\n", f"import {package} as torch\n")
    source = source.replace("from torch", f"from {package}")
    scope: dict[str, Any] = {"__name__": name}
    exec(compile(source, name, "exec"), scope)
    return scope["losses"]


@pytest.mark.parametrize(
    ("name", "tolerance"),
    [("mlp.py", 2e-6), ("resnet.py", 5e-5), ("lstm.py", 2e-6), ("gpt.py", 2e-6)],
)
def test_same_losses(name: str, tolerance: float) -> None:
    theirs, ours = losses(name, "torch"), losses(name, "taeda")
    assert len(ours) == len(theirs) >= 50
    assert ours[0] == pytest.approx(theirs[0], rel=1e-6)
    assert ours[49] == pytest.approx(theirs[49], rel=tolerance)
    assert ours == pytest.approx(theirs, rel=10 * tolerance)
    assert theirs[49] < theirs[0]  # it learns
