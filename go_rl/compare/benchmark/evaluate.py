"""`evaluate`: methods on graphs at equal samples and equal seconds; resumable run by run."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from go_rl.compare.benchmark.config import WARM_UP_SAMPLES, EvaluateConfig
from go_rl.compare.benchmark.inputs import (
    BOUND,
    BenchmarkGraph,
    Factory,
    Methods,
    find_graphs,
    find_methods,
    named_problem,
    priced_by,
    settings_of,
)
from go_rl.compare.benchmark.run_store import (
    OK,
    REJECTED,
    ProblemName,
    Run,
    RunStore,
    Setting,
    budget_key,
    no_outcome,
    outcome,
)
from go_rl.core import Budget, GoRLError, Optimizer, Plan, Problem
from go_rl.objectives.methods import Annealing, Exact
from go_rl.runtime.decoder_calls import decoder_calls
from go_rl.verify.check_plan import check_plan


@dataclass(frozen=True)
class Comparison:
    """All runs of a comparison."""

    config: EvaluateConfig
    methods: tuple[str, ...]
    """Labels of the methods, in the order of tables."""
    runs: tuple[Run, ...]
    """Runs, one for each problem, method and seed."""
    bounds: Mapping[ProblemName, float] = field(default_factory=dict)
    """Best proven lower bound of each problem, seconds; 0: none."""
    families: Mapping[str, str] = field(default_factory=dict)
    """Family of each graph; a graph of no family is one of its own."""
    arms: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Labels of the control arms of each policy, where they were run."""


Report = Callable[[int, str], None]
Factories = Mapping[str, Factory]
"""Optimizers by label; each run makes its own."""


def evaluate(
    config: EvaluateConfig,
    folder: str | Path,
    report: Report | None = None,
    methods: Factories | None = None,
) -> Comparison:
    """Run every method on every problem with every seed, each with the same budget.

    Methods are compiled, and solver, pricer and heuristic's plan of a problem made, before anything
    is timed; a learned method first runs for 32 samples, and that time is reported apart.
    Annealing starts from the compiler heuristic's plan, the policies' first sample.

    Args:
        config: what is compared.
        folder: where finished runs are kept (``runs.jsonl``); those found there are not run again.
            Other weights, budgets or graphs make other runs; use another folder when the code of
            a method has changed.
        report: called with the number of finished runs, of `number_of_runs`, and what is running.
        methods: further optimizers, beside those of the configuration.

    Raises:
        GoRLError: an unknown graph, hardware, rule set or method; a folder that cannot be written.
            A method that raises one on a problem becomes a run with its sentence.
    """
    graphs = find_graphs(config.graphs)
    objective, settings = settings_of(config)
    chosen = find_methods(config, objective, methods or {})
    bench = _Bench(config, RunStore(folder), chosen, report or (lambda done, sentence: None))
    runs = [
        run
        for setting in settings
        for graph in graphs
        for run in bench.runs(graph, _name(config, graph, setting))
    ]
    kept = tuple(run for run in runs if run.method != BOUND)
    families = {graph.name: graph.family for graph in graphs}
    return Comparison(config, tuple(chosen.make), kept, best_bounds(runs), families, chosen.arms)


def number_of_runs(config: EvaluateConfig) -> int:
    """Return how many runs `evaluate` makes of a configuration; it raises what that does."""
    objective, settings = settings_of(config)
    problems = len(find_graphs(config.graphs)) * len(settings)
    return problems * len(_wanted(config, find_methods(config, objective, {})))


def _wanted(config: EvaluateConfig, methods: Methods) -> list[tuple[str, int, Budget]]:
    """Method, seed and budget of each run on a problem."""
    first = [(BOUND, 0, Budget(seconds=config.bound_seconds))] if config.bound_seconds > 0 else []
    return first + [
        (method, seed, config.budget)
        for method in methods.make
        for seed in range(1 if method in config.once else config.seeds)
    ]


def best_bounds(runs: list[Run]) -> dict[ProblemName, float]:
    """Return each problem's largest proven bound; never above the best plan, but for rounding."""
    bounds: dict[ProblemName, float] = {}
    values: dict[ProblemName, float] = {}
    for run in runs:
        bounds[run.problem] = max(bounds.get(run.problem, 0.0), run.bound)
        if run.value is not None:
            values[run.problem] = min(values.get(run.problem, run.value), run.value)
    return {name: min(bound, values.get(name, bound)) for name, bound in bounds.items()}


