"""Measuring kernels, each compiled alone by XLA."""
