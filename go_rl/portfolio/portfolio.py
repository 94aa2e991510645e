"""`auto`: which optimizers run, in what order, within a budget; never worse than the heuristic."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from go_rl.core import (
    Budget,
    Objective,
    Optimizer,
    Plan,
    PolicyError,
    Problem,
    Progress,
    SearchError,
    Status,
    with_bound,
)
from go_rl.core.errors import nearest
from go_rl.objectives.ring.compilation import tiny_problem
from go_rl.objectives.ring.workspace import ring_workspace
from go_rl.policy.agent import Agent
from go_rl.policy.policy_search import PolicySearch
from go_rl.portfolio.compilation import Compilation, compile_method
from go_rl.search import (
    Annealing,
    Composed,
    DefaultPlacement,
    Exact,
    Exhaustive,
    Greedy,
    GreedyFusion,
    Heft,
    IdealDP,
    LinearDP,
    LocalSearch,
    MakespanAnnealing,
    MakespanExpert,
    MakespanMetis,
    MakespanRandom,
    MaxLoadDP,
    Metis,
    RandomSearch,
    is_small,
)
from go_rl.search.makespan.hdp.hdp import HDP
from go_rl.search.ring.cut_scores import price_scores
from go_rl.simulate import confirm_memory

METHODS: dict[str, Callable[[], Optimizer]] = {
    "greedy": Greedy,
    "policy": PolicySearch,
    "policy-placement": lambda: PolicySearch(decoder="placement", name="policy-placement"),
    "random": RandomSearch,
    "annealing": Annealing,
    "metis": Metis,
    "linear-dp": LinearDP,
    "ideal-dp": IdealDP,
    "exact": Exact,
    "dp": MaxLoadDP,
    "local-search": LocalSearch,
}
"""Optimizers by the name that ``--method`` takes."""

STEP_METHODS: dict[str, Callable[[], Optimizer]] = {
    "default": DefaultPlacement,
    "policy": PolicySearch,
    "composed": Composed,
    "expert": MakespanExpert,
    "fusion-greedy": GreedyFusion,
    "hdp": HDP,
    "heft": Heft,
    "metis": MakespanMetis,
    "random": MakespanRandom,
    "annealing": MakespanAnnealing,
}
"""The same for the makespan objective."""

_RING = (
    "greedy",
    "policy",
    "policy-placement",
    "random",
    "annealing",
    "metis",
    "linear-dp",
    "ideal-dp",
    "exact",
)
_BY_OBJECTIVE = {
    Objective.RING: _RING,
    Objective.MAX_LOAD: ("greedy", "dp", "local-search"),
    Objective.LATENCY: ("greedy", "local-search"),
    Objective.MAKESPAN: tuple(STEP_METHODS),
}
_AUTO = {
    Objective.RING: (
        ("ideal-dp", 0.15),
        ("policy", 0.35),
        ("linear-dp", 0.1),
        ("annealing", 0.2),
        ("exact", 0.2),
    ),
    Objective.MAX_LOAD: (("dp", 0.3), ("local-search", 0.7)),
    Objective.LATENCY: (("local-search", 1.0),),
    Objective.MAKESPAN: (
        ("composed", 0.12),
        ("policy", 0.48),
        ("annealing", 0.4),
    ),
}
"""What ``auto`` runs after the heuristic, with each one's share of the budget."""

GOOD_ENOUGH = 1e-3
"""Gap to the proven bound at which ``auto`` stops looking."""

FALLBACK_SECONDS = 0.25
"""Time that the search for any plan at all may always take."""
LONGEST_FALLBACK = 10.0
"""Time that it may take when the budget counts samples only."""

EXACT_CELLS = 30_000
"""Nodes times chips up to which ``auto`` hands the last part of its time to CP-SAT."""


@dataclass(frozen=True, eq=False)
class Result:
    """What a portfolio found."""

    problem: Problem
    plans: tuple[Plan, ...]
    """One plan a method, the compiler heuristic first."""
    best: Plan
    """The best of them, with the best bound that any method proved."""
    bound: float
    """Proven lower bound, seconds."""

    def __repr__(self) -> str:
        times = f"{self.improvement(self.best):.3f} times the heuristic's throughput"
        return f"<Result of {len(self.plans)} plans, {times}; best: {self.best!r}>"

    def improvement(self, plan: Plan) -> float:
        """Return throughput relative to the compiler heuristic; nan where either failed."""
        heuristic = self.plans[0].value
        usable = np.isfinite(heuristic) and np.isfinite(plan.value) and plan.value > 0
        return heuristic / plan.value if usable else float("nan")


