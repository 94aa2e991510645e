"""The comparison of kernel cost models: what a choice of layouts loses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from costs.kernels.kernels import few_kernels

from experiments.kernels.kernel_cost_model import layout_rows, layouts_table
from go_rl.costs.kernels.measure.data import KernelData

ROW_BY_ROW, TURNED = (f'{{"layouts":[{order}]}}' for order in ("[0,1]", "[1,0]"))
FASTER_TURNED = {ROW_BY_ROW: 2.0, TURNED: 1.0}


def data() -> KernelData:
    """Kernel 0 as it comes and under two layouts, kernel 1 under two, kernel 2 under one, kernel 3
    under flags."""
    kernels = few_kernels()
    return KernelData(
        "small", "cpu-1", kernels, ("m",) * kernels.num_kernels,
        ("", '{"flags":{}}', ROW_BY_ROW, TURNED),
        kernel=np.array([0, 0, 0, 1, 1, 2, 3]), setting=np.array([0, 2, 3, 2, 3, 2, 1]),
        round=np.zeros(7, np.int64), seconds=np.array([1.1, 1.0, 3.0, 4.0, 2.0, 1.0, 1.0]),
        spread=np.zeros(7), xla=np.full((kernels.num_kernels, 3), np.nan), failures={},
    )  # fmt: skip


def by_setting(which: np.ndarray, settings: Sequence[str]) -> np.ndarray:
    """Predict that turned operands are faster."""
    assert len(which) == len(settings)
    return np.array([FASTER_TURNED[setting] for setting in settings])


def test_rows_are_those_of_kernels_under_several_layouts():
    every = np.arange(4)
    assert layout_rows(data(), every).tolist() == [1, 2, 3, 4]
    assert layout_rows(data(), np.array([1, 3])).tolist() == [3, 4]


def test_what_a_choice_of_layouts_loses():
    """The best are 1 and 2 seconds; row by row takes 1 and 4, turned ones 3 and 2."""
    told = layouts_table(data(), np.arange(4), dict.fromkeys(("boosted", "learned"), by_setting))
    assert told.splitlines()[1:] == [
        "Layouts of 2 of the kernels judged:", "",
        "| | random | row by row | boosted | learned |",
        "| --- | ---: | ---: | ---: | ---: |",
        "| APE | 66.7 | 66.7 | 66.7 | 66.7 |",
        "| Kendall's tau | – | 0.00 | 0.00 | 0.00 |",
    ]  # fmt: skip


def test_no_table_without_layouts():
    only = replace(data(), setting=np.array([0, 1, 1, 1, 1, 1, 1]))
    assert layouts_table(only, np.arange(4), {}) == ""
