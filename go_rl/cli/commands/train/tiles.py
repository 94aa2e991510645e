"""``go-rl train tiles``: from measured configurations to the weights that rank them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from go_rl.api.training.predictors import TrainTilesConfig
from go_rl.cli.console import console, counting, print_line
from go_rl.cli.exit_codes import OK
from go_rl.cli.folders import check_file
from go_rl.cli.next_command import EXAMPLE_MODEL, say_next


@dataclass(frozen=True)
class TrainTiles:
    """Options of ``go-rl train tiles``."""

    out: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="OUT.npz")]
    """Weights to be written."""
    training: TrainTilesConfig


def run(config: TrainTiles) -> int:
    """Run ``go-rl train tiles``; returns the exit code."""
    check_file(Path(config.out), "OUT.npz")
    from go_rl.api.training.predictors import train_tiles

    with counting("training") as report:
        weights = train_tiles(config.out, config.training, report=report)
    groups = ", ".join(f"{count:,} of {what}" for what, count in weights.card["groups"].items())
    print_line(console(), f"{weights.target}: groups learned from: {groups}. Weights: {config.out}")
    ranks = ("--ranks", config.out) if "flags" in weights.card["groups"] else ()
    say_next(console(), "tune", "kernels", EXAMPLE_MODEL, *ranks)
    return OK