def methods_for(problem: Problem) -> tuple[str, ...]:
    """Return the methods that work on the problem's objective."""
    return _BY_OBJECTIVE[problem.objective]


def run(
    problem: Problem,
    method: str = "auto",
    budget: Budget | None = None,
    seed: int = 0,
    report: Callable[[str], None] | None = None,
    extra: tuple[Optimizer, ...] = (),
    agent: Agent | None = None,
) -> Result:
    """Run the heuristic and then one method, all of them, or the portfolio ``auto``.

    Args:
        problem: what to optimise.
        method: a name in `METHODS` (`STEP_METHODS` for makespan), ``all`` or ``auto``.
        budget: for all methods together under ``auto``, for each one otherwise.
        seed: the one seed from which every choice follows.
        report: is told the name of each method before it runs.
        extra: further optimizers to run, such as an `Expert` or a `FineTuned` policy; ``auto``
            runs them first and goes on from the best plan so far.
        agent: the policy to use instead of the one that ships with the package.

    Raises:
        SearchError: the method is unknown, or cannot work on this objective.
    """
    budget = budget or Budget(seconds=20.0)
    allowed = methods_for(problem)
    known = {**METHODS, **STEP_METHODS}
    if method not in ("auto", "all", *known):
        raise SearchError(
            f"unknown method {method!r}{nearest(method, allowed)} "
            f"Use auto, all or one of {', '.join(allowed)}"
        )
    if method not in ("auto", "all", *allowed):
        raise SearchError(
            f"method {method!r} cannot work on objective {problem.objective}; "
            f"use auto, all or one of {', '.join(allowed)}"
        )
    tell = report or (lambda sentence: None)
    make = partial(_method, problem)
    with Compilation(problem, tell, make) as compilation:
        first = methods_for(problem)[0]
        compilation.prepare(first)
        tell(first)
        plans = [_method(problem, first, agent).optimize(problem, Budget(samples=100), seed)]
        compilation.announce(plans[0])
        for optimizer in extra:
            tell(optimizer.name)
            plans.append(optimizer.optimize(problem, budget, seed))
        if method == "auto":
            start = with_bound(min(plans, key=_worth), max(plan.bound for plan in plans))
            started = time.perf_counter()
            plans += _auto(problem, budget, seed, compilation, start, agent)
            plans += _fallback(problem, plans, budget, time.perf_counter() - started, seed, tell)
        else:
            for name in allowed if method == "all" else (method,):
                if name != first:
                    tell(name)
                    optimizer = _method(problem, name, agent)
                    compilation.prepare(name)
                    _prepare(optimizer, problem, tell)
                    plans.append(optimizer.optimize(problem, budget, seed))
    return summarise(problem, plans)


def compile_kernels(objective: Objective) -> None:
    """Compile (or load from disk) every kernel of an objective, as measurements want it."""
    for strict in (True, False) if objective is Objective.RING else (False,):
        problem = tiny_problem(strict, objective)
        for name in methods_for(problem):
            compile_method(objective, strict, name, partial(_method, problem))
        if objective is Objective.RING:
            price_scores(ring_workspace(problem), np.zeros((2, problem.graph.num_nodes)))


def _prepare(optimizer: Optimizer, problem: Problem, tell: Callable[[str], None]) -> float:
    """Compile networks for graphs of this size; return the seconds spent, which no budget pays.

    Raises:
        PolicyError: the graph is larger than any bucket.
    """
    if not isinstance(optimizer, PolicySearch | HDP):
        return 0.0
    tell(f"{optimizer.name} (compiled once for graphs of this size)")
    started = time.perf_counter()
    optimizer.prepare(problem)
    return time.perf_counter() - started


def _method(problem: Problem, name: str, agent: Agent | None = None) -> Optimizer:
    makespan = problem.objective is Objective.MAKESPAN
    optimizer = (STEP_METHODS if makespan else METHODS)[name]()
    if isinstance(agent, Agent) and isinstance(optimizer, PolicySearch):
        return replace(optimizer, agent=agent)
    return optimizer


