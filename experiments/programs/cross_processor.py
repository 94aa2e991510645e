"""From processors and GPUs to a processor that was not learned from: CDMPP and its rivals.

Run: ``python -m experiments.programs.cross_processor ../shared/data/neusight/train`` with the
folder of measured GPU operators. Predictors learn TVM schedules on one processor, operators of
GPUs, or both, and are to predict other tasks on the new processor (CDMPP, sections 7.3 and 7.4,
"GPUs and CPUs to a CPU"): by the data sheet alone, with the target's inputs, and with some tasks
measured there, by k-means or at random. Finished runs are kept, and a call goes on where the last
one stopped; the page states what is missing.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Annotated

import numpy as np
import tyro

from experiments.experiment import Experiment
from experiments.page_text import cell, table_lines
from experiments.programs.cdmpp.runs import Metrics, tuning_steps
from experiments.programs.cross_device.arms import (
    BOTH,
    CODE,
    CODE_BOTH,
    KMEANS,
    RANDOM,
    WITH_SOURCES,
    Arms,
    both,
    by_code,
    by_ratio,
    mean_of_kind,
    measured,
    scaled_by_factors,
    scaled_sources,
    unmeasured,
)
from experiments.programs.cross_device.processors import (
    BOTH_KINDS,
    CPU,
    GPU,
    OPERATORS,
    Processors,
    read_processors,
)
from experiments.programs.cross_device.setting import KeptNetworks, Setting
from experiments.programs.cross_device.tables import (
    CrossOptions,
    Piece,
    missing_lines,
    run_pieces,
    target_lines,
)
from go_rl.costs.learning.metrics import mape
from go_rl.costs.programs.learn.examples import TARGET_FEATURES, ProgramExamples
from go_rl.costs.programs.learn.network import ProgramNetworkConfig
from go_rl.costs.programs.learn.training import ProgramTrainConfig

SCENARIOS = {CPU: "CPU → CPU", BOTH_KINDS: "GPUs + CPU → CPU", GPU: "Control: GPUs → CPU"}
SAME, PEAK = "times as on the source processor", "these, scaled by peak FLOP/s"
SAME_FACTOR = "times as on the source, times a factor of these"
SAME_TREES = "times as on the source, times a ratio by trees on code of these"
SAME_RANDOM = "times as on the source, times a factor (random)"
BOTH_RANDOM = "LightGBM, sources and these (random)"
SPEED = """\
Seconds of each are those at its core's reference speed; the new processor's free core is 1.2 times
as fast as that, so that by the clock the ratios are smaller by it. Its records beside a busy
neighbour are left out (docs/programs.md); what is left differs by 2 % half an hour later. Of the
source that is not known: a part of the differences may be its neighbour's."""
NOTES = """\
Arms of *times as on the source* know more than the others: the measured times of the test programs
there. That is Habitat's scaling, too: its factor is one of bandwidth, which no data sheet states
for one core, and of cores times clock, which are equal. A factor is that of each operator. *Trees
on code* read what the compiler makes of loops, which is not known of GPUs' kernels. Loop nests are
the same on both processors: there CMD aligns what differs by chance alone. Data sheets of the two
differ in the first cache and the peak, of which one source shows no effect. Many of the programs
tested have two statements, and no operator of the GPUs has: networks that learned GPUs alone have
layers for them that never learned. Means of an operator order no pair, and a task has few programs:
top-5 is mostly all of them."""


@dataclass(frozen=True, kw_only=True)
class CrossProcessor(CrossOptions, Experiment):
    """Options of this table."""

    folder: Annotated[Path, tyro.conf.Positional]
    """Of measured GPU operators, a table for each operator."""
    source: str = "programs-1"
    """Records of the processor that is learned from: a data set, by file or name, or a folder."""
    target: str = "programs-2"
    """Those of the new processor."""
    rows: int = 200
    """Of each GPU and group of operators that are learned from."""
    runs: Path = Path("build/cross_processor")
    """Folder of finished runs."""
    counts: tuple[int, ...] = (10, 20, 50, 100)
    """Tasks measured on the target."""
    steps: int = 2500
    """Updates of each network."""
    trees: int = 600
    """Of each arm of boosted trees."""

    def run(self) -> None:
        """Make the missing pieces, those of the tables first, and the page of what there is."""
        known = read_processors(self.source, self.target, self.folder, self.rows, self.runs)
        size = len(known.examples.seconds)
        setting = cache(lambda learned, seed: setting_of(self, known, learned, seed))
        found, missing = run_pieces(
            self,
            [(learned, seed) for learned in SCENARIOS for seed in range(self.seeds)],
            lambda learned, seed: f"{learned.replace(' ', '-')}-{seed}-{self.steps}-{size}",
            setting,
            partial(_arms, self),
        )
        self.write_page(_page(self, known, found, missing))


def setting_of(options: CrossProcessor, known: Processors, learned: str, seed: int) -> Setting:
    """Return the rows and the configuration of one scenario and seed."""
    examples, split = known.examples, known.split(learned, seed)
    used = np.concatenate([split.train, split.adapt, split.held_out])
    counts = tuple(int(n) for n in np.unique(examples.inputs.leaves[used]))
    config = ProgramTrainConfig(ProgramNetworkConfig(counts), steps=options.steps, seed=seed)
    networks = KeptNetworks(options.runs / f"{learned.replace(' ', '-')}-{len(examples.seconds)}")
    tuning = tuning_steps(options.steps)
    return Setting(
        examples,
        known.targets,
        split,
        "task",
        known.kinds,
        config,
        tuning,
        networks,
        options.trees,
    )


