"""Environments of the makespan: placement, schedule, fusion, and all together."""
