"""`run_fit`: memory before time, for users who want a model to run at all.

The plan whose fullest device is least full comes first, then the shortest iteration among plans
that are as little full: lexicographic optimisation with the first objective as a constraint (the
epsilon-constraint method; Haimes, Lasdon, Wismer, "On a bicriterion formulation of the problems of
integrated system identification and system optimization", IEEE Transactions on Systems, Man and
Cybernetics 1971). So there is no further simulator: all methods of the makespan search under a
memory limit, and the plan is one for the makespan.

A *share* is a device's peak as a share of its memory; of a plan, that of its fullest device.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from jaxtyping import Float64

from go_rl.compare.portfolio.portfolio import AUTO_METHOD, run
from go_rl.compare.portfolio.registry import METHODS
from go_rl.compare.portfolio.result import Result, summarise
from go_rl.core import Budget, Optimizer, Plan, Problem, ProblemError, with_bound
from go_rl.core.decisions import Decisions
from go_rl.core.stopping import stop_asked
from go_rl.objectives.makespan.methods.annealing import MakespanAnnealing
from go_rl.objectives.makespan.methods.best_of import BestOf
from go_rl.objectives.makespan.workspace import MakespanWorkspace, makespan_workspace
from go_rl.objectives.methods import Exhaustive, is_small

ROUNDS = 8
"""Most limits that are tried one after the other."""
LEAST_ROUNDS = 40
"""Most of them on problems of which all placements are tried, whose limit falls plan by plan."""
CLOSE = 1.01
"""Share over the largest limit without a plan at which the search for less memory ends."""
SPREADS = ("composed", "layers-equal", "layers-by-speed", "metis", "fill-in-order")
"""Methods that make plans to begin with; the last reads the limit."""
ROUNDING = 1e-9
"""Relative tolerance of the replay's comparison with the memory."""
LESS = 1e-6
"""Relative difference of shares that counts."""
UNLIMITED, LEAST = 1e12, 1e-12
"""Shares at which any plan fits, and below which nothing is looked for."""
NAME = "least-memory"
"""Name of the plan that the search under limits ends with."""


@dataclass(frozen=True)
class LeastMemory:
    """Result of the search for the least memory."""

    plan: Plan
    share: float
    """Share of the fullest device; above 1 the plan does not fit."""
    proved: float
    """Share below which no plan exists, as far as proved."""


def run_fit(
    problem: Problem,
    method: str = AUTO_METHOD,
    budget: Budget | None = None,
    seed: int = 0,
    report: Callable[[str], None] | None = None,
    extra: tuple[Optimizer, ...] = (),
    agent: Any = None,
    control: str | None = None,
) -> Result:
    """Spend half of the budget on the least memory, and the other half on time. Arguments are those
    of `run`, which is all where no plan exists whatever the memory.

    Raises:
        ProblemError: the objective is not makespan, or memory is not checked.
    """
    if not (problem.objective.traits.is_replayed and problem.memory):
        raise ProblemError("fit needs the objective makespan, and memory that is checked")
    budget = budget or Budget(seconds=20.0)
    rest = (budget, seed, report, extra, agent, control)
    if makespan_workspace(_limited(problem, UNLIMITED)).infeasible is not None:
        return run(problem, method, *rest)
    if report is not None:
        report("looking for the least memory")
    found = least_memory(problem, _part(budget, 2), seed)
    given = _given(found.plan)
    if found.share > 1 + ROUNDING:
        plan = given.optimize(problem, Budget(samples=1), seed)
        return Result(problem, (plan,), plan, plan.bound)
    limited = _limited(problem, found.share * (1 + ROUNDING))
    result = run(limited, method, _part(budget, 2), seed, report, (given, *extra), agent, control)
    bound, note = makespan_workspace(problem).bound, _sentence(problem, found)
    plans = [
        replace(with_bound(replace(plan, bound=bound), bound), hardware=problem.hardware.to_json(),
                notes=(*plan.notes, note))
        for plan in result.plans
    ]  # fmt: skip
    return summarise(problem, plans)


