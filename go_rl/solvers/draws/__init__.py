"""Draws of legal partitions from distributions over chips, before any propagation."""
