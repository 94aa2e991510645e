"""Every objective and rule set against brute force: solver, bounds, methods and what they prove."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from reference import priced_steps
from reference.boxed_problems import random_problem
from reference.host_objectives import latency, max_load, optimum
from reference.naive_checker import value_of
from reference.random_rings import random_ring
from reference.ring_optimum import optimum as ring_optimum
from reference.ring_rules import copied_by, partitions
from reference.step_optimum import best_of_all, weak_orders
from reference.step_problems import random_step
from runner.suite import Suite

from go_rl.compare.portfolio import METHODS, run
from go_rl.core import DECISIONS, RULE_SETS, Budget, Hardware, Objective, Plan, Problem, Status
from go_rl.objectives.host.bounds import ROUNDING, latency_bound, max_load_bound
from go_rl.objectives.host.hypergraph import contract_problem
from go_rl.objectives.host.max_load_cut_bound import cut_bound
from go_rl.objectives.makespan.workspace import MakespanWorkspace
from go_rl.objectives.ring.bounds import ring_bound
from go_rl.solvers import RingSolver
from go_rl.verify.check_plan import check_plan

from ..random_problems import QUICK

COUNT = 5_000
SAMPLES = 24
SLACK = 1e-9
PROVED = 1e-6
"""Relative gap at which CP-SAT's whole-number costs call a plan optimal."""
AUTO_EVERY = 5
"""One trial in so many asks ``auto`` (and on the ring CP-SAT), which cost more."""
UNSOLVED = (Status.OUT_OF_MEMORY, Status.GAVE_UP, Status.UNSUPPORTED)


@dataclass(frozen=True)
class Case:
    """A sort of problem, and its optimum by brute force."""

    draw: Callable[[int], Problem]
    best: Callable[[Problem], float | None]
    """Least seconds of any legal plan, live tensors on rings not counted; inf without one."""


def ring_of(rules: str) -> Case:
    """Up to five nodes on up to three chips; every fifth problem mixes two kinds of chips."""

    def draw(seed: int) -> Problem:
        problem = replace(random_ring(seed, 5, 3), rules=RULE_SETS[rules])
        if seed % 5 < 4:
            return problem
        rng = np.random.default_rng(seed)
        chips = [replace(c, kind=f"tile{rng.integers(2)}") for c in problem.hardware.devices]
        hardware = Hardware("mixed", tuple(chips), problem.hardware.links)
        shape = (len(hardware.kinds), problem.graph.num_nodes)
        return replace(problem, hardware=hardware, seconds=rng.integers(0, 9, shape).astype(float))

    return Case(draw, ring_optimum)


def boxes_for(objective: Objective, price: Callable, most_nodes: int) -> Case:
    """Two to ``most_nodes`` nodes on one to three devices, some of them CPUs."""

    def draw(seed: int) -> Problem:
        return random_problem(seed, objective, 2 + seed % (most_nodes - 1), 1 + seed % 3)

    return Case(draw, lambda problem: optimum(problem, price))


def steps_of(decisions: tuple[str, ...]) -> Case:
    """Up to four nodes on up to three devices, replayed event by event."""

    def draw(seed: int) -> Problem:
        problem = random_step(seed, 4)
        devices = problem.hardware.num_devices
        if devices > 3:
            problem = replace(
                problem, hardware=replace(problem.hardware, devices=problem.hardware.devices[:3])
            )
            problem = replace(problem, seconds=problem.seconds[: len(problem.hardware.kinds)])
        fed, gap = problem.graph.is_fed, problem.gap_seconds
        problem = replace(problem, gap_seconds=None if gap is None else np.where(fed, 0.0, gap))
        if "placement" in decisions:
            return replace(problem, decisions=decisions)
        pins = dict.fromkeys(range(problem.graph.num_nodes), 0)
        return replace(problem, decisions=decisions, fixed=pins)

    def best(problem: Problem) -> float:
        return best_of_all(problem, weak_orders(problem.graph.num_nodes))

    return Case(draw, best)


def fused_steps() -> Case:
    """Up to four nodes on one or two devices, kernels priced by the analytical model."""

    def best(problem: Problem) -> float:
        return best_of_all(problem, weak_orders(problem.graph.num_nodes))

    return Case(lambda seed: priced_steps.random_problem(seed, 4), best)


CASES = (
    *(ring_of(rules) for rules in RULE_SETS),
    boxes_for(Objective.MAX_LOAD, max_load, 6),
    boxes_for(Objective.LATENCY, latency, 5),
    steps_of(("placement", "schedule")),
    steps_of(DECISIONS),
    steps_of(("fusion",)),
    steps_of(("schedule",)),
    fused_steps(),
)


