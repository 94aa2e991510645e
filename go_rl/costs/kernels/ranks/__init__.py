"""Ranks of the settings of XLA's flags of one kernel."""
