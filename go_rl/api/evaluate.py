"""`evaluate`: methods compared on graphs, at equal samples and equal seconds."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from go_rl.api.progress import Progress, ignore, of_total
from go_rl.compare.benchmark.config import EvaluateConfig
from go_rl.core.files.run_lock import exclusive

if TYPE_CHECKING:
    from go_rl.compare.benchmark.evaluate import Comparison
    from go_rl.compare.benchmark.run_store import Setting
    from go_rl.compare.benchmark.summary import Summary, SummaryRow
    from go_rl.compare.controls.control_table import ControlRow


@dataclass(frozen=True)
class Evaluated:
    """All runs of a comparison, and one line for each hardware, rule set and method."""

    comparison: Comparison
    summary: Summary
    controls: tuple[ControlRow, ...] = ()
    """Policies beside their control arms; empty unless ``controls`` asked for them."""

    @property
    def by_setting(self) -> dict[Setting, list[SummaryRow]]:
        """Lines of each hardware and rule set, in the order of the configuration."""
        rows: dict[Setting, list[SummaryRow]] = {}
        for row in self.summary.rows:
            rows.setdefault(row.setting, []).append(row)
        return rows

    def best(self, setting: Setting) -> SummaryRow:
        """Return the method with the highest throughput at the end."""
        return max(self.by_setting[setting], key=lambda row: np.nan_to_num(row.improvement[0]))


@exclusive("folder")
def evaluate(config: EvaluateConfig, folder: str | Path, *, report: Progress = ignore) -> Evaluated:
    """Run every method on every problem with every seed; write tables and curves to a folder.

    With ``controls`` the control arms of every policy run as well, at equal samples and then at
    equal seconds; the other tables and curves are those of the first.

    Args:
        config: what is compared.
        folder: for runs, tables and curves; what is finished there is not run again.
        report: called with the runs done, all runs and a sentence.

    Raises:
        GoRLError: an unknown graph, hardware, rule set or method; a folder that cannot be written.
    """
    from go_rl.compare.benchmark import evaluate as benchmark
    from go_rl.compare.benchmark.summary import summarise
    from go_rl.compare.controls.control_table import budgets, evaluate_controls
    from go_rl.report.comparison import write_comparison, write_controls

    alone = budgets(config) if config.controls else [config]
    progress = of_total(report, sum(benchmark.number_of_runs(one) for one in alone))
    rows: tuple[ControlRow, ...] = ()
    if config.controls:
        found = evaluate_controls(config, folder, progress)
        comparison, rows = found.comparisons[0], found.rows
        write_controls(rows, folder)
    else:
        comparison = benchmark.evaluate(config, folder, progress)
    summary = summarise(comparison)
    write_comparison(comparison, folder, summary)
    return Evaluated(comparison, summary, rows)
