"""Which tasks to measure for another target: k-means of programs against chance (CDMPP, section
7.4 and figure 13), and what unlabelled inputs add.

Run: ``python -m experiments programs.cdmpp.sampling``. A network learns the programs of training
tasks compiled for x86-64-v3, and is to predict test tasks compiled for x86-64-v4 on the same
processor: codegen targets, not devices, and a mild shift. Tasks are chosen of those it learned
from; their programs on the new target are added.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import ClassVar

import numpy as np

from experiments.experiment import Experiment
from experiments.page_text import table_lines
from experiments.programs.cdmpp.runs import Metrics, Runs, TableOptions, judged, trained
from experiments.statistics import mean_cell, with_range
from go_rl.costs.learning.splits import DataSplit, by_target
from go_rl.costs.programs.learn.choose_programs import program_features, select_tasks
from go_rl.costs.programs.learn.examples import ProgramExamples
from go_rl.costs.programs.learn.predictor import ProgramPredictor

TARGET = "x86-64-v4"


@dataclass(frozen=True)
class CdmppSampling(TableOptions, Experiment):
    """Options of this table."""

    page_name: ClassVar[str] = "cdmpp_sampling"

    counts: tuple[int, ...] = (5, 10, 20, 50, 100)
    """Tasks measured on the new target."""
    draws: int = 10
    """Repetitions of random choice."""

    def run(self) -> None:
        """Run what is missing; write the page."""
        runs = Runs(self)
        tasks = len(runs.examples.inputs.tasks)
        counts = [count for count in self.counts if count <= 0.8 * tasks]
        found: dict[str, list[float]] = {}
        for seed in range(self.seeds):
            setting = _Setting(runs, seed)
            arms: dict[str, Callable[[], Metrics]] = {
                "none": setting.untuned, "cmd": setting.unlabelled,
            }  # fmt: skip
            for count in counts:
                arms[f"kmeans-{count}"] = partial(setting.tuned_on, count, None)
                for i in range(self.draws):
                    arms[f"random-{count}-{i}"] = partial(setting.tuned_on, count, i)
            for name, make in arms.items():
                kept = runs.tried(f"mixed-{name}-{seed}", make)
                found.setdefault(name, []).extend(each["mape"] for each in kept)
        self.write_page(_page(found, counts, self) + "\n".join([*runs.not_run(), ""]))


@dataclass(frozen=True, eq=False)
class _Setting:
    """A network that learned one target; its seed divides the tasks, too."""

    runs: Runs
    seed: int

    @cached_property
    def _start(self) -> ProgramPredictor:
        return trained(self._learned_from(), self.runs.run_config(self.seed))

    def untuned(self) -> Metrics:
        """Metrics on the new target as it is."""
        return self._judged(self._start)

    def unlabelled(self) -> Metrics:
        """Metrics after fine-tuning with inputs of the new target alone."""
        split = self._split()
        train, others = self._learned_from(), self.runs.examples.inputs.take(split.adapt)
        return self._judged(self._start.fine_tuned(train, others))

    def tuned_on(self, count: int, draw: int | None) -> Metrics:
        """Metrics after fine-tuning with programs of ``count`` tasks on the new target, chosen by
        k-means or drawn, repeated until they are about as many as those of the other target, which
        are learned again with them."""
        split, inputs = self._split(), self.runs.examples.inputs
        adapt = inputs.take(split.adapt)
        if draw is None:
            chosen = select_tasks(program_features(adapt), adapt.task, count, self.seed)
        else:
            rng = np.random.default_rng((self.seed, draw))
            chosen = rng.choice(np.unique(adapt.task), count, replace=False)
        measured = split.adapt[np.isin(adapt.task, chosen)]
        repeated = np.tile(measured, max(len(split.train) // len(measured), 1))
        both = self.runs.examples.take(np.concatenate([split.train, repeated]))
        return self._judged(self._start.fine_tuned(both))

    def _learned_from(self) -> ProgramExamples:
        return self.runs.examples.take(self._split().train)

    def _split(self) -> DataSplit:
        inputs = self.runs.examples.inputs
        number = [each.codegen for each in inputs.targets].index(TARGET)
        return by_target(inputs.task, inputs.target, number, self.seed)

    def _judged(self, network: ProgramPredictor) -> Metrics:
        seconds = network.predict(self.runs.examples.inputs)
        return judged(seconds, self.runs.examples, self._split().held_out)


def _page(found: dict[str, list[float]], counts: Sequence[int], options: CdmppSampling) -> str:
    runs = len(found.get("none", []))
    lines = [
        "# Tasks to measure for another target", "",
        "MAPE of test tasks compiled for x86-64-v4, by a network that learned other tasks compiled",
        "for x86-64-v3 and learns on with programs of both, those of tasks measured for the new",
        "target repeated: two codegen targets of one processor, not two devices. Without anything",
        f"of the new target: {_mean(found, 'none')} %; with its inputs alone (CMD): "
        f"{_mean(found, 'cmd')} %.",
        f"Means of {runs} runs, tasks divided anew each time; random: mean (least to largest)",
        f"of {options.draws} draws, each the mean of the runs.", "",
    ]  # fmt: skip
    rows = []
    for count in counts:
        draws = [found.get(f"random-{count}-{i}", []) for i in range(options.draws)]
        errors = [float(np.mean(each)) for each in draws if len(each) == runs]
        rows.append([str(count), _mean(found, f"kmeans-{count}"), with_range(errors)])
    return "\n".join([*lines, *table_lines(["tasks measured", "k-means", "random"], rows), ""])


def _mean(found: dict[str, list[float]], name: str) -> str:
    return mean_cell(found.get(name, []))
