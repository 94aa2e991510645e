"""Problems of tens to hundreds of nodes whose optimum is planted: all work, evenly on all devices.

The planted plan puts a load of exactly one second on each device and waits for nothing, so no plan
is faster: all work over all devices is a second, too.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from reference.problem_with import problem_with
from runner.suite import Suite
from small_graphs import graph_of

from go_rl.compare.portfolio.portfolio import run
from go_rl.core import (
    RULE_SETS,
    Budget,
    Device,
    Hardware,
    Links,
    Objective,
    OpKind,
    Plan,
    Problem,
    Topology,
)
from go_rl.graphs.readers.graph_builder import Node
from go_rl.solvers import RingSolver
from go_rl.verify.check_plan import check_plan
from go_rl.verify.kernel_rules import legal_kernels
from go_rl.verify.makespan_value import replayed
from go_rl.verify.rules import legal
from go_rl.verify.value import plan_value

from ..random_problems import QUICK, plan_by

COUNT = 300
OPTIMUM = 1.0
"""Seconds."""
SLACK = 1e-9
PROVED = 1e-6
SAMPLES = 32
AUTO_EVERY = 3
"""One trial in so many asks ``auto``."""
SORTS = (*RULE_SETS, Objective.MAX_LOAD, Objective.LATENCY, Objective.MAKESPAN, "schedule")


def trial(index: int) -> str | None:
    """One instance of the sort ``index % 8``."""
    rng = np.random.default_rng(index)
    sort = SORTS[index % len(SORTS)]
    problem, device = planted_ring(rng, sort) if sort in RULE_SETS else planted_boxes(rng, sort)
    wrong = list(planted_errors(problem, device))
    for plan in plans_of(problem, index):
        wrong += [f"{plan.optimizer} {each}" for each in false_claims(problem, plan)]
    return f"{sort}, {problem.graph.num_nodes} nodes: {'; '.join(wrong)}" if wrong else None


def shares(rng: np.random.Generator, devices: int, most: int) -> tuple[np.ndarray, np.ndarray]:
    """[N] device and [N] seconds: each device's add up to the optimum but for rounding."""
    counts = rng.integers(2, most, devices)
    device = np.repeat(np.arange(devices), counts)
    seconds = rng.uniform(0.2, 1.0, len(device))
    return device, seconds / np.bincount(device, seconds)[device] * OPTIMUM


def planted_ring(rng: np.random.Generator, rules: str) -> tuple[Problem, np.ndarray]:
    """A pipeline over two to twelve chips; edges within a chip or to the next, and farther ones
    where no triangle is forbidden. Names are dealt out at random."""
    chips = int(rng.integers(2, 13))
    device, seconds = shares(rng, chips, 24)
    reach = chips if RULE_SETS[rules].relay else 1
    edges = random_edges(rng, device, reach)
    problem = problem_of(edges, seconds, Topology.RING, chips, Objective.RING, rules)
    return problem, device


def planted_boxes(rng: np.random.Generator, sort: str) -> tuple[Problem, np.ndarray]:
    """One to six equal devices, and nothing that one needs of another."""
    devices = 1 if sort == "schedule" else int(rng.integers(2, 7))
    device, seconds = shares(rng, devices, 20)
    edges = random_edges(rng, device, 0)
    order = rng.permutation(len(device))  # devices no longer come one after the other
    place = np.argsort(order)
    order = topological(order, [(int(place[u]), int(place[v])) for u, v in edges])
    objective = Objective.MAKESPAN if sort == "schedule" else Objective(sort)
    where = {int(old): new for new, old in enumerate(order)}
    edges = [(where[u], where[v]) for u, v in edges]
    options: dict[str, Any] = {}
    if objective is Objective.MAKESPAN:
        options["decisions"] = ("schedule",) if devices == 1 else ("placement", "schedule")
        if devices == 1:
            options["fixed"] = dict.fromkeys(range(len(order)), 0)
    problem = problem_of(
        edges, seconds[order], Topology.FULL, devices, objective, "default", **options
    )
    return problem, device[order]


