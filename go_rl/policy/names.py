"""Names of the weights that ship with the package; imports nothing heavy."""

from go_rl.core import Objective

SHIPPED_NAMES = {Objective.RING: "partition-1.0", Objective.MAKESPAN: "graph-1.0"}
"""The weights of ``--method policy``, by objective."""
