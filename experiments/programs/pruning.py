"""Hardware-aware pruning of measured programs (Verma et al. 2023, section 3.2).

Rules, in this order; each drops rows of a task on one target:

- *invalid*: seconds are not finite and above 0;
- *slow*: seconds are more than ``slowest`` times those of the task's fastest program there;
- *alike*: of tasks with one kernel shape (the same operator, sizes alike to half a power of two)
  only the ``per_shape`` of most weight stay;
- *sparse*: of each task that is left, a share of the rows, so that in all ``share`` of the rows are
  dropped. The share that stays is proportional to the task's rows. Those that stay lie evenly in
  the order of seconds, the fastest among them.

Pairs of one task teach order, and a task of few measurements has few pairs: it gives its rows
first, as the paper leaves out tasks with too few measurements.

The weight of a task is the rank of its FLOP times the number of networks that have it: what
contributes most to networks is learned best.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log2

import numpy as np
from jaxtyping import Bool, Float64, Int64

from go_rl.core import TrainingError
from go_rl.core.config_checks import COUNT, LESS_THAN_ALL, Range, check_ranges
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

    def __post_init__(self) -> None:
        check_ranges(
            self, "pruning", TrainingError,
            share=LESS_THAN_ALL, slowest=Range(1, above=True), per_shape=COUNT,
        )  # fmt: skip


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
    best = least_of_group(np.where(valid, seconds, np.inf), inputs.group)
    fast = valid & ~(seconds > rules.slowest * best)
    kept = fast & _of_shapes(inputs, fast, rules.per_shape)
    wanted = round((1 - rules.share) * len(seconds))
    spread = _spread(seconds, group, kept, wanted)
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


def task_weights(inputs: ProgramInputs) -> Float64[np.ndarray, "T"]:
    """Return [T] the weight of each task, see above; tasks that are not known weigh most."""
    weight = np.full(len(inputs.tasks), len(inputs.tasks))
    share = {
        i: task.flops * max(len(inputs.networks[i]), 1)
        for i, task in enumerate(inputs.tasks)
        if task is not None
    }
    rank = np.argsort(np.argsort(list(share.values()), kind="stable"), kind="stable")
    weight[list(share)] = rank
    return weight


def _of_shapes(
    inputs: ProgramInputs, kept: Bool[np.ndarray, "P"], most: int
) -> Bool[np.ndarray, "P"]:
    """Rows of tasks that are among the heaviest of their kernel shape."""
    weight = task_weights(inputs)
    by_shape: dict[tuple[str, ...], list[int]] = {}
    for number in np.unique(inputs.task[kept]).tolist():
        task = inputs.tasks[number]
        shape = (f"unknown {number}",) if task is None else kernel_shape(task)
        by_shape.setdefault(shape, []).append(number)
    heaviest = [sorted(some, key=lambda i: -weight[i])[:most] for some in by_shape.values()]
    return np.isin(inputs.task, [number for some in heaviest for number in some])


def _spread(
    seconds: Float64[np.ndarray, "P"],
    group: Int64[np.ndarray, "P"],
    kept: Bool[np.ndarray, "P"],
    wanted: int,
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
    share = sizes / sizes.max()
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
