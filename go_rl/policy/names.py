"""Names of weights; imports nothing heavy."""

DEFAULT_WEIGHTS = "partition-1.0"
"""The weights that ship with the hardware and that ``--method policy`` uses."""

DEFAULT_STEP_WEIGHTS = "graph-1.0"
"""The same for placement, schedule and fusion."""
