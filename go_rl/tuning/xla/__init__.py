"""Tuning a model's kernels: which fusion, and which flags of each kernel."""
