"""`evaluate`: methods on graphs at equal samples and equal seconds; resumable run by run."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from go_rl.core import (
    Budget,
    GoRLError,
    Objective,
    Optimizer,
    Plan,
    Problem,
    TrainingError,
    check_plan,
)
from go_rl.search import Annealing, Exact, Greedy
from go_rl.train.evaluated import (
    BOUND,
    Graph,
    Methods,
    check_setting,
    find_graphs,
    find_methods,
    named_problem,
)
from go_rl.train.run_store import (
    OK,
    REJECTED,
    ProblemName,
    Run,
    RunStore,
    budget_key,
    no_outcome,
    outcome,
)

WARM_UP_SAMPLES = 12
"""Samples of the run that compiles a learned method, before its timed runs."""


@dataclass(frozen=True)
class EvaluateConfig:
    """What is compared: every method on every graph, package and rule set, with every seed."""

    graphs: tuple[str, ...]
    """``zoo:NAME``, a whole split of the zoo such as ``zoo:test``, or files that go_rl reads."""
    packages: tuple[str, ...] = ("ring36",)
    """Presets or JSON files, with ring links."""
    rules: tuple[str, ...] = ("strict",)
    """Rule sets."""
    memory: bool | None = None
    """Must weights and live tensors fit? None: unless a profile is on foreign hardware."""
    methods: tuple[str, ...] = ("greedy", "random", "annealing")
    """Names of the portfolio's and of the learned methods."""
    samples: int | None = 200
    """Priced plans of each run; None: no limit."""
    seconds: float | None = None
    """Seconds of each run; None: no limit."""
    seeds: int = 3
    """Runs of each method on each problem, with seeds 0, 1, ..."""
    once: tuple[str, ...] = ("greedy", "exact")
    """Methods that do not depend on the seed and run with the first one only."""
    bound_seconds: float = 0.0
    """CP-SAT's time to raise each problem's proven bound, beside the methods; 0: not run."""

    def __post_init__(self) -> None:
        for name in ("graphs", "packages", "rules"):
            if not getattr(self, name):
                raise TrainingError(f"evaluate: {name} needs at least one entry")
        if self.seeds < 1:
            raise TrainingError(f"evaluate: seeds must be >= 1, not {self.seeds}")
        if not 0 <= self.bound_seconds < float("inf"):
            raise TrainingError(f"evaluate: bound_seconds must be >= 0, not {self.bound_seconds}")
        self.budget  # noqa: B018 - a budget checks itself

    @property
    def budget(self) -> Budget:
        """The limits of a run."""
        return Budget(self.samples, self.seconds)


@dataclass(frozen=True)
class Comparison:
    """All runs of a comparison."""

    config: EvaluateConfig
    methods: tuple[str, ...]
    """In the order in which tables list them."""
    runs: tuple[Run, ...]
    """One for each problem, method and seed."""
    bounds: Mapping[ProblemName, float] = field(default_factory=dict)
    """Best proven lower bound of each problem, seconds; 0: none."""


def evaluate(
    config: EvaluateConfig,
    folder: str | Path,
    report: Callable[[str], None] | None = None,
    methods: Mapping[str, Callable[[], Optimizer]] | None = None,
) -> Comparison:
    """Run every method on every problem with every seed, each with the same budget.

    Kernels are compiled, and solver, pricer and heuristic's plan of a problem made, before anything
    is timed; a learned method first runs for a dozen samples, and that time is reported apart.
    Annealing starts from the compiler heuristic's plan, the policies' first sample.

    Args:
        config: what is compared.
        folder: where finished runs are kept (``runs.jsonl``); those found there are not run again.
            Use another folder when a method itself has changed.
        report: is told what is running.
        methods: further optimizers by label, beside those of the configuration.

    Raises:
        GoRLError: an unknown graph, package, rule set or method; a folder that cannot be written.
            A method that raises one on a problem becomes a run with its sentence.
    """
    graphs = find_graphs(config.graphs)
    chosen = find_methods(config.methods, methods or {})
    names = [
        (graph, ProblemName(graph.name, package, rules, _word(config.memory)))
        for package in config.packages
        for rules in config.rules
        for graph in graphs
    ]
    for package in config.packages:
        for rules in config.rules:
            check_setting(package, rules)
    bench = _Bench(config, RunStore(folder), chosen, report or (lambda sentence: None), len(names))
    runs = [run for graph, name in names for run in bench.runs(graph, name)]
    kept = tuple(run for run in runs if run.method != BOUND)
    return Comparison(config, tuple(chosen.make), kept, best_bounds(runs))


