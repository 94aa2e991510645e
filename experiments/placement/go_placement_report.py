"""The page of `go_placement.py`."""

from __future__ import annotations

import io
from dataclasses import dataclass

import numpy as np

from experiments.page_text import cell
from experiments.placement.go_rows import ROWS
from experiments.statistics import geometric_mean

MINE = ("one", "one, nodes", "zero-shot", "fine-tuned")
"""Our own methods."""
REFERENCES = ("one", "one, nodes")
"""References for few samples: our form learning from scratch, and GO's own form."""
NOT_REPRODUCED = (
    "*hdp* is not reproduced: its published settings do not come near the expert's step time on "
    "our simulator (`hdp_reproduction`), so its column, of earlier settings than those that ship, "
    "is no measure of the paper's method, and no ratio to it is given."
)
FEW = (10, 20, 50, 100)
"""Samples after which they are compared."""


@dataclass(frozen=True)
class Run:
    """One search."""

    row: str
    method: str
    seed: int
    samples: int
    milliseconds: float | None
    """Step time of the best placement; None: none fits."""
    seconds: float
    """Time of the search, compilation left out."""
    bound_ms: float
    curve: list[list[float]]
    """[samples, seconds, ms] at every improvement."""


def page(runs: list[Run], methods: tuple[str, ...], samples: int) -> str:
    """Return the page on all runs of this many samples; ``methods`` gives the order of columns."""
    runs = [r for r in runs if r.samples == samples]
    methods = tuple(m for m in methods if any(r.method == m for r in runs))
    out = io.StringIO()
    hours = sum(r.seconds for r in runs) / 3600
    out.write(
        f"# Device placement on GO's six families\n\nMilliseconds a step, task placement, "
        f"{samples} samples, P100-class devices by the analytical cost model, one simulator for "
        f"all; mean and standard deviation of several seeds ({_times_run(runs, methods)}), one "
        f"otherwise. Search {hours:.2f} hours on two shared cores. Zero-shot and fine-tuned start "
        "from weights that were trained without the row's family.\n\n"
    )
    heads = ["hdp, not reproduced" if method == "hdp" else method for method in methods]
    out.write("| row | devices | " + " | ".join(heads) + " | bound |\n")
    out.write("| --- | ---: |" + " ---: |" * (len(methods) + 1) + "\n")
    rows = [row for row in ROWS if any(r.row == row for r in runs)]
    for row in rows:
        cells = [_cell(_mean(runs, row, method)) for method in methods]
        bound = max((r.bound_ms for r in runs if r.row == row), default=0.0)
        out.write(f"| {row} | {ROWS[row][1]} | " + " | ".join(cells) + f" | {bound:.1f} |\n")
    out.write("\n## Step time against others, geometric means\n\n")
    others = [method for method in methods if method != "hdp"]
    out.write("| | " + " | ".join(f"against {m}" for m in others) + " | rows |\n")
    out.write("| --- |" + " ---: |" * (len(others) + 1) + "\n")
    for mine in MINE:
        if mine in methods:
            ratios = [_ratio(runs, rows, mine, other) for other in others]
            cells = " | ".join(map(cell, ratios))
            count = sum(bool(_of(runs, row, mine)) for row in rows)
            out.write(f"| {mine} | {cells} | {count} |\n")
    for reference in REFERENCES:
        _few_samples(out, runs, reference, samples)
    _search_cost(out, runs, rows)
    return out.getvalue()


def _few_samples(out: io.StringIO, runs: list[Run], reference: str, samples: int) -> None:
    """Best plan of each learner after few samples, against one of them after all samples."""
    rows = [row for row in ROWS if _of(runs, row, reference)]
    if not rows:
        return
    out.write(
        f"\n## Few samples, against *{reference}*\n\nStep time of the best plan after so many "
        f"samples, against *{reference}* after {samples}: geometric means over {len(rows)} rows."
        "\n\n| samples | " + " | ".join(MINE) + " |\n| ---: |" + " ---: |" * len(MINE) + "\n"
    )
    for count in (*(n for n in FEW if n < samples), samples):
        cells = []
        for mine in MINE:
            ratios = [
                _after(run, count) / _mean(runs, row, reference)[0]
                for row in rows
                for run in _of(runs, row, mine)
            ]
            cells.append(cell(geometric_mean(ratios)))
        out.write(f"| {count} | " + " | ".join(cells) + " |\n")


def _times_run(runs: list[Run], methods: tuple[str, ...]) -> str:
    """How often each method that draws was run on a row."""
    found = []
    for method in methods:
        counts = [n for row in ROWS if (n := len(_of(runs, row, method)))]
        if counts and max(counts) > 1:
            least, most = min(counts), max(counts)
            found.append(f"{method} {least}" if least == most else f"{method} {least} to {most}")
    return ", ".join(found)


def _after(run: Run, count: int) -> float:
    return min((ms for samples, _, ms in run.curve if samples <= count), default=np.nan)


def _search_cost(out: io.StringIO, runs: list[Run], rows: list[str]) -> None:
    out.write(
        "\n## Search cost\n\nSeconds of search.\n\n| row | hdp | one |\n| --- | ---: | ---: |\n"
    )
    for row in rows:
        found = [[r.seconds for r in _of(runs, row, method)] for method in ("hdp", "one")]
        if all(found):
            cells = " | ".join(f"{np.mean(seconds):.1f}" for seconds in found)
            out.write(f"| {row} | {cells} |\n")
    out.write(f"\n{NOT_REPRODUCED}\n")


def _of(runs: list[Run], row: str, method: str) -> list[Run]:
    return [r for r in runs if r.row == row and r.method == method]


def _mean(runs: list[Run], row: str, method: str) -> tuple[float, float]:
    values = [r.milliseconds if r.milliseconds else np.nan for r in _of(runs, row, method)]
    return (float(np.mean(values)), float(np.std(values))) if values else (np.nan, 0.0)


def _cell(found: tuple[float, float]) -> str:
    mean, spread = found
    if np.isnan(mean):
        return "–"
    return f"{mean:.2f} ± {spread:.2f}" if spread > 0 else f"{mean:.2f}"


def _ratio(runs: list[Run], rows: list[str], mine: str, other: str) -> float:
    pairs = [(_mean(runs, row, mine)[0], _mean(runs, row, other)[0]) for row in rows]
    return geometric_mean(a / b for a, b in pairs)
