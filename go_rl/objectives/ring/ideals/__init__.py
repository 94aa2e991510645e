"""Bounded dynamic programming over ideals of the units."""
