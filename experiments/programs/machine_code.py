"""What machine code says of tensor programs, beside rules for what a compiler makes of loops.

Run: ``python -m experiments programs.machine_code``. Programs are those of the data set whose code
was read. Arms are `CodeTrees` (rules), the same grown as `MachineTrees` are, and `MachineTrees`
(rules and code), judged on tasks, and on networks, that were not learned from. With ``--also`` both
kinds of trees learn data sets of other processors besides, without what judges.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np

from experiments.experiment import Experiment
from experiments.page_text import table_lines
from experiments.statistics import with_range
from go_rl.costs.learning.metrics import latency_metrics
from go_rl.costs.learning.splits import HELD_OUT, DataSplit, by_model, by_task, within_task
from go_rl.costs.programs.learn.code_trees import (
    CodeTrees,
    MachineTrees,
    ProgramTrees,
    device_apart,
)
from go_rl.costs.programs.learn.examples import ProgramExamples, with_machine_code
from go_rl.costs.programs.learn.reading import join_examples, read_examples

ARMS: Mapping[str, Callable[[ProgramExamples], ProgramTrees]] = {
    "`CodeTrees`: rules": CodeTrees.fit,
    "the same, grown as `MachineTrees`": lambda train: CodeTrees.fit(train, MachineTrees.config),
    "`MachineTrees`: rules and machine code": MachineTrees.fit,
}
BY_NETWORK = "networks held out"
OTHERS: Mapping[str, type[ProgramTrees]] = {
    "`CodeTrees`, programs of other processors learned besides": CodeTrees,
    "`MachineTrees`, programs of other processors learned besides": MachineTrees,
}
SPLITS: Mapping[str, Callable[[ProgramExamples, int], DataSplit]] = {
    "tasks held out": lambda examples, seed: by_task(examples.inputs.task, seed),
    BY_NETWORK: lambda examples, seed: by_model(
        examples.inputs.task, examples.inputs.networks, networks(examples, seed), seed
    ),
    "other programs of the same tasks": lambda examples, seed: within_task(
        examples.inputs.group, seed
    ),
}


def unlike(others: ProgramExamples, judged: ProgramExamples, out: Sequence[str]) -> ProgramExamples:
    """Return programs of other tasks than those that judge, and of no network that is held out."""
    inputs = others.inputs
    known = {judged.inputs.tasks[task] for task in judged.inputs.task.tolist()}
    fit = [task not in known and not set(some) & set(out)
           for task, some in zip(inputs.tasks, inputs.networks, strict=True)]  # fmt: skip
    return others.take(np.flatnonzero(np.array(fit)[inputs.task]))


def networks(examples: ProgramExamples, seed: int) -> tuple[str, ...]:
    """Return the networks that are held out: those of other tables first, then drawn ones."""
    known = sorted({name for some in examples.inputs.networks for name in some})
    chosen = np.random.default_rng(seed).choice(len(known), len(HELD_OUT), replace=False)
    return tuple(known[i] for i in chosen) if seed else HELD_OUT


@dataclass(frozen=True)
class MachineRow:
    """An arm on one split."""

    split: str
    arm: str
    seed: int
    programs: int
    """Programs that are judged."""
    mape: float
    """Mean absolute percentage error."""
    median: float
    pairs: float
    """Share of pairs of a task's programs in the right order."""
    best_5: float
    """Speed of the best of the five predicted fastest over that of the task's fastest."""


@dataclass(frozen=True)
class MachineCode(Experiment):
    """Options of this experiment."""

    data: str = "programs-3"
    """Data set that ships."""
    also: tuple[str, ...] = ()
    """Data sets of other processors, as far as their programs' code is known."""
    device: str = ""
    """Processor that is judged; "": the last one of the data set."""
    seeds: int = 5
    """Splits of either kind."""
    only: str = ""
    """Arms whose names begin so."""

    @property
    def stem(self) -> Path:
        """Path of the page without its ending."""
        return self.out / f"machine_code_{self.data.replace('-', '_')}"

    def run(self) -> None:
        """Judge the arms; write the page."""
        whole = with_machine_code(read_examples([*self.also, self.data]))
        others, examples = device_apart(whole, self.device)
        kept = self.kept_rows(MachineRow)
        for split, seed in product(SPLITS, range(self.seeds)):
            judged, fits = self._arms(examples, others, split, seed)
            arms = [arm for arm in fits if arm.startswith(self.only)]
            kept.fill(
                ((split, arm, seed) for arm in arms),
                lambda *key, judged=judged, fits=fits: _row(key, fits[key[1]], judged),
            )
        self.write_page(page(kept.rows, examples, others))

    def _arms(
        self, examples: ProgramExamples, others: ProgramExamples, split: str, seed: int
    ) -> tuple[ProgramExamples, dict[str, Callable[[], ProgramTrees]]]:
        """The programs that judge, and what fits each arm to the others."""
        parts = SPLITS[split](examples, seed)
        judged = examples.take(parts.held_out if len(parts.held_out) else parts.test)
        learned = examples.take(np.concatenate([parts.train, parts.validation]))
        arms = {arm: partial(fit, learned) for arm, fit in ARMS.items()}
        if len(others.seconds):
            out = networks(examples, seed) if split == BY_NETWORK else ()
            more = join_examples([unlike(others, judged, out), learned])
            arms |= {arm: partial(kind.fit, more) for arm, kind in OTHERS.items()}
        return judged, arms


def _row(
    key: tuple[str, str, int], fit: Callable[[], ProgramTrees], judged: ProgramExamples
) -> MachineRow:
    told = latency_metrics(fit().predict(judged.inputs), judged.seconds, judged.inputs.task)
    return MachineRow(
        *key, len(judged.seconds), told["mape"], told["median"],
        told["pair_accuracy"], told["top_5"],
    )  # fmt: skip


def page(rows: list[MachineRow], examples: ProgramExamples, others: ProgramExamples) -> str:
    """Return the page."""
    device = examples.inputs.targets[int(examples.inputs.target[0])].device
    besides = "" if not len(others.seconds) else (
        f" Other processors: {len(others.seconds):,} programs, without the tasks and networks that "
        "judge."
    )  # fmt: skip
    tasks = len(np.unique(examples.inputs.task))
    cells = []
    for split in SPLITS:
        for arm in dict.fromkeys(row.arm for row in rows):
            mine = [row for row in rows if (row.split, row.arm) == (split, arm)]
            cells.append([
                split, arm,
                *(with_range([getattr(row, name) for row in mine], form)
                  for name, form in (("mape", ".1f"), ("median", ".1f"), ("pairs", ".3f"),
                                     ("best_5", ".3f"))),
            ])  # fmt: skip
    heads = ["judged on", "arm", "MAPE, %", "median error, %", "pairs in order", "best of 5"]
    return "\n".join([
        "# Machine code of tensor programs", "",
        f"{len(examples.seconds):,} programs of {tasks} tasks of `{examples.name}`, measured on "
        f"{device}. Means over {len({row.seed for row in rows})} splits (least to greatest). "
        "*Best of 5*: speed of the best of the five programs that are predicted fastest, over that "
        f"of the task's fastest. Networks held out: {', '.join(HELD_OUT)}; in further splits three "
        "others."
        f"{besides}", "",
        *table_lines(heads, cells),
    ])  # fmt: skip
