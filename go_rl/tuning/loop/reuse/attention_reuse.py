"""`AttentionReuse`: candidates chosen by the tuner's attention to what was measured of others.

Verma et al. 2023, section 4.4. The choice is among the fastest candidates of the tuned operators as
far as they fit, and random ones; each has the relative throughput of the measured candidates that
the tuner's head attends to (`go_rl.costs.programs.learn.transfer.attention_memory`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float32

from go_rl.core import TrainingError
from go_rl.costs.programs.learn.examples import ProgramInputs, programs_of_nests
from go_rl.costs.programs.learn.transfer.attention_memory import AttentionMemory
from go_rl.costs.programs.measure.data import ProgramTarget
from go_rl.costs.programs.nests import NestError
from go_rl.tuning.loop.nouns import Candidate, Trial
from go_rl.tuning.loop.reuse.candidate_reuse import ProgramSpace

FASTEST = 4
"""Candidates of each tuned operator that others try to take over as they are."""
REMEMBERED = 32
"""Trials of each operator that are in memory, at most: the fastest and evenly drawn others."""


@runtime_checkable
class StateReader(Protocol):
    """A network with an attention head."""

    def states(self, inputs: ProgramInputs) -> Float32[np.ndarray, "P W"]:
        """Return [P, W] the head's last state of each program."""
        ...


@dataclass(frozen=True, eq=False)
class AttentionReuse:
    """Reuse of candidates in the order of an attention head's relative throughput."""

    space_of: Callable[[int], ProgramSpace]
    """Spaces of operators by their number."""
    tuner: StateReader
    """Network with the head (`go_rl.costs.programs.learn.transfer.tuner.TransferTuner`)."""
    target: ProgramTarget
    """Target on which candidates are timed."""
    drawn: int = 32
    """Random candidates among which the head chooses, too."""
    _states: dict[tuple[int, str], Float32[np.ndarray, "W"] | None] = field(default_factory=dict)
    """States of the head by operator and key; None: the loop nest is not understood."""

    def choose(
        self, operator: int, measured: Mapping[int, Sequence[Trial]], count: int, seed: int
    ) -> list[Candidate]:
        """Return the candidates; without a loop nest that is understood the order is that of the
        candidates: the fastest of others first."""
        candidates = self._candidates(operator, measured, seed)
        known = [(s, self._state(operator, s)) for s in candidates]
        read = [(candidate, state) for candidate, state in known if state is not None]
        memory = self._memory(measured)
        if memory is None or not read:
            return candidates[:count]
        expected = memory.throughputs(np.stack([state for _, state in read]))
        order = np.argsort(-expected, kind="stable")[:count]
        return [read[i][0] for i in order.tolist()]

    def _candidates(
        self, operator: int, measured: Mapping[int, Sequence[Trial]], seed: int
    ) -> list[Candidate]:
        space, found = self.space_of(operator), dict[str, Candidate]()
        for _, trials in sorted(measured.items()):
            for trial in _fastest(trials)[:FASTEST]:
                made = space.adapted(trial.candidate.document)
                if made is not None:
                    found.setdefault(made.key, made)
        for candidate in space.draw(self.drawn, np.random.default_rng((seed, operator))):
            found.setdefault(candidate.key, candidate)
        return list(found.values())

    def _memory(self, measured: Mapping[int, Sequence[Trial]]) -> AttentionMemory | None:
        states, seconds, numbers = [], [], []
        for k, trials in sorted(measured.items()):
            some = _remembered(trials)
            own = [(self._state(k, trial.candidate), trial.seconds) for trial in some]
            kept = [(state, took) for state, took in own if state is not None]
            if kept:
                states.append(np.stack([state for state, _ in kept]))
                seconds.append(np.array([np.nan if s is None else s for _, s in kept]))
                numbers.append(k)
        try:
            return AttentionMemory.of(states, seconds, numbers)
        except TrainingError:  # nothing was tuned that is understood
            return None

    def _state(self, operator: int, candidate: Candidate) -> Float32[np.ndarray, "W"] | None:
        key = operator, candidate.key
        if key not in self._states:
            self._states[key] = self._read(operator, candidate)
        return self._states[key]

    def _read(self, operator: int, candidate: Candidate) -> Float32[np.ndarray, "W"] | None:
        (nest,) = self.space_of(operator).nests([candidate])
        if nest is None:
            return None
        try:
            return self.tuner.states(programs_of_nests([nest], self.target))[0]
        except (NestError, TrainingError):  # it computes nothing, or has too many statements
            return None


def _fastest(trials: Sequence[Trial]) -> list[Trial]:
    timed = [trial for trial in trials if trial.seconds is not None]
    return sorted(timed, key=lambda trial: trial.seconds or 0.0)


def _remembered(trials: Sequence[Trial]) -> list[Trial]:
    """The fastest quarter of what is remembered, and others evenly by their rank."""
    ranked = _fastest(trials)
    if len(ranked) <= REMEMBERED:
        return ranked
    first = REMEMBERED // 4
    rest = np.linspace(first, len(ranked) - 1, REMEMBERED - first).round().astype(int)
    return ranked[:first] + [ranked[i] for i in rest.tolist()]
