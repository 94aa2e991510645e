"""Learning from an H200: which rows are learned and tested, and the page from made-up rows."""

from __future__ import annotations

import numpy as np

from experiments.programs.measured_gpu import ALL
from experiments.programs.measured_gpu_learned import (
    AFTER,
    BEFORE,
    HeldOutRow,
    UnseenRow,
    held_out,
    learned_rows,
    page,
)
from experiments.programs.measured_networks import NetworkRow
from go_rl.costs.devices import find_device
from go_rl.costs.operators.examples import GROUPS, OperatorExamples, OperatorInputs
from go_rl.costs.operators.fitting import UNKNOWN_TILE
from go_rl.costs.operators.predictor import OperatorFitConfig, fit_rows
from go_rl.costs.operators.tables import OperatorRows
from go_rl.costs.operators.tables.operator_rows import SIZES

DEVICES = ("h200", "t4", "v100")
SHAPES = 60
SMALL = OperatorFitConfig(rows=6)


def _examples():
    """On each device ``relu`` and ``tanh`` of sixty widths."""
    count = 2 * SHAPES * len(DEVICES)
    sizes = {name: np.zeros(count, np.int64) for name in SIZES}
    sizes["batch"] = np.ones(count, np.int64)
    sizes["width"] = np.tile(np.arange(1, SHAPES + 1), 2 * len(DEVICES))
    op = np.tile(np.repeat(["relu", "tanh"], SHAPES), len(DEVICES))
    sheets = tuple(find_device(name) for name in DEVICES)
    device = np.repeat(np.arange(len(DEVICES)), 2 * SHAPES)
    inputs = OperatorInputs(OperatorRows(op, sizes), sheets, device)
    return OperatorExamples(inputs, np.arange(1, count + 1) * 1e-6, np.full(count, UNKNOWN_TILE))


def test_half_of_the_shapes_of_the_h200_are_learned():
    examples = _examples()
    kept = learned_rows(examples)
    own = kept[: 2 * SHAPES].reshape(2, SHAPES)
    assert kept[2 * SHAPES :].all()
    assert own[0].sum() == SHAPES // 2
    assert (own[0] == own[1]).all()


def test_what_is_tested_was_not_learned():
    examples = _examples()
    kept = learned_rows(examples)
    found = dict(held_out(examples, kept, SMALL, 10))
    assert list(found) == list(DEVICES)
    assert set(found["h200"].seconds) == set(examples.seconds[~kept])
    assert [len(found[name].seconds) for name in DEVICES[1:]] == [10, 10]
    learned = examples.take(np.flatnonzero(kept))
    drawn = {each for g in GROUPS for each in learned.seconds[fit_rows(learned, g, SMALL)]}
    assert not drawn & {each for test in found.values() for each in test.seconds.tolist()}


def _row(weights, gpu, median):
    return HeldOutRow(weights, gpu, ALL, 9, median, 2 * median, -3.0, 90.0, 2.5)


def test_the_page_says_before_and_after():
    rows = [_row(w, g, m) for w, g, m in ((BEFORE, "h200", 80.0), (BEFORE, "t4", 5.0),
                                          (AFTER, "h200", 8.0), (AFTER, "t4", 5.5))]  # fmt: skip
    old = NetworkRow("tiny", 7, 4.0, 2.0, 6.0, 3.0, 9.0, 5.0, 1.0, 4.5, "")
    new = NetworkRow("tiny", 7, 4.0, 2.0, 4.4, 4.1, 9.0, 5.0, 1.5, 4.5, "")
    unseen = [UnseenRow(BEFORE, "t4", ALL, 8.0), UnseenRow(AFTER, "t4", ALL, 8.5)]
    text = page(rows, unseen, {BEFORE: [old], AFTER: [new]}, 250)
    assert "| all | 8.0 → 8.5 |" in text
    assert "| all | 80.0 / 160.0 / -3 | 5.0 / 10.0 / -3 |" in text
    assert "| all | 8.0 / 16.0 / -3 | 5.5 / 11.0 / -3 |" in text
    assert "| after | 90.0, 2.50 | 90.0, 2.50 |" in text
    assert "| tiny | 4 | +50% | +25% | +10% | 2 | -50% | -25% |" in text
    assert "within the 90 % interval, of 1: before 1, after 0." in text
