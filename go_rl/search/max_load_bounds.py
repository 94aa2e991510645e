"""Proven lower bounds on max-load."""

from __future__ import annotations

import numpy as np

from go_rl.core import Problem
from go_rl.search.max_load_hypergraph import contract_problem


def max_load_bound(problem: Problem) -> float:
    """Return a lower bound in seconds on the largest load of any legal plan."""
    contraction = contract_problem(problem)
    work = contraction.hypergraph.work[contraction.devices.kind]
    usable = np.where(contraction.hypergraph.allowed.T, work, np.inf)
    return float(usable.min(axis=0).max())
