"""Prices of kernels on GPUs of which only the data sheet is known."""
