"""The convergence figure of ``hetero_transfer`` (their figure 2), as a table."""

from __future__ import annotations

from collections.abc import Mapping

from experiments.page_text import NOTHING, cell, table_lines
from experiments.programs.cdmpp.runs import Metrics
from experiments.programs.hetero_runs import DATA, MARKS

TUNERS = {"tuner": 64, "tuner, rank loss": 64, "tuner, batch 16": 16}
"""And their batches; the paper's is 16."""
LEARNERS = ("XGBoost", "LightGBM", "MLP", *TUNERS)
PARTS = {"train": "rows learned from", "test": "unpruned test rows"}
Converged = Mapping[tuple[str, str], Metrics]
"""Errors of a learner on full or pruned data; none where it was not run."""


def converged_lines(found: Converged, rows: int) -> list[str]:
    """Return the section; ``rows`` were learned from, before pruning."""
    table = [
        [who, data, *(one(each, f"{part} {mark}") for part in PARTS for mark in MARKS),
         *(one(each, f"test {key} {MARKS[-1]}") if who in TUNERS else NOTHING
           for key in ("pca", "top_1", "r2")), one(each, "seconds", 0)]
        for (who, data), each in found.items()
    ]  # fmt: skip
    heads = ["", "data", *(f"{part} {mark}" for part in PARTS for mark in MARKS)]
    text = (
        "RMSE of relative throughput (the fastest program of a task has 1) behind so many epochs, "
        f"or trees, split `within_task`, {rows:,} rows before pruning: on rows learned from and "
        f"on unpruned test rows. The tuner: Adam at 1e-3, batch {TUNERS['tuner']} unless said; its "
        "optimiser starts anew at each mark. Published at 200: 0.04 against XGBoost's 0.08 and "
        "LightGBM's 0.09, of which rows is not said."
    )
    return [
        "", "## Convergence (figure 2)", "", text, *_ratio(found), "",
        *table_lines([*heads, "PCA", "top-1", "R²", "CPU s"], table),
    ]  # fmt: skip


def _ratio(found: Converged) -> list[str]:
    """The tuner's error over that of the best trees."""
    mark = MARKS[-1]
    best = {
        who: {part: each[f"{part} {mark}"] for part in PARTS}
        for who in ("XGBoost", "LightGBM", *TUNERS)
        if (each := found.get((who, DATA[0])))
    }
    tuners = {who: best.pop(who) for who in TUNERS if who in best}
    if not best:
        return []
    least = {part: min(each[part] for each in best.values()) for part in PARTS}
    return [
        f"At {mark}, full data, the error of the {who} is {tuner['train'] / least['train']:.2f} "
        f"of the best trees' on rows learned from, {tuner['test'] / least['test']:.2f} on others."
        for who, tuner in tuners.items()
    ]


def one(found: Metrics, name: str, digits: int = 3) -> str:
    """Return a metric as a cell; a dash where there is none."""
    return cell(found[name], digits) if found else NOTHING
