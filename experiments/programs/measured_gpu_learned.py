"""Does learning from an H200 help? Half of its shapes are learned, the other half is tested.

Run: ``python -m experiments.programs.measured_gpu_learned DIR --fits FOLDER`` with NeuSight's
tables of five GPUs; the rows of the H200 ship. FOLDER keeps fits, which are taken up again, and the
new weights. Tested rows of the other GPUs are those that neither old nor new weights learned.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import tyro

from experiments.experiment import RESULTS, Experiment
from experiments.page_text import FOUR, cell, markdown_table, shown
from experiments.programs.left_out_gpus import drawn_rows, fits_of
from experiments.programs.measured_gpu import (
    ALL,
    NEVER_SAW,
    kinds_of,
    measured_pair,
    told_launch,
)
from experiments.programs.measured_networks import NetworkRow, network_rows
from go_rl.costs.learning.metrics import mape
from go_rl.costs.operators.examples import GROUPS, OperatorExamples
from go_rl.costs.operators.measured_tables import read_measured
from go_rl.costs.operators.predictor import (
    Fitted,
    OperatorFitConfig,
    OperatorPredictor,
    fit_rows,
)
from go_rl.costs.operators.pricing import log_seconds
from go_rl.costs.operators.tables.operator_rows import SIZES

NEW = "gpus-with-h200"
"""Name of the file of the new weights."""
H200 = "h200"
BEFORE, AFTER = "before", "after"
LEFT_OUT = ("a100-40gb", "p100", "p4", "t4", "v100")
"""GPUs that are left out in turn."""
UNSEEN_ROWS = 500
"""Tested rows of each operator on a GPU that is left out."""


@dataclass(frozen=True)
class MeasuredGpuLearned(Experiment):
    """Options of the script."""

    data: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="DIR")]
    """Folder of measured operators of other GPUs."""
    measured: Path = RESULTS / "h200"
    """Folder of the H200's measurements."""
    fits: Path = Path("runs/measured_gpu_learned")
    """Folder of fits and of the new weights."""
    updates: int = OperatorFitConfig().updates
    """Gradient steps of a fit."""
    tested: int = 20_000
    """Rows of each other GPU that are tested, at most."""

    def run(self) -> None:
        """Learn, compare, write the page."""
        examples = read_measured(self.data, self.measured / "operators")
        config = OperatorFitConfig(updates=self.updates)
        learned = learned_rows(examples)
        own = examples.take(np.flatnonzero(learned))
        fitted = fits_of(own, config, self.fits)
        new = OperatorPredictor.assembled(own, config, fitted)
        new.save(self.fits / f"{NEW}.npz")
        tests = list(held_out(examples, learned, config, self.tested))
        rows = [
            row
            for name, weights in ((BEFORE, OperatorPredictor.load(NEVER_SAW)), (AFTER, new))
            for gpu, test in tests
            for row in errors(name, gpu, weights, test)
        ]
        unseen = [row for gpu in LEFT_OUT for row in unseen_errors(gpu, examples, fitted)]
        launch = told_launch(measured_pair(self.measured)[0])
        timed = json.loads((self.measured / "networks.json").read_text())["rows"]
        networks = {
            name: network_rows(self.measured / "networks", timed, weights, launch)
            for name, weights in ((BEFORE, OperatorPredictor.load(NEVER_SAW)), (AFTER, new))
        }
        self.write_rows(rows)
        self.write_rows(unseen, "_unseen.csv")
        self.write_page(page(rows, unseen, networks, self.updates))


@dataclass(frozen=True)
class HeldOutRow:
    """Errors of one set of weights on one GPU's operators of one kind, in percent."""

    weights: str
    gpu: str
    operators: str
    rows: int
    median: float
    mean: float
    bias: float
    """Median of ln(predicted / measured)."""
    coverage: float
    """Rows within the 90 % interval."""
    width: float
    """Median of the upper over the lower bound."""


@dataclass(frozen=True)
class UnseenRow:
    """Mean error in percent on a GPU that was left out."""

    weights: str
    gpu: str
    operators: str
    error: float


