"""Algorithms on graphs that the solver needs."""
