"""Pipelines on a ring."""
