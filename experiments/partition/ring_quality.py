"""How good ring plans are: every method on every inference graph, and ours against CP-SAT alone.

Run: ``python -m experiments partition.ring_quality [--data DIR] [--seconds 10] [--rival]``, where
DIR holds ``dnn-partitioning/throughput`` and ``latency`` of github.com/msr-fiddle/dnn-partitioning
and ``pipedream/*.txt`` of github.com/msr-fiddle/pipedream (both MIT). With ``--rival`` only the
second table is made: 36 chips, compute alone, CP-SAT without a hint on two workers.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import product
from pathlib import Path

import numpy as np

from experiments.experiment import Experiment, timed
from experiments.page_text import rounded
from experiments.readers.resnet50 import write_resnet50_onnx
from experiments.rows import KeptRows, grouped, rows_table
from experiments.statistics import geometric_mean
from go_rl.compare.portfolio.portfolio import compile_methods, run
from go_rl.core import Budget, OpGraph, Plan, Problem, load_hardware, plan_for, rule_set
from go_rl.costs.models import ProblemOptions, make_problem
from go_rl.graphs.readers import load
from go_rl.objectives.ring.simulate.pricing import RingPricer
from go_rl.report.text_table import markdown_table
from go_rl.solvers import ring_instance
from go_rl.solvers.twins.cp_sat import CpSatOptions, optimise
from go_rl.verify.check_plan import Verdict, check_plan

BERT = "go_rl.graphs.zoo.bert:bert_base"
METHODS = ("greedy", "annealing", "metis", "linear-dp", "ideal-dp", "auto")
CHIPS = (6, 16, 36)
RULES = ("strict", "default")
RIVAL_CHIPS, RIVAL_RULES = 36, ("strict", "replicate", "default")
RIVAL = "ring_rival"
"""Page and rows of the second table."""
MILLISECONDS = 1e3


@dataclass(frozen=True)
class RingQuality(Experiment):
    """Options of this experiment."""

    data: Path | None = None
    """Folder with the graphs."""
    seconds: float = 10.0
    """Time of each method on each problem."""
    rival: bool = False
    """Make the table against CP-SAT instead."""
    rival_seconds: float = 90.0
    """Time of CP-SAT on each problem."""
    only: str = ""
    """Graphs whose name contains this."""
    most_nodes: int = 1_000_000
    """Larger graphs are left out."""
    seed: int = 0
    """Of every search."""

    def run(self) -> None:
        """Make one of the two tables."""
        (rival if self.rival else quality)(self)


@dataclass(frozen=True)
class Quality:
    """One method on one problem; the first four fields are its key."""

    graph: str
    chips: int
    rules: str
    method: str
    nodes: int
    t_max_ms: float
    """inf without a plan."""
    bound_ms: float
    """Lower bound that this run proved."""
    gap: float
    samples: int
    seconds: float
    verdict: str
    """Verdict of the independent checker."""


@dataclass(frozen=True)
class Rival:
    """Ours and CP-SAT on one problem; the first three fields are its key."""

    graph: str
    chips: int
    rules: str
    nodes: int
    ours_ms: float
    cp_sat_ms: float
    ratio: float
    """Ours / CP-SAT: below 1, ours is better."""
    ours_bound_ms: float
    cp_sat_bound_ms: float
    ours_seconds: float
    cp_sat_seconds: float
    ours_verdict: str
    cp_sat_verdict: str


def quality(options: RingQuality) -> None:
    """Every method on every graph."""
    table = options.kept_rows(Quality)
    for (name, read), chips, rules in product(_graphs(options).items(), CHIPS, RULES):
        missing = [m for m in METHODS if not table.has(name, chips, rules, m)]
        problem = _problem(read(), chips, rules) if missing else None
        if problem is None or problem.graph.num_nodes > options.most_nodes:
            continue
        for method in missing:
            table.add(_quality_row(problem, name, chips, method, options))
    if table.rows:
        _write_quality(table.rows, options)


def rival(options: RingQuality) -> None:
    """Ours against CP-SAT on every operator graph."""
    table = KeptRows(Rival, options.out / f"{RIVAL}.csv")
    for name, read in _graphs(options).items():
        if "operators/" not in name:
            continue
        for rules in RIVAL_RULES:
            if table.has(name, RIVAL_CHIPS, rules):
                continue
            problem = _problem(read(), RIVAL_CHIPS, rules)
            if problem.graph.num_nodes > options.most_nodes:
                continue
            free = replace(problem, edge_bytes=np.zeros_like(problem.edge_bytes))
            table.add(_rival_row(free, name, options))
    if table.rows:
        _write_rival(table.rows, options)


def _graphs(options: RingQuality) -> dict[str, Callable[[], OpGraph]]:
    """Name and reader of each inference graph."""
    found: dict[str, Callable[[], OpGraph]] = {
        "resnet50-onnx": _resnet50,
        "bert-base": partial(load, BERT),
    }
    if options.data is not None:
        root = options.data / "dnn-partitioning"
        root = root if root.is_dir() else options.data
        paths = sorted(root.glob("throughput/*/*_inference.json"))
        paths += sorted(root.glob("latency/*/*_inference.json"))
        if not paths:
            raise SystemExit(f"{options.data} holds no throughput/*/*_inference.json")
        for path in paths:
            name = str(path.relative_to(root).with_suffix("")).removesuffix("_inference")
            found[name] = partial(load, path)
        for path in sorted((options.data / "pipedream").glob("*.txt")):
            if path.name != "LICENSE.txt":
                found[f"pipedream/{path.stem}"] = partial(load, path)
    return {n: cache(r) for n, r in found.items() if options.only in n}


def _resnet50() -> OpGraph:
    with tempfile.TemporaryDirectory() as folder:
        return load(write_resnet50_onnx(Path(folder) / "resnet50.onnx", weights=False))


def _problem(graph: OpGraph, chips: int, rules: str) -> Problem:
    return make_problem(graph, load_hardware(f"ring{chips}"), ProblemOptions(rules=rule_set(rules)))


def _quality_row(
    problem: Problem, name: str, chips: int, method: str, options: RingQuality
) -> Quality:
    plan, seconds = _plan(problem, method, options)
    return Quality(
        graph=name, chips=chips, rules=problem.rules.name, method=method,
        nodes=problem.graph.num_nodes, t_max_ms=rounded(plan.value * MILLISECONDS),
        bound_ms=rounded(plan.bound * MILLISECONDS), gap=rounded(plan.gap), samples=plan.samples,
        seconds=round(seconds, 2), verdict=str(check_plan(plan, problem).status),
    )  # fmt: skip


def _plan(problem: Problem, method: str, options: RingQuality) -> tuple[Plan, float]:
    """The method's own plan (for ``auto`` the best of its stages) and the seconds it took."""
    compile_methods(problem.objective)
    budget = Budget(seconds=options.seconds)
    result, seconds = timed(lambda: run(problem, method, budget, options.seed))
    return (result.best if method == "auto" else result.plans[-1]), seconds