def trial(index: int) -> str | None:
    """One problem; its sort is ``index % 11``."""
    case = CASES[index % len(CASES)]
    problem = case.draw(index // len(CASES))
    best = case.best(problem)
    if best is None:
        return None  # more plans than are tried one by one
    wrong = [*bounds_above(problem, best), *solver_errors(problem)]
    for plan in plans_of(problem, index):
        wrong += [f"{plan.optimizer}: {each}" for each in false_claims(problem, plan, best)]
    return f"{problem.objective}: {'; '.join(wrong)}" if wrong else None


def plans_of(problem: Problem, index: int) -> Iterator[Plan]:
    """A plan of each quick method; in some trials of the slower ones and of ``auto``."""
    methods = METHODS[problem.objective]
    names = list(dict.fromkeys(QUICK[problem.objective]))
    if problem.objective is Objective.RING and index // len(CASES) % 4 == 0:
        names.append("ideal-dp")
    for name in names:
        yield methods[name]().optimize(problem, Budget(samples=SAMPLES), index)
    if index // len(CASES) % AUTO_EVERY == 0:
        if problem.objective is Objective.RING:
            yield methods["exact"]().optimize(problem, Budget(seconds=5.0), index)
        yield replace(run(problem, budget=Budget(samples=60), seed=index).best, optimizer="auto")


def false_claims(problem: Problem, plan: Plan, best: float) -> Iterator[str]:
    """What a plan says of itself that brute force refutes."""
    status = plan.evaluation.status
    verdict = check_plan(plan, problem)
    if verdict.status is not status:
        yield f"says {status}, the checker {verdict.sentence}"
    if plan.bound > best * (1 + SLACK):
        yield f"its bound {plan.bound!r} is above the optimum {best!r}"
    if status is Status.INFEASIBLE and _surely_possible(problem, best):
        yield f"infeasible, but {best!r} s is possible"
    if plan.optimizer == "auto" and status in UNSOLVED and _surely_possible(problem, best):
        yield f"{status}, but {best!r} s is possible"
    if not status.ok:
        return
    if plan.value < best * (1 - SLACK):
        yield f"{plan.value!r} s is below the optimum {best!r}"
    if plan.optimal and plan.value > best * (1 + PROVED):
        yield f"optimal at {plan.value!r} s; the optimum is {best!r}"
    if abs(value_of(problem, plan) - plan.value) > SLACK * plan.value:
        yield f"says {plan.value!r} s; it is {value_of(problem, plan)!r}"


def _surely_possible(problem: Problem, best: float) -> bool:
    """On a ring brute force counts no live tensors, so that with memory nothing may be usable."""
    counted = problem.objective is not Objective.RING or not problem.memory
    return bool(np.isfinite(best)) and counted


def bounds_above(problem: Problem, best: float) -> Iterator[str]:
    """Proven bounds that exceed the optimum."""
    high = 2 * best + 1 if np.isfinite(best) else 100.0
    if problem.objective is Objective.RING:
        found = {"quick": ring_bound(RingSolver(problem).instance)}
    elif problem.objective is Objective.MAX_LOAD:
        low = max_load_bound(problem)
        found = {"cut": cut_bound(contract_problem(problem), low, high, 1.0) * (1.0 - ROUNDING)}
    elif problem.objective is Objective.LATENCY:
        found = {"path": latency_bound(problem)}
    else:
        found = {"step": MakespanWorkspace(problem).bound}
    for name, bound in found.items():
        if bound > best * (1 + SLACK):
            yield f"the {name} bound {bound!r} is above the optimum {best!r}"


def solver_errors(problem: Problem) -> Iterator[str]:
    """FIX keeps what is legal and makes the rest so; SAMPLE draws only what the rules allow."""
    if problem.objective is not Objective.RING:
        return
    solver = RingSolver(problem)
    legal = set(partitions(problem, copied_by(solver.instance.replicated)))
    proposals = np.random.default_rng(len(legal)).integers(
        -1, problem.hardware.num_devices, (4, problem.graph.num_nodes)
    )
    for name, found in (("FIX", solver.fix(proposals, seed=4)), ("SAMPLE", solver.sample(batch=8))):
        drawn = {tuple(row) for row in found.device[found.ok].tolist()}
        if drawn - legal:
            yield f"{name} made {sorted(drawn - legal)[0]}, which is not legal"
        if legal and not found.ok.all():
            yield f"{name} failed where {len(legal)} partitions are legal"
    if legal:
        some = np.array(sorted(legal)[:8], np.int16)
        if (solver.fix(some, seed=4).device != some).any():
            yield "FIX moved a legal partition"


SUITE = Suite(
    name="small-problems",
    proves="solver, bounds, methods, statuses and every `optimal` agree with brute force, for all "
    "objectives, rule sets and decisions",
    unit="problems",
    count=COUNT,
    trial=trial,
)
