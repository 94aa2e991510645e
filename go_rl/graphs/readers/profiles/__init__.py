"""Profiles that others publish: dnn-partitioning and PipeDream."""
