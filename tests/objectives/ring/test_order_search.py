"""The cross-entropy method over orders: what it finds, counts and keeps."""

from __future__ import annotations

import numpy as np
import pytest

from go_rl.core import Budget
from go_rl.costs.models.zoo_problem import priced_problem
from go_rl.graphs.zoo.problems import ZooProblem
from go_rl.objectives.methods import LinearDP, OrderSearch
from go_rl.verify import check_plan


def _problem(graph, hardware):
    return priced_problem(ZooProblem(graph, hardware, "ring", ("placement",)))


def test_few_orders_beat_the_dynamic_program_over_given_ones():
    """FractalNet's branches of unlike lengths: an order of any one kind keeps some of them open."""
    problem = _problem("fractalnet-4", "ring16")
    given = LinearDP().optimize(problem, Budget(samples=50), 0)
    found = OrderSearch().optimize(problem, Budget(samples=50), 0)
    assert check_plan(found, problem).ok
    assert found.value < 0.8 * given.value


@pytest.mark.parametrize("samples", [1, 7, 40])
def test_samples_are_counted_and_a_search_goes_on_from_its_memory(samples):
    problem = _problem("fractalnet-4", "ring6")
    memory = {}
    kept = OrderSearch().with_memory(memory)
    first = kept.optimize(problem, Budget(samples=samples), 3)
    assert first.samples == samples
    kept.optimize(problem, Budget(samples=40 - samples + 1), 3)
    whole = OrderSearch()
    again = whole.optimize(problem, Budget(samples=samples), 3)
    assert np.array_equal(first.device, again.device)
    assert len(memory["search"].search.finds.seconds) <= 12
    assert memory["search"].search.finds.seconds[0] <= first.value * (1 + 1e-9)