def _rival_row(problem: Problem, name: str, options: RingQuality) -> Rival:
    plan, seconds = _plan(problem, "auto", options)
    limits = CpSatOptions(options.rival_seconds, 2, options.seed)
    found, taken = timed(lambda: optimise(ring_instance(problem), limits))
    value, verdict = np.inf, str(found.status)
    if found.device is not None:
        theirs, said = _checked(problem, found.device)
        value, verdict = theirs.value, str(said.status)
    return Rival(
        graph=name, chips=RIVAL_CHIPS, rules=problem.rules.name, nodes=problem.graph.num_nodes,
        ours_ms=rounded(plan.value * MILLISECONDS), cp_sat_ms=rounded(value * MILLISECONDS),
        ratio=rounded(plan.value / value) if np.isfinite(plan.value) else np.inf,
        ours_bound_ms=rounded(plan.bound * MILLISECONDS),
        cp_sat_bound_ms=rounded(found.bound * MILLISECONDS), ours_seconds=round(seconds, 2),
        cp_sat_seconds=round(taken, 2), ours_verdict=str(check_plan(plan, problem).status),
        cp_sat_verdict=verdict,
    )  # fmt: skip


def _checked(problem: Problem, device: np.ndarray) -> tuple[Plan, Verdict]:
    """CP-SAT's plan, and what the checker says of it."""
    pricer = RingPricer(problem)
    plan = plan_for(
        problem, device=pricer.place(device)[0], replicas=pricer.replicas(device),
        evaluation=pricer.evaluate(device), bound=0.0, optimizer="cp-sat", seed=0, samples=1,
        wall_seconds=0.0,
    )  # fmt: skip
    return plan, check_plan(plan, problem)


def _best_bounds(rows: list[Quality]) -> dict[tuple[str, int, str], float]:
    problems = grouped(rows, lambda row: (row.graph, row.chips, row.rules))
    return {key: max(row.bound_ms for row in own) for key, own in problems.items()}


def _means(rows: list[Quality]) -> list[list[str]]:
    """Geometric means over the problems where every method has a plan."""
    bound = _best_bounds(rows)
    value = {(r.graph, r.chips, r.rules, r.method): r.t_max_ms for r in rows}
    lines = []
    for chips, rules in product(CHIPS, RULES):
        names = sorted({r.graph for r in rows if (r.chips, r.rules) == (chips, rules)})
        full = [
            g for g in names
            if all(np.isfinite(value.get((g, chips, rules, m), np.inf)) for m in METHODS)
            and bound[g, chips, rules] > 0
        ]  # fmt: skip
        for method in METHODS if full else ():
            mine = np.array([value[g, chips, rules, method] for g in full])
            first = np.array([value[g, chips, rules, "greedy"] for g in full])
            least = np.array([bound[g, chips, rules] for g in full])
            lines.append([
                str(chips), rules, method, f"{len(full)} of {len(names)}",
                f"{geometric_mean(mine / least):.4f}", f"{geometric_mean(first / mine):.4f}",
            ])  # fmt: skip
    return lines


def _write_quality(rows: list[Quality], options: RingQuality) -> None:
    head = ["chips", "rules", "method", "graphs", "T_max / best bound", "throughput / heuristic"]
    means = _means(rows)
    text = (
        f"# Ring plans, method by method\n\n{options.seconds:g} s for each method; geometric means "
        "over graphs on which every method has a plan. The best bound is the largest that any "
        f"method proved.\n\n{markdown_table(head, means, ('rules', 'method', 'graphs'))}\n"
        f"{rows_table(rows)}"
    )
    options.write_page(text)


def _write_rival(rows: list[Rival], options: RingQuality) -> None:
    ratios = [r.ratio for r in rows if 0 < r.ratio < np.inf]
    mean = geometric_mean(ratios)
    text = (
        f"# Ours against CP-SAT alone\n\n36 chips, compute only. `auto` in {options.seconds:g} s, "
        f"OR-Tools CP-SAT in {options.rival_seconds:g} s with 2 workers and no hint. Ratio ours / "
        f"CP-SAT: below 1, ours is better; geometric mean {mean:.4f} over {len(ratios)} problems."
        f"\n\n{rows_table(rows)}"
    )
    options.write_page(text, RIVAL)
