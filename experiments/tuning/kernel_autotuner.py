"""The kernel autotuner under five guides: verified speed-up over XLA's default against minutes.

Run: ``python -m experiments.tuning.kernel_autotuner [--models NAME ...] [--minutes 5] [--core 1]
[--cost learned:FILE.npz] [--calibration FILE.npz]``. Each model is tuned (`go_rl.tuning`) for the
same minutes with every guide and seed: ``learned`` and ``analytical`` search by their predictions
and measure the best, ``calibrated`` does so by predictions that ``go-rl calibrate`` corrected with
kernels of networks that are not tuned, ``random`` measures what it draws, ``everything`` all that
there is. All share their records of measurements: what one has measured costs the next the same
minutes again, but is not run again, so that equal kernels have equal times for everybody. The
speed-up is that of a fresh measurement at the end (`go_rl.tuning.xla.alternate_check`); curves
are of what was believed on the way.

A run that was cut off goes on where it stopped (``results/kernel_autotuner.csv``); the curves are
in ``results/kernel_autotuner_curves.csv``.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, get_args

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from experiments.experiment import Experiment
from experiments.page_text import cell, grid_table
from experiments.rows import csv_text, grouped, read_rows
from experiments.statistics import geometric_mean
from go_rl.api.this_device import NETWORKS, CalibrateConfig, calibrate
from go_rl.core.hardware.processor import processor_name
from go_rl.core.plan import write_text
from go_rl.graphs.readers.jax.stages import JaxProgram
from go_rl.report.figures import GREY, LINE_COLOURS, LINE_STYLES, new_figure
from go_rl.tuning import TuneConfig, TuningError
from go_rl.tuning.config import LEARNED
from go_rl.tuning.xla.compilable import load_program
from go_rl.tuning.xla.guides import guide_weights
from go_rl.tuning.xla.outcome import Tuned
from go_rl.tuning.xla.tune_kernels import tune_kernels

MODELS = ("bert-tiny", "resnet18", "transformer-xl-2-layers", "mobilenet-v2")
Arm = Literal["learned", "calibrated", "analytical", "random", "everything"]
GUIDES: tuple[Arm, ...] = get_args(Arm)
CALIBRATED = "calibrated"
KIN: Mapping[str, str] = {"resnet18": "resnet34"}
"""What calibrates in place of a network that is tuned."""
SHARES = (0.25, 0.5, 1.0)
"""Shares of the minutes at which the page shows the best so far."""
POINTS = 200
"""Of the mean curves."""


@dataclass(frozen=True)
class KernelAutotuner(Experiment):
    """Options of this experiment."""

    models: tuple[str, ...] = MODELS
    """Models of the zoo that are JAX functions."""
    guides: tuple[Arm, ...] = GUIDES
    """Guides, which order the measurements; calibrated: the learned one, corrected."""
    minutes: float = 5.0
    """Of each run."""
    trials: int | None = None
    """Fusions and settings of each run, at most; None: as many as the minutes allow."""
    seeds: tuple[int, ...] = (0, 1)
    """Of the searches."""
    cost: str = LEARNED
    """Weights of the learned guide: learned, learned:NAME or learned:FILE.npz."""
    calibration: Path | None = None
    """Of the calibrated guide; by default this.npz in the folder, made where it is missing."""
    kernels: int = 48
    """Timed to calibrate, by k-means."""
    beside: str = ""
    """What ran on the machine meanwhile, for the page."""
    core: int | None = None
    """Core that measures; default: the last one of this process."""
    check_rounds: int = 3
    """Times that winner and default are measured again at the end."""
    folder: Path = Path("out/kernel-autotuner")
    """Records, and what each run found."""

    def run(self) -> None:
        """Make the runs that are missing; write tables, page and figure."""
        path, curves = self.path(".csv"), self.path("_curves.csv")
        rows, points = read_rows(Row, path), read_rows(Point, curves)
        _check_minutes(rows, self, path)
        done = {row.key for row in rows}
        for model in self.models:
            jobs: list[tuple[Arm, int]] = [
                (g, s) for s in self.seeds for g in self.guides if (model, g, s) not in done
            ]
            program = load_program(f"zoo:{model}") if jobs else None
            for guide, seed in jobs:
                assert program is not None
                try:
                    row, found = run(program, model, guide, seed, self)
                except TuningError as error:
                    print(f"{model}, {guide}, seed {seed}: left out: {error}", flush=True)
                    continue
                print(row, flush=True)
                rows = [*rows, row]
                points = [*(p for p in points if p.key != row.key), *found]
                write_text(curves, csv_text(Point, points))
                write_text(path, csv_text(Row, rows))
        self.write_page(page(rows, points))
        if rows:
            self.save_figure(figure(rows, points))


Key = tuple[str, str, int]
"""Model, guide and seed."""


@dataclass(frozen=True)
class Row:
    """One run."""

    model: str
    guide: str
    seed: int
    minutes: float
    """That it might take."""
    nodes: int
    default_ms: float
    """Sum of the kernels of XLA's default, measured again at the end."""
    kept_ms: float
    """The same of what is kept."""
    speedup: float
    fusions: int
    """Measured whole."""
    kernels: int
    """Measurements, those that were known from another run included."""
    processor: str
    """That measured."""
    learned_on: str
    """The processor that the guide's weights learned on; "": no weights, or unknown."""
    calibration: str
    """What corrected them: kernels, minutes, and the error on kernels left out; "": nothing."""
    beside: str
    """What ran on the machine meanwhile; "": not noted."""

    @property
    def key(self) -> Key:
        """Key of a row."""
        return self.model, self.guide, self.seed


