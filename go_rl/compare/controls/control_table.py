"""Comparison of a policy with its control arms and the classical methods.

Runs are paired by problem and seed; a method that runs with one seed is paired with every one. The
ratio of a pair is the other method's seconds over the policy's: above 1, the policy is ahead.
Ratios are averaged (geometrically) over the seeds of a problem, then over the problems of a family,
then over families, all of equal weight; its interval is a bootstrap over families (Efron,
Tibshirani, "An introduction to the bootstrap", 1993, chapter 13: percentiles), where graphs belong
to families; a graph that belongs to none is one of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from jaxtyping import Float64

from go_rl.compare.benchmark.config import EvaluateConfig
from go_rl.compare.benchmark.evaluate import Comparison, Report, evaluate, number_of_runs
from go_rl.compare.benchmark.run_store import ProblemName, Run, Setting
from go_rl.compare.benchmark.summary import by_method, settings
from go_rl.core import SearchError

RESAMPLES = 10_000
"""Bootstrap samples of the families."""
INTERVAL = (2.5, 97.5)
"""Percentiles of the interval."""


@dataclass(frozen=True)
class ControlRow:
    """One method beside a policy; nan or None where there is no number."""

    setting: Setting
    budget: str
    """Budget as text, such as ``200 samples`` or ``3 s``."""
    policy: str
    """Label of the policy."""
    method: str
    improvement: float
    """Median over seeds of the median over problems: throughput over the reference plan's."""
    least: float
    """Smallest median over problems of any seed."""
    most: float
    """Largest median over problems of any seed."""
    ratio: float
    """Seconds of the plan over those of the policy's plan: above 1, the policy is ahead."""
    low: float
    """Lower end of the ratio's interval; nan with fewer than two families."""
    high: float
    """Upper end."""
    problems: int
    """Problems in the ratio."""
    families: int
    """Families in the ratio."""
    samples: float
    """Samples of a run, median over runs."""
    decoder_calls: float
    """Median over runs; nan where they were not counted."""
    seconds: float
    """Median over runs, compilation left out."""
    cold_seconds: float | None
    """Warm-up run, compilation included, largest over runs; None: nothing to compile."""

    @property
    def verdict(self) -> str:
        """Verdict: ``policy``, ``method``, or ``level`` where the interval holds 1; empty for
        the policy itself and without an interval."""
        if not np.isfinite(self.low):
            return ""
        if self.low > 1:
            return "policy"
        return "method" if self.high < 1 else "level"


@dataclass(frozen=True)
class ControlComparison:
    """A comparison with control arms: the same methods under one budget after the other."""

    comparisons: tuple[Comparison, ...]
    """At equal samples, then at equal seconds, as far as asked for."""
    rows: tuple[ControlRow, ...]


def evaluate_controls(
    config: EvaluateConfig, folder: str | Path, report: Report | None = None
) -> ControlComparison:
    """Run the methods of a configuration with ``controls``, once for each of its budgets.

    Arguments and errors as for `evaluate`.
    """
    done, found = 0, []
    for one in budgets(config):
        found.append(evaluate(one, folder, _after(done, report)))
        done += number_of_runs(one)
    return ControlComparison(tuple(found), control_rows(found))


def _after(done: int, report: Report | None) -> Report | None:
    """Report to the same, with this many runs done before."""
    return None if report is None else lambda count, sentence: report(done + count, sentence)


def budgets(config: EvaluateConfig) -> list[EvaluateConfig]:
    """Return the configuration with each of its limits alone: samples, then seconds."""
    samples, seconds = config.budget.samples, config.budget.seconds
    alone = [] if samples is None else [replace(config, samples=samples, seconds=None)]
    if seconds is not None:
        alone.append(replace(config, samples=None, seconds=seconds))
    return alone


def control_rows(comparisons: Sequence[Comparison]) -> tuple[ControlRow, ...]:
    """Return a row for each setting, policy, budget and method beside it, the policy's own first.

    Raises:
        SearchError: no control arms were run.
    """
    rows = [
        row
        for comparison in comparisons
        for setting in settings(comparison)
        for policy, arms in comparison.arms.items()
        if arms
        for row in _rows_of(comparison, setting, policy, arms)
    ]
    if not rows:
        raise SearchError("evaluate: no control arms were run; ask for them with controls")
    order = {key: i for i, key in enumerate(dict.fromkeys((r.setting, r.policy) for r in rows))}
    return tuple(sorted(rows, key=lambda row: order[row.setting, row.policy]))


