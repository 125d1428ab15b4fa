"""What tests of one factory share."""

from __future__ import annotations

import pytest

import taeda


@pytest.fixture
def batch():
    taeda.manual_seed(3)
    return taeda.randn(6, 4), taeda.randint(0, 3, (6,))