@dataclass(frozen=True)
class Point:
    """The best so far of a run, from here on."""

    model: str
    guide: str
    seed: int
    minutes: float
    seconds: float
    default_seconds: float
    """Of XLA's default, as known then."""

    @property
    def key(self) -> Key:
        """Of the run."""
        return self.model, self.guide, self.seed


def _check_minutes(rows: Sequence[Row], options: KernelAutotuner, path: Path) -> None:
    """Raise a `TuningError` for rows of other minutes."""
    if others := {f"{row.minutes:g}" for row in rows if row.minutes != options.minutes}:
        raise TuningError(
            f"{path}: has runs of {', '.join(sorted(others))} minutes, and now each is to take "
            f"{options.minutes:g}; move the file away, or give --minutes {min(others)}"
        )


def run(
    program: JaxProgram, model: str, guide: Arm, seed: int, options: KernelAutotuner
) -> tuple[Row, list[Point]]:
    """Tune a model; return its row and its curve."""
    path, calibration = calibrated(options) if guide == CALIBRATED else (None, "")
    config = TuneConfig(
        minutes=options.minutes,
        guide="learned" if guide == CALIBRATED else guide,
        cost=f"{LEARNED}:{path}" if path else options.cost,
        core=options.core,
        trials=options.trials,
        seed=seed,
        check_rounds=options.check_rounds,
    )
    folder = options.folder / model / f"{guide}-{seed}"
    folder.mkdir(parents=True, exist_ok=True)
    tuned = tune_kernels(program, folder, config, records=options.folder / "records")
    learned_on = guide_weights(config).processor if guide == "learned" else ""
    row = replace(
        row_of(tuned, model, guide, seed, options.minutes), learned_on=learned_on,
        calibration=calibration, beside=options.beside,
    )  # fmt: skip
    return row, [
        Point(model, guide, seed, point.minutes, point.seconds, point.default_seconds)
        for point in tuned.curve
    ]


def row_of(tuned: Tuned, model: str, guide: str, seed: int, minutes: float) -> Row:
    """Return what the table keeps of a run."""
    return Row(
        model=model,
        guide=guide,
        seed=seed,
        minutes=minutes,
        nodes=tuned.fusion.graph.num_nodes,
        default_ms=1e3 * tuned.baseline_seconds,
        kept_ms=1e3 * tuned.kept_seconds,
        speedup=tuned.speedup,
        fusions=tuned.candidates,
        kernels=tuned.measured + tuned.replayed,
        processor=processor_name(),
        learned_on="",
        calibration="",
        beside="",
    )


def calibrated(options: KernelAutotuner) -> tuple[Path, str]:
    """Return the calibration and what the page says of it; it is made where there is none."""
    path = options.calibration or options.folder / "this.npz"
    about = path.with_suffix(".txt")
    if not about.exists():
        networks = tuple(KIN.get(name, name) for name in NETWORKS)
        if tuned := set(networks) & set(options.models):
            raise TuningError(f"{', '.join(sorted(tuned))}: is tuned and would calibrate")
        config = CalibrateConfig(kernels=options.kernels, networks=networks, core=options.core)
        began = time.monotonic()
        found = calibrate(path, config)
        write_text(about, f"{found.kernels} kernels of {len(networks)} other networks, timed in "
                          f"{(time.monotonic() - began) / 60:.1f} minutes; kernels left out are "
                          f"then off by {found.error:.0f} % on average")  # fmt: skip
    return path, about.read_text().strip()


def speedup_at(points: Sequence[Point], minutes: float) -> float:
    """Return how many times faster than the default a run's best so far is, both as known then; 1
    before anything was."""
    found = [point for point in points if point.minutes <= minutes]
    return found[-1].default_seconds / found[-1].seconds if found else 1.0


def mean_speedup_at(
    rows: Sequence[Row], points: Sequence[Point], guide: str, minutes: float
) -> float:
    """Return the geometric mean of `speedup_at` over the runs of a guide."""
    curves = [[p for p in points if p.key == row.key] for row in rows if row.guide == guide]
    return geometric_mean([speedup_at(curve, minutes) for curve in curves])


