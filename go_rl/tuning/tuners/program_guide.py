"""`ProgramGuide`: a predictor of tensor programs that ranks candidates while a network is tuned.

The inner tuners of all operators share one predictor. It is fine-tuned on what was measured of
them when 16, 32, 64, … trials have a time, each time from the weights given, so that it is a
function of these trials alone and a run that was stopped goes on with the same one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from jaxtyping import Float32, Float64

from go_rl.costs.programs.features import compact_ast
from go_rl.costs.programs.learn.examples import ProgramExamples, programs_of_nests
from go_rl.costs.programs.learn.predictor import ProgramPredictor
from go_rl.costs.programs.learn.program_weights import FineTunable, LoadedPrograms
from go_rl.costs.programs.measure.data import ProgramTarget
from go_rl.costs.programs.nests import LoopNest, NestError
from go_rl.tuning.config import TuningError
from go_rl.tuning.loop.nouns import Candidate, CandidateSpace, InnerTuner, MakeInnerTuner, Trial
from go_rl.tuning.loop.reuse.candidate_reuse import ProgramSpace
from go_rl.tuning.tuners.registry import RANDOM, inner_tuner

FIRST_TRIALS = 16
"""Trials from which the predictor is fine-tuned first; then whenever they have doubled."""
UPDATES, BATCH = 100, 32
"""Updates of a network, and programs of each, when it is fine-tuned while tuning: some seconds."""
SLOWER = 1.0
"""Distance of the score of what is not understood behind the worst of the others; scores are
logarithms of seconds, or ranks."""


class ProgramGuide:
    """Ranks candidates by a predictor, which learns further from their trials.

    Args:
        predictor: of seconds or ranks of programs.
        target: on which candidates are timed.
    """

    def __init__(self, predictor: LoadedPrograms, target: ProgramTarget) -> None:
        self._base, self._target = predictor, target
        self._nests: list[LoopNest] = []
        self._seconds: list[float] = []
        self._operator: list[int] = []
        self._spaces: list[ProgramSpace] = []
        self._tuned: tuple[int, FineTunable] = (0, predictor)

    def tuners(self, name: str) -> MakeInnerTuner:
        """Return what makes the inner tuners of operators, whose searches this guide ranks for.

        Args:
            name: of `go_rl.tuning.tuners.registry.GUIDED`.

        Raises:
            TuningError: there is no such tuner, or it takes no predictor.
        """
        if name == RANDOM:
            raise TuningError("the inner tuner 'random' takes no predictor: leave out --guide")
        inner_tuner(name)  # an unknown name is refused here

        def make(space: CandidateSpace, seed: int) -> InnerTuner:
            if not isinstance(space, ProgramSpace):
                raise TuningError("a predictor of programs guides spaces of programs alone")
            self._spaces.append(space)
            scorer = SpaceScorer(self, space)
            inner = inner_tuner(name, scorer, learn=False)(space, seed)
            return GuidedOperator(self, len(self._spaces) - 1, inner)

        return make

    def observe(self, operator: int, trials: Sequence[Trial]) -> None:
        """Remember trials of an operator that have a time and are understood."""
        timed = [trial for trial in trials if trial.seconds is not None]
        if not timed:
            return
        nests = self._spaces[operator].nests([trial.candidate for trial in timed])
        for trial, nest in zip(timed, nests, strict=True):
            if nest is not None and self._knows(nest):
                self._nests.append(nest)
                self._seconds.append(float(trial.seconds or 0.0))
                self._operator.append(operator)

    def scores(self, nests: Sequence[LoopNest | None]) -> Float64[np.ndarray, "S"]:
        """Return [S] predictions, those of what is not understood behind all others."""
        known = {i: nest for i, nest in enumerate(nests) if nest is not None and self._knows(nest)}
        found = np.full(len(nests), np.nan)
        if known:
            predictor = self._predictor()
            answer = predictor.predict(programs_of_nests([*known.values()], self._target))
            found[[*known]] = np.log(answer) if predictor.unit == "seconds" else answer
        worst = float(np.nanmax(found)) if known else 0.0
        return np.where(np.isfinite(found), found, worst + SLOWER)

    def _knows(self, nest: LoopNest) -> bool:
        try:
            return self._base.knows(compact_ast(nest).num_leaves)
        except NestError:  # it computes nothing
            return False

    def _predictor(self) -> FineTunable:
        """The predictor, fine-tuned on as many trials as the last doubling had."""
        count = FIRST_TRIALS
        if len(self._nests) < count:
            return self._base
        while 2 * count <= len(self._nests):
            count *= 2
        if self._tuned[0] != count:
            self._tuned = count, fine_tuned(self._base, self._examples(count))
        return self._tuned[1]

    def _examples(self, count: int) -> ProgramExamples:
        task = np.array(self._operator[:count], np.int64)
        inputs = programs_of_nests(self._nests[:count], self._target, task)
        return ProgramExamples(inputs, np.array(self._seconds[:count]), np.zeros(count), "trials")


def fine_tuned(predictor: LoadedPrograms, examples: ProgramExamples) -> LoadedPrograms:
    """Return a predictor that learned further from trials, in a few seconds."""
    if not isinstance(predictor, ProgramPredictor):
        return predictor.fine_tuned(examples)
    config = replace(
        predictor.config,
        updates=UPDATES,
        batch=BATCH,
        learning_rate=predictor.config.learning_rate / 5,
    )
    return predictor.fine_tuned(examples, config=config)


class SpaceScorer:
    """Scores of one operator's candidates by a guide (`CandidateScorer`)."""

    def __init__(self, guide: ProgramGuide, space: ProgramSpace) -> None:
        self._guide, self._space = guide, space

    def __call__(
        self, candidates: Sequence[Candidate], features: Float32[np.ndarray, "S numbers"]
    ) -> Float64[np.ndarray, "S"]:
        """Return [S] scores; the smallest is the fastest."""
        return self._guide.scores(self._space.nests(candidates))


class GuidedOperator:
    """Inner tuner of one operator, whose trials a guide learns from."""

    def __init__(self, guide: ProgramGuide, operator: int, inner: InnerTuner) -> None:
        self._guide, self._operator, self._inner = guide, operator, inner

    def propose(self, count: int) -> list[Candidate]:
        return self._inner.propose(count)

    def observe(self, trials: Sequence[Trial]) -> None:
        self._guide.observe(self._operator, trials)
        self._inner.observe(trials)
