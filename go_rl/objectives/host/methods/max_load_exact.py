"""Max-load as a CP-SAT model: the optimum of small problems, a proven bound of middling ones."""

from __future__ import annotations

import numpy as np
from jaxtyping import Int16
from ortools.sat.python import cp_model

from go_rl.objectives.host.hypergraph import Contraction, Hypergraph
from go_rl.runtime.interruptible_cp_sat import solve_interruptibly

UNITS = 10**7
"""Loads are whole numbers, the known value being this many; rounding down keeps the bound valid."""
LARGEST_MODEL = 60_000
"""Most pin-device pairs worth a model."""


def solve_exactly(
    contraction: Contraction,
    low: float,
    known: tuple[float, Int16[np.ndarray, "B"]],
    seconds: float,
    workers: int,
) -> tuple[float, Int16[np.ndarray, "B"] | None]:
    """Minimise the largest load, starting from a known assignment and a proven bound ``low``.

    Returns a proven bound, seconds, and the best assignment found below the known value, if any.
    """
    high, device = known
    graph, devices = contraction.hypergraph, contraction.devices
    pairs = len(devices.kind) * (len(graph.pins) + graph.size.shape[0])
    if pairs > LARGEST_MODEL or seconds <= 0 or not 0 < high < np.inf:
        return low, None
    model, x, top = _model(contraction, high, low)
    for b, row in enumerate(x):
        for d, literal in enumerate(row):
            model.add_hint(literal, int(device[b] == d))
    solver = cp_model.CpSolver()
    solver.parameters.max_time_in_seconds = seconds
    solver.parameters.num_workers = workers
    status = solve_interruptibly(solver, model)
    unit = high / UNITS
    bound = min(high, max(low, solver.best_objective_bound * unit))
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE) or solver.value(top) >= UNITS:
        return bound, None
    chosen = [[solver.boolean_value(literal) for literal in row] for row in x]
    return bound, np.array(chosen).argmax(axis=1).astype(np.int16)


def _model(
    contraction: Contraction, high: float, low: float
) -> tuple[cp_model.CpModel, list[list[cp_model.IntVar]], cp_model.IntVar]:
    graph, devices = contraction.hypergraph, contraction.devices
    blocks, num_devices = graph.size.shape[0], len(devices.kind)
    model, unit = cp_model.CpModel(), high / UNITS
    x = [[model.new_bool_var("") for _ in range(num_devices)] for _ in range(blocks)]
    for b, row in enumerate(x):
        model.add_exactly_one(row)
        for d in np.flatnonzero(~graph.allowed[b]):
            model.add(row[int(d)] == 0)
    top = model.new_int_var(min(UNITS, int(low / unit)), UNITS, "largest load")
    for d in range(num_devices):
        work = np.minimum(graph.work[devices.kind[d]], 2 * high)
        load = [int(work[b] / unit) * x[b][d] for b in range(blocks)]
        if not devices.is_cpu[d]:
            load += _sent(model, graph, x, d, unit)
        model.add(sum(load) <= top)
        if np.isfinite(devices.limit[d]):
            scale = UNITS / max(devices.limit[d], 1e-300)
            held = [int(graph.size[b] * scale) * x[b][d] for b in range(blocks)]
            model.add(sum(held) <= UNITS)
    _break_symmetry(model, contraction, x)
    model.minimize(top)
    return model, x, top


def _sent(
    model: cp_model.CpModel, graph: Hypergraph, x: list[list[cp_model.IntVar]], d: int, unit: float
) -> list[cp_model.LinearExpr]:
    """Transfers of device ``d``: a net pays unless all its pins, taken in a ring, agree on it."""
    terms = []
    for m, seconds in enumerate(graph.net_seconds):
        pays = model.new_bool_var("")
        pins = graph.pins[graph.pin_offsets[m] : graph.pin_offsets[m + 1]].tolist()
        for u, v in zip(pins, pins[1:] + pins[:1], strict=True):
            model.add_bool_or([x[u][d].negated(), x[v][d], pays])
        terms.append(int(seconds / unit) * pays)
    return terms


def _break_symmetry(
    model: cp_model.CpModel, contraction: Contraction, x: list[list[cp_model.IntVar]]
) -> None:
    """Break the symmetry of equal devices: the i-th heaviest block uses one of the first i + 1."""
    graph, devices = contraction.hypergraph, contraction.devices
    column = graph.allowed.T
    keys = [
        (int(k), bool(c), float(m), column[d].tobytes())
        for d, (k, c, m) in enumerate(zip(devices.kind, devices.is_cpu, devices.limit, strict=True))
    ]
    heaviest = np.argsort(-np.where(np.isinf(graph.work[0]), 0.0, graph.work[0]))
    for key in dict.fromkeys(keys):
        alike = [d for d, other in enumerate(keys) if other == key]
        for i, b in enumerate(heaviest[: len(alike) - 1]):
            for d in alike[i + 1 :]:
                model.add(x[int(b)][d] == 0)