def page(rows: Sequence[Row], points: Sequence[Point]) -> str:
    """Return the page: verified speed-ups, and how they came with the minutes."""
    guides = list(dict.fromkeys(row.guide for row in rows))
    minutes = rows[0].minutes if rows else 0.0
    seeds = len({row.seed for row in rows})
    columns: dict[str, Callable[..., str]] = {
        "nodes": lambda own: str(own[0].nodes) if own is not rows else "",
        "default, ms": lambda own: (
            f"{geometric_mean(row.default_ms for row in own):.4g}" if own is not rows else ""
        ),
    }
    for guide in guides:
        columns[guide] = lambda own, guide=guide: cell(
            geometric_mean(row.speedup for row in own if row.guide == guide)
        )
    models = {**grouped(rows, lambda row: row.model), "*geometric mean*": rows}
    table = grid_table("model", models, columns)
    return (
        f"# The kernel autotuner under {len(guides)} guides\n\n{minutes:g} minutes for each model, "
        f"guide and seed ({seeds}), verification not included. Speed-up over XLA's default fusion "
        "and flags, verified by a fresh measurement of both at the end; geometric mean over "
        f"seeds. {_where(rows)}\n\n{table.replace('|  ', '| ')}{_progress(rows, points, guides)}"
    )


def _where(rows: Sequence[Row]) -> str:
    """Which processors measured, and which ones the learned guide knows."""
    measured = ", ".join(dict.fromkeys(row.processor for row in rows if row.processor))
    learned = ", ".join(dict.fromkeys(row.learned_on for row in rows if row.learned_on))
    corrected = "; ".join(dict.fromkeys(row.calibration for row in rows if row.calibration))
    beside = "; ".join(dict.fromkeys(row.beside for row in rows if row.beside))
    return f"Measured on {measured or 'an unknown processor'}" + (
        f"; *learned* learned on {learned}" if learned else ""
    ) + (
        f"; *calibrated* is corrected by {corrected} (once for each machine, not in the minutes)"
        if corrected else ""
    ) + (f". Meanwhile: {beside}" if beside else "") + "."  # fmt: skip


def _progress(rows: Sequence[Row], points: Sequence[Point], guides: Sequence[str]) -> str:
    if not rows:
        return ""
    own = grouped(rows, lambda row: row.guide)
    columns: dict[str, Callable[..., str]] = {}
    for moment in (share * rows[0].minutes for share in SHARES):
        columns[f"after {moment:g} min"] = lambda guide, moment=moment: (
            f"{mean_speedup_at(rows, points, guide, moment):.3f}"
        )
    columns["verified"] = lambda guide: f"{geometric_mean(row.speedup for row in own[guide]):.3f}"
    for count in ("fusions", "kernels"):
        columns[count] = lambda guide, count=count: (
            f"{np.median([getattr(row, count) for row in own[guide]]):.0f}"
        )
    return (
        "\nSpeed-up of the best so far as measured on the way, which flatters what was chosen; "
        "geometric mean over all runs. Fusions and kernels: medians.\n\n"
        f"{grid_table('guide', guides, columns)}"
    )


def figure(rows: Sequence[Row], points: Sequence[Point]) -> Figure:
    """Return the picture: best so far against minutes, a panel for each model and one for all."""
    models = list(dict.fromkeys(row.model for row in rows))
    columns = min(3, len(models) + 1)
    lines = -(-(len(models) + 1) // columns)
    picture = new_figure(4.0 * columns, 3.2 * lines)
    panels = picture.subplots(lines, columns, squeeze=False).ravel()
    for axes, model in zip(panels, (*models, None), strict=False):
        _draw(axes, [row for row in rows if model in (None, row.model)], points, rows[0].minutes)
        axes.set_title(model or "all models, geometric mean", fontsize=10)
    for axes in panels[len(models) + 1 :]:
        axes.set_visible(False)
    handles, labels = panels[0].get_legend_handles_labels()
    picture.legend(handles, labels, loc="outside right upper", frameon=False)
    return picture


def _draw(axes: Axes, rows: Sequence[Row], points: Sequence[Point], minutes: float) -> None:
    at = np.linspace(0.0, minutes, POINTS)
    for i, guide in enumerate(dict.fromkeys(row.guide for row in rows)):
        mean = [mean_speedup_at(rows, points, guide, moment) for moment in at.tolist()]
        axes.step(at, mean, where="post", label=guide, color=LINE_COLOURS[i],
                  linestyle=LINE_STYLES[i % len(LINE_STYLES)])  # fmt: skip
    axes.axhline(1.0, color=GREY, linewidth=0.8)
    axes.set_xlabel("minutes of tuning")
    axes.set_ylabel("speed-up as measured on the way")


if __name__ == "__main__":
    KernelAutotuner.main()
