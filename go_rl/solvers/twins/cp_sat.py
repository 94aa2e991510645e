"""The ring solver's twin in OR-Tools CP-SAT: truth, optimum and proven bound.

Shares with the ring solver only the reduction to blocks; the rules are written down again, none of
its propagators is used.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise

import numpy as np
from jaxtyping import Int, Int16, Int64
from ortools.sat.python import cp_model

from go_rl.core import SolverError, Status
from go_rl.runtime.interruptible_cp_sat import solve_interruptibly
from go_rl.solvers.replication import place_copies
from go_rl.solvers.ring_instance import RingInstance
from go_rl.solvers.stage_costs import (
    FIRST_CHIP,
    StageCosts,
    Tensors,
    holds_with_fewer_copies,
    other_copies,
    stage_costs,
    weights_of_homes,
)

UNITS = 10**8
"""Integer units in the whole work: costs are rounded down to them, so that bounds stay bounds."""
SAFETY = 1e-9
"""Relative slack by which a bound in seconds is lowered against floating-point rounding."""

Log = Callable[[float, float], None]
"""Called with (seconds since the start, best value so far)."""


@dataclass(frozen=True, eq=False)
class CpSatResult:
    """Result of CP-SAT."""

    status: Status
    """``OK``, ``INFEASIBLE`` (proved) or ``GAVE_UP`` (time ended)."""
    device: Int16[np.ndarray, "N"] | None
    """[N] chip of each node (home of a copied one); None without a partition."""
    seconds: float
    """Wall time, model building included."""
    value: float = float("inf")
    """T_max of `device`, computed from the unrounded costs, seconds an iteration."""
    bound: float = 0.0
    """Proven lower bound on T_max, seconds an iteration; inf for an infeasible problem."""
    optimal: bool = False
    """CP-SAT closed its gap: `value` is optimal up to the rounding of costs."""
    curve: tuple[tuple[float, float], ...] = ()
    """Best-so-far: (seconds since the start, value)."""


@dataclass(frozen=True)
class CpSatOptions:
    """Effort and scope of an optimisation."""

    seconds: float = 60.0
    workers: int = 2
    seed: int = 0
    by_clock: bool = True
    """False: ``seconds`` are CP-SAT's own, which count its work; with one worker the result is then
    the same on every machine, however fast."""
    traffic: bool = True
    """False: only compute counts, links are free."""
    copies: bool = True
    """False: work and weights of copied nodes are left out, and so is the traffic of others that a
    plan may copy. The bound then also holds for plans that copy fewer or more nodes; the partition
    may exceed a chip's memory by the weights of its copies."""


def first_partition(instance: RingInstance, seconds: float = 60.0, workers: int = 2) -> CpSatResult:
    """Return CP-SAT's first legal partition, or the proof that there is none."""
    started = time.perf_counter()
    model = _RingModel(instance)
    solver = _solver(seconds - (time.perf_counter() - started), workers, 0)
    status = _STATUS[solve_interruptibly(solver, model.cp)]
    device = model.device(solver) if status.ok else None
    return CpSatResult(status, device, time.perf_counter() - started)


def optimise(
    instance: RingInstance,
    options: CpSatOptions | None = None,
    hint: Int[np.ndarray, "N"] | None = None,
    log: Log | None = None,
) -> CpSatResult:
    """Minimise T_max, the busiest chip or link of the pipeline.

    Args:
        hint: [N] a partition to start from, if one is known.
        log: called at each improvement.

    Raises:
        SolverError: the hint has another length than the graph.
    """
    options = options or CpSatOptions()
    started = time.perf_counter()
    if hint is not None and hint.shape != (instance.problem.graph.num_nodes,):
        nodes = instance.problem.graph.num_nodes
        raise SolverError(f"optimise: hint has shape {hint.shape}; the graph has {nodes} nodes")
    model, costs = _RingModel(instance, options.copies), stage_costs(instance)
    unit = costs.total / UNITS or 1.0
    least = model.minimise_stage(costs, unit, options)
    if hint is not None:
        chosen = hint[instance.leader].astype(np.int64)
        model.hint(chosen, int(np.ceil(costs.value(chosen, options.traffic) / unit)))
    curve = _Curve(model, costs, options.traffic, started, log)
    left = options.seconds - (time.perf_counter() - started)
    solver = _solver(left, options.workers, options.seed)
    if not options.by_clock:
        solver.parameters.max_time_in_seconds = float("inf")
        solver.parameters.max_deterministic_time = options.seconds
    code = solve_interruptibly(solver, model.cp, curve)
    status, wall = _STATUS[code], time.perf_counter() - started
    if status is Status.INFEASIBLE:
        return CpSatResult(status, None, wall, bound=float("inf"))
    proved = options.copies or holds_with_fewer_copies(instance)
    bound = max(least, solver.best_objective_bound if proved else 0) * unit * (1 - SAFETY)
    if not status.ok:
        return CpSatResult(status, None, wall, bound=bound)
    value = costs.value(model.chips(solver.boolean_value), options.traffic)
    return CpSatResult(
        status,
        model.device(solver),
        wall,
        value,
        min(bound, value),
        code == cp_model.OPTIMAL,
        tuple(curve.points),
    )


