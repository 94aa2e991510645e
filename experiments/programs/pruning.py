"""Hardware-aware pruning of measured programs (Verma et al. 2023, section 3.2).

Rules, in this order; each drops rows of a task on one target:

- *invalid*: seconds are not finite and above 0;
- *slow*: seconds are more than ``slowest`` times those of the task's fastest program there;
- *alike*: of tasks with one kernel shape (the same operator, sizes alike to half a power of two)
  only the ``per_shape`` of most weight stay;
- *sparse*: of each task that is left, a share of the rows, so that in all ``share`` of the rows are
  dropped. The share that stays grows with the task's rows (their number to the power ``density``)
  and with its weight. Those that stay lie evenly in the order of seconds, the fastest among them.

Pairs of one task teach order, and a task of few measurements has few pairs: it gives its rows
first, as the paper leaves out tasks with too few measurements.

The weight of a task is the rank of its FLOP times the number of networks that have it, from
``lightest`` for the first to 1 for the last: what contributes most to networks is learned best.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log2

import numpy as np
from jaxtyping import Bool, Float64, Int64

from go_rl.core import TrainingError
from go_rl.costs.learning.metrics import groups_of, least_of_group
from go_rl.costs.programs.learn.examples import ProgramExamples, ProgramInputs
from go_rl.costs.programs.workloads import TensorTask

LEAST = 2
"""Programs of a task on a target that `sparse` leaves: fewer have no order."""


@dataclass(frozen=True)
class PruneRules:
    """See above."""

    share: float = 0.45
    """Of the rows that are dropped in all; more are where the first rules drop more."""
    slowest: float = 100.0
    """Lower bounds cost accuracy: unpruned programs are judged by their order, slow ones too."""
    per_shape: int = 8
    density: float = 1.0
    lightest: float = 1.0
    """1: FLOP do not count."""

    def __post_init__(self) -> None:
        if not 0 <= self.share < 1:
            raise TrainingError(f"pruning: share must lie in [0, 1), not {self.share}")
        if not self.slowest > 1:
            raise TrainingError(f"pruning: slowest must be above 1, not {self.slowest}")
        if self.per_shape < 1:
            raise TrainingError(f"pruning: per_shape must be >= 1, not {self.per_shape}")
        if not self.density >= 0:
            raise TrainingError(f"pruning: density must be >= 0, not {self.density}")
        if not 0 < self.lightest <= 1:
            raise TrainingError(f"pruning: lightest must lie in (0, 1], not {self.lightest}")


@dataclass(frozen=True, eq=False)
class PrunedRows:
    """What pruning leaves of ``P`` examples."""

    rows: Int64[np.ndarray, "K"]
    """[K] that are kept, ascending."""
    dropped: tuple[tuple[str, int], ...]
    """Rows dropped, by rule."""

    @property
    def share(self) -> float:
        """Of the rows that were dropped."""
        lost = sum(count for _, count in self.dropped)
        return lost / (lost + len(self.rows))


def prune(examples: ProgramExamples, rules: PruneRules | None = None) -> PrunedRows:
    """Return the rows of training examples that the rules keep.

    Raises:
        TrainingError: nothing is left.
    """
    rules = rules or PruneRules()
    inputs, seconds = examples.inputs, examples.seconds
    valid = np.isfinite(seconds) & (seconds > 0)
    group = inputs.task * len(inputs.targets) + inputs.target
    best = least_of_group(np.where(valid, seconds, np.inf), group)
    fast = valid & ~(seconds > rules.slowest * best)
    rank = task_weights(inputs, 0.0)
    kept = fast & _of_shapes(inputs, rank, fast, rules.per_shape)
    wanted = round((1 - rules.share) * len(seconds))
    weight = rules.lightest + (1 - rules.lightest) * rank[inputs.task]
    spread = _by_density(seconds, group, weight, kept, wanted, rules.density)
    masks = (valid, fast, kept, spread)
    left = [len(seconds), *(int(mask.sum()) for mask in masks)]
    names = ("invalid", "slow", "alike", "sparse")
    dropped = tuple((name, left[i] - left[i + 1]) for i, name in enumerate(names))
    if not spread.any():
        raise TrainingError(
            f"pruning: nothing is left of {len(seconds)} programs: "
            + ", ".join(f"{count} are {name}" for name, count in dropped)
        )
    return PrunedRows(np.flatnonzero(spread), dropped)


def kernel_shape(task: TensorTask) -> tuple[str, ...]:
    """Return what tasks of one kernel shape have in common: the operator, its sizes to half a power
    of two, and the steps of an element-wise group."""
    sizes = (f"{name}={round(2 * log2(1 + size))}" for name, size in task.named.items())
    return (task.op, *sizes, *task.steps)


def task_weights(inputs: ProgramInputs, lightest: float) -> Float64[np.ndarray, "T"]:
    """Return [T] the weight of each task, see above; tasks that are not known weigh 1."""
    known = [i for i, task in enumerate(inputs.tasks) if task is not None]
    weight = np.ones(len(inputs.tasks))
    if known:
        share = [_contribution(inputs, i) for i in known]
        rank = np.argsort(np.argsort(share, kind="stable"), kind="stable")
        weight[known] = lightest + (1 - lightest) * rank / max(len(known) - 1, 1)
    return weight


def _contribution(inputs: ProgramInputs, number: int) -> float:
    task = inputs.tasks[number]
    return 0.0 if task is None else float(task.flops) * max(len(inputs.networks[number]), 1)


def _of_shapes(
    inputs: ProgramInputs, weight: Float64[np.ndarray, "T"], kept: Bool[np.ndarray, "P"], most: int
) -> Bool[np.ndarray, "P"]:
    """Rows of tasks that are among the heaviest of their kernel shape."""
    by_shape: dict[tuple[str, ...], list[int]] = {}
    for number in np.unique(inputs.task[kept]).tolist():
        task = inputs.tasks[number]
        shape = (f"unknown {number}",) if task is None else kernel_shape(task)
        by_shape.setdefault(shape, []).append(number)
    heaviest = [sorted(some, key=lambda i: -weight[i])[:most] for some in by_shape.values()]
    return np.isin(inputs.task, [number for some in heaviest for number in some])


def _by_density(
    seconds: Float64[np.ndarray, "P"],
    group: Int64[np.ndarray, "P"],
    weight: Float64[np.ndarray, "P"],
    kept: Bool[np.ndarray, "P"],
    wanted: int,
    density: float,
) -> Bool[np.ndarray, "P"]:
    """Rows such that about ``wanted`` are left, see *sparse*."""
    rows = np.flatnonzero(kept)
    if len(rows) <= wanted:
        return kept
    ordered = [
        rows[members][np.argsort(seconds[rows[members]], kind="stable")]
        for members in groups_of(group[rows])
    ]
    sizes = np.array([len(some) for some in ordered])
    share = np.array([weight[some[0]] for some in ordered]) * (sizes / sizes.max()) ** density
    low, high = 0.0, 1.0 / float(share.min())
    for _ in range(50):
        level = (low + high) / 2
        low, high = (low, level) if _quotas(sizes, share, level).sum() > wanted else (level, high)
    chosen = np.zeros(len(kept), bool)
    for some, quota in zip(ordered, _quotas(sizes, share, low).tolist(), strict=True):
        chosen[some[np.round(np.linspace(0, len(some) - 1, quota)).astype(int)]] = True
    return chosen


def _quotas(
    sizes: Int64[np.ndarray, "G"], share: Float64[np.ndarray, "G"], level: float
) -> Int64[np.ndarray, "G"]:
    """[G] rows that groups keep: level times its share of each."""
    quota = np.round(np.minimum(level * share, 1.0) * sizes).astype(np.int64)
    return np.maximum(quota, np.minimum(sizes, LEAST))