def learned_rows(examples: OperatorExamples) -> np.ndarray:
    """Return [R] whether a row may be learned: all but half of the H200's shapes, drawn at random;
    operators of one shape stay together."""
    names = [sheet.name for sheet in examples.inputs.devices]
    own = np.flatnonzero(examples.inputs.device == names.index(H200))
    sizes = np.stack([examples.inputs.rows.sizes[name][own] for name in SIZES], axis=1)
    _, shape = np.unique(sizes, axis=0, return_inverse=True)
    drawn = np.random.default_rng(0).permutation(shape.max() + 1)
    kept = np.ones(len(examples.seconds), bool)
    kept[own] = drawn[shape.ravel()] % 2 == 0
    return kept


def held_out(
    examples: OperatorExamples, learned: np.ndarray, config: OperatorFitConfig, most: int
) -> Iterator[tuple[str, OperatorExamples]]:
    """Yield each GPU with rows that no fit drew, neither with the H200 nor without."""
    device = examples.inputs.device
    names = [sheet.name for sheet in examples.inputs.devices]
    own = names.index(H200)
    yield H200, examples.take(np.flatnonzero(~learned))
    free = np.ones(len(device), bool)
    for rows in (np.flatnonzero(learned), np.flatnonzero(device != own)):
        part = examples.take(rows)
        for group in GROUPS:
            free[rows[fit_rows(part, group, config)]] = False
    rng = np.random.default_rng(1)
    for number, name in enumerate(names):
        rows = rng.permutation(np.flatnonzero(free & (device == number)))[:most]
        if number != own:
            yield name, examples.take(rows)


def errors(
    weights: str, gpu: str, learned: OperatorPredictor, test: OperatorExamples
) -> Iterator[HeldOutRow]:
    """Yield the errors by kind of operator, those of all last."""
    found, truth = learned.interval(test.inputs), test.seconds
    inside = (found.low <= truth) & (truth <= found.high)
    for kind, some in kinds_of(test):
        if some.any():
            predicted, measured = found.seconds[some], truth[some]
            yield HeldOutRow(
                weights, gpu, kind, int(some.sum()),
                median=float(100 * np.median(np.abs(predicted / measured - 1))),
                mean=mape(predicted, measured),
                bias=float(100 * np.median(np.log(predicted / measured))),
                coverage=float(100 * inside[some].mean()),
                width=float(np.median((found.high / found.low)[some])),
            )  # fmt: skip


def unseen_errors(gpu: str, examples: OperatorExamples, fitted: Fitted) -> Iterator[UnseenRow]:
    """Yield errors on a GPU that was left out, of fits without the H200 and with it."""
    names = [sheet.name for sheet in examples.inputs.devices]
    rows = np.flatnonzero(examples.inputs.device == names.index(gpu))
    test = examples.take(rows[drawn_rows(examples.inputs.rows.op[rows], UNSEEN_ROWS)])
    for weights, absent in ((BEFORE, {gpu, H200}), (AFTER, {gpu})):
        seconds = _seconds_without(frozenset(map(names.index, absent)), examples, fitted, test)
        for kind, some in kinds_of(test):
            if some.any():
                yield UnseenRow(weights, gpu, kind, mape(seconds[some], test.seconds[some]))


def _seconds_without(
    left_out: frozenset[int], examples: OperatorExamples, fitted: Fitted, test: OperatorExamples
) -> np.ndarray:
    """[R] seconds by models that lack some GPUs."""
    inputs = examples.inputs
    known = {
        group: tuple(set(inputs.device[inputs.in_group(group)].tolist()) - left_out)
        for group in GROUPS
    }
    params = {group: fitted(group, left_out) for group in GROUPS}
    return np.exp(log_seconds(params, known, inputs.devices, test.inputs).total)


HEAD = """# Learning from an H200

`gpus-1.3` learned from five GPUs, the new weights also from half of the H200's shapes (between
events; `measured_gpu` has what is measured), in {updates} updates. Tested are the H200's other
shapes, and rows of the other GPUs that neither set of weights learned. Errors in %: median / mean
/ bias, which is the median of ln(predicted / measured)."""
COVERED = """## Intervals

Rows within the 90 % interval, %, and the median of its upper over its lower bound. All are of GPUs
that were learned, and intervals are made for GPUs that were not."""


NETWORKS = """## Networks

Milliseconds in float32, and errors of `predict --device h200 --fusion none`: eager against the
answer (before: the usual host, or the host told; after: the host that was learned), a CUDA graph
against the GPU's part. No network was learned."""