_STATUS = {
    cp_model.OPTIMAL: Status.OK,
    cp_model.FEASIBLE: Status.OK,
    cp_model.INFEASIBLE: Status.INFEASIBLE,
    cp_model.UNKNOWN: Status.GAVE_UP,
}


def _solver(seconds: float, workers: int, seed: int) -> cp_model.CpSolver:
    solver = cp_model.CpSolver()
    solver.parameters.max_time_in_seconds = max(0.01, seconds)
    solver.parameters.num_workers = workers
    solver.parameters.random_seed = seed
    return solver


class _Curve(cp_model.CpSolverSolutionCallback):
    """Records each improvement."""

    def __init__(
        self, model: _RingModel, costs: StageCosts, traffic: bool, started: float, log: Log | None
    ) -> None:
        super().__init__()
        self.points: list[tuple[float, float]] = []
        self._model, self._costs, self._traffic = model, costs, traffic
        self._started, self._log = started, log

    def on_solution_callback(self) -> None:
        """Called by CP-SAT."""
        value = self._costs.value(self._model.chips(self.boolean_value), self._traffic)
        if not self.points or value < self.points[-1][1]:
            self.points.append((time.perf_counter() - self._started, value))
            if self._log:
                self._log(*self.points[-1])


_Truth = Callable[[Int[np.ndarray, "M"]], bool]
"""Truth of an indicator, computed from [M] chips."""


