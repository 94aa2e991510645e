"""`StepEpisode`: one episode on a makespan problem, shared by the single and the vector form."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from gymnasium import spaces
from jaxtyping import Bool

from go_rl.core import EnvironmentUseError, Status
from go_rl.envs.episode import Episode, Mask, with_a_choice
from go_rl.envs.makespan.case import StepCase, StepOutcome, StepResult
from go_rl.envs.makespan.observation import UNDECIDED, StepObserver
from go_rl.envs.observation import NO_NODE, EpisodeProgress
from go_rl.objectives.makespan.choices import LEVELS
from go_rl.objectives.makespan.infer_devices import beside_readers

PRIORITIES = ("schedule", "fusion")
"""Tasks that are decided by priorities, in the order of the columns of `StepOutcome.levels`."""


def step_action_space(
    form: str, tasks: Sequence[str], nodes: int, devices: int
) -> spaces.Discrete | spaces.MultiDiscrete:
    """Return the action space of one of `STEP_ACTIONS` for graphs of up to ``nodes`` nodes."""
    sizes = [devices if task == "placement" else LEVELS for task in tasks]
    if form == "node":
        return spaces.Discrete(sizes[0]) if len(sizes) == 1 else spaces.MultiDiscrete(sizes)
    shape = (nodes,) if len(sizes) == 1 else (nodes, len(sizes))
    return spaces.MultiDiscrete(np.broadcast_to(np.array(sizes), shape).copy())


class StepEpisode(Episode):
    """One attempt at a problem. ``act`` returns a `StepOutcome` when the attempt is over."""

    case: StepCase
    space: spaces.Discrete | spaces.MultiDiscrete

    def begin(self, case: StepCase, index: int) -> None:
        """Start afresh on a problem, the ``index``-th of the environment."""
        self.case, self.index = case, index
        self.over = False
        nodes = case.problem.graph.num_nodes
        self.places = "placement" in case.tasks
        self.device = np.full(nodes, UNDECIDED, np.int16)
        if not self.places:
            self.device = case.workspace.default.device[0].copy()
        self.levels = np.full((nodes, 2), UNDECIDED, np.int64)
        self._turn = 0

    @property
    def current(self) -> int:
        """The node whose turn it is, or `NO_NODE`."""
        waiting = self.form == "node" and not self.over and self._turn < len(self.case.order)
        return int(self.case.order[self._turn]) if waiting else NO_NODE

    def possible(self) -> Bool[np.ndarray, "D"]:
        """[D] where the current node may go, given its class so far; nowhere at the end, or where
        no plan exists."""
        devices = self.case.problem.hardware.num_chips
        node, options = self.current, self.case.choices
        if node == NO_NODE or self.case.workspace.infeasible is not None:
            return np.zeros(devices, np.bool_)
        allowed = options.allowed[:, node].astype(np.bool_)
        chosen = int(self.device[options.leader[node]])
        if chosen != UNDECIDED:
            allowed &= np.arange(devices) == chosen
        return allowed

    def action_mask(self) -> Mask:
        """[D] 1 where the current node may go, and [`LEVELS`] ones for a priority: a tuple in the
        order of the tasks, or the one array of a single task."""
        parts = [
            with_a_choice(self.possible()) if task == "placement" else np.ones(LEVELS, np.int8)
            for task in self.case.tasks
        ]
        return tuple(parts) if len(parts) > 1 else parts[0]

    def progress(self) -> EpisodeProgress:
        """The part of the observation that changes, but for the priorities."""
        decided = np.zeros(len(self.device), np.bool_)
        whole = self.form == "all" and self.over
        decided[self.case.order[: None if whole else self._turn]] = True
        return EpisodeProgress(self.device.copy(), decided, self.current)

    def observe(self, observer: StepObserver) -> Any:
        """Return what the agent sees now."""
        devices = self.case.problem.hardware.num_chips
        return observer.observe(self.case.features, self.progress(), self.levels, devices)

    def plan(self, result: StepResult) -> dict[str, np.ndarray]:
        """Return devices, priorities and kernels."""
        return {name: getattr(result, name) for name in ("device", "priority", "fusion_group")}

    def act(self, action: Any) -> StepOutcome | None:
        """Take an action; return how the episode ended, or None while it goes on.

        Raises:
            EnvironmentUseError: the action is not of the space.
        """
        checked = self.check(action).reshape(-1, len(self.case.tasks))
        hopeless = self.case.workspace.infeasible
        if hopeless is not None:
            return self._failure(hopeless.status, hopeless.detail)
        if self.form == "all":
            nodes = np.arange(len(self.device))
            self._decide(nodes, checked[: len(nodes)])
            return self._finish()
        node, mask = self.current, self.possible()
        if node != NO_NODE:
            if self.places and not mask[int(checked[0, 0])]:
                return self._failure(Status.ILLEGAL, self._clash(node, int(checked[0, 0]), mask))
            self._decide(np.array([node]), checked)
            self._turn += 1
        return self._finish() if self._turn == len(self.case.order) else None

    def check(self, action: Any) -> np.ndarray:
        """Return the action as an array; an `EnvironmentUseError` says what is wrong with it."""
        array = self.shaped(action)
        if not np.issubdtype(array.dtype, np.integer):
            raise EnvironmentUseError(f"action must be whole numbers, not {array.dtype}")
        for column, task in enumerate(self.case.tasks):
            values = array.reshape(-1, len(self.case.tasks))[:, column]
            count = self.case.problem.hardware.num_chips if task == "placement" else LEVELS
            what = {"placement": "device", "schedule": "priority"}.get(task, "fusion priority")
            if (wrong := values[(values < 0) | (values >= count)]).size:
                raise EnvironmentUseError(
                    f"action names {what} {wrong[0]}; allowed are 0..{count - 1}"
                )
        return array

    def _decide(self, nodes: np.ndarray, chosen: np.ndarray) -> None:
        """Take decisions [nodes, tasks]; a device is that of the whole colocation class."""
        for column, task in enumerate(self.case.tasks):
            if task != "placement":
                self.levels[nodes, PRIORITIES.index(task)] = chosen[:, column]
            elif self.form == "all":
                self.device[nodes] = chosen[:, column]
            else:
                lead = self.case.choices.leader
                self.device[lead == lead[nodes[0]]] = chosen[0, column]

    def _finish(self) -> StepOutcome:
        """Put inputs and constants that nobody decided beside their readers."""
        self.over = True
        workspace, device = self.case.workspace, self.device
        self.device = np.where(
            device == UNDECIDED,
            beside_readers(workspace, device),
            device,
        )
        self.device = np.maximum(self.device, 0).astype(np.int16)
        self.device = workspace.decisions(self.device[None]).device[0]
        return StepOutcome(self.device, np.maximum(self.levels, 0))

    def _failure(self, status: Status, detail: str) -> StepOutcome:
        self.over = True
        self.device = np.full(len(self.device), UNDECIDED, np.int16)
        return StepOutcome(self.device, np.maximum(self.levels, 0), status, detail)

    def _clash(self, node: int, device: int, mask: np.ndarray) -> str:
        name = self.case.problem.graph.names[node]
        allowed = ", ".join(map(str, np.flatnonzero(mask).tolist())) or "none"
        return f"node {name!r} cannot be put on device {device}; allowed: {allowed}"
