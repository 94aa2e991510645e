"""From GPUs of one vendor to those of another: CDMPP and its rivals on the benchmark hub.

Run: ``python -m experiments.programs.cross_vendor ../shared/data/benchmark-hub``. Predictors learn
two kernels' configurations on NVIDIA's GPUs and are to predict others on AMD's: by the data sheet
alone, with the target's inputs, and with some programs measured there, by k-means or at random
(CDMPP, section 7.3 and 7.4). The control leaves out one of NVIDIA's GPUs instead. Finished runs are
kept, and a call goes on where the last one stopped; the page states what is missing.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated

import numpy as np
import tyro

from experiments.pages import NOTHING, RESULTS, cell, run_script, write_page
from experiments.programs.cdmpp.cross_model import COLUMNS, TUNING
from experiments.programs.cdmpp.runs import Metrics, OutOfTimeError, RunFolder
from experiments.programs.hub.arms import (
    BOTH,
    FACTOR,
    KeptNetworks,
    Setting,
    measured,
    simple,
    unmeasured,
)
from experiments.programs.hub.examples import AMD, NVIDIA, HubExamples, read_hub
from go_rl.predictors.metrics import latency_metrics
from go_rl.predictors.programs.network import ProgramNetworkConfig
from go_rl.predictors.programs.training import ProgramTrainConfig

NAME = "cross_vendor"
KMEANS, RANDOM = "CDMPP, fine-tuned (k-means)", "CDMPP, fine-tuned (random)"
TITLES = {
    "MI250X": "AMD Instinct MI250X (one of its two dies)", "W6600": "AMD Radeon PRO W6600",
    "A4000": "Control: NVIDIA RTX A4000", "A6000": "Control: NVIDIA RTX A6000",
}  # fmt: skip
NOTES = """\
*Habitat's scaling* and its factor know more than the others: the measured times of the test
programs on the sources. *Roofline* and *mean of the kernel* say the same of every program of a
kernel: no pair is ordered, and their top-1 and top-5 are those of arbitrary choices. Inputs
of the target are those of the sources, as loop nests are the same on each GPU: what CMD aligns,
latents without the device, differs by chance alone."""


@dataclass(frozen=True)
class Options:
    """Options of this table."""

    folder: Annotated[Path, tyro.conf.Positional]
    """Of the benchmark hub."""
    targets: tuple[str, ...] = (*AMD, "A4000")
    """GPUs predicted; one of NVIDIA's is not learned from then."""
    configurations: int = 1000
    """Of each kernel, drawn at random."""
    counts: tuple[int, ...] = (10, 20, 50, 100, 200)
    """Programs measured on the target."""
    table: int = 50
    """Of these, in the tables of all arms."""
    draws: int = 10
    """Repetitions of random choice, in the first run."""
    steps: int = 500
    """Updates of each network."""
    seeds: int = 3
    """Runs of which a cell is the mean; each draws its own test programs."""
    runs: Path = Path("build/cross_vendor")
    """Folder of finished runs."""
    minutes: float = 1e9
    """Of a processor: stop behind the piece, at least one, that ends later; the next call goes
    on."""


def main(options: Options) -> None:
    """Make the missing pieces, those of the tables first, and the page of what there is."""
    folder = RunFolder(options.runs, time.process_time(), options.minutes, time.process_time)
    hub, networks = read_hub(options.folder, options.configurations), KeptNetworks(options.runs)
    setting = cache(lambda target, seed: setting_of(options, hub, networks, target, seed))
    found = {(t, s): Metrics() for t in options.targets for s in range(options.seeds)}
    missing: dict[str, int] = {}
    for count, draw in _pieces(options):
        for (target, seed), known in found.items():
            if draw is not None and seed:
                continue
            run = f"{target}-{seed}-{options.steps}-{options.configurations}"
            name = f"{run}-{count}" + ("" if draw is None else f"-random{draw}")
            try:
                known |= folder.kept(
                    name, lambda s=setting, t=target, n=seed, c=count, d=draw: _piece(
                        options, s(t, n), c, d))  # fmt: skip
            except OutOfTimeError:
                missing[target] = missing.get(target, 0) + 1
    by_target = {t: [run for (name, _), run in found.items() if name == t and run]
                 for t in options.targets}  # fmt: skip
    write_page(RESULTS / NAME, _page(options, hub, by_target, missing), __file__)


def _pieces(options: Options) -> list[tuple[int, int | None]]:
    """Counts of measured programs, and numbers of random choices."""
    counts = [options.table, *(count for count in options.counts if count != options.table)]
    draws = [(count, draw) for count in counts for draw in range(options.draws)]
    return [(0, None), *((count, None) for count in counts), *draws]