class _RingModel:
    """The rules of the ring over ``at[v][c]`` (f(v) = c) and ``upto[v][c]`` (f(v) <= c)."""

    def __init__(self, instance: RingInstance, copies: bool = True) -> None:
        self.instance, self.net = instance, instance.net
        self.cp = cp_model.CpModel()
        self._hinted: list[tuple[cp_model.IntVar, _Truth]] = []
        self.stage: cp_model.IntVar | None = None
        self.blocks, self.chips_count = instance.num_blocks, instance.net.chips
        self.upto = [self._steps(v) for v in range(self.blocks)]
        self.at = [self._indicators(v, steps) for v, steps in enumerate(self.upto)]
        self._joined_of = b"", np.zeros((0, 0), np.bool_), np.zeros((0, 0), np.bool_)
        self.edges = [
            (u, int(v))
            for u in range(self.blocks)
            for v in self.net.succ[self.net.succ_ptr[u] : self.net.succ_ptr[u + 1]]
        ]
        self._order()
        self._no_skip()
        self._pins()
        if instance.problem.rules.triangle:
            self._triangle()
        if instance.problem.memory:
            self._memory(instance.net.group_bytes if copies else weights_of_homes(instance))

    def _bool(self, truth: _Truth) -> cp_model.IntVar:
        """A new indicator that hints fill with ``truth``: only a complete hint is of use."""
        variable = self.cp.new_bool_var("")
        self._hinted.append((variable, truth))
        return variable

    def _steps(self, v: int) -> list[cp_model.IntVar]:
        """``upto``: false ... false true ... true; the last chip's is constant."""
        steps = [self._bool(lambda f, c=c: f[v] <= c) for c in range(self.chips_count - 1)]
        for lower, higher in pairwise(steps):
            self.cp.add_implication(lower, higher)
        return steps

    def _indicators(self, v: int, steps: list[cp_model.IntVar]) -> list[cp_model.LiteralT]:
        if not steps:
            return [self.cp.new_constant(1)]
        at: list[cp_model.LiteralT] = [steps[0]]
        for c, (lower, higher) in enumerate(pairwise(steps), start=1):
            here = self._bool(lambda f, c=c: f[v] == c)
            self.cp.add_bool_and([higher, ~lower]).only_enforce_if(here)
            self.cp.add_bool_or([here, ~higher, lower])
            at.append(here)
        at.append(~steps[-1])
        self.cp.add_exactly_one(at)
        return at

    def _order(self) -> None:
        """Order constraints: f(u) <= f(v) for u -> v."""
        for u, v in self.edges:
            for mine, other in zip(self.upto[u], self.upto[v], strict=True):
                self.cp.add_implication(other, mine)

    def _no_skip(self) -> None:
        """The used chips are 0..m; all of them with all_chips."""
        used = [self._bool(lambda f, c=c: (f == c).any()) for c in range(self.chips_count)]
        for c, flag in enumerate(used):
            here = [self.at[v][c] for v in range(self.blocks)]
            self.cp.add_max_equality(flag, here)
        for lower, higher in pairwise(used):
            self.cp.add_implication(higher, lower)
        if self.instance.problem.all_chips:
            self.cp.add_bool_and(used)

    def _pins(self) -> None:
        """Pinned nodes, and kinds that cannot run a node."""
        problem, block_of = self.instance.problem, self.instance.block_of
        for node, chip in problem.fixed.items():
            self.cp.add_bool_and([self.at[block_of[node]][chip]])
        barred = ~np.isfinite(problem.seconds[problem.device_kind])
        for c, node in np.argwhere(barred & (block_of >= 0)).tolist():
            self.cp.add_bool_and([~self.at[block_of[node]][c]])

    def _triangle(self) -> None:
        """No chip edge a -> c beside a longer path of chip edges from a to c."""
        pairs = list(combinations(range(self.chips_count), 2))
        edge = {(a, c): self._bool(lambda f, a=a, c=c: self._joined(f)[0][a, c]) for a, c in pairs}
        path = {(a, c): self._bool(lambda f, a=a, c=c: self._joined(f)[1][a, c]) for a, c in pairs}
        for u, v in self.edges:
            for a, c in pairs:
                self.cp.add_bool_or([~self.at[u][a], ~self.at[v][c], edge[a, c]])
        for a, c in pairs:
            self.cp.add_implication(edge[a, c], path[a, c])
            for b in range(a + 1, c):
                self.cp.add_bool_or([~edge[a, b], ~path[b, c], path[a, c]])
                self.cp.add_bool_or([~edge[a, b], ~path[b, c], ~edge[a, c]])

    def _joined(self, chip: Int[np.ndarray, "M"]) -> tuple[np.ndarray, np.ndarray]:
        """[k, k] chip edges and [k, k] chip paths of [M] chips."""
        key = chip.tobytes()
        if self._joined_of[0] != key:
            edge = np.zeros((self.chips_count, self.chips_count), np.bool_)
            u, v = np.array(self.edges, np.int64).reshape(-1, 2).T
            edge[chip[u], chip[v]] = True
            np.fill_diagonal(edge, False)
            path = edge.copy()
            for b in range(self.chips_count):
                path |= path[:, [b]] & path[[b]]
            self._joined_of = key, edge, path
        return self._joined_of[1:]

    def _memory(self, group_bytes: Int64[np.ndarray, "G"]) -> None:
        """Own weights and, once a chip, weight groups fit the chip."""
        net = self.net
        users: list[list[int]] = [[] for _ in group_bytes]
        for v in range(self.blocks):
            for g in net.group[net.group_ptr[v] : net.group_ptr[v + 1]]:
                users[g].append(v)
        size = net.weight.sum() + group_bytes.sum()
        for c in range(self.chips_count):
            if size <= net.capacity[c]:
                continue
            held = [self._any_on(blocks, c) for blocks in users]
            here = [self.at[v][c] for v in range(self.blocks)]
            self.cp.add(_sum([*here, *held], [*net.weight, *group_bytes]) <= net.capacity[c])

    def minimise_stage(self, costs: StageCosts, unit: float, options: CpSatOptions) -> int:
        """Add the objective: T in units is no less than any chip's and any link's time.

        Returns a bound on T that is plain from the outset.
        """
        work = _floor(np.where(np.isfinite(costs.seconds), costs.seconds, 0.0), unit)
        copied = [_floor(group.seconds, unit) for group in costs.copies] * options.copies
        spared = other_copies(self.instance) & (not options.copies)
        free = set(self.instance.block_of[spared].tolist())
        sizes = [0.0 if t.block in free else t.bytes for t in costs.tensors]
        links = _floor(np.array(sizes) / costs.bandwidth, unit)
        latency = int(_floor(np.array([costs.latency]), unit)[0])
        cheapest = work.min(axis=0)
        least = max(int(cheapest.max()), -(-int(cheapest.sum()) // self.chips_count))
        most = int(work.max(axis=0).sum() + sum(c.max() for c in copied))
        if options.traffic:
            most = max(most, int(links.sum()) + latency)
        stage = self.stage = self.cp.new_int_var(least, most + 1, "stage")
        for c in range(self.chips_count):
            terms = [self.at[v][c] for v in range(self.blocks)]
            sizes = [*work[c], *(seconds[c] for seconds in copied)]
            if options.copies:
                terms += [self._any_on(group.blocks, c) for group in costs.copies]
            self.cp.add(_sum(terms, sizes) <= stage)
        if options.traffic:
            for i in range(self.chips_count - 1):
                self._link(i, costs, links, latency, stage)
        self.cp.minimize(stage)
        return least

    def _any_on(self, blocks: Sequence[int], c: int) -> cp_model.IntVar:
        """An indicator that is true when one of the blocks is on chip ``c``."""
        members = np.array(blocks, np.int64)
        always = c == 0 and FIRST_CHIP in blocks
        present = self._bool(lambda f: always or bool((f[members[members >= 0]] == c).any()))
        for b in members[members >= 0]:
            self.cp.add_implication(self.at[b][c], present)
        if always:
            self.cp.add_bool_and([present])
        return present

    def _link(
        self, i: int, costs: StageCosts, seconds: np.ndarray, latency: int, stage: cp_model.IntVar
    ) -> None:
        """Tensors with sender on chip <= i and a reader beyond cross link i."""
        crossings, busy = [], self._bool(lambda f: any(_crosses(t, i, f) for t in costs.tensors))
        for tensor in costs.tensors:
            crosses = self._bool(lambda f, t=tensor: _crosses(t, i, f))
            for reader in tensor.readers:
                self.cp.add_bool_or([~self.upto[tensor.block][i], self.upto[reader][i], crosses])
            self.cp.add_implication(crosses, busy)
            crossings.append(crosses)
        self.cp.add(_sum([*crossings, busy], [*seconds, latency]) <= stage)

    def hint(self, chip: Int[np.ndarray, "M"], stage: int) -> None:
        """Suggest [M] chips and the time that their slowest stage takes."""
        if self.stage is not None:
            self.cp.add_hint(self.stage, stage)
        for variable, truth in self._hinted:
            self.cp.add_hint(variable, bool(truth(chip)))

    def chips(self, is_true: Callable[[cp_model.LiteralT], bool]) -> Int16[np.ndarray, "M"]:
        """Read [M] chips from a solution."""
        found = [sum(not is_true(step) for step in steps) for steps in self.upto]
        return np.array(found, np.int16)

    def device(self, solver: cp_model.CpSolver) -> Int16[np.ndarray, "N"]:
        """[N] chip of each node, copied ones at home with their lowest consumer."""
        chip, inst = self.chips(solver.boolean_value), self.instance
        device = np.where(inst.block_of >= 0, chip[inst.block_of], 0).astype(np.int16)
        return place_copies(inst.problem, inst.replicated, device)[0]


def _crosses(tensor: Tensors, link: int, chip: Int[np.ndarray, "M"]) -> bool:
    return bool(chip[tensor.block] <= link < max(chip[r] for r in tensor.readers))


def _sum(
    terms: Sequence[cp_model.LiteralT], sizes: Sequence[int | np.integer]
) -> cp_model.LinearExprT:
    return cp_model.LinearExpr.weighted_sum(list(terms), [int(w) for w in sizes])


def _floor(seconds: np.ndarray, unit: float) -> np.ndarray:
    return np.floor(seconds / unit).astype(np.int64)
