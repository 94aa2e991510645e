"""``go-rl train programs``: from measured tensor programs to the weights of a predictor."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import tyro

from go_rl.api.training.programs import TrainProgramsConfig
from go_rl.cli.console import console, counting, print_line
from go_rl.cli.exit_codes import OK
from go_rl.cli.folders import check_folder


@dataclass(frozen=True)
class TrainPrograms:
    """Options of ``go-rl train programs``."""

    source: Annotated[
        tyro.conf.Positional[tuple[str, ...]], tyro.conf.arg(metavar="DIR|DATA [DIR|DATA ...]")
    ]
    """Folders of go-rl measure programs; data sets, by file or by the name of one that ships; or
    feature files of CDMPP (docs/programs.md). Several are learned from together."""
    out: Annotated[str, tyro.conf.arg(metavar="DIR")] = "programs-weights"
    """Folder to be written: weights.npz, and the trials of a search."""
    search: Annotated[int, tyro.conf.arg(metavar="TRIALS")] = 0
    """Trials of a search for sizes and hyper-parameters; those of earlier runs count."""
    fine_tune: Annotated[str | None, tyro.conf.arg(metavar="NAME|FILE.npz")] = None
    """Weights of any model to be trained further instead of new ones."""
    training: TrainProgramsConfig = field(default_factory=TrainProgramsConfig)


def run(config: TrainPrograms) -> int:
    """Run the command; returns the exit code."""
    check_folder(Path(config.out), "--out")
    from go_rl.api.training.programs import train_programs

    with counting("training") as report:
        found = train_programs(
            config.source, config.out, config.training,
            search=config.search, fine_tune=config.fine_tune, report=report,
        )  # fmt: skip
    out, errors = console(), found.errors
    dropped = ", ".join(f"{count:,} {why}" for why, count in found.dropped if count)
    print_line(out, f"{found.programs:,} programs of {found.tasks:,} tasks learned from"
                    + (f" (left out: {dropped})" if dropped else ""))  # fmt: skip
    mean = ""
    if "mape" in errors:
        mean = f"mean error {errors['mape']:.1f} %, median {errors['median']:.1f} %, "
    print_line(out, f"{config.training.split}: {mean}{errors['pair_accuracy']:.1%} of pairs in "
                    f"order. Weights: {found.path}")  # fmt: skip
    return OK
