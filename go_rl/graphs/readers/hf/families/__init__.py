"""Families of transformers, as data."""
