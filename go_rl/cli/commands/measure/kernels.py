"""``go-rl measure kernels``: real times of kernels on this machine."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import tyro

from go_rl.cli.console import console, counting, print_line
from go_rl.cli.exit_codes import OK
from go_rl.cli.folders import check_folder
from go_rl.cli.next_command import say_next
from go_rl.core.printable import counted
from go_rl.costs.timing.config import CollectConfig


@dataclass(frozen=True)
class MeasureKernels:
    """Options of ``go-rl measure kernels``."""

    folder: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="DIR")]
    """Folder of the records: records.sqlite, kernels/MODEL.npz (docs/kernels.md)."""
    models: tuple[str, ...] = ()
    """Graphs of the zoo, with spaces between; none: all of them."""
    measure: CollectConfig = field(default_factory=CollectConfig)
    """Kernels to measure, and how."""


def run(config: MeasureKernels) -> int:
    """Run ``go-rl measure kernels``; returns the exit code."""
    folder, measure = Path(config.folder), config.measure
    check_folder(folder, "DIR")
    from go_rl.api.measure import measure_kernels

    with counting("measuring", kept="the times measured") as report:
        found = measure_kernels(folder, measure, config.models, report=report)
    out = console()
    known = f"{counted(found.records, 'record')} of {measure.target} in {found.path}"
    print_line(out, f"{found.made:,} measured, {known}")
    if measure.vary == "flags":
        say_next(out, "train", "flags", folder, folder / "ranks.npz")
    else:
        say_next(out, "train", "kernels", folder, folder / "weights.npz")
    return OK
