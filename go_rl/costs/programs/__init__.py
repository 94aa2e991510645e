"""Tensor programs: operators with a configuration of their loops."""
