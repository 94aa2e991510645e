"""``go-rl calibrate``: time some kernels or programs on this machine, so that predict knows it."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Annotated, Literal

import tyro

from go_rl.api.calibrate_programs import CalibrateProgramsConfig
from go_rl.api.this_device import CalibrateConfig
from go_rl.cli.console import console, counting, print_line
from go_rl.cli.exit_codes import OK
from go_rl.cli.folders import check_file
from go_rl.cli.next_command import EXAMPLE_MODEL, say_next
from go_rl.core import TrainingError

SHARED = ("minutes", "core", "seed")
"""Fields of `CalibrateConfig` that are read of programs, too."""


@dataclass(frozen=True)
class Calibrate:
    """Options of ``go-rl calibrate``."""

    device: Literal["this"]
    """The machine at hand: one core of its processor."""
    out: Annotated[str | None, tyro.conf.arg(metavar="FILE.npz")] = None
    """File to be written, beside a folder of the records; by default in the user's cache folder,
    where go-rl predict --device this finds it."""
    programs: bool = False
    """Time tensor programs through TVM instead of XLA's kernels, and fine-tune a predictor of them
    (docs/programs.md). Of what follows, minutes, core and seed are read."""
    tasks: int = CalibrateProgramsConfig.tasks
    """Programs: tensor tasks to time, chosen by k-means; the two smallest are timed besides."""
    candidates: int = CalibrateProgramsConfig.candidates
    """Programs: random candidates of each tensor task."""
    weights: Annotated[str, tyro.conf.arg(metavar="NAME|FILE.npz")] = (
        CalibrateProgramsConfig.weights
    )
    """Programs: weights that are fine-tuned; what ships, or a file of go-rl train programs."""
    most_away: float = CalibrateProgramsConfig.most_away
    """Programs: share of the time of timing for which others may have the core; on a machine with
    other work, 1."""
    calibration: CalibrateConfig = field(default_factory=CalibrateConfig)

    @property
    def of_programs(self) -> CalibrateProgramsConfig:
        """The configuration of programs."""
        shared = self.calibration
        return CalibrateProgramsConfig(
            shared.minutes,
            self.tasks,
            self.candidates,
            self.weights,
            self.most_away,
            shared.core,
            shared.seed,
        )


def run(config: Calibrate) -> int:
    """Run the command; returns the exit code."""
    if config.out is not None:
        check_file(Path(config.out), "--out")
    _check_meant(config)
    return _programs(config) if config.programs else _kernels(config)


def _check_meant(config: Calibrate) -> None:
    """Raise a `TrainingError` for an option of what is not calibrated."""
    if config.programs:
        given, usual, asked = config.calibration, CalibrateConfig(), "leave out --programs"
        others = [each.name for each in fields(given) if each.name not in SHARED]
    else:
        given, usual, asked = config, Calibrate(config.device), "give --programs, too"
        others = ["tasks", "candidates", "weights", "most_away"]
    for name in others:
        if getattr(given, name) != getattr(usual, name):
            option, what = name.replace("_", "-"), "kernels" if config.programs else "programs"
            raise TrainingError(f"calibrate: --{option} is an option of {what}; {asked}")


def _programs(config: Calibrate) -> int:
    from go_rl.api.calibrate_programs import calibrate_programs

    given = config.of_programs
    with counting("timing programs", kept="the times measured") as report:
        found = calibrate_programs(config.out, given, report=report)
    out = console()
    print_line(out, f"{found.programs:,} programs of {found.tasks} tasks timed; those of tasks "
                    f"left out are predicted within {found.after:.0f} % on average, before within "
                    f"{found.before:.0f} %: {found.path}")  # fmt: skip
    words = () if config.out is None else ("--weights", str(found.path))
    say_next(out, "predict", EXAMPLE_MODEL, "--device", config.device, "--by", "programs", *words)
    return OK


def _kernels(config: Calibrate) -> int:
    from go_rl.api.this_device import calibrate, this_weights

    with counting("timing kernels", kept="the times measured") as report:
        found = calibrate(config.out, config.calibration, report=report)
    out = console()
    print_line(out, f"{found.kernels:,} kernels timed on {found.processor}; kernels left out are "
                    f"predicted within {found.error:.1f} % on average: {found.path}")  # fmt: skip
    words = ("--weights", str(found.path)) if found.path != this_weights() else ()
    say_next(out, "predict", EXAMPLE_MODEL, "--device", config.device, *words)
    return OK
