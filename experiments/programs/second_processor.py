"""A second processor: trees that learned tensor programs on one, and some tasks timed on another.

Run: ``python -m experiments programs.second_processor [--first programs-2 programs-3]``. Trees
learn ``--first`` (several: page ``third_processor``), and are to predict ``--second`` (Zen 4), as
far as its programs' machine code was read. Where both are one data set, ``--device`` is the second
processor (page ``same_programs``). A third of the second's tasks judge, and of these none is
learned there; on the first processor either all tasks are learned, as CDMPP does, or none of those
that judge. Of the others some are taken at random, and all their programs, as measured on the
second processor, are learned besides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from itertools import product
from pathlib import Path

import numpy as np

from experiments.experiment import Experiment
from experiments.page_text import table_lines
from experiments.statistics import with_range
from go_rl.costs.learning.metrics import latency_metrics
from go_rl.costs.programs.learn.code_inputs import with_code
from go_rl.costs.programs.learn.code_trees import CodeTrees, MachineTrees, ProgramTrees
from go_rl.costs.programs.learn.examples import (
    ProgramExamples,
    ProgramInputs,
    with_machine_code,
)
from go_rl.costs.programs.learn.reading import read_examples

JUDGED = 3
"""One task of the second processor in so many judges."""
KNOWN, UNKNOWN = "tasks that were learned on the first processor", "tasks learned on neither"
"""Tasks that judge."""
Predict = Callable[[ProgramInputs], np.ndarray]
"""Seconds of programs."""
Learn = Callable[[ProgramExamples, ProgramExamples], Predict]
"""What predicts, from the programs of the first processor and some of the second's."""


@dataclass(frozen=True)
class SecondRow:
    """An arm that learned some tasks of the second processor."""

    judged: str
    """`KNOWN` or `UNKNOWN`."""
    arm: str
    tasks: int
    """Tasks of the second processor that were learned."""
    programs: int
    """Programs of these."""
    seed: int
    mape: float
    """Mean absolute percentage error."""
    median: float
    pairs: float
    """Share of pairs of a task's programs in the right order."""


@lru_cache(maxsize=2)
def fitted(kind: type[ProgramTrees], first: ProgramExamples) -> ProgramTrees:
    """Return trees that learned the first processor."""
    return kind.fit(first)


def continued(kind: type[ProgramTrees], first: ProgramExamples, second: ProgramExamples) -> Predict:
    """Continue trees, which learned the first processor, on programs of the second."""
    trees = fitted(kind, first)
    return (trees.fine_tuned(second) if len(second.seconds) else trees).predict


def together(first: ProgramExamples, second: ProgramExamples) -> Predict:
    """Learn programs of the second with those of the first, slower by one factor."""
    trees = fitted(MachineTrees, first)
    return (trees.for_processor(first, second) if len(second.seconds) else trees).predict


def scaled(first: ProgramExamples, second: ProgramExamples) -> Predict:
    """Multiply the predictions for the first processor by one factor."""
    trees = fitted(MachineTrees, first)
    ratios = second.seconds / trees.predict(second.inputs) if len(second.seconds) else [1.0]
    by = float(np.median(ratios))
    return lambda asked: by * trees.predict(asked)


def alone(_: ProgramExamples, second: ProgramExamples) -> Predict:
    """Learn the programs of the second processor and nothing else."""
    if not len(second.seconds):
        return lambda asked: np.full(asked.num_programs, np.nan)
    return MachineTrees.fit(second).predict


ARMS: Mapping[str, Learn] = {
    "`MachineTrees`, both processors together": together,
    "`MachineTrees`, continued": partial(continued, MachineTrees),
    "`MachineTrees`, times one factor": scaled,
    "`MachineTrees` of the second processor alone": alone,
    "`CodeTrees`, continued": partial(continued, CodeTrees),
}


