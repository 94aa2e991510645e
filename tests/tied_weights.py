"""Problems some nodes of which read the same arrays of weights."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from go_rl.core import Problem


def tied(problem: Problem, groups: Sequence[int]) -> Problem:
    """Return the problem whose nodes of one group >= 0 read one array, of the bytes of the weights
    of the lightest of them; what a node has beyond them is its own."""
    numbers = np.asarray(groups)
    found = [g for g in np.unique(numbers[numbers >= 0]) if (numbers == g).sum() > 1]
    sizes = [problem.weight_bytes[numbers == g].min() for g in found]
    pairs = sorted((n, a) for a, g in enumerate(found) for n in np.flatnonzero(numbers == g))
    ends = np.array(pairs, np.int32).reshape(-1, 2)
    size = np.array(sizes, np.float64)
    graph = replace(problem.graph, tied_node=ends[:, 0], tied_array=ends[:, 1], tied_bytes=size)
    return replace(problem, graph=graph, tied_bytes=size)
