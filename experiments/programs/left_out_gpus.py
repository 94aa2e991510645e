"""Each measured GPU left out in turn: errors of operators on a GPU known by its data sheet alone.

Run: ``python -m experiments programs.left_out_gpus DIR [DIR ...] --fits FOLDER`` with folders of
measured operators (a table for each operator). `OperatorPredictor` is fitted without each GPU, and
without each pair of them: the latter set the intervals of the former, so that nothing of a left-out
GPU enters. Both A100s are left out together. Fits and answers are taken up again; the weights that
ship are written to the folder as well.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import numpy as np
import tyro

from experiments.experiment import Experiment
from experiments.page_text import cell, markdown_table
from experiments.programs.operator_errors import OperatorErrors, errors_by_kind, roofline
from experiments.programs.operator_rivals import boosted_trees
from go_rl.costs.devices import with_launch
from go_rl.costs.operators import GPU_WEIGHTS
from go_rl.costs.operators.examples import (
    ERROR_GROUPS,
    GROUPS,
    OperatorExamples,
    OperatorInputs,
    error_groups,
)
from go_rl.costs.operators.fitting import fit_pooled
from go_rl.costs.operators.measured_tables import read_measured
from go_rl.costs.operators.pooled_params import Arrays
from go_rl.costs.operators.predictor import (
    Fitted,
    Interval,
    OperatorFitConfig,
    OperatorPredictor,
    fit_rows,
)

ALL = "all"
LEFT_OUT = {"A100": ("a100-40gb", "a100-80gb"), "H200": ("h200",), "P100": ("p100",),
            "P4": ("p4",), "T4": ("t4",), "V100": ("v100",)}  # fmt: skip
PUBLISHED = {"bmm": 13.8, "linear": 13.9, "element-wise": 19.3, "softmax": 13.9, "ln": 56.7}
"""Errors in percent that NeuSight's authors state for GPUs that it did not learn from."""
RIVAL_ROWS = 1000
"""Rows of a GPU and group that trees learn from; of streams four times as many."""
OURS, HOST_TOLD, TREES, ROOFLINE = "ours", "ours, host told", "boosted trees", "roofline"
FASTEST = 0.05
"""Quantile of additions that tells the host."""


@dataclass(frozen=True)
class LeftOutGpus(Experiment):
    """Options of the script."""

    data: Annotated[tyro.conf.Positional[tuple[str, ...]], tyro.conf.arg(metavar="DIR")]
    """Folders of measured operators."""
    fits: str = "runs/left_out_gpus"
    """Folder of fits and answers, which are taken up again, and of the weights."""
    rows: int = OperatorFitConfig().rows
    """Rows of a GPU and group to learn from; of streams four times as many."""
    updates: int = OperatorFitConfig().updates
    """Updates of a fit."""
    tested: int = 1000
    """Rows of each operator on a left-out GPU that are tested, drawn at random."""

    def run(self) -> None:
        """Fit, leave out, write the page."""
        examples = read_measured(*self.data)
        folder = Path(self.fits)
        folder.mkdir(parents=True, exist_ok=True)
        config = OperatorFitConfig(rows=self.rows, updates=self.updates)
        fitted = fits_of(examples, config, folder)
        shipped = OperatorPredictor.assembled(examples, config, fitted)
        shipped.save(folder / f"{GPU_WEIGHTS}.npz")
        rows = self.write_rows(self._rows(examples, config, fitted, folder))
        self.write_page(_page(rows, shipped.calibration.covered))

    def _rows(
        self, examples: OperatorExamples, config: OperatorFitConfig, fitted: Fitted, folder: Path
    ) -> Iterator[OperatorErrors]:
        for gpu, names in LEFT_OUT.items():
            left_out = frozenset(
                place for place, sheet in enumerate(examples.inputs.devices) if sheet.name in names
            )
            of_gpu = np.flatnonzero(np.isin(examples.inputs.device, list(left_out)))
            op = examples.inputs.rows.op[of_gpu]
            tested = examples.take(of_gpu[drawn_rows(op, self.tested)])
            learned = OperatorPredictor.assembled(examples, config, fitted, left_out)
            yield from _own_errors(gpu, learned, tested)
            yield from _rival_errors(gpu, examples, config, left_out, tested, folder)


def fits_of(examples: OperatorExamples, config: OperatorFitConfig, folder: Path) -> Fitted:
    """Return fits by group and left-out GPUs, from files where there are any."""
    folder.mkdir(parents=True, exist_ok=True)
    names = [sheet.name for sheet in examples.inputs.devices]
    drawn = {group: examples.take(fit_rows(examples, group, config)) for group in GROUPS}

    def fitted(group: str, left_out: frozenset[int]) -> Arrays:
        absent = sorted(left_out & set(drawn[group].inputs.device.tolist()))
        path = folder / ("-".join([group, "without", *(names[d] for d in absent)]) + ".npz")
        if not path.is_file():
            np.savez(
                path,
                allow_pickle=False,
                **fit_pooled(drawn[group], group, config.updates, absent),
            )
        with np.load(path) as arrays:
            return {key: arrays[key] for key in arrays.files}

    return fitted


def drawn_rows(op: np.ndarray, most: int) -> np.ndarray:
    """Return so many rows of each operator."""
    rng = np.random.default_rng(0)
    return np.concatenate([rng.permutation(np.flatnonzero(op == o))[:most] for o in np.unique(op)])


