"""Each measured GPU left out in turn: errors of operators on a GPU known by its data sheet alone.

Run: ``python -m experiments.programs.left_out_gpus DIR --fits FOLDER`` with the folder of measured
operators (a table for each operator). The models of `OperatorPredictor` learn from one GPU each, so
that leaving one out needs no other fit; what joins them (similarity, shift, intervals) is learned
anew from the GPUs that remain. Both A100s are left out together. The weights that ship are written
to the folder as well.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import numpy as np
import tyro

from experiments.csv_rows import csv_text
from experiments.pages import NOTHING, RESULTS, cell, run_script, write_page
from go_rl.core.files.whole_file import write_text
from go_rl.predictors.metrics import mape
from go_rl.predictors.operators.examples import (
    ERROR_GROUPS,
    GROUPS,
    OperatorExamples,
    OperatorInputs,
    error_groups,
)
from go_rl.predictors.operators.fitting import Arrays
from go_rl.predictors.operators.measured_tables import of_devices, read_measured
from go_rl.predictors.operators.predictor import (
    OperatorFitConfig,
    OperatorPredictor,
    fit_group,
)

NAME = "left_out_gpus"
ALL = "all"
LEFT_OUT = {"A100": ("a100-40gb", "a100-80gb"), "P100": ("p100",), "P4": ("p4",), "T4": ("t4",),
            "V100": ("v100",)}  # fmt: skip
PUBLISHED = {"bmm": 13.8, "linear": 13.9, "element-wise": 19.3, "softmax": 13.9, "ln": 56.7}
"""Errors in percent that NeuSight's authors state for GPUs that it did not learn from."""
TREES = {
    "bmm": (21, 22, 31, 26, 30), "linear": (21, 32, 30, 24, 50),
    "element-wise": (75, 26, 13, 7, 31), "softmax": (77, 34, 14, 19, 46),
    "ln": (16, 23, 12, 13, 26),
}  # fmt: skip
"""Boosted trees on roofline and wave features, in the order of `LEFT_OUT`: measured once, on all
rows, before this experiment."""
HEAD = """# GPUs left out: errors of operators

Mean absolute percentage error on random rows of a GPU known by its data sheet alone:
nothing of it entered fits, similarity, shift or intervals. The form of the models and
their constants (the power classes, one median floor for all, the slow host of the
intervals, the range of shifts) were chosen with all five GPUs in view. The trees were
measured once, before, on all rows; other rivals have not been trained yet."""
SHARE_OF_PEAK, SHARE_OF_BANDWIDTH = 0.7, 0.7
"""Of the roofline."""


@dataclass(frozen=True)
class Options:
    """Options of the script."""

    data: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="DIR")]
    """Folder of measured operators."""
    fits: str = "runs/left_out_gpus"
    """Folder of the fits, which are taken up again, and of the weights."""
    rows: int = 1000
    """Rows of a GPU and group to learn from."""
    updates: int = 300
    """Gradient steps of a fit."""
    note: str = ""
    """Remark for the page, such as how fits were made that lay in the folder."""
    tested: int = 2000
    """Rows of each operator on a left-out GPU that are tested, drawn at random."""


@dataclass(frozen=True)
class ErrorRow:
    """Errors of one group of operators on one GPU that was left out, in percent."""

    gpu: str
    operators: str
    rows: int
    error: float
    bias: float
    """Median of ln(predicted / measured)."""
    coverage: float
    """Rows within the interval."""
    roofline: float
    trees: float


def main(options: Options) -> None:
    """Fit, leave out, write the page."""
    examples = read_measured(options.data)
    folder = Path(options.fits)
    folder.mkdir(parents=True, exist_ok=True)
    config = OperatorFitConfig(rows=options.rows, updates=options.updates)
    fits = _fits(examples, config, folder)
    shipped = _predictor(examples, fits, config)
    card = {**shipped.card, "note": options.note}
    replace(shipped, card=card).save(folder / "gpus-1.0.npz")
    rows: list[ErrorRow] = []
    for gpu, names in LEFT_OUT.items():
        present = [sheet.name for sheet in examples.inputs.devices]
        learned = _predictor(
            of_devices(examples, [name for name in present if name not in names]), fits, config
        )
        tested = of_devices(examples, [name for name in names if name in present])
        rows += _errors(gpu, learned, tested.take(_drawn(tested.inputs.rows.op, options.tested)))
    _write(rows, options.note)


