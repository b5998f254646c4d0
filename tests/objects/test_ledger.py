"""The ledger at an object store: histories of stopped releases and edits, on a real server."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import corpusveil as cv
from corpusveil.spaces import Space
from corpusveil.spaces.vectors import Vectors
from tests.engines.corpora import WORDS
from tests.ledger.histories import STEPS, beyond_what_is_owed
from tests.objects.store import Store


@pytest.fixture(scope="module")
def small() -> Space:
    vectors = np.random.default_rng(1).standard_normal((len(WORDS), 2)).astype(np.float32)
    return cv.build_space(Vectors(list(WORDS), vectors))


@pytest.mark.slow
@pytest.mark.faults
@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(history=st.lists(STEPS, min_size=3, max_size=6))
def test_histories_at_a_store_never_count_too_low(s3: Store, small: Space, history: list[Any]) -> None:
    """As on a disk: whatever became visible is in the ledger, unit by unit."""
    assert beyond_what_is_owed(small, f"s3://{s3.bucket()}/history", history) >= -1e-12