def _arms(options: CrossProcessor, setting: Setting, piece: Piece) -> Arms:
    if piece.draw is not None:
        return _drawn(setting, setting.drawn(piece.count, piece.draw))
    if piece.count == 0:
        return _unmeasured(setting)
    few = setting.sampled(piece.count)
    found = {KMEANS: setting.tuned_on(few), BOTH: both(setting, few)}
    if _has_twins(setting):
        found[SAME_FACTOR] = scaled_by_factors(setting, few)
    if piece.count != options.table:
        return found
    if _has_twins(setting):
        found[SAME_TREES] = by_ratio(setting, few, partial(scaled_sources, setting))
    found[WITH_SOURCES] = setting.tuned_with(few)
    if _has_code(setting):
        found[CODE_BOTH] = by_code(setting, few)
    means = {"mean of the operator in these": mean_of_kind(few, setting.test.inputs, setting.kinds)}
    return found | measured(setting, few) | means


def _drawn(setting: Setting, few: ProgramExamples) -> Arms:
    found = {RANDOM: setting.tuned_on(few), BOTH_RANDOM: both(setting, few)}
    if _has_twins(setting):
        found[SAME_RANDOM] = scaled_by_factors(setting, few)
    return found


def _unmeasured(setting: Setting) -> Arms:
    test, train = setting.test.inputs, setting.train
    found = unmeasured(setting)
    if _has_code(setting):
        found[CODE] = by_code(setting)
    if _has_twins(setting):
        found[SAME] = scaled_sources(setting, test)
        found[PEAK] = found[SAME] * _peak_ratio(setting)
    return found | {"mean of the operator on sources": mean_of_kind(train, test, setting.kinds)}


def _has_twins(setting: Setting) -> bool:
    """Whether the source processor is learned from."""
    return any(task is not None for task in _learned_tasks(setting))


def _has_code(setting: Setting) -> bool:
    """Whether nothing but processors is learned from."""
    return all(task is not None for task in _learned_tasks(setting))


def _learned_tasks(setting: Setting) -> list[object]:
    inputs = setting.train.inputs
    return [inputs.tasks[task] for task in np.unique(inputs.task).tolist()]


def _peak_ratio(setting: Setting) -> float:
    """Peak of the source over that of the target."""
    peak = setting.examples.inputs.devices[:, TARGET_FEATURES.index("peak_flops")]
    return float(2.0 ** (peak[0] - peak[setting.targets[0]]))


def _page(
    options: CrossProcessor,
    known: Processors,
    found: dict[str, list[Metrics]],
    missing: dict[str, int],
) -> str:
    dropped = ", ".join(f"{count:,} {why}" for why, count in known.examples.dropped if count)
    lines = [
        "# CDMPP on a processor that was not learned from", "",
        f"TVM schedules of `{known.source}` and operators of four GPUs (P100, T4, V100, A100;",
        f"{options.rows} rows of each GPU and group of operators, loop nests from their sizes) are",
        f"learned from; the target is one core of `{known.target}`. Errors are those of a",
        "tenth of the tasks, learned from on no device; pairs, top-1 and top-5 are of the test",
        f"programs of a task. Rows left out of both: {dropped}; {known.unmatched:,} of the target",
        f"that the source did not run. Runs of which a cell is the mean: {options.seeds},",
        f"{options.steps:,} updates of each network, a fifth of them, at a fifth of the rate, to",
        f"fine-tune; {options.trees} trees; random choices, in the first run: {options.draws}.",
        "", *_same_programs(known), "", SPEED, "", NOTES,
    ]  # fmt: skip
    for learned, runs in found.items():
        if runs:
            lines += target_lines(options, SCENARIOS[learned], "tasks", runs, _columns(learned))
    return "\n".join([*lines, *missing_lines(missing), ""])


def _same_programs(known: Processors) -> list[str]:
    """How much times of the same programs differ."""
    old, new, inputs = known.both_seconds()
    codes = np.array([each.codegen for each in inputs.targets])[inputs.target]
    kind = np.array(OPERATORS)[known.kinds.kind[inputs.task]]
    parts = {"all": np.ones(len(old), bool), **{name: codes == name for name in np.unique(codes)},
             **{name: kind == name for name in OPERATORS}}  # fmt: skip
    rows = [
        [name, *_ratios(old[part], new[part])] for name, part in parts.items() if part.sum() > 1
    ]
    heads = ("the same programs", "programs", "median ratio", "90 % of ratios", "deviation of logs",
             "correlation of logs", "MAPE of the source's times, %")  # fmt: skip
    return ["## The same programs on both processors", "",
            "Seconds on the new processor over those on the source.", "",
            *table_lines(heads, rows)]  # fmt: skip


def _ratios(old: np.ndarray, new: np.ndarray) -> list[str]:
    logs = np.log(new / old)
    low, middle, high = np.exp(np.quantile(logs, (0.05, 0.5, 0.95)))
    alike = np.corrcoef(np.log(old), np.log(new))[0, 1]
    return [f"{len(old):,}", cell(middle), f"{low:.2f} to {high:.2f}", cell(logs.std(), 2),
            cell(alike), cell(mape(old, new), 1)]  # fmt: skip


def _columns(learned: str) -> dict[str, str]:
    """Arms of the errors by count, each by the head of its column."""
    columns = {"CDMPP, k-means": KMEANS, "CDMPP, random": RANDOM, "LightGBM, k-means": BOTH,
               "LightGBM, random": BOTH_RANDOM}  # fmt: skip
    if learned != GPU:
        columns |= {"source's times, k-means": SAME_FACTOR, "source's times, random": SAME_RANDOM}
    return columns


if __name__ == "__main__":
    CrossProcessor.main()