def _fits(
    examples: OperatorExamples, config: OperatorFitConfig, folder: Path
) -> dict[tuple[str, str], Arrays]:
    """Parameters by group and GPU, from files where there are any."""
    found: dict[tuple[str, str], Arrays] = {}
    inputs = examples.inputs
    for group in GROUPS:
        rows = inputs.in_group(group)
        for device in np.unique(inputs.device[rows]):
            name = inputs.devices[device].name
            path = folder / f"{group}-{name}.npz"
            if not path.is_file():
                some = rows[inputs.device[rows] == device]
                rng = np.random.default_rng((config.seed, int(device)))
                np.savez(path, allow_pickle=False, **fit_group(examples, some, group, config, rng))
            with np.load(path) as arrays:
                found[group, name] = {key: arrays[key] for key in arrays.files}
    return found


def _predictor(
    examples: OperatorExamples, fits: dict[tuple[str, str], Arrays], config: OperatorFitConfig
) -> OperatorPredictor:
    """The predictor of the GPUs of the examples."""
    names = [sheet.name for sheet in examples.inputs.devices]
    known = {
        group: tuple(d for d, name in enumerate(names) if (group, name) in fits) for group in GROUPS
    }
    params = {
        group: {
            key: np.stack([fits[group, names[d]][key] for d in each])
            for key in fits[group, names[each[0]]]
        }
        for group, each in known.items()
        if each
    }
    return OperatorPredictor.calibrated(examples, params, known, config)


def _drawn(op: np.ndarray, most: int) -> np.ndarray:
    """So many rows of each operator."""
    rng = np.random.default_rng(0)
    return np.concatenate([rng.permutation(np.flatnonzero(op == o))[:most] for o in np.unique(op)])


def _errors(gpu: str, learned: OperatorPredictor, tested: OperatorExamples) -> list[ErrorRow]:
    """Errors and coverage of each group on the GPU that was left out."""
    found = learned.interval(tested.inputs)
    roofline = _roofline(tested.inputs)
    truth = tested.seconds
    inside = (found.low <= truth) & (truth <= found.high)
    kind = error_groups(tested.inputs.rows)
    every = [(group, kind == number) for number, group in enumerate(ERROR_GROUPS)]
    rows = [
        ErrorRow(
            gpu=gpu, operators=group, rows=int(some.sum()),
            error=mape(found.seconds[some], truth[some]),
            bias=100 * float(np.median(np.log(found.seconds[some] / truth[some]))),
            coverage=100 * float(inside[some].mean()),
            roofline=mape(roofline[some], truth[some]), trees=_trees(gpu, group),
        )
        for group, some in [*every, (ALL, np.ones(len(truth), bool))]
        if some.any()
    ]  # fmt: skip
    for row in rows:
        print(row, flush=True)
    return rows


def _roofline(inputs: OperatorInputs) -> np.ndarray:
    busy = inputs.rows.flops() / (SHARE_OF_PEAK * inputs.fields("matrix_flops"))
    moved = inputs.rows.least_bytes() / (SHARE_OF_BANDWIDTH * inputs.fields("memory_bandwidth"))
    return np.maximum(busy, moved)


def _trees(gpu: str, group: str) -> float:
    place = list(LEFT_OUT).index(gpu)
    return float(TREES[group][place]) if group in TREES else float("nan")


def _write(rows: list[ErrorRow], note: str) -> None:
    heads = ("operators", *LEFT_OUT, "NeuSight, published")
    value = {(row.gpu, row.operators): row for row in rows}
    page = [HEAD]
    page += ["", note] if note else []
    tables = (("error", "Ours", 1), ("coverage", "Rows within our 90 % interval, %", 1),
              ("bias", "Median of ln(predicted / measured), %", 1),
              ("trees", "Boosted trees on roofline and wave features", 0),
              ("roofline", "Roofline at 0.7 of peak and bandwidth", 0))  # fmt: skip
    for key, title, digits in tables:
        page += ["", f"## {title}", "", f"| {' | '.join(heads)} |",
                 "|---" * len(heads) + "|"]  # fmt: skip
        for group in (*ERROR_GROUPS, ALL):
            of_gpus = [value.get((gpu, group)) for gpu in LEFT_OUT]
            cells = [NOTHING if row is None else cell(getattr(row, key), digits) for row in of_gpus]
            stated = cell(PUBLISHED.get(group, float("nan")), 1) if key == "error" else ""
            page.append(f"| {group} | {' | '.join(cells)} | {stated} |")
    write_page(RESULTS / NAME, "\n".join(page) + "\n", __file__)
    write_text(RESULTS / f"{NAME}.csv", csv_text(ErrorRow, rows))


if __name__ == "__main__":
    run_script(main, Options, __doc__)
