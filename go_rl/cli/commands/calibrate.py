"""``go-rl calibrate``: time some kernels on this machine, so that predict knows it."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

import tyro

from go_rl.api.this_device import CalibrateConfig
from go_rl.cli.console import console, counting, print_line
from go_rl.cli.exit_codes import OK
from go_rl.cli.folders import check_file
from go_rl.cli.next_command import EXAMPLE_MODEL, say_next


@dataclass(frozen=True)
class Calibrate:
    """Options of ``go-rl calibrate``."""

    device: Literal["this"]
    """The machine at hand: one core of its processor."""
    out: Annotated[str | None, tyro.conf.arg(metavar="FILE.npz")] = None
    """File to be written, beside a folder of the records; by default in the user's cache folder,
    where go-rl predict --device this finds it."""
    calibration: CalibrateConfig = field(default_factory=CalibrateConfig)


def run(config: Calibrate) -> int:
    """Run the command; returns the exit code."""
    if config.out is not None:
        check_file(Path(config.out), "--out")
    from go_rl.api.this_device import calibrate, this_weights

    with counting("timing kernels") as report:
        found = calibrate(config.out, config.calibration, report=report)
    out = console()
    print_line(out, f"{found.kernels:,} kernels timed on {found.processor}; kernels left out are "
                    f"predicted within {found.error:.1f} % on average: {found.path}")  # fmt: skip
    words = ("--weights", str(found.path)) if found.path != this_weights() else ()
    say_next(out, "predict", EXAMPLE_MODEL, "--device", config.device, *words)
    return OK