def _own_errors(
    gpu: str, learned: OperatorPredictor, tested: OperatorExamples
) -> list[OperatorErrors]:
    """Errors and coverage on the GPU that was left out; of the roofline too."""
    found = learned.interval(tested.inputs)
    told = learned.interval(host_told(tested))
    return [*_errors(OURS, gpu, tested, found.seconds, found),
            *_errors(HOST_TOLD, gpu, tested, told.seconds, told),
            *_errors(ROOFLINE, gpu, tested, roofline(tested.inputs))]  # fmt: skip


def host_told(tested: OperatorExamples) -> OperatorInputs:
    """Return the rows on devices whose hosts are stated by the fastest additions, as a user who has
    one would state it."""
    inputs = tested.inputs
    additions = tested.seconds[inputs.rows.op == "add"]
    launch = 1e6 * float(np.quantile(additions, FASTEST))
    return replace(inputs, devices=tuple(with_launch(each, launch) for each in inputs.devices))


def _rival_errors(
    gpu: str, examples: OperatorExamples, config: OperatorFitConfig, left_out: frozenset[int],
    tested: OperatorExamples, folder: Path,
) -> list[OperatorErrors]:  # fmt: skip
    """Errors of boosted trees that learn from the same rows."""
    more = replace(config, rows=RIVAL_ROWS)
    drawn = np.concatenate([fit_rows(examples, group, more) for group in GROUPS])
    kept = drawn[~np.isin(examples.inputs.device[drawn], list(left_out))]
    path = folder / f"rival-{TREES.replace(' ', '-')}-{gpu}.npy"
    if not path.is_file():
        np.save(path, boosted_trees(examples.take(kept), tested.inputs), allow_pickle=False)
    return _errors(TREES, gpu, tested, np.load(path, allow_pickle=False))


def _errors(
    method: str, gpu: str, tested: OperatorExamples, seconds: np.ndarray,
    price: Interval | None = None,
) -> list[OperatorErrors]:  # fmt: skip
    """Errors of each group of operators, and of all."""
    kind = error_groups(tested.inputs.rows)
    kinds = [(group, kind == number) for number, group in enumerate(ERROR_GROUPS)]
    kinds.append((ALL, np.ones(len(kind), bool)))
    inside = width = None
    if price is not None:
        inside = (price.low <= tested.seconds) & (tested.seconds <= price.high)
        width = price.high / price.low
    return errors_by_kind(method, gpu, seconds, tested.seconds, kinds, inside, width)


HEAD = """# GPUs left out: errors of operators

Mean absolute percentage error on random rows of a GPU known by its data sheet alone:
nothing of it (seconds, kernels, grids, blocks) entered fits or intervals, which are
set by leaving out a second GPU. What is not nested: the form of the model, the energies
of a FLOP of `architectures.py`, the weights of the priors, the assumed hosts of intervals
and which of the attempts below was kept were chosen with all six GPUs in view. Ours
learned from 1,000 rows of each GPU of bmm, linear and conv, and 4,000 of all streams
together, as boosted trees did. *Mean* is that over the six GPUs."""
SHIPPED = """## Coverage of the weights that ship

Intervals above are those of predictors that lack a GPU, set by fits that lack two: products
err more then, so that their intervals are too wide. What ships was fitted to all six and is
set by fits that lack one. Rows of these GPUs within half-widths that the other five set, mean
over GPUs (not nested: the fits of one left-out GPU learned from the others), in %: {covered}."""
TABLES = (
    (OURS, "mean", "Ours", 1),
    (OURS, "coverage", "Rows within our 90 % interval, %", 1),
    (OURS, "width", "Median of its upper over its lower bound", 2),
    (OURS, "bias", "Median of ln(predicted / measured), %", 1),
    (HOST_TOLD, "mean", "Ours, the host told by one number", 1),
    (HOST_TOLD, "coverage", "Rows within our interval, the host told, %", 1),
    (HOST_TOLD, "width", "Median of its upper over its lower bound, the host told", 2),
    (TREES, "mean", "Boosted trees", 1),
    (ROOFLINE, "mean", "Roofline at 0.7 of peak and bandwidth", 0),
)


def _page(rows: list[OperatorErrors], covered: Mapping[str, float]) -> str:
    heads = ("operators", *LEFT_OUT, "mean", "NeuSight, published")
    value = {(row.method, row.case, row.operators): row for row in rows}
    parts = [HEAD]
    for method, key, title, digits in TABLES:
        lines = []
        for group in (*ERROR_GROUPS, ALL):
            found = [value.get((method, gpu, group)) for gpu in LEFT_OUT]
            if not any(found):
                continue  # no GPU has measurements of these
            numbers = [float("nan") if row is None else getattr(row, key) for row in found]
            stated = cell(PUBLISHED.get(group, float("nan")), 1) if key == "mean" else ""
            means = (*numbers, float(np.mean(numbers)))
            lines.append([group, *(cell(number, digits) for number in means), stated])
        parts += [f"## {title}", markdown_table(heads, lines).rstrip()]
    shares = ", ".join(f"{name} {100 * share:.1f}" for name, share in covered.items())
    return "\n\n".join([*parts, SHIPPED.format(covered=shares)])
