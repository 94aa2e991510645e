"""Ranks of the tilings of one tensor program."""
