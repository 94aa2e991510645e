"""From scores to priced plans."""

import numpy as np
import pytest
from reference.random_rings import random_ring
from reference.small_rings import ring_problem

from go_rl.core.evaluation import STATUS_CODES
from go_rl.objectives.ring.methods.cut_scores import price_scores
from go_rl.objectives.ring.workspace import RingWorkspace
from go_rl.verify.rules import legal


@pytest.mark.parametrize("seed", range(10))
def test_plans_are_legal_and_cost_what_the_pricer_says(seed):
    problem = random_ring(seed, 9, 4)
    workspace = RingWorkspace(problem)
    if not workspace.solver.feasible_so_far or not workspace.units.num_units:
        pytest.skip("nothing to cut")
    scores = np.random.default_rng(seed).random((5, workspace.units.num_units))
    priced = price_scores(workspace, scores, seed)
    seconds, codes = workspace.pricer.price(priced.decisions.device)
    for i in range(5):
        status = STATUS_CODES[int(priced.status[i])]
        assert status.ok == bool(priced.ok[i])
        if status.ok:
            assert priced.seconds[i] == seconds[i]
            assert STATUS_CODES[int(codes[i])].ok
            home, _ = workspace.pricer.place(priced.decisions.device[i])
            replicas = workspace.pricer.replicas(priced.decisions.device[i])
            assert not legal(problem, home, replicas)
        else:
            assert priced.seconds[i] == np.inf


def test_scores_decide_which_of_two_free_chains_comes_first():
    """Chains 0-1 and 2-3 on two chips: whole chains on a chip, in the order of the scores."""
    workspace = RingWorkspace(ring_problem(4, [(0, 1), (2, 3)], 2, "relay", edge_bytes=0.5))
    scores = np.array([[0.0, 0.1, 0.2, 0.3], [0.2, 0.3, 0.0, 0.1]])
    priced = price_scores(workspace, scores)
    assert priced.decisions.device.tolist() == [[0, 0, 1, 1], [1, 1, 0, 0]]
    assert priced.best() == 0
