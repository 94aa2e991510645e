"""Latency of single operators on GPUs of which only the data sheet is known."""
