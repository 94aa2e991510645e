"""A kernel without a price of its own takes what its nodes take together."""

from dataclasses import replace

import numpy as np
from reference.step_problems import step_problem

from go_rl.core import OpKind
from go_rl.core.decisions import Decisions
from go_rl.objectives.makespan.simulate.pricing import MakespanPricer
from go_rl.verify.makespan_value import replayed


def test_pricer_and_checker_add_up_the_nodes():
    problem = step_problem(
        [1.0, 2.0, 4.0, 8.0], [(0, 1, 1.0), (1, 2, 1.0), (2, 3, 1.0)], 2,
        kinds=[OpKind.ELEMENTWISE] * 4,
    )  # fmt: skip
    problem = replace(problem, kernels=None)
    device, leader = np.zeros(4, np.int16), np.array([0, 0, 0, 3])
    plans = Decisions(device[None], None, leader[None])
    assert MakespanPricer(problem).price(plans)[0].tolist() == [15.0]
    assert replayed(problem, device, None, leader).seconds == 15.0
