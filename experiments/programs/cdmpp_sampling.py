"""Which tasks to measure for another target: k-means of programs against chance (CDMPP, section
7.4 and figure 13), and what unlabelled inputs add.

Run: ``python -m experiments.programs.cdmpp_sampling``. A network learns the programs of training
tasks compiled for x86-64-v3, and is to predict test tasks compiled for x86-64-v4 on the same
processor: codegen targets, not devices, and a mild shift. Tasks are chosen of those it learned
from; their programs on the new target are added.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from experiments.pages import RESULTS, cell, run_script, write_page
from experiments.programs.cdmpp_runs import (
    Metrics,
    OneNetwork,
    Runs,
    TableOptions,
    judged,
    trained,
    tuned,
)
from go_rl.predictors.programs.examples import ProgramExamples
from go_rl.predictors.programs.select_tasks import program_features, select_tasks
from go_rl.predictors.splits import Split, by_target

NAME = "cdmpp_sampling"
TARGET = "x86-64-v4"
TUNING = 0.2


@dataclass(frozen=True)
class Options(TableOptions):
    """Options of this table."""

    counts: tuple[int, ...] = (5, 10, 20, 50, 100)
    """Tasks measured on the new target."""
    draws: int = 10
    """Repetitions of random choice."""


def main(options: Options) -> None:
    """Make the table."""
    runs = Runs(options, time.monotonic())
    tasks = len(runs.examples.inputs.tasks)
    counts = [count for count in options.counts if count <= 0.8 * tasks]
    setting = _Setting(runs)
    first = runs.kept("target-none", setting.untuned)
    unlabelled = runs.kept("target-cmd", setting.unlabelled)
    rows = {}
    for count in counts:
        chosen = runs.kept(f"target-kmeans-{count}", lambda n=count: setting.tuned_on(n, None))
        drawn = [
            runs.kept(f"target-random-{count}-{i}", lambda n=count, i=i: setting.tuned_on(n, i))
            for i in range(options.draws)
        ]
        rows[count] = (chosen, drawn)
    write_page(RESULTS / NAME, _page(runs, first, unlabelled, rows), __file__)


@dataclass(frozen=True, eq=False)
class _Setting:
    """A network that learned one target."""

    runs: Runs

    @cached_property
    def _start(self) -> OneNetwork:
        return trained(self._learned_from(), self.runs.run_config(0))

    def untuned(self) -> Metrics:
        """Metrics on the new target as it is."""
        return self._judged(self._start)

    def unlabelled(self) -> Metrics:
        """Metrics after fine-tuning with inputs of the new target alone."""
        split = self._split()
        train, others = self._learned_from(), self.runs.examples.inputs.take(split.adapt)
        return self._judged(tuned(self._start, train, others, self._steps()))

    def tuned_on(self, count: int, draw: int | None) -> Metrics:
        """Metrics after fine-tuning with programs of some tasks on the new target.

        Args:
            count: tasks.
            draw: of random ones; None: chosen by k-means.
        """
        split, inputs = self._split(), self.runs.examples.inputs
        adapt = inputs.take(split.adapt)
        if draw is None:
            chosen = select_tasks(program_features(adapt), adapt.task, count)
        else:
            rng = np.random.default_rng(draw)
            chosen = rng.choice(np.unique(adapt.task), count, replace=False)
        measured = split.adapt[np.isin(adapt.task, chosen)]
        return self._judged(
            tuned(self._start, self.runs.examples.take(measured), None, self._steps())
        )

    def _learned_from(self) -> ProgramExamples:
        return self.runs.examples.take(self._split().train)

    def _steps(self) -> int:
        return max(int(TUNING * self.runs.options.steps), 1)

    def _split(self) -> Split:
        inputs = self.runs.examples.inputs
        number = [each.codegen for each in inputs.targets].index(TARGET)
        return by_target(inputs.task, inputs.target, number)

    def _judged(self, network: OneNetwork) -> Metrics:
        seconds = network.seconds(self.runs.examples.inputs)
        return judged(seconds, self.runs.examples, self._split().held_out)


def _page(
    runs: Runs, first: Metrics, unlabelled: Metrics, rows: dict[int, tuple[Metrics, list[Metrics]]]
) -> str:
    draws = len(next(iter(rows.values()))[1]) if rows else 0
    lines = [
        "# Tasks to measure for another target",
        "",
        "MAPE of test tasks compiled for x86-64-v4, by a network that learned other tasks compiled",
        "for x86-64-v3: two codegen targets of one processor, not two devices. Without anything of",
        f"the new target: {first['mape']:.1f} %; with its inputs alone (CMD): "
        f"{unlabelled['mape']:.1f} %.",
        f"Random: mean (least to largest) of {draws} draws.",
        "",
        "| tasks measured | k-means | random |",
        "|---|---|---|",
    ]
    for count, (chosen, drawn) in rows.items():
        errors = [each["mape"] for each in drawn]
        spread = f"{np.mean(errors):.2f} ({min(errors):.2f} to {max(errors):.2f})"
        lines.append(f"| {count} | {cell(chosen['mape'], 2)} | {spread} |")
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    run_script(main, Options, __doc__)
