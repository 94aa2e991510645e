"""Records for the tests of the store."""

from collections.abc import Callable

import pytest

from go_rl.runtime.records import Record

NOON = "2025-01-31T12:00:00+00:00"


@pytest.fixture
def measured() -> Callable[..., Record]:
    """A function that makes a record of workload ``w`` on ``cpu-1``; arguments change fields."""

    def make(workload: str = "w", **fields: object) -> Record:
        given = {"seconds": 0.25, "repeats": 3, "measured_at": NOON, "target": "cpu-1", **fields}
        return Record(workload=workload, **given)  # pyright: ignore[reportArgumentType]

    return make
