"""What every ring optimizer needs of a problem, built once: solver, pricer, units, bound."""

from __future__ import annotations

from functools import cached_property, lru_cache

import numpy as np
from jaxtyping import Float64, Int, Int16, Int32

from go_rl.core import Evaluation, Plan, Problem, Progress, Status, plan_for
from go_rl.core.evaluation import STATUS_CODES, failed
from go_rl.objectives.ring.bounds import ring_bound
from go_rl.objectives.ring.units import DROPPED, RingUnits, bound_units, ring_units, slowest_seconds
from go_rl.simulate import CopyingPricer, RingPricer
from go_rl.solvers import RingSolver

FAITHFUL = 4.0
"""Log-odds that FIX loses for each chip of distance from a proposal that it cannot keep."""


class RingWorkspace:
    """Solver, pricer, units and bound of one ring problem; parts are built when first used.

    A ``pricer`` of one's own replaces the simulator's.
    """

    def __init__(self, problem: Problem, pricer: CopyingPricer | None = None) -> None:
        self.problem = problem
        self.has_own_prices = pricer is not None
        if pricer is not None:
            self.pricer = pricer

    @cached_property
    def solver(self) -> RingSolver:
        """FIX and SAMPLE."""
        return RingSolver(self.problem)

    @cached_property
    def pricer(self) -> CopyingPricer:
        """T_max of plans."""
        return RingPricer(self.problem)

    @cached_property
    def units(self) -> RingUnits:
        """Blocks as units of work, priced on the slowest chip kind."""
        return ring_units(self.solver.instance)

    @cached_property
    def unit_of_node(self) -> Int32[np.ndarray, "N"]:
        """[N] unit of each node, or `DROPPED`."""
        block = self.solver.instance.block_of
        held = np.where(block >= 0, self.units.unit_of[np.maximum(block, 0)], DROPPED)
        return held.astype(np.int32)

    @cached_property
    def relaxed(self) -> RingUnits:
        """Units for proofs: what no legal plan can split or put out of order."""
        return bound_units(self.solver.instance)

    @cached_property
    def bound(self) -> float:
        """A proven lower bound on T_max, quick to compute."""
        return ring_bound(self.solver.instance)

    @property
    def target(self) -> float:
        """The bound that a value must meet to be the optimum: 0, none, where a pricer of one's own
        may undercut the simulator's seconds."""
        return 0.0 if self.has_own_prices else self.bound

    @property
    def chips(self) -> int:
        """k."""
        return self.problem.hardware.num_chips

    @property
    def weight_limit(self) -> float:
        """Bytes of weights that every chip can hold; inf when memory is not checked."""
        return float(self.solver.instance.net.capacity.min()) if self.problem.memory else np.inf

    def nodes_of(self, stage: Int[np.ndarray, "M"]) -> Int16[np.ndarray, "N"]:
        """Spread [M] chips of blocks over [N] nodes; copied nodes get 0."""
        block_of = self.solver.instance.block_of
        if not len(stage):
            return np.zeros(len(block_of), np.int16)
        return np.where(block_of >= 0, stage[np.maximum(block_of, 0)], 0).astype(np.int16)

    def near(self, proposal: Int16[np.ndarray, "*B N"]) -> Float64[np.ndarray, "*B N k"]:
        """Return [..., N, k] log-odds that fall with the distance from a proposal's chips."""
        return -FAITHFUL * np.abs(np.arange(self.chips) - proposal[..., None]).astype(np.float64)

    def legalise(
        self, proposal: Int16[np.ndarray, "N"], seed: int = 0
    ) -> tuple[Int16[np.ndarray, "N"] | None, Evaluation]:
        """FIX a proposal and price it; nodes that must move prefer nearby chips."""
        fixed = self.solver.fix(proposal, self.near(proposal), seed)
        if not fixed.ok[0]:
            status = STATUS_CODES[int(fixed.status[0])]
            return None, failed(status, self.chips, fixed.detail or status.sentence)
        return fixed.device[0], self.pricer.evaluate(fixed.device[0])

    def plan(
        self,
        best: tuple[Int16[np.ndarray, "N"] | None, Evaluation],
        name: str,
        seed: int,
        progress: Progress,
        bound: float = 0.0,
    ) -> Plan:
        """Return the finished plan; ``bound`` may raise the quick bound."""
        device, evaluation = best
        if device is None:
            device = np.zeros(self.problem.graph.num_nodes, np.int16)
            home, replicas = device, {}
        else:
            home, _ = self.pricer.place(device)
            replicas = self.pricer.replicas(device)
        return plan_for(
            self.problem,
            device=home,
            replicas=replicas,
            evaluation=evaluation,
            bound=min(max(bound, self.target), evaluation.seconds_per_step),
            optimizer=name,
            seed=seed,
            samples=progress.samples,
            wall_seconds=progress.wall_seconds,
            curve=tuple(progress.curve),
        )


@lru_cache(maxsize=4)
def ring_workspace(problem: Problem) -> RingWorkspace:
    """Return the workspace of a problem, shared by all optimizers that work on it."""
    return RingWorkspace(problem)


class Incumbent:
    """The best legal plan so far, and the best failure while there is none."""

    def __init__(self, workspace: RingWorkspace, progress: Progress) -> None:
        self._workspace, self._progress = workspace, progress
        progress.raise_bound(workspace.target)
        self.device: Int16[np.ndarray, "N"] | None = None
        self.evaluation = failed(Status.GAVE_UP, workspace.chips, Status.GAVE_UP.sentence)

    @property
    def best(self) -> tuple[Int16[np.ndarray, "N"] | None, Evaluation]:
        """Device and evaluation, as `RingWorkspace.plan` takes them."""
        return self.device, self.evaluation

    def offer(
        self, device: Int16[np.ndarray, "N"] | None, evaluation: Evaluation, samples: int = 1
    ) -> bool:
        """Count a priced plan; True when it is the best so far."""
        improved = self._progress.record(evaluation.seconds_per_step, samples)
        first = self.device is None and not self.evaluation.status.ok
        if improved or (first and not evaluation.status.ok):
            self.device, self.evaluation = device, evaluation
        return improved

    def offer_all(
        self, device: Int16[np.ndarray, "B N"], seconds: Float64[np.ndarray, "B"]
    ) -> None:
        """Count [B] priced plans one by one, so that the curve is exact; inf: not usable."""
        for chips, value in zip(device, seconds.tolist(), strict=True):
            if value < self._progress.best:
                self.offer(chips, self._workspace.pricer.evaluate(chips))
            else:
                self._progress.record(float("inf"))


def work_share(workspace: RingWorkspace) -> Float64[np.ndarray, "N"]:
    """Return [N] each node's share of the work; copied nodes none."""
    work = np.where(workspace.pricer.replicated, 0.0, slowest_seconds(workspace.problem))
    total = work.sum()
    return work / total if total > 0 else np.full(len(work), 1.0 / len(work))
