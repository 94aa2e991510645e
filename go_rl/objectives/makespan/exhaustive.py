"""All placements, orders and fusions of a small makespan problem."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice, permutations, product

import numpy as np
from jaxtyping import Bool, Int64

from go_rl.core import Plan, Problem, Progress
from go_rl.graphs.cutting.fusion import NO_FUSION
from go_rl.objectives.common.all_assignments import MOST_ASSIGNMENTS, assignments, gave_up, proved
from go_rl.objectives.common.incumbent import Incumbent, finish_plan
from go_rl.objectives.makespan.workspace import MakespanWorkspace, makespan_workspace

MOST_PLANS = 400_000
"""Plans priced at most: placements times orders times fusions."""
Nodes = Int64[np.ndarray, "N"]


def is_small_makespan(problem: Problem) -> bool:
    """Whether all placements can be tried."""
    _, allowed = _allowed(makespan_workspace(problem))
    return bool(np.prod(allowed.sum(axis=1, dtype=float)) <= MOST_ASSIGNMENTS)


def exhaust_makespan(problem: Problem, name: str, seed: int, progress: Progress) -> Plan:
    """Try devices, orders and fusions, without fusion all plans there are; see `Exhaustive`."""
    workspace = makespan_workspace(problem)
    incumbent = Incumbent(workspace, progress)
    if incumbent.hopeless:
        return finish_plan(workspace, incumbent, name, seed, progress)
    complete, tried = _first(workspace, incumbent, progress)
    if incumbent.evaluation.status.ok:
        return finish_plan(workspace, incumbent, name, seed, progress)
    if complete and "fusion" not in problem.decisions:
        return finish_plan(workspace, proved(workspace, tried), name, seed, progress)
    plan = finish_plan(workspace, incumbent, name, seed, progress)
    return replace(plan, evaluation=gave_up(workspace, tried))


def _allowed(
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


def _first(
    workspace: MakespanWorkspace, incumbent: Incumbent, progress: Progress
) -> tuple[bool, int]:
    """Price plans until a batch holds one that fits; return whether all were tried, and how many.

    Only plans that fit are counted as samples.
    """
    leaders, allowed = _allowed(workspace)
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
