"""Proven lower bounds on T_max of a ring problem.

Every bound holds for all legal plans of the given problem:
- on the fastest kind of chip, work over chips, and the largest indivisible unit;
- station bounds of assembly-line balancing for a trial T: pairs and triples of large units, and
  tails along precedence (Scholl and Becker, "State-of-the-art exact and heuristic solution
  procedures for simple assembly line balancing", EJOR 2006); a T that needs more than k chips is
  impossible (destructive improvement, Klein and Scholl 1999);
- before testing a T, units joined by a tensor that would keep a link busy for longer than T are
  merged: no plan within T can cut it;
- under the triangle rule, half the work between the ends of any edge, or what must cross a link
  between them (`triangle_bound`), or what several such edges hold on few chips (`chained_edges`);
- nodes that a plan may copy count as work only: they impose no order and force no traffic.
"""

from __future__ import annotations

from typing import no_type_check

import numpy as np

from go_rl.core.compiled_struct import compiled
from go_rl.core.graph.heads_tails import sums_after
from go_rl.objectives.common.units import RingUnits, bound_units, contracted
from go_rl.objectives.ring.chained_edges import chained_between
from go_rl.objectives.ring.triangle_bound import half_between, parts_too_little
from go_rl.solvers import RingInstance

STEPS = 40
"""Halvings of the interval in which the bound lies."""


def ring_bound(instance: RingInstance) -> float:
    """Return a lower bound on T_max in seconds; a fraction of a second for thousands of nodes."""
    units, chips = bound_units(instance), instance.net.chips
    total = float(instance.problem.seconds.min(axis=0).sum())
    low = max(total / chips, float(units.work.max(initial=0.0)))
    if units.num_units == 0 or not np.isfinite(low):
        return low
    triangle = instance.problem.rules.triangle
    if triangle:
        low = max(low, half_between(units), chained_between(units, chips))
    longest = float(units.tensor_seconds.max(initial=0.0)) + units.latency
    high = max(low, float(units.work.sum()), longest)
    if not _impossible(units, low, chips, triangle):
        return low
    for _ in range(STEPS):
        middle = 0.5 * (low + high)
        if _impossible(units, middle, chips, triangle):
            low = middle
        else:
            high = middle
        if high - low <= 1e-6 * high:
            break
    return low


def _impossible(units: RingUnits, seconds: float, chips: int, triangle: bool) -> bool:
    tight = contracted(units, seconds)
    if _stations(tight, seconds) > chips:
        return True
    return triangle and parts_too_little(tight, seconds)


def _stations(units: RingUnits, seconds: float) -> float:
    """Return a lower bound on the chips that a largest load of ``seconds`` needs."""
    if units.num_units == 0 or not units.work.any():
        return 0.0
    if seconds <= 0:
        return np.inf
    share = units.work / (seconds * (1 + 1e-12))
    if share.max() > 1:
        return np.inf
    large = np.count_nonzero(share > 0.5) + 0.5 * np.count_nonzero(share == 0.5)
    thirds = (
        np.count_nonzero(share > 2 / 3)
        + 0.5 * np.count_nonzero((share > 1 / 3) & (share <= 2 / 3))
    )  # fmt: skip
    tails = np.zeros(len(share))
    _tails(units.succ_ptr, units.succ, share, tails)
    after = sums_after(units.succ_ptr, units.succ, share) - share
    head = float((share + np.maximum(tails, after)).max())
    return float(np.ceil(max(share.sum(), large, thirds, head) - 1e-9))


@compiled
@no_type_check
def _tails(succ_ptr, succ, share, tails) -> None:
    """Write [U] chips needed after each unit along its heaviest chain.

    A unit that does not fit beside the fraction of a chip behind it starts that chip anew.
    """
    for v in range(len(share) - 1, -1, -1):
        best = 0.0
        for i in range(succ_ptr[v], succ_ptr[v + 1]):
            w = succ[i]
            best = max(best, tails[w] + share[w])
        whole = np.ceil(best - 1e-9)
        if best + share[v] > whole + 1e-9:
            best = whole if best < whole else best
        tails[v] = best
