"""A second processor: predictors that learned programs elsewhere, and some tasks timed there.

Run: ``python -m experiments programs.second_processor --device NAME``. Of a list of programs that
several processors timed, predictors learn all but one processor, and are to predict that one. A
third of its tasks judge, and of these none is learned there; on the other processors either all
tasks are learned, as CDMPP does, or none of those that judge. Of the others some are taken at
random, and all their programs, as measured on the second processor, are learned besides. Finished
rows are kept, those of other processors too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from itertools import product

import numpy as np

from experiments.experiment import Experiment
from experiments.page_text import table_lines
from experiments.programs.cdmpp.runs import trained
from experiments.rows import KeptRows
from experiments.statistics import with_range
from go_rl.costs.learning.metrics import latency_metrics
from go_rl.costs.programs.learn.code_inputs import with_code
from go_rl.costs.programs.learn.code_trees import (
    CodeTrees,
    MachineTrees,
    ProgramTrees,
    device_apart,
)
from go_rl.costs.programs.learn.examples import (
    ProgramExamples,
    ProgramInputs,
    with_machine_code,
)
from go_rl.costs.programs.learn.network import SMALL
from go_rl.costs.programs.learn.predictor import ProgramPredictor
from go_rl.costs.programs.learn.reading import read_examples
from go_rl.costs.programs.learn.training import ProgramTrainConfig

JUDGED = 3
"""One task of the second processor in so many judges."""
KNOWN, UNKNOWN = "tasks known from other processors", "tasks known from none"
"""Tasks that judge."""
CDMPP_UPDATES = 20_000
"""Of CDMPP on the other processors; a fifth follows on the second."""
Predict = Callable[[ProgramInputs], np.ndarray]
"""Seconds of programs."""
Learn = Callable[[ProgramExamples, ProgramExamples], Predict]
"""What predicts, from the programs of the other processors and some of the second's."""


@dataclass(frozen=True)
class SecondRow:
    """An arm that learned some tasks of the second processor."""

    device: str
    """The second processor."""
    judged: str
    """`KNOWN` or `UNKNOWN`."""
    arm: str
    seed: int
    tasks: int
    """Tasks of the second processor that were learned."""
    programs: int
    """Programs of these."""
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


@lru_cache(maxsize=2)
def _cdmpp(first: ProgramExamples) -> ProgramPredictor:
    counts = tuple(int(n) for n in np.unique(first.inputs.leaves))
    config = ProgramTrainConfig(replace(SMALL, leaf_counts=counts), updates=CDMPP_UPDATES)
    return trained(first, config)


def cdmpp(first: ProgramExamples, second: ProgramExamples) -> Predict:
    """Continue CDMPP, which learned the other processors, on programs of the second."""
    network = _cdmpp(first)
    return (network.fine_tuned(second) if len(second.seconds) else network).predict


ARMS: Mapping[str, Learn] = {
    "`MachineTrees`, both processors together": together,
    "`MachineTrees`, continued": partial(continued, MachineTrees),
    "`MachineTrees`, times one factor": scaled,
    "`MachineTrees` of the second processor alone": alone,
    "`CodeTrees`, continued": partial(continued, CodeTrees),
    "CDMPP, fine-tuned": cdmpp,
}


@dataclass(frozen=True)
class SecondProcessor(Experiment):
    """Options of this experiment."""

    data: tuple[str, ...] = ("programs-3",)
    """Data sets, each a list of programs that is the same on every processor."""
    device: str = "authenticamd-family-25-model-17"
    """The second processor; all others are learned."""
    counts: tuple[int, ...] = (0, 20, 50, 100)
    """Tasks measured on the second processor."""
    seeds: int = 2
    """Choices of the tasks that judge and that are learned."""
    arms: tuple[str, ...] = tuple(ARMS)
    """Arms that are judged."""

    def run(self) -> None:
        """Judge the arms; write the page."""
        kept = self.kept_rows(SecondRow)
        examples = with_machine_code(read_examples(self.data))
        examples = replace(examples, inputs=with_code(examples.inputs))
        first, second = device_apart(examples, self.device)
        for seed in range(self.seeds):
            self._fill(kept, first, second, seed)
        self.write_page(page(kept.rows, self.data))

    def _fill(
        self,
        kept: KeptRows[SecondRow],
        first: ProgramExamples,
        second: ProgramExamples,
        seed: int,
    ) -> None:
        """Make the rows of one choice of tasks that are missing."""
        tasks = np.random.default_rng(seed).permutation(np.unique(second.inputs.task))
        judging, learned = np.split(tasks, [len(tasks) // JUDGED])
        judged = second.take(np.flatnonzero(np.isin(second.inputs.task, judging)))
        hidden = np.isin(first.inputs.task, judging)
        both = np.isin(judged.inputs.task, first.inputs.task)
        rest = first.take(np.flatnonzero(~hidden))
        counts = [count for count in self.counts if count <= len(learned)]
        for title, source, asked in (
            (KNOWN, first, judged.take(np.flatnonzero(both))), (UNKNOWN, rest, judged),
        ):  # fmt: skip
            keys = ((self.device, title, arm, seed, count)
                    for arm, count in product(self.arms, counts))  # fmt: skip

            def row(
                device: str, title: str, arm: str, seed: int, count: int,
                source: ProgramExamples = source, asked: ProgramExamples = asked,
            ) -> SecondRow:  # fmt: skip
                some = second.take(np.flatnonzero(np.isin(second.inputs.task, learned[:count])))
                predict = ARMS[arm](source, some)
                told = latency_metrics(predict(asked.inputs), asked.seconds, asked.inputs.task)
                return SecondRow(
                    device, title, arm, seed, count, len(some.seconds), told["mape"],
                    told["median"], told["pair_accuracy"],
                )  # fmt: skip

            kept.fill(keys, row)


def page(rows: list[SecondRow], data: Sequence[str]) -> str:
    """Return the page."""
    lines = [
        "# A second processor", "",
        f"Programs of {' and '.join(data)} whose machine code was read. Learned: those of all "
        "other processors, and some tasks of the second. A third of its tasks judges. Mean over "
        "choices of tasks (least to greatest).", "",
    ]  # fmt: skip
    for device, judged in product(dict.fromkeys(row.device for row in rows), (KNOWN, UNKNOWN)):
        mine = [row for row in rows if (row.device, row.judged) == (device, judged)
                and np.isfinite(row.mape)]  # fmt: skip
        lines += [f"## {device}: {judged}", ""]
        for title, name, form in (
            ("Mean absolute percentage error, %", "mape", ".1f"),
            ("Median error, %", "median", ".1f"),
            ("Pairs of a task's programs in the right order", "pairs", ".3f"),
        ):
            counts = sorted({row.tasks for row in mine})
            cells = [
                [arm, *(with_range([getattr(row, name) for row in mine
                                    if (row.arm, row.tasks) == (arm, count)], form)
                        for count in counts)]
                for arm in dict.fromkeys(row.arm for row in mine)
            ]  # fmt: skip
            heads = ["tasks timed on the second processor", *map(str, counts)]
            lines += [f"{title}:", "", *table_lines(heads, cells), ""]
    return "\n".join(lines)