def _name(config: EvaluateConfig, graph: BenchmarkGraph, setting: Setting) -> ProblemName:
    memory = {None: "auto", True: "on", False: "off"}[config.memory]
    hardware, rules, decide, all_chips = setting
    cost = priced_by(hardware, config.cost)
    return ProblemName(graph.name, hardware, rules, memory, cost, decide, all_chips)


class _Bench:
    """Runs what the store does not hold yet."""

    def __init__(
        self, config: EvaluateConfig, store: RunStore, methods: Methods, report: Report
    ) -> None:
        self.config, self.store, self.methods, self.report = config, store, methods, report
        self.wanted, self.done = _wanted(config, methods), 0

    def runs(self, graph: BenchmarkGraph, name: ProblemName) -> Iterator[Run]:
        """Yield all runs of one problem, bound first."""
        keys = [
            (*name, graph.digest, method, seed, *budget_key(budget), self._weights(method))
            for method, seed, budget in self.wanted
        ]
        found = [self.store.find(key) for key in keys]
        missing = [w for w, run in zip(self.wanted, found, strict=True) if run is None]
        self.done += len(keys) - len(missing)
        if missing:
            self._complete(graph, name, missing)
        for key in keys:
            run = self.store.find(key)
            assert run is not None
            yield run

    def _complete(
        self, graph: BenchmarkGraph, name: ProblemName, missing: list[tuple[str, int, Budget]]
    ) -> None:
        from go_rl.compare.portfolio.portfolio import compile_methods

        self._say(name, "compiling (first time only)")
        config = self.config
        problem = named_problem(graph, name.setting, config.memory, config.cost)
        compile_methods(problem.objective)
        heuristic = _heuristic(problem)
        cold: dict[str, float | None] = {}
        for method, seed, budget in missing:
            if method not in cold:
                cold[method] = self._warm_up(method, problem, name)
            self._say(name, f"{method}, seed {seed}")
            facts = {
                "problem": name, "method": method, "seed": seed, "budget": budget_key(budget),
                "digest": graph.digest, "nodes": problem.graph.num_nodes,
                "heuristic": _usable(heuristic), "cold_seconds": cold[method],
                "weights": self._weights(method),
            }  # fmt: skip
            optimizer = self._optimizer(method, heuristic)
            self.store.add(Run(**facts, **_timed(optimizer, problem, budget, seed)))
            self.done += 1
        self._say(name, "done")

    def _weights(self, method: str) -> str:
        return "" if method == BOUND else self.methods.weights[method]

    def _say(self, name: ProblemName, what: str) -> None:
        self.report(self.done, f"{name.graph} on {name.setting.title}: {what}")

    def _optimizer(self, method: str, heuristic: Plan) -> Optimizer:
        optimizer = Exact() if method == BOUND else self.methods.make[method]()
        fresh = isinstance(optimizer, Annealing | Exact) and optimizer.start is None
        if fresh and heuristic.evaluation.status.ok:
            return replace(optimizer, start=np.asarray(heuristic.device))  # pyright: ignore[reportArgumentType]
        return optimizer

    def _warm_up(self, method: str, problem: Problem, name: ProblemName) -> float | None:
        """Compile a method that learns; return the seconds that it took."""
        if method not in self.methods.compiled:
            return None
        self._say(name, f"{method}, compiling")
        started = time.perf_counter()
        try:
            self.methods.make[method]().optimize(problem, Budget(samples=WARM_UP_SAMPLES), 0)
        except GoRLError:
            return None  # The timed run says why.
        return time.perf_counter() - started


def _heuristic(problem: Problem) -> Plan:
    from go_rl.compare.portfolio import METHODS

    make = next(iter(METHODS[problem.objective].values()))
    return make().optimize(problem, Budget(samples=100), 0)


def _usable(plan: Plan) -> float | None:
    return float(plan.value) if plan.evaluation.status.ok else None


def _timed(optimizer: Optimizer, problem: Problem, budget: Budget, seed: int) -> dict[str, Any]:
    started, before = time.perf_counter(), decoder_calls()
    try:
        plan = optimizer.optimize(problem, budget, seed)
    except GoRLError as error:
        return no_outcome(" ".join(str(error).split()), time.perf_counter() - started)
    calls, status = {"decoder_calls": decoder_calls() - before}, plan.evaluation.status
    if not status.ok:
        return calls | outcome(plan, str(status), plan.evaluation.detail or status.sentence)
    verdict = check_plan(plan, problem)
    judged = (OK, "") if verdict.ok else (REJECTED, verdict.sentence)
    return calls | outcome(plan, *judged)
