"""`PartitionRollouts`: batches of a policy's decisions on one problem, solved, priced, rewarded.

The form of `go_rl/Partition-v1` for learners: one call takes ``B`` whole proposals, every proposal
goes through the solver, and all are priced at once. Decisions are per unit (block of the solver),
``U`` of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Float, Float64, Int, Int16

from go_rl.core import EnvironmentUseError, Problem, Status
from go_rl.core.decisions import Decisions, Scored
from go_rl.core.evaluation import STATUS_CODES
from go_rl.envs.rewards import LOG_SPEED_UP
from go_rl.objectives.ring.workspace import RingWorkspace, ring_workspace
from go_rl.search.ring.cut_scores import price_samples, price_scores
from go_rl.search.ring.linear_dp import SQUEEZE
from go_rl.simulate.bitset import membership


@dataclass(frozen=True, eq=False)
class Rollouts:
    """``B`` proposals on one problem."""

    priced: Scored
    reward: Float64[np.ndarray, "B"]
    """[B] `LOG_SPEED_UP`: log of the throughput relative to the compiler heuristic."""
    chip: Int16[np.ndarray, "B U"]
    """[B, U] chip of each unit in the plan."""
    possible: Bool[np.ndarray, "B U k"] | None = None
    """[B, U, k] chips that were possible when a unit was drawn; SAMPLE only."""


class PartitionRollouts:
    """Rewards of proposals for one ring problem. Not thread-safe."""

    def __init__(
        self,
        problem: Problem,
        failure_reward: float | None = None,
        workspace: RingWorkspace | None = None,
    ) -> None:
        self.problem = problem
        self.failure_reward = failure_reward
        self.workspace = workspace or ring_workspace(problem)
        self._squeeze = 1.0

    @property
    def heuristic(self) -> Int16[np.ndarray, "N"]:
        """[N] the compiler heuristic's chips; zeros where it fails."""
        return self.workspace.reference.device[0]

    @cached_property
    def baseline_seconds(self) -> float:
        """T_max of the compiler heuristic; where it fails, of everything on one chip."""
        return self.workspace.reference_seconds

    @cached_property
    def _leader(self) -> np.ndarray:
        """[U] the node whose chip is the unit's."""
        unit_of, leader = self.workspace.units.unit_of, self.workspace.solver.instance.leader
        return leader[unit_of >= 0]

    def orders(self, scores: Float[np.ndarray, "B U"], seed: int) -> Rollouts:
        """Cut the list schedule of [B, U] scores by dynamic programming.

        Once all plans of a batch have run out of memory, later ones keep more room beside weights.
        """
        self._check_units(scores, "scores")
        values = scores.astype(np.float64)
        priced = price_scores(self.workspace, values, seed, squeeze=self._squeeze)
        overfull = priced.status == STATUS_CODES.index(Status.OUT_OF_MEMORY)
        if overfull.any() and not priced.ok.any():
            self._squeeze *= SQUEEZE
        return self._rollouts(priced)

    def sample(self, log_probs: Float[np.ndarray, "B U k"], seed: int) -> Rollouts:
        """Draw each of ``B`` partitions with SAMPLE from its own log-probabilities."""
        self._check_chips(log_probs)
        drawn = self.workspace.solver.sample(self._nodes(log_probs), seed=seed)
        possible = membership(drawn.mask[:, self._leader], self.workspace.chips)
        return self._rollouts(price_samples(self.workspace, drawn), possible)

    def fix(
        self,
        chip: Int[np.ndarray, "B U"],
        log_probs: Float[np.ndarray, "B U k"],
        seed: int,
    ) -> Rollouts:
        """Keep [B, U] proposed chips where legal; draw the others from the log-probabilities."""
        self._check_chips(log_probs)
        self._check_units(chip, "chips")
        wrong = chip[(chip < 0) | (chip >= self.workspace.chips)]
        if wrong.size:
            raise EnvironmentUseError(
                f"graph {self.problem.graph.name!r}: chip {wrong[0]} is not one of "
                f"0..{self.workspace.chips - 1}"
            )
        proposal = self._nodes(chip.astype(np.int16))
        fixed = self.workspace.solver.fix(proposal, self._nodes(log_probs), seed)
        return self._rollouts(price_samples(self.workspace, fixed))

    def unsolved(self, chip: Int[np.ndarray, "B U"]) -> Rollouts:
        """Price [B, U] chips as they are; what breaks a rule fails. What the solver is worth."""
        self._check_units(chip, "chips")
        device = self._nodes(chip.astype(np.int16))
        seconds, codes = self.workspace.pricer.price(device)
        solver = self.workspace.solver
        kept = solver.fix(device, np.zeros((*device.shape, self.workspace.chips)), 0)
        held = solver.instance.block_of >= 0
        broken = ~kept.ok | (kept.device != device)[:, held].any(axis=1)
        failed = broken | ~np.array([STATUS_CODES[int(code)].ok for code in codes])
        status = np.where(broken, STATUS_CODES.index(Status.GAVE_UP), codes).astype(np.int8)
        return self._rollouts(Scored(Decisions(device), np.where(failed, np.inf, seconds), status))

    def _nodes(self, rows: np.ndarray) -> np.ndarray:
        """Spread [B, U, ...] rows over nodes; nodes that no unit holds get zeros."""
        unit = self.workspace.unit_of_node
        spread = np.zeros((rows.shape[0], len(unit), *rows.shape[2:]), rows.dtype)
        spread[:, unit >= 0] = rows[:, unit[unit >= 0]]
        return spread

    def _rollouts(self, priced: Scored, possible: np.ndarray | None = None) -> Rollouts:
        reward = LOG_SPEED_UP(priced.seconds, self.baseline_seconds, self.failure_reward)
        return Rollouts(priced, reward, priced.decisions.device[:, self._leader], possible)

    def _check_chips(self, log_probs: np.ndarray) -> None:
        self._check_units(log_probs, "log_probs")
        if log_probs.shape[2] != self.workspace.chips:
            raise EnvironmentUseError(
                f"graph {self.problem.graph.name!r}: log_probs are for {log_probs.shape[2]} chips, "
                f"the hardware has {self.workspace.chips}"
            )

    def _check_units(self, values: np.ndarray, what: str) -> None:
        name, expected = self.problem.graph.name, self.workspace.units.num_units
        if values.shape[1] != expected:
            raise EnvironmentUseError(
                f"graph {name!r}: {what} are for {values.shape[1]} units, "
                f"the problem has {expected}"
            )
        if np.isnan(values).any():
            raise EnvironmentUseError(f"graph {name!r}: {what} contain NaN")
