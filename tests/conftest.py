"""What the tests that span packages share."""

from __future__ import annotations

import os

import numpy as np
import pytest

os.environ.setdefault("CUVIL_VERIFY", "1")  # every stage of every compile is checked


@pytest.fixture
def rng() -> np.random.Generator:
    """Random numbers that are the same in every run."""
    return np.random.default_rng(20)
