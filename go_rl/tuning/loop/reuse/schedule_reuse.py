"""`ScheduleReuse`: which schedules an operator that is not tuned takes over, and from whom."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from go_rl.costs.programs.features import PackedAsts
from go_rl.tuning.loop.nouns import Schedule, ScheduleSpace, Trial


@runtime_checkable
class ScheduleReuse(Protocol):
    """Chooses schedules of one operator by what was measured of others."""

    def choose(
        self, operator: int, measured: Mapping[int, Sequence[Trial]], count: int, seed: int
    ) -> list[Schedule]:
        """Return up to ``count`` distinct schedules, the most promising first.

        Args:
            operator: by its number.
            measured: trials of other operators, by number.
            count: schedules, at most.
            seed: of the draws: equal arguments give equal schedules.
        """
        ...


@runtime_checkable
class ProgramSpace(ScheduleSpace, Protocol):
    """A space whose schedules can be read as programs, and made of those of other operators."""

    def programs(self, schedules: Sequence[Schedule]) -> PackedAsts:
        """Return the compact ASTs of schedules, in their order.

        Raises:
            NestError: the loop nest of one is not understood.
        """
        ...

    def adapted(self, document: Any) -> Schedule | None:
        """Return this operator's schedule with the decisions of another operator's, by its
        document; None: they do not fit."""
        ...
