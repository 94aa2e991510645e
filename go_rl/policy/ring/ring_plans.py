"""`RingPlans`: chips that a ring policy draws, solved and priced.

Every proposal goes through the solver, SAMPLE or FIX, and a batch is priced at once. Decisions are
per unit (block of the solver), ``U`` of them.
"""

from __future__ import annotations

from functools import cached_property

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Float32, Int, Int32

from go_rl.core import EnvironmentUseError, Fidelity, Problem, Status
from go_rl.core.bitset import membership
from go_rl.core.decisions import Decisions, Scored
from go_rl.core.evaluation import STATUS_CODES
from go_rl.envs.rewards import LOG_SPEED_UP
from go_rl.objectives.common.incumbent import Incumbent
from go_rl.objectives.ring.methods.stage_prices import price_samples
from go_rl.objectives.ring.workspace import RingWorkspace, ring_workspace
from go_rl.policy.agent import Actions
from go_rl.policy.config import MAX_CHIPS
from go_rl.policy.observations.policy_graph import PolicyGraph
from go_rl.policy.plan_decoder import PlanDecoder, ProposalArrays, Rollouts
from go_rl.policy.ring.cut_log_probs import CutWindows, blank_windows
from go_rl.policy.ring.observation import observe_ring
from go_rl.policy.ring.placement_decoder import DrawnPlacements, PlacementActions
from go_rl.policy.ring.ring_policy import PLACEMENT
from go_rl.solvers import Means, Samples

LIKELIEST = 20.0
"""Inverse temperature of SAMPLE where the likeliest decision is asked for."""


