"""Arithmetic on sizes, counters and contractions that several readers share."""
