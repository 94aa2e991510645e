"""``go-rl evaluate``: methods on graphs in; tables and curves out."""

from __future__ import annotations

from pathlib import Path

from rich.table import Table

from go_rl.cli.configuration import Evaluate
from go_rl.cli.console import console, counting
from go_rl.cli.exit_codes import OK
from go_rl.cli.folders import check_folder
from go_rl.core import TrainingError
from go_rl.report.comparison import FILES, write_comparison
from go_rl.report.comparison_tables import samples_cells
from go_rl.train.evaluate_config import EvaluateConfig

FIXED = 3
"""Columns that a narrow terminal does not wrap."""
DEFAULT_SAMPLES = 200
"""Budget when the user gives neither samples nor seconds."""


def run_evaluate(config: Evaluate) -> int:
    """Run the command; returns the exit code."""
    chosen, folder = _chosen(config), Path(config.out)
    check_folder(folder)
    from go_rl.train.evaluate import evaluate, number_of_runs
    from go_rl.train.summary import settings, summarise

    with counting("comparing", number_of_runs(chosen)) as advance:
        comparison = evaluate(chosen, folder, advance)
        summary = summarise(comparison, config.thresholds)
        write_comparison(comparison, folder, summary)
    out = console()
    for setting in settings(comparison):
        rows = [row for row in summary.rows if row.setting == setting]
        table = Table(title=f"{setting.package}, rules {setting.rules}", title_justify="left")
        heads, cells = samples_cells(rows, summary)
        for i, head in enumerate(heads):
            table.add_column(head, justify="right" if i else "left", no_wrap=i < FIXED)
        for line in cells:
            table.add_row(*line)
        out.print(table)
    out.print(f"written to {folder}: {', '.join(FILES)}", markup=False, soft_wrap=True)
    return OK


def _chosen(config: Evaluate) -> EvaluateConfig:
    for threshold in config.thresholds:
        if not threshold > 0:
            raise TrainingError(f"evaluate: thresholds must be > 0, not {threshold}")
    unlimited = config.samples is None and config.seconds is None
    return EvaluateConfig(
        graphs=config.graphs,
        packages=config.package,
        rules=config.rules,
        cost=config.cost,
        memory={"auto": None, "on": True, "off": False}[config.memory],
        methods=config.methods,
        weights=config.weights,
        samples=DEFAULT_SAMPLES if unlimited else config.samples,
        seconds=config.seconds,
        seeds=config.seeds,
        bound_seconds=config.bound_seconds,
    )
