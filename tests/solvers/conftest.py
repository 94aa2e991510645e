"""Shared by the solver's tests."""
