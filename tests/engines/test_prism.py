"""Prism, the runner that ``beam.Pipeline()`` tries first: what ``make engines`` checks of it."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import version as version_of

import pytest

from tests.contracts.engine import EngineContract, installed
from tests.engines.processes import worker_pool

pytestmark = [pytest.mark.engines, pytest.mark.slow]


class TestPrism(EngineContract):
    engine = "prism"

    @pytest.fixture(scope="class")
    @classmethod
    def version(cls) -> str:
        return version_of("apache-beam")

    @pytest.fixture(scope="class")
    @classmethod
    def options(cls) -> tuple[object, ...]:
        return ("--engine", "beam", "--runner", "PrismRunner", "--", f"--prism_location={installed('prism')}")

    @pytest.fixture(scope="class")
    @classmethod
    def with_workers(
        cls, options: tuple[object, ...], tmp_path_factory: pytest.TempPathFactory
    ) -> Iterator[tuple[object, ...]]:
        with worker_pool(tmp_path_factory.mktemp("pool")) as where:
            yield (*options, *where)
