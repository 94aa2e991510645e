"""What is legal beside a split: counted and told by hand."""

import numpy as np
import pytest
from reference.small_rings import ring_problem

from go_rl.core import SolverError
from go_rl.solvers.enumeration import explain_partition

CHAIN = [(0, 1), (1, 2)]


def devices(*chips: int) -> np.ndarray:
    return np.array(chips, np.int16)


def test_partitions_of_a_chain_are_counted():
    """Three nodes on two chips, in order, chip 0 first: 000, 001, 011."""
    found = explain_partition(ring_problem(3, CHAIN, 2), devices(0, 1, 1))
    assert (found.partitions, found.moves, found.blamed) == (3, {}, ())


def test_the_nearest_partition_moves_the_fewest_nodes():
    found = explain_partition(ring_problem(3, CHAIN, 2), devices(0, 1, 0))
    assert found.partitions == 3
    assert found.moves in ({1: 0}, {2: 1})


def test_the_rule_that_forbids_every_partition_is_blamed():
    """The last node of a chain is pinned to the first chip, the first node to the second one."""
    problem = ring_problem(3, CHAIN, 2, fixed={0: 1, 2: 0})
    found = explain_partition(problem, devices(0, 0, 0))
    assert found.partitions == 0
    assert set(found.blamed) == {"fixed", "acyclic"}


def test_a_large_problem_is_refused_with_its_size():
    problem = ring_problem(600, [(i, i + 1) for i in range(599)], 4)
    with pytest.raises(SolverError, match=r"10\^361 assignments of 600 nodes to 4 chips are too"):
        explain_partition(problem, devices(*[0] * 600))