@dataclass(frozen=True)
class SecondProcessor(Experiment):
    """Options of this experiment."""

    first: tuple[str, ...] = ("programs-3",)
    """Data sets of the processors that were learned."""
    second: str = "programs-1"
    """Data set of the other one."""
    device: str = ""
    """The second processor where the data sets hold several; all others are the first."""
    counts: tuple[int, ...] = (0, 5, 10, 20, 50)
    """Tasks measured on the second processor."""
    seeds: int = 5
    """Choices of the tasks that judge and that are learned."""
    arms: tuple[str, ...] = tuple(ARMS)
    """Arms that are judged."""

    @property
    def stem(self) -> Path:
        """Path of the page without its ending."""
        several = "third_processor" if len(self.first) > 1 else "second_processor"
        return self.out / ("same_programs" if self.device else several)

    def run(self) -> None:
        """Judge the arms; write the page."""
        first = _read(self.first, lambda device: device != self.device)
        second = _read((self.second,), lambda device: self.device in ("", device))
        rows = (row for seed in range(self.seeds) for row in self.rows(first, second, seed))
        self.write_page(page(self.write_rows(rows), first, second))

    def rows(
        self, first: ProgramExamples, second: ProgramExamples, seed: int
    ) -> Iterator[SecondRow]:
        """Yield the rows of one choice of tasks."""
        tasks = np.random.default_rng(seed).permutation(np.unique(second.inputs.task))
        judging, learned = np.split(tasks, [len(tasks) // JUDGED])
        judged = second.take(np.flatnonzero(np.isin(second.inputs.task, judging)))
        hidden = {_workload(second, task) for task in judging.tolist()}
        of_first = [_workload(first, task) for task in first.inputs.task.tolist()]
        both = [_workload(judged, task) in of_first for task in judged.inputs.task.tolist()]
        rest = first.take(np.flatnonzero([each not in hidden for each in of_first]))
        for title, source, asked in (
            (KNOWN, first, judged.take(np.flatnonzero(both))), (UNKNOWN, rest, judged),
        ):  # fmt: skip
            counts = [count for count in self.counts if count <= len(learned)]
            for arm, count in product(self.arms, counts):
                some = np.isin(second.inputs.task, learned[:count])
                predict = ARMS[arm](source, second.take(np.flatnonzero(some)))
                told = latency_metrics(predict(asked.inputs), asked.seconds, asked.inputs.task)
                yield SecondRow(
                    title, arm, count, int(some.sum()), seed, told["mape"], told["median"],
                    told["pair_accuracy"],
                )  # fmt: skip


def _read(names: Sequence[str], wanted: Callable[[str], bool]) -> ProgramExamples:
    """Programs of some processors whose machine code is known; the code of their loops is described
    once for all."""
    examples = with_machine_code(read_examples(names)).on_devices(wanted)
    return replace(examples, inputs=with_code(examples.inputs))


def _workload(examples: ProgramExamples, task: int) -> str:
    found = examples.inputs.tasks[task]
    return "" if found is None else found.workload


def page(rows: list[SecondRow], first: ProgramExamples, second: ProgramExamples) -> str:
    """Return the page."""
    counts = sorted({row.tasks for row in rows})
    measured = [[each.inputs.targets[i] for i in np.unique(each.inputs.target).tolist()]
                for each in (first, second)]  # fmt: skip
    devices = [" and ".join(sorted(f"{t.device} ({t.codegen})" for t in each)) for each in measured]
    lines = [
        f"# A {'third' if '+' in first.name else 'second'} processor", "",
        f"Learned: {len(first.seconds):,} programs of {first.name}, {devices[0]}. Predicted: those "
        f"of {second.name}, {devices[1]}, as far as their machine code was read: "
        f"{len(second.seconds):,} of {len(np.unique(second.inputs.task))} tasks, a third of which "
        "judges. Mean over choices of tasks (least to greatest).", "",
    ]  # fmt: skip
    for judged in (KNOWN, UNKNOWN):
        for title, name, form in (
            ("mean absolute percentage error, %", "mape", ".1f"),
            ("median error, %", "median", ".1f"),
            ("pairs of a task's programs in the right order", "pairs", ".3f"),
        ):
            mine = [row for row in rows if row.judged == judged and np.isfinite(row.mape)]
            cells = []
            for arm in dict.fromkeys(row.arm for row in rows):
                values = ([getattr(row, name) for row in mine if (row.arm, row.tasks) == (arm, n)]
                          for n in counts)  # fmt: skip
                cells.append([arm, *(with_range(each, form) for each in values)])
            heads = ["tasks timed on the second processor", *map(str, counts)]
            lines += [f"## {judged.capitalize()}: {title}", "", *table_lines(heads, cells), ""]
    return "\n".join(lines)
