"""Lower bounds on max-load never exceed the optimum, and are tight where the reasons say so."""

import numpy as np
import pytest
from reference.boxed_problems import random_problem
from reference.max_load import max_load, optimum

from go_rl.core import Objective
from go_rl.objectives.host.hypergraph import contract_problem
from go_rl.objectives.host.max_load_cut_bound import fractional_knapsack
from go_rl.objectives.host.methods.max_load_dp import assignment_value
from go_rl.objectives.host.methods.max_load_exact import solve_exactly

UNLIMITED = 60.0


@pytest.mark.parametrize("seed", range(200, 206))
def test_cp_sat_proves_the_optimum(seed):
    problem = random_problem(seed, Objective.MAX_LOAD, 2 + seed % 5, 1 + seed % 3)
    best = optimum(problem, max_load)
    if np.isinf(best):
        return
    contraction = contract_problem(problem)
    anything = np.zeros(len(contraction.hypergraph.size), np.int16)
    bound, device = solve_exactly(contraction, 0.0, (1.5 * best, anything), UNLIMITED, 1)
    assert bound == pytest.approx(best, rel=1e-5)
    assert bound <= best * (1 + 1e-9)
    assert device is not None
    assert assignment_value(contraction, device) == pytest.approx(best)


def test_the_knapsack_takes_the_best_rate_first():
    value, price = np.array([6.0, 10.0, 4.0, 7.0]), np.array([2.0, 5.0, 0.0, np.inf])
    assert fractional_knapsack(value, price, 4.5) == pytest.approx(4 + 6 + 10 * 2.5 / 5)
    assert fractional_knapsack(value, price, -1.0) == pytest.approx(4.0)
