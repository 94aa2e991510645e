"""Latency of single operators on GPUs of which only the data sheet is known."""

GPU_WEIGHTS = "gpus-1.5"
"""Weights that ship."""
