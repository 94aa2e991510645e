"""What CDMPP's parts are worth: positional encoding, label transforms, losses (figure 14a, Tables
3 to 5 of the paper).

Run: ``python -m experiments.programs.cdmpp.ablations``. Splits and updates are those of
``cdmpp_cross_model``, without fine-tuning; one part differs in each row.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

from experiments.experiment import Experiment
from experiments.programs.cdmpp.cross_model import both_parts, cross_run
from experiments.programs.cdmpp.runs import Metrics, Runs, TableOptions, means_table, trained
from go_rl.costs.programs.learn.network import PAPER

SIZES = "sizes"
TABLES: dict[str, dict[str, dict[str, Any]]] = {
    "Positional encoding (figure 14a)": {"with": {}, "without": {"positional": False}},
    "Label transform (Table 3)": {
        "Box-Cox": {}, "Yeo-Johnson": {"labels": "yeo-johnson"},
        "quantile": {"labels": "quantile"}, "log": {"labels": "log"}, "none": {"labels": "none"},
    },
    "Loss (Tables 4 and 5)": {
        "MSE + λ·MAPE": {}, "MSE": {"loss": "mse"}, "MAPE": {"loss": "mape"},
        "MSPE": {"loss": "mspe"},
    },
    "Sizes (Table 6), first run": {
        "small, as ships": {}, "of the table, 13.8 M": {SIZES: PAPER, "learning_rate": 3e-4},
    },
}  # fmt: skip
"""By table, by row: fields of the run's configuration that differ; `sizes` of its network."""
FIRST_RUN = "first run"
"""In the title of a table of one run: an update at the paper's sizes takes a second."""


@dataclass(frozen=True)
class CdmppAblations(TableOptions, Experiment):
    """CdmppAblations of these tables."""

    page_name: ClassVar[str] = "cdmpp_ablations"

    def run(self) -> None:
        """Make the tables."""
        runs = Runs(self)
        found = {
            title: {
                name: [
                    _kept(runs, changed, seed)
                    for seed in range(1 if FIRST_RUN in title else self.seeds)
                ]
                for name, changed in rows.items()
            }
            for title, rows in TABLES.items()
        }
        self.write_page(_page(runs, found))


def _kept(runs: Runs, changed: dict[str, Any], seed: int) -> Metrics:
    if not changed:
        return cross_run(runs, seed)
    label = "-".join(
        name if name == SIZES else f"{name}_{value}" for name, value in changed.items()
    )
    return runs.kept(f"ablation-{label}-{seed}", lambda: _run(runs, changed, seed))


def _run(runs: Runs, changed: dict[str, Any], seed: int) -> Metrics:
    split = runs.split(seed)
    config = runs.run_config(seed)
    if SIZES in changed:
        counts = config.network.leaf_counts
        config = replace(config, network=replace(changed[SIZES], leaf_counts=counts))
    config = replace(config, **{name: each for name, each in changed.items() if name != SIZES})
    learned = trained(runs.examples.take(split.train), config)
    return both_parts(runs, seed, learned.seconds(runs.examples.inputs))


def _page(runs: Runs, found: dict[str, dict[str, list[Metrics]]]) -> str:
    lines = [
        "# Parts of CDMPP",
        "",
        "Errors on programs of the networks learned from (as in the paper's tables) and of those",
        f"held out. Runs of which a cell is the mean: {runs.options.seeds}, each of",
        f"{runs.options.steps:,} updates; splits of `cdmpp_cross_model`.",
    ]
    columns = {
        "test mape": "MAPE %", "test rmse_ms": "RMSE ms", "held mape": "held-out MAPE %",
        "held rmse_ms": "held-out RMSE ms",
    }  # fmt: skip
    for title, rows in found.items():
        lines += ["", f"## {title}", "", *means_table(rows, columns)]
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    CdmppAblations.main()
