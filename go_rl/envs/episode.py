"""`Episode`: one attempt at a problem, shared by the single and the vector environments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from gymnasium import spaces
from jaxtyping import Bool, Int8

from go_rl.core import EnvironmentUseError, Fidelity, Status
from go_rl.core.decisions import Proposals
from go_rl.core.evaluation import STATUS_CODES
from go_rl.envs.case import Case, EpisodeResult, Outcome
from go_rl.envs.config import NODE_BY_NODE
from go_rl.envs.observation import NO_NODE, EpisodeProgress, Observer
from go_rl.objectives.common.workspace import UNDECIDED, Assignment
from go_rl.objectives.makespan.choices import LEVELS
from go_rl.objectives.ring.assignment import RingAssignment

Mask = Int8[np.ndarray, "choices"] | tuple[Int8[np.ndarray, "choices"], ...]
"""Mask for ``Space.sample(mask=...)``: 1 for what may be chosen; a tuple where an action has
several parts."""
MAX_LOG_PROB = 20.0
"""Bound of the log-probabilities that the sample form takes; they need not be normalised."""
REPAIRED = ("fix", "sample")
"""Forms of actions that the solver completes at random."""
WORDS = {"placement": "device", "schedule": "priority", "fusion": "fusion priority"}
"""Word of messages for a decision's number."""
STAY, ADVANCE = 0, 1
"""Relative actions."""
COLUMN = {"schedule": 0, "fusion": 1}
"""Columns of `Episode.priorities`."""


def action_space(form: str, decided: Sequence[str], nodes: int, devices: int) -> spaces.Space[Any]:
    """Return the action space of a form of actions for graphs of up to ``nodes`` nodes."""
    if form == "sample":
        return spaces.Box(-MAX_LOG_PROB, MAX_LOG_PROB, (nodes, devices), np.float32)
    if form == "relative":
        return spaces.Discrete(2)
    sizes = [devices if decision == "placement" else LEVELS for decision in decided]
    if form == "node":
        return spaces.Discrete(sizes[0]) if len(sizes) == 1 else spaces.MultiDiscrete(sizes)
    shape = (nodes,) if len(sizes) == 1 else (nodes, len(sizes))
    return spaces.MultiDiscrete(np.broadcast_to(np.array(sizes), shape).copy())


