"""`ScoredPool`: candidates that a cost model scored while it looked for what to measure next."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float32, Float64, Int64

from go_rl.tuning.config import TuningError
from go_rl.tuning.loop.nouns import Candidate, CandidateSpace


@runtime_checkable
class CandidateScorer(Protocol):
    """A cost model of one operator's candidates, whatever it reads of them."""

    def __call__(
        self, candidates: Sequence[Candidate], features: Float32[np.ndarray, "S numbers"], /
    ) -> Float64[np.ndarray, "S"]:
        """Return [S] scores of candidates: the smallest is the fastest. ``features``: what
        `CandidateSpace.features` says of them."""
        ...


@dataclass(frozen=True, eq=False)
class ScoredCandidates:
    """``S`` distinct candidates, by rising score."""

    candidates: tuple[Candidate, ...]
    scores: Float64[np.ndarray, "S"]
    features: Float32[np.ndarray, "S numbers"]

    def take(self, which: Int64[np.ndarray, "J"]) -> ScoredCandidates:
        """Return some of them."""
        chosen = tuple(self.candidates[i] for i in which.tolist())
        return ScoredCandidates(chosen, self.scores[which], self.features[which])


class ScoredPool:
    """Candidates by key, each scored once.

    Args:
        space: of the operator.
        scorer: scores them.
    """

    def __init__(self, space: CandidateSpace, scorer: CandidateScorer) -> None:
        self._space, self._scorer = space, scorer
        self._candidates: dict[str, Candidate] = {}
        self._scores: dict[str, float] = {}
        self._features: dict[str, Float32[np.ndarray, "numbers"]] = {}

    def scores(self, candidates: Sequence[Candidate]) -> Float64[np.ndarray, "S"]:
        """Return [S] the scores of candidates, which join the pool.

        Raises:
            TuningError: the cost model returns too few numbers, or one that is not finite.
        """
        new = list({s.key: s for s in candidates if s.key not in self._scores}.values())
        if new:
            self._add(new)
        return np.array([self._scores[candidate.key] for candidate in candidates], np.float64)

    def rows(self, candidates: Sequence[Candidate]) -> Float32[np.ndarray, "S numbers"]:
        """Return [S, numbers] the features of candidates of the pool."""
        return np.stack([self._features[candidate.key] for candidate in candidates])

    def fresh(self, known: Container[str]) -> ScoredCandidates:
        """Return what is in the pool without the candidates whose keys are known."""
        keys = [key for key in self._candidates if key not in known]
        if not keys:
            return ScoredCandidates((), np.zeros(0), np.zeros((0, 0), np.float32))
        scores = np.array([self._scores[key] for key in keys])
        features = np.stack([self._features[key] for key in keys])
        found = ScoredCandidates(tuple(self._candidates[k] for k in keys), scores, features)
        return found.take(np.argsort(scores, kind="stable"))

    def __len__(self) -> int:
        return len(self._candidates)

    def _add(self, new: Sequence[Candidate]) -> None:
        features = self._space.features(new)
        scores = np.asarray(self._scorer(new, features), np.float64)
        if scores.shape != (len(new),) or not np.isfinite(scores).all():
            raise TuningError(
                f"a cost model must return {len(new)} finite scores, one of each candidate, not "
                f"{scores.shape} of which {np.isfinite(scores).sum()} are finite"
            )
        for candidate, score, row in zip(new, scores.tolist(), features, strict=True):
            self._candidates[candidate.key] = candidate
            self._scores[candidate.key], self._features[candidate.key] = score, row
