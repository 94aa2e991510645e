"""Measuring tilings of tensor programs through TVM."""