def least_memory(problem: Problem, budget: Budget, seed: int) -> LeastMemory:
    """Return the plan with the smallest share that is found, and what was proved."""
    all_tried = is_small(problem)
    best = _least(problem, _spread(_limited(problem, UNLIMITED), SPREADS, seed))
    share, proved = fullest(problem, best), _proved(problem)
    low, rounds = proved, LEAST_ROUNDS if all_tried else ROUNDS
    for _ in range(rounds):
        if (
            stop_asked()
            or share * (1 - LESS) <= max(low, LEAST)
            or (not all_tried and share < low * CLOSE)
        ):
            break
        # Halve the distance; in the end the least that is less.
        limit = share * (1 - LESS) if share < low * CLOSE else (low + share) / 2
        limited = _limited(problem, limit)
        method = Exhaustive() if all_tried else MakespanAnnealing(start=best)
        tried = [method.optimize(limited, _part(budget, rounds), seed)]
        tried += _spread(limited, SPREADS[-1:], seed)
        fitting = [plan for plan in tried if plan.evaluation.status.ok]
        if not fitting:
            low = limit
            continue
        best = _least(problem, fitting)
        share = fullest(problem, best)
    return LeastMemory(best, share, proved)


def shares(problem: Problem, plan: Plan) -> Float64[np.ndarray, "D"]:
    """Return [D] peak of each device as a share of its memory."""
    return plan.evaluation.peak_bytes / _room(problem)


def fullest(problem: Problem, plan: Plan) -> float:
    """Return the share of the plan."""
    return float(shares(problem, plan).max())


def _room(problem: Problem) -> Float64[np.ndarray, "D"]:
    return np.array([device.memory_bytes for device in problem.hardware.devices])


def _limited(problem: Problem, share: float) -> Problem:
    """The problem on devices with that share of their memory."""
    devices = tuple(
        replace(device, memory_bytes=device.memory_bytes * max(share, LEAST))
        for device in problem.hardware.devices
    )
    return replace(problem, hardware=replace(problem.hardware, devices=devices))


def _least(problem: Problem, plans: Iterable[Plan]) -> Plan:
    return min(plans, key=lambda plan: (fullest(problem, plan), plan.value))


def _spread(problem: Problem, names: Iterable[str], seed: int) -> list[Plan]:
    methods = METHODS[problem.objective]
    return [methods[name]().optimize(problem, Budget(samples=100), seed) for name in names]


def _proved(problem: Problem) -> float:
    """Largest share, to a thousandth, at which it is proved that no plan exists."""
    low, high = 0.0, 1.0
    while MakespanWorkspace(_limited(problem, high)).infeasible is not None:
        low, high = high, 2 * high
    while high - low > 1e-3 * high and high > LEAST:
        middle = (low + high) / 2
        if MakespanWorkspace(_limited(problem, middle)).infeasible is not None:
            low = middle
        else:
            high = middle
    return low


def _given(plan: Plan) -> BestOf:
    """`Optimizer`: one plan, priced again."""

    def plans(workspace: MakespanWorkspace, seed: int) -> Iterable[Decisions]:
        yield plan.decisions

    return BestOf(NAME, plans)


def _part(budget: Budget, parts: int) -> Budget:
    samples = None if budget.samples is None else max(1, budget.samples // parts)
    return Budget(samples, None if budget.seconds is None else budget.seconds / parts)


def _sentence(problem: Problem, found: LeastMemory) -> str:
    device = int(shares(problem, found.plan).argmax())
    peak, room = found.plan.evaluation.peak_bytes[device], _room(problem)[device]
    least = "nothing is proved about less"
    if found.proved:
        least = f"it is proved that none needs less than {100 * found.proved:.3g} %"
    return (
        f"Memory first: the fullest device, {device}, needs {100 * found.share:.3g} % of its "
        f"memory ({peak:.6g} of {room:.6g} bytes), no plan with less was found, and {least}; of "
        "plans within that share this is the fastest found."
    )