def _auto(
    problem: Problem,
    budget: Budget,
    seed: int,
    compilation: Compilation,
    start: Plan,
    agent: Agent | None,
) -> list[Plan]:
    """Each stage gets its share of what is left; the search ends when the gap is closed.

    A graph too large for the policy is left to the other stages.
    """
    plans: list[Plan] = []
    tell = compilation.tell
    best, progress = start, Progress(budget)
    stages = _AUTO[problem.objective]
    for i, (name, share) in enumerate(stages):
        left = sum(s for _, s in stages[i:])
        if best.gap <= GOOD_ENOUGH or progress.spent:
            break
        optimizer = _method(problem, name, agent)
        if isinstance(optimizer, (Annealing, IdealDP, Exact)) and best.evaluation.status.ok:
            optimizer = replace(optimizer, start=best.device)
        if isinstance(optimizer, MakespanAnnealing) and best.evaluation.status.ok:
            optimizer = replace(optimizer, start=best)
        if isinstance(optimizer, Exact) and not (_small_enough(problem) and budget.seconds):
            continue  # CP-SAT counts no samples
        progress.started += compilation.prepare(name)
        try:
            progress.started += _prepare(optimizer, problem, tell)
        except PolicyError as error:
            tell(f"policy left out: {error}")
            continue
        tell(name)
        plan = optimizer.optimize(problem, _portion(progress, share / left), seed)
        progress.samples += plan.samples
        bound = max(best.bound, plan.bound)
        best = with_bound(min(best, plan, key=_worth), bound)
        plans.append(plan)
    return plans


def _fallback(
    problem: Problem,
    plans: list[Plan],
    budget: Budget,
    spent: float,
    seed: int,
    tell: Callable[[str], None],
) -> list[Plan]:
    """Try every plan of a small problem for which nothing was found, nor proved to exist.

    A plan at all is worth `FALLBACK_SECONDS` beyond the ``spent`` seconds of a budget.
    """
    best = summarise(problem, plans).best.evaluation.status
    if best.ok or best in (Status.INFEASIBLE, Status.UNSUPPORTED) or not is_small(problem):
        return []
    optimizer = Exhaustive()
    tell(optimizer.name)
    used = sum(plan.samples for plan in plans[1:])
    samples = None if budget.samples is None else max(1, budget.samples - used)
    seconds = None if budget.seconds is None else max(FALLBACK_SECONDS, budget.seconds - spent)
    if seconds is None:
        seconds = LONGEST_FALLBACK
    return [optimizer.optimize(problem, Budget(samples, seconds), seed)]


def _small_enough(problem: Problem) -> bool:
    """Whether CP-SAT's model of the problem is worth building."""
    return problem.graph.num_nodes * problem.hardware.num_chips <= EXACT_CELLS


def _portion(progress: Progress, share: float) -> Budget:
    samples, seconds = progress.remaining_samples, progress.remaining_seconds
    return Budget(
        samples=max(1, int(samples * share)) if np.isfinite(samples) else None,
        seconds=max(1e-3, seconds * share) if np.isfinite(seconds) else None,
    )


def _worth(plan: Plan) -> tuple[bool, float, bool]:
    """Order of plans, the best first: legal ones by value, then proofs that none exists."""
    status = plan.evaluation.status
    return not status.ok, plan.value, status is not Status.INFEASIBLE


def summarise(problem: Problem, plans: list[Plan]) -> Result:
    """Return the plans of several methods, the heuristic's first, with the best bound and plan."""
    usable = [p.value for p in plans if p.evaluation.status.ok]
    bound = max(p.bound for p in plans)
    bound = min([bound, *usable])
    plans = [with_bound(p, bound) for p in plans]
    if problem.objective is Objective.RING and problem.memory:
        plans = _confirmed(problem, plans)
    return Result(problem, tuple(plans), min(plans, key=_worth), bound)


def _confirmed(problem: Problem, plans: list[Plan]) -> list[Plan]:
    """Give the best plan real memory offsets; where none exist it fails and the next best follows.

    Pricing compares live bytes with the memory; fragmentation may need more.
    """
    order = sorted(range(len(plans)), key=lambda i: _worth(plans[i]))
    for i in order:
        plan = plans[i]
        if not plan.evaluation.status.ok:
            break
        present = np.int64(1) << plan.device.astype(np.int64)
        for node, copies in plan.replicas.items():
            for chip in copies:
                present[node] |= np.int64(1) << np.int64(chip)
        status, used = confirm_memory(problem, plan.device, present)
        if status is Status.OUT_OF_MEMORY:
            failure = replace(
                plan.evaluation,
                status=status,
                seconds_per_step=float("inf"),
                detail="live tensors fit, but no memory offsets exist for them",
            )
            plans[i] = with_bound(replace(plan, evaluation=failure), plan.bound)
            continue
        limits = np.array([chip.memory_bytes for chip in problem.hardware.chips])
        share = float((used / limits).max())
        sentence = (
            f"Memory offsets were found on every chip; the fullest uses {share:.1%} of its memory."
            if status.ok
            else "Memory offsets were not found in the time allowed; live bytes fit."
        )
        plans[i] = replace(plan, notes=tuple(dict.fromkeys((*plan.notes, sentence))))
        break
    return plans
