"""``go-rl evaluate``: methods on graphs in; tables and curves out."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from go_rl.api.zoo import ZOO_PREFIX
from go_rl.cli.console import console, counting, print_line, print_table
from go_rl.cli.exit_codes import OK
from go_rl.cli.folders import check_folder
from go_rl.cli.next_command import say_next
from go_rl.compare.benchmark.config import EvaluateConfig
from go_rl.report.text_table import TextTable

if TYPE_CHECKING:
    from go_rl.api.evaluate import Evaluated


@dataclass(frozen=True)
class Evaluate:
    """Options of ``go-rl evaluate``."""

    config: Annotated[EvaluateConfig, tyro.conf.arg(name="")]
    out: Annotated[str, tyro.conf.arg(metavar="DIR")] = "out/evaluate"
    """Folder for runs, tables and curves; what is finished there is not run again."""


def run(options: Evaluate) -> int:
    """Run the command; returns the exit code."""
    config, folder = options.config, Path(options.out)
    check_folder(folder)
    from go_rl.api.evaluate import evaluate
    from go_rl.report.comparison import CONTROL_FILES, FILES
    from go_rl.report.comparison_tables import samples_cells
    from go_rl.report.control_tables import (
        HEADS,
        WORDS,
        control_cells,
        control_tables,
        summary_sentence,
    )

    with counting("comparing", kept="finished runs") as report:
        found = evaluate(config, folder, report=report)
    out = console()
    for setting, rows in found.by_setting.items():
        what = "throughput over the compiler heuristic's, at the end and after this many samples"
        title = f"{setting.title}: {what} (higher is better)"
        print_table(out, TextTable(title, *samples_cells(rows, found.summary)))
        best = found.best(setting)
        print_line(out, f"best: {best.method}, {best.improvement[0]:.3f} times the throughput of "
                        "the compiler heuristic")  # fmt: skip
    for title, shown in control_tables(found.controls).items():
        print_table(out, TextTable(title, HEADS, control_cells(shown), words=WORDS))
        print_line(out, summary_sentence(shown))
    files = (*FILES, *(CONTROL_FILES if config.controls else ()))
    print_line(out, f"written to {folder}: {', '.join(files)}")
    say_next(out, *_after(config, found))
    return OK


def _after(config: EvaluateConfig, found: Evaluated) -> list[str]:
    """The command that plans the first graph by the method that did best in the first setting."""
    from go_rl.api.optimize import methods

    setting = next(iter(found.by_setting))
    first = config.graphs[0]
    if first.startswith(ZOO_PREFIX):  # which may be a whole split
        first = f"{ZOO_PREFIX}{found.comparison.runs[0].problem.graph}"
    best = found.best(setting).method
    chosen = ("--decide", setting.decide) if setting.decide else ("--rules", setting.rules)
    every = ("--all-chips",) if setting.all_chips else ()
    starts = any(run.weights for run in found.comparison.runs if run.method == best)
    weights = ("--weights", config.weights) if config.weights and starts else ()
    words = ["optimize", first, "--hardware", setting.hardware, *chosen, *every, *weights]
    return [*words, "--method", best if best in methods(setting.objective) else "auto"]