class RingPlans(PlanDecoder):
    """A ring problem as a policy sees it."""

    kind = "ring"
    reward = LOG_SPEED_UP
    groups = (PLACEMENT,)
    workspace: RingWorkspace

    def __init__(
        self, problem: Problem, workspace: RingWorkspace | None = None, solver: str = "sample"
    ) -> None:
        self.problem = problem
        self.workspace = workspace or ring_workspace(problem)
        self.solver = solver

    @cached_property
    def observed(self) -> PolicyGraph:
        return observe_ring(self.workspace)

    @property
    def decides(self) -> bool:
        """True when there is a unit to place and the solver has not refuted all plans."""
        workspace = self.workspace
        return workspace.solver.feasible_so_far and workspace.units.num_units > 0

    def start(self, incumbent: Incumbent, seed: int) -> bool:
        """Offer the compiler heuristic's plan; see `PlanDecoder`."""
        incumbent.offer(*self.workspace.repair(self.workspace.reference.device[0], seed))
        return self.decides

    def decisions_of(self, group: str) -> tuple[str, ...]:
        """The group is one."""
        return (group,)

    def proposals(self, actions: Actions, noise: Float32[np.ndarray, "B"]) -> ProposalArrays:
        """Return [B, U] chips with [B, U, k] log-probabilities."""
        units, chips = self.padded.num_units, self.padded.num_devices
        drawn: DrawnPlacements = actions[PLACEMENT]
        log_probs = np.array(drawn.log_probs[:, :units, :chips], np.float64)
        log_probs[noise == 0] *= LIKELIEST
        return {"chip": np.asarray(drawn.chosen[:, -1, :units]), "log_probs": log_probs}

    def price(self, proposals: ProposalArrays, seed: int) -> Rollouts:
        """Solve and price; see `sample_chips`, `fix` and `unsolved`."""
        mode, _, nodes = self.solver.partition("-")
        if mode == "sample":
            return self.sample_chips(proposals["log_probs"], seed, bool(nodes))
        if mode == "fix":
            return self.fix(proposals["chip"], proposals["log_probs"], seed, bool(nodes))
        return self.unsolved(proposals["chip"])

    def credit(self, actions: Actions, rollouts: Rollouts) -> Actions:
        """Return the decisions that earned the rewards: chips that SAMPLE drew, within the choices
        it drew from; otherwise the proposal."""
        proposed: DrawnPlacements = actions[PLACEMENT]
        padded, count, chosen = self.padded, len(rollouts.reward), proposed.chosen
        rows, units, chips = len(padded.real), padded.num_units, padded.num_devices
        drawn_as_cuts = not self.solver.endswith("-nodes")
        windows = blank_windows(count, rows, chips if drawn_as_cuts else 0)
        cuts = np.zeros((count, windows.final.shape[1] + 1), np.int32)
        by_cuts = np.zeros(count, np.bool_)
        possible = np.zeros((count, rows, MAX_CHIPS), np.bool_)
        possible[..., :chips] = True
        if (drawn := rollouts.drawn) is not None and rollouts.chip is not None:
            last = np.zeros((count, rows), np.int32)
            last[:, :units] = rollouts.chip
            chosen = chosen.at[:, -1].set(last)
            possible[:, units:] = False
            possible[:, :units, :chips] = membership(drawn.mask[:, self._leader], chips)
            by_cuts = drawn.means == Means.CUTS
            for row in np.flatnonzero(by_cuts).tolist():
                self._write_windows(windows, cuts, row, drawn.order[row], last[row, :units])
        windows = jax.tree.map(jnp.asarray, windows)
        return {
            PLACEMENT: PlacementActions(
                chosen, jnp.asarray(possible), jnp.asarray(by_cuts), windows, jnp.asarray(cuts)
            )
        }

    def _write_windows(
        self,
        windows: CutWindows,
        cuts: Int32[np.ndarray, "B K1"],
        row: int,
        order: Int32[np.ndarray, "U"],
        chip: Int32[np.ndarray, "U"],
    ) -> None:
        """Write what the cuts of a sample's order may be, and what they are."""
        solver, units, chips = self.workspace.solver, self.padded.num_units, self.padded.num_devices
        first, last = solver.windows(order.astype(np.int64))
        windows.order[row, :units], windows.first[row, :units] = order, first
        windows.last[row, :chips, :units] = last
        windows.units[row] = units
        windows.final[row, :chips] = not self.problem.all_chips
        windows.final[row, chips - 1] = True
        cuts[row] = np.searchsorted(chip[order], np.arange(cuts.shape[1]))

    @cached_property
    def _leader(self) -> np.ndarray:
        """[U] the node whose chip is the unit's."""
        unit_of, leader = self.workspace.units.unit_of, self.workspace.solver.instance.leader
        return leader[unit_of >= 0]

    def sample_chips(
        self, log_probs: Float[np.ndarray, "B U k"], seed: int, nodewise: bool = False
    ) -> Rollouts:
        """Draw each of ``B`` partitions with SAMPLE from its own log-probabilities; ``nodewise``:
        one node after the other."""
        self._check_chips(log_probs)
        solver = self.workspace.solver
        drawn = solver.sample(self._nodes(log_probs), seed=seed, nodewise=nodewise)
        return self._rollouts(price_samples(self.workspace, drawn), drawn)

    def fix(
        self,
        chip: Int[np.ndarray, "B U"],
        log_probs: Float[np.ndarray, "B U k"],
        seed: int,
        nodewise: bool = False,
    ) -> Rollouts:
        """Keep [B, U] proposed chips where legal; draw the others from the log-probabilities;
        ``nodewise``: one node after the other."""
        self._check_chips(log_probs)
        self._check_units(chip, "chips")
        wrong = chip[(chip < 0) | (chip >= self.workspace.chips)]
        if wrong.size:
            raise EnvironmentUseError(
                f"graph {self.problem.graph.name!r}: chip {wrong[0]} is not one of "
                f"0..{self.workspace.chips - 1}"
            )
        proposal = self._nodes(chip.astype(np.int16))
        fixed = self.workspace.solver.fix(proposal, self._nodes(log_probs), seed, nodewise)
        return self._rollouts(price_samples(self.workspace, fixed, proposal))

    def fidelity(self, proposals: ProposalArrays, rollouts: Rollouts, row: int) -> Fidelity | None:
        """Return how one plan follows from its proposal; for SAMPLE, with the gap to the likeliest
        plan known."""
        if rollouts.drawn is None:
            return super().fidelity(proposals, rollouts, row)
        log_probs = self._nodes(proposals["log_probs"][row : row + 1])[0]
        return self.workspace.solver.fidelity(rollouts.drawn, row, log_probs=log_probs)

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

    def unit_chips(self, device: Int[np.ndarray, "*B N"]) -> Int[np.ndarray, "*B U"]:
        """Return the chip of each unit of plans."""
        return device[..., self._leader]

    def _nodes(self, rows: np.ndarray) -> np.ndarray:
        """Spread [B, U, ...] rows over nodes; nodes that no unit holds get zeros."""
        unit = self.workspace.unit_of_node
        spread = np.zeros((rows.shape[0], len(unit), *rows.shape[2:]), rows.dtype)
        spread[:, unit >= 0] = rows[:, unit[unit >= 0]]
        return spread

    def _rollouts(self, priced: Scored, drawn: Samples | None = None) -> Rollouts:
        chip = self.unit_chips(priced.decisions.device)
        return Rollouts(priced, self.rewards(priced), chip, drawn)

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
