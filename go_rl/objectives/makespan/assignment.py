"""`MakespanAssignment`: a placement decided node by node, one colocation class at a time."""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Int16, Int64

from go_rl.core import Evaluation
from go_rl.core.decisions import Decisions, Proposals
from go_rl.objectives.common.workspace import UNDECIDED, PlanningWorkspace
from go_rl.objectives.makespan.choices import Choices
from go_rl.objectives.makespan.infer_devices import beside_readers


class MakespanAssignment:
    """`Assignment` of a makespan problem; the reference plan's where placement is not decided."""

    def __init__(self, workspace: PlanningWorkspace, choices: Choices) -> None:
        self._workspace, self._choices = workspace, choices
        self.nodes: Int64[np.ndarray, "M"] = np.flatnonzero(~choices.fed)
        self.device: Int16[np.ndarray, "N"]
        self.reset()

    @property
    def infeasible(self) -> Evaluation | None:
        return self._workspace.infeasible

    def reset(self) -> None:
        if "placement" in self._workspace.problem.decisions:
            self.device = np.full(len(self._choices.fed), UNDECIDED, np.int16)
        else:
            self.device = self._workspace.reference.device[0].copy()

    def possible(self, node: int) -> Bool[np.ndarray, "D"]:
        """Return [D] the devices that can run a node's class: where it is, once it is placed."""
        allowed = self._choices.allowed[:, node].copy()
        chosen = int(self.device[self._choices.leader[node]])
        if chosen != UNDECIDED:
            allowed &= np.arange(len(allowed)) == chosen
        return allowed

    def assign(self, node: int, device: int) -> str:
        """Put a node's class on a device; return why it cannot go there, or nothing."""
        if not (possible := self.possible(node))[device]:
            name = self._workspace.problem.graph.names[node]
            allowed = ", ".join(map(str, np.flatnonzero(possible).tolist())) or "none"
            return f"node {name!r} cannot be put on device {device}; allowed: {allowed}"
        leader = self._choices.leader
        self.device[leader == leader[node]] = device
        return ""

    def decisions(
        self, priority: Int64[np.ndarray, "N"], fusion: Int64[np.ndarray, "N"]
    ) -> Decisions:
        """Return the plan; inputs and constants that nobody placed sit beside their readers."""
        beside = beside_readers(self._workspace.problem.graph, self.device)
        device = np.maximum(np.where(self.device == UNDECIDED, beside, self.device), 0)
        proposals = Proposals(device[None], priority=priority[None], fusion=fusion[None])
        return self._workspace.legalize(proposals).decisions
