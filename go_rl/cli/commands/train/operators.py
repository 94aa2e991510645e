"""``go-rl train operators``: from measured operators to the weights of ``go-rl predict``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from go_rl.cli.console import console, print_line, working
from go_rl.cli.exit_codes import OK
from go_rl.cli.folders import check_file
from go_rl.cli.next_command import say_next


@dataclass(frozen=True)
class TrainOperators:
    """Options of ``go-rl train operators``."""

    data: Annotated[tyro.conf.Positional[tuple[str, ...]], tyro.conf.arg(metavar="DIR [DIR ...]")]
    """Folders of measured operators: OPERATOR.csv or .csv.gz with sizes, latency_ms, device."""
    out: Annotated[str, tyro.conf.arg(metavar="OUT.npz")]
    """Weights to be written."""


def run(config: TrainOperators) -> int:
    """Run the command; returns the exit code."""
    check_file(Path(config.out), "--out", ".npz")
    from go_rl.api.predict import train_operators

    with working(f"learning from {', '.join(config.data)}"):
        learned = train_operators(config.data, config.out)
    names = ", ".join(sheet.name for sheet in learned.sheets)
    print_line(console(), f"learned from {names}. Weights: {config.out}")
    say_next(console(), "predict", "operators.csv", "--device", "t4", "--weights", config.out)
    return OK
