"""``go-rl train flags``: from kernels measured under XLA's flags to weights that rank these."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import tyro

from go_rl.api.training.predictors import TrainFlagsConfig
from go_rl.cli.console import console, counting, print_line
from go_rl.cli.exit_codes import OK
from go_rl.cli.folders import check_file
from go_rl.cli.next_command import EXAMPLE_MODEL, say_next


@dataclass(frozen=True)
class TrainFlags:
    """Options of ``go-rl train flags``."""

    source: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="DIR|DATA")]
    """A folder of go-rl measure kernels --vary flags, or a data set: a file, or the name of one
    that ships."""
    out: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="OUT.npz")]
    """Weights to be written; the file's name is theirs."""
    training: TrainFlagsConfig = field(default_factory=TrainFlagsConfig)


def run(config: TrainFlags) -> int:
    """Run ``go-rl train flags``; returns the exit code."""
    check_file(Path(config.out), "OUT.npz")
    from go_rl.api.training.predictors import train_flags

    with counting("training") as report:
        weights = train_flags(config.source, config.out, config.training, report=report)
    learned = f"{weights.card['kernels']:,} kernels on {weights.target} learned from"
    print_line(console(), f"{learned}. Weights: {config.out}")
    say_next(console(), "tune", "kernels", EXAMPLE_MODEL, "--ranks", config.out)
    return OK
