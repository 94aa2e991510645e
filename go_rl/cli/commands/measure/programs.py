"""``go-rl measure programs``: real times of random candidates of networks' operators."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import tyro

from go_rl.cli.console import console, counting, print_line
from go_rl.cli.exit_codes import OK
from go_rl.cli.folders import check_folder
from go_rl.core.printable import counted
from go_rl.costs.timing.config import ProgramsConfig


@dataclass(frozen=True)
class MeasurePrograms:
    """Options of ``go-rl measure programs``."""

    folder: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="DIR")]
    """Folder of the records: records.sqlite (docs/programs.md)."""
    list: bool = False
    """Only list the tensor tasks; nothing is measured, and TVM is not needed."""
    programs: ProgramsConfig = field(default_factory=ProgramsConfig)


def run(config: MeasurePrograms) -> int:
    """Run ``go-rl measure programs``; returns the exit code."""
    folder, programs = Path(config.folder), config.programs
    check_folder(folder, "DIR")
    from go_rl.api.measure import measure_programs, tensor_tasks

    out = console()
    if config.list:
        tasks = tensor_tasks(programs)
        for network, title, flops in tasks:
            print_line(out, f"{network}: {title}, {flops / 1e6:.3g} MFLOP")
        networks = Counter(network for network, _, _ in tasks)
        for network, count in networks.items():
            print_line(out, f"{network}: {count} tasks of its own")
        print_line(out, f"{len(tasks):,} tasks of {len(networks)} networks")
        return OK
    with counting("measuring", kept="the times measured") as report:
        found = measure_programs(folder, programs, report=report)
    known = f"{counted(found.records, 'record')} of {programs.target} in {found.path}"
    print_line(out, f"{found.made:,} measured, {known}")
    return OK
