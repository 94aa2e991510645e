"""Measuring random schedules of the operators of networks through TVM."""