def setting_of(
    options: Options, hub: HubExamples, networks: KeptNetworks, target: str, seed: int
) -> Setting:
    """Return the rows and the configuration of one target and seed."""
    sources = tuple(name for name in NVIDIA if name != target)
    examples = hub.of_devices((*sources, target))
    counts = tuple(int(n) for n in np.unique(examples.inputs.leaves))
    config = ProgramTrainConfig(ProgramNetworkConfig(counts), steps=options.steps, seed=seed)
    tuning = max(int(TUNING * options.steps), 1)
    return Setting(examples, hub.devices.index(target), config, tuning, networks)


def _piece(options: Options, setting: Setting, count: int, draw: int | None) -> Metrics:
    """Metrics of the arms that know so many programs, by count, arm and name."""
    if draw is not None:
        found = {f"{RANDOM} {draw}": setting.tuned_on(setting.drawn(count, draw))}
    elif count == 0:
        found = unmeasured(setting)
    else:
        few = setting.sampled(count)
        found = {KMEANS: setting.tuned_on(few)}
        found |= measured(setting, few) if count == options.table else simple(setting, few)
    test = setting.test
    sizes = {"learned": float(len(setting.train.seconds)), "tested": float(len(test.seconds))}
    return sizes | {
        f"{count}|{arm}|{name}": value
        for arm, seconds in found.items()
        for name, value in latency_metrics(seconds, test.seconds, test.inputs.task).items()
    }


def arm_values(runs: list[Metrics], count: int, arm: str, column: str) -> list[float]:
    """Return a column of an arm, run by run and draw by draw."""
    start = f"{count}|{arm}"
    return [value for run in runs for name, value in run.items()
            if name.startswith((f"{start}|", f"{start} ")) and name.endswith(f"|{column}")
            ]  # fmt: skip


def arms_of(runs: list[Metrics], count: int) -> list[str]:
    """Return the arms of a count in their order, repetitions once."""
    names = (name.split("|")[1] for run in runs for name in run if name.startswith(f"{count}|"))
    return list(dict.fromkeys(RANDOM if n.startswith(RANDOM) else n for n in names))


def _page(
    options: Options,
    hub: HubExamples,
    found: dict[str, list[Metrics]],
    missing: dict[str, int],
) -> str:
    dropped = ", ".join(f"{count:,} {why}" for why, count in hub.examples.dropped)
    lines = [
        "# CDMPP from one vendor's GPUs to another's", "",
        f"Two kernels of the benchmark hub, {options.configurations:,} configurations of each",
        f"at random: {', '.join(NVIDIA)} are learned from, targets are below. Errors are those of",
        "programs that were learned from on no GPU; pairs, top-1 and top-5 are of a kernel's test",
        f"programs. Rows left out: {dropped} (their median counts).",
        f"Runs of which a cell is the mean: {options.seeds}, {options.steps:,} updates of each",
        "network, a fifth of them, at a fifth of the rate, to fine-tune; random choices:",
        f"{options.draws}, in the first run. Longer learning is not in this table.",
        "", NOTES,
    ]  # fmt: skip
    for target, runs in found.items():
        if runs:
            lines += _target_lines(options, target, runs)
    rest = ", ".join(f"{count} pieces of {target}" for target, count in missing.items())
    lines += ["", "## Not run yet", "", f"{rest}."] if missing else []
    return "\n".join([*lines, ""])


def _target_lines(options: Options, target: str, runs: list[Metrics]) -> list[str]:
    learned, tested = (np.mean([run[name] for run in runs]) for name in ("learned", "tested"))
    sizes = f"{learned:,.0f} rows learned from, {tested:,.0f} tested; runs: {len(runs)}."
    lines = ["", f"## {TITLES.get(target, target)}", "", sizes]
    for count in (0, options.table):
        head = f"{count} programs measured" if count else "nothing measured"
        lines += ["", f"| {head} | " + " | ".join(COLUMNS.values()) + " |"]
        lines.append("|---|" + "---|" * len(COLUMNS))
        for arm in arms_of(runs, count):
            cells = [_mean(arm_values(runs, count, arm, column)) for column in COLUMNS]
            lines.append(f"| {arm} | " + " | ".join(cells) + " |")
    lines += ["", "MAPE in % by programs measured, first run; random: mean (least to largest).", "",
              f"| programs | k-means | random | {BOTH.replace('these', 'k-means')} | "
              f"{FACTOR.replace(' of these', '')} |", "|---|---|---|---|---|"]  # fmt: skip
    return lines + [_count_line(runs[:1], count) for count in options.counts]


def _count_line(runs: list[Metrics], count: int) -> str:
    chosen, drawn, both, factor = (
        arm_values(runs, count, arm, "mape") for arm in (KMEANS, RANDOM, BOTH, FACTOR)
    )
    spread = f"{_mean(drawn)} ({min(drawn):.2f} to {max(drawn):.2f})" if drawn else NOTHING
    return f"| {count} | {_mean(chosen)} | {spread} | {_mean(both)} | {_mean(factor)} |"


def _mean(values: list[float]) -> str:
    return cell(float(np.mean(values)), 2) if values else NOTHING


if __name__ == "__main__":
    run_script(main, Options, __doc__)
