"""Every placement, order and fusion of a small makespan problem, the likeliest to fit first."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice, permutations, product

import numpy as np
from jaxtyping import Bool, Int16, Int64

from go_rl.core import Progress
from go_rl.kernels import NO_FUSION
from go_rl.objectives.incumbent import Incumbent
from go_rl.objectives.makespan.workspace import MakespanWorkspace

MOST_PLANS = 400_000
"""Plans priced at most: placements times orders times fusions."""
Nodes = Int64[np.ndarray, "N"]
Batches = Callable[[Bool[np.ndarray, "B D"]], Iterator[Int16[np.ndarray, "C B"]]]
"""Yields all assignments of blocks to allowed devices."""


def makespan_assignments(workspace: MakespanWorkspace) -> float:
    """Return the number of placements; inputs and constants, which are everywhere, count once."""
    return float(np.prod(_allowed(workspace)[1].sum(axis=1, dtype=float)))


def _allowed(
    workspace: MakespanWorkspace,
) -> tuple[Int64[np.ndarray, "B"], Bool[np.ndarray, "B D"]]:
    """The nodes that decide for their colocation class, and the devices each may have."""
    options = workspace.choices
    leaders = np.unique(options.leader)
    allowed = options.allowed[:, leaders].T.copy()
    allowed[options.fed[leaders]] = False
    allowed[~allowed.any(axis=1), 0] = True
    return leaders, allowed


def first_makespan_plan(
    workspace: MakespanWorkspace, incumbent: Incumbent, progress: Progress, batches: Batches
) -> tuple[bool, int]:
    """Price plans until a batch holds one that fits; return whether all were tried, and how many.

    Only plans that fit are counted as samples.
    """
    leaders, allowed = _allowed(workspace)
    slot = np.searchsorted(leaders, workspace.choices.leader)
    tried = 0
    for priority, fusion in _others(workspace):
        for device in batches(allowed):
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


def _others(workspace: MakespanWorkspace) -> Iterator[tuple[Nodes | None, Nodes | None]]:
    """Priorities and fusions, lazily: each order unfused, then each with every fusion."""
    for fusion in _fusions(workspace):
        for priority in _orders(workspace):
            yield priority, fusion


def _fusions(workspace: MakespanWorkspace) -> Iterator[Int64[np.ndarray, "N"] | None]:
    """Nothing fused, everything that may be, then every set of producers that join consumers."""
    yield None
    if "fusion" in workspace.problem.decisions:
        joined = product((NO_FUSION + 1, NO_FUSION), repeat=workspace.num_nodes)
        yield from (np.array(row, np.int64) for row in islice(joined, MOST_PLANS))


def _orders(workspace: MakespanWorkspace) -> Iterator[Int64[np.ndarray, "N"] | None]:
    """Topological order, then every other."""
    yield None
    if "schedule" in workspace.problem.decisions:
        orders = permutations(range(workspace.num_nodes))
        yield from (np.array(row, np.int64) for row in islice(orders, MOST_PLANS))
