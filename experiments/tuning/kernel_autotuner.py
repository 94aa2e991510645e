"""The kernel autotuner under five guides: verified speed-up over XLA's default.

Run: ``python -m experiments tuning.kernel_autotuner [--models NAME ...] [--minutes 5] [--core 1]
[--cost learned:FILE.npz] [--calibration FILE.npz]``. ``calibrated`` searches by predictions that
``go-rl calibrate`` corrected with kernels of networks that are not tuned. All guides share their
records: what one has measured costs the next the same minutes again, but is not run again. The
speed-up is that of a fresh measurement at the end
(`go_rl.tuning.xla.tune_kernels.check_alternately`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from pathlib import Path
from typing import Literal, get_args

from experiments.experiment import Experiment
from experiments.page_text import cell, grid_table
from experiments.rows import grouped
from experiments.statistics import geometric_mean
from go_rl.api.this_device import NETWORKS, CalibrateConfig, calibrate
from go_rl.core.hardware.processor import processor_name
from go_rl.core.plan import write_text
from go_rl.graphs.readers.jax.stages import JaxProgram
from go_rl.tuning import TuneConfig, TuningError
from go_rl.tuning.config import LEARNED
from go_rl.tuning.xla.compilable import load_program
from go_rl.tuning.xla.guides import guide_weights
from go_rl.tuning.xla.tune_kernels import tune_kernels

MODELS = ("bert-tiny", "resnet18", "transformer-xl-2-layers", "mobilenet-v2")
Arm = Literal["learned", "calibrated", "analytical", "random", "everything"]
GUIDES: tuple[Arm, ...] = get_args(Arm)
CALIBRATED = "calibrated"
KIN: Mapping[str, str] = {"resnet18": "resnet34"}
"""What calibrates in place of a network that is tuned."""


@dataclass(frozen=True)
class KernelAutotuner(Experiment):
    """Options of this experiment."""

    models: tuple[str, ...] = MODELS
    """Models of the zoo that are JAX functions."""
    guides: tuple[Arm, ...] = GUIDES
    """Guides, which order the measurements; calibrated: the learned one, corrected."""
    minutes: float = 5.0
    """Of each run."""
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
        """Make the runs that are missing; write table and page."""
        table = self.kept_rows(Row)
        _check_minutes(table.rows, self, table.path)
        jobs = product(self.models, self.seeds, self.guides)
        table.fill(((model, guide, seed) for model, seed, guide in jobs), self._rows)
        self.write_page(page(table.rows))

    def _rows(self, model: str, guide: Arm, seed: int) -> Iterator[Row]:
        try:
            yield run(program_of(model), model, guide, seed, self)
        except TuningError as error:
            print(f"{model}, {guide}, seed {seed}: left out: {error}", flush=True)


@lru_cache(maxsize=1)
def program_of(model: str) -> JaxProgram:
    """Return the program of a model; the last one is kept."""
    return load_program(f"zoo:{model}")


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


def _check_minutes(rows: Sequence[Row], options: KernelAutotuner, path: Path) -> None:
    """Raise a `TuningError` for rows of other minutes."""
    if others := {f"{row.minutes:g}" for row in rows if row.minutes != options.minutes}:
        raise TuningError(
            f"{path}: has runs of {', '.join(sorted(others))} minutes, and now each is to take "
            f"{options.minutes:g}; move the file away, or give --minutes {min(others)}"
        )


def run(program: JaxProgram, model: str, guide: Arm, seed: int, options: KernelAutotuner) -> Row:
    """Tune a model; return its row."""
    path, calibration = calibrated(options) if guide == CALIBRATED else (None, "")
    config = TuneConfig(
        minutes=options.minutes, guide="learned" if guide == CALIBRATED else guide,
        cost=f"{LEARNED}:{path}" if path else options.cost, core=options.core,
        seed=seed, check_rounds=options.check_rounds,
    )  # fmt: skip
    folder = options.folder / model / f"{guide}-{seed}"
    folder.mkdir(parents=True, exist_ok=True)
    tuned = tune_kernels(program, folder, config, records=options.folder / "records")
    return Row(
        model=model, guide=guide, seed=seed, minutes=options.minutes,
        nodes=tuned.fusion.graph.num_nodes, default_ms=1e3 * tuned.default_seconds,
        kept_ms=1e3 * tuned.kept_seconds, speedup=tuned.speedup, fusions=tuned.candidates,
        kernels=tuned.measured + tuned.replayed, processor=processor_name(),
        learned_on=guide_weights(config).processor if guide == "learned" else "",
        calibration=calibration, beside=options.beside,
    )  # fmt: skip


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


def page(rows: Sequence[Row]) -> str:
    """Return the page: verified speed-ups."""
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
        f"seeds. {_where(rows)}\n\n{table.replace('|  ', '| ')}"
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
