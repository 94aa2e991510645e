"""Recorded candidates of tensor programs, replayed in place of measuring."""
