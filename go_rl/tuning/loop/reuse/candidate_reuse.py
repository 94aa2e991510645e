"""`CandidateReuse`: candidates that an operator that is not tuned takes over from others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from go_rl.costs.programs.nests import LoopNest
from go_rl.tuning.loop.nouns import Candidate, CandidateSpace, Trial


@runtime_checkable
class CandidateReuse(Protocol):
    """Chooses candidates of one operator by what was measured of others."""

    def choose(
        self, operator: int, measured: Mapping[int, Sequence[Trial]], count: int, seed: int
    ) -> list[Candidate]:
        """Return up to ``count`` distinct candidates, the most promising first.

        Args:
            operator: by its number.
            measured: trials of other operators, by number.
            count: candidates, at most.
            seed: of the draws: equal arguments give equal candidates.
        """
        ...


@runtime_checkable
class ProgramSpace(CandidateSpace, Protocol):
    """A space whose candidates can be read as programs, and made of those of other operators."""

    def nests(self, candidates: Sequence[Candidate]) -> list[LoopNest | None]:
        """Return the loop nests of candidates, in their order; None: it is not understood. Arrays
        of other types than float32 count as such."""
        ...

    def adapted(self, document: Any) -> Candidate | None:
        """Return this operator's candidate with the decisions of another operator's, by its
        document; None: they do not fit."""
        ...
