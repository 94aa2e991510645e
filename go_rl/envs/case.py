"""`Case`: one problem as an environment needs it, and the evaluation of finished episodes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Bool

from go_rl.core import EnvironmentUseError, Fidelity, Problem, Status
from go_rl.core.decisions import Decisions
from go_rl.core.evaluation import STATUS_CODES
from go_rl.core.layered_drawing import Arrangement, arrange
from go_rl.envs.observation import GraphFeatures, graph_features
from go_rl.envs.rewards import REWARDS, SHAPED
from go_rl.objectives.common.workspace import UNDECIDED
from go_rl.objectives.kits import kit_of

NODE_SIDE = 14.0
"""Side of a node's square in `Case.arrangement`."""


@dataclass(frozen=True, eq=False)
class Outcome:
    """End of an episode, before evaluation."""

    decisions: Decisions | None
    """One legal plan; None: there is none."""
    status: Status = Status.OK
    """Reason why there is no plan."""
    detail: str = ""
    """Failure and its place, in words."""
    fidelity: Fidelity | None = None
    """How the plan follows from the action; None: nothing was repaired."""


@dataclass(frozen=True, eq=False)
class EpisodeResult:
    """End of an episode, evaluated."""

    status: Status
    reward: float
    seconds: float
    """Objective of the plan; inf for a failure."""
    reference_seconds: float
    """Objective of the reference plan, which the reward compares with."""
    detail: str
    plan: dict[str, np.ndarray]
    """[N] arrays of what was decided, by their names in ``info``; `UNDECIDED` without a plan."""
    fidelity: Fidelity | None
    """How the plan follows from the action; None: nothing is repaired in this form."""


class Case:
    """One problem; everything expensive is made when first needed and kept. Not thread-safe."""

    def __init__(self, problem: Problem, reward: str, failure_reward: float | None = None) -> None:
        self.problem = problem
        self.is_shaped = reward in SHAPED
        self._reward, self._failure = REWARDS[SHAPED.get(reward, reward)], failure_reward
        traits = kit_of(problem).environment
        if traits is None:
            raise EnvironmentUseError(f"objective {problem.objective} has no environments")
        self._traits, self.workspace = traits, traits.workspace(problem)

    @property
    def decided(self) -> tuple[str, ...]:
        """Decisions of an episode, in the order of `DECISIONS`."""
        known = self.problem.objective.traits.decides
        return tuple(name for name in known if name in self.problem.decisions)

    @cached_property
    def features(self) -> GraphFeatures:
        """The fixed part of the observations."""
        return graph_features(self.problem, *self._traits.work(self.problem))

    @cached_property
    def decidable(self) -> Bool[np.ndarray, "N"]:
        """[N] nodes that an action for all nodes decides: all, or all but inputs and constants."""
        fed = self.problem.graph.is_fed
        return np.ones_like(fed) if self._traits.decides_fed else ~fed

    @cached_property
    def arrangement(self) -> Arrangement:
        """Places of the nodes in a picture."""
        graph = self.problem.graph
        edges = list(zip(graph.senders.tolist(), graph.receivers.tolist(), strict=True))
        return arrange([(NODE_SIDE, NODE_SIDE)] * graph.num_nodes, edges)

    def potential(self, bound: float) -> float:
        """Return what a plan of these seconds earns: the potential of the rewards of `SHAPED`."""
        return float(self._reward(np.array([bound]), self.workspace.reference_seconds)[0])

    def evaluate(self, outcomes: Sequence[Outcome]) -> list[EpisodeResult]:
        """Evaluate finished episodes of this problem, all plans in one batch."""
        status = [outcome.status for outcome in outcomes]
        seconds = np.full(len(outcomes), np.inf)
        plans = {i: o.decisions for i, o in enumerate(outcomes) if o.decisions is not None}
        if plans:
            scored = self.workspace.evaluate(Decisions.stack(list(plans.values())))
            seconds[list(plans)] = np.where(scored.ok, scored.seconds, np.inf)
            for i, code in zip(plans, scored.status.tolist(), strict=True):
                status[i] = STATUS_CODES[code]
        reference = self.workspace.reference_seconds
        rewards = self._reward(seconds, reference, self._failure)
        return [
            EpisodeResult(
                status=status[i],
                reward=float(rewards[i]),
                seconds=float(seconds[i]),
                reference_seconds=reference,
                detail="" if status[i].ok else outcome.detail or status[i].sentence,
                plan=self._shown(outcome.decisions),
                fidelity=outcome.fidelity,
            )
            for i, outcome in enumerate(outcomes)
        ]

    def _shown(self, plan: Decisions | None) -> dict[str, np.ndarray]:
        own = np.arange(self.problem.graph.num_nodes)
        if plan is None:
            none = np.full(len(own), UNDECIDED, np.int64)
            device, priority, leader = none.astype(np.int16), none, none
        else:
            device = plan.device[0]
            priority = own * 0 if plan.priority is None else plan.priority[0]
            leader = own if plan.kernel_leader is None else plan.kernel_leader[0]
        shown = {"device": device}
        if not self.problem.objective.traits.decides_several:
            return shown
        return shown | {"priority": priority, "fusion_group": leader}
