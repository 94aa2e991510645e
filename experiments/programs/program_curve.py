"""Errors on networks not learned from, over the programs measured of each task.

Run: ``python -m experiments.programs.program_curve``. Of each task of the other networks so many
random programs are learned; those of the held-out networks judge. Boosted trees on the code of
loops with their factor (`CodeTrees`), and with ``--steps`` CDMPP's network, one of one seed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from experiments.experiment import Experiment
from experiments.page_text import table_lines
from experiments.programs.cdmpp.runs import trained
from experiments.statistics import with_range
from go_rl.costs.learning.metrics import mape, pair_accuracy
from go_rl.costs.learning.splits import HELD_OUT, by_model
from go_rl.costs.programs.learn.choose_programs import programs_in_turn
from go_rl.costs.programs.learn.code_trees import CodeTrees
from go_rl.costs.programs.learn.examples import ProgramExamples
from go_rl.costs.programs.learn.network import SMALL
from go_rl.costs.programs.learn.reading import read_examples
from go_rl.costs.programs.learn.training import ProgramTrainConfig

TREES, NETWORK = "`CodeTrees`", "CDMPP"


@dataclass(frozen=True)
class CurveRow:
    """One fit."""

    data: str
    model: str
    each: int
    """Programs of a task, at most."""
    seed: int
    programs: int
    """Programs learned."""
    mape: float
    """Of the held-out networks, percent."""
    pairs: float
    """Share of pairs of programs of a task there in the right order."""


@dataclass(frozen=True)
class ProgramCurve(Experiment):
    """Options of this table."""

    data: tuple[str, ...] = ("programs-3",)
    """Data sets."""
    each: tuple[int, ...] = (1, 2, 4, 8, 16, 32)
    """Programs of each task."""
    seeds: int = 3
    steps: int = 0
    """Updates of CDMPP's network; 0: none is learned."""

    def run(self) -> None:
        """Run what is missing; write the page."""
        rows = self.kept_rows(CurveRow)
        for data in self.data:
            examples = read_examples(data)
            most = int(np.bincount(examples.inputs.task).max())
            for model, seeds in ((TREES, self.seeds), (NETWORK, 1 if self.steps else 0)):
                for each in (count for count in self.each if count < 2 * most):
                    for seed in range(seeds):
                        if not rows.has(data, model, each, seed):
                            rows.add(self._row(examples, data, model, each, seed))
        self.write_page("\n".join(_page(self, rows.rows)))

    def _row(
        self, examples: ProgramExamples, data: str, model: str, each: int, seed: int
    ) -> CurveRow:
        """Return what a model makes of so many programs of each task."""
        inputs = examples.inputs
        split = by_model(inputs.task, inputs.networks, HELD_OUT)
        learned = np.concatenate([split.train, split.validation, split.test])
        order = np.random.default_rng(seed).permutation(learned)
        group = inputs.task * len(inputs.targets) + inputs.target
        turns = list(programs_in_turn(group[order], np.arange(len(order))))[:each]
        train = examples.take(order[np.concatenate(turns)])
        judged = examples.take(split.held_out)
        if model == TREES:
            found = CodeTrees.fit(train).predict(judged.inputs)
        else:
            known = np.isin(judged.inputs.leaves, train.inputs.leaves)
            judged = judged.take(np.flatnonzero(known))
            counts = tuple(np.unique(train.inputs.leaves).tolist())
            network = replace(SMALL, leaf_counts=counts)
            config = ProgramTrainConfig(network, steps=self.steps, seed=seed)
            found = trained(train, config).seconds(judged.inputs)
        group = judged.inputs.task * len(inputs.targets) + judged.inputs.target
        return CurveRow(
            data, model, each, seed, len(train.seconds),
            mape(found, judged.seconds), pair_accuracy(found, judged.seconds, group),
        )  # fmt: skip


def _page(options: ProgramCurve, rows: list[CurveRow]) -> Iterator[str]:
    """Yield the lines of the page."""
    yield "# Programs measured of each task, and errors on other networks"
    yield ""
    yield (
        f"Held out: {', '.join(HELD_OUT)}, with all tasks that others share. Trees: "
        f"{options.seeds} seeds, which draw the programs; mean (least to largest). A task without "
        "so many programs gives all it has."
    )
    for data in options.data:
        yield from ("", f"## {data}", "")
        lines = []
        for each in options.each:
            mine = [row for row in rows if (row.data, row.each) == (data, each)]
            if mine:
                lines.append([str(each), f"{np.mean([row.programs for row in mine]):,.0f}"])
            for model in (TREES, NETWORK) if mine else ():
                known = [row for row in mine if row.model == model]
                lines[-1].append(with_range([row.mape for row in known], ".1f"))
                lines[-1].append(with_range([100 * row.pairs for row in known], ".1f"))
        heads = ["programs of a task", "programs"]
        for model in (TREES, NETWORK):
            heads += [f"{model}: MAPE, %", "pairs in order, %"]
        yield from table_lines(heads, lines)


if __name__ == "__main__":
    ProgramCurve.main()
