"""Candidates of tuned operators, reused for operators that are too light to be tuned."""
