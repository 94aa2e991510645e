"""Seconds of units: those of single nodes, or of the kernels that they will be."""

from dataclasses import replace

import numpy as np
import pytest
from reference.step_problems import step_problem

from go_rl.core import OpKind, Problem
from go_rl.objectives.makespan.units import makespan_units
from go_rl.objectives.makespan.workspace import MakespanWorkspace

HALF_A_SECOND = 0.5


class Flat:
    """`KernelPrices`: every kernel takes half a second, whatever is in it."""

    def seconds(self, leader: np.ndarray) -> np.ndarray:
        """See `go_rl.core.KernelPrices`."""
        return np.full((1, len(leader)), HALF_A_SECOND)


def pairs(decisions: tuple[str, ...]) -> Problem:
    """Two pairs of elementwise operators, each of which would be fused; kernels are cheap."""
    problem = step_problem(
        [1.0, 2.0, 3.0, 4.0], [(0, 1, 1.0), (2, 3, 1.0)], 2,
        kinds=[OpKind.ELEMENTWISE] * 4, decisions=decisions,
    )  # fmt: skip
    return replace(problem, kernels=Flat())


@pytest.mark.parametrize(
    ("decisions", "expected"),
    [
        (("placement",), [3.0, 7.0]),
        (("placement", "schedule"), [3.0, 7.0]),
        (("placement", "fusion"), [HALF_A_SECOND] * 2),
    ],
)
def test_units_cost_what_their_kernel_costs_where_fusion_is_asked(decisions, expected):
    units = makespan_units(MakespanWorkspace(pairs(decisions)))
    assert sorted(units.seconds[0]) == expected
    assert sorted(units.units.work) == expected
