"""A search over CDMPP's nine variables, and its winner beside the sizes that ship.

Run: ``python -m experiments programs.cdmpp.search``; Optuna: ``pip install 'go_rl[search]'``.
Trials learn a subset of the training rows of `experiments.programs.cdmpp.cross_model`, programs of
up to two leaves, beside inputs of the networks held out, and are judged on its validation rows;
those behind the median of others are pruned. Winner and default then learn all training rows, and
are judged on rows that no trial was judged on.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import numpy as np

from experiments.experiment import Experiment, say, timed
from experiments.programs.cdmpp.cross_model import PARTS, both_parts
from experiments.programs.cdmpp.runs import (
    Metrics,
    Runs,
    TableOptions,
    means_table,
    parameter_count,
    trained,
)
from go_rl.costs.programs.learn.search import (
    FILE,
    STUDY,
    ProgramSearchConfig,
    SearchData,
    import_optuna,
    search_programs,
)
from go_rl.costs.programs.learn.training import ProgramTrainConfig

MOST_LEAVES = 2
"""Of the programs of a trial: each leaf count is compiled for each trial."""
ARMS = ("default", "winner")


@dataclass(frozen=True)
class CdmppSearch(TableOptions, Experiment):
    """Options of this table."""

    page_name: ClassVar[str] = "cdmpp_search"

    trials: int = 20
    """Of the search."""
    programs: int = 2000
    """That a trial learns."""
    updates: int = 240
    """Of a trial."""
    chunk: int = 8
    """Trials of a call; the next call goes on."""

    def run(self) -> None:
        """Go on with the search; behind it, train winner and default; write the page."""
        runs = Runs(self)
        folder = Path(self.runs) / "search"
        done = len(_trials(folder))
        config = ProgramSearchConfig(
            min(done + self.chunk, self.trials), self.programs, self.updates
        )
        winner = search_programs(_data(runs), folder, config, runs.run_config(0), say)
        found: dict[str, list[Metrics]] = {arm: [] for arm in ARMS}
        if len(_trials(folder)) >= self.trials:
            for seed in range(self.seeds):
                for arm in ARMS:
                    base = runs.run_config(seed)
                    counts = base.network.leaf_counts
                    network = replace(winner.network, leaf_counts=counts)
                    sized = replace(winner, seed=seed, network=network)
                    run = base if arm == ARMS[0] else sized
                    found[arm] += runs.tried(
                        f"search-{arm}-{seed}", lambda r=run: _learned(runs, r)
                    )
        print(*runs.not_run(), sep="\n")
        self.write_page(_page(self, folder, found))


def _data(runs: Runs) -> SearchData:
    split, examples = runs.split(0), runs.examples
    few = examples.inputs.leaves <= MOST_LEAVES
    train, validation, held = (
        rows[few[rows]] for rows in (split.train, split.validation, split.held_out)
    )
    return SearchData(
        examples.take(train), examples.take(validation), examples.inputs.take(held)
    )  # inputs of the networks held out: their seconds are not read


def _learned(runs: Runs, run: ProgramTrainConfig) -> Metrics:
    train = runs.examples.take(runs.split(0).train)
    learned, taken = timed(lambda: trained(train, run), time.process_time)
    return {
        **both_parts(runs, 0, learned.seconds(runs.examples.inputs)),
        "parameters": float(parameter_count(learned.network.params)), "cpu_seconds": taken,
    }  # fmt: skip


def _trials(folder: Path) -> list:
    """Those that are over."""
    optuna = import_optuna()
    if not (folder / FILE).exists():
        return []
    study = optuna.load_study(study_name=STUDY, storage=f"sqlite:///{(folder / FILE).absolute()}")
    return [trial for trial in study.trials if trial.state.is_finished()]


def _page(options: CdmppSearch, folder: Path, found: dict[str, list[Metrics]]) -> str:
    trials = _trials(folder)
    counts = {
        name: sum(trial.state.name == name for trial in trials)
        for name in ("COMPLETE", "PRUNED", "FAIL")
    }
    best = min((t for t in trials if t.state.name == "COMPLETE"), key=lambda t: t.value)
    values = ", ".join(
        f"{name} {value:.3g}" if isinstance(value, float) else f"{name} {value}"
        for name, value in best.params.items()
    )
    taken = sum((t.datetime_complete - t.datetime_start).total_seconds() for t in trials)
    lines = [
        "# A search over CDMPP's sizes and hyper-parameters", "",
        f"{len(trials)} trials ({counts['COMPLETE']} to their end, {counts['PRUNED']} pruned, "
        f"{counts['FAIL']} diverged) in {taken / 60:.0f} minutes of the clock of one core",
        f"beside other work: {options.programs:,} programs, {options.updates} updates each. Their "
        f"errors on validation programs: {best.value:.1f} % (the best), median",
        f"{np.median([t.value for t in trials if t.state.name == 'COMPLETE']):.1f} %. "
        f"The best: {values}.", "",
        f"Then {options.steps:,} updates on all rows, judged on programs by which no trial was;",
        "split of `cdmpp_cross_model`, means of n runs.", "",
    ]  # fmt: skip
    columns = {
        f"{part} {key}": f"{title}: {what}"
        for part, title in PARTS.items()
        for key, what in (("mape", "MAPE %"), ("median", "median %"))
    }
    columns |= {"parameters": "parameters", "cpu_seconds": "CPU s"}
    digits = {"parameters": 0, "cpu_seconds": 0}
    return "\n".join([*lines, *means_table(found, columns, digits, counted=True), ""])
