"""Which programs to measure next: tasks by k-means, programs by disagreement, and chance.

Run: ``python -m experiments programs.program_choice``. A few random tasks are measured at first;
each arm then chooses as many further programs, and boosted trees on the code of loops learn both.
All times are those of the data set: nothing is measured anew.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product

import numpy as np

from experiments.experiment import Experiment
from experiments.page_text import grid_table
from experiments.statistics import with_range
from go_rl.costs.learning.metrics import mape, pair_accuracy
from go_rl.costs.learning.splits import HELD_OUT, by_model
from go_rl.costs.programs.learn.choose_programs import (
    program_features,
    programs_in_turn,
    select_tasks,
)
from go_rl.costs.programs.learn.code_inputs import code_tree_features
from go_rl.costs.programs.learn.examples import ProgramExamples
from go_rl.costs.programs.learn.reading import read_examples
from go_rl.costs.trees.boosted import BoostedConfig, BoostedTrees, SummedKernels

KMEANS, RANDOM_TASKS, DISAGREEMENT, DISAGREEMENT_EVEN, RANDOM, RANDOM_EVEN, NONE = (
    "tasks by k-means", "random tasks", "programs of most disagreement",
    "… as many of each task", "random programs", "random programs, as many of each task",
    "nothing more",
)  # fmt: skip
ARMS = (KMEANS, RANDOM_TASKS, DISAGREEMENT, DISAGREEMENT_EVEN, RANDOM, RANDOM_EVEN)
FIELDS = {
    "mape": ("error on the held-out networks, MAPE in %", 1.0),
    "pairs": ("pairs of a task's programs there in the right order, %", 100.0),
    "tasks": ("tasks learned", 1.0),
}
"""Titles of the tables, and scales of their numbers."""
TREES = BoostedConfig(trees=300, learning_rate=0.08, column_share=0.2)


@dataclass(frozen=True)
class ChoiceRow:
    """One fit."""

    codegen: str
    arm: str
    chosen: int
    """Programs chosen."""
    seed: int
    tasks: int
    """Tasks among all that were learned."""
    mape: float
    """Of the held-out networks, percent."""
    pairs: float
    """Share of pairs of programs of a task there in the right order."""


@dataclass(frozen=True)
class ProgramChoice(Experiment):
    """Options of this table."""

    data: str = "programs-1"
    """Data set."""
    codegen: tuple[str, ...] = ("x86-64-v4", "x86-64-v3")
    """Levels of x86-64 whose programs are chosen and judged."""
    first: int = 15
    """Random tasks measured before anything is chosen."""
    counts: tuple[int, ...] = (100, 250, 500, 1000, 2000)
    """Programs chosen."""
    seeds: int = 5
    members: int = 5
    """Trees of the committee."""

    def run(self) -> None:
        """Run what is missing; write the page."""
        rows = self.kept_rows(ChoiceRow)
        pools = [_Pool(self, level) for level in self.codegen]
        arms = [(NONE, 0), *((arm, count) for count in self.counts for arm in ARMS)]
        for seed, pool in product(range(self.seeds), pools):
            start = _Start(pool, seed)
            asked = [each for each in arms if each[1] <= len(start.rest)]
            rows.fill(
                ((pool.codegen, *each, seed) for each in asked),
                lambda _level, arm, count, _seed, start=start: start.row(arm, count),
            )
        self.write_page(_page(self, rows.rows, pools))


@dataclass(frozen=True, eq=False)
class _Pool:
    """Programs that may be chosen, and those that judge."""

    options: ProgramChoice
    codegen: str

    @cached_property
    def examples(self) -> ProgramExamples:
        """Programs of the level."""
        every = read_examples(self.options.data)
        level = [each.codegen == self.codegen for each in every.inputs.targets]
        return every.take(np.flatnonzero(np.array(level)[every.inputs.target]))

    @cached_property
    def features(self) -> np.ndarray:
        """[P, F] code of loops."""
        return code_tree_features(self.examples.inputs)

    @cached_property
    def learned(self) -> np.ndarray:
        """Rows of networks that are not held out."""
        split = by_model(self.examples.inputs.task, self.examples.inputs.networks, HELD_OUT)
        return np.sort(np.concatenate([split.train, split.validation, split.test]))

    @cached_property
    def judged(self) -> np.ndarray:
        """Rows of the networks held out."""
        return np.setdiff1d(np.arange(len(self.examples.seconds)), self.learned)

    def fitted(self, rows: np.ndarray, seed: int) -> BoostedTrees:
        """Return trees that learned some rows."""
        kernels = SummedKernels(self.features[rows], self.examples.seconds[rows])
        return BoostedTrees.fit(kernels, replace(TREES, seed=seed))


@dataclass(frozen=True, eq=False)
class _Start:
    """What was measured before anything is chosen."""

    pool: _Pool
    seed: int

    @cached_property
    def measured(self) -> np.ndarray:
        """Rows of the first tasks."""
        task, rows = self.pool.examples.inputs.task, self.pool.learned
        rng = np.random.default_rng(self.seed)
        first = rng.choice(np.unique(task[rows]), self.pool.options.first, replace=False)
        return rows[np.isin(task[rows], first)]

    @cached_property
    def rest(self) -> np.ndarray:
        """Rows that may be chosen."""
        return np.setdiff1d(self.pool.learned, self.measured)

    @cached_property
    def doubtful(self) -> np.ndarray:
        """Places in `rest`, those first whose logarithms a committee of trees disagrees on most."""
        rng, task = np.random.default_rng((self.seed, 1)), self.pool.examples.inputs.task
        known = np.unique(task[self.measured])
        logs = []
        for member in range(self.pool.options.members):
            drawn = rng.choice(known, len(known))
            rows = np.concatenate([self.measured[task[self.measured] == each] for each in drawn])
            fitted = self.pool.fitted(rows, member)
            logs.append(np.log(fitted.predict(self.pool.features[self.rest])))
        return np.argsort(-np.std(logs, axis=0), kind="stable")

    def chosen(self, arm: str, count: int) -> np.ndarray:
        """Return the rows that an arm chooses."""
        rng = np.random.default_rng((self.seed, 2))
        task = self.pool.examples.inputs.task[self.rest]
        orders = {
            KMEANS: lambda: _of_tasks(task, self._by_kmeans(task, count)),
            RANDOM_TASKS: lambda: _of_tasks(task, rng.permutation(np.unique(task))),
            DISAGREEMENT: lambda: self.doubtful,
            DISAGREEMENT_EVEN: lambda: _in_turn(task, self.doubtful),
            RANDOM: lambda: rng.permutation(len(task)),
            RANDOM_EVEN: lambda: _in_turn(task, rng.permutation(len(task))),
            NONE: lambda: np.zeros(0, np.int64),
        }
        return self.rest[orders[arm]()[:count]]

    def _by_kmeans(self, task: np.ndarray, count: int) -> np.ndarray:
        """Return enough tasks, those of the largest clusters first."""
        inputs = self.pool.examples.inputs.take(self.rest)
        each = len(task) / len(np.unique(task))
        wanted = min(round(1.5 * count / each) + 2, len(np.unique(task)))
        return select_tasks(program_features(inputs), task, wanted, self.seed)

    def row(self, arm: str, count: int) -> ChoiceRow:
        """Return what trees make of the first tasks and what an arm chooses."""
        examples, judged = self.pool.examples, self.pool.judged
        chosen = self.chosen(arm, count)
        rows = np.concatenate([self.measured, chosen])
        found = self.pool.fitted(rows, self.seed).predict(self.pool.features[judged])
        seconds, task = examples.seconds[judged], examples.inputs.task
        return ChoiceRow(
            self.pool.codegen, arm, len(chosen), self.seed, len(np.unique(task[rows])),
            mape(found, seconds), pair_accuracy(found, seconds, task[judged]),
        )  # fmt: skip


def _of_tasks(task: np.ndarray, order: np.ndarray) -> np.ndarray:
    """Return all programs of tasks, task by task."""
    return np.concatenate([np.flatnonzero(task == each) for each in order])


def _in_turn(task: np.ndarray, order: np.ndarray) -> np.ndarray:
    """Return programs in an order in which tasks take turns."""
    return np.concatenate(list(programs_in_turn(task, order)))


def _page(options: ProgramChoice, rows: list[ChoiceRow], pools: Sequence[_Pool]) -> Iterator[str]:
    """Yield the lines of the page."""
    yield "# Which programs to measure next\n"
    yield (
        f"Programs of {options.data} on one processor. Measured at first: all programs of "
        f"{options.first} random tasks of the networks that are not held out "
        f"({', '.join(HELD_OUT)}); then each arm chooses some of the rest, and boosted trees on "
        f"the code of loops learn both. Disagreement is that of {options.members} boosted trees, "
        "which learned the first tasks, drawn with replacement. k-means is that of the CDMPP "
        f"paper (algorithm 1). {options.seeds} seeds; mean (least to largest)."
    )
    for pool in pools:
        for field, (title, _) in FIELDS.items():

            def cell(arm: str, count: int, pool: _Pool = pool, field: str = field) -> str:
                key = (pool.codegen, arm, 0 if arm == NONE else count)
                own = [row for row in rows if (row.codegen, row.arm, row.chosen) == key]
                return with_range([FIELDS[field][1] * getattr(row, field) for row in own], ".1f")

            counts = {f"{count:,}": count for count in options.counts}
            yield f"\n## {pool.codegen}: {title}\n"
            yield grid_table("chosen", (NONE, *ARMS), counts, cell).rstrip()
        learned, judged = (f"{len(each):,}" for each in (pool.learned, pool.judged))
        yield f"\n{learned} programs could be measured, {judged} judge."