def topological(order: np.ndarray, edges: list[tuple[int, int]]) -> np.ndarray:
    """An order of nodes close to the given one in which every edge, between places of it, goes
    forward."""
    before: dict[int, set[int]] = {}
    for u, v in edges:
        before.setdefault(v, set()).add(u)
    done: list[int] = []
    placed: set[int] = set()
    while len(done) < len(order):
        ready = next(p for p in range(len(order)) if p not in placed
                     and before.get(p, set()) <= placed)  # fmt: skip
        placed.add(ready)
        done.append(ready)
    return order[done]


def random_edges(rng: np.random.Generator, device: np.ndarray, reach: int) -> list[tuple[int, int]]:
    """Each node reads up to three earlier ones at most ``reach`` devices before its own."""
    edges = set()
    for v in range(1, len(device)):
        near = np.flatnonzero(device[v] - device[:v] <= reach)
        near = near[device[near] <= device[v]]
        for u in rng.permutation(near)[: int(rng.integers(0, 4))]:
            edges.add((int(u), v))
    return sorted(edges)


def problem_of(
    edges: list[tuple[int, int]],
    seconds: np.ndarray,
    topology: Topology,
    devices: int,
    objective: Objective,
    rules: str,
    **options: Any,
) -> Problem:
    """Equal devices; a tensor takes a microsecond on a link."""
    count = len(seconds)
    nodes = (Node(f"n{n}", "Op", OpKind.MATMUL, weight_bytes=1.0) for n in range(count))
    graph = graph_of(nodes, ((u, v, 1.0) for u, v in edges), "planted")
    placed = np.array([int(str(name)[1:]) for name in graph.names])
    assert (placed == np.arange(count)).all(), "the builder keeps a topological order"
    chip = Device("tile", 1.0, 4.0 * (count + len(edges)), 1.0)
    hardware = Hardware("planted", (chip,) * devices, Links(topology, 1e6))
    return problem_with(
        graph, hardware, objective, seconds[None], rules=RULE_SETS[rules],
        transfer_seconds=np.full(count, 1e-6), **options,
    )  # fmt: skip


def planted_errors(problem: Problem, device: np.ndarray) -> Iterator[str]:
    """What the checker and the solver say against the planted plan."""
    device = device.astype(np.int16)
    if broken := legal(problem, device, {}):
        yield f"the checker refuses the planted plan: {broken[0].message}"
        return
    if problem.objective is Objective.MAKESPAN:
        assert not legal_kernels(problem, device, None, None)
        value = replayed(problem, device, None, None).seconds
    else:
        value = plan_value(problem, device, {})
    if abs(value - OPTIMUM) > SLACK:
        yield f"the checker says {value!r} s of the planted plan"
    if problem.objective is Objective.RING:
        solver = RingSolver(problem)
        if not solver.instance.replicated.any():
            fixed = solver.fix(device[None], seed=0)
            if not fixed.ok[0] or (fixed.device[0] != device).any():
                yield "FIX moves the planted plan"


def plans_of(problem: Problem, index: int) -> Iterator[Plan]:
    """Of the quick methods, and sometimes of ``auto``."""
    for name in dict.fromkeys(QUICK[problem.objective]):
        yield plan_by(name, problem, SAMPLES, index)
    if index // len(SORTS) % AUTO_EVERY == 0:
        yield run(problem, budget=Budget(samples=120), seed=index).best


def false_claims(problem: Problem, plan: Plan) -> Iterator[str]:
    """What cannot be, the optimum being known."""
    status = plan.evaluation.status
    verdict = check_plan(plan, problem)
    if verdict.status is not status or not status.ok:
        yield f"says {status}, the checker {verdict.sentence}; there is a plan"
        return
    if plan.value < OPTIMUM * (1 - SLACK):
        yield f"says {plan.value!r} s, below the optimum"
    if plan.bound > OPTIMUM * (1 + SLACK):
        yield f"proves a bound of {plan.bound!r} s, above the optimum"
    if plan.optimal and plan.value > OPTIMUM * (1 + PROVED):
        yield f"calls {plan.value!r} s optimal"


SUITE = Suite(
    name="planted",
    proves="where an optimum is planted among up to 300 nodes, every method finds a legal plan, "
    "and no value is below the optimum and no bound above it",
    unit="instances",
    count=COUNT,
    trial=trial,
)
