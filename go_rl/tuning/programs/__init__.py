"""Tuning tensor programs: which operator next, which schedules of it, measured where."""
