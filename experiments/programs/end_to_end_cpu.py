"""Networks compiled by XLA for this machine's processor: predicted against measured.

Run: ``python -m experiments programs.end_to_end_cpu FOLDER``. A cost model that learned on another
processor is corrected by kernels of other networks (`go_rl.calibrate`), several times, and prices
each network's kernels; the network is also timed as a whole. What is measured stays in the folder
(``--parts`` does some of the work at a time).
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
import tyro

from experiments.experiment import Experiment, timed
from experiments.page_text import NOTHING, cell, table_lines
from experiments.rows import KeptRows
from go_rl.api.this_device import NETWORKS, CalibrateConfig, calibrate
from go_rl.core import OpGraph
from go_rl.core.hardware.processor import processor_name
from go_rl.costs.kernels.calibrated import CalibratedKernels
from go_rl.costs.kernels.measure.chosen import ChosenKernel, measure_chosen
from go_rl.costs.kernels.measure.exported import zoo_program
from go_rl.costs.timing.config import CollectConfig
from go_rl.graphs.cutting.compiled import compiled_network
from go_rl.graphs.zoo.index import zoo_graph
from go_rl.graphs.zoo.models.inventory import zoo_model

LOOKED_AT = ("resnet34", "bert-small", "t5-small", "mixer-b16-b8", "whisper-tiny", "hrnet-w18")
UNSEEN = ("unet", "fractalnet-4", "hrnet-w32-small", "vit-small-b8", "swin-tiny", "gpt2-small",
          "transformer-base", "wav2vec2-base", "bert-medium", "convdraw")  # fmt: skip
PUBLISHED = 12.4
Part = Literal["calibrations", "networks", "page"]


@dataclass(frozen=True)
class EndToEndCpu(Experiment):
    """Options of this experiment."""

    folder: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="FOLDER")]
    """Calibrations, and records of whole networks."""
    looked_at: tuple[str, ...] = LOOKED_AT
    """Networks of the zoo whose errors led to this cost model; none of them calibrates."""
    unseen: tuple[str, ...] = UNSEEN
    """Networks whose errors are on this page for the first time."""
    kernels_timed: Annotated[int, tyro.conf.arg(name="kernels")] = 48
    """Timed for each calibration."""
    seeds: tuple[int, ...] = (0, 1, 2)
    """Of the calibrations."""
    minutes: float = 20.0
    """Of each calibration, at most."""
    core: int | None = None
    """That measures; by default the last one of this process."""
    beside: str = ""
    """What ran on the machine meanwhile, for the page."""
    page_name: Annotated[str, tyro.conf.arg(name="name")] = field(default="", kw_only=True)
    """Name of the page, one for each processor; empty: that of the script."""
    parts: tuple[Part, ...] = ("calibrations", "networks", "page")
    """What is done now."""

    def run(self) -> None:
        """Make what is asked for."""
        calibrations = KeptRows(Calibration, self.folder / "calibrations.csv")
        whole = KeptRows(WholeNetwork, self.folder / "networks.csv")
        if "calibrations" in self.parts:
            calibrations.fill(((seed,) for seed in self.seeds), self._calibrated)
        if "networks" in self.parts:
            whole.fill(((name,) for name in (*self.looked_at, *self.unseen)), self._measured)
        if "page" in self.parts:
            asked = [each for each in calibrations.rows if each.seed in self.seeds]
            self.write_page(page(self, asked, {row.network: row.seconds for row in whole.rows}))

    def kernels(self, seed: int) -> Path:
        """Return the file of a calibration."""
        return self.folder / f"this-{seed}.npz"

    def _calibrated(self, seed: int) -> Calibration:
        """Make a calibration; one that was cut off goes on."""
        config = CalibrateConfig(self.minutes, self.kernels_timed, NETWORKS, self.core, seed)
        found, spent = timed(
            lambda: calibrate(self.kernels(seed), config, report=print), time.monotonic
        )
        return Calibration(seed, spent / 60, found.kernels)

    def _measured(self, name: str) -> WholeNetwork:
        """Time a whole network."""
        program = zoo_program(zoo_model(name))
        config = CollectConfig(core=self.core, timeout=120.0)
        nodes = tuple(np.flatnonzero(~program.graph.is_fed).tolist())
        whole = ChosenKernel(program, nodes, f"whole {name}", name)
        found = measure_chosen(
            [whole], self.folder / "whole", config, 3600.0, lambda done, said: None
        )
        return WholeNetwork(name, found.get(f"whole {name}", float("nan")))


@dataclass(frozen=True)
class WholeNetwork:
    """A network that was timed as a whole."""

    network: str
    seconds: float
    """NaN: it failed."""


@dataclass(frozen=True)
class Calibration:
    """A calibration, whose kernels are in a file beside."""

    seed: int
    minutes: float
    timed: int
    """Kernels and chains."""


def page(options: EndToEndCpu, found: Sequence[Calibration], seconds: Mapping[str, float]) -> str:
    """Return the page."""
    calibrations = [CalibratedKernels.load(options.kernels(each.seed)) for each in found]
    lines = [
        "# Whole networks on this processor",
        "",
        f"Milliseconds on one core of {processor_name()}, compiled by XLA as a whole, against a",
        "cost model that learned on another processor",
        f"({calibrations[0].source}), corrected by kernels of {len(NETWORKS)} other",
        f"networks. {len(calibrations)} calibrations, each with its own choice of kernels;",
        "predictions are their means, errors those of each. *Parts alone*: without what",
        "XLA computes again in several loops, and without the slow-down of convolutions that its",
        "library computes in one piece (docs/programs.md).",
        *([f"Meanwhile: {options.beside}."] if options.beside else []),
        "",
    ]
    rows = [
        [str(each.seed), str(each.timed), cell(each.minutes, 1), f"{c.error:.1f}",
         f"× {c.chain_factor:.2f}"]
        for each, c in zip(found, calibrations, strict=True)
    ]  # fmt: skip
    heads = ["calibration", "kernels timed", "minutes", "error on kernels left out, %",
             "chains take"]  # fmt: skip
    lines += table_lines(heads, rows)
    lines += _group("Networks never used before", options.unseen, calibrations, seconds)
    lines += _group("Networks whose errors led to this model", options.looked_at, calibrations,
                    seconds)  # fmt: skip
    return "\n".join([*lines, ""])


def _group(
    title: str,
    names: Sequence[str],
    calibrations: Sequence[CalibratedKernels],
    seconds: Mapping[str, float],
) -> list[str]:
    rows, errors, alone = [], [], []
    for name in names:
        measured = seconds[name]
        if np.isnan(measured):
            rows.append([name, *[NOTHING] * 5])
            continue
        row, own, parts = _row(name, zoo_graph(name), calibrations, measured)
        rows.append(row)
        errors.append(own)
        alone.append(parts)
    means, before = (100 * np.abs(np.array(e)).mean(axis=0) for e in (errors, alone))
    return [
        "",
        f"## {title}",
        "",
        f"Mean absolute error {means.mean():.1f} % ({means.min():.1f} to {means.max():.1f} % by "
        f"calibration); of the parts alone {before.mean():.1f} %. Published: {PUBLISHED} %.",
        "",
        *table_lines(
            [
                "network", "measured", "predicted", "90 % interval", "error %",
                "parts alone, error %",
            ],
            rows,
        ),
    ]  # fmt: skip


def _row(
    name: str, graph: OpGraph, calibrations: Sequence[CalibratedKernels], measured: float
) -> tuple[list[str], list[float], list[float]]:
    """A line, and the relative errors of each calibration with and without what joins kernels."""
    network = compiled_network(graph)
    found = [each.network(network) for each in calibrations]
    sums = np.array([[f.seconds.sum(), f.low.sum(), f.high.sum()] for f in found])
    parts = [each.predict(network.kernels).sum() for each in calibrations]
    errors, alone = sums[:, 0] / measured - 1, np.array(parts) / measured - 1
    mean, low, high = 1e3 * sums.mean(axis=0)
    said = ", ".join(f"{100 * error:+.1f}" for error in errors)
    line = [name, f"{1e3 * measured:.3g}", f"{mean:.3g}", f"{low:.3g} to {high:.3g}", said,
            f"{100 * alone.mean():+.1f}"]  # fmt: skip
    return line, errors.tolist(), alone.tolist()
