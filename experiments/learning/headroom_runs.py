"""Runs whose headroom is scored: policies, their control arms, learning and classical methods.

A policy's zero-shot run has `MOST` samples; what it had after fewer stands in its curve, for its
draws do not depend on the count. Classical methods, which may plan with the count, run once for
each of `SAMPLES`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from go_rl.compare.benchmark.config import EvaluateConfig
from go_rl.compare.benchmark.evaluate import evaluate
from go_rl.compare.benchmark.run_store import Run
from go_rl.core import Optimizer
from go_rl.graphs.zoo.problems import ZooProblem
from go_rl.objectives.methods import LinearDP
from go_rl.policy.config import CONTROLS
from go_rl.policy.controls import controlled_name
from go_rl.policy.learn.config import FINE_TUNING
from go_rl.policy.learn.fine_tune import FineTuned
from go_rl.policy.policy_search import PolicySearch
from go_rl.policy.weights import Weights, load_weights

SAMPLES = (20, 200)
"""Counts at which plans are scored; the last is that of every learned run."""
MOST = SAMPLES[-1]
CLASSICAL = {
    "ring": ("annealing", "local-search", "unit-annealing", "metis", "random"),
    "makespan": ("composed", "annealing", "heft", "expert", "metis", "random"),
}
"""Methods that do not learn, at equal samples."""
ORDERS = {"linear-dp": lambda: LinearDP(orders=MOST)}
"""Dynamic programming over new orders up to the count; the method of that name tries 40."""
RIVALS = {"ring": (*ORDERS, *CLASSICAL["ring"]), "makespan": CLASSICAL["makespan"]}
TUNED, SCRATCH, PLACEMENT = "fine-tuned", "scratch", "placement"
"""Words after the name of weights; without them it is zero-shot, of orders on a ring."""
ROUNDING = 1e-9
"""Relative error of a threshold that was computed from a plan's own seconds."""
Factory = Callable[[], Optimizer]
Say = Callable[[int, str], None]


@dataclass(frozen=True)
class Plans:
    """What the runs of one method on one problem found, one entry a seed."""

    seconds: Mapping[int, tuple[float, ...]]
    """Seconds an iteration of the best plan by count of samples; inf: no plan."""
    runs: tuple[Run, ...]
    """Of the largest count."""


def zero_shot(weights: Weights) -> dict[str, Factory]:
    """Return the searches of a policy and of its control arms, by label."""
    return _with_arms(weights, weights.name, "order")


def placing(weights: Weights) -> dict[str, Factory]:
    """Return the same for chips of a ring, which SAMPLE makes legal, at three times the cost."""
    return _with_arms(weights, f"{weights.name} {PLACEMENT}", "placement")


def _with_arms(weights: Weights, label: str, group: str) -> dict[str, Factory]:
    return {controlled_name(label, arm): _search(weights, group, arm) for arm in (None, *CONTROLS)}


def learning(weights: Weights) -> dict[str, Factory]:
    """Return fine-tuning of a policy, and training of the same network from fresh weights."""
    agent = weights.agent
    config = FINE_TUNING.get(agent.config.kind)
    fresh = None if config is None else replace(config, widen=1.0, first=1)
    return {
        f"{weights.name} {TUNED}": lambda: FineTuned(agent),
        f"{weights.name} {SCRATCH}": lambda: FineTuned(agent, config=fresh, control="untrained"),
    }


def _search(weights: Weights, group: str, arm: str | None) -> Factory:
    return lambda: PolicySearch(weights.agent, group, control=arm)


def weights_of(names: Iterable[str], objective: str) -> list[Weights]:
    """Return the weights among these, by name or file, that are of an objective."""
    found = [load_weights(name) for name in names]
    return [weights for weights in found if str(weights.agent.objective) == objective]


def make_runs(
    problem: ZooProblem, methods: Mapping[str, Factory], seeds: int, folder: Path, say: Say
) -> list[Run]:
    """Make the missing runs of learned methods on a problem; return them all."""
    return list(evaluate(config_of(problem, MOST, seeds, ()), folder, say, methods).runs)


def classical_runs(problem: ZooProblem, seeds: int, folder: Path, say: Say) -> list[Run]:
    """Make the missing runs of `CLASSICAL` on a problem; return them all."""
    methods = CLASSICAL[problem.objective]
    further = ORDERS if problem.objective == "ring" else {}
    found = [
        evaluate(config_of(problem, samples, seeds, methods), folder, say, further).runs
        for samples in SAMPLES
    ]
    return [run for runs in found for run in runs]


def config_of(
    problem: ZooProblem, samples: int, seeds: int, methods: tuple[str, ...]
) -> EvaluateConfig:
    """Return the comparison on one problem: memory checked, analytical costs, as R and B have."""
    ring = problem.objective == "ring"
    return EvaluateConfig(
        graphs=(f"zoo:{problem.graph}",), hardware=(problem.hardware,),
        decide=None if ring else ",".join(problem.decisions), cost="analytical", memory=True,
        all_chips=problem.all_chips, methods=methods, samples=samples, seeds=seeds,
    )  # fmt: skip


def plans_by_method(runs: Sequence[Run]) -> dict[str, Plans]:
    """Return what every method found on a problem, of its runs of all counts."""
    found: dict[str, dict[int, list[Run]]] = {}
    for run in runs:
        assert run.budget[0] is not None
        found.setdefault(run.method, {}).setdefault(run.budget[0], []).append(run)
    return {method: _plans(by_count) for method, by_count in found.items()}


def _plans(by_count: Mapping[int, list[Run]]) -> Plans:
    last = by_count[max(by_count)]
    seconds = {
        count: tuple(seconds_after(run, count) for run in by_count.get(count, last))
        for count in SAMPLES
    }
    return Plans(seconds, tuple(last))


def seconds_after(run: Run, samples: int) -> float:
    """Return the seconds an iteration of a run's best plan after so many samples; inf: none."""
    if run.value is None:
        return np.inf
    if run.budget[0] is not None and samples >= run.budget[0]:
        return run.value
    return min((value for count, _, value in run.curve if count <= samples), default=np.inf)


def samples_to(run: Run, seconds: float) -> int | None:
    """Return after how many samples a run had a plan of at most these seconds; None: never."""
    enough = seconds * (1 + ROUNDING)
    return min((count for count, _, value in run.curve if value <= enough), default=None)
