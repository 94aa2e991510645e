"""From GPUs of one vendor to those of another: CDMPP and its rivals on the benchmark hub.

Run: ``python -m experiments.programs.cross_vendor ../shared/data/benchmark-hub``. Predictors learn
two kernels' configurations on NVIDIA's GPUs and are to predict others on AMD's: by the data sheet
alone, with the target's inputs, and with some programs measured there, by k-means or at random
(CDMPP, section 7.3 and 7.4). The control leaves out one of NVIDIA's GPUs instead. Finished runs are
kept, and a call goes on where the last one stopped; the page states what is missing.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, partial
from itertools import product
from pathlib import Path
from typing import Annotated

import numpy as np
import tyro

from experiments.experiment import Experiment
from experiments.programs.cdmpp.runs import Metrics, OutOfTimeError, RunFolder, tuning_steps
from experiments.programs.cross_device.arms import (
    BOTH,
    FACTOR,
    KMEANS,
    RANDOM,
    Arms,
    both,
    mean_of_kind,
    measured,
    roofline,
    scaled_by_factors,
    scaled_sources,
    unmeasured,
)
from experiments.programs.cross_device.hub import (
    AMD,
    HUB_KINDS,
    NVIDIA,
    HubExamples,
    read_hub,
)
from experiments.programs.cross_device.setting import KeptNetworks, Setting
from experiments.programs.cross_device.tables import Piece, piece_metrics, target_lines
from go_rl.costs.learning.splits import by_target
from go_rl.costs.programs.learn.network import ProgramNetworkConfig
from go_rl.costs.programs.learn.training import ProgramTrainConfig

TITLES = {
    "MI250X": "AMD Instinct MI250X (one of its two dies)", "W6600": "AMD Radeon PRO W6600",
    "A4000": "Control: NVIDIA RTX A4000", "A6000": "Control: NVIDIA RTX A6000",
}  # fmt: skip
NOTES = """\
*Habitat's scaling* and its factor know more than the others: the measured times of the test
programs on the sources. *Roofline* and *mean of the kernel* say the same of every program of a
kernel: no pair is ordered, and their top-1 and top-5 are those of arbitrary choices. Inputs
of the target are those of the sources, as loop nests are the same on each GPU: CMD aligns
latents that hold the data sheet."""


@dataclass(frozen=True)
class CrossVendor(Experiment):
    """Options of this table."""

    folder: Annotated[Path, tyro.conf.Positional]
    """Of the benchmark hub."""
    runs: Path = Path("build/cross_vendor")
    """Folder of finished runs."""
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
    minutes: float = 1e9
    """Of a processor: stop behind the piece, at least one, that ends later; the next call goes
    on."""

    def run(self) -> None:
        """Make the missing pieces, those of the tables first, and the page of what there is."""
        hub, networks = read_hub(self.folder, self.configurations), KeptNetworks(self.runs)
        setting = cache(lambda target, seed: setting_of(self, hub, networks, target, seed))
        folder = RunFolder(self.runs, time.process_time(), self.minutes, time.process_time)
        found = {(target, seed): Metrics() for target in self.targets for seed in range(self.seeds)}
        missing: Counter[str] = Counter()

        def make(target: str, seed: int, piece: Piece) -> Metrics:
            own = setting(target, seed)
            return piece_metrics(own, piece, _arms(self, own, piece))

        for piece, (target, seed) in product(self.pieces(), found):
            if piece.draw is not None and seed:
                continue  # random choices are of the first seed
            name = f"{target}-{seed}-{self.steps}-{self.configurations}-{piece.name}"
            try:
                found[target, seed] |= folder.kept(name, partial(make, target, seed, piece))
            except OutOfTimeError:
                missing[target] += 1
        runs = {
            target: [run for seed in range(self.seeds) if (run := found[target, seed])]
            for target in self.targets
        }
        self.write_page(_page(self, hub, runs, missing))

    def pieces(self) -> list[Piece]:
        """Return all pieces, those of the tables of all arms first."""
        counts = [self.table, *(count for count in self.counts if count != self.table)]
        draws = [Piece(count, draw) for count in counts for draw in range(self.draws)]
        return [Piece(0), *map(Piece, counts), *draws]


def setting_of(
    options: CrossVendor, hub: HubExamples, networks: KeptNetworks, target: str, seed: int
) -> Setting:
    """Return the rows and the configuration of one target and seed."""
    sources = tuple(name for name in NVIDIA if name != target)
    examples = hub.of_devices((*sources, target))
    inputs, number = examples.inputs, hub.devices.index(target)
    counts = tuple(int(n) for n in np.unique(inputs.leaves))
    config = ProgramTrainConfig(ProgramNetworkConfig(counts), steps=options.steps, seed=seed)
    split = by_target(inputs.nest, inputs.target, number, seed)
    tuning = tuning_steps(options.steps)
    return Setting(examples, number, split, HUB_KINDS, config, tuning, networks)


def _arms(options: CrossVendor, setting: Setting, piece: Piece) -> Arms:
    test = setting.test.inputs
    if piece.draw is not None:
        return {RANDOM: setting.tuned_on(setting.drawn(piece.count, piece.draw))}
    if piece.count == 0:
        return unmeasured(setting) | {
            "Habitat's scaling of sources' times": scaled_sources(setting, test),
            "roofline": roofline(test, setting.kinds),
            "mean of the kernel on sources": mean_of_kind(setting.train, test, setting.kinds),
        }
    few = setting.sampled(piece.count)
    found = {
        KMEANS: setting.tuned_on(few),
        BOTH: both(setting, few),
        FACTOR: scaled_by_factors(setting, few),
    }
    if piece.count != options.table:
        return found
    means = {"mean of the kernel in these": mean_of_kind(few, test, setting.kinds)}
    return found | measured(setting, few) | means


def _page(
    options: CrossVendor,
    hub: HubExamples,
    found: dict[str, list[Metrics]],
    missing: Mapping[str, int],
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
    columns = {"k-means": KMEANS, "random": RANDOM, BOTH.replace("these", "k-means"): BOTH,
               FACTOR.replace(" of these", ""): FACTOR}  # fmt: skip
    for target, runs in found.items():
        if runs:
            title = TITLES.get(target, target)
            lines += target_lines(title, runs, options.table, options.counts, columns)
    rest = ", ".join(f"{count} pieces of {target}" for target, count in missing.items())
    lines += ["", "## Not run yet", "", f"{rest}."] if rest else []
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    CrossVendor.main()