def best_bounds(runs: list[Run]) -> dict[ProblemName, float]:
    """Return each problem's largest proven bound; never above the best plan, but for rounding."""
    bounds: dict[ProblemName, float] = {}
    values: dict[ProblemName, float] = {}
    for run in runs:
        bounds[run.problem] = max(bounds.get(run.problem, 0.0), run.bound)
        if run.value is not None:
            values[run.problem] = min(values.get(run.problem, run.value), run.value)
    return {name: min(bound, values.get(name, bound)) for name, bound in bounds.items()}


def _word(memory: bool | None) -> str:
    return {None: "auto", True: "on", False: "off"}[memory]


class _Bench:
    """Runs what the store does not hold yet."""

    def __init__(
        self,
        config: EvaluateConfig,
        store: RunStore,
        methods: Methods,
        tell: Callable[[str], None],
        problems: int,
    ) -> None:
        self.config, self.store, self.methods, self.tell = config, store, methods, tell
        self.problems, self.begun = problems, 0

    def runs(self, graph: Graph, name: ProblemName) -> Iterator[Run]:
        """Yield all runs of one problem, bound first."""
        self.begun += 1
        wanted = list(self._wanted())
        keys = [(*name, graph.digest, m, seed, *budget_key(b)) for m, seed, b in wanted]
        found = [self.store.find(key) for key in keys]
        if any(run is None for run in found):
            self._complete(graph, name, [w for w, f in zip(wanted, found, strict=True) if not f])
        for key in keys:
            run = self.store.find(key)
            assert run is not None
            yield run

    def _wanted(self) -> Iterator[tuple[str, int, Budget]]:
        if self.config.bound_seconds > 0:
            yield BOUND, 0, Budget(seconds=self.config.bound_seconds)
        for method in self.methods.make:
            seeds = 1 if method in self.config.once else self.config.seeds
            for seed in range(seeds):
                yield method, seed, self.config.budget

    def _complete(
        self, graph: Graph, name: ProblemName, missing: list[tuple[str, int, Budget]]
    ) -> None:
        from go_rl.portfolio import compile_kernels

        self._say(name, "kernels (compiled on the first run)")
        compile_kernels(Objective.RING)
        self._say(name, "problem")
        problem = named_problem(graph, name.package, name.rules, self.config.memory)
        heuristic = Greedy().optimize(problem, Budget(samples=100), 0)
        cold: dict[str, float | None] = {}
        for method, seed, budget in missing:
            if method not in cold:
                self._say(name, f"{method}, compiling")
                cold[method] = self._warm_up(method, problem)
            self._say(name, f"{method}, seed {seed}")
            facts = {
                "problem": name, "method": method, "seed": seed, "budget": budget_key(budget),
                "digest": graph.digest, "nodes": problem.graph.num_nodes,
                "heuristic": _usable(heuristic), "cold_seconds": cold[method],
            }  # fmt: skip
            found = _timed(self._optimizer(method, heuristic), problem, budget, seed)
            self.store.add(Run(**facts, **found))

    def _say(self, name: ProblemName, what: str) -> None:
        where = f"{name.graph} on {name.package}, rules {name.rules}"
        self.tell(f"{self.begun} of {self.problems}: {where}: {what}")

    def _optimizer(self, method: str, heuristic: Plan) -> Optimizer:
        optimizer = Exact() if method == BOUND else self.methods.make[method]()
        fresh = isinstance(optimizer, Annealing | Exact) and optimizer.start is None
        if fresh and heuristic.evaluation.status.ok:
            return replace(optimizer, start=np.asarray(heuristic.device))  # pyright: ignore[reportArgumentType]
        return optimizer

    def _warm_up(self, method: str, problem: Problem) -> float | None:
        """Compile a method that learns; return the seconds that it took."""
        if method not in self.methods.compiled:
            return None
        started = time.perf_counter()
        try:
            self.methods.make[method]().optimize(problem, Budget(samples=WARM_UP_SAMPLES), 0)
        except GoRLError:
            return None  # The timed run says why.
        return time.perf_counter() - started


def _usable(plan: Plan) -> float | None:
    return float(plan.value) if plan.evaluation.status.ok else None


def _timed(optimizer: Optimizer, problem: Problem, budget: Budget, seed: int) -> dict[str, Any]:
    started = time.perf_counter()
    try:
        plan = optimizer.optimize(problem, budget, seed)
    except GoRLError as error:
        return no_outcome(" ".join(str(error).split()), time.perf_counter() - started)
    status = plan.evaluation.status
    if not status.ok:
        return outcome(plan, str(status), plan.evaluation.detail or status.sentence)
    verdict = check_plan(plan, problem)
    return outcome(plan, OK if verdict.ok else REJECTED, "" if verdict.ok else verdict.sentence)
