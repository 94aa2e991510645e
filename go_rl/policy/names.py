"""Names of weights; imports nothing heavy."""

DEFAULT_WEIGHTS = "partition-1.0"
"""The weights that ship with the package and that ``--method policy`` uses."""