class Episode:
    """One attempt at a problem; ``over`` before the first and after each one."""

    case: Case
    """The problem, with what evaluates it."""
    index: int
    """Index of the problem among those of the environment."""
    result: EpisodeResult | None
    """End of the episode, once it is evaluated."""
    shaping: float
    """Change of the potential by the last action, which the reward includes."""
    _assignment: Assignment
    _highest: int
    """The highest chip that a node was put on; at first 0."""

    def __init__(self, form: str, space: spaces.Space[Any]) -> None:
        self.form = form
        self.space = space
        self.over = True
        self.result = None
        self.by_node = form in NODE_BY_NODE

    def begin(self, case: Case, index: int) -> None:
        """Start afresh on a problem, the ``index``-th of the environment."""
        fresh = not self.has_begun or self.case is not case
        self.case, self.index, self.over, self._turn = case, index, False, 0
        nodes = case.problem.graph.num_nodes
        self.priorities = np.full((nodes, len(COLUMN)), UNDECIDED, np.int64)
        self._highest, self.result = 0, None
        if self.by_node:
            if fresh:
                self._assignment = case.workspace.assignment()
            self._assignment.reset()
        elif "placement" in case.decided:
            self._device = np.full(nodes, UNDECIDED, np.int16)
        else:
            self._device = case.workspace.reference.device[0]
        self.shaping, self.potential = 0.0, self._potential()

    def _potential(self) -> float:
        """The potential of the decisions so far; 0 after the end, and for rewards that are not
        shaped."""
        if self.over or not self.case.is_shaped:
            return 0.0
        assert isinstance(self._assignment, RingAssignment)  # see `EnvironmentConfig`
        least = self._highest if self.form == "relative" else 0
        return self.case.potential(self._assignment.bound(least))

    @property
    def current(self) -> int:
        """The node whose turn it is, or `NO_NODE`."""
        waiting = self.by_node and not self.over and self._turn < len(self._assignment.nodes)
        return int(self._assignment.nodes[self._turn]) if waiting else NO_NODE

    @property
    def open(self) -> Bool[np.ndarray, "N"]:
        """[N] nodes that wait for a decision, or whose device is not known yet."""
        waits = np.zeros(len(self.priorities), np.bool_)
        if not self.over:
            if self.by_node:
                waits[self._assignment.nodes[self._turn :]] = True
            else:
                waits |= self.case.decidable
        return waits | (self.progress().device < 0)

    def action_mask(self) -> Mask:
        """[D] 1 where the current node may go, and [`LEVELS`] ones for a priority: a tuple where
        several things are decided. Of everything where nothing is possible: at the end, and where
        no plan exists; any action then ends the episode. Relative: [2] for `STAY` and `ADVANCE`."""
        if self.form == "relative":
            return self._moves()
        parts = [
            self._possible() if decision == "placement" else np.ones(LEVELS, np.int8)
            for decision in self.case.decided
        ]
        return tuple(parts) if len(parts) > 1 else parts[0]

    def _possible(self) -> Int8[np.ndarray, "D"]:
        node = self.current
        if node != NO_NODE and self._assignment.infeasible is None:
            possible: Bool[np.ndarray, "D"] = self._assignment.possible(node)
            if possible.any():
                return possible.astype(np.int8)
        return np.ones(self.case.problem.hardware.num_devices, np.int8)

    def _moves(self) -> Int8[np.ndarray, "2"]:
        """[2] which moves are possible; `STAY` is where both chips are not, see `_chip`."""
        possible, reached = self._possible(), self._highest
        moves = np.zeros(2, np.int8)
        moves[: len(possible) - reached] = possible[reached : reached + 2]
        if not moves.any():
            moves[STAY] = 1
        return np.ones(2, np.int8) if self.current == NO_NODE else moves

    def _chip(self, move: int) -> int:
        """Return the chip of a relative action: where neither chip is possible, `STAY` is the
        nearest one that is."""
        reached, moves = self._highest, self._moves()
        possible = np.flatnonzero(self._possible())
        if move == STAY and reached not in possible and not moves[ADVANCE]:
            return int(possible[np.abs(possible - reached).argmin()])
        return reached + move

    @property
    def has_begun(self) -> bool:
        """Whether a problem was ever chosen."""
        return hasattr(self, "case")

    def progress(self) -> EpisodeProgress:
        """Return the decisions so far."""
        decided = np.zeros(len(self.priorities), np.bool_)
        if self.by_node:
            decided[self._assignment.nodes[: self._turn]] = True
        elif self.over:
            decided = self.case.decidable
        shown = self._device if self.over or not self.by_node else self._assignment.device
        return EpisodeProgress(shown, decided, self.current, self.priorities)

    def observe(self, observer: Observer) -> Any:
        """Return what the agent sees now."""
        return observer.observe(self.case.features, self.progress())

    def info(self) -> dict[str, Any]:
        """Return the ``info`` of a reset, or of an episode step that does not end the episode."""
        info: dict[str, Any] = {"graph": self.index}
        if self.by_node:
            info |= {"action_mask": self.action_mask(), "node": self.current}
        if self.case.is_shaped:
            info["potential"] = self.potential
        return info

    def finish(self, result: EpisodeResult, rows: int) -> dict[str, Any]:
        """Keep how the episode ended; return the ``info`` of the episode step that ends it, plans
        padded to ``rows``."""
        self.result, info = result, self.info()
        for name in ("status", "detail", "seconds", "reference_seconds"):
            info[name] = getattr(result, name)
        if result.fidelity is not None:
            info |= _shown(result.fidelity)
        for name, values in result.plan.items():
            info[name] = np.full(rows, UNDECIDED, values.dtype)
            info[name][: len(values)] = values
        return info

    def act(self, action: Any, random: np.random.Generator) -> Outcome | None:
        """Take an action; return how the episode ended, or None while it goes on.

        Args:
            action: of the action space.
            random: where FIX and SAMPLE get their seed.

        Raises:
            EnvironmentUseError: the action is not of the space.
        """
        checked = self.check(action)
        outcome = self._decide(checked) if self.by_node else self._plan(checked, random)
        if outcome is not None:
            self.over = True
            plan = outcome.decisions
            lost = np.full(len(self.priorities), UNDECIDED, np.int16)
            self._device = lost if plan is None else plan.device[0]
        before, self.potential = self.potential, self._potential()
        self.shaping = self.potential - before
        return outcome

    def _decide(self, action: np.ndarray) -> Outcome | None:
        """Take the decisions for the current node."""
        assignment, node = self._assignment, self.current
        if (failure := assignment.infeasible) is not None:
            return Outcome(None, failure.status, failure.detail)
        if self.form == "relative" and node != NO_NODE:
            chip = self._chip(int(action))
            if chip == self.case.problem.hardware.num_devices:
                return Outcome(
                    None, Status.ILLEGAL, f"node {node} cannot advance: chip {chip - 1} is the last"
                )
            action, self._highest = np.array([chip]), max(self._highest, chip)
        if node != NO_NODE:
            for decision, chosen in zip(self.case.decided, action.reshape(-1), strict=True):
                if decision != "placement":
                    self.priorities[node, COLUMN[decision]] = chosen
                elif clash := assignment.assign(node, int(chosen)):
                    return Outcome(None, Status.ILLEGAL, clash)
            self._turn += 1
        if self._turn < len(assignment.nodes):
            return None
        return Outcome(assignment.decisions(*np.maximum(self.priorities, 0).T))

    def _plan(self, action: np.ndarray, random: np.random.Generator) -> Outcome:
        """Make decisions for all nodes legal."""
        seed = int(random.integers(2**31)) if self.form in REPAIRED else 0
        legal = self.case.workspace.legalize(self._proposals(action[: len(self.priorities)]), seed)
        status = STATUS_CODES[int(legal.status[0])]
        if not status.ok:
            self.priorities[:] = UNDECIDED
            return Outcome(None, status, legal.detail, *legal.fidelity)
        return Outcome(legal.decisions, status, "", *legal.fidelity)

    def _proposals(self, action: np.ndarray) -> Proposals:
        if self.form == "sample":
            return Proposals(log_probs=action[None])
        columns = action.reshape(len(action), -1).T
        chosen = dict(zip(self.case.decided, columns, strict=True))
        for decision, column in COLUMN.items():
            if decision in chosen:
                self.priorities[:, column] = chosen[decision]
        priority, fusion = np.maximum(self.priorities, 0).T
        device = chosen.get("placement", self._device)
        return Proposals(device[None], priority=priority[None], fusion=fusion[None])

    def check(self, action: Any) -> np.ndarray:
        """Return the action as an array; raise an `EnvironmentUseError` otherwise."""
        array = np.asarray(action)
        if array.shape != self.space.shape:
            raise EnvironmentUseError(
                f"action has shape {list(array.shape)}; the {self.form} form takes "
                f"{list(self.space.shape or ())}, see action_space"
            )
        if self.form == "sample":
            if not np.isfinite(array).all():
                raise EnvironmentUseError("action: log-probabilities must be finite numbers")
            return array.astype(np.float64)
        if not np.issubdtype(array.dtype, np.integer):
            raise EnvironmentUseError(f"action must be whole numbers, not {array.dtype}")
        columns = array.reshape(-1, len(self.case.decided)).T
        for decision, values in zip(self.case.decided, columns, strict=True):
            placed = decision == "placement"
            count = self.case.problem.hardware.num_devices if placed else LEVELS
            word = WORDS[decision]
            if self.form == "relative":
                count, word = 2, "move"
            if (wrong := values[(values < 0) | (values >= count)]).size:
                raise EnvironmentUseError(
                    f"action names {word} {wrong[0]}; allowed are 0..{count - 1}"
                )
        return array


def _shown(fidelity: Fidelity) -> dict[str, Any]:
    """How a plan follows from the action, as far as it is known."""
    return {name: entry for name, entry in fidelity.to_json().items() if entry is not None}


def check_running(running: bool) -> None:
    """Raise an `EnvironmentUseError` where no episode is."""
    if not running:
        raise EnvironmentUseError("no episode is running; call reset() before step()")


def choose_case(cases: int, options: dict[str, Any] | None, random: np.random.Generator) -> int:
    """Return ``options["graph"]``, or a case drawn where there are several.

    Raises:
        EnvironmentUseError: an unknown option, or no such graph.
    """
    given = dict(options or {})
    index = given.pop("graph", None)
    if given:
        raise EnvironmentUseError(f"unknown option {sorted(given)[0]!r}; reset takes 'graph'")
    if index is None:
        return int(random.integers(cases)) if cases > 1 else 0
    if not isinstance(index, (int, np.integer)) or not 0 <= index < cases:
        raise EnvironmentUseError(f"options['graph'] must be 0..{cases - 1}, not {index!r}")
    return int(index)
