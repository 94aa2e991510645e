"""`PartitionEpisode`: one episode on a ring problem, shared by the single and the vector form."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces
from jaxtyping import Bool, Int8

from go_rl.core import EnvironmentUseError, Status
from go_rl.core.evaluation import STATUS_CODES
from go_rl.envs.episode import Episode, with_a_choice
from go_rl.envs.observation import NO_NODE, EpisodeProgress, Observer
from go_rl.envs.ring.case import CaseResult, Outcome, PartitionCase
from go_rl.solvers import DomainStore, RingSolver

MAX_LOG_PROB = 20.0
"""Bound of the log-probabilities that the sample form takes; they need not be normalised."""
NO_CHIP = -1


def action_space(form: str, nodes: int, chips: int) -> spaces.Space[Any]:
    """Return the action space of one of `ACTIONS` for graphs of up to ``nodes`` nodes."""
    if form == "node":
        return spaces.Discrete(chips)
    if form == "fix":
        return spaces.MultiDiscrete(np.full(nodes, chips))
    return spaces.Box(-MAX_LOG_PROB, MAX_LOG_PROB, (nodes, chips), np.float32)


class PartitionEpisode(Episode):
    """One attempt at a problem. ``act`` returns an `Outcome` when the attempt is over."""

    case: PartitionCase
    _store: DomainStore | None = None

    def begin(self, case: PartitionCase, index: int) -> None:
        """Start afresh on a problem, the ``index``-th of the environment."""
        self.case, self.index = case, index
        self.over = False
        self.device = np.full(case.problem.graph.num_nodes, NO_CHIP, np.int16)
        self._turn = 0
        if self.form == "node":
            self._open_store(case)

    @property
    def store(self) -> DomainStore:
        """The solver's domains (node form)."""
        assert self._store is not None
        return self._store

    @property
    def current(self) -> int:
        """The node whose turn it is, or `NO_NODE`."""
        waiting = self.form == "node" and not self.over
        return int(self._order[self._turn]) if waiting else NO_NODE

    def action_mask(self) -> Int8[np.ndarray, "chips"]:
        """[chips] 1 where the current node can go as far as propagation sees."""
        return with_a_choice(self._mask)

    def progress(self) -> EpisodeProgress:
        """The part of the observation that changes."""
        decided = np.full(len(self.device), self.over and self.form != "node")
        chip = self.device
        if self.form == "node":
            decided[self._order[: self._turn]] = True
            chip = self.device if self.over else self.store.placement()
        return EpisodeProgress(chip.copy(), decided, self.current)

    def observe(self, observer: Observer) -> Any:
        """Return what the agent sees now."""
        chips = self.case.problem.hardware.num_chips
        return observer.observe(self.case.features, self.progress(), chips)

    def plan(self, result: CaseResult) -> dict[str, np.ndarray]:
        """Return the chips."""
        return {"device": self.device}

    def act(self, action: Any, random: np.random.Generator, thread: int = 0) -> Outcome | None:
        """Take an action; return how the episode ended, or None while it goes on.

        Args:
            action: of the action space.
            random: where FIX and SAMPLE get their seed.
            thread: whose solver of the case to use.

        Raises:
            EnvironmentUseError: the action is not of the space.
        """
        checked = self.check(action)
        if self.form == "node":
            outcome = self._place(int(checked))
        else:
            solver = self.case.solver(thread)
            outcome = self._repair(checked, int(random.integers(2**31)), solver)
        if outcome is not None:
            self.over = True
            self.device = outcome.device
            self._mask = np.zeros(self.case.problem.hardware.num_chips, np.bool_)
        return outcome

    def _open_store(self, case: PartitionCase) -> None:
        if self._store is not None and self._store.instance is case.instance:
            self._store.reset()
        else:
            self._store = DomainStore(case.instance)
        self._order = np.flatnonzero(~case.instance.replicated)
        self._mask = self._possible()

    def _possible(self) -> Bool[np.ndarray, "chips"]:
        return self.store.possible(int(self._order[self._turn]))

    def _place(self, chip: int) -> Outcome | None:
        store, node = self.store, int(self._order[self._turn])
        if not store.feasible:
            return self._failure(Status.INFEASIBLE, store.clash)
        if not store.set(node, chip):
            return self._failure(Status.ILLEGAL, store.clash)
        self._turn += 1
        if self._turn == len(self._order):
            return Outcome(Status.OK, store.assignment())
        self._mask = self._possible()
        if not self._mask.any():
            name = self.case.problem.graph.names[int(self._order[self._turn])]
            why = f"no legal chip is left for node {name!r}: the partition has no completion"
            return self._failure(Status.ILLEGAL, why)
        return None

    def _repair(self, action: np.ndarray, seed: int, solver: RingSolver) -> Outcome:
        proposal = action[: self.case.problem.graph.num_nodes]
        samples = (solver.fix if self.form == "fix" else solver.sample)(proposal, seed=seed)
        status = STATUS_CODES[int(samples.status[0])]
        if not status.ok:
            return self._failure(status, samples.detail)
        return Outcome(status, samples.device[0])

    def _failure(self, status: Status, detail: str) -> Outcome:
        return Outcome(status, np.full(len(self.device), NO_CHIP, np.int16), detail)

    def check(self, action: Any) -> np.ndarray:
        """Return the action as an array; an `EnvironmentUseError` says what is wrong with it."""
        array = self.shaped(action)
        if self.form == "sample":
            if not np.isfinite(array).all():
                raise EnvironmentUseError("action: log-probabilities must be finite numbers")
            return array.astype(np.float64)
        chips = self.case.problem.hardware.num_chips
        if not np.issubdtype(array.dtype, np.integer):
            raise EnvironmentUseError(f"action must be whole chip numbers, not {array.dtype}")
        if array.min(initial=0) < 0 or array.max(initial=0) >= chips:
            wrong = array.reshape(-1)[(array.reshape(-1) < 0) | (array.reshape(-1) >= chips)][0]
            raise EnvironmentUseError(f"action names chip {wrong}; chips are 0..{chips - 1}")
        return array
