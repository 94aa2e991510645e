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
from go_rl.api.this_device import NETWORKS, CalibrateConfig, calibrate
from go_rl.core import OpGraph
from go_rl.core.hardware.processor import processor_name
from go_rl.core.plan import write_text
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

    folder: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="FOLDER")]
    """Calibrations, and records of whole networks."""
    looked_at: tuple[str, ...] = LOOKED_AT
    """Networks of the zoo whose errors led to this cost model; none of them calibrates."""
    unseen: tuple[str, ...] = UNSEEN
    """Networks whose errors are on this page for the first time."""
    kernels: int = 48
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
        folder = Path(self.folder)
        calibrations = []
        for seed in self.seeds if "calibrations" in self.parts else ():
            _calibrate(folder, seed, self)
        names = (*self.looked_at, *self.unseen)
        if "networks" in self.parts:
            measured_networks(folder, names, self.core)
        if "page" not in self.parts:
            return
        calibrations = [_found(folder, seed) for seed in self.seeds]
        seconds = {name: _kept(folder, name) for name in names}
        self.write_page(page(self, calibrations, seconds))


@dataclass(frozen=True)
class Found:
    """A calibration."""

    kernels: CalibratedKernels
    minutes: float
    """That it took; NaN: its kernels were timed in several runs."""
    timed: int
    """Kernels and chains."""


def measured_networks(folder: Path, names: Sequence[str], core: int | None) -> None:
    """Time whole networks one by one; those that have a time are left out."""
    for name in names:
        if _kept(folder, name) is not None:
            continue
        program = zoo_program(zoo_model(name))
        config = CollectConfig(core=core, timeout=120.0)
        nodes = tuple(np.flatnonzero(~program.graph.is_fed).tolist())
        whole = ChosenKernel(program, nodes, f"whole {name}", name)
        found = measure_chosen([whole], folder / "whole", config, 3600.0, lambda done, said: None)
        seconds = found.get(f"whole {name}")
        write_text(folder / f"{name}.txt", "" if seconds is None else repr(seconds))
        print(name, seconds, flush=True)


def page(
    options: EndToEndCpu, calibrations: Sequence[Found], seconds: Mapping[str, float | None]
) -> str:
    """Return the page."""
    lines = [
        "# Whole networks on this processor",
        "",
        f"Milliseconds on one core of {processor_name()}, compiled by XLA as a whole, against a",
        "cost model that learned on another processor",
        f"({calibrations[0].kernels.source}), corrected by kernels of {len(NETWORKS)} other",
        f"networks. {len(calibrations)} calibrations, each with its own choice of kernels;",
        "predictions are their means, errors those of each. *Parts alone*: without what",
        "XLA computes again in several loops, and without the slow-down of convolutions that its",
        "library computes in one piece (docs/programs.md).",
        *([f"Meanwhile: {options.beside}."] if options.beside else []),
        "",
    ]
    rows = [
        [str(seed), str(c.timed), cell(c.minutes, 1), f"{c.kernels.error:.1f}",
         f"× {c.kernels.chain_factor:.2f}"]
        for seed, c in zip(options.seeds, calibrations, strict=True)
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
    calibrations: Sequence[Found],
    seconds: Mapping[str, float | None],
) -> list[str]:
    rows, errors, alone = [], [], []
    for name in names:
        measured = seconds[name]
        if measured is None:
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
    name: str, graph: OpGraph, calibrations: Sequence[Found], measured: float
) -> tuple[list[str], list[float], list[float]]:
    """A line, and the relative errors of each calibration with and without what joins kernels."""
    network = compiled_network(graph)
    found = [each.kernels.network(network) for each in calibrations]
    sums = np.array([[f.seconds.sum(), f.low.sum(), f.high.sum()] for f in found])
    parts = [each.kernels.predict(network.kernels).sum() for each in calibrations]
    errors, alone = sums[:, 0] / measured - 1, np.array(parts) / measured - 1
    mean, low, high = 1e3 * sums.mean(axis=0)
    said = ", ".join(f"{100 * error:+.1f}" for error in errors)
    line = [name, f"{1e3 * measured:.3g}", f"{mean:.3g}", f"{low:.3g} to {high:.3g}", said,
            f"{100 * alone.mean():+.1f}"]  # fmt: skip
    return line, errors.tolist(), alone.tolist()


def _calibrate(folder: Path, seed: int, options: EndToEndCpu) -> None:
    """Make a calibration, or leave it if it is there; one that was cut off goes on."""
    path = folder / f"this-{seed}.npz"
    about = path.with_suffix(".txt")
    if about.exists():
        return
    config = CalibrateConfig(options.minutes, options.kernels, NETWORKS, options.core, seed)
    found, spent = timed(
        lambda: calibrate(path, config, report=lambda *said: print(*said, flush=True)),
        time.monotonic,
    )
    write_text(about, f"{spent / 60!r} {found.kernels}")


def _found(folder: Path, seed: int) -> Found:
    path = folder / f"this-{seed}.npz"
    minutes, timed = path.with_suffix(".txt").read_text().split()
    return Found(CalibratedKernels.load(path), float(minutes), int(timed))


def _kept(folder: Path, name: str) -> float | None:
    """Seconds of a network that was timed as a whole."""
    path = folder / f"{name}.txt"
    text = path.read_text() if path.exists() else ""
    return float(text) if text else None
