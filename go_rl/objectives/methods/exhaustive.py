"""Exhaustive search: every assignment of a small problem, for a plan or the proof that none exists.

What `auto` falls back on where no method found a plan. Illegal assignments are not counted as
samples; the search ends with the first batch that holds a legal plan, or when all were tried.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice, permutations, product

import numpy as np
from jaxtyping import Bool, Float64, Int16, Int64

from go_rl.core import (
    Budget,
    Evaluation,
    Objective,
    Plan,
    Problem,
    Progress,
    Status,
    with_bound,
)
from go_rl.core.decisions import Decisions
from go_rl.graphs.cutting import NO_FUSION
from go_rl.objectives.common.incumbent import Incumbent, finish_plan
from go_rl.objectives.common.workspace import Workspace
from go_rl.objectives.host.hypergraph import contract_problem
from go_rl.objectives.host.workspace import host_workspace
from go_rl.objectives.makespan.workspace import MakespanWorkspace, makespan_workspace
from go_rl.objectives.ring.simulate.memory import confirm_memory
from go_rl.objectives.ring.workspace import RingWorkspace, ring_workspace
from go_rl.solvers.stage_costs import other_copies

MOST_ASSIGNMENTS = 250_000
"""Assignments of devices beyond which a problem is not small."""
MOST_PLANS = 400_000
"""Plans of a makespan problem priced at most: placements times orders times fusions."""
BATCH = 2048
"""Assignments priced at a time."""
Nodes = Int64[np.ndarray, "N"]


@dataclass(frozen=True)
class Exhaustive:
    """`Optimizer`: tries every assignment; the best of the first batch that holds a legal plan."""

    name: str = "exhaustive"

    def optimize(self, problem: Problem, budget: Budget, seed: int) -> Plan:
        """Return that plan, else a failure that says whether it is proved; a sample is one legal
        plan, of which at least one is always taken. See `go_rl.core.Optimizer`."""
        progress = Progress(budget)
        if problem.objective is Objective.RING:
            return _ring(problem, self.name, seed, progress)
        if problem.objective is Objective.MAKESPAN:
            return _makespan(problem, self.name, seed, progress)
        return _boxed(problem, self.name, seed, progress)


def is_small(problem: Problem) -> bool:
    """Whether all assignments of devices can be tried."""
    if problem.objective is Objective.RING:
        instance = ring_workspace(problem).solver.instance
        most = np.log(MOST_ASSIGNMENTS) + 1e-9
        return bool(instance.num_blocks * np.log(problem.hardware.num_devices) <= most)
    if problem.objective is Objective.MAKESPAN:
        _, allowed = _allowed_makespan(makespan_workspace(problem))
        count = np.prod(allowed.sum(axis=1, dtype=float))
    else:
        count = np.prod(contract_problem(problem).hypergraph.allowed.sum(axis=1, dtype=float))
    return bool(count <= MOST_ASSIGNMENTS)


def assignments(allowed: Bool[np.ndarray, "B D"]) -> Iterator[Int16[np.ndarray, "C B"]]:
    """Yield all assignments of ``B`` blocks to allowed devices, in batches."""
    options = [np.flatnonzero(row) for row in allowed]
    shape = tuple(len(row) for row in options)
    count = int(np.prod(shape))
    for first in range(0, count, BATCH):
        picks = np.unravel_index(np.arange(first, min(first + BATCH, count)), shape)
        chosen = [row[pick] for row, pick in zip(options, picks, strict=True)]
        yield np.stack(chosen, axis=1).astype(np.int16)


def _counted(progress: Progress, seconds: Float64[np.ndarray, "C"]) -> int | None:
    """Count the legal plans of a batch; return the row of the best, None where none is legal."""
    rows = np.flatnonzero(np.isfinite(seconds))
    rows = rows[: int(max(1, min(len(rows), progress.remaining_samples)))]
    if not rows.size:
        return None
    best = int(rows[np.argmin(seconds[rows])])
    progress.record(float(seconds[best]), len(rows))
    return best


def _boxed(problem: Problem, name: str, seed: int, progress: Progress) -> Plan:
    """Max-load and latency: blocks of nodes that share a device."""
    workspace = host_workspace(problem)
    if workspace.infeasible is not None:
        return finish_plan(workspace, workspace.infeasible, name, seed, progress)
    contraction = contract_problem(problem)
    allowed = contraction.hypergraph.allowed
    tried, count = 0, np.prod(allowed.sum(axis=1))
    for device in assignments(allowed):
        seconds = workspace.evaluate(Decisions(device[:, contraction.block])).seconds
        tried, room = tried + len(device), progress.remaining_samples
        if (row := _counted(progress, seconds)) is not None:
            all_priced = len(device) == count and np.isfinite(seconds).sum() <= room
            bound = progress.best if all_priced else 0.0
            found = Decisions(device[row][contraction.block][None])
            return finish_plan(workspace, found, name, seed, progress, bound)
        if progress.remaining_seconds <= 0:
            return finish_plan(workspace, workspace.gave_up, name, seed, progress)
    return finish_plan(workspace, _proved(workspace, tried), name, seed, progress)


def _ring(problem: Problem, name: str, seed: int, progress: Progress) -> Plan:
    """Blocks on chips with the copies that the pricer makes, then without any."""
    workspace = ring_workspace(problem)
    instance = workspace.solver.instance
    copyable = instance.replicated | other_copies(instance)
    variants, tried = [workspace], 0
    if instance.replicated.any():
        single = replace(problem, rules=replace(problem.rules, replicate=False))
        variants.append(ring_workspace(single))
    for variant in variants:
        if not variant.solver.feasible_so_far:
            continue
        shape = (variant.solver.instance.num_blocks, variant.chips)
        for stage in assignments(np.ones(shape, np.bool_)):
            tried += len(stage)
            if (best := _first_ring(variant, stage, progress)) is not None:
                plan = finish_plan(variant, best, name, seed, progress)
                plan = replace(plan, rules=problem.rules.name)
                return with_bound(plan, workspace.bound)
            if progress.remaining_seconds <= 0:
                return finish_plan(workspace, _gave_up(workspace, tried), name, seed, progress)
    runs = np.isfinite(problem.seconds).any(axis=0).all()
    if copyable.any() and runs:
        return finish_plan(workspace, _gave_up(workspace, tried), name, seed, progress)
    return finish_plan(workspace, _proved(workspace, tried), name, seed, progress)


def _first_ring(
    workspace: RingWorkspace, stage: Int16[np.ndarray, "C M"], progress: Progress
) -> Decisions | None:
    """The best legal plan of a batch whose tensors find real memory offsets; None without one."""
    instance = workspace.solver.instance
    fixed = workspace.solver.fix(workspace.nodes_of(stage))
    kept = fixed.ok & (fixed.device[:, instance.leader] == stage).all(axis=1)
    seconds, _ = workspace.pricer.price(fixed.device)
    seconds = np.where(kept, seconds, np.inf)
    if _counted(progress, seconds) is None:
        return None
    for row in np.argsort(seconds, kind="stable"):
        if not np.isfinite(seconds[row]):
            return None
        device = fixed.device[row]
        if workspace.problem.memory:
            status, _ = confirm_memory(workspace.problem, *workspace.pricer.place(device))
            if status is Status.OUT_OF_MEMORY:
                continue
        return Decisions(device[None])
    return None


def _makespan(problem: Problem, name: str, seed: int, progress: Progress) -> Plan:
    """Devices, orders and fusions; without fusion these are all plans there are."""
    workspace = makespan_workspace(problem)
    incumbent = Incumbent(workspace, progress)
    if incumbent.hopeless:
        return finish_plan(workspace, incumbent, name, seed, progress)
    complete, tried = _first_makespan(workspace, incumbent, progress)
    if incumbent.evaluation.status.ok:
        return finish_plan(workspace, incumbent, name, seed, progress)
    if complete and "fusion" not in problem.decisions:
        return finish_plan(workspace, _proved(workspace, tried), name, seed, progress)
    plan = finish_plan(workspace, incumbent, name, seed, progress)
    return replace(plan, evaluation=_gave_up(workspace, tried))


def _allowed_makespan(
    workspace: MakespanWorkspace,
) -> tuple[Int64[np.ndarray, "B"], Bool[np.ndarray, "B D"]]:
    """The nodes that decide for their colocation class, and the devices each may have; inputs and
    constants, which are everywhere, have one."""
    options = workspace.choices
    leaders = np.unique(options.leader)
    allowed = options.allowed[:, leaders].T.copy()
    allowed[options.fed[leaders]] = False
    allowed[~allowed.any(axis=1), 0] = True
    return leaders, allowed


def _first_makespan(
    workspace: MakespanWorkspace, incumbent: Incumbent, progress: Progress
) -> tuple[bool, int]:
    """Price plans until a batch holds one that fits; return whether all were tried, and how many.

    Only plans that fit are counted as samples.
    """
    leaders, allowed = _allowed_makespan(workspace)
    slot = np.searchsorted(leaders, workspace.choices.leader)
    tried = 0
    others = ((f, p) for f in _fusions(workspace) for p in _orders(workspace))
    for fusion, priority in others:
        for device in assignments(allowed):
            if tried >= MOST_PLANS or progress.remaining_seconds <= 0:
                return False, tried
            shape = (len(device), workspace.num_nodes)
            rows = [None if x is None else np.broadcast_to(x, shape) for x in (priority, fusion)]
            priced = workspace.evaluate(workspace.decisions(device[:, slot], *rows))
            tried += len(device)
            fits = np.flatnonzero(np.isfinite(priced.seconds))
            if fits.size:
                fits = fits[: int(max(1, min(len(fits), progress.remaining_samples)))]
                incumbent.offer_scored(priced, fits.tolist())
                return False, tried
    return True, tried


def _fusions(workspace: MakespanWorkspace) -> Iterator[Nodes | None]:
    """Fusions to try: none, everything that may be, then every set of producers that join
    consumers."""
    yield None
    if "fusion" in workspace.problem.decisions:
        joined = product((NO_FUSION + 1, NO_FUSION), repeat=workspace.num_nodes)
        yield from (np.array(row, np.int64) for row in islice(joined, MOST_PLANS))


def _orders(workspace: MakespanWorkspace) -> Iterator[Nodes | None]:
    """Topological order, then every other."""
    yield None
    if "schedule" in workspace.problem.decisions:
        orders = permutations(range(workspace.num_nodes))
        yield from (np.array(row, np.int64) for row in islice(orders, MOST_PLANS))


def _gave_up(workspace: Workspace, tried: int) -> Evaluation:
    detail = f"none of the {tried} assignments tried keeps the rules and fits the memory"
    return workspace.failed(Status.GAVE_UP, detail)


def _proved(workspace: Workspace, tried: int) -> Evaluation:
    detail = f"none of all {tried} assignments keeps the rules and fits the memory"
    return workspace.failed(Status.INFEASIBLE, detail)
