"""``go-rl measure programs``: real times of random schedules of networks' operators."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import tyro

from go_rl.cli.console import console, counting, print_line
from go_rl.cli.exit_codes import OK
from go_rl.cli.folders import check_folder
from go_rl.measure.programs.settings import ProgramsConfig


@dataclass(frozen=True)
class MeasurePrograms:
    """Options of ``go-rl measure programs``."""

    folder: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="DIR")]
    """Folder of the records: records.sqlite (docs/programs.md)."""
    list: bool = False
    """Only list the tasks; nothing is measured, and TVM is not needed."""
    programs: Annotated[ProgramsConfig, tyro.conf.arg(name="")] = field(
        default_factory=ProgramsConfig
    )


def run(config: MeasurePrograms) -> int:
    """Run ``go-rl measure programs``; returns the exit code."""
    folder = Path(config.folder)
    check_folder(folder, "DIR")
    from go_rl.measure.programs.collect import collect_programs, list_tasks

    out = console()
    if config.list:
        count = list_tasks(config.programs, lambda line: print_line(out, line))
        print_line(out, f"{count:,} tasks")
        return OK
    with counting("measuring") as report:
        made = collect_programs(folder, config.programs, report)
    print_line(out, f"{made:,} measured")
    return OK