def _rows_of(
    comparison: Comparison, setting: Setting, policy: str, arms: Sequence[str]
) -> list[ControlRow]:
    """Rows of one policy: itself, its arms, and the methods that are no policy."""
    runs = by_method(comparison, setting)
    policies = {*comparison.arms, *(arm for found in comparison.arms.values() for arm in found)}
    others = [name for name in comparison.methods if name not in policies]
    config = comparison.config
    budget = (
        f"{config.samples:,} samples" if config.samples is not None else f"{config.seconds:g} s"
    )
    return [
        _row(setting, budget, policy, runs[name], runs[policy], comparison.families)
        for name in (policy, *arms, *others)
    ]


def _row(
    setting: Setting,
    budget: str,
    policy: str,
    runs: Sequence[Run],
    own: Sequence[Run],
    families: Mapping[str, str],
) -> ControlRow:
    medians = _medians(runs)
    itself = runs[0].method == policy
    logs = {} if itself else paired_logs(runs, own)
    of_family: dict[str, list[float]] = {}
    for problem, log in logs.items():
        of_family.setdefault(families[problem.graph], []).append(log)
    means = np.array([np.mean(found) for found in of_family.values()])
    low, high = bootstrap(means)
    calls = [run.decoder_calls for run in runs if run.decoder_calls is not None]
    cold = [run.cold_seconds for run in runs if run.cold_seconds is not None]
    return ControlRow(
        setting=setting,
        budget=budget,
        policy=policy,
        method=runs[0].method,
        improvement=float(np.median(medians)) if len(medians) else float("nan"),
        least=min(medians, default=float("nan")),
        most=max(medians, default=float("nan")),
        ratio=float(np.exp(means.mean())) if len(means) else float("nan"),
        low=float(np.exp(low)),
        high=float(np.exp(high)),
        problems=len(logs),
        families=len(means),
        samples=float(np.median([run.samples for run in runs])),
        decoder_calls=float(np.median(calls)) if calls else float("nan"),
        seconds=float(np.median([run.seconds for run in runs])),
        cold_seconds=max(cold) if cold else None,
    )


def paired_logs(runs: Sequence[Run], own: Sequence[Run]) -> dict[ProblemName, float]:
    """Return log(seconds of a method / seconds of the policy) by problem, the mean over seeds.

    A run without a plan stands for the reference plan, with which a user is left then; a problem
    where that has none either is left out.
    """
    theirs = {(run.problem, run.seed): _seconds(run) for run in runs}
    only = {run.seed for run in runs}
    logs: dict[ProblemName, list[float]] = {}
    for run in own:
        seed = run.seed if len(only) > 1 else min(only)
        mine, other = _seconds(run), theirs.get((run.problem, seed))
        if mine is not None and other is not None:
            logs.setdefault(run.problem, []).append(float(np.log(other / mine)))
    return {problem: float(np.mean(found)) for problem, found in logs.items()}


def bootstrap(means: Float64[np.ndarray, "F"]) -> tuple[float, float]:
    """Return the 95 % interval of the mean of families by resampling them; nan of fewer than 2."""
    if len(means) < 2:
        return float("nan"), float("nan")
    rows = np.random.default_rng(0).integers(0, len(means), (RESAMPLES, len(means)))
    low, high = np.percentile(means[rows].mean(axis=1), INTERVAL)
    return float(low), float(high)


def _medians(runs: Sequence[Run]) -> list[float]:
    """The median improvement over problems, for each seed."""
    by_seed: dict[int, list[float]] = {}
    for run in runs:
        seconds = _seconds(run)
        if run.heuristic is not None and seconds is not None:
            by_seed.setdefault(run.seed, []).append(run.heuristic / seconds)
    return [float(np.median(found)) for found in by_seed.values()]


def _seconds(run: Run) -> float | None:
    return run.heuristic if run.value is None else run.value