UNSEEN = """## GPUs that are left out

What the weights are for: a GPU of which only the data sheet is known. Mean errors in % of models
that never saw the GPU of the column, without the H200's rows → with them."""
VERDICT = """## Why the new weights do not ship

Operators and networks of the H200 itself become far better. Elsewhere they do not: on other rows of
GPUs that were learned the T4 and the V100 lose up to 0.4 points; of GPUs left out the A100's
products and the V100's convolutions become clearly worse; and intervals become four times as wide,
because predictions of the H200 without its rows are off by its host and its convolutions. The model
has one generation of libraries from Ampere on, and Winograd's savings on every GPU: the H200
contradicts both. A generation of its own without those savings, and hosts that may be twice as fast
as the usual one (intervals assume 1.3 times), come first; then its rows can be learned."""


def page(
    rows: Sequence[HeldOutRow], unseen: Sequence[UnseenRow],
    networks: Mapping[str, Sequence[NetworkRow]], updates: int,
) -> str:  # fmt: skip
    """Return the page in Markdown."""
    value = {(row.weights, row.gpu, row.operators): row for row in rows}
    gpus = list(dict.fromkeys(row.gpu for row in rows))
    kinds = list(dict.fromkeys(row.operators for row in rows))

    def told(weights: str, gpu: str, kind: str) -> str:
        row = value.get((weights, gpu, kind))
        return "–" if row is None else f"{row.median:.1f} / {row.mean:.1f} / {row.bias:+.0f}"

    parts = [HEAD.format(updates=updates)]
    for weights in (BEFORE, AFTER):
        lines = ([kind, *(told(weights, gpu, kind) for gpu in gpus)] for kind in kinds)
        parts += [f"## {weights.capitalize()}",
                  markdown_table(("operators", *gpus), lines).rstrip()]  # fmt: skip
    lines = [
        [weights, *(f"{cell(value[weights, gpu, ALL].coverage, 1)}, "
                    f"{cell(value[weights, gpu, ALL].width, 2)}" for gpu in gpus)]
        for weights in (BEFORE, AFTER)
    ]  # fmt: skip
    intervals = markdown_table(("weights", *gpus), lines).rstrip()
    return "\n\n".join(
        [
            *parts,
            COVERED,
            intervals,
            NETWORKS,
            _networks(networks),
            UNSEEN,
            _unseen(unseen),
            VERDICT,
        ]
    )


def _unseen(rows: Sequence[UnseenRow]) -> str:
    """Mean errors without and with the H200, of each GPU that was left out."""
    value = {(row.gpu, row.operators, row.weights): row.error for row in rows}
    gpus, kinds = (
        list(dict.fromkeys(each))
        for each in zip(*((r.gpu, r.operators) for r in rows), strict=True)
    )

    def told(gpu: str, kind: str) -> str:
        pair = [value.get((gpu, kind, weights), float("nan")) for weights in (BEFORE, AFTER)]
        return " → ".join(cell(each, 1) for each in pair)

    lines = ([kind, *(told(gpu, kind) for gpu in gpus)] for kind in kinds)
    return markdown_table(("operators", *gpus), lines).rstrip()


def _networks(networks: Mapping[str, Sequence[NetworkRow]]) -> str:
    """Errors of each network before and after, and their means."""
    heads = ("network", "eager, ms", "before", "host told", "after", "CUDA graph, ms", "before",
             "after")  # fmt: skip
    lines, every = [], []
    for old, new in zip(networks[BEFORE], networks[AFTER], strict=True):
        found = [old.predicted_ms / old.eager_ms, old.told_ms / old.eager_ms,
                 new.predicted_ms / new.eager_ms, old.gpu_ms / old.graph_ms,
                 new.gpu_ms / new.graph_ms]  # fmt: skip
        every.append(np.abs(np.array(found) - 1))
        cells = [shown(each - 1, "+.0%") for each in found]
        lines.append([old.network, shown(old.eager_ms, FOUR), *cells[:3],
                      shown(old.graph_ms, FOUR), *cells[3:]])  # fmt: skip
    means = [shown(float(each), ".0%") for each in np.nanmean(every, axis=0)]
    lines.append(["mean error", "", *means[:3], "", *means[3:]])
    inside = [
        f"{name} {sum(row.low_ms <= row.eager_ms <= row.high_ms for row in found)}"
        for name, found in networks.items()
    ]
    said = f"Eager latencies within the 90 % interval, of {len(lines) - 1}: {', '.join(inside)}."
    return f"{markdown_table(heads, lines).rstrip()}\n\n{said}"


if __name__ == "__main__":
    MeasuredGpuLearned.main()
